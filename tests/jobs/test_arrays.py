# SPDX-License-Identifier: GPL-2.0-or-later
"""Arrays of jobs without a sandbox: their members wait, and end by being cancelled.  Others:
test_arrays_run.py.
"""

from __future__ import annotations

import random
import struct
import threading
from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs
from pyosd.jobs import job_array
from pyosd.jobs.dialogues.following import CANCEL
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.types import JOBS_COLLECTION, ROOT, AttributeId, AttributeValue, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import After, ExecParams
from pyosd.wire.job_status import JobFlag, JobState, Number
from tests.apart import count_apart
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyosd.commands import Commands
    from pyosd.types import ObjectRef
    from tests.conftest import MakeHarness

DEADLINE_S = 60.0
QUEUE_DEPTH = 5
NO_SERVICE, HELD, CANCELLED, KILLED, WAITS, UNREACHABLE, MEMBERS = 102, 103, 105, 107, 109, 110, 111
Q, H, C, X = JobState.QUEUED, JobState.HELD, JobState.COMPLETED, JobState.CANCELLED


@pytest.fixture(params=["dir", "memory"])
def osd(request: pytest.FixtureRequest, make_harness: MakeHarness) -> Commands:
    return make_harness(memory=1).osd if request.param == "memory" else make_harness().osd


@pytest.fixture
def zone(osd: Commands) -> ObjectRef:
    return ref(osd.create_partition())


def submit(
    osd: Commands, zone: ObjectRef, array: Iterable[int] | str, code: str = "pass", **how: object
) -> JobArray:
    return job_array.submit(osd, code, zone=zone, array=array, **how)  # type: ignore[arg-type]


def single(osd: Commands, zone: ObjectRef, **how: object) -> Job:
    return jobs.submit(osd, "pass", zone=zone, **how)  # type: ignore[arg-type]


def depth(osd: Commands) -> int:
    return int.from_bytes(osd.get_attribute(ROOT, Page.EXEC_ROOT, QUEUE_DEPTH), "big")


def listed(osd: Commands, zone: ObjectRef) -> list[ObjectRef]:
    return [status.id for status in jobs.list_jobs(osd, zone.partition_id)]


# ---- what a client sees ----


def test_one_job_and_its_members(osd: Commands, zone: ObjectRef) -> None:
    array = submit(osd, zone, range(5, 12), at_once=3, name="seven", priority=2)
    status = array.status()
    assert (status.state, status.reason) == (Q, NO_SERVICE)
    assert JobFlag.ARRAY in status.flags
    assert status.array is not None
    assert (status.array.array, status.array.indices) == (array.id, range(5, 12))
    assert status.array.at_once == 3
    assert status.counts == {Q: 7}
    assert array.states() == [Q] * 7
    assert len(array) == 7
    assert [job.id.object_id - array.id.object_id for job in array] == [*range(1, 8)]
    assert array.member(5) is array[0]
    assert array.member(11).id == array[-1].id == array[4:][-1].id
    for index in (4, 12):
        with pytest.raises(IndexError):
            array.member(index)
    member = array.member(7).status()
    assert (member.state, member.name, member.zone) == (Q, "seven", zone)
    assert JobFlag.MEMBER in member.flags and JobFlag.ARRAY not in member.flags
    assert member.array is not None
    assert (member.array.array, member.array.index, member.array.members) == (array.id, 7, 0)
    assert [job.status().position for job in array] == [*range(7)]
    assert listed(osd, zone) == [array.id], "members are found by their array"
    assert depth(osd) == 7
    assert repr(JobArray(osd, array.id)[2]) == f"<Job {array[2].id} not asked for yet>"


def test_a_single_job_is_no_array(osd: Commands, zone: ObjectRef) -> None:
    job = single(osd, zone)
    assert job.status().array is None
    assert not job.status().counts
    for number in (Number.ARRAY, Number.MEMBERS, Number.STATES):
        assert osd.get_attribute(job.id, Page.JOB_STATUS, number) == b""
    with pytest.raises(ValueError, match="not an array"):
        len(JobArray(osd, job.id))


