# SPDX-License-Identifier: GPL-2.0-or-later
"""How the tools talk: a line a problem and the counts, JSON lines, progress on a terminal."""

from __future__ import annotations

import contextlib
import json
import os
import sys
from collections import Counter
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

import click
from rich.console import Console
from rich.progress import (
    BarColumn,
    MofNCompleteColumn,
    Progress,
    TextColumn,
    TimeElapsedColumn,
)

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.opening.store import Store, StoreProgress

__all__ = ["Report", "print_row", "shown_progress"]

PROBLEM, CHECK, REPAIR = "iosd.store-problem/1", "iosd.store-check/1", "iosd.store-repair/1"


@contextlib.contextmanager
def shown_progress(wanted: bool) -> Iterator[StoreProgress]:
    """A bar on stderr, if a person looks at it."""
    if not wanted or not sys.stderr.isatty():
        yield lambda section, done, total: None
        return
    columns = (
        TextColumn("{task.description}"),
        BarColumn(),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
    )
    with Progress(*columns, console=Console(stderr=True), transient=True) as bar:
        tasks: dict[str, Any] = {}

        def tell(section: str, done: int, total: int) -> None:
            if section not in tasks:
                for task in tasks.values():
                    bar.update(task, visible=False)
                tasks[section] = bar.add_task(section, total=total or None)
            bar.update(tasks[section], completed=done)

        yield tell


class Report:
    """Prints problems as they come, and at the end how many of each kind there were."""

    def __init__(self, store: Store, as_json: bool, verbose: bool) -> None:
        self.store, self.as_json, self.verbose = store, as_json, verbose
        self.counts: Counter[ProblemKind] = Counter()

    @property
    def errors(self) -> int:
        """Problems to repair."""
        return sum(count for kind, count in self.counts.items() if kind.is_error)

    def problem(self, problem: Problem, done: str = "") -> None:
        """A problem that was found, or that was repaired, then with the action."""
        self.counts[problem.kind] += 1
        kind = problem.kind
        if self.as_json:
            row = {
                "schema": PROBLEM,
                "kind": kind.slug,
                "error": kind.is_error,
                "where": problem.where,
                "detail": problem.detail or kind.meaning,
                "remedy": kind.remedy,
            }
            self._json(row | ({"done": done} if done else {}))
        elif kind.is_error or self.verbose:
            self._line(problem, done)

    def _line(self, problem: Problem, done: str) -> None:
        name = problem.kind.slug
        colour = "green" if done else "red" if problem.kind.is_error else None
        head = click.style(f"{name:<24}", fg=colour) if colour and wants_colour() else f"{name:<24}"
        action = done or problem.kind.remedy or "needs nothing"
        click.echo(printable(f"{head} {problem}; {action}"))

    def _json(self, row: dict[str, Any]) -> None:
        click.echo(json.dumps(row))

    def end_check(self) -> None:
        """The summary of a check."""
        clean = self.errors == 0
        if self.as_json:
            self._json(self._summary(CHECK) | {"clean": clean, "errors": self.errors})
            return
        self._counts()
        what = "clean" if clean else f"{self.errors} to repair: run 'osd target repair'"
        click.echo(f"{self.store.roots.main.path}: {what}")

    def end_repair(self, repaired: int, left: list[Problem]) -> None:
        """The summary of a repair, and the problems that remain."""
        if self.as_json:
            summary = self._summary(REPAIR) | {"mended": repaired, "left": len(left)}
            self._json(summary | {"left_kinds": sorted({each.kind.slug for each in left})})
            return
        for problem in left:
            click.echo(printable(f"{'not repaired':<24} {problem.kind.slug}: {problem}"))
        text = f"{repaired} repaired" + (f", {len(left)} left" if left else "")
        click.echo(f"{self.store.roots.main.path}: {text}")

    def _summary(self, schema: str) -> dict[str, Any]:
        roots = self.store.roots
        block = roots.main.superblock
        return {
            "schema": schema,
            "data": str(roots.main.path),
            "ssd": str(roots.heads.path) if roots.heads else None,
            "store_id": block.store_id.hex() if block else None,
            "counts": {kind.slug: count for kind, count in sorted_counts(self.counts)},
        }

    def _counts(self) -> None:
        for kind, count in sorted_counts(self.counts):
            click.echo(f"{count:>8}  {kind.slug:<24} {kind.meaning}")


def sorted_counts(counts: Counter[ProblemKind]) -> list[tuple[ProblemKind, int]]:
    """In the order of the table."""
    return [(kind, counts[kind]) for kind in ProblemKind if counts[kind]]


def wants_colour() -> bool:
    """A person reads it who did not say no."""
    return sys.stdout.isatty() and not os.environ.get("NO_COLOR")


def printable(text: str) -> str:
    """Names of files may hold anything."""
    return text.encode("utf-8", "backslashreplace").decode()


def print_row(row: dict[str, Any], schema: str, as_json: bool) -> None:
    """One row of a dump."""
    if as_json:
        values = {key: each.hex() if isinstance(each, bytes) else each for key, each in row.items()}
        click.echo(json.dumps({"schema": schema} | values))
        return
    rest = (
        f"{key}={shown(key, each)}" for key, each in row.items() if key not in ("what", "where")
    )
    click.echo(printable(f"{row['what']} {row['where']}  {' '.join(rest)}".rstrip()))


def shown(key: str, value: Any) -> str:
    """A value of a dump for people: bytes as hexadecimal, and as text where it is one."""
    if isinstance(value, bytes):
        text = value.decode("ascii", "replace")
        return f"{value.hex()} ({text!r})" if value and text.isprintable() else value.hex()
    if isinstance(value, str):
        return repr(value)
    hexadecimal = (
        "generation",
        "page",
        "number",
        "member",
        "collection",
        "head_bytes",
        "partition",
    )
    if isinstance(value, IntEnum) or not isinstance(value, int):
        return str(value)
    return f"{value:#x}" if any(word in key for word in hexadecimal) else str(value)
