# SPDX-License-Identifier: GPL-2.0-or-later
"""Axes of plots: where a value lies, and where there are ticks."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

TICKS_MOST = 10
SIZES = ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB"))


def short(value: float) -> str:
    """1000000 as 1M, 0.0025 as 0.0025."""
    for unit, name in ((1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(value) >= unit:
            return f"{value / unit:.3g}{name}"
    return f"{value:.3g}"


def time(value: float) -> str:
    """0.00002 as 20 us."""
    for unit, name in ((1.0, "s"), (1e-3, "ms"), (1e-6, "us")):
        if value >= 0.999 * unit:
            return f"{value / unit:.3g} {name}"
    return f"{value * 1e9:.3g} ns" if value else "0"


def size(value: float) -> str:
    """1024 as 1 KiB."""
    for unit, name in SIZES:
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} B"


@dataclass(frozen=True)
class Axis:
    """Values from low to high lie between the pixels start and end.  marked: values to mark; label: tells
    their unit."""

    low: float
    high: float
    start: float
    end: float
    log: bool
    marked: tuple[float, ...] = ()
    label: str = ""

    @classmethod
    def over(
        cls,
        values: Sequence[float],
        start: float,
        end: float,
        log: bool,
        label: str,
        *,
        zero: bool = False,
        mark: bool = False,
    ) -> Axis:
        """An axis that has all the values.  zero: from 0 on, as where that is near.  mark: each value, if
        they are few."""
        low, high = min(values), max(values)
        log = log and low > 0
        if log:
            room = (high / low) ** 0.04 if high > low else 1.5
            low, high = low / room, high * room
        else:
            low = min(0.0, low) if zero or 0 < low < high / 4 else low
            high = high + 0.05 * (high - low) if zero else high
            high = high if high > low else low + 1
        found = tuple(sorted(set(values)))
        marked = found if mark and len(found) <= TICKS_MOST else ()
        return cls(low, high, start, end, log, marked, label)

    def at(self, value: float) -> float:
        """Pixel of the value; what lies outside is at the edge."""
        value = min(max(value, self.low), self.high)
        if self.log:
            part = math.log(value / self.low) / math.log(self.high / self.low)
        else:
            part = (value - self.low) / (self.high - self.low)
        return self.start + part * (self.end - self.start)

    def ticks(self) -> list[tuple[float, str]]:
        """Values and how they are written."""
        name = size if self._of_bytes else time if self._of_time else short
        return [(value, name(value)) for value in self._places()]

    @property
    def _of_bytes(self) -> bool:
        return self.label.startswith("bytes") or self.label.endswith("bytes")

    @property
    def _of_time(self) -> bool:
        return self.label.startswith("seconds") or self.label.endswith(" s")

    def _places(self) -> list[float]:
        if self.marked:
            return list(self.marked)
        if not self.log:
            return _even(self.low, self.high)
        base = 2.0 if self._of_bytes else 10.0
        first, last = (math.floor(math.log(each, base)) for each in (self.low, self.high))
        steps = (1.0,) if self._of_bytes or last - first > 3 else (1.0, 2.0, 5.0)
        found = [
            step * base**power
            for power in range(first, last + 1)
            for step in steps
            if self.low <= step * base**power <= self.high
        ]
        if len(found) < 2:
            return _even(self.low, self.high)
        return found[:: 1 + (len(found) - 1) // TICKS_MOST]


def _even(low: float, high: float) -> list[float]:
    """About five round values."""
    raw = (high - low) / 5
    unit = 10.0 ** math.floor(math.log10(raw))
    step = next(factor * unit for factor in (1, 2, 5, 10) if factor * unit >= raw)
    first, last = math.ceil(low / step), math.floor(high / step)
    return [number * step for number in range(first, last + 1)]
