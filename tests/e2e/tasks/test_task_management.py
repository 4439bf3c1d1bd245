# SPDX-License-Identifier: GPL-2.0-or-later
"""Task management over a stock tgtd: ABORT TASK, ABORT TASK SET, LOGICAL UNIT RESET, sessions that are
reinstated or lost, at each stage of long commands; what tgtd does not support.  EXEC: test_exec_aborted.py.

A long command waits between its steps as long as a file exists (option hold), so each function meets
it in the middle.  States are asked for until they are there; nothing sleeps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.types import ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from tests.command.held import MANY, RED, STEP
from tests.e2e.tasks.victims import (
    ABORT_TASK,
    ANSWER,
    CLEAR_TASK_SET,
    COLD_RESET,
    DONE,
    FUNCTIONS,
    LOSSES,
    NO_SUCH_TASK,
    NOT_SUPPORTED,
    WARM_RESET,
    Unit,
    Victim,
    alive,
)
from tests.expect import OK, TASK_ABORTED, check
from tests.waiting import until

pytestmark = pytest.mark.tgtd

# ---- commands in steps ----


@dataclass(frozen=True)
class Steps:
    """A command in steps: how it is asked for, whose page tells of it, what its first step does."""

    request: Callable[[ObjectRef, ObjectRef], Request]
    on_tracker: bool
    first: int
    left: Callable[[pyosd.Target, ObjectRef], int]
    after_first: int


def objects(target: pyosd.Target, collection: ObjectRef) -> int:
    return len(target.list_objects(collection.partition_id))


def joined(target: pyosd.Target, collection: ObjectRef) -> int:
    return target.tracking(collection).members


STEPS = {
    "SET MEMBER ATTRIBUTES": Steps(
        lambda c, _: rq.set_member_attributes(c, attributes=AttributeLists((), (RED,))),
        False, STEP, joined, MANY),
    "REMOVE MEMBER OBJECTS": Steps(
        lambda c, _: rq.remove_member_objects(c), False, STEP, objects, MANY - STEP),
    "REMOVE COLLECTION": Steps(
        lambda c, _: rq.remove_collection(c, with_members=True), False, STEP, joined, MANY - STEP),
    "QUERY": Steps(
        lambda c, t: rq.query_into(c, [], t.object_id), True, 0, joined, 0),
}  # fmt: skip
BY_STEPS = pytest.mark.parametrize("steps", STEPS.values(), ids=STEPS.keys())


def in_the_middle(
    unit: Unit, target: pyosd.Target, steps: Steps, collection: ObjectRef
) -> tuple[Victim, ObjectRef, Request]:
    tracker = collection
    if steps.on_tracker:
        tracker = target.create_tracking_collection(collection.partition_id)
    request = steps.request(collection, tracker)
    victim = unit.victim()
    victim.start(request)
    until(lambda: bool(target.tracking(tracker).active))
    until(lambda: target.tracking(tracker).done == steps.first)
    return victim, tracker, request


@BY_STEPS
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_abort_in_the_middle(
    unit: Unit,
    target: pyosd.Target,
    collection: ObjectRef,
    gate: Path,
    steps: Steps,
    function: int,
) -> None:
    """It ends with TASK ABORTED; what was committed stays, and it may be repeated."""
    victim, tracker, request = in_the_middle(unit, target, steps, collection)
    victim.manage(function)
    response = NO_SUCH_TASK if function == ABORT_TASK else DONE
    assert victim.outcome() == (TASK_ABORTED, response), "tgtd waits for it to end, then answers"
    page = target.tracking(tracker)
    assert (page.active, page.ended, page.done) == (0, TASK_ABORTED, steps.first)
    assert steps.left(target, tracker) == steps.after_first
    gate.unlink()
    victim.socket.close()
    check(target.reply(request), OK)
    alive(unit, target)


@BY_STEPS
@pytest.mark.parametrize("how", LOSSES)
def test_lost_in_the_middle(
    unit: Unit, target: pyosd.Target, collection: ObjectRef, gate: Path, steps: Steps, how: str
) -> None:
    """tgtd tells nobody: it runs to its end, and the page says how that was."""
    victim, tracker, _ = in_the_middle(unit, target, steps, collection)
    victim.lose(how)
    alive(unit, target)
    assert target.tracking(tracker).active
    gate.unlink()
    if steps is STEPS["REMOVE COLLECTION"]:
        until(lambda: tracker not in target.list_collections(tracker.partition_id))
    else:
        until(lambda: target.tracking(tracker).ended_well)
        assert target.tracking(tracker).done == MANY
    alive(unit, target)


# ---- commands that only read ----


READERS: dict[str, Callable[[ObjectRef], Request]] = {
    "QUERY": lambda c: rq.query(c, [], 1 << 16),
    "GET MEMBER ATTRIBUTES": lambda c: rq.get_member_attributes(
        c, attributes=AttributeLists((RED.id,))
    ),
    "OBJECT STRUCTURE CHECK": lambda c: rq.object_structure_check(c.partition_id),
}


@pytest.mark.parametrize("name", READERS)
@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_abort_reader(
    unit: Unit,
    target: pyosd.Target,
    collection: ObjectRef,
    gate: Path,
    name: str,
    function: int,
) -> None:
    victim = unit.victim()
    victim.start(READERS[name](collection))
    victim.manage(function)
    status, _ = victim.outcome()
    assert status == TASK_ABORTED
    gate.unlink()
    victim.socket.close()
    check(target.reply(READERS[name](collection)), OK)
    alive(unit, target)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_abort_copy(
    unit: Unit, target: pyosd.Target, pid: PartitionId, gate: Path, function: int
) -> None:
    """In the middle of the data: no object, no capacity taken, and the source is free."""
    source = target.create_and_write(pid, b"data" * 1000)
    before = target.get_attribute(ref(pid), Page.PARTITION_INFORMATION, 0x81)
    victim = unit.victim()
    victim.start(rq.copy_user_object(source, pid, 0x7_0000))
    until(lambda: target.get_attribute(ref(pid), Page.PARTITION_INFORMATION, 0x81) != before)
    victim.manage(function)
    status, _ = victim.outcome()
    assert status == TASK_ABORTED
    gate.unlink()
    victim.socket.close()
    alive(unit, target)
    assert target.get_attribute(ref(pid), Page.PARTITION_INFORMATION, 0x81) == before
    assert target.list_objects(pid) == [source]
    target.write(source, 0, b"free")
    check(target.reply(rq.copy_user_object(source, pid, 0x7_0000)), OK)


def test_abort_in_the_queue(
    unit: Unit, target: pyosd.Target, collection: ObjectRef, gate: Path
) -> None:
    """Behind commands that keep all workers: it never begins."""
    lists = AttributeLists((RED.id,))
    readers = [target.submit(rq.get_member_attributes(collection, attributes=lists)) for _ in "abc"]
    victim = unit.victim()
    victim.start(rq.remove_member_objects(collection))
    victim.manage(ABORT_TASK)
    gate.unlink()
    status, _ = victim.outcome()
    for each in readers:
        check(each.reply(), OK)
    victim.socket.close()
    if status == TASK_ABORTED:
        assert objects(target, collection) in (MANY, MANY - STEP, MANY - 2 * STEP, MANY - 3 * STEP)
    else:  # it was quicker than the look at it
        assert objects(target, collection) == 0


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_abort_format(
    unit: Unit, target: pyosd.Target, pid: int, gate: Path, function: int
) -> None:
    """While it waits: nothing has happened."""
    victim = unit.victim()
    victim.start(rq.format_osd())
    victim.manage(function)
    status, _ = victim.outcome()
    assert status == TASK_ABORTED
    gate.unlink()
    victim.socket.close()
    assert pid in target.list_partitions()
    alive(unit, target)


def test_abort_format_behind_a_step(
    unit: Unit, target: pyosd.Target, collection: ObjectRef, gate: Path
) -> None:
    """It does not wait for a step of a command that was answered, which goes on afterwards."""
    target.set_member_attributes(collection, [RED], immediate=True)
    victim = unit.victim()
    victim.start(rq.format_osd())
    until(lambda: target.reply(rq.list_objects()).error is not None)
    victim.manage(ABORT_TASK)
    status, _ = victim.outcome()
    assert status == TASK_ABORTED
    assert target.tracking(collection).active
    gate.unlink()
    until(lambda: target.tracking(collection).ended_well)
    assert target.tracking(collection).done == MANY
    victim.socket.close()
    alive(unit, target)


# ---- what a stock tgtd does not do ----


@pytest.mark.parametrize("function", [CLEAR_TASK_SET, WARM_RESET, COLD_RESET])
def test_not_supported(
    unit: Unit, target: pyosd.Target, collection: ObjectRef, gate: Path, function: int
) -> None:
    """The function is refused, and the command goes on."""
    victim, tracker, _ = in_the_middle(unit, target, STEPS["SET MEMBER ATTRIBUTES"], collection)
    victim.manage(function)
    assert victim.outcome() == (None, NOT_SUPPORTED)
    gate.unlink()
    header, _ = victim.receive()
    assert (header[0] & 0x3F, header[3]) == (ANSWER, 0)
    assert target.tracking(tracker).ended_well
    victim.socket.close()
    alive(unit, target)


@pytest.mark.parametrize("function", FUNCTIONS.values(), ids=FUNCTIONS.keys())
def test_nothing_to_abort(unit: Unit, target: pyosd.Target, function: int) -> None:
    victim = unit.victim()
    victim.manage(function)
    status, response = victim.outcome()
    assert status is None
    assert response in (DONE, NO_SUCH_TASK)
    victim.socket.close()
    alive(unit, target)
