# SPDX-License-Identifier: GPL-2.0-or-later
"""Suites that serve a target of their own and wait for it most of the time: run ahead, beside others.

Each is a file for pytest like any other: ``python -m pytest tests/cli/documents_suite.py`` runs one.
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.ahead import Task, run

ROOT = Path(__file__).resolve().parents[2]
SUITES = (
    "tests/cli/documents_suite.py",
    "tests/client/executor_suite.py",
    "tests/sandbox/numpy_suite.py",
    "tests/sandbox/two_ends_suite.py",
)


def task_of(suite: str) -> Task:
    return Task((sys.executable, "-m", "pytest", "-q", "--no-header", suite), 240, ROOT)


@pytest.mark.tgtd
@pytest.mark.sandbox
@pytest.mark.parametrize(
    "suite", [pytest.param(each, marks=pytest.mark.is_task(task_of(each))) for each in SUITES]
)
def test_suite(suite: str) -> None:
    assert (ROOT / suite).exists()
    done = run(task_of(suite))
    assert done.returncode == 0, done.output
    assert " skipped" not in done.output, done.output
