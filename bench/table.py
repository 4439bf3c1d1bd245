# SPDX-License-Identifier: GPL-2.0-or-later
"""The report on a terminal: a line for each row, what missed its aim, and how long it all took."""

from __future__ import annotations

from collections.abc import Sequence

from bench.saved import Report
from bench.stats import Row

MET = {True: "yes", False: "NO", None: "-"}


def format_report(report: Report) -> str:
    """The table and what there is to say of it."""
    lines = [format_table(report.rows), ""]
    judged = [row for row in report.rows if row.met is not None]
    missed = [row for row in judged if not row.met]
    unmeasured = [row for row in report.rows if row.ratio is None]
    lines.append(f"{len(judged) - len(missed)} of {len(judged)} aims met")
    lines += [f"  missed: {row.id}, {row.ratio:.2f}, aim {row.aim}" for row in missed]
    lines += [f"  not measured: {row.id}: {row.reason}" for row in unmeasured]
    took = ", ".join(f"{name} {took.seconds:.0f} s" for name, took in report.groups.items())
    total = sum(took.seconds for took in report.groups.values())
    return "\n".join([*lines, f"{took}: {total / 60:.1f} min"])


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
