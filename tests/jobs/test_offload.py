# SPDX-License-Identifier: GPL-2.0-or-later
"""Work that the target leaves to its client: at admission, at dispatch, and by members of arrays."""

from __future__ import annotations

import struct
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Descriptor
from pyosd.wire.exec_params import DESCRIPTOR_TYPE, ExecParams, HomeCost, Limits
from pyosd.wire.job_status import JobFlag, JobState
from tests.waiting import until

if TYPE_CHECKING:
    from tests.jobs.conftest import Target

DEADLINE_S = 60.0
WORK = """
import osd, time
deadline = time.process_time() + 0.2
while time.process_time() < deadline:
    pass
osd.result(sum(len(block) for block in osd.zone.data.blocks()))
"""
HOG = "import time\nwhile True: time.sleep(0.01)\n"
"""It has a slot, which is all that is wanted of it."""
SIZE = 1 << 20
SOON, LATE = HomeCost(0.001, SIZE), HomeCost(3600.0, SIZE)


def run(target: Target, code: str, zone: ObjectRef, **options: object) -> Job:
    return jobs.submit(target.commands, code, zone=zone, **options)  # type: ignore[arg-type]


@pytest.fixture
def data(target: Target) -> ObjectRef:
    obj = target.commands.create(target.partition.partition_id)
    target.commands.write(obj, 0, bytes(SIZE))
    return obj


@pytest.fixture
def learned(target: Target, data: ObjectRef) -> ObjectRef:
    """The object that WORK has read once, so that the target knows what it takes: longer if the sandbox
    was stopped meanwhile."""
    job = run(target, WORK, data, home=SOON)
    assert job.result(DEADLINE_S) == SIZE
    return data


def test_the_first_run_is_near_and_later_ones_go_where_they_are_sooner(
    target: Target, learned: ObjectRef
) -> None:
    (first,) = jobs.list_jobs(target.commands, learned.partition_id)
    with pytest.raises(errors.PushedBack) as refused:
        run(target, WORK, learned, home=SOON)
    assert (refused.value.asc, refused.value.ascq) == (0x80, 0x0A)
    assert 0 < refused.value.near < 5 * first.run_time
    assert refused.value.wait == 0
    assert 0 < refused.value.home < refused.value.near
    near = run(target, WORK, learned, home=LATE)
    assert near.result(DEADLINE_S) == SIZE
    status = near.status()
    assert JobFlag.PURE in status.flags
    assert status.offload is not None
    assert status.offload.cost == LATE
    assert 0 < status.offload.near < status.offload.home


def test_nothing_is_left_of_a_job_that_is_pushed_back(target: Target, learned: ObjectRef) -> None:
    before = jobs.list_jobs(target.commands, learned.partition_id)
    with pytest.raises(errors.PushedBack):
        run(target, WORK, learned, home=SOON)
    assert jobs.list_jobs(target.commands, learned.partition_id) == before


def test_a_job_without_a_cost_is_never_pushed_back(target: Target, learned: ObjectRef) -> None:
    assert run(target, WORK, learned, home=HomeCost()).result(DEADLINE_S) == SIZE
    assert run(target, WORK, learned).result(DEADLINE_S) == SIZE


def test_a_key_finds_the_job_that_was_accepted(target: Target, learned: ObjectRef) -> None:
    first = run(target, WORK, learned, home=LATE, key="one")
    assert run(target, WORK, learned, home=SOON, key="one").id == first.id
    with pytest.raises(errors.PushedBack):
        run(target, WORK, learned, home=SOON, key="other")


def test_a_synchronous_exec_is_refused_at_once(target: Target, learned: ObjectRef) -> None:
    with pytest.raises(errors.PushedBack):
        target.commands.exec_code(learned, WORK.encode(), ExecParams(home=SOON), synchronous=True)


@pytest.mark.shares_target
@pytest.mark.parametrize(
    "change",
    [
        "osd.zone.data.write(b'x')",
        "osd.zone.setattr([(0x10000, 1, b'x')])",
        "osd.zone.remove()",
        "osd.partition(osd.zone.partition_id).create()",
    ],
)
def test_a_pure_job_changes_nothing(target: Target, change: str, data: ObjectRef) -> None:
    zone = target.partition if "create" in change else data
    script = f"import osd\n{change.replace('osd.partition(osd.zone.partition_id)', 'osd.zone')}"
    job = run(target, script, zone, home=HomeCost())
    status = job.wait(DEADLINE_S)
    assert (status.state, status.reason) == (JobState.FAILED, 201)
    assert "PermissionDenied" in status.message
    assert bytes(target.commands.read(data, 0, 1)) == b"\0"


def busy(target: Target, count: int) -> list[Job]:
    limits = Limits(wall=600, cpu=600)
    hogs = [run(target, HOG, target.partition, limits=limits) for _ in range(count)]
    until(lambda: all(job.running() for job in hogs), "the hogs do not run")
    return hogs


def test_decisions_follow_the_load(target: Target, learned: ObjectRef) -> None:
    with pytest.raises(errors.PushedBack) as idle:
        run(target, WORK, learned, home=SOON)
    home = HomeCost(4 * idle.value.near + 0.1, SIZE)
    assert not pushed_back(target, learned, home)
    hogs = busy(target, 2)  # all slots
    until(lambda: pushed_back(target, learned, home), "the wait does not grow")
    for job in hogs:
        job.kill(DEADLINE_S)
    until(lambda: not pushed_back(target, learned, home), "it is pushed back by an idle target")


