# SPDX-License-Identifier: GPL-2.0-or-later
"""What a pool may take of the host: its share of the processors, its bandwidth, and its deadline."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from click.testing import CliRunner

import pyosd
from pyosd import JobState, Limits
from pyosd.cli import main
from pyosd.commands.pool_status import PoolStatus
from pyosd.errors import TooLate
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.types import ObjectRef
from tests.serving import Serving, shared
from tests.waiting import until

WAIT_S = 60.0
MIB = 1 << 20
POOLS = (
    *("--pool", "slow:max=1,share.bandwidth=16MiB"),
    *("--pool", "still:max=1,share.bandwidth=1"),
    *("--pool", "late:max=1,share.deadline=3s"),
    *("--pool", "small:max=1,share.cpu=20"),
)
DEADLINE_S = 3.0
"""Of the pool "late": longer than a sandbox takes to start a job, unless the machine is very busy."""
GIVEN_BACK = 120
WAITS = (JobState.QUEUED, JobState.STARTING)
"""One that is starting may lose its sandbox, and waits again."""
HOG = "import time\nwhile True: time.sleep(0.01)\n"
"""It has a slot, which is all that is wanted of it."""
READ = """
import osd

data = osd.zone.data
total = sum(len(block) for block in data.blocks())
osd.result(total + len(data.map()))
"""


@pytest.fixture(scope="module")
def serving() -> Iterator[Serving]:
    """A target with a pool of each kind."""
    with shared("--isolation", "best", "--slots", "1", *POOLS) as served:
        yield served


@pytest.fixture
def data(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    return target.create_and_write(zone.partition_id, bytes(4 * MIB))


def pool(target: pyosd.Target, name: str) -> PoolStatus:
    return next(each for each in target.pools() if each.name == name)


def test_a_bandwidth_holds_back_answers_and_changes_no_result(
    target: pyosd.Target, data: ObjectRef
) -> None:
    """Also of a map, which is a copy there: what a script reads through descriptors is not counted."""
    free = target.exec(READ, zone=data)
    assert free.result(WAIT_S) == 8 * MIB
    before = pool(target, "slow")
    assert before.bandwidth == 16 * MIB
    job = target.exec(READ, zone=data, pool="slow")
    assert job.result(WAIT_S) == 8 * MIB
    assert job.status().bytes_read >= 8 * MIB
    assert pool(target, "slow").held > before.held
    assert pool(target, "default").held == 0
    shown = CliRunner().invoke(main, ["pool", "show", "slow", "--target", target.url])
    assert "scripts read and write at most 16.0 MiB a second" in shown.output, shown.output


def test_a_call_that_waits_does_not_keep_its_job(target: pyosd.Target, data: ObjectRef) -> None:
    """At a byte a second a read of a MiB is due in days; the script has its time to clean up."""
    script = """
import osd

try:
    print(len(osd.zone.data.read(1 << 20)), flush=True)
    osd.zone.data.read(1 << 20)
finally:
    print("cleaned up")
