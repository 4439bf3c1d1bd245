# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that start where they are accepted, because there is nothing to wait for."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs

if TYPE_CHECKING:
    from tests.jobs.conftest import Target

DEADLINE_S = 30.0
REPEATS = 20  # more than there are slots


def test_a_job_with_nothing_to_wait_for_does_not_queue(target: Target) -> None:
    deadline = time.monotonic() + DEADLINE_S
    while True:
        job = jobs.submit(target.commands, "print('started')", zone=target.partition)
        status = job.wait(DEADLINE_S)
        assert (job.output(), status.attempt) == (b"started\n", 1)
        if status.queue_time == 0:
            break
        assert time.monotonic() < deadline  # the sandbox for it may have been on its way still
        time.sleep(0.05)


def test_submissions_that_make_no_job_keep_no_sandbox(target: Target) -> None:
    first = jobs.submit(target.commands, "pass", zone=target.partition, key="same")
    first.wait(DEADLINE_S)
    for _ in range(REPEATS):
        again = jobs.submit(target.commands, "pass", zone=target.partition, key="same")
        assert again.id == first.id
        with pytest.raises(errors.OSDError):
            jobs.submit(target.commands, "other = 1", zone=target.partition, key="same")
    assert jobs.submit(target.commands, "pass", zone=target.partition).wait(DEADLINE_S).done
