# SPDX-License-Identifier: GPL-2.0-or-later
"""Long commands seen between two steps: progress on the Command Tracking page, busy collections,
aborts (docs/commands.md)."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.types import AttributeId, AttributeValue, ObjectRef, TaskManagement, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from tests.command.held import (
    BLUE,
    CREATE,
    MANY,
    QUERY,
    RED,
    REMOVE,
    REMOVE_MEMBERS,
    SET_MEMBERS,
    STEP,
    Held,
    Pending,
    abort,
    check_aborted,
    create_tracking,
    ended,
    set_red,
)
from tests.expect import (
    BUSY,
    CDB_FIELD,
    NO_OBJECT,
    OK,
    TASK_ABORTED,
    check,
)
from tests.waiting import until


@pytest.mark.parametrize("immediate", [False, True])
def test_progress(held: Held, immediate: bool) -> None:
    """Others see how far it is, and what it has done so far."""
    collection = held.populate()
    command = held.start(set_red(collection, immediate))
    if immediate:
        check(command.reply(), OK)
        until(lambda: held.osd.tracking(collection).active == SET_MEMBERS)
        held.let_go()
    else:
        held.first_step(collection, SET_MEMBERS)
        page = held.osd.tracking(collection)
        assert page.percent == STEP * 100 // MANY
        assert page.members == MANY
        assert (
            held.osd.get_attribute(ref(collection.partition_id, 0x1_0001), RED.page, RED.number)
            == b"red"
        )
        held.let_go()
        check(command.reply(), OK)
    page = ended(held.osd, collection)
    assert page.ended_well
    assert (page.percent, page.done) == (100, MANY)
    assert held.red(collection) == MANY


LONG = AttributeValue(Page.APPLICATION, 1, b"a" * 60_000)
HEAVY_STEP = 8 << 20


@pytest.mark.parametrize("removed", [False, True])
def test_heavy_steps(held: Held, removed: bool) -> None:
    """Members with much to change are fewer in a step, whose transaction must not grow without end."""
    if removed:
        collection = held.populate(2)
        for member in held.osd.list_members(collection):
            for start in range(1, 33_001, 3000):
                many = [AttributeValue(Page.APPLICATION, start + i, b"a") for i in range(3000)]
                held.osd.set_attributes(member, many)
        command = held.start(rq.remove_member_objects(collection))
        held.first_step(collection, REMOVE_MEMBERS, 1)
    else:
        collection = held.populate(200)
        lists = AttributeLists((), (LONG,))
        command = held.start(rq.set_member_attributes(collection, attributes=lists))
        held.first_step(collection, SET_MEMBERS, HEAVY_STEP // len(LONG.value) + 1)
    held.let_go()
    check(command.reply(), OK)
    page = ended(held.osd, collection)
    assert (page.percent, page.missing_skipped, page.ended_well) == (100, 0, True)


def test_busy(held: Held) -> None:
    """Commands that would change or copy the members are refused; reading commands continue."""
    collection = held.populate()
    pid = collection.partition_id
    other = held.osd.create_collection(pid)
    command = held.start(set_red(collection))
    held.first_step(collection, SET_MEMBERS)
    for immediate in (False, True):
        check(held.osd.reply(set_red(collection, immediate)), CDB_FIELD.at(24))
        request = rq.remove_member_objects(collection, immediate)
        check(held.osd.reply(request), CDB_FIELD.at(24))
    check(held.osd.reply(rq.remove_collection(collection, with_members=True)), CDB_FIELD.at(24))
    check(
        held.osd.reply(create_tracking(pid, source_collection_id=collection.object_id)),
        CDB_FIELD.at(40),
    )
    assert len(held.osd.list_members(collection)) == MANY
    held.osd.set_member_attributes(other, [RED])
    held.let_go()
    check(command.reply(), OK)
    held.osd.set_member_attributes(collection, [BLUE])


def test_busy_query(held: Held) -> None:
    collection = held.populate()
    pid = collection.partition_id
    small, matches = held.osd.create_collection(pid), held.osd.create_tracking_collection(pid)
    command = held.start(rq.query_into(collection, [], matches.object_id))
    held.first_step(matches, QUERY, done=0)
    check(held.osd.reply(rq.query_into(small, [], matches.object_id)), CDB_FIELD.at(40))
    third = held.osd.create_tracking_collection(pid)
    check(held.osd.reply(rq.query_into(matches, [], third.object_id)), CDB_FIELD.at(24))
    check(held.osd.reply(rq.remove_collection(matches, with_members=True)), CDB_FIELD.at(24))
    held.let_go()
    check(command.reply(), OK)
    assert held.osd.tracking(matches).members == MANY


def test_two_in_turn(held: Held) -> None:
    """Commands that run on share the thread step by step."""
    first, second = held.populate(), held.populate()
    for collection in (first, second):
        check(held.osd.reply(set_red(collection, True)), OK)
    held.let_go()
    assert ended(held.osd, first).done == ended(held.osd, second).done == MANY


def test_too_many(held: Held) -> None:
    """32 at a time of one principal, half of the places; then BUSY, and nothing has happened."""
    pid = held.osd.create_partition()
    made = [held.osd.create_collection(pid) for _ in range(34)]
    statuses = [held.osd.reply(set_red(each, True)).response.status for each in made]
    assert statuses == [0] * 32 + [BUSY] * 2
    assert not held.osd.tracking(made[33]).active
    held.let_go()
    for each in made[:32]:
        assert ended(held.osd, each).ended_well
    held.osd.set_member_attributes(made[33], [RED], immediate=True)


def test_missing_members(held: Held) -> None:
    """Those removed before their turn."""
    collection = held.populate()
    pid = collection.partition_id
    matches = held.osd.create_tracking_collection(pid)
    command = held.start(set_red(collection))
    held.first_step(collection, SET_MEMBERS)
    held.osd.remove(ref(pid, 0x1_0000 + MANY))
    held.let_go()
    check(command.reply(), OK)
    page = held.osd.tracking(collection)
    assert page.done == held.red(collection) == MANY - 1
    held.osd.query_into(collection, [], matches)
    assert held.osd.tracking(matches).members == MANY - 1


def test_partition_goes_with_its_command(held: Held) -> None:
    collection = held.populate()
    check(held.osd.reply(set_red(collection, True)), OK)
    held.osd.remove_partition(collection.partition_id, contents=True)
    check(held.osd.reply(rq.create_partition(collection.partition_id)), OK)
    again = held.osd.create_collection(collection.partition_id, collection.object_id)
    held.let_go()
    other = held.populate(5)
    held.osd.set_member_attributes(other, [RED], immediate=True)
    assert ended(held.osd, other).ended_well
    assert not held.osd.tracking(again).active
    assert held.osd.tracking(again).done is None


@pytest.mark.parametrize("action", [QUERY, CREATE])
def test_source_goes(held: Held, action: int) -> None:
    """A command that copies from a collection ends with it, and says why."""
    collection = held.populate(600)
    tracker = held.begin_copy(collection, action)
    held.osd.remove_collection(collection, with_members=True)
    held.let_go()
    held.check_source_gone(tracker, action)
    held.osd.remove_collection(tracker, with_members=True)
    assert len(held.osd.list_objects(collection.partition_id)) == 600


def test_source_of_a_reader_is_replaced(held: Held) -> None:
    """Between two of its batches, another collection gets the id."""
    collection = held.populate(STEP + 1)
    accessed = AttributeId(Page.COLLECTION_TIMESTAMPS, 4)
    before = held.osd.get_attribute(collection, *accessed)
    command = held.start(READERS["GET MEMBER ATTRIBUTES"](collection))
    held.grant_step()
    until(lambda: held.osd.get_attribute(collection, *accessed) != before)
    held.osd.remove(held.osd.list_members(collection)[-1])  # one step removes the rest
    held.osd.remove_collection(collection, with_members=True)
    held.osd.create_collection(collection.partition_id, collection.object_id)
    held.let_go()
    check(command.reply(), NO_OBJECT)


def test_format_ends_commands(held: Held) -> None:
    collection = held.populate()
    check(held.osd.reply(set_red(collection, True)), OK)
    held.let_go()
    check(held.osd.reply(rq.format_osd()), OK)
    other = held.populate(5)
    held.osd.set_member_attributes(other, [RED], immediate=True)
    assert ended(held.osd, other).ended_well


# ---- aborted ----


def test_abort_set_members(held: Held) -> None:
    """Committed steps remain; the command can be repeated."""
    collection = held.populate()
    command = held.start(set_red(collection))
    held.first_step(collection, SET_MEMBERS)
    abort(held, command)
    check_aborted(held, collection)
    held.let_go()
    assert held.red(collection) == STEP
    held.osd.set_member_attributes(collection, [RED])
    assert held.red(collection) == MANY
    assert held.osd.tracking(collection).ended_well


def test_abort_remove_members(held: Held) -> None:
    collection = held.populate()
    command = held.start(rq.remove_member_objects(collection))
    held.first_step(collection, REMOVE_MEMBERS)
    abort(held, command)
    check_aborted(held, collection)
    assert len(held.osd.list_objects(collection.partition_id)) == MANY - STEP
    held.let_go()
    held.osd.remove_member_objects(collection)
    assert held.osd.list_objects(collection.partition_id) == []


def test_abort_remove_collection(held: Held) -> None:
    collection = held.populate()
    command = held.start(rq.remove_collection(collection, with_members=True))
    held.first_step(collection, REMOVE)
    abort(held, command)
    check_aborted(held, collection)
    assert len(held.osd.list_members(collection)) == MANY - STEP
    held.let_go()
    held.osd.remove_collection(collection, with_members=True)
    assert held.osd.list_collections(collection.partition_id) == []
    assert len(held.osd.list_objects(collection.partition_id)) == MANY


def test_abort_query_into(held: Held) -> None:
    collection = held.populate()
    matches = held.osd.create_tracking_collection(collection.partition_id)
    command = held.start(rq.query_into(collection, [], matches.object_id))
    held.first_step(matches, QUERY, done=0)
    abort(held, command)
    check_aborted(held, matches, done=0)
    held.let_go()
    held.osd.query_into(collection, [], matches)
    assert held.osd.tracking(matches).members == MANY


def test_abort_create_tracking(held: Held) -> None:
    """Nobody was told its id: nothing is left."""
    collection = held.populate()
    request = create_tracking(collection.partition_id, 0x5_0000, collection.object_id)
    command = held.start(request)
    until(lambda: len(held.osd.list_collections(collection.partition_id)) == 2)
    held.first_step(ref(collection.partition_id, 0x5_0000), CREATE)
    abort(held, command)
    assert held.osd.list_collections(collection.partition_id) == [collection]
    held.let_go()
    check(held.osd.reply(request), OK)


READERS: dict[str, Callable[[ObjectRef], Request]] = {
    "QUERY": lambda c: rq.query(c, [], 1 << 16),
    "GET MEMBER ATTRIBUTES": lambda c: rq.get_member_attributes(
        c, attributes=AttributeLists((RED.id,))
    ),
}


@pytest.mark.parametrize("name", READERS)
def test_abort_readers(held: Held, name: str) -> None:
    collection = held.populate(10)
    command = held.start(READERS[name](collection))
    until(lambda: held.osd.perform_task_management(0x80, command.tag).response == 5)
    abort(held, command)
    held.let_go()
    check(held.osd.reply(READERS[name](collection)), OK)


def test_abort_copy(held: Held, tmp_path: Path) -> None:
    """Between two pieces, with its files made and its capacity taken: nothing of that is left."""
    pid = held.osd.create_partition()
    source = held.osd.create_and_write(pid, b"data")
    held.osd.write(source, 5 << 20, b"behind a hole")
    used = AttributeId(Page.PARTITION_INFORMATION, 0x81)
    before, files = held.osd.get_attribute(ref(pid), *used), names_of_data(tmp_path)
    command = held.start(rq.copy_user_object(source, pid, 0x7_0000))
    until(lambda: held.osd.get_attribute(ref(pid), *used) != before)
    abort(held, command)
    held.let_go()
    assert held.osd.get_attribute(ref(pid), *used) == before
    assert held.osd.list_objects(pid) == [source]
    until(lambda: names_of_data(tmp_path) == files)
    check(held.osd.reply(rq.object_structure_check(pid)), OK)
    held.osd.write(source, 0, b"free")
    check(held.osd.reply(rq.copy_user_object(source, pid, 0x7_0000)), OK)
    assert bytes(held.osd.read(ref(pid, 0x7_0000), 0, 4)) == b"free"


def copying(held: Held, source: ObjectRef) -> Pending:
    """A copy that has its source and waits between two pieces."""
    pid = source.partition_id
    used = AttributeId(Page.PARTITION_INFORMATION, 0x81)
    before = held.osd.get_attribute(ref(pid), *used)
    command = held.start(rq.copy_user_object(source, pid, 0x7_0000))
    until(lambda: held.osd.get_attribute(ref(pid), *used) != before)
    return command


def test_copy_keeps_no_worker(held: Held) -> None:
    """Commands that would change the source wait, whatever their number; all others continue."""
    pid = held.osd.create_partition()
    source = held.osd.create_and_write(pid, b"data")
    held.osd.write(source, 5 << 20, b"behind a hole")
    copy = copying(held, source)
    length = AttributeValue(Page.USER_INFORMATION, 0x82, (9 << 20).to_bytes(8))
    waiting = [held.start(rq.write(source, i * 8, b"%08d" % i)) for i in range(40)]
    waiting += [
        held.start(rq.append(source, b"end")),
        held.start(rq.clear(source, 1 << 20, 4096)),
        held.start(rq.punch(source, 2 << 20, 1)),
        held.start(rq.set_attributes(source, attributes=AttributeLists((), (length,)))),
    ]
    late = held.start(rq.write(source, 0, b"never"))
    again = held.start(rq.copy_user_object(source, pid, 0x7_0001))
    other = held.osd.create_and_write(pid, b"other")
    held.osd.write(other, 0, b"OTHER")
    assert bytes(held.osd.read(source, 0, 4)) == b"data"
    assert len(held.osd.list_objects(pid)) == 2
    held.osd.set_attributes(source, [RED])
    assert held.osd.perform_task_management(0x80, late.tag).response == 5
    abort(held, late)
    held.let_go()
    for each in (copy, again, *waiting):
        check(each.reply(), OK)
    assert bytes(held.osd.read(ref(pid, 0x7_0000), 0, 16)) == b"data" + bytes(12)
    assert bytes(held.osd.read(source, 8, 312)) == b"".join(b"%08d" % i for i in range(1, 40))
    check(held.osd.reply(rq.object_structure_check(pid)), OK)


def test_removal_waits_for_a_copy(held: Held) -> None:
    pid = held.osd.create_partition()
    source = held.osd.create_and_write(pid, b"data")
    copy = copying(held, source)
    removals = [held.start(rq.remove(source)) for _ in range(12)]
    assert held.osd.list_objects(pid) == [source]
    held.let_go()
    check(copy.reply(), OK)
    statuses = [each.reply().error is None for each in removals]
    assert statuses.count(True) == 1, "the others find nothing to remove"
    assert held.osd.list_objects(pid) == [ref(pid, 0x7_0000)]
    assert bytes(held.osd.read(ref(pid, 0x7_0000), 0, 4)) == b"data"


def test_end_with_waiting_writes(kept: Held) -> None:
    """A target that is told to end answers them first."""
    pid = kept.osd.create_partition()
    source = kept.osd.create_and_write(pid, b"data")
    copy = copying(kept, source)
    waiting = [kept.start(rq.write(source, i, b"x")) for i in range(12)]
    kept.let_go()
    kept.harness.restart()
    for each in (copy, *waiting):
        check(each.reply(), OK)
    assert bytes(kept.osd.read(source, 0, 12)) == b"x" * 12


def names_of_data(folder: Path) -> set[Path]:
    """Files of objects in the store; none of one in memory."""
    return {each for each in (folder / "store" / "data").rglob("*") if each.is_file()}


def test_abort_check(held: Held) -> None:
    """OBJECT STRUCTURE CHECK: no damage is reported, nobody waits for it, and it can be
    repeated."""
    collection = held.populate(300)
    pid = collection.partition_id
    command = held.start(rq.object_structure_check(pid))
    until(lambda: held.osd.perform_task_management(0x80, command.tag).response == 5)
    held.osd.create_and_write(pid, b"meanwhile")
    abort(held, command)
    assert held.osd.get_attribute(ref(pid), Page.PARTITION_RECOVERY, 1) == b"\0"
    held.let_go()
    check(held.osd.reply(rq.object_structure_check(pid)), OK)
    assert len(held.osd.list_objects(pid)) == 301


@pytest.mark.parametrize("function", [0x01, 0x02, 0x04, 0x08])
def test_answered_is_no_task(held: Held, function: int) -> None:
    """After GOOD no function reaches a command with IMMED_TR: it is not there, and goes on."""
    collection = held.populate()
    command = held.start(set_red(collection, True))
    check(command.reply(), OK)
    manage = held.osd.perform_task_management
    until(lambda: manage(0x80, command.tag).response == manage(0x81).response == 0)
    assert held.osd.perform_task_management(function, command.tag).response == 0
    assert held.osd.tracking(collection).active == SET_MEMBERS
    held.let_go()
    page = ended(held.osd, collection)
    assert (page.ended_well, page.done, held.red(collection)) == (True, MANY, MANY)


def test_reset_aborts_all(held: Held) -> None:
    """LOGICAL UNIT RESET: also what is still in the queue, as there are more than workers; what runs
    on in the background is no task."""
    collection, other = held.populate(), held.populate()
    check(held.osd.reply(set_red(other, True)), OK)
    commands = [held.start(set_red(collection))]
    held.first_step(collection, SET_MEMBERS)
    commands += [held.start(rq.query(other, [], 1 << 16)) for _ in range(9)]
    reset = Pending(held.osd, rq.perform_task_management(TaskManagement.LOGICAL_UNIT_RESET))
    assert {each.reply().response.status for each in commands} == {TASK_ABORTED}
    check(reset.reply(), OK)
    held.let_go()
    assert ended(held.osd, other).done == MANY
