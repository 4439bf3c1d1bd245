# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs whose target, sandbox daemon or sandbox dies under them; and without a daemon.

A job that had written nothing, or may run twice, gets another attempt; else it is SANDBOX_LOST.

Each test has a target of its own, which its supervisor starts again.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterator

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.jobs.job import Job
from pyosd.types import AttributeId, AttributeValue, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.job_status import JobFlag, JobState, Number
from tests.exec.conftest import WAIT_S, ended
from tests.expect import BUSY
from tests.machine import unavailable
from tests.serving import Serving, missing
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

WROTE_THEN_FOREVER = """
import osd, time
osd.partition({pid}).create_many(1)
print("up", flush=True)
while True: time.sleep(0.01)
"""
"""A job that wrote is not tried again, unless it is marked idempotent."""
KILL_NOW = AttributeValue(Page.JOB_CONTROL, 1, b"\2")
STATE = AttributeId(Page.JOB_STATUS, Number.STATE)
UP_THEN_FOREVER = "import time\nprint('up', flush=True)\nwhile True: time.sleep(0.01)"
UP_ONCE = """
import osd, time
seen = osd.partition({pid})
first = not list(seen)
if first:
    osd.userobject({pid}).create()
    print("up", flush=True)
    while True: time.sleep(0.01)
print("second time")
"""


def started(target: pyosd.Target, script: str, pid: int, **options: object) -> Job:
    """Submit and wait for the first line."""
    job = target.exec(script, zone=ref(pid), **options)  # type: ignore[arg-type]
    next(job.iter_output(follow=True))
    return job


