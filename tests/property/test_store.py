# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of the store against the real one, by commands hypothesis makes up; on Berkeley DB with
restarts and kill -9 in between.  A failure prints the shortest history that shows it; --seed repeats
a run.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.harness import Harness, program
from tests.property.run_machine import run_machine


@pytest.mark.parametrize(("backend", "examples"), [("memory", 120), ("bdb", 50)])
def test_store_is_as_the_model(tmp_path: Path, seed: int, backend: str, examples: int) -> None:
    options: dict[str, object] = {"dir": tmp_path / "store"}
    if backend == "memory":
        options = {"memory": 1}
    harness = Harness(program(), options, tmp_path / "log")
    run_machine(harness, seed, examples, restarts=backend == "bdb")