@pytest.mark.parametrize("verb", ["cancel", "kill"])
def test_all_end_by_one_command(osd: Commands, zone: ObjectRef, verb: str) -> None:
    array = submit(osd, zone, range(200))
    getattr(array, verb)()
    status = array.wait(DEADLINE_S)
    reason = CANCELLED if verb == "cancel" else KILLED
    assert (status.state, status.reason, status.message) == (X, reason, "200 CANCELLED of 200")
    assert array.states() == [X] * 200
    assert status.counts == {X: 200}
    assert {job.status().reason for job in array} == {reason}
    assert status.started is None
    assert depth(osd) == 0
    array.remove()
    assert count_apart(osd, zone.partition_id) == 0


def test_members_alone(osd: Commands, zone: ObjectRef) -> None:
    array = submit(osd, zone, range(6))
    assert array[1].cancel()
    assert array[2].kill() is X
    assert array[4].hold() is H
    assert array.states() == [Q, X, X, Q, H, Q]
    assert array.status().state is Q
    assert depth(osd) == 4
    with pytest.raises(errors.Conflict):
        array[1].remove()
    assert not array.status().done
    array.cancel()
    assert [job.status().reason for job in array] == [105, 105, 107, 105, 105, 105]
    array[3].remove()
    with pytest.raises(errors.JobExpired):
        Job(osd, array[3].id).status()
    assert array.states() == [X] * 6
    array.remove()
    assert listed(osd, zone) == []


def test_hold_and_release(osd: Commands, zone: ObjectRef) -> None:
    array = submit(osd, zone, range(5), hold=True)
    assert (array.status().state, array.status().reason) == (H, HELD)
    assert array[2].release() is Q
    assert (array.states(), array.status().state) == ([H, H, Q, H, H], Q)
    assert array.hold() is H
    assert array.states() == [H] * 5
    assert array.release() is Q
    assert array.states() == [Q] * 5
    assert array[2].hold() is H
    assert array.release() is Q
    assert array.states() == [Q] * 5
    array.hold()
    array.cancel()
    assert array.states() == [X] * 5
    for verb in ("hold", "release", "cancel", "kill"):
        getattr(array, verb)()
        assert array.states() == [X] * 5


def test_a_control_shows_the_members_it_moves(osd: Commands, zone: ObjectRef) -> None:
    """State, counts and states that one command reads are of one moment, also what it has changed."""
    array = submit(osd, zone, range(4))
    array[1].cancel()
    numbers = (Number.MEMBERS, Number.STATES, Number.STATE)
    ids = [AttributeId(Page.JOB_STATUS, number) for number in numbers]
    for control, state in ((3, H), (4, Q), (3, H)):
        value = AttributeValue(Page.JOB_CONTROL, 1, bytes([control]))
        found = {each.number: each.value for each in osd.set_attributes(array.id, [value], ids)}
        assert found[Number.STATE] == bytes([state])
        assert found[Number.STATES] == bytes([state, X, state, state])
        assert found[Number.MEMBERS] == struct.pack(">4I", state, 3, X, 1)


def test_a_key_covers_the_range(osd: Commands, zone: ObjectRef) -> None:
    array = submit(osd, zone, range(4), key="k", at_once=2)
    assert submit(osd, zone, range(4), key="k", at_once=2).id == array.id
    assert depth(osd) == 4
    for other, at_once in ((range(5), 2), (range(1, 5), 2), (range(4), 3), (range(0, 8, 2), 2)):
        with pytest.raises(errors.Conflict):
            submit(osd, zone, other, key="k", at_once=at_once)
    with pytest.raises(errors.Conflict):
        single(osd, zone, key="k")
    filling = submit(osd, zone, range(996))
    assert submit(osd, zone, range(4), key="k", at_once=2).id == array.id, (
        "though the queue is full"
    )
    with pytest.raises(errors.Conflict):
        submit(osd, zone, range(5), key="k")
    with pytest.raises(errors.TargetBusy):
        submit(osd, zone, range(4), key="another")
    filling.cancel()
    array.cancel()
    assert submit(osd, zone, range(4), key="k", at_once=2).id == array.id
    array.remove()
    assert submit(osd, zone, range(4), key="k", at_once=2).id != array.id


