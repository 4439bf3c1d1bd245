# SPDX-License-Identifier: GPL-2.0-or-later
"""Records that expire while the target serves, and what their ids are afterwards (reliability 19)."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import pytest

from pyosd import errors, jobs
from pyosd.commands.attributes import get_attributes
from pyosd.commands.dialogue import Dialogue
from pyosd.jobs.dialogues import following
from pyosd.jobs.job import Job
from pyosd.types import AttributeValue
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobState
from tests.apart import count_apart
from tests.jobs.test_exec import DEADLINE_S, run
from tests.waiting import until

if TYPE_CHECKING:
    from tests.jobs.conftest import Target


def is_gone(job: Job) -> bool:
    try:
        Job(job.commands, job.id).status()
    except errors.JobExpired:
        return True
    return False


def test_record_goes_when_its_time_is_over(target: Target) -> None:
    """With all that belongs to it, and no sooner; one that is to stay stays."""
    partition = target.partition.partition_id
    stays = run(target, "print('stays')")
    # The command waits for the end and brings it along: later the record may be gone.
    spills = run(target, "import osd\nosd.result(b'r' * 100_000)", expire=0.4, wait=20.0)
    stays.wait(DEADLINE_S)
    status = spills.wait(DEADLINE_S)
    assert status.ended is not None and status.expiry is not None
    assert (status.expiry - status.ended).total_seconds() == 0.4
    assert not is_gone(spills) or time.time() >= status.expiry.timestamp()
    started = time.monotonic()
    until(lambda: is_gone(spills))
    assert time.monotonic() - started < DEADLINE_S / 2, "the sweep of every minute, or of a start"
    assert count_apart(target.commands, partition) == 1
    assert [each.id for each in jobs.list_jobs(target.commands, partition)] == [stays.id]
    assert stays.output() == b"stays\n"


def test_each_goes_at_its_own_time(target: Target) -> None:
    """A record that is too young at one removal does not wait for the sweep of every minute."""
    held = [run(target, "pass", hold=True, expire=seconds) for seconds in (0.3, 0.9)]
    for job in held:
        with suppress(errors.JobExpired):  # while we are late ourselves
            job.kill()
    started = time.monotonic()
    until(lambda: all(is_gone(job) for job in held))
    assert time.monotonic() - started < DEADLINE_S / 2


def test_record_goes_between_status_and_result(
    target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    spills = run(target, "import osd\nosd.result(b'r' * 100_000)")
    spills.wait(DEADLINE_S)
    late, look = Job(target.commands, spills.id), get_attributes

    def goes_then(*wanted: Any) -> Dialogue[tuple[AttributeValue, ...]]:
        found = yield from look(*wanted)
        monkeypatch.undo()
        spills.remove()
        return found

    monkeypatch.setattr(following, "get_attributes", goes_then)
    with pytest.raises(errors.JobExpired):
        late.status()


def test_ids_are_not_given_out_again(target: Target) -> None:
    """Not after an expiry, not after a removal, not after a crash."""
    partition = target.partition.partition_id
    used = []
    for _ in range(2):
        expires, removed = run(target, "pass", expire=0.001), run(target, "pass")
        used += [expires.id, removed.id]
        removed.wait(DEADLINE_S)
        removed.remove()
        until(lambda job=expires: is_gone(job))  # type: ignore[misc]
        target.kill()
        target.start()
        used.append(target.commands.create(partition))
        target.commands.remove(used[-1])
    assert len(set(used)) == len(used)


def test_key_of_an_expired_record_is_free(target: Target) -> None:
    first = run(target, "pass", key="k", expire=0.001)
    until(lambda: is_gone(first))
    again = run(target, "print('other content')", key="k")
    assert again.id != first.id
    assert again.wait(DEADLINE_S).state is JobState.COMPLETED
    with pytest.raises(errors.JobExpired) as raised:
        Job(target.commands, first.id).status()
    assert "expired" in raised.value.hint


def test_a_refused_change_of_the_expiry_changes_nothing(target: Target) -> None:
    """Another attribute of the list is refused, before the job ends."""
    job = run(target, "pass", hold=True, expire=100.0)
    before = job.status().expiry
    later = int((time.time() + 3600) * 1000).to_bytes(6)
    values = [AttributeValue(Page.JOB_CONTROL, 2, later), AttributeValue(Page.JOB_STATUS, 1, b"")]
    with pytest.raises(errors.OSDError):
        target.commands.set_attributes(job.id, values)
    assert job.status().expiry == before
    job.release()
    status = job.wait(DEADLINE_S)
    assert status.ended is not None and status.expiry is not None
    assert (status.expiry - status.ended).total_seconds() == 100