"""

    def cleans_up() -> bool:
        job = target.exec(script, zone=data, pool="still", grace=5)
        until(lambda: job.status().bytes_read >= MIB, "it has read nothing")
        other = target.exec(READ, zone=data)  # no lock is held meanwhile
        assert other.result(WAIT_S) == 8 * MIB
        assert job.running()
        assert not job.output()
        job.kill(WAIT_S)
        assert (job.status().state, job.status().reason) == (JobState.CANCELLED, 107)
        return b"cleaned up" in job.output()

    until(cleans_up)


def vacant(target: pyosd.Target) -> None:
    """Wait until the slot of the pool with a deadline is free: a job ends a moment before."""
    until(lambda: not pool(target, "late").busy, "its slot is not free")


def begun(target: pyosd.Target, zone: ObjectRef, **options: Any) -> Job:
    """A job that has the slot of the pool with a deadline, which may pass before a job begins."""

    def begins() -> Job | None:
        vacant(target)
        limits = Limits(wall=600, cpu=600)
        job = target.exec(HOG, zone=zone, pool="late", limits=limits, **options)
        first = job.member(0) if isinstance(job, JobArray) else job
        until(lambda: first.status().state not in WAITS, "the hog does not run")
        if first.running():
            return job
        job.kill(WAIT_S)
        return None

    return until(begins, "the hog is given back each time")


@pytest.fixture
def hog(target: pyosd.Target, zone: ObjectRef) -> Iterator[Job]:
    """A job that keeps the slot of the pool with a deadline."""
    job = begun(target, zone)
    yield job
    job.kill(WAIT_S)


def in_time(job: Job) -> Job | None:
    """The job at its end, unless it was given back."""
    return None if job.wait(WAIT_S).reason == GIVEN_BACK else job


def test_a_deadline_gives_back_jobs_that_wait(
    target: pyosd.Target, zone: ObjectRef, submit: Callable[..., Job]
) -> None:
    assert pool(target, "late").deadline == DEADLINE_S
    brief = until(lambda: in_time(submit("import osd\nosd.result(7)", pool="late")))
    assert brief.result(WAIT_S) == 7
    hog = begun(target, zone)
    before = pool(target, "late")
    waiting = submit("pass", pool="late", hold=True)  # it waits for nothing yet
    waiting.release()
    status = waiting.wait(WAIT_S)
    assert (status.state, status.reason, status.attempt) == (JobState.CANCELLED, GIVEN_BACK, 0)
    assert "deadline" in status.hint
    assert hog.running(), "a job that has started is left alone"
    assert pool(target, "late").late == before.late + 1
    hog.kill(WAIT_S)


def test_a_deadline_refuses_jobs_that_would_wait_too_long(
    target: pyosd.Target, data: ObjectRef, hog: Job
) -> None:
    """Their client can run them: "auto" does."""

    def refused() -> TooLate | None:
        try:
            target.exec(READ, zone=data, pool="late").cancel()
        except TooLate as error:
            return error
        return None

    error = until(refused, "the wait does not grow")
    assert (error.asc, error.ascq, error.deadline) == (0x80, 0x0B, DEADLINE_S)
    assert error.wait > error.deadline
    with pytest.raises(TooLate):
        target.exec(READ, zone=data, pool="late", array=range(3))
    outcome = target.run(READ, zone=data, pool="late", where="auto")
    assert (outcome.result, outcome.where) == (8 * MIB, "local")
    assert "deadline of 3 s" in outcome.why
    spare = target.take_spare()
    assert spare is not None, "the next script here would wait for its process"
    spare.close()
    shown = CliRunner().invoke(main, ["pool", "show", "late", "--target", target.url])
    assert "a job ends within 3.00 s of its submission" in shown.output
    assert "as the deadline would have passed" in shown.output
    top = CliRunner().invoke(main, ["top", "--once", "--target", target.url])
    assert "given back: deadline" in top.output, top.output


def test_members_that_are_too_late_are_given_back(target: pyosd.Target, zone: ObjectRef) -> None:
    array = begun(target, zone, array=range(3))
    assert isinstance(array, JobArray)
    first, *others = array
    for each in others:
        assert each.wait(WAIT_S).reason == GIVEN_BACK
    assert first.running()
    array.kill(WAIT_S)


def test_a_share_of_the_processors(target: pyosd.Target, submit: Callable[..., Job]) -> None:
    """Where the host cannot enforce it, the pool does not serve and says why."""
    small = pool(target, "small")
    assert small.cpu_share == 20
    if small.state == "failed":
        assert "no control group" in small.why
        return
    assert submit("import osd\nosd.result(7)", pool="small").result(WAIT_S) == 7
    shown = CliRunner().invoke(
        main, ["pool", "show", "small", "-o", "json", "--target", target.url]
    )
    assert json.loads(shown.output)["share"] == {"cpu": 20, "bandwidth": None, "deadline": None}
