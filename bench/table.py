# SPDX-License-Identifier: GPL-2.0-or-later
"""The report in words: figures with their units, and a table for a terminal."""

from __future__ import annotations

from collections.abc import Sequence

from bench.saved import Report
from bench.stats import Row

WORDS = {True: "met", False: "missed", None: "-"}
TIMES = ((1.0, "s"), (1e-3, "ms"), (1e-6, "us"))


def quantity(value: float | None, unit: str) -> str:
    """A figure with its unit, scaled for reading."""
    if value is None:
        return "-"
    if unit == "s":
        scale, unit = next((each for each in TIMES if abs(value) >= each[0]), TIMES[-1])
        value /= scale
    return f"{number(value)} {unit}"


def number(value: float) -> str:
    """Three digits that matter, or all before the point."""
    return f"{value:,.0f}" if abs(value) >= 100 else f"{value:.3g}"


def sign(aim: str) -> str:
    """<= as people write it."""
    return aim.replace("<=", "≤").replace(">=", "≥")


def ratio_text(row: Row) -> str:
    """1.25 [1.20, 1.31]."""
    assert row.ratio is not None and row.interval is not None
    low, high = (number(each) for each in row.interval)
    return f"{number(row.ratio)} [{low}, {high}]"


def tally(rows: Sequence[Row]) -> dict[str, list[Row]]:
    """Rows by what became of their aims."""
    return {
        "met": [row for row in rows if row.met is True],
        "missed": [row for row in rows if row.met is False],
        "no aim": [row for row in rows if row.ratio is not None and row.met is None],
        "not measured": [row for row in rows if row.ratio is None],
    }


def machine_line(report: Report) -> str:
    """The machine of the measurement, in one line."""
    found = dict(report.machine)
    memory = found.pop("memory_bytes") / (1 << 30)
    cpu = f"{found.pop('cpu')}, {found.pop('cores')} processors, {memory:.0f} GiB"
    return ", ".join([cpu, *(f"{name} {value}" for name, value in found.items())])


def format_table(rows: Sequence[Row]) -> str:
    """The rows for a terminal: id, ours, baseline, ratio with interval, aim, met."""
    width = max([22, *(len(row.id) + 2 for row in rows)])
    head = f"{'row':<{width}}{'ours':>14}{'baseline':>14}  {'ratio, 95 %':<28}{'aim':<9}"
    lines = [head, "-" * len(head)]
    for row in rows:
        if row.ratio is None:
            lines.append(f"{row.id:<{width}}not measured: {row.reason}")
            continue
        ours, baseline = quantity(row.ours, row.unit), quantity(row.baseline, row.unit)
        lines.append(
            f"{row.id:<{width}}{ours:>14}{baseline:>14}  {ratio_text(row):<28}{row.aim:<9}{WORDS[row.met]}"
        )
    return "\n".join(lines)


def format_report(report: Report) -> str:
    """The table, what missed, and what it took."""
    found = tally(report.rows)
    lines = [format_table(report.rows), ""]
    lines.append(", ".join(f"{len(rows)} {word}" for word, rows in found.items()))
    lines += [f"  missed: {row.id}: {ratio_text(row)}, aim {row.aim}" for row in found["missed"]]
    lines += [f"  not measured: {row.id}: {row.reason}" for row in found["not measured"]]
    took = ", ".join(f"{name} {took.seconds:.0f} s" for name, took in report.groups.items())
    total = sum(took.seconds for took in report.groups.values())
    return "\n".join([*lines, f"{took}: {total / 60:.1f} min"])
