# SPDX-License-Identifier: GPL-2.0-or-later
"""Space and reads of a client are counted on every path."""

from __future__ import annotations

import time
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pyosd import errors
from pyosd.jobs.job import Job
from pyosd.types import ROOT, AttributeId, AttributeValue
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import ExecParams, Limits
from pyosd.wire.job_status import JobState
from tests.jobs.conftest import Target, skip_without_sandboxes
from tests.jobs.test_exec import DEADLINE_S, run
from tests.jobs.test_expiry import is_gone
from tests.waiting import until

if TYPE_CHECKING:
    from pathlib import Path

    from pyosd.types import ObjectRef

MIB = 1 << 20
CAPACITY = 0x1_0001

READ = """
import osd
data = osd.userobject({o.partition_id}, {o.object_id}).data
{how}
"""
WAYS = {
    "in large pieces": "while data.read(4 << 20): pass",
    "all at once": "data.read()",
    "through a map": "sum(memoryview(data.map())[::4096])",
}


def large_object(target: Target, length: int) -> ObjectRef:
    """An object of zeros that need no space."""
    made = target.commands.create(target.partition.partition_id)
    target.commands.write(made, length - 1, b"\0")
    return made


# ---- bytes read


@pytest.mark.shares_target
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_io_limit_holds_for_large_reads(target: Target, how: str) -> None:
    """They would be made through descriptors, where nobody counts."""
    code = READ.format(o=large_object(target, 200 * MIB), how=how)
    status = run(target, code, limits=Limits(io=MIB)).wait(DEADLINE_S)
    assert (status.state, status.reason) == (JobState.LIMIT_EXCEEDED, 307)
    assert status.bytes_read <= MIB


@pytest.mark.shares_target
def test_reads_within_an_io_limit_are_exact(target: Target) -> None:
    """Also of those that would be maps, which are copies then."""
    made = large_object(target, 3 * MIB)
    how = "assert len(data.map()) == 3 << 20; assert data.read(1 << 20)"
    status = run(target, READ.format(o=made, how=how), limits=Limits(io=5 * MIB)).wait(DEADLINE_S)
    assert (status.state, status.bytes_read) == (JobState.COMPLETED, 4 * MIB)


@pytest.mark.shares_target
@pytest.mark.parametrize("how", WAYS.values(), ids=WAYS)
def test_bytes_read_include_descriptors(target: Target, how: str) -> None:
    """Each time an object's descriptors are passed its length counts as read."""
    made = large_object(target, 20 * MIB)
    status = run(target, READ.format(o=made, how=how)).wait(DEADLINE_S)
    assert status.state is JobState.COMPLETED
    assert 20 * MIB <= status.bytes_read <= 25 * MIB


# ---- what jobs occupy


def hold(target: Target, code: str, **options: object) -> Job:
    """Submit it as it is, not compressed."""
    return run(target, code, hold=True, compress=False, **options)


def among(target: Target) -> dict[str, object]:
    """Options that put a job among the partition's data, where its quota counts."""
    return {"surrogate": target.partition}


def set_quota(target: Target, limit: int) -> None:
    value = AttributeValue(Page.PARTITION_QUOTAS, CAPACITY, limit.to_bytes(8, "big"))
    target.commands.set_attributes(target.partition, [value])


def charged(target: Target) -> int:
    """For jobs, in the partition."""
    return target.commands.get_attributes(target.partition, [AttributeId(Page.CHARGED, 3)])[0].uint


def test_code_and_arguments_count_until_the_end(target: Target) -> None:
    """Held jobs fill a quota as data does, also after a crash; ended they make room again, unless their
    code is short enough to be kept for a retry.
    """
    set_quota(target, 5 * MIB)
    code = "pass #".ljust(2 * MIB, "x")
    held = [hold(target, code, args={"n": n}, **among(target)) for n in range(2)]
    before = charged(target)
    assert 4 * MIB < before < 4 * MIB + 4096
    with pytest.raises(errors.NoSpace):
        hold(target, code, **among(target))
    assert charged(target) == before
    target.kill()
    target.start()
    assert charged(target) == before
    with pytest.raises(errors.NoSpace):
        hold(target, code, **among(target))
    made = target.commands.create(target.partition.partition_id)
    with pytest.raises(errors.NoSpace):
        target.commands.write(made, 0, b"x" * (2 * MIB))
    assert Job(target.commands, held[0].id).cancel()
    assert charged(target) < 2 * MIB + 4096
    again = run(target, code, **among(target))
    assert again.wait(DEADLINE_S).state is JobState.COMPLETED
    assert Job(target.commands, held[1].id).cancel()
    assert charged(target) == 3 * 1024
    for job in (*held, again):
        Job(target.commands, job.id).remove()
    assert charged(target) == 0


