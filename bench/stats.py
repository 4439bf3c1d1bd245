# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics of the benchmarks: interleaved pairs, medians, bootstrap intervals, result rows, curves.

Method (docs/benchmarks.md): ours and the baseline are measured in turn, A B A B ..., in one run;
each pair gives a ratio; the figure is the median ratio with a 95 % bootstrap interval; `met` when
the interval reaches the aim.  Never a single time.

The bootstrap is written here: scipy's resamples at random, so its reports differ from run to run, and
the median's interval has the closed form below.
"""

from __future__ import annotations

import bisect
import math
import statistics
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field


@dataclass(frozen=True)
class Aim:
    """The aim of a ratio: at most or at least a bound."""

    bound: float | None
    at_most: bool

    def met(self, interval: tuple[float, float]) -> bool | None:
        """True when the interval reaches the aim; None: there is none."""
        if self.bound is None:
            return None
        return interval[0] <= self.bound if self.at_most else interval[1] >= self.bound

    def __str__(self) -> str:
        if self.bound is None:
            return "-"
        return f"{'<=' if self.at_most else '>='} {self.bound:g}"


REPORTED = Aim(None, True)
"""No aim: the figure is for information."""


def at_most(bound: float) -> Aim:
    """Aim for rows of time: ours / baseline <= bound."""
    return Aim(bound, True)


def at_least(bound: float) -> Aim:
    """Aim for rows of speed: ours / baseline >= bound."""
    return Aim(bound, False)


@dataclass(frozen=True)
class Row:
    """One result.

    paper: what the paper reports of the same, in the row's unit.  group: filled by the runner.
    """

    id: str
    ours: float | None
    baseline: float | None
    ratio: float | None
    interval: tuple[float, float] | None
    aim: str
    met: bool | None
    n: int
    method: str
    unit: str = "s"
    reason: str = ""
    simulated: bool = False  # by a model of devices, not by devices
    paper: float | None = None
    group: str = ""

    @property
    def bound(self) -> float | None:
        """Of the aim; None: there is none."""
        return None if self.aim == str(REPORTED) else float(self.aim.split()[1])

    @property
    def more_is_better(self) -> bool:
        """Whether a higher ratio is: as the aim says, or else the unit."""
        return self.unit.endswith("/s") if self.bound is None else self.aim.startswith(">=")


@dataclass(frozen=True)
class Point:
    """A place of a curve; low, high: 95 % interval of y, where there is one."""

    x: float
    y: float
    low: float | None = None
    high: float | None = None


@dataclass(frozen=True)
class Curve:
    """A plot: a line for each name in series, and as dashes what a paper reports of the same.

    x_label, y_label: with the unit.  log_x, log_y: axes by powers.
    """

    id: str
    title: str
    x_label: str
    y_label: str
    series: Mapping[str, Sequence[Point]]
    log_x: bool = False
    log_y: bool = False
    paper: Mapping[str, Sequence[Point]] = field(default_factory=dict)
    group: str = ""


def point(x: float, samples: Sequence[float]) -> Point:
    """The median of the samples, with its interval."""
    return Point(x, statistics.median(samples), *bootstrap(samples))


def _at_least_of(trials: int, chance: float, wanted: int) -> float:
    """Probability of at least so many of the trials."""
    if chance >= 1:
        return 1.0
    hit, miss, whole = math.log(chance), math.log1p(-chance), math.lgamma(trials + 1)
    return math.fsum(
        math.exp(
            whole - math.lgamma(n + 1) - math.lgamma(trials - n + 1) + n * hit + (trials - n) * miss
        )
        for n in range(wanted, trials + 1)
    )


def _end(ordered: Sequence[float], rank: int, part: float) -> float:
    """Of all resamples, that part have their rank-th smallest value here or below."""
    n = len(ordered)
    at = bisect.bisect_left(range(1, n), part, key=lambda k: _at_least_of(n, k / n, rank))
    return ordered[at]


def bootstrap(values: Sequence[float]) -> tuple[float, float]:
    """95 % bootstrap interval of the median: that of resampling without end, so that a report repeats."""
    ordered, n = sorted(values), len(values)
    return _end(ordered, (n + 1) // 2, 0.025), _end(ordered, n // 2 + 1, 0.975)


def compare(
    row_id: str,
    ours: Callable[[], float],
    baseline: Callable[[], float],
    aim: Aim,
    method: str,
    *,
    pairs: int = 7,
    unit: str = "s",
    paper: float | None = None,
) -> Row:
    """Measure both in turn, one warm-up pair first, and make the row.

    Args: ours, baseline: run once and return the figure (a time or a speed).
    """
    ours(), baseline()
    samples = [(ours(), baseline()) for _ in range(pairs)]
    return row_of_pairs(row_id, samples, aim, method, unit=unit, paper=paper)


def row_of_pairs(
    row_id: str,
    samples: Sequence[tuple[float, float]],
    aim: Aim,
    method: str,
    *,
    unit: str = "s",
    speedup: bool = False,
    paper: float | None = None,
) -> Row:
    """Make the row of pairs (ours, baseline) that were measured interleaved.

    Args: speedup: the ratio is baseline / ours, as of times whose aim is "that many times faster".
        paper: what the paper reports, in the unit.
    """
    ratios = [b / a if speedup else a / b for a, b in samples]
    interval = bootstrap(ratios)
    return Row(
        row_id,
        statistics.median(a for a, _ in samples),
        statistics.median(b for _, b in samples),
        statistics.median(ratios),
        interval,
        str(aim),
        aim.met(interval),
        len(samples),
        method,
        unit,
        paper=paper,
    )


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(part * len(ordered)) - 1))]


def row_of_tail(row_id: str, times: Sequence[float], bound: float, method: str) -> Row:
    """The 99th percentile of times against a bound in seconds, with its own bootstrap interval."""
    ordered, rank = sorted(times), math.ceil(0.99 * len(times))
    interval = _end(ordered, rank, 0.025) / bound, _end(ordered, rank, 0.975) / bound
    found, aim = percentile(times, 0.99), at_most(1)
    return Row(
        row_id,
        found,
        bound,
        found / bound,
        interval,
        str(aim),
        aim.met(interval),
        len(times),
        method,
    )


def missing(row_id: str, aim: Aim, reason: str) -> Row:
    """A row that could not be measured here, saying why."""
    return Row(row_id, None, None, None, None, str(aim), None, 0, "not measured", "", reason)