def test_queued_and_held_jobs_survive(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        pid = target.create_partition()
        held = target.exec("print('held')", zone=ref(pid), hold=True)
        wrote = WROTE_THEN_FOREVER.format(pid=pid)
        blockers = [started(target, wrote, pid) for _ in range(2)]
        queued = [target.exec(f"print({n})", zone=ref(pid)) for n in range(10)]
        assert {job.poll()[0] for job in queued} == {JobState.QUEUED}
        assert queued[-1].status().position > 0
        own_serving.kill("tgtd")
        own_serving.restarted()
        for n, job in enumerate(queued):
            ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
            assert job.output() == b"%d\n" % n
        for job in blockers:
            ended(job.wait(WAIT_S), JobState.SANDBOX_LOST, 402)
            assert job.output() == b"up\n", "what was printed is kept"
        assert held.poll()[0] is JobState.HELD
        held.release()
        ended(held.wait(WAIT_S), JobState.COMPLETED, 0)


def test_idempotent_job_runs_again(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        pid = target.create_partition()
        script = UP_ONCE.format(pid=pid)
        job = started(target, script, pid, idempotent=True)
        own_serving.kill("tgtd")
        own_serving.restarted()
        status = ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
        assert status.attempt == 2
        assert b"second time" in job.output()


DEAF = """
import osd, time
print("up", flush=True)
while True:
    try:
        time.sleep(1)
    except osd.Ended:
        pass
"""
"""Does not end before its grace is over."""


def test_kill_is_not_forgotten(own_serving: Serving) -> None:
    """Answered, and tgtd dies before the job has ended: it does not run again."""
    with own_serving.connect() as target:
        job = started(target, DEAF, target.create_partition(), grace=5)
        state = target.set_attributes(job.id, [KILL_NOW], [STATE])
        own_serving.kill("tgtd")
        own_serving.restarted()
        status = ended(job.wait(WAIT_S), JobState.CANCELLED, 107)
        assert [each.uint for each in state] == [JobState.RUNNING]
        assert status.attempt == 1 and status.flags & JobFlag.KILL_ASKED


PROGRESS_FOREVER = """
import itertools, osd
print("up", flush=True)
for each in itertools.count():
    osd.progress(each % 100 / 100)
"""


def test_generations_go_on_after_a_restart(own_serving: Serving) -> None:
    """The target has shown more of them than it has stored: those of progress are not."""
    with own_serving.connect() as target:
        job = started(target, PROGRESS_FOREVER, target.create_partition())
        before = until(lambda: (now := job.status().generation) > 50 and now)
        own_serving.kill("tgtd")
        own_serving.restarted()
        assert job.status().generation > before
        assert job.kill(WAIT_S) is JobState.CANCELLED


def test_key_finds_the_job_after_a_restart(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        pid = target.create_partition()
        job = target.exec("print('once')", zone=ref(pid), key="k")
        job.wait(WAIT_S)
        own_serving.kill("tgtd")
        own_serving.restarted()
        assert target.exec("print('once')", zone=ref(pid), key="k").id == job.id
        assert job.output() == b"once\n"


def kill_sandbox(serving: Serving, job: Job) -> None:
    """SIGKILL to the sandbox that has the job, once iosd-sandboxd has said which it is."""
    told = re.compile(rf"job={job.id} .* host pid (\d+)$", re.M)
    found = until(lambda: told.findall(serving.text()), serving.text)
    os.kill(int(found[-1]), signal.SIGKILL)


def test_sandbox_dies_after_a_write(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        pid = target.create_partition()
        job = started(target, WROTE_THEN_FOREVER.format(pid=pid), pid)
        kill_sandbox(own_serving, job)
        status = job.wait(WAIT_S)
        assert (status.state, status.reason) in (
            (JobState.SANDBOX_LOST, 402),
            (JobState.FAILED, 203),
        ), status
        ended(target.exec("pass", zone=ref(pid)).wait(WAIT_S), JobState.COMPLETED, 0)


def test_daemon_dies_before_a_write(own_serving: Serving) -> None:
    """Nobody can tell that the job ran twice, so it does."""
    with own_serving.connect() as target:
        pid = target.create_partition()
        job = started(target, UP_THEN_FOREVER, pid)
        own_serving.kill("iosd-sandboxd")
        own_serving.restarted()
        while job.status().attempt < 2 or not job.running():
            target.ping()
        assert job.kill(WAIT_S) is JobState.CANCELLED


def test_daemon_dies_under_a_job(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        pid = target.create_partition()
        job = started(target, WROTE_THEN_FOREVER.format(pid=pid), pid)
        before = own_serving.everything()
        own_serving.kill("iosd-sandboxd")
        status = job.wait(WAIT_S)
        ended(status, JobState.SANDBOX_LOST, 402)
        own_serving.restarted()
        ended(target.exec("print('again')", zone=ref(pid)).wait(WAIT_S), JobState.COMPLETED, 0)

        def left() -> set[int]:
            return before & own_serving.everything() - set(own_serving.pids.values())

        until(lambda: len(left()) <= 1, "sandboxes outlive their daemon")


def test_ordinary_commands_do_not_notice(own_serving: Serving) -> None:
    with own_serving.connect() as target:
        obj = target.create(target.create_partition())
        own_serving.kill("iosd-sandboxd")
        for number in range(50):
            target.append(obj, bytes([number]))
        own_serving.restarted()
        assert target.read_range(obj) == bytes(range(50))


@pytest.fixture
def storage_only() -> Iterator[Serving]:
    why = missing()
    if why:
        unavailable("tgtd", why)
    # A socket that nobody listens on: the daemon may come later.
    with Serving("--no-sandboxes", "--module-option", "sandboxd=/run/nobody-listens") as served:
        yield served


def test_without_a_daemon_jobs_wait(storage_only: Serving) -> None:
    with storage_only.connect() as target:
        pid = target.create_partition()
        job = target.exec("pass", zone=ref(pid))
        assert job.poll()[0] is JobState.QUEUED
        assert job.status().reason == 102
        request = rq.execute(ref(pid), b"pass", ExecParams(), synchronous=True)
        # Calls wait for a daemon until the target has looked for it once.
        until(lambda: target.reply(request).response.status == BUSY)
        assert job.kill() is JobState.CANCELLED