def test_members_count_in_the_queue(osd: Commands, zone: ObjectRef) -> None:
    array = submit(osd, zone, range(900))
    with pytest.raises(errors.TargetBusy) as busy:
        submit(osd, zone, range(101))
    assert busy.value.queue_depth == 900
    assert listed(osd, zone) == [array.id]
    other = submit(osd, zone, range(100))
    with pytest.raises(errors.TargetBusy):
        single(osd, zone)
    assert array[7].cancel()
    single(osd, zone)
    with pytest.raises(errors.OSDError) as never:  # whatever the queue: not BUSY
        submit(osd, zone, range(1001))
    assert (never.value.sense_key, never.value.asc, never.value.ascq) == (5, 0x24, 0)
    assert other.cancel()
    assert depth(osd) == 900


@pytest.mark.parametrize("first_last", [(5, 4), (0, 10_000), (2**32 - 5, 2**32 - 1)])
def test_ranges(osd: Commands, zone: ObjectRef, first_last: tuple[int, int]) -> None:
    params = ExecParams(array=(*first_last, 0))
    if first_last[1] - first_last[0] == 4:
        reply = osd.exec_code(zone, b"pass", params)
        assert reply.job is not None
        assert JobArray(osd, reply.job).indices == range(2**32 - 5, 2**32)
        return
    with pytest.raises(errors.OSDError) as raised:
        osd.exec_code(zone, b"pass", params)
    assert (raised.value.asc, raised.value.ascq) == (0x24, 0)


def test_indices_with_gaps(osd: Commands, zone: ObjectRef) -> None:
    array = submit(osd, zone, "1,3,10-20:2%3", hold=True)
    expected = [1, 3, 10, 12, 14, 16, 18, 20]
    known = JobArray(osd, array.id)  # learns the indices from the target
    for each in (array, known):
        assert (list(each.indices), len(each), each.place.at_once) == (expected, 8, 3)
        places = [job.status().array for job in each]
        assert [place and place.index for place in places] == expected
        assert each.member(20).id == ref(zone.partition_id, array.id.object_id + 8)
        with pytest.raises(IndexError, match="1-3:2,10-20:2"):
            each.member(2)
    assert array.status().flags & JobFlag.RANGES
    assert not array.member(10).status().flags & JobFlag.RANGES
    array.member(14).cancel()
    assert array.states() == [X if index == 14 else H for index in expected]
    array.kill()
    array.wait(DEADLINE_S)
    assert list(JobArray(osd, array.id).indices) == expected  # of one that has ended, too
    array.remove()
    assert listed(osd, zone) == []


@pytest.mark.parametrize(
    "ranges",
    [
        (range(5, 6), range(1, 2)),  # not ascending
        (range(1, 6, 2), range(5, 8)),  # overlap
        (range(1, 10_002, 1),),  # too many
        tuple(range(2 * n, 2 * n + 1) for n in range(5_001)),  # too many ranges
    ],
)
def test_ranges_that_are_none(osd: Commands, zone: ObjectRef, ranges: tuple[range, ...]) -> None:
    params = ExecParams(array=(ranges[0][0], ranges[-1][-1], 0), array_ranges=ranges)
    with pytest.raises(errors.OSDError) as raised:
        osd.exec_code(zone, b"pass", params)
    assert (raised.value.sense_key, raised.value.asc, raised.value.ascq) == (5, 0x24, 0)
    assert listed(osd, zone) == []


