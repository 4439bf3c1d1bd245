# SPDX-License-Identifier: GPL-2.0-or-later
"""Types of options: click.ParamType with the type of its values, which click knows since 8.2 (Debian 12
has 8.1), and times as the configuration has them.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import click

from scheduler.schema import duration, measure, seconds_of

__all__ = ["Duration", "ParamType", "Seconds"]

if TYPE_CHECKING:
    from click import ParamType
else:

    class ParamType(click.ParamType):
        """The same class, whatever it is subscripted with."""

        def __class_getitem__(cls, value):
            """Types of values are for checkers."""
            return cls


class Duration(ParamType[int]):
    """A time with a unit, or what the configuration has made of one: microseconds."""

    name = "DURATION"

    def __init__(self, least_s: float, most_s: float) -> None:
        """Take what is in these bounds."""
        self.of = duration(least_s, most_s)

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Microseconds."""
        try:
            return value if isinstance(value, int) else int(self.of(value))
        except ValueError as error:
            self.fail(f"'{value}' is not {error}", param, ctx)


class Seconds(ParamType[float]):
    """Seconds as a number, or a time with units: 30, 90s, 1h30m."""

    name = "DURATION"

    def __init__(self, least_s: float = 0.0, most_s: float = math.inf) -> None:
        """Take what is in these bounds."""
        self.least_s, self.most_s = least_s, most_s

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> float:
        """Parse to seconds."""
        found = measure(value, {"": 1.0})
        found = seconds_of(value) if found is None else found
        if found is None:
            self.fail(f"'{value}' is no time, such as 30s, 5min or 1h30m", param, ctx)
        if not self.least_s <= found <= self.most_s:
            self.fail(f"'{value}' is not from {self.least_s:g} to {self.most_s:g} s", param, ctx)
        return found
