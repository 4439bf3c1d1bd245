# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the model of the store (members_machine.py) against a harness: histories that hypothesis makes up.

A failure prints the shortest history that shows it.
"""

from __future__ import annotations

import hypothesis
from hypothesis import HealthCheck, settings
from hypothesis.errors import Flaky
from hypothesis.stateful import run_state_machine_as_test

from tests.harness import Harness
from tests.property.members_machine import MembersMachine

STEPS = 40


def run_machine(harness: Harness, seed: int, examples: int, *, restarts: bool) -> None:
    """Run so many histories, then end the harness.  Args: restarts: the store outlives the harness."""
    failures: list[BaseException] = []
    members = {"harness": harness, "restarts": restarts, "failures": failures}
    machine = type("Machine", (MembersMachine,), members)
    try:
        run_state_machine_as_test(
            hypothesis.seed(seed)(machine),
            settings=settings(
                max_examples=examples,
                stateful_step_count=STEPS,
                database=None,
                suppress_health_check=list(HealthCheck),
            ),
        )
    except Flaky:
        if failures:  # the same history passed when it was tried again: report how it failed
            raise failures[0] from None
        raise
    finally:
        harness.finish()
