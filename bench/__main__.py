# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench`: every row this release measures, in one run, as ratios, into bench/results/latest.json."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

from bench import jobs, near_data, scale, scripts, wire
from bench.stats import Row, format_table, write_report
from bench.target import bench_target

RESULTS = Path(__file__).with_name("results") / "latest.json"


def main() -> None:
    """Measure, print the table, write the report."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer samples: does it run at all?")
    parser.add_argument("--only", choices=("wire", "jobs", "scripts", "scale", "near-data"))
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    pairs, seconds, count = (3, 0.1, 50) if options.quick else (9, 0.4, 2000)

    found: list[Row] = []

    def take(row: Row) -> None:
        found.append(row)
        print(f"{row.id} measured" if row.ratio else f"{row.id}: {row.reason}", file=sys.stderr)

    wanted = options.only
    if wanted != "near-data":
        with bench_target() as target:
            if wanted in (None, "wire"):
                for row in wire.rows(target, seconds, pairs):
                    take(row)
            if wanted in (None, "jobs"):
                for row in jobs.rows(target, count, 10 * seconds):
                    take(row)
            if wanted in (None, "scripts"):
                for row in scripts.rows(target, pairs):
                    take(row)
            if wanted in (None, "scale"):
                for row in scale.rows(target, 20_000 if options.quick else 1_000_000, count // 5):
                    take(row)
    if wanted in (None, "jobs", "scale"):
        with bench_target("--reuse", "trusted") as target:
            if wanted != "scale":
                for row in jobs.rows_of_reuse(target, count, 10 * seconds):
                    take(row)
            if wanted != "jobs":
                part = 20 if options.quick else 1
                repeats = 2 if options.quick else 5
                take(scale.restart_row(target, 100_000 // part, 10_000 // part, repeats))
    if wanted in (None, "near-data"):
        take(near_data.row(3 if options.quick else 5))
    write_report(found, options.output)
    print(format_table(found))


if __name__ == "__main__":
    main()
