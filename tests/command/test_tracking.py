# SPDX-License-Identifier: GPL-2.0-or-later
"""Tracking collections, and long commands: steps, the Command Tracking page, IMMED_TR, busy
collections, aborts, restarts (osd2-wire 3.2, 3.9, 3.10, 5.16; docs/commands.md).

The option hold makes a long command wait between its steps as long as a file exists, so each test
sees it where it wants to: after its first step of 1,024 members.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.attributes import CURRENT_OBJECT_ID, Page
from pyosd.cdb import AttributeLists, AttributePage, Descriptor, Request
from pyosd.commands import Commands, Reply
from pyosd.errors import Unreachable
from pyosd.tracking import CommandTracking
from pyosd.types import AttributeValue, ObjectRef, TaskManagement, ref
from tests.command.test_collection import ABSENT, membership
from tests.conftest import MakeHarness
from tests.expect import (
    BUSY,
    CDB_FIELD,
    CHECK_CONDITION,
    NO_OBJECT,
    NO_PARTITION,
    OBJECT_TAKEN,
    OK,
    TASK_ABORTED,
    check,
)
from tests.harness import Harness

EVERYTHING = 0x1000
STEP = 1024
MANY = 3 * STEP + 7
IMMED_TR = 0x80
SET_MEMBERS, REMOVE_MEMBERS, REMOVE, QUERY, CREATE = 0x88A3, 0x88A1, 0x8896, 0x88A0, 0x8894
RED = AttributeValue(Page.APPLICATION, 1, b"red")
BLUE = AttributeValue(Page.APPLICATION, 1, b"blue")
PATIENCE_S = 20.0


def until(condition: Callable[[], bool]) -> None:
    """Ask again until it is so."""
    deadline = time.monotonic() + PATIENCE_S
    while not condition():
        assert time.monotonic() < deadline, "it never came to that"


def ended(osd: Commands, collection: ObjectRef) -> CommandTracking:
    """What the page says when nothing is in progress any more."""
    until(lambda: not osd.tracking(collection).active)
    return osd.tracking(collection)


create_tracking = rq.create_user_tracking_collection


# ---- CREATE USER TRACKING COLLECTION ----


@pytest.fixture
def members(osd: Commands, collection: ObjectRef) -> list[ObjectRef]:
    return osd.create_many(collection.partition_id, 5, attributes=[membership(collection)])


def test_type(osd: Commands, pid: int) -> None:
    made = osd.create_tracking_collection(pid)
    assert osd.get_attribute(made, Page.COLLECTION_INFORMATION, 0xA) == b"\x01"
    assert osd.list_members(made) == []
    assert made in osd.list_collections(pid)


def test_source(osd: Commands, collection: ObjectRef, members: list[ObjectRef]) -> None:
    made = osd.create_tracking_collection(collection.partition_id, source=collection.object_id)
    assert osd.list_members(made) == osd.list_members(collection) == members
    page = osd.tracking(made)
    assert page.ended_well
    assert (page.percent, page.members, page.done, page.missing_skipped) == (100, 5, 5, 0)
    copy = osd.create_tracking_collection(collection.partition_id, source=made.object_id)
    assert osd.list_members(copy) == members


def test_everything_as_source(osd: Commands, obj: ObjectRef) -> None:
    made = osd.create_tracking_collection(obj.partition_id, source=EVERYTHING)
    assert osd.list_members(made) == [obj]


def test_requested_id(osd: Commands, pid: int) -> None:
    assert osd.create_tracking_collection(pid, 0x5_0000) == ref(pid, 0x5_0000)
    check(osd.reply(create_tracking(pid, 0x5_0000)), OBJECT_TAKEN)
    for reserved in (1, 0x1000, 0x1001, 0xFFFF):
        check(osd.reply(create_tracking(pid, reserved)), OBJECT_TAKEN)


def test_absent_partition(osd: Commands) -> None:
    check(osd.reply(create_tracking(0x7777_0000_0000)), NO_PARTITION)


@pytest.mark.parametrize("source", [ABSENT, 1, 0x1002])
def test_absent_source(osd: Commands, pid: int, source: int) -> None:
    check(osd.reply(create_tracking(pid, source_collection_id=source)), CDB_FIELD.at(40))
    assert osd.list_collections(pid) == []


def test_user_object_as_source(osd: Commands, obj: ObjectRef) -> None:
    request = create_tracking(obj.partition_id, source_collection_id=obj.object_id)
    check(osd.reply(request), CDB_FIELD.at(40))


@pytest.mark.parametrize("capabilities", [b"", bytes(104), bytes(208)])
def test_extension_capabilities(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef], capabilities: bytes
) -> None:
    """Accepted, and not looked at."""
    request = create_tracking(collection.partition_id, 0x5_0000, collection.object_id)
    descriptors = (Descriptor(0xFFEE, capabilities),) if capabilities else ()
    check(osd.reply(replace(request, descriptors=descriptors)), OK)
    assert osd.list_members(ref(collection.partition_id, 0x5_0000)) == members


def test_other_descriptors(osd: Commands, pid: int) -> None:
    request = replace(create_tracking(pid), descriptors=(Descriptor(2, bytes(8)),))
    check(osd.reply(request), CDB_FIELD.at(48))


def test_attributes(osd: Commands, collection: ObjectRef, members: list[ObjectRef]) -> None:
    """Those of the new collection, its members joined when they are retrieved."""
    name = AttributeValue(Page.COLLECTION_INFORMATION, 0x9, b"watched")
    count = AttributeValue(Page.COLLECTION_TRACKING, 0x10, b"").id
    lists = AttributeLists((name.id, count, CURRENT_OBJECT_ID), (name,))
    request = create_tracking(collection.partition_id, 0, collection.object_id, attributes=lists)
    reply = check(osd.reply(request), OK)
    assert reply.attribute(name.id).value == b"watched"
    assert reply.attribute(count).uint == 5
    made = ref(collection.partition_id, reply.attribute(CURRENT_OBJECT_ID).uint)
    assert osd.list_members(made) == members


def test_refused_attribute_leaves_nothing(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    bad = AttributeValue(Page.COLLECTION_INFORMATION, 0xA, b"\0")
    for source in (0, collection.object_id):
        lists = AttributeLists((), (bad,))
        reply = osd.reply(create_tracking(collection.partition_id, 0, source, attributes=lists))
        assert reply.response.status == CHECK_CONDITION
        assert osd.list_collections(collection.partition_id) == [collection]


def test_joining_is_refused(osd: Commands, obj: ObjectRef) -> None:
    """Only commands change the members of a tracking collection."""
    made = osd.create_tracking_collection(obj.partition_id)
    join = membership(made)
    reply = osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), (join,))))
    assert reply.response.status == CHECK_CONDITION
    assert reply.sense is not None
    assert (reply.sense.asc, reply.sense.ascq) == (0x26, 0)
    assert osd.list_members(made) == []


def test_removed_objects_leave(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    made = osd.create_tracking_collection(collection.partition_id, source=collection.object_id)
    osd.remove(members[2])
    assert osd.list_members(made) == members[:2] + members[3:]
    osd.remove_collection(made, with_members=True)
    assert osd.list_members(collection) == members[:2] + members[3:]


# ---- IMMED_TR ----


def test_set_members_at_once(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    osd.set_member_attributes(collection, [RED], immediate=True)
    page = ended(osd, collection)
    assert page.ended_well
    assert (page.percent, page.done) == (100, 5)
    assert {osd.get_attribute(each, *id_(RED)) for each in members} == {b"red"}


def id_(value: AttributeValue) -> tuple[int, int]:
    return value.page, value.number


def test_remove_members_at_once(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    osd.remove_member_objects(collection, immediate=True)
    page = ended(osd, collection)
    assert (page.percent, page.done) == (100, 5)
    until(lambda: osd.tracking(collection).members == 0)
    assert osd.list_objects(collection.partition_id) == []


def test_query_at_once(osd: Commands, collection: ObjectRef, members: list[ObjectRef]) -> None:
    matches = osd.create_tracking_collection(collection.partition_id)
    osd.query_into(collection, [], matches, immediate=True)
    page = ended(osd, matches)
    assert page.ended_well
    assert (page.percent, page.done) == (100, 5)
    until(lambda: osd.tracking(matches).members == 5)
    assert osd.tracking(collection).done is None, "the page of the one searched tells nothing"


def test_create_tracking_at_once(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    lists = AttributeLists((CURRENT_OBJECT_ID,))
    request = create_tracking(collection.partition_id, 0, collection.object_id, attributes=lists)
    reply = check(osd.reply(replace(request, bits11=IMMED_TR)), OK)
    made = ref(collection.partition_id, reply.attribute(CURRENT_OBJECT_ID).uint)
    assert ended(osd, made).ended_well
    assert osd.list_members(made) == members


def test_create_empty_at_once(osd: Commands, pid: int) -> None:
    """There is nothing to run on."""
    check(osd.reply(replace(create_tracking(pid, 0x5_0000), bits11=IMMED_TR)), OK)
    assert not osd.tracking(ref(pid, 0x5_0000)).active


def test_remove_collection_at_once(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    request = rq.remove_collection(collection, with_members=True)
    check(osd.reply(replace(request, bits11=request.bits11 | IMMED_TR)), OK)
    until(lambda: osd.list_collections(collection.partition_id) == [])
    assert osd.list_objects(collection.partition_id) == members


def test_remove_collection_at_once_without_members(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    request = replace(rq.remove_collection(collection), bits11=IMMED_TR)
    assert osd.reply(request).response.status == CHECK_CONDITION
    assert osd.list_members(collection) == members


@pytest.mark.parametrize("get", [True, False])
def test_nothing_can_be_told_later(osd: Commands, collection: ObjectRef, get: bool) -> None:
    """GET MEMBER ATTRIBUTES, and SET MEMBER ATTRIBUTES with a get list."""
    lists = AttributeLists((RED.id,), () if get else (RED,))
    if get:
        request = rq.get_member_attributes(collection, attributes=lists)
    else:
        request = rq.set_member_attributes(collection, attributes=lists)
    check(osd.reply(replace(request, bits11=IMMED_TR)), CDB_FIELD.at(11))


def test_checks_come_before_good(osd: Commands, collection: ObjectRef) -> None:
    gone = ref(collection.partition_id, ABSENT)
    lists = AttributeLists((), (RED,))
    request = rq.set_member_attributes(gone, immediate=True, attributes=lists)
    check(osd.reply(request), NO_OBJECT)
    check(osd.reply(rq.query_into(collection, [], ABSENT, immediate=True)), CDB_FIELD.at(40))


def test_failure_after_good(osd: Commands, collection: ObjectRef, members: list[ObjectRef]) -> None:
    """The page tells, with sense data; nothing was changed."""
    bad = AttributeValue(Page.USER_INFORMATION, 0x1, bytes(8))
    lists = AttributeLists((), (bad,))
    check(osd.reply(rq.set_member_attributes(collection, immediate=True, attributes=lists)), OK)
    page = ended(osd, collection)
    assert page.ended == CHECK_CONDITION
    assert page.sense is not None
    assert (page.sense.sense_key, page.sense.asc) == (5, 0x26)
    assert bad.id in page.sense.attributes
    osd.set_member_attributes(collection, [RED], immediate=True)
    assert ended(osd, collection).sense is None, "the next command's page"


def test_page_form(osd: Commands, collection: ObjectRef) -> None:
    """The page is read only."""
    lists = AttributeLists((), (AttributeValue(Page.COLLECTION_TRACKING, 2, b"\0\0"),))
    reply = osd.reply(rq.set_attributes(collection, attributes=lists))
    assert reply.response.status == CHECK_CONDITION
    pages = AttributePage(Page.COLLECTION_TRACKING, 64)
    check(osd.reply(rq.get_attributes(collection, attributes=pages)), OK)


# ---- held between two steps ----


@dataclass
class Held:
    """A harness whose long commands wait after each step."""

    harness: Harness
    gate: Path

    @property
    def osd(self) -> Commands:
        return self.harness.osd

    def let_go(self) -> None:
        self.gate.unlink()

    def populate(self, count: int = MANY) -> ObjectRef:
        """A linked collection with so many members."""
        pid = self.osd.create_partition()
        collection = self.osd.create_collection(pid)
        for left in range(count, 0, -4096):
            self.osd.create_many(pid, min(left, 4096), attributes=[membership(collection)])
        return collection

    def first_step(self, collection: ObjectRef, action: int, done: int | None = STEP) -> None:
        """Wait until it has been done."""
        until(lambda: self.osd.tracking(collection).done == done)
        page = self.osd.tracking(collection)
        assert (page.active, page.ended) == (action, 0xFFFF)

    def red(self, collection: ObjectRef) -> int:
        found = self.osd.get_member_attributes(collection, [RED.id])
        return sum(each.attributes[0].value == b"red" for each in found)

    def start(self, request: Request) -> Pending:
        return Pending(self.osd, request)


class Pending:
    """A request under way on the harness."""

    def __init__(self, osd: Commands, request: Request) -> None:
        self.pending = osd.submit(request)
        self.tag: int = self.pending.pending.tag  # type: ignore[attr-defined]

    def reply(self) -> Reply:
        return self.pending.reply()


@pytest.fixture(params=["bdb", "memory"])
def held(
    request: pytest.FixtureRequest, tmp_path: Path, make_harness: MakeHarness
) -> Iterator[Held]:
    gate = tmp_path / "hold"
    gate.touch()
    options: dict[str, object] = {"hold": gate}
    if request.param == "memory":
        options["memory"] = 1
    yield Held(make_harness(**options), gate)
    gate.unlink(missing_ok=True)


@pytest.fixture
def kept(tmp_path: Path, make_harness: MakeHarness) -> Iterator[Held]:
    """The same on disk only, to be killed."""
    gate = tmp_path / "hold"
    gate.touch()
    yield Held(make_harness(hold=gate), gate)
    gate.unlink(missing_ok=True)


def set_red(collection: ObjectRef, immediate: bool = False) -> Request:
    lists = AttributeLists((), (RED,))
    return rq.set_member_attributes(collection, immediate, attributes=lists)


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
        assert held.osd.get_attribute(ref(collection.partition_id, 0x1_0001), *id_(RED)) == b"red"
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
    """What would change the members, or copy them, is refused; what reads goes on."""
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
    """64 at a time; then BUSY, and nothing has happened."""
    pid = held.osd.create_partition()
    made = [held.osd.create_collection(pid) for _ in range(66)]
    statuses = [held.osd.reply(set_red(each, True)).response.status for each in made]
    assert statuses == [0] * 64 + [BUSY] * 2
    assert not held.osd.tracking(made[65]).active
    held.let_go()
    for each in made[:64]:
        assert ended(held.osd, each).ended_well
    held.osd.set_member_attributes(made[65], [RED], immediate=True)


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


def test_format_ends_commands(held: Held) -> None:
    collection = held.populate()
    check(held.osd.reply(set_red(collection, True)), OK)
    held.let_go()
    check(held.osd.reply(rq.format_osd()), OK)
    other = held.populate(5)
    held.osd.set_member_attributes(other, [RED], immediate=True)
    assert ended(held.osd, other).ended_well


# ---- aborted ----


def abort(held: Held, command: Pending) -> None:
    """ABORT TASK, and see that it was."""
    answer = held.osd.perform_task_management(TaskManagement.ABORT_TASK, command.tag)
    assert answer.response == 0
    assert command.reply().response.status == TASK_ABORTED


def check_aborted(held: Held, collection: ObjectRef, done: int = STEP) -> None:
    page = held.osd.tracking(collection)
    assert (page.active, page.ended, page.sense) == (0, TASK_ABORTED, None)
    assert page.done == done


def test_abort_set_members(held: Held) -> None:
    """What was committed stays; the command may be repeated."""
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


# ---- killed ----


@pytest.mark.parametrize("action", [SET_MEMBERS, REMOVE_MEMBERS, REMOVE, QUERY, CREATE])
def test_goes_on_after_kill(kept: Held, action: int) -> None:
    """GOOD was said: after a restart it goes on where it was, and ends well."""
    collection = kept.populate()
    pid = collection.partition_id
    tracker = ref(pid, 0x5_0000)
    if action == QUERY:
        kept.osd.create_tracking_collection(pid, tracker.object_id)
    request = {
        SET_MEMBERS: set_red(collection, True),
        REMOVE_MEMBERS: rq.remove_member_objects(collection, True),
        REMOVE: replace(rq.remove_collection(collection, with_members=True), bits11=IMMED_TR | 1),
        QUERY: rq.query_into(collection, [], tracker.object_id, immediate=True),
        CREATE: replace(create_tracking(pid, 0x5_0000, collection.object_id), bits11=IMMED_TR),
    }[action]
    if action not in (QUERY, CREATE):
        tracker = collection
    check(kept.osd.reply(request), OK)
    assert kept.osd.tracking(tracker).active == action
    kept.harness.kill()
    kept.harness.restart()
    page = kept.osd.tracking(tracker)
    assert (page.active, page.ended) == (action, 0xFFFF)
    kept.let_go()
    if action == REMOVE:
        until(lambda: kept.osd.list_collections(pid) == [])
        assert len(kept.osd.list_objects(pid)) == MANY
        return
    page = ended(kept.osd, tracker)
    assert page.ended_well
    assert (page.percent, page.done, page.missing_skipped) == (100, MANY, 0)
    if action == SET_MEMBERS:
        assert kept.red(collection) == MANY
    elif action == REMOVE_MEMBERS:
        assert kept.osd.list_objects(pid) == []
    else:
        assert kept.osd.list_members(tracker) == kept.osd.list_members(collection)


def test_killed_between_steps(kept: Held) -> None:
    """Wherever it is hit: every member is set once all is said and done, none counts twice."""
    kept.let_go()
    collection = kept.populate(12 * STEP)
    check(kept.osd.reply(set_red(collection, True)), OK)
    until(lambda: (kept.osd.tracking(collection).done or 0) >= STEP)
    kept.harness.kill()
    kept.harness.restart()
    page = ended(kept.osd, collection)
    assert page.ended_well
    assert page.done == kept.red(collection) == 12 * STEP


@pytest.mark.parametrize("at", [60, 90, 130, 200, 1500, 5000, 9000])
def test_killed_at_a_store_call(make_harness: MakeHarness, at: int) -> None:
    """Before, in and after the acceptance, in a step, between two: if it was accepted, it is done."""
    first = make_harness()
    held = Held(first, Path())
    collection = held.populate(STEP + 100)
    first.finish()
    second = make_harness(fault=at, fault_kill=1)
    accepted = False
    try:
        accepted = second.osd.reply(set_red(collection, True)).error is None
        ended(second.osd, collection)
        until(lambda: second.osd.reply(rq.list_objects()).error is not None)
    except Unreachable:
        second.killed = True
    assert second.killed, "the call came"
    second.transport.close()
    first.start()
    page = ended(first.osd, collection)
    assert page.ended == 0
    red = Held(first, Path()).red(collection)
    assert red == (page.done or 0)
    assert red in ((STEP + 100,) if accepted else (0, STEP + 100))


def test_ends_in_good_order(kept: Held) -> None:
    """A target that is told to end leaves the rest for the next start."""
    collection = kept.populate()
    check(kept.osd.reply(set_red(collection, True)), OK)
    kept.harness.restart()
    assert kept.osd.tracking(collection).active == SET_MEMBERS
    kept.let_go()
    assert ended(kept.osd, collection).done == MANY


def test_unanswered_command_after_kill(kept: Held) -> None:
    """Nobody waits for it any more: the page says that it did not finish."""
    collection = kept.populate()
    command = kept.start(set_red(collection))
    kept.first_step(collection, SET_MEMBERS)
    kept.harness.kill()
    with pytest.raises(Unreachable):
        command.reply()
    kept.harness.restart()
    check_aborted(kept, collection)
    kept.let_go()
    assert kept.red(collection) == STEP
    kept.osd.set_member_attributes(collection, [RED])
    assert kept.red(collection) == MANY


def test_store_of_the_previous_release(kept: Held, tmp_path: Path) -> None:
    """It has no commands.db: it is made."""
    collection = kept.populate(5)
    kept.harness.finish()
    (tmp_path / "store" / "db" / "commands.db").unlink()
    kept.harness.start()
    kept.let_go()
    kept.osd.set_member_attributes(collection, [RED], immediate=True)
    assert ended(kept.osd, collection).done == 5
