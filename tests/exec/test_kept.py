# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of functions that are kept for later READs (docs/views.md, "Kept results").

Most functions here say that they are deterministic, and are not: they return the time.  So a test sees
whether they have run.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.errors import Invalid, OSDError, SessionLost
from pyosd.functions import Contract, Functions, FunctionStage, KeptResults, OutputSize
from pyosd.types import ROOT, AttributeValue, ObjectRef, TaskManagement, ref
from pyosd.wire.attributes import Page
from tests.command.test_perform import COMPLETE, manage
from tests.exec.conftest import WAIT_S, await_sandboxes
from tests.exec.test_stacks import BLOCKS, CONTRACT, STAGE, put, refusal, whole
from tests.exec.test_views import shows
from tests.expect import TASK_ABORTED
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

INACTIVE = 0x8017
STAMP = """
import time, osd

def main(args):  # the time, and the data
    stage = osd.stage(args)
    time.sleep(float(stage.options.get("sleep", "0")))
    if "fails" in stage.options:
        raise ValueError("as asked for")
    return time.monotonic_ns().to_bytes(8, "big") + bytes(stage.data)
"""
STAMPS = """
import time, osd

def main(args):  # the time, as often as it fits
    stage = osd.stage(args)
    count = len(stage.data)
    return (time.monotonic_ns().to_bytes(8, "big") * (count // 8 + 1))[:count]
"""
SEQUENTIAL = Contract(OutputSize.UNKNOWN, deterministic=True)
KIB = 1024


@pytest.fixture
def obj(target: pyosd.Target, zone: ObjectRef) -> ObjectRef:
    made = target.create(zone.partition_id)
    target.write(made, 0, b"data")
    return made


def stamp(target: pyosd.Target, obj: ObjectRef) -> bytes:
    """When the data were computed."""
    return bytes(target.read(obj, 0, 8))


