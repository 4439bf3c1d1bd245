# SPDX-License-Identifier: GPL-2.0-or-later
"""In a container with default settings the test run says what it lacks, and skips with that reason."""

from __future__ import annotations

import os
import subprocess
import sys

from tests.machine import ROOT

CAGED = (sys.executable, "-m", "tests.caged")
LACKS = "this host cannot isolate scripts (userns: Operation not permitted;"


def run(*words: str) -> str:
    environment = {
        name: value for name, value in os.environ.items() if name != "OSD_TESTS_MUST_RUN"
    }
    done = subprocess.run(
        [*CAGED, sys.executable, "-m", *words],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


def test_what_is_missing_comes_first() -> None:
    assert run("tests.machine").startswith(f"Tests that need sandboxes are skipped: {LACKS}")


def test_tests_that_need_sandboxes_are_skipped_with_that_reason() -> None:
    said = run(
        "pytest",
        "tests/sandbox/test_limits.py",
        "tests/exec/test_first.py",
        "tests/unit/test_limits.py",
    )
    assert f"tests that need sandboxes are skipped: {LACKS}" in said
    skipped = [line for line in said.splitlines() if line.startswith("SKIPPED")]
    assert skipped and all(LACKS in line for line in skipped)
    assert " passed" in said