def test_the_most_ranges(osd: Commands, zone: ObjectRef) -> None:
    """No two neighbours, and no two gaps alike: 500 ranges for 1,000 indices."""
    every, at = [], 0
    for number in range(1000):
        every.append(at)
        at += 2 + number % 2 + number
    array = submit(osd, zone, every, hold=True)
    assert len(array.place.ranges) == 500
    assert list(JobArray(osd, array.id).indices) == every
    assert {status.id: status.array and status.array.index for status in array.statuses()} == {
        array.member(index).id: index for index in every
    }


@pytest.mark.parametrize("members", [100, 300])
def test_states_of_all_members_in_one_command(osd: Commands, zone: ObjectRef, members: int) -> None:
    """Of few members tgtd's thread reads them itself, of many a worker."""
    array = submit(osd, zone, range(members), hold=True)
    array[7].cancel()
    polled = [AttributeId(Page.JOB_STATUS, number) for number in (2, 3, 4)]
    found = osd.get_member_attributes(ref(zone.partition_id, JOBS_COLLECTION), polled)
    assert [each.object_id for each in found] == [each.object_id for each in listed(osd, zone)]
    for each in found:
        job = ref(zone.partition_id, each.object_id)
        assert each.attributes == osd.get_attributes(job, polled)


def test_asked_for_id(osd: Commands, zone: ObjectRef) -> None:
    pid = zone.partition_id
    osd.create(pid, 0x2_0005)
    with pytest.raises(errors.OSDError):  # a member's id is taken
        submit(osd, zone, range(10), surrogate=ref(pid, 0x2_0000))
    assert listed(osd, zone) == []
    assert osd.list_objects(pid) == [ref(pid, 0x2_0005)]
    array = submit(osd, zone, range(10), surrogate=ref(pid, 0x3_0000))
    assert array.id.object_id == 0x3_0000
    assert array[9].id.object_id == 0x3_000A


# ---- after others, and others after it ----


def test_waits_for_other_jobs(osd: Commands, zone: ObjectRef) -> None:
    first, second = single(osd, zone), single(osd, zone)
    array = submit(osd, zone, range(3), after=[After(first.id, False)])
    doomed = submit(osd, zone, range(3), after=[second])
    for each in (array, doomed):
        assert (each.status().state, each.status().reason) == (Q, WAITS)
        assert {job.status().reason for job in each} == {WAITS}
    assert array[0].status().awaited == first.id
    first.cancel()
    until(lambda: array.status().reason == NO_SERVICE)
    assert {job.status().reason for job in array} == {NO_SERVICE}
    second.cancel()
    status = doomed.wait(DEADLINE_S)
    assert (status.state, status.reason) == (JobState.FAILED, UNREACHABLE)
    assert status.message == f"{second.id} ended CANCELLED"
    for job in doomed:
        assert (job.status().reason, job.status().message) == (UNREACHABLE, status.message)
    doomed.remove()
    array.cancel()
    assert depth(osd) == 0


def test_others_wait_for_all_members_or_one(osd: Commands, zone: ObjectRef) -> None:
    array = submit(osd, zone, range(3))
    for_all = single(osd, zone, after=[After(array.id, False)])
    for_one = single(osd, zone, after=[After(array[1].id, False)])
    never = single(osd, zone, after=[array])
    array[0].cancel()
    array[1].cancel()
    until(lambda: for_one.status().reason == NO_SERVICE)
    assert for_all.status().reason == never.status().reason == WAITS
    assert for_all.status().awaited == array.id
    array[2].cancel()
    until(lambda: for_all.status().reason == NO_SERVICE)
    assert never.wait(DEADLINE_S).message == f"{array.id} ended CANCELLED"


# ---- in the way ----