def test_an_array_counts_its_code_once(target: Target) -> None:
    array = hold(target, "pass #".ljust(MIB, "x"), array=range(100), **among(target))
    assert charged(target) == MIB + 101 * 1024
    array.kill()
    array.wait(DEADLINE_S)
    # a byte for each member's state; the code is kept for a retry
    assert charged(target) == MIB + 101 * 1024 + 100
    array.remove()
    assert charged(target) == 0


RETURNS = "import osd\nosd.result(b'r' * 50_000)"
RAISES = "import sys\nsys.stderr.write('e' * 50_000)\nraise ValueError('v' * 1000)"


def test_results_count_and_an_end_is_always_recorded(target: Target) -> None:
    """Beyond the quota a result is not kept, and the job says so; why one failed is."""
    set_quota(target, 100_000)
    kept = run(target, RETURNS, **among(target))
    cut = run(target, "pass", **among(target))
    assert len(kept.result(DEADLINE_S)) == 50_000
    cut.wait(DEADLINE_S)
    assert charged(target) == 50_000 + 2 * 1024
    second = run(target, RETURNS, **among(target))
    status = second.wait(DEADLINE_S)
    assert (status.state, status.reason, status.result_length) == (JobState.FAILED, 501, 0)
    assert charged(target) == 50_000 + 3 * 1024
    failed = run(target, RAISES, **among(target))
    assert failed.wait(DEADLINE_S).reason == 201
    assert "ValueError" in failed.traceback()
    assert 100_000 < charged(target) < 100_000 + 64 * 1024
    before = charged(target)
    with pytest.raises(errors.NoSpace):
        run(target, "pass", **among(target))
    target.kill()
    target.start()
    assert charged(target) == before
    for job in (kept, cut, second, failed):
        Job(target.commands, job.id).remove()
    assert charged(target) == 0


def test_a_long_result_is_kept_if_stderr_does_not_fit(target: Target) -> None:
    """It is in an object of its own already."""
    set_quota(target, 230_000)
    code = "import osd, sys\nsys.stderr.write('e' * 50_000)\nosd.result(b'r' * 200_000)"
    job = run(target, code, **among(target))
    assert job.result(DEADLINE_S) == b"r" * 200_000
    status = job.status()
    assert (status.state, status.result_length) == (JobState.COMPLETED, 200_000)


TOO_LONG = """
import osd
try:
    osd.result(b'r' * (5 << 20))
except osd.NoSpace:
    {then}
"""


