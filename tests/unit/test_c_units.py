# SPDX-License-Identifier: GPL-2.0-or-later
"""The C unit tests, one item for each ``test_*.c`` that lies beside the code."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.ahead import Task, run

ROOT = Path(__file__).resolve().parents[2]
TREES = ("target", "sandbox", "pyosd/_core")
SOURCES = [
    (tree, source)
    for tree in TREES
    for pattern in ("test_*.c", "*/test_*.c")
    for source in sorted((ROOT / tree).glob(pattern))
]
TASKS = [Task((str(ROOT / "build" / tree / source.stem),)) for tree, source in SOURCES]


@pytest.mark.parametrize(
    "task",
    [pytest.param(task, marks=pytest.mark.is_task(task)) for task in TASKS],
    ids=[str(source.relative_to(ROOT)) for _, source in SOURCES],
)
def test_c_unit(task: Task) -> None:
    assert Path(task.command[0]).exists(), f"{task.command[0]} is not built: run 'make build'"
    done = run(task)
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.output}"
