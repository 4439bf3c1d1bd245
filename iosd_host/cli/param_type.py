# SPDX-License-Identifier: GPL-2.0-or-later
"""Types of options: times, sizes, portals and module options."""

from __future__ import annotations

import math
from typing import Any

import click

from iosd_host.config.schema import SIZES, duration, measure, seconds_of, split_portal
from pyosd.cli.frame.param_type import ParamType

__all__ = ["Duration", "ModuleOption", "Portal", "Seconds", "Size"]


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


class Portal(ParamType[tuple[str, int]]):
    """ADDRESS:PORT, the port optional."""

    name = "ADDRESS[:PORT]"

    def convert(
        self, value: Any, param: click.Parameter | None, ctx: click.Context | None
    ) -> tuple[str, int]:
        """Split at the last colon that is not inside brackets."""
        if isinstance(value, tuple):
            return value
        try:
            return split_portal(str(value), 3260)
        except ValueError as error:
            self.fail(str(error), param, ctx)


class ModuleOption(ParamType[str]):
    """KEY=VALUE for the module."""

    name = "KEY=VALUE"

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> str:
        """Refuse what would not survive tgtd's own option string."""
        text = str(value)
        if "=" not in text or "," in text or ";" in text:
            self.fail("must be KEY=VALUE without comma or semicolon", param, ctx)
        return text


class Size(ParamType[int]):
    """Bytes, with a unit or without."""

    name = "SIZE"

    def __init__(self, least: str) -> None:
        """Take what is from least to 1TiB."""
        self.least = least

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        """Bytes."""
        found, least = measure(value, SIZES), measure(self.least, SIZES)
        if found is None or least is None or not least <= found <= SIZES["TiB"]:
            self.fail(f"must be a size like 2MiB, {self.least} to 1TiB", param, ctx)
        return int(found)
