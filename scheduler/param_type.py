# SPDX-License-Identifier: GPL-2.0-or-later
"""Types of options: click.ParamType with the type of its values, which click knows since 8.2 (Debian 12
has 8.1), and times as the configuration has them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from scheduler.schema import duration

__all__ = ["Duration", "ParamType"]

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
