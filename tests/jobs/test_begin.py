# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that begin at a time of day: until then they are held.  Most need no sandbox."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING

import pytest

from iosd_host.store_tools.check.jobs import check_jobs
from iosd_host.store_tools.session import looking
from pyosd import errors, jobs
from pyosd.cli.jobs.job_view import explanation
from pyosd.jobs import job_array
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.types import ref
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.job_status import JobState
from tests.waiting import until

if TYPE_CHECKING:
    from pyosd.commands import Commands
    from pyosd.types import ObjectRef
    from tests.conftest import MakeHarness
    from tests.jobs.conftest import Target

DEADLINE_S = 60.0
HELD, WAITS_FOR_TIME = 103, 118
HOUR = 3600.0


@pytest.fixture(params=["dir", "memory"])
def osd(request: pytest.FixtureRequest, make_harness: MakeHarness) -> Commands:
    return make_harness(memory=1).osd if request.param == "memory" else make_harness().osd


@pytest.fixture
def zone(osd: Commands) -> ObjectRef:
    return ref(osd.create_partition())


def submit(osd: Commands, zone: ObjectRef, begin: float | str, **how: object) -> Job:
    return jobs.submit(osd, "pass", zone=zone, begin=begin, **how)  # type: ignore[arg-type]


def later() -> float:
    return time.time() + HOUR


def waits_until(job: Job, begin: float) -> None:
    status = job.status()
    assert (status.state, status.reason) == (JobState.HELD, WAITS_FOR_TIME)
    assert status.begin is not None
    assert round(status.begin.timestamp() * 1000) == round(begin * 1000)
    assert explanation(status, [])[1].startswith("It begins at ")


def waits_no_more(job: Job) -> None:
    status = job.status()
    assert (status.state, status.begin) == (JobState.QUEUED, None)


def test_held_until_then(osd: Commands, zone: ObjectRef) -> None:
    begin = later()
    released, cancelled, killed = (submit(osd, zone, begin) for _ in range(3))
    for job in (released, cancelled, killed):
        waits_until(job, begin)
    assert released.release() is JobState.QUEUED
    waits_no_more(released)
    assert released.hold() is JobState.HELD
    assert (released.status().reason, released.status().begin) == (HELD, None)
    assert cancelled.cancel()
    assert killed.kill() is JobState.CANCELLED
    past = submit(osd, zone, time.time() - HOUR)
    waits_no_more(past)


def test_begins_by_itself(osd: Commands, zone: ObjectRef) -> None:
    begin = time.time() + 1.5
    job, hour = submit(osd, zone, begin), submit(osd, zone, later())
    array = job_array.submit(osd, "pass", zone=zone, array="1,5", begin=begin)
    assert job.status().state is JobState.HELD or time.time() >= begin
    until(lambda: job.status().state is JobState.QUEUED)
    assert time.time() >= begin
    waits_no_more(job)
    until(lambda: array.states() == [JobState.QUEUED] * 2)
    assert array.status().begin is None
    assert hour.status().state is JobState.HELD


def test_arrays(osd: Commands, zone: ObjectRef) -> None:
    begin = later()
    array = job_array.submit(osd, "pass", zone=zone, array=range(3), begin=begin)
    waits_until(array, begin)
    member = array[1].status()
    assert (member.state, member.reason, member.begin) == (JobState.HELD, WAITS_FOR_TIME, None)
    assert "begins with its array" in explanation(member, [])[1]
    array[1].release()
    assert array.states() == [JobState.HELD, JobState.QUEUED, JobState.HELD]
    array.release()
    assert array.states() == [JobState.QUEUED] * 3
    assert array.status().begin is None
    array.hold()
    assert (array.status().reason, array[0].status().reason) == (HELD, HELD)


def test_after_a_restart(make_harness: MakeHarness) -> None:
    harness = make_harness()
    zone = ref(harness.osd.create_partition())
    begin, soon = later(), time.time() + 3
    waiting = submit(harness.osd, zone, begin)
    array = job_array.submit(harness.osd, "pass", zone=zone, array=range(2), begin=begin)
    released = submit(harness.osd, zone, begin)
    released.release()
    short = submit(harness.osd, zone, soon)
    whole = job_array.submit(harness.osd, "pass", zone=zone, array=range(2), begin=soon)
    harness.kill()
    harness.restart()
    osd = harness.osd
    waits_until(Job(osd, waiting.id), begin)
    waits_until(JobArray(osd, array.id), begin)
    waits_no_more(Job(osd, released.id))
    until(lambda: Job(osd, short.id).status().state is JobState.QUEUED)
    until(lambda: JobArray(osd, whole.id).states() == [JobState.QUEUED] * 2)
    harness.kill()
    harness.restart()
    waits_no_more(Job(harness.osd, short.id))
    assert JobArray(harness.osd, whole.id).states() == [JobState.QUEUED] * 2


def test_expires_after_its_begin(osd: Commands, zone: ObjectRef) -> None:
    """Not before, though it is held for longer than its record would be kept."""
    begin = time.time() + 2
    job = submit(osd, zone, begin, expire="1s")
    until(lambda: job.status().state is JobState.QUEUED)


def test_too_far_ahead(osd: Commands, zone: ObjectRef) -> None:
    for begin in (round((time.time() + 366 * 24 * HOUR) * 1000), (1 << 48)):
        with pytest.raises(errors.OSDError) as raised:
            osd.exec_code(zone, b"pass", ExecParams(begin=begin))
        assert (raised.value.sense_key, raised.value.asc, raised.value.ascq) == (5, 0x24, 0)
    submit(osd, zone, time.time() + 364 * 24 * HOUR).cancel()


def test_a_key_finds_it_whenever_it_begins(osd: Commands, zone: ObjectRef) -> None:
    first = submit(osd, zone, later(), key="k")
    assert submit(osd, zone, later() + 1, key="k").id == first.id


def test_runs(target: Target) -> None:
    zone = target.partition
    begin = time.time() + 1
    job = jobs.submit(target.commands, "import osd; osd.result(7)", zone=zone, begin="now+1s")
    assert job.status().state is JobState.HELD or time.time() >= begin
    behind = jobs.submit(target.commands, "pass", zone=zone, after=[job])
    assert job.result(DEADLINE_S) == 7
    assert behind.wait(DEADLINE_S).state is JobState.COMPLETED
    jobs.submit(target.commands, "pass", zone=zone, begin="now+1h")
    target.stop()
    with looking(target.data, None, None) as store:
        assert [*check_jobs(store, lambda *_: None)] == []