def test_a_result_is_kept(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    functions.attach(obj, [FunctionStage(put(functions, STAMP, SEQUENTIAL))])
    first = whole(target, obj)
    assert first[8:] == b"data"
    for at in range(12):
        assert bytes(target.read(obj, at, 12 - at)) == first[at:]
    with pytest.raises(OSDError) as caught:
        target.read(obj, 13, 1)
    assert caught.value.sense is not None and caught.value.sense.field_pointer == 40


def test_what_changes_a_result(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    """Data, parameters, entry point and code: each has results of its own."""
    stamps = put(functions, STAMP, SEQUENTIAL)
    functions.attach(obj, [FunctionStage(stamps)])
    seen = [stamp(target, obj)]

    def is_new() -> None:
        now = stamp(target, obj)
        assert now not in seen and stamp(target, obj) == now
        seen.append(now)

    functions.attach(obj, [FunctionStage(stamps, parameters="a=1")])
    is_new()
    functions.detach(obj)
    target.write(obj, 0, b"other")
    functions.attach(obj, [FunctionStage(stamps)])
    is_new()
    functions.attach(obj, [FunctionStage(stamps, parameters="a=1")])
    is_new()
    other = put(functions, STAMP + "\n# another\n", SEQUENTIAL)
    functions.attach(obj, [FunctionStage(other, parameters="a=1")])
    is_new()
    functions.attach(obj, [FunctionStage(stamps, parameters="a=1")])
    assert stamp(target, obj) == seen[-2], "the same as before: the same key"


def test_a_new_version_of_a_function(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    old = functions.put(STAMP, name="stamp", contract=SEQUENTIAL)
    functions.attach(obj, [FunctionStage(old.id)])
    first = stamp(target, obj)
    target.write(old.id, 0, STAMP.encode() + b"# a later version\n")
    with pytest.raises(OSDError) as caught:
        stamp(target, obj)
    assert refusal(caught)[0] == INACTIVE, "also if its results are kept"
    functions.activate(old.id)
    assert stamp(target, obj) != first


def test_a_function_that_is_not_active(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    stamps = put(functions, STAMP, SEQUENTIAL)
    functions.attach(obj, [FunctionStage(stamps)])
    first = stamp(target, obj)
    assert stamp(target, obj) == first
    functions.deactivate(stamps)
    with pytest.raises(OSDError) as caught:
        stamp(target, obj)
    assert refusal(caught)[0] == INACTIVE
    functions.activate(stamps)
    assert stamp(target, obj) == first


def test_a_source_that_is_gone(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    shown = target.create(obj.partition_id)
    functions.attach(shown, [FunctionStage(put(functions, STAMP, SEQUENTIAL))])
    shows(target, shown, obj)
    first = stamp(target, shown)
    assert stamp(target, shown) == first
    target.remove(obj)
    with pytest.raises(OSDError) as caught:
        stamp(target, shown)
    assert refusal(caught)[0] == CONTRACT
    target.create(obj.partition_id, obj.object_id)
    target.write(obj, 0, b"of another user")
    with pytest.raises(OSDError) as caught:
        stamp(target, shown)
    assert refusal(caught)[0] == CONTRACT


def test_a_later_object_with_the_id_of_a_source_that_others_read(
    target: pyosd.Target, functions: Functions, zone: ObjectRef
) -> None:
    """Its kept results are not for readers of an object that showed the earlier one."""
    functions.attach(zone, [FunctionStage(functions.put_stock("gzip").id)])
    obj = target.create(zone.partition_id)
    target.write(obj, 0, b"data")
    shown = target.create(target.create_partition())
    shows(target, shown, obj)
    assert bytes(target.read(shown, 0, 4)) == bytes(target.read(shown, 0, 4)) == b"data"
    target.remove(obj)
    target.create(obj.partition_id, obj.object_id)
    target.write(obj, 0, b"of another user")
    assert whole(target, obj) == whole(target, obj) == b"of another user"
    with pytest.raises(OSDError) as caught:
        target.read(shown, 0, 4)
    assert refusal(caught)[0] == CONTRACT


def test_a_view_object_that_is_made_again(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """The note of the object's stack must not outlive it, also where its partition has a stack."""
    stamps = put(functions, STAMP, SEQUENTIAL)
    partition = ObjectRef(obj.partition_id)
    functions.attach(partition, [FunctionStage(stamps, parameters="of=partition")])
    functions.attach(obj, [FunctionStage(None)])
    assert bytes(target.read(obj, 0, 4)) == b"data"
    functions.attach(obj, [FunctionStage(stamps, parameters="of=object")])
    own = stamp(target, obj)
    target.remove(obj)
    functions.detach(partition)
    target.create(obj.partition_id, obj.object_id)
    target.write(obj, 0, b"data")
    functions.attach(partition, [FunctionStage(stamps, parameters="of=partition")])
    assert stamp(target, obj) != own and whole(target, obj)[8:] == b"data"


def test_an_object_that_leaves_a_collection_and_comes_back(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """Its own values stay the same, and its stack does not."""
    collection = target.create_collection(obj.partition_id)
    functions.attach(collection, [FunctionStage(put(functions, STAMP, SEQUENTIAL))])
    assert whole(target, obj) == b"data"
    target.add_member(collection, obj)
    computed = whole(target, obj)
    assert computed[8:] == b"data" and whole(target, obj) == computed
    target.remove_member(collection, obj)
    assert whole(target, obj) == b"data"
    target.add_member(collection, obj)
    assert whole(target, obj) == computed


def test_an_object_that_joins_a_collection(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """The stack of the collection holds at once, and no longer than the object is a member."""
    stamps = put(functions, STAMP, SEQUENTIAL)
    functions.attach(ObjectRef(obj.partition_id), [FunctionStage(stamps, parameters="of=all")])
    collection = target.create_collection(obj.partition_id)
    functions.attach(collection, [FunctionStage(stamps, parameters="of=members")])
    first = stamp(target, obj)
    target.add_member(collection, obj)
    as_member = stamp(target, obj)
    assert as_member != first and stamp(target, obj) == as_member
    target.remove_member(collection, obj)
    assert stamp(target, obj) == first
    target.add_member(collection, obj)
    assert stamp(target, obj) == as_member
    target.remove_collection(collection, with_members=True)
    assert stamp(target, obj) == first


def test_not_deterministic_is_never_kept(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    functions.attach(obj, [FunctionStage(put(functions, STAMP, Contract(OutputSize.UNKNOWN)))])
    assert len({stamp(target, obj) for _ in range(4)}) == 4


def test_an_optional_function_that_failed_is_not_kept(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    """It may not fail the next time."""
    optional = Contract(OutputSize.UNKNOWN, deterministic=True, optional=True)
    stages = [
        FunctionStage(put(functions, STAMP, SEQUENTIAL)),
        FunctionStage(put(functions, STAMP + "#\n", optional), parameters="fails=1"),
    ]
    functions.attach(obj, stages)
    assert len({stamp(target, obj) for _ in range(3)}) == 3


def test_blocks(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    """Units of 16 KiB are kept; a READ of several computes from the first to the last that is missing."""
    target.write(obj, 0, bytes(100 * KIB))
    functions.attach(obj, [FunctionStage(put(functions, STAMPS, BLOCKS))])
    second = stamp_at(target, obj, 16 * KIB + 8)
    assert stamp_at(target, obj, 30 * KIB) == second
    first = stamp_at(target, obj, 0)
    assert first != second
    everything = bytes(target.read(obj, 0, 100 * KIB))
    stamps = [everything[at : at + 8] for at in range(0, 100 * KIB, 16 * KIB)]
    assert stamps[:2] == [first, second] and len(set(stamps[2:])) == 1
    assert stamps[2] not in (first, second)
    assert bytes(target.read(obj, 0, 100 * KIB)) == everything
    for at, count in ((1, 5), (16 * KIB - 3, 9), (40 * KIB + 1, 50 * KIB), (99 * KIB, KIB)):
        assert bytes(target.read(obj, at, count)) == everything[at : at + count]


def stamp_at(target: pyosd.Target, obj: ObjectRef, at: int) -> bytes:
    return bytes(target.read(obj, at, 8))


# ---- many at a time ----


def test_readers_at_once_compute_once(
    target: pyosd.Target, functions: Functions, obj: ObjectRef
) -> None:
    stamps = put(functions, STAMP, SEQUENTIAL)
    functions.attach(obj, [FunctionStage(stamps, parameters="sleep=1")])
    with ThreadPoolExecutor(64) as threads:
        seen = list(threads.map(lambda at: bytes(target.read(obj, at % 4, 8)), range(64)))
    result = whole(target, obj)
    assert seen == [result[at % 4 : at % 4 + 8] for at in range(64)]


def test_readers_of_a_failure(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    """Nothing is kept, and nobody waits for the others one after the other."""
    failing = put(functions, STAMP, SEQUENTIAL)
    functions.attach(obj, [FunctionStage(failing, parameters="sleep=0.5&fails=1")])

    def read(_: int) -> int:
        with pytest.raises(OSDError) as caught:
            target.read(obj, 0, 8)
        return refusal(caught)[0]

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(read, range(8))) == [STAGE] * 8


# ---- readers that go away ----


SLOW_S = (3, 12)
"""How long the data of an object take to compute.  On a busy machine the others may come too late to
find the first one at it: then they try again with more time."""

Slow = Callable[[int], ObjectRef]


@pytest.fixture
def slow(target: pyosd.Target, functions: Functions, zone: ObjectRef) -> Slow:
    """Make an object whose data take so many seconds to compute."""
    stamps = put(functions, STAMP, SEQUENTIAL)

    def make(seconds: int) -> ObjectRef:
        made = target.create_and_write(zone.partition_id, b"data")
        functions.attach(made, [FunctionStage(stamps, parameters=f"sleep={seconds}")])
        return made

    return make


def begun(*sessions: pyosd.Target) -> None:
    """The first command of a session is answered with a unit attention, and sent again."""
    for each in sessions:
        each.get_attribute(ROOT, Page.ROOT_INFORMATION, 0)


def waiting(functions: Functions, before: KeptResults, count: int) -> bool:
    """Wait until so many READs wait for another one.  False: that one has ended before."""

    def known() -> KeptResults | None:
        now = functions.results()
        wait = now.shared == before.shared + count
        return now if wait or now.computed > before.computed else None

    return until(known, pause=0).shared == before.shared + count


def test_the_reader_that_computes_is_aborted(
    serving: Serving, functions: Functions, slow: Slow
) -> None:
    """One of the others takes its place, and the rest wait for that one."""

    def aborted(seconds: int) -> bool:
        obj, before = slow(seconds), functions.results()
        with serving.connect() as first, serving.connect() as second:
            begun(first, second)
            leader = first.submit(rq.read(obj, 0, 8))
            until(lambda: functions.origin(obj))
            others = [second.submit(rq.read(obj, 0, 8)) for _ in range(4)]
            in_time = waiting(functions, before, 4)
            assert manage(first, TaskManagement.ABORT_TASK_SET) == COMPLETE
            in_time &= leader.reply(WAIT_S).response.status == TASK_ABORTED
            seen = {bytes(each.reply(WAIT_S).data) for each in others}
        assert len(seen) == 1 and functions.results().computed == before.computed + 1
        return in_time

    assert any(map(aborted, SLOW_S))


def test_readers_that_wait_are_aborted(serving: Serving, functions: Functions, slow: Slow) -> None:
    """At once: they do not wait for the one that computes."""

    def aborted(seconds: int) -> bool:
        obj, before = slow(seconds), functions.results()
        with serving.connect() as first, serving.connect() as second, serving.connect() as third:
            begun(first, second, third)
            leader = first.submit(rq.read(obj, 0, 8))
            until(lambda: functions.origin(obj))
            waiters = [second.submit(rq.read(obj, 0, 8)) for _ in range(2)]
            lost = third.submit(rq.read(obj, 0, 8))
            in_time = waiting(functions, before, 3)
            assert manage(second, TaskManagement.ABORT_TASK_SET) == COMPLETE
            third.close()
            ends = {each.reply(WAIT_S).response.status for each in waiters}
            in_time &= functions.results().computed == before.computed
            assert len(bytes(leader.reply(WAIT_S).data)) == 8
            if in_time:  # the first one still computed
                assert ends == {TASK_ABORTED}
                with pytest.raises(SessionLost):
                    lost.reply(WAIT_S)
        return in_time

    assert any(map(aborted, SLOW_S))


# ---- the room ----


def test_the_quota() -> None:
    """The result that was read the longest ago goes first."""
    with (
        Serving("--isolation", "best", "--slots", "1", "--kept-results", "1MiB") as served,
        served.connect() as target,
    ):
        functions = Functions(target)
        stamps = functions.put(STAMP, name="stamp", contract=SEQUENTIAL).id
        zone = ref(target.create_partition())
        functions.attach(zone, [FunctionStage(stamps)])
        objects = [target.create(zone.partition_id) for _ in range(3)]
        functions.detach(zone)
        for each in objects:
            target.write(each, 0, bytes(400 * KIB))
        functions.attach(zone, [FunctionStage(stamps)])
        first, second = (stamp(target, each) for each in objects[:2])
        assert stamp(target, objects[0]) == first
        stamp(target, objects[2])
        assert stamp(target, objects[0]) == first
        assert stamp(target, objects[1]) != second
        found = functions.results()
        assert (found.quota, found.evicted, found.failed) == (1 << 20, 2, 0)
        assert found.kept == 2 * (400 * KIB + 8)
        large = target.create(zone.partition_id)
        functions.attach(large, [FunctionStage(None)])
        target.write(large, 0, bytes(2 << 20))
        functions.detach(large)
        assert stamp(target, large) != stamp(target, large), "it does not fit"
        served.kill("tgtd")
        served.restarted()
        with served.connect() as again:
            await_sandboxes(again)
            assert stamp(again, objects[0]) != first, "what was kept ends with the target"


def test_nothing_is_kept_without_a_quota() -> None:
    with (
        Serving("--isolation", "best", "--slots", "1", "--kept-results", "0") as served,
        served.connect() as target,
    ):
        functions = Functions(target)
        stamps = functions.put(STAMP, name="stamp", contract=SEQUENTIAL).id
        obj = target.create(target.create_partition())
        target.write(obj, 0, b"data")
        functions.attach(obj, [FunctionStage(stamps)])
        assert stamp(target, obj) != stamp(target, obj)
        assert functions.results().quota == 0
        found = functions.origin(obj)
        assert found is not None and found.read is not None and not found.read.kept


# ---- what is told about it ----


def test_how_data_came_about(target: pyosd.Target, functions: Functions, obj: ObjectRef) -> None:
    assert functions.origin(obj) is None
    stamps = functions.put(STAMP, name="stamp", contract=SEQUENTIAL)
    view = functions.view_create(
        obj.partition_id, [FunctionStage(stamps.id, parameters="key=secret")]
    )
    shown = ref(view.id, obj.object_id)
    stamp(target, shown)
    found = functions.origin(shown)
    assert found is not None and found.read is not None
    (stage,) = found.stages
    assert (found.source, stage.function, stage.name) == (obj, stamps.id, "stamp")
    assert (stage.sha256, stage.method, stage.signer) == (stamps.sha256, "main", "")
    assert b"secret" not in bytes(target.get_attribute(shown, Page.STACK, 18))
    assert found.current and found.deterministic and not found.read.kept
    assert found.read.version == bytes(target.data_version(obj))
    stamp(target, shown)
    again = functions.origin(shown)
    assert again is not None and again.read is not None and again.read.kept
    assert again.read.ended_ms >= found.read.ended_ms
    functions.deactivate(stamps.id)
    gone = functions.origin(shown)
    assert gone is not None and not gone.current and gone.read == again.read
    with pytest.raises(Invalid):
        target.set_attributes(shown, [AttributeValue(Page.STACK, 18, b"{}")])
    functions.activate(stamps.id)
    functions.view_remove(view.id)
