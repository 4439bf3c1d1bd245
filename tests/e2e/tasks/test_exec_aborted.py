# SPDX-License-Identifier: GPL-2.0-or-later
"""Task management over a stock tgtd at each stage of EXEC, and sessions that are reinstated or lost then.

States are asked for until they are there; nothing sleeps.
"""

from __future__ import annotations

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.errors import TargetBusy
from pyosd.types import ObjectRef, ref
from pyosd.wire.cdb import Request
from pyosd.wire.exec_params import ExecFlag, ExecParams
from pyosd.wire.job_status import JobState
from tests.e2e.tasks.victims import FUNCTIONS, LOSSES, WAIT_S, Unit, Victim, alive
from tests.expect import OK, TASK_ABORTED, check
from tests.waiting import until

pytestmark = pytest.mark.tgtd


FOREVER = b"while True: pass\n"
QUICK = b"import osd\nosd.result(b'done')\n"


def exec_(zone: ObjectRef, code: bytes, *, end: bool = False) -> Request:
    params = ExecParams(flags=ExecFlag.END_ON_ABORT) if end else ExecParams()
    return rq.execute(zone, code, params, synchronous=True, result_allocation_length=64)


def state(target: pyosd.Target, zone: ObjectRef) -> JobState | None:
    """Of the only job of the zone."""
    jobs = target.jobs(zone.partition_id)
    assert len(jobs) <= 1
    return jobs[0].state if jobs else None


def strike(victim: Victim, how: str) -> int | None:
    """The function, or the loss.  Returns: how the command ended, None: nobody is told."""
    if how in LOSSES:
        victim.lose(how)
        return None
    victim.manage(FUNCTIONS[how.removeprefix("unit ")])
    status, _ = victim.outcome()
    victim.socket.close()
    return status


HOW = pytest.mark.parametrize("how", ["task", "set", "unit reset", *LOSSES])


def works(unit: Unit, target: pyosd.Target, zone: ObjectRef) -> None:
    """The next job runs, and the same tgtd serves on."""
    reply = check(target.reply(exec_(zone, QUICK)), OK)
    assert bytes(reply.data)[:4] == b"done"
    alive(unit, target)


@HOW
def test_exec_before_its_data(unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str) -> None:
    """It never came to us: there is no job."""
    victim = unit.victim()
    assert victim.begin(exec_(zone, FOREVER)) is not None
    if how in LOSSES:
        victim.lose(how)
    else:
        victim.manage(FUNCTIONS[how.removeprefix("unit ")])
        victim.socket.close()
    alive(unit, target)
    assert state(target, zone) is None
    works(unit, target, zone)


@HOW
@pytest.mark.parametrize("end", [False, True])
def test_exec_queued(
    unit: Unit, target: pyosd.Target, zone: ObjectRef, pid: int, how: str, end: bool
) -> None:
    """The wait ends and the job stays in the queue; or goes, where it was submitted so."""
    blocker = target.exec(FOREVER, zone=ref(pid))
    until(lambda: blocker.status().state is JobState.RUNNING)
    victim = unit.victim()
    victim.start(exec_(zone, QUICK, end=end))
    until(lambda: state(target, zone) is JobState.QUEUED)
    status = strike(victim, how)
    told = how not in LOSSES
    assert status == (TASK_ABORTED if told else None)
    if told and end:
        until(lambda: state(target, zone) is JobState.CANCELLED)
    else:
        assert state(target, zone) is JobState.QUEUED
    blocker.kill(WAIT_S)
    until(lambda: target.jobs(zone.partition_id)[0].done)
    expected = JobState.CANCELLED if told and end else JobState.COMPLETED
    assert state(target, zone) is expected
    works(unit, target, zone)


