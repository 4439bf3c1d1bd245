# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench`: every row this release measures, in one run, as ratios, into bench/results/latest.json."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from bench import (
    calls,
    instructions,
    jobs,
    near_data,
    nfs,
    rivals,
    sandboxes,
    saturation,
    scale,
    scripts,
    security,
    tiers,
    wire,
)
from bench.stats import Row, format_table, write_report
from bench.target import bench_target

RESULTS = Path(__file__).with_name("results") / "latest.json"
GROUPS = (
    "wire",
    "jobs",
    "calls",
    "scripts",
    "sandboxes",
    "security",
    "rivals",
    "scale",
    "near-data",
    "tiers",
    "manager",
    "instructions",
)
HOSTILE_SLOTS = 5  # one for each hostile script


@dataclass(frozen=True)
class Plan:
    """What to measure, and how much of it.

    pairs: interleaved samples of a row.  seconds: of one sample of throughput.  count: commands of a
    row of latencies.  rate_seconds: of one sample of jobs a second.
    """

    only: str | None
    quick: bool
    pairs: int
    seconds: float
    count: int
    rate_seconds: float

    def wants(self, *groups: str) -> bool:
        """Whether any of these groups is to be measured."""
        return self.only is None or self.only in groups


def plan_of(only: str | None, quick: bool, full: bool) -> Plan:
    """The sizes for --quick, for --full and for neither."""
    if quick:
        return Plan(only, True, 3, 0.1, 50, 0.5)
    return Plan(only, False, 9, 0.4, 2000, 60.0 if full else 4.0)


def _on_usual_target(plan: Plan) -> Iterator[Row]:
    with bench_target() as target:
        if plan.wants("wire"):
            yield from wire.rows(target, plan.seconds, plan.pairs)
        if plan.wants("jobs"):
            yield from jobs.rows(target, plan.count, plan.rate_seconds)
        if plan.wants("calls"):
            yield from calls.rows(target, plan.pairs, 50 if plan.quick else 500)
        if plan.wants("scripts"):
            yield from scripts.rows(target, plan.pairs)
        if plan.wants("rivals"):
            yield from rivals.rows(target, "exec", plan.count // 5, 5 * plan.seconds)
        if plan.wants("scale"):
            objects = 20_000 if plan.quick else 1_000_000
            yield from scale.rows(target, objects, plan.count // 5)


def _on_large_pool(plan: Plan) -> Iterator[Row]:
    kills, seconds, pairs = (10, 0.5, 2) if plan.quick else (100, 3.0, 7)
    with bench_target("--slots", str(HOSTILE_SLOTS)) as target:
        yield from sandboxes.rows(target, kills, seconds, pairs)
    yield sandboxes.numpy_row()


def _on_reusing_target(plan: Plan) -> Iterator[Row]:
    with bench_target("--reuse", "trusted") as target:
        if plan.wants("jobs"):
            yield from jobs.rows_of_reuse(target, plan.count, plan.rate_seconds)
        if plan.wants("rivals"):
            yield from rivals.rows(target, "reuse", plan.count // 5, 5 * plan.seconds)
        if plan.wants("scale"):
            part, repeats = (20, 2) if plan.quick else (1, 5)
            yield scale.restart_row(target, 100_000 // part, 10_000 // part, repeats)


def measure(plan: Plan, folder: Path) -> Iterator[Row]:
    """All rows of the plan, as they are measured; plots go into folder."""
    if plan.wants("wire", "jobs", "calls", "scripts", "rivals", "scale"):
        yield from _on_usual_target(plan)
    if plan.wants("sandboxes"):
        yield from _on_large_pool(plan)
    if plan.wants("jobs", "rivals", "scale"):
        yield from _on_reusing_target(plan)
    if plan.wants("security"):
        yield from security.rows(plan.pairs, 10 if plan.quick else 100)
    if plan.wants("near-data"):
        yield near_data.row(3 if plan.quick else 5)
    if plan.wants("tiers"):
        yield from tiers.rows(plan.quick)
    if plan.wants("manager"):
        folder.mkdir(parents=True, exist_ok=True)
        yield from nfs.rows(10 if plan.quick else 100, folder)
        yield from saturation.rows(0.5 if plan.quick else 5.0, folder)
    if plan.wants("instructions"):
        yield from instructions.rows()


def main() -> None:
    """Measure, print the table, write the report."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer samples: does it run at all?")
    size.add_argument("--full", action="store_true", help="jobs a second for 60 s, five times")
    parser.add_argument("--only", choices=GROUPS)
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    found: list[Row] = []
    for row in measure(plan_of(options.only, options.quick, options.full), options.output.parent):
        found.append(row)
        print(f"{row.id} measured" if row.ratio else f"{row.id}: {row.reason}", file=sys.stderr)
    write_report(found, options.output)
    print(format_table(found))


if __name__ == "__main__":
    main()