def pushed_back(target: Target, zone: ObjectRef, home: HomeCost) -> bool:
    try:
        job = run(target, WORK, zone, home=home)
    except errors.PushedBack as refused:
        assert refused.wait + refused.near > home.seconds
        return True
    job.kill(DEADLINE_S)
    return False


def probe(target: Target, zone: ObjectRef) -> errors.PushedBack:
    """The numbers of a decision now."""
    with pytest.raises(errors.PushedBack) as refused:
        run(target, WORK, zone, home=SOON)
    return refused.value


def test_a_job_is_pushed_back_when_it_could_start(target: Target, learned: ObjectRef) -> None:
    """It is accepted while its client is busy, and that has ended when the job is released."""
    near = probe(target, learned).near

    def accepted() -> Job | None:
        """Each that is pushed back keeps the client busy for longer, but time passes meanwhile."""
        with suppress(errors.PushedBack):
            return run(target, WORK, learned, home=HomeCost(0.3 * near, SIZE), hold=True)
        return None

    def at_rest() -> bool:
        """Whether work at the client has ended."""
        try:
            run(target, WORK, learned, home=SOON).kill(DEADLINE_S)
        except errors.PushedBack as refused:
            return refused.home < 0.1 * near
        return False

    assert accepted() is None
    job = until(accepted, "its client is never busy", pause=0)
    assert job.status().state is JobState.HELD
    until(at_rest, "work at the client does not end")
    job.release()
    status = job.wait(DEADLINE_S)
    assert (status.state, status.reason, status.attempt) == (JobState.CANCELLED, 119, 0)
    assert status.offload is not None
    assert status.offload.home < status.offload.near


def test_a_target_killed_in_the_middle_loses_no_member(target: Target, learned: ObjectRef) -> None:
    near = probe(target, learned).near
    array = run(target, WORK, learned, home=HomeCost(near, SIZE), array=range(8))
    assert isinstance(array, JobArray)
    until(lambda: any(job.done() for job in array), "no member ends")
    target.kill()
    target.start()
    again = JobArray(target.commands, array.id)
    until(again.done, "the array does not end")
    ends = {(job.status().state, job.status().reason) for job in again}
    assert ends <= {(JobState.COMPLETED, 0), (JobState.CANCELLED, 119)}
    for job in again:
        if job.status().state is JobState.COMPLETED:
            assert job.result(DEADLINE_S) == SIZE


def test_members_are_pushed_back_one_by_one(target: Target, learned: ObjectRef) -> None:
    near = probe(target, learned).near
    array = run(target, WORK, learned, home=HomeCost(near, SIZE), array=range(12))
    assert isinstance(array, JobArray)
    until(array.done, "the array does not end")
    ends = [(job.status().state, job.status().reason) for job in array]
    home = ends.count((JobState.CANCELLED, 119))
    assert 0 < home < 12
    assert ends.count((JobState.COMPLETED, 0)) == 12 - home
    assert (array.status().state, array.status().reason) == (JobState.CANCELLED, 119)
    returned = next(job for job in array if job.status().reason == 119)
    offload = returned.status().offload
    assert offload is not None
    assert offload.home < offload.near + offload.wait


def test_members_far_sooner_at_home_all_go_home(target: Target, learned: ObjectRef) -> None:
    array = run(target, WORK, learned, home=SOON, array=range(5))
    until(array.done, "the array does not end")
    with pytest.raises(errors.JobCancelled):
        array.result()
    assert isinstance(array, JobArray)
    assert all(job.status().reason == 119 for job in array)


def exec_with(target: Target, value: bytes, zone: ObjectRef, critical: int = 0) -> None:
    """EXEC with this value of the parameter HOME."""
    content = struct.pack(">HHHHI", 1, 1, 26, critical, len(value)) + value + bytes(-len(value) % 8)
    params = ExecParams()
    object.__setattr__(params, "descriptor", lambda: Descriptor(DESCRIPTOR_TYPE, content))
    target.commands.exec_code(zone, WORK.encode(), params)


DAY_USEC = 86400 * 10**6


@pytest.mark.shares_target
@pytest.mark.parametrize(
    "value",
    [
        b"",
        bytes(8),
        bytes(15),
        bytes(17),
        struct.pack(">QQ", DAY_USEC + 1, 0),
        struct.pack(">QQ", (1 << 64) - 1, 0),
        struct.pack(">QQ", 1, 1 << 63),
        struct.pack(">QQ", 1, (1 << 64) - 1),
    ],
)
def test_hostile_costs_are_refused(target: Target, data: ObjectRef, value: bytes) -> None:
    with pytest.raises(errors.Invalid) as refused:
        exec_with(target, value, data)
    assert refused.value.field_pointer == 48


def test_greatest_costs_do_no_harm(target: Target, learned: ObjectRef) -> None:
    """A client that lies about its work makes others run near the data for a minute, at most."""
    greatest = HomeCost(86400.0 - 1, (1 << 63) - 1)
    with pytest.raises(errors.PushedBack):
        run(target, WORK, learned, home=greatest)
    assert run(target, WORK, learned, home=HomeCost(0.3, SIZE)).result(DEADLINE_S) == SIZE
    with pytest.raises(errors.PushedBack) as refused:
        run(target, WORK, learned, home=HomeCost(1.0, (1 << 63) - 1))
    assert refused.value.near >= 86400
    assert 1 < refused.value.home <= 61
