# SPDX-License-Identifier: GPL-2.0-or-later
"""`make bench`: every row this release measures, in one run, as ratios, into bench/results/latest.json."""

from __future__ import annotations

import argparse
from pathlib import Path

from bench.groups import GROUPS
from bench.plan import FULL, QUICK, USUAL
from bench.report import DOCUMENT, RESULTS, fill, write_page
from bench.runner import run_group
from bench.saved import Report
from bench.table import format_report


def whole(report: Report) -> bool:
    """Whether it has every group, none of them measured in haste."""
    sizes = {group.name: took.size for group in GROUPS if (took := report.groups.get(group.name))}
    return len(sizes) == len(GROUPS) and "quick" not in sizes.values()


def main() -> int:
    """Measure, write the report after each group, then the page, the document if it is a whole run, and
    the table; 1: a group failed."""
    parser = argparse.ArgumentParser(prog="bench", description=__doc__)
    size = parser.add_mutually_exclusive_group()
    size.add_argument("--quick", action="store_true", help="fewer samples: does it run at all?")
    size.add_argument("--full", action="store_true", help="more samples, jobs for 60 s five times")
    names = [group.name for group in GROUPS]
    parser.add_argument("--only", choices=names, action="append", help="may be given again")
    parser.add_argument("--merge", action="store_true", help="keep what the output has of others")
    parser.add_argument("--output", type=Path, default=RESULTS)
    options = parser.parse_args()
    plan = QUICK if options.quick else FULL if options.full else USUAL
    report = Report.read(options.output) if options.merge and options.output.exists() else Report()
    chosen = [group for group in GROUPS if options.only is None or group.name in options.only]
    for group in chosen:
        run_group(group, plan, report)
        report.write(options.output)
    write_page(report, options.output)
    if options.output == RESULTS and whole(report):
        fill(DOCUMENT, report)
    print(format_report(report))
    return int(any(report.groups[group.name].error for group in chosen))


if __name__ == "__main__":
    raise SystemExit(main())
