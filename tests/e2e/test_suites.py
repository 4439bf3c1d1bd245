# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of tests that serve targets of their own and wait for them most of the time: run ahead, beside
others.  Each is a file for pytest like any other: ``python -m pytest tests/cli/documents_suite.py``.

A run that has one of them here does not run its tests a second time (tests/conftest.py).
"""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from tests.ahead import Task, run

ROOT = Path(__file__).resolve().parents[2]
SUITES = (
    "tests/unit/test_install.py",
    "tests/console/test_console_page.py",
    "tests/e2e/test_hardened_pdus.py",
    "tests/e2e/test_hardened_sessions.py",
    "tests/exec/test_arrays.py",
    "tests/exec/test_degradation.py",
    "tests/exec/test_fairness.py",
    "tests/exec/test_restart.py",
    "tests/jobs/test_history.py",
    "tests/jobs/test_live_pools.py",
    "tests/cli/test_demo.py",
    "tests/cli/test_tour.py",
    "tests/cli/documents_suite.py",
    "tests/client/executor_suite.py",
    "tests/sandbox/numpy_suite.py",
    "tests/sandbox/two_ends_suite.py",
)


def task_of(suite: str) -> Task:
    return Task((sys.executable, "-m", "pytest", suite), folder=ROOT, computes=False)


@pytest.mark.tgtd
@pytest.mark.sandbox
@pytest.mark.parametrize(
    "suite", [pytest.param(each, marks=pytest.mark.is_task(task_of(each))) for each in SUITES]
)
def test_suite(suite: str) -> None:
    assert (ROOT / suite).exists()
    done = run(task_of(suite))
    assert done.returncode == 0, done.output
    if suite.endswith("_suite.py"):
        assert " skipped" not in done.output, done.output