def test_partition_collection_and_format(osd: Commands, zone: ObjectRef) -> None:
    pid = zone.partition_id
    collection = osd.create_collection(pid)
    array = submit(osd, collection, range(40))
    with pytest.raises(errors.Conflict) as way:
        osd.remove_partition(pid, contents=True)
    assert (way.value.asc, way.value.ascq) == (0x80, 0x11)
    with pytest.raises(errors.Conflict):
        array[3].remove()
    osd.remove_collection(collection)
    status = array.wait(DEADLINE_S)
    assert (status.state, status.reason) == (JobState.FAILED, 605)
    assert {job.status().reason for job in array} == {605}
    osd.remove_partition(pid, contents=True)
    other = ref(osd.create_partition())
    submit(osd, other, range(300))
    osd.format_osd()
    assert depth(osd) == 0


def test_a_member_that_waits_may_be_named(osd: Commands, zone: ObjectRef) -> None:
    """As the job another is run for again, or is to run after: it has no record of its own yet."""
    array = submit(osd, zone, range(3))
    again = single(osd, zone, predecessor=array[1].id, after=[array[2]])
    assert again.status().predecessor == array[1].id
    array.cancel()
    assert again.wait(DEADLINE_S).reason == UNREACHABLE


def test_unknown_predecessors_are_refused(osd: Commands, zone: ObjectRef) -> None:
    first = single(osd, zone)
    again = single(osd, zone, predecessor=first.id)
    assert again.status().predecessor == first.id
    assert first.status().predecessor is None
    with pytest.raises(errors.OSDError) as raised:
        single(osd, zone, predecessor=ref(zone.partition_id, 0x9_0000))
    assert (raised.value.asc, raised.value.ascq) == (0x24, 0)


# ---- a target that dies ----


def test_as_it_was_after_a_crash(make_harness: MakeHarness) -> None:
    harness = make_harness()
    osd = harness.osd
    zone = ref(osd.create_partition())
    first = single(osd, zone)
    array = submit(osd, zone, range(10, 20), at_once=4, name="ten")
    waiting = submit(osd, zone, range(3), after=[first])
    held = submit(osd, zone, range(4), hold=True)
    gaps = submit(osd, zone, "1,3,10-20:2", hold=True)
    gaps.member(14).cancel()
    gaps.member(20).release()
    behind = single(osd, zone, after=[After(array[4].id, False)])
    array[1].cancel()
    array[2].hold()
    held[3].release()
    before = [each.states() for each in (array, waiting, held)]
    generation = array.status().generation
    harness.kill()
    harness.restart()
    osd = harness.osd
    array, waiting, held = (JobArray(osd, each.id) for each in (array, waiting, held))
    behind, first = Job(osd, behind.id), Job(osd, first.id)
    assert [each.states() for each in (array, waiting, held)] == before
    assert array.status().generation > generation
    assert array.place.at_once == 4
    assert (array[3].status().name, array.indices) == ("ten", range(10, 20))
    assert waiting[0].status().awaited == first.id
    gaps = JobArray(osd, gaps.id)
    assert list(gaps.indices) == [1, 3, 10, 12, 14, 16, 18, 20]
    places = [job.status().array for job in gaps]
    assert [place and place.index for place in places] == list(gaps.indices)
    assert gaps.states() == [H, H, H, H, X, H, H, Q]
    gaps.cancel()
    gaps.remove()
    assert depth(osd) == 1 + 9 + 3 + 4 + 1
    assert behind.status().awaited == array[4].id
    later = single(osd, zone)
    assert later.status().position >= array[9].status().position
    array[4].cancel()
    until(lambda: behind.status().reason == NO_SERVICE)
    first.cancel()
    assert waiting.wait(DEADLINE_S).reason == UNREACHABLE
    harness.kill()
    harness.restart()
    array = JobArray(harness.osd, array.id)
    assert array.states() == [Q, X, H, Q, X, *[Q] * 5]
    array.cancel()
    assert array.status().message == "10 CANCELLED of 10"
    assert depth(harness.osd) == 4 + 1 + 1


