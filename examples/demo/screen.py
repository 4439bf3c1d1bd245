# SPDX-License-Identifier: GPL-2.0-or-later
"""The screen of the demonstration: a bar on a terminal, and tables."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager

import click

from examples.demo.ways import Outcome, Progress
from pyosd.cli.output.tables import Column, JsonRow, format_bytes, format_seconds, print_table

__all__ = ["heading", "print_comparison", "print_counts", "working"]

MOST_ROWS = 8


def heading(text: str) -> None:
    """A line above a table."""
    click.echo(f"\n{text}")


@contextmanager
def working(what: str) -> Iterator[Progress]:
    """A bar on stderr while something goes on, if stderr is a terminal; else one line before it."""
    if not sys.stderr.isatty():
        click.echo(what, err=True)
        yield lambda share, word: None
        return
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn, TimeElapsedColumn
    from rich.progress import Progress as Bar

    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        TextColumn("{task.percentage:>3.0f} % {task.fields[word]}"),
        TimeElapsedColumn(),
    )
    with Bar(*columns, console=Console(stderr=True), refresh_per_second=10) as bar:
        task = bar.add_task(what, total=1.0, word="")
        yield lambda share, word: bar.update(task, completed=share, word=word)
        bar.update(task, completed=1.0, word="")


def print_counts(output: bytes, kind: str, headers: tuple[str, ...], last: bool = False) -> None:
    """Print the lines of a script's output that begin with `kind` as a table.

    Args:
        output: lines "kind key number...".
        kind: which of them.
        headers: of key and numbers.
        last: the last rows instead of the first, if there are too many.
    """
    rows = [line.split()[1:] for line in output.decode().splitlines() if line.startswith(kind)]
    shown = rows[-MOST_ROWS:] if last else rows[:MOST_ROWS]
    columns = [
        Column(header, cell(position), right=position > 0)
        for position, header in enumerate(headers)
    ]
    heading(f"{kind}s, {len(shown)} of {len(rows)}")
    print_table(columns, [{"cells": row} for row in shown], header=True, colour=False)


def cell(position: int) -> Callable[[JsonRow], str]:
    """What fills column number `position`."""
    return lambda row: str(row["cells"][position])


COMPARISON = (
    Column("JOB", lambda row: row["name"]),
    Column("", lambda row: row["what"]),
    Column("NEAR THE DATA", lambda row: row["near"], right=True),
    Column("FETCH AND COMPUTE", lambda row: row["local"], right=True),
)


def print_comparison(results: list[tuple[str, Outcome, Outcome]]) -> None:
    """Print both ways side by side."""
    rows: list[JsonRow] = []
    for name, near, local in results:
        for what, show in FIGURES:
            rows.append({"name": name, "what": what, "near": show(near), "local": show(local)})
            name = ""
    heading("Both ways, side by side")
    print_table(COMPARISON, rows, header=True, colour=False)


FIGURES: tuple[tuple[str, Callable[[Outcome], str]], ...] = (
    ("time", lambda way: format_seconds(way.seconds)),
    ("bytes sent", lambda way: format_bytes(way.sent_bytes)),
    ("bytes received", lambda way: format_bytes(way.received_bytes)),
    ("SHA-256 of output", lambda way: way.sha256[:16]),
)
