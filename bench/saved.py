# SPDX-License-Identifier: GPL-2.0-or-later
"""A report as a file: rows, curves, and what they were taken on."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from bench.machine import machine
from bench.stats import Curve, Point, Row

SCHEMA = "iosd.bench/1"


class NotAReport(ValueError):
    """The file holds something else."""


@dataclass(frozen=True)
class Took:
    """One group of a report.  error: why it ended early, or ""."""

    title: str
    seconds: float
    commit: str
    date: str
    size: str
    error: str = ""


@dataclass
class Report:
    """groups: by name, in the order they were measured."""

    machine: dict[str, Any] = field(default_factory=machine)
    groups: dict[str, Took] = field(default_factory=dict)
    rows: list[Row] = field(default_factory=list)
    curves: list[Curve] = field(default_factory=list)

    def add(self, name: str, took: Took, found: Sequence[Row | Curve]) -> None:
        """Take in a group, in place of what is there of it."""
        self.groups[name] = took
        here = [replace(each, group=name) for each in found]
        self.rows = [row for row in self.rows if row.group != name]
        self.rows += [each for each in here if isinstance(each, Row)]
        self.curves = [curve for curve in self.curves if curve.group != name]
        self.curves += [each for each in here if isinstance(each, Curve)]
        order = list(self.groups).index
        self.rows.sort(key=lambda row: order(row.group))
        self.curves.sort(key=lambda curve: order(curve.group))

    def write(self, path: Path) -> None:
        """Raises: OSError."""
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"schema": SCHEMA, **asdict(self)}, indent=1) + "\n")

    @classmethod
    def read(cls, path: Path) -> Report:
        """Raises: OSError; NotAReport."""
        try:
            found = json.loads(path.read_bytes())
            if found["schema"] != SCHEMA:
                raise NotAReport(f"{path}: schema {found['schema']}, not {SCHEMA}")
            groups = {name: Took(**took) for name, took in found["groups"].items()}
            rows = [Row(**{**row, "interval": _pair(row["interval"])}) for row in found["rows"]]
            curves = [_curve(each) for each in found["curves"]]
            return cls(found["machine"], groups, rows, curves)
        except (KeyError, TypeError, AttributeError, json.JSONDecodeError) as error:
            raise NotAReport(f"{path} is no report of this release: {error}") from error


def _pair(values: list[float] | None) -> tuple[float, float] | None:
    return None if values is None else (values[0], values[1])


def _curve(found: dict[str, Any]) -> Curve:
    for key in ("series", "paper"):
        found[key] = {name: [Point(**at) for at in line] for name, line in found[key].items()}
    return Curve(**found)


def write_rows(rows: Sequence[Row], path: Path, **more: Any) -> None:
    """A report of a bench by itself: rows, and what else belongs to it."""
    path.parent.mkdir(parents=True, exist_ok=True)
    found = [asdict(row) for row in rows]
    path.write_text(
        json.dumps({"schema": SCHEMA, "machine": machine(), **more, "rows": found}, indent=2) + "\n"
    )
