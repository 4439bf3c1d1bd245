# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of the store against the real one, by commands hypothesis makes up; on Berkeley DB with
restarts and kill -9 in between.  A failure prints the shortest history that shows it; --seed repeats
a run.
"""

from __future__ import annotations

from pathlib import Path

import hypothesis
import pytest
from hypothesis import HealthCheck, settings
from hypothesis.stateful import run_state_machine_as_test

from tests.harness import Harness, program
from tests.property.members_machine import MembersMachine


@pytest.mark.parametrize(("backend", "examples"), [("memory", 120), ("bdb", 50)])
def test_store_is_as_the_model(tmp_path: Path, seed: int, backend: str, examples: int) -> None:
    options: dict[str, object] = {"dir": tmp_path / "store"}
    if backend == "memory":
        options = {"memory": 1}
    harness = Harness(program(), options, tmp_path / "log")
    machine = type("Machine", (MembersMachine,), {"harness": harness, "restarts": backend == "bdb"})
    try:
        run_state_machine_as_test(
            hypothesis.seed(seed)(machine),
            settings=settings(
                max_examples=examples,
                stateful_step_count=40,
                deadline=None,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    finally:
        harness.finish()
