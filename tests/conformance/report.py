# SPDX-License-Identifier: GPL-2.0-or-later
"""A run as people and programs read it: the matrix in 80 columns, failures in full, JSON."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import groupby
from typing import Any

from tests.conformance.cells import COLUMNS, CONDITIONS, Condition
from tests.conformance.commands import ROWS, Row
from tests.conformance.runner import Outcome, Report, Result

SCHEMA = "iosd.conformance/1"
MARKS = {
    Outcome.PASSED: "+",
    Outcome.FAILED: "F",
    Outcome.SKIPPED: "s",
    Outcome.NOT_SUPPORTED: "-",
    Outcome.NOT_APPLICABLE: ".",
}
LABEL = 38


def panels() -> list[list[Condition]]:
    """Columns of one matrix each: two groups side by side fit 80 columns."""
    groups = [list(found) for _, found in groupby(CONDITIONS, lambda each: each.group)]
    return [groups[0] + groups[1], groups[2] + groups[4], groups[3]]


def _separated(cells: list[tuple[Condition, str]]) -> str:
    """One character a column, a space between groups."""
    parts = [
        "".join(mark for _, mark in found)
        for _, found in groupby(cells, lambda each: each[0].group)
    ]
    return " ".join(parts)


def _numbers(columns: list[Condition]) -> Iterator[str]:
    number = {each.name: index + 1 for index, each in enumerate(CONDITIONS)}
    for place in (10, 1):
        digits = [(each, str(number[each.name] // place % 10)) for each in columns]
        yield f"{'':{LABEL}}{_separated(digits)}".rstrip()


def _line(report: Report, row: Row, columns: list[Condition]) -> str:
    marks = [(each, MARKS[report.cell((row.name, each.name))[0]]) for each in columns]
    return f"{row.code:04X} {row.name:{LABEL - 5}}{_separated(marks)}"


def matrix(report: Report) -> str:
    """Command x condition, and what the numbers and marks mean."""
    lines: list[str] = []
    for columns in panels():
        lines += [*_numbers(columns), *(_line(report, row, columns) for row in ROWS), ""]
    lines += ["+ passed  F failed  s skipped  - command not supported  . not applicable", ""]
    for group, found in groupby(CONDITIONS, lambda each: each.group):
        lines.append(f"{group}:")
        for each in found:
            number = list(COLUMNS).index(each.name) + 1
            lines.append(f"  {number:2} {each.name:18} {each.meaning}")
    return "\n".join(lines)


def summary(report: Report) -> str:
    """Counts, in one line."""
    tests = [each for each in report.results if each.outcome in (Outcome.PASSED, Outcome.FAILED)]
    run = report.count(Outcome.PASSED) + report.count(Outcome.FAILED)
    words = [f"{report.count(each)} {each.value}" for each in Outcome]
    return f"{run} cells run by {len(tests)} tests: {', '.join(words)}"


def identity(report: Report) -> str:
    """The target's own identification."""
    words = [f"{name} {value}" for name, value in report.identity.items() if value]
    return f"Target: {'; '.join(words)}; security method {report.security_method}"


def failure(result: Result) -> str:
    """A failed test, complete: name, expected, CDB, Data-Out, sense."""
    title = f"FAILED {result.test.name} [{result.test.condition}]"
    return f"{title}\n{result.message}\n"


def text(report: Report) -> str:
    """The whole report for a terminal or a file."""
    parts = [identity(report), "", matrix(report), ""]
    parts += [failure(each) for each in report.failures]
    parts += [f"FAILED {each}" for each in report.complaints]
    return "\n".join([*parts, summary(report)]) + "\n"


def as_json(report: Report) -> str:
    """Schema iosd.conformance/1: a row for each cell, a row for each test."""
    cells = []
    for row in ROWS:
        for each in CONDITIONS:
            outcome, message = report.cell((row.name, each.name))
            cells.append(
                {
                    "command": row.name,
                    "service_action": f"{row.code:04X}",
                    "condition": each.name,
                    "outcome": outcome.value,
                    "message": message,
                }
            )
    found: dict[str, Any] = {
        "schema": SCHEMA,
        "target": report.identity,
        "security_method": report.security_method,
        "passed": report.good,
        "counts": {each.value: report.count(each) for each in Outcome},
        "supported": [row.name for row in ROWS if row.name in report.supported],
        "required": [row.name for row in ROWS if row.name in report.required],
        "complaints": report.complaints,
        "cells": cells,
        "tests": [
            {
                "name": each.test.name,
                "command": each.test.row.name,
                "condition": each.test.condition,
                "clause": each.test.clause,
                "outcome": each.outcome.value,
                "message": each.message,
            }
            for each in report.results
        ],
    }
    return json.dumps(found, indent=1) + "\n"
