# SPDX-License-Identifier: GPL-2.0-or-later
"""Statistics of the benchmarks: interleaved pairs, medians, bootstrap intervals, result rows.

Method (docs/benchmarks.md): ours and the baseline are measured in turn, A B A B ..., in one run;
each pair gives a ratio; the figure is the median ratio with a 95 % bootstrap interval; `met` when
the interval reaches the aim.  Never a single time.
"""

from __future__ import annotations

import json
import math
import os
import platform
import random
import statistics
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

SCHEMA = "iosd.bench/1"
MET = {True: "yes", False: "NO", None: "-"}


@dataclass(frozen=True)
class Aim:
    """What a ratio has to reach: at most or at least a bound."""

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
    """One result, as design.md section 5 names its fields."""

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


def bootstrap(ratios: Sequence[float], rounds: int = 2000) -> tuple[float, float]:
    """95 % bootstrap interval of the median; the seed is fixed so that a report repeats."""
    rng = random.Random(1)
    medians = sorted(statistics.median(rng.choices(ratios, k=len(ratios))) for _ in range(rounds))
    return medians[int(0.025 * rounds)], medians[int(0.975 * rounds) - 1]


def compare(
    row_id: str,
    ours: Callable[[], float],
    baseline: Callable[[], float],
    aim: Aim,
    method: str,
    *,
    pairs: int = 7,
    unit: str = "s",
) -> Row:
    """Measure both in turn, one warm-up pair first, and make the row.

    Args: ours, baseline: run once and return the figure (a time or a speed).
    """
    ours(), baseline()
    samples = [(ours(), baseline()) for _ in range(pairs)]
    return row_of_pairs(row_id, samples, aim, method, unit=unit)


def row_of_pairs(
    row_id: str,
    samples: Sequence[tuple[float, float]],
    aim: Aim,
    method: str,
    *,
    unit: str = "s",
    speedup: bool = False,
) -> Row:
    """Make the row of pairs (ours, baseline) that were measured interleaved.

    Args: speedup: the ratio is baseline / ours, as of times whose aim is "that many times faster".
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
    )


def percentile(values: Sequence[float], part: float) -> float:
    """The value that `part` of the values do not exceed."""
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, max(0, math.ceil(part * len(ordered)) - 1))]


def row_of_tail(row_id: str, times: Sequence[float], bound: float, method: str) -> Row:
    """The 99th percentile of times against a bound in seconds, with its own bootstrap interval."""
    rng = random.Random(1)
    rounds = sorted(percentile(rng.choices(times, k=len(times)), 0.99) / bound for _ in range(2000))
    interval = rounds[49], rounds[1949]
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


def machine() -> dict[str, Any]:
    """What the figures were taken on."""
    model = next(
        (
            line.split(":", 1)[1].strip()
            for line in Path("/proc/cpuinfo").read_text().splitlines()
            if line.startswith("model name")
        ),
        "unknown",
    )
    return {
        "cpu": model,
        "cores": os.cpu_count(),
        "kernel": platform.release(),
        "python": sys.version.split()[0],
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
    }


def write_report(rows: Sequence[Row], path: Path, **more: Any) -> None:
    """Write the JSON of design.md section 5, and what else belongs to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [asdict(row) for row in rows]
    report = {"schema": SCHEMA, "machine": machine(), **more, "rows": found}
    path.write_text(json.dumps(report, indent=2) + "\n")


def format_table(rows: Sequence[Row]) -> str:
    """The rows for a terminal: id, ours, baseline, ratio with interval, aim, met."""
    width = max([22, *(len(row.id) + 2 for row in rows)])
    head = f"{'row':<{width}}{'ours':>12}{'baseline':>12}{'ratio':>8}  {'95 %':<16}{'aim':<9}met"
    lines = [head, "-" * len(head)]
    for row in rows:
        if row.ratio is None or row.interval is None:
            lines.append(f"{row.id:<{width}}{'not measured: ' + row.reason}")
            continue
        interval = f"{row.interval[0]:.2f}..{row.interval[1]:.2f}"
        lines.append(
            f"{row.id:<{width}}{quantity(row.ours, row.unit):>12}{quantity(row.baseline, row.unit):>12}"
            f"{row.ratio:>8.2f}  {interval:<16}{row.aim:<9}{MET[row.met]}"
        )
    return "\n".join(lines)


def quantity(value: float | None, unit: str) -> str:
    """A figure with its unit, scaled for reading."""
    if value is None:
        return "-"
    if unit == "s":
        return f"{value * 1e6:.1f} us" if value < 0.01 else f"{value:.3f} s"
    return f"{value:,.0f} {unit}"