def test_accepted_whole_or_not_at_all(make_harness: MakeHarness) -> None:
    """Killed before, after, and while an array of 10,000 is accepted."""
    harness = make_harness(queue_principal=10_000)
    zone = ref(harness.osd.create_partition())
    rng = random.Random(7)
    seen = set()
    for delay in [0.0, None, rng.uniform(0.0, 0.1)]:
        killer = threading.Timer(delay or 0.0, harness.transport.process.kill)
        if delay is not None:
            killer.start()
        if delay == 0.0:
            killer.join()
        accepted = None
        with suppress(errors.Unreachable):
            accepted = submit(harness.osd, zone, range(10_000))
        if delay is not None:
            killer.join()
        harness.kill()
        harness.restart()
        osd = harness.osd
        found = jobs.list_jobs(osd, zone.partition_id)
        seen.add(len(found))
        assert len(found) == 1 or accepted is None
        assert (count_apart(osd, zone.partition_id), depth(osd)) == (
            (10_001, 10_000) if found else (0, 0)
        )
        for status in found:
            array = JobArray(osd, status.id)
            assert array.states() == [Q] * 10_000
            array.kill(DEADLINE_S)
            array.remove()
    assert seen == {0, 1}


def test_killed_while_members_end(make_harness: MakeHarness) -> None:
    """An acknowledged cancel continues after a crash, to the last member."""
    harness = make_harness()
    zone = ref(harness.osd.create_partition())
    for _ in range(2):
        array = submit(harness.osd, zone, range(1000))
        array._control(CANCEL)
        harness.kill()
        harness.restart()
        array = JobArray(harness.osd, array.id)
        assert array.wait(DEADLINE_S).message == "1000 CANCELLED of 1000"
        array.remove()
    assert depth(harness.osd) == 0


def test_cancelled_before_what_it_waits_for_fails(make_harness: MakeHarness) -> None:
    """The cancel counts, which had not reached all members yet."""
    osd = make_harness(queue_principal=3000).osd
    zone = ref(osd.create_partition())
    first = single(osd, zone, hold=True)
    array = submit(osd, zone, range(2500), after=[first])
    Job(osd, array.id).cancel()
    first.cancel()
    status = array.wait(DEADLINE_S)
    assert (status.state, status.message) == (X, "2500 CANCELLED of 2500")


def test_killed_while_an_array_is_removed(make_harness: MakeHarness) -> None:
    """A long one goes in steps: the array last, so that what a crash leaves can be removed again."""
    harness = make_harness(queue_principal=3000)
    zone = ref(harness.osd.create_partition())
    rng = random.Random(11)
    for share in (0.0, 0.2, 0.5, 0.8):
        array = submit(harness.osd, zone, range(3000))
        array.cancel()
        array.wait(DEADLINE_S)
        killer = threading.Timer(share * rng.uniform(0.1, 0.3), harness.transport.process.kill)
        killer.start()
        with suppress(errors.Unreachable):
            array.remove()
        killer.join()
        harness.kill()
        harness.restart()
        array = JobArray(harness.osd, array.id)
        with suppress(errors.JobExpired):
            assert array.status().message == "3000 CANCELLED of 3000"
            array.remove()
        assert count_apart(harness.osd, zone.partition_id) == 0
    assert depth(harness.osd) == 0


def test_a_long_array_expires(make_harness: MakeHarness) -> None:
    harness = make_harness()
    zone = ref(harness.osd.create_partition())
    array = submit(harness.osd, zone, range(1000), expire=0.05)
    with suppress(errors.JobExpired):
        array.cancel()
    until(lambda: count_apart(harness.osd, zone.partition_id) == 0)


def test_generation_never_falls(make_harness: MakeHarness) -> None:
    """Nor over restarts, though what members do is not written into their array's record."""
    harness = make_harness()
    array = submit(harness.osd, ref(harness.osd.create_partition()), range(9))
    seen = [array.status().generation]
    for at in range(8):
        array[at].cancel()
        seen.append(array.status().generation)
        if at % 4 > 1:
            harness.kill()
            harness.restart()
            array = JobArray(harness.osd, array.id)
            seen.append(array.status().generation)
    assert seen == sorted(set(seen))
