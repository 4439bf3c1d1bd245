# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench-compare OLD=FILE NEW=FILE`: which rows of two reports differ beyond noise, and which came.

A row has changed where the intervals of the two ratios have nothing in common and the ratios are further
apart than two runs of the same tree are: a machine is not the same from one run to the next, which
the interval of one run cannot know.
"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench.saved import NotAReport, Report
from bench.stats import Row
from bench.table import ratio_text

BETWEEN_RUNS = 1.05
BETTER, WORSE, SAME = "better", "worse", "same"


@dataclass(frozen=True)
class Change:
    """A row that both reports measured.  factor: how many times better (above 1) or worse it is now."""

    old: Row
    new: Row
    factor: float
    word: str

    def __str__(self) -> str:
        size = self.factor if self.factor >= 1 else 1 / self.factor
        change = f"{size:.2f} times {self.word}"
        return f"{self.new.id:<32}{change:<22}{ratio_text(self.old)} -> {ratio_text(self.new)}"


def compared(old: Row, new: Row, between_runs: float = BETWEEN_RUNS) -> Change | None:
    """The change of a row; None: one of the two was not measured."""
    if not (old.ratio and new.ratio and old.interval and new.interval):
        return None
    factor = new.ratio / old.ratio if new.more_is_better else old.ratio / new.ratio
    apart = old.interval[1] < new.interval[0] or new.interval[1] < old.interval[0]
    if not apart or 1 / between_runs < factor < between_runs:
        return Change(old, new, factor, SAME)
    return Change(old, new, factor, BETTER if factor > 1 else WORSE)


def changes(old: Report, new: Report, between_runs: float = BETWEEN_RUNS) -> list[Change]:
    """Of all rows that both measured, the most changed first."""
    before = {row.id: row for row in old.rows}
    both = [(before[row.id], row) for row in new.rows if row.id in before]
    found = [change for pair in both if (change := compared(*pair, between_runs))]
    return sorted(found, key=lambda change: max(change.factor, 1 / change.factor), reverse=True)


def _warnings(old: Report, new: Report) -> Iterator[str]:
    for key in sorted(set(old.machine) | set(new.machine)):
        before, now = old.machine.get(key), new.machine.get(key)
        if before != now:
            yield f"warning: {key} differs: {before}, {now}"
    for name in old.groups.keys() & new.groups.keys():
        sizes = old.groups[name].size, new.groups[name].size
        if sizes[0] != sizes[1]:
            yield f"warning: sizes of the runs of {name} differ: {sizes[0]}, {sizes[1]}"


def _came_and_went(old: Report, new: Report) -> Iterator[str]:
    before = {row.id for row in old.rows if row.ratio is not None}
    now = {row.id for row in new.rows if row.ratio is not None}
    reasons = {row.id: row.reason for row in new.rows}
    for row_id in sorted(before - now):
        yield f"{row_id:<32}gone: {reasons.get(row_id) or 'not in the new report'}"
    for row_id in sorted(now - before):
        yield f"{row_id:<32}new"


def format_changes(old: Report, new: Report, found: list[Change]) -> str:
    """The report as text."""
    lines = list(_warnings(old, new))
    for word in (WORSE, BETTER):
        lines += [str(change) for change in found if change.word == word]
    lines += _came_and_went(old, new)
    counts = {word: sum(each.word == word for each in found) for word in (WORSE, BETTER, SAME)}
    lines.append(", ".join(f"{count} {word}" for word, count in counts.items()))
    return "\n".join(lines)


def main() -> int:
    """Print the changes; 1: something got worse, with --fail; 2: no reports."""
    parser = argparse.ArgumentParser(prog="bench.compare", description=__doc__)
    parser.add_argument("old", type=Path)
    parser.add_argument("new", type=Path)
    parser.add_argument("--fail", action="store_true", help="exit 1 if something got worse")
    parser.add_argument(
        "--between-runs",
        type=float,
        default=BETWEEN_RUNS,
        metavar="FACTOR",
        help="what two runs of the same tree may differ by (default %(default)s)",
    )
    options = parser.parse_args()
    try:
        old, new = Report.read(options.old), Report.read(options.new)
    except (OSError, NotAReport) as error:
        parser.error(str(error))
    found = changes(old, new, options.between_runs)
    print(format_changes(old, new, found))
    return int(options.fail and any(change.word == WORSE for change in found))


if __name__ == "__main__":
    raise SystemExit(main())
