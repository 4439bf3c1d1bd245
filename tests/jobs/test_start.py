# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that start where they are accepted, because there is nothing to wait for."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs
from pyosd.types import ref

if TYPE_CHECKING:
    from pyosd.jobs.job import Job
    from pyosd.types import ObjectRef
    from tests.jobs.conftest import Target

DEADLINE_S = 60.0
REPEATS = 20  # more than there are slots
CLIENTS = 3


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


def test_only_the_job_that_was_accepted_is_seen(target: Target) -> None:
    """The loser of a race for a key may have sent its script to a sandbox already."""
    code = "import osd\nosd.userobject(osd.zone.partition_id).create()\nprint('done')"
    for number in range(REPEATS):
        zone = ref(target.commands.create_partition())

        def submit(_: int, zone: ObjectRef = zone, key: str = f"race {number}") -> Job:
            return jobs.submit(target.commands, code, zone=zone, key=key)

        with ThreadPoolExecutor(CLIENTS) as clients:
            found = list(clients.map(submit, range(CLIENTS)))
        assert len({job.id for job in found}) == 1
        status = found[0].wait(DEADLINE_S)
        assert (status.state.name, status.attempt) == ("COMPLETED", 1)
        assert found[0].output() == b"done\n"
        assert len(target.commands.list_objects(zone.partition_id)) == 1


def test_what_is_printed_at_once_is_read_while_the_script_runs(target: Target) -> None:
    """The script may have printed it before its job was accepted."""
    for _ in range(REPEATS):
        job = jobs.submit(
            target.commands,
            "import time\nprint('x', flush=True)\ntime.sleep(60)",
            zone=target.partition,
        )
        deadline = time.monotonic() + DEADLINE_S
        while job.output() != b"x\n":
            assert time.monotonic() < deadline
            time.sleep(0.01)
        assert job.kill(DEADLINE_S).terminal