def test_a_result_that_is_kept_in_part_is_none(target: Target) -> None:
    """Although the script goes on.  It may leave another one."""
    set_quota(target, 2 * MIB)
    status = run(target, TOO_LONG.format(then="pass"), **among(target)).wait(DEADLINE_S)
    assert (status.state, status.reason, status.result_length) == (JobState.FAILED, 501, 0)
    shorter = run(target, TOO_LONG.format(then="osd.result(b'short')"), **among(target))
    assert shorter.result(DEADLINE_S) == b"short"
    made = target.commands.create(target.partition.partition_id)
    target.commands.write(made, 0, b"x" * (3 * MIB // 2))  # no part takes space


def test_a_synchronous_exec_says_that_its_result_was_not_kept(target: Target) -> None:
    set_quota(target, 40_000)
    reply = target.commands.exec_code(
        *(target.partition, RETURNS.encode(), ExecParams(surrogate=target.partition)),
        synchronous=True,
        result_allocation_length=60_000,
    )
    assert bytes(reply.result) == bytes(60_000) and reply.job is not None
    assert Job(target.commands, reply.job).status().reason == 501


def test_a_principal_fills_the_jobs_partition_to_its_bound(tmp_path: Path) -> None:
    """Which has no quota: jobs of the root zone lie there."""
    skip_without_sandboxes()
    target = Target(tmp_path, options=";stored_principal=3MiB")
    try:
        code = "pass #".ljust(MIB, "x")
        held = [hold(target, code, zone=ROOT) for _ in range(2)]
        for _ in range(2):
            with pytest.raises(errors.NoSpace):
                hold(target, code + "x" * MIB, zone=ROOT)
            target.kill()
            target.start()
        hold(target, code + "x" * MIB)  # in a partition, which may have a quota
        assert Job(target.commands, held[0].id).cancel()
        one = hold(target, code + "x" * MIB, zone=ROOT)
        with pytest.raises(errors.NoSpace):
            hold(target, "pass", zone=ROOT)
        one.kill()
        results = [run(target, RETURNS, zone=ROOT) for _ in range(2)]
        assert [len(job.result(DEADLINE_S)) for job in results] == [50_000] * 2
        with pytest.raises(errors.NoSpace):
            hold(target, code + "x" * (MIB - 90_000), zone=ROOT)
        for job in results:
            job.remove()
        hold(target, code + "x" * (MIB - 90_000), zone=ROOT)
    finally:
        target.stop()


# ---- jobs that nobody starts

EXPIRED = 116


def assert_expired(job: Job, begun: float, seconds: float) -> None:
    """Looked at often: the record goes as long after the end as the job was held at most.

    Args: begun: time of day before it was submitted.  seconds: after which it was to expire.
    """
    try:
        until(lambda: job.status().state.terminal)
    except errors.JobExpired:  # we are late ourselves; the target's times have milliseconds
        assert time.time() > begun + 2 * seconds - 0.01
        return
    status = job.status()
    assert (status.state, status.reason) == (JobState.CANCELLED, EXPIRED)
    assert status.started is None
    assert status.ended is not None and status.submitted is not None
    assert (status.ended - status.submitted).total_seconds() >= seconds


def test_a_held_job_expires(target: Target) -> None:
    """Its code is given back; a job that expires later, or runs, is not concerned."""
    stays = run(target, "pass", hold=True)
    begun = time.time()
    held = run(target, "pass", hold=True, expire=1.0)
    later = run(target, "pass", expire=30.0)
    assert_expired(held, begun, 1.0)
    until(lambda: is_gone(held))
    assert stays.status().state is JobState.HELD
    assert later.wait(DEADLINE_S).state is JobState.COMPLETED


def test_a_job_that_was_released_does_not_expire(target: Target) -> None:
    """Though it runs for longer."""

    def released() -> Job | None:
        job = run(target, "import time; time.sleep(1.5)", hold=True, expire=1.0)
        with suppress(errors.JobExpired):
            return None if job.release().terminal else job
        return None

    job = until(released, "it is never released in time")
    with suppress(errors.JobExpired):  # its record goes a second after its end
        assert job.wait(DEADLINE_S).state is JobState.COMPLETED


def test_a_held_job_expires_on_time_after_a_record_that_did(target: Target) -> None:
    """The sweep that removes the record looks again when the held job is due, not a minute later."""
    begun = time.time()
    held = run(target, "pass", hold=True, expire=3.0)
    ended = run(target, "pass", expire=0.5)
    until(lambda: is_gone(ended))
    with suppress(errors.JobExpired):  # assert_expired says whether it may be gone
        assert held.status().state is JobState.HELD or time.time() >= begun + 3.0
    assert_expired(held, begun, 3.0)


def test_a_job_held_later_expires_by_its_submission(target: Target) -> None:
    blocker = run(target, "import time; time.sleep(600)")
    other = run(target, "import time; time.sleep(600)")
    begun = time.time()
    held = run(target, "pass", expire=1.0)
    held.hold()
    assert_expired(held, begun, 1.0)
    assert not blocker.status().state.terminal and not other.status().state.terminal


def test_a_job_that_waits_for_others_expires(target: Target) -> None:
    """Held ones that nobody releases, for example; those that wait for it learn of its end."""
    never = run(target, "pass", hold=True)
    begun = time.time()

    def both() -> tuple[Job, Job] | None:
        waits = run(target, "pass", after=[never], expire=1.0)
        with suppress(errors.Invalid):  # its record is gone: we are late ourselves
            return waits, run(target, "pass", after=[waits])
        return None

    waits, then = until(both, "no job can wait for one that expires")
    assert_expired(waits, begun, 1.0)
    assert then.wait(DEADLINE_S).reason == 110
    assert never.status().state is JobState.HELD


def test_a_held_array_expires(target: Target) -> None:
    begun = time.time()
    held = run(target, "pass", hold=True, expire=3.0, array=range(3))
    waits = run(target, "pass", after=[run(target, "pass", hold=True)], expire=3.0, array=range(3))
    for array in (held, waits):
        assert_expired(array, begun, 3.0)


def test_a_held_job_expires_while_the_target_is_down(target: Target) -> None:
    begun = time.time()
    held = run(target, "pass", hold=True, expire=3.0)
    at_rest = run(target, "pass", hold=True, expire=100.0)
    target.kill()
    submitted = time.time()
    until(lambda: time.time() > submitted + 3.0)
    target.start()
    assert_expired(Job(target.commands, held.id), begun, 3.0)
    again = Job(target.commands, at_rest.id)
    assert again.status().state is JobState.HELD
    expiry = AttributeValue(Page.JOB_CONTROL, 2, int(time.time() * 1000 + 500).to_bytes(6, "big"))
    target.commands.set_attributes(at_rest.id, [expiry])
    until(lambda: is_gone(again))
