# SPDX-License-Identifier: GPL-2.0-or-later
"""Whether a figure grows: the slope within the lives of its process, with a 95 % interval.  Pure.

A figure is flat when the interval contains 0, or lies below 1 % of the figure's mean an hour; else it
grows.  An interval around 0 that is wider than WIDEST to each side says nothing: there was too little
time, or too much else going on.

Readings that follow each other are not independent, so each life is cut into blocks, and the slope is
that of the blocks' means; a constant of its own for each life takes up what a restart changes.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum

from tests.soak.samples import Sample

LIMIT = 0.01
"""Share of the mean an hour that is no leak."""
WIDEST = 0.25
"""Share of the mean an hour up to which an interval says anything."""
BLOCKS = 24
"""Blocks in the whole run, about."""
LIFE_WARM_UP_S = 60.0
"""A process's first seconds are not judged (a quarter of its life, if that is less)."""

T_95 = {
    1: 12.71,
    2: 4.30,
    3: 3.18,
    4: 2.78,
    5: 2.57,
    6: 2.45,
    8: 2.31,
    10: 2.23,
    15: 2.13,
    20: 2.09,
}
"""Quantiles of Student's distribution by degrees of freedom; beyond the last 1.96 and a little."""


class Verdict(StrEnum):
    FLAT = "flat"
    GROWS = "grows"
    UNKNOWN = "cannot be said"


@dataclass(frozen=True)
class Slope:
    """Growth of one figure.  mean: of the figure.  slope, low, high: a share of the mean an hour."""

    name: str
    mean: float
    slope: float
    low: float
    high: float
    points: int

    @property
    def verdict(self) -> Verdict:
        if self.points == 0:
            return Verdict.UNKNOWN
        if self.high < LIMIT:
            return Verdict.FLAT
        if self.low > 0:
            return Verdict.GROWS
        return Verdict.FLAT if self.high - self.low <= 2 * WIDEST else Verdict.UNKNOWN


def quantile(freedom: int) -> float:
    """Of the largest number of degrees in the table that is not more."""
    if freedom > max(T_95):
        return 1.96 + 2.5 / freedom
    return T_95[max(each for each in T_95 if each <= freedom)]


def lives(samples: Sequence[Sample], name: str) -> list[list[tuple[float, float]]]:
    """Time and value in each life of the figure's process, without its warm-up."""
    by_life: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for each in samples:
        if name in each.figures:
            by_life[each.lives[name]].append((each.at, each.figures[name]))
    found = []
    first = min(by_life, key=lambda life: by_life[life][0][0], default=None)
    for life, points in by_life.items():
        begin, end = points[0][0], points[-1][0]
        # The whole run's warm-up is left out before; what lived then is warm.
        skip = 0.0 if life == first else min(LIFE_WARM_UP_S, (end - begin) / 4)
        rest = [point for point in points if point[0] >= begin + skip]
        if len(rest) > 1:
            found.append(rest)
    return found


def blocks(points: Sequence[tuple[float, float]], length: float) -> list[tuple[float, float]]:
    """Means of time and value by blocks of so many seconds."""
    begin = points[0][0]
    cut: dict[int, list[tuple[float, float]]] = defaultdict(list)
    for at, value in points:
        cut[int((at - begin) / length)].append((at, value))
    return [
        (sum(at for at, _ in each) / len(each), sum(value for _, value in each) / len(each))
        for each in cut.values()
    ]


def slope_of(samples: Sequence[Sample], name: str) -> Slope:
    """The slope of one figure within its lives."""
    found = lives(samples, name)
    every = [value for points in found for _, value in points]
    mean = sum(every) / len(every) if every else 0.0
    if not every:
        return Slope(name, 0.0, 0.0, 0.0, 0.0, 0)
    span = samples[-1].at - samples[0].at
    centred: list[tuple[float, float]] = []
    used = 0
    for points in found:
        # A short life is three blocks at least.
        means = blocks(points, max(min(span / BLOCKS, (points[-1][0] - points[0][0]) / 3), 1e-9))
        if len(means) < 2:
            continue
        used += 1
        hours = sum(at for at, _ in means) / len(means)
        level = sum(value for _, value in means) / len(means)
        centred += [((at - hours) / 3600, value - level) for at, value in means]
    freedom = len(centred) - used - 1
    if freedom < 1:
        return Slope(name, mean, 0.0, 0.0, 0.0, 0)
    spread = sum(at * at for at, _ in centred)
    slope = sum(at * value for at, value in centred) / spread
    rest = sum((value - slope * at) ** 2 for at, value in centred)
    error = quantile(freedom) * math.sqrt(rest / freedom / spread)
    unit = mean or 1.0
    return Slope(
        name, mean, slope / unit, (slope - error) / unit, (slope + error) / unit, len(centred)
    )


def judge(samples: Sequence[Sample], warm_up: float) -> list[Slope]:
    """All figures, by name.  warm_up: seconds at the beginning that do not count."""
    warm = [each for each in samples if each.at >= warm_up]
    names = sorted({name for each in warm for name in each.figures})
    return [slope_of(warm, name) for name in names] if len(warm) > 1 else []