@HOW
@pytest.mark.parametrize("end", [False, True])
def test_exec_running(
    unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str, end: bool
) -> None:
    victim = unit.victim()
    victim.start(exec_(zone, FOREVER, end=end))
    until(lambda: state(target, zone) is JobState.RUNNING)
    status = strike(victim, how)
    told = how not in LOSSES
    assert status == (TASK_ABORTED if told else None)
    if told and end:
        until(lambda: state(target, zone) is JobState.CANCELLED)
    else:
        assert state(target, zone) is JobState.RUNNING
        target.job(target.jobs(zone.partition_id)[0].id).kill(WAIT_S)
    works(unit, target, zone)


ROUNDS = 3


@HOW
def test_exec_starting(unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str) -> None:
    """Struck as soon as it is sent: it was quicker, or it was aborted; its job ends well either way."""
    for _ in range(ROUNDS):
        victim = unit.victim()
        victim.start(exec_(zone, QUICK))
        assert strike(victim, how) in (None, 0, TASK_ABORTED)
    alive(unit, target)
    until(lambda: all(each.done for each in target.jobs(zone.partition_id)))
    works(unit, target, zone)
    # What a lost session has sent may become a job only now.
    until(lambda: {each.state for each in target.jobs(zone.partition_id)} == {JobState.COMPLETED})


LAST_WORDS = (
    b"import osd\nosd.result(b'x' * 50000)\nosd.progress(1.0, 'last words')\nprint('y' * 99999)\n"
)


@HOW
def test_exec_completing(unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str) -> None:
    """Struck between its last words and its end."""
    victim = unit.victim()
    victim.start(exec_(zone, LAST_WORDS))
    until(lambda: any(each.message == "last words" for each in target.jobs(zone.partition_id)))
    assert strike(victim, how) in (None, 0, TASK_ABORTED)
    until(lambda: state(target, zone) is JobState.COMPLETED)
    works(unit, target, zone)


WAITS = """
import osd, time
while osd.userobject({gate.partition_id}, {gate.object_id}).exists():
    time.sleep(0.01)
osd.result(b'waited')
"""


@pytest.mark.parametrize("how", LOSSES)
def test_exec_is_found_after_its_session(
    unit: Unit, target: pyosd.Target, zone: ObjectRef, how: str
) -> None:
    """Its initiator never heard of it: the job goes on, and its key finds it and its result."""
    params = ExecParams(key=b"the key")
    gate = target.create(zone.partition_id)
    waits = WAITS.format(gate=gate).encode()
    victim = unit.victim()
    victim.start(rq.execute(zone, waits, params, synchronous=True, result_allocation_length=64))
    until(lambda: state(target, zone) in (JobState.STARTING, JobState.RUNNING))
    victim.lose(how)
    [status] = target.jobs(zone.partition_id)
    reply = target.exec_code(zone, waits, params)
    assert reply.job == status.id
    target.remove(gate)
    assert target.job(status.id).result(WAIT_S) == b"waited"
    assert len(target.jobs(zone.partition_id)) == 1
    alive(unit, target)


def test_as_many_waits_as_promised(unit: Unit, target: pyosd.Target, zone: ObjectRef) -> None:
    """64 commands wait; the next is BUSY with the depth of the queue and when to come again, and leaves
    no job; one that ends makes room."""
    blocker = target.exec(FOREVER, zone=zone)
    request = rq.execute(zone, QUICK, ExecParams(wait=60), synchronous=True)
    waits = [target.submit(request) for _ in range(64)]
    until(lambda: len(target.jobs(zone.partition_id)) == 65)
    with pytest.raises(TargetBusy) as busy:
        check_raises(target, request)
    assert busy.value.queue_depth == 64
    assert 0 < busy.value.retry_after <= 5
    assert len(target.jobs(zone.partition_id)) == 65
    blocker.kill(WAIT_S)
    for each in waits:
        check(each.reply(WAIT_S), OK)
    works(unit, target, zone)


def check_raises(target: pyosd.Target, request: Request) -> None:
    """Send it, and raise what the client makes of its answer."""
    reply = target.reply(request)
    if reply.error:
        raise reply.error
