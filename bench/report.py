# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m bench.report`: report.html beside the report, and the blocks of docs/performance.md with their
plots.  The same report gives the same bytes.

A block is between `<!-- bench:NAME -->` and `<!-- /bench -->`: NAME is a group, or summary.  The
text around it is written by hand.
"""

from __future__ import annotations

import argparse
import re
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

from bench.page import page
from bench.plots import draw_curve, draw_rows
from bench.saved import Report
from bench.stats import Row
from bench.table import WORDS, machine_line, quantity, ratio_text, sign, tally
from bench.target import SOURCE

RESULTS = Path(__file__).with_name("results") / "latest.json"
DOCUMENT = SOURCE / "docs" / "performance.md"
COLUMNS = 100  # of prose, as in all pages
BLOCK = re.compile(r"(<!-- bench:(\S+) -->\n).*?(<!-- /bench -->)", re.DOTALL)


def _wrapped(line: str) -> str:
    return textwrap.fill(line, COLUMNS, break_long_words=False, break_on_hyphens=False)


def _summary(report: Report) -> Iterator[str]:
    found = tally(report.rows)
    yield " · ".join(f"**{len(rows)}** {word}" for word, rows in found.items()) + "\n"
    for word in ("missed", "not measured"):
        if rows := found[word]:
            names = ", ".join(f"`{row.id}`" for row in rows)
            yield _wrapped(f"{word.capitalize()}: {names}.") + "\n"
    yield _wrapped(f"{machine_line(report)}.") + "\n"


def _cells(row: Row, paper: bool) -> list[str]:
    name = f"`{row.id}`" + (" (simulated)" if row.simulated else "")
    if row.ratio is None:
        reason = row.reason.replace("|", "\\|").replace("<", "&lt;")
        return [name, f"not measured: {reason}", *[""] * (4 + paper)]
    theirs = [quantity(row.paper, row.unit)] if paper else []
    ours, baseline = quantity(row.ours, row.unit), quantity(row.baseline, row.unit)
    return [name, ours, baseline, *theirs, ratio_text(row), sign(row.aim), WORDS[row.met]]


def _table(rows: list[Row]) -> Iterator[str]:
    paper = any(row.paper is not None for row in rows)
    head = ["row", "ours", "baseline", *(["paper"] if paper else []), "ratio, 95 %", "aim", ""]
    yield "| " + " | ".join(head) + " |"
    yield "|---|" + "---:|" * (len(head) - 3) + "---|---|"
    for row in rows:
        yield "| " + " | ".join(_cells(row, paper)) + " |"


def _plots(report: Report, name: str) -> dict[str, tuple[str, str]]:
    """Of each file its title and content."""
    rows = [row for row in report.rows if row.group == name]
    title = report.groups[name].title
    found = {f"{name}.svg": (title, draw_rows(rows, title))}
    for curve in report.curves:
        if curve.group == name:
            found[f"{curve.id}.svg"] = (curve.title, draw_curve(curve))
    return {file: plot for file, plot in found.items() if plot[1]}


def _group(report: Report, name: str, folder: Path) -> Iterator[str]:
    rows = [row for row in report.rows if row.group == name]
    if rows:
        yield from _table(rows)
        yield ""
    for file, (title, content) in _plots(report, name).items():
        (folder / file).write_text(content)
        yield f"![{title}]({folder.name}/{file})\n"
    took = report.groups[name]
    error = f"; it ended early: {took.error}" if took.error else ""
    yield f"Group `{name}`, {took.seconds:.0f} s, commit {took.commit}, {took.date}{error}.\n"


def fill(document: Path, report: Report) -> list[str]:
    """Fill the blocks of what the report has; plots lie in a folder named like the document.

    Returns: groups of the report that the document has no block for.
    """
    folder = document.with_suffix("")
    folder.mkdir(exist_ok=True)
    seen: set[str] = set()

    def filled(found: re.Match[str]) -> str:
        name = found[2]
        seen.add(name)
        if name == "summary":
            lines = list(_summary(report))
        elif name in report.groups:
            lines = list(_group(report, name, folder))
        else:
            return found[0]
        return found[1] + "\n" + "\n".join(lines) + "\n" + found[3]

    text = BLOCK.sub(filled, document.read_text())
    document.write_text(text)
    for file in folder.glob("*.svg"):
        if f"({folder.name}/{file.name})" not in text:
            file.unlink()
    return [name for name in report.groups if name not in seen]


def write_page(report: Report, path: Path) -> None:
    """report.html beside the report's own file."""
    path.with_name("report.html").write_text(page(report))


def main() -> None:
    """Read the report, write the page, fill the document."""
    parser = argparse.ArgumentParser(prog="bench.report", description=__doc__.splitlines()[0])
    parser.add_argument("report", type=Path, nargs="?", default=RESULTS)
    parser.add_argument("--document", type=Path, default=DOCUMENT)
    options = parser.parse_args()
    report = Report.read(options.report)
    write_page(report, options.report)
    for name in fill(options.document, report):
        print(f"{options.document.name} has no block for the group {name}", file=sys.stderr)


if __name__ == "__main__":
    main()
