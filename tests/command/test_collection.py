# SPDX-License-Identifier: GPL-2.0-or-later
"""Collections: CREATE, REMOVE, membership by the Collections page, member commands
(osd2-wire 1.3, 3.2, 3.10, 5.14)."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, CURRENT_TYPE, LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, AttributePage, SetOne
from pyosd.wire.reply import Reply
from tests.expect import (
    CDB_FIELD,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    NOT_EMPTY,
    OBJECT_TAKEN,
    OK,
    check,
)

COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
ABSENT = 0x1_2345


def membership(collection: ObjectRef | None, number: int = 1) -> AttributeValue:
    value = b"" if collection is None else collection.object_id.to_bytes(8, "big")
    return AttributeValue(Page.USER_COLLECTIONS, number, value)


def set_(osd: Commands, obj: ObjectRef, *values: AttributeValue) -> Reply:
    return osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), values)))


# ---- life cycle ----


def test_target_picks_the_id(osd: Commands, pid: PartitionId) -> None:
    obj = osd.create(pid)
    assert osd.create_collection(pid).object_id == obj.object_id + 1


def test_requested_id(osd: Commands, pid: PartitionId) -> None:
    assert osd.create_collection(pid, 0x5_0000) == ref(pid, 0x5_0000)


def test_id_of_a_user_object(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.create_collection(obj.partition_id, obj.object_id)), OBJECT_TAKEN)


def test_duplicate_id(osd: Commands, collection: ObjectRef) -> None:
    request = rq.create_collection(collection.partition_id, collection.object_id)
    check(osd.reply(request), OBJECT_TAKEN)


@pytest.mark.parametrize("requested", [1, 0x1000, 0x1001, 0x1082, 0xFFFF])
def test_reserved_id(osd: Commands, pid: int, requested: int) -> None:
    check(osd.reply(rq.create_collection(pid, requested)), OBJECT_TAKEN)


@pytest.mark.parametrize("well_known", [0x1000, 0x1001, 0x1081, 0xFFFF])
@pytest.mark.parametrize("with_members", [False, True])
def test_remove_well_known(osd: Commands, pid: int, well_known: int, with_members: bool) -> None:
    """The target's own collections stay, the jobs collection among them."""
    request = rq.remove_collection(ref(pid, well_known), with_members)
    check(osd.reply(request), CDB_FIELD.at(24))


def test_absent_partition(osd: Commands) -> None:
    check(osd.reply(rq.create_collection(0x7777_0000_0000)), NO_PARTITION)


def test_attributes_set_with_the_creation(osd: Commands, pid: int) -> None:
    name = AttributeValue(Page.COLLECTION_INFORMATION, 0x9, b"blue ones")
    kind = AttributeId(Page.COLLECTION_INFORMATION, 0xA)
    lists = AttributeLists((name.id, kind, CURRENT_OBJECT_ID, CURRENT_TYPE), (name,))
    reply = check(osd.reply(rq.create_collection(pid, attributes=lists)), OK)
    assert reply.attribute(name.id) == name
    assert reply.attribute(kind).value == b"\0", "LINKED"
    assert reply.attribute(CURRENT_TYPE).uint == ObjectType.COLLECTION


def test_failed_attribute_leaves_no_collection(osd: Commands, pid: PartitionId) -> None:
    before = osd.list_collections(pid)
    bad = AttributeValue(Page.COLLECTION_INFORMATION, 0x2, bytes(8))
    reply = osd.reply(rq.create_collection(pid, attributes=AttributeLists((), (bad,))))
    check(reply, LIST_FIELD, bad.id)
    assert osd.list_collections(pid) == before


def test_information(osd: Commands, collection: ObjectRef) -> None:
    page = Page.COLLECTION_INFORMATION
    assert osd.get_attribute(collection, page, 1) == collection.partition_id.to_bytes(8, "big")
    assert osd.get_attribute(collection, page, 2) == collection.object_id.to_bytes(8, "big")


def test_remove_empty(osd: Commands, collection: ObjectRef) -> None:
    osd.remove_collection(collection)
    assert collection not in osd.list_collections(collection.partition_id)
    check(osd.reply(rq.remove_collection(collection)), NO_OBJECT)


def test_remove_with_members_is_refused(
    osd: Commands, collection: ObjectRef, obj: ObjectRef
) -> None:
    osd.set_attributes(obj, [membership(collection)])
    check(osd.reply(rq.remove_collection(collection)), NOT_EMPTY)
    assert osd.list_members(collection) == [obj]


def test_remove_by_force_keeps_the_members(
    osd: Commands, collection: ObjectRef, obj: ObjectRef
) -> None:
    osd.set_attributes(obj, [membership(collection)])
    osd.write(obj, 0, b"stays")
    osd.remove_collection(collection, with_members=True)
    assert collection not in osd.list_collections(collection.partition_id)
    assert bytes(osd.read(obj, 0, 10)) == b"stays"
    assert osd.get_attribute(obj, Page.USER_COLLECTIONS, 1) == b""


def test_remove_a_user_object_as_collection(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.remove_collection(obj, with_members=True)), NO_OBJECT)
    assert osd.list_objects(obj.partition_id) == [obj]


# ---- membership ----


def test_join_and_leave(osd: Commands, collection: ObjectRef, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [membership(collection)])
    assert osd.list_members(collection) == [obj]
    assert osd.get_attribute(obj, Page.USER_COLLECTIONS, 1) == membership(collection).value
    osd.set_attributes(obj, [membership(None)])
    assert osd.list_members(collection) == []
    assert osd.get_attribute(obj, Page.USER_COLLECTIONS, 1) == b""


def test_join_within_create(osd: Commands, collection: ObjectRef) -> None:
    obj = osd.create(collection.partition_id, attributes=[membership(collection, 7)])
    assert osd.list_members(collection) == [obj]


def test_many_join_within_create(osd: Commands, collection: ObjectRef) -> None:
    made = osd.create_many(collection.partition_id, 20, attributes=[membership(collection)])
    assert osd.list_members(collection) == made


def test_leave_by_the_cdb_format(osd: Commands, collection: ObjectRef, obj: ObjectRef) -> None:
    """OSC's tests leave a collection with CDBFMT 1 and length 0 (osd2-wire 9.1)."""
    osd.set_attributes(obj, [membership(collection)])
    request = rq.set_attributes(obj, attributes=SetOne(membership(None)))
    check(osd.reply(request), OK)
    assert osd.list_members(collection) == []


def test_same_number_replaces(osd: Commands, collection: ObjectRef, obj: ObjectRef) -> None:
    other = osd.create_collection(collection.partition_id)
    osd.set_attributes(obj, [membership(collection)])
    osd.set_attributes(obj, [membership(other)])
    assert osd.list_members(collection) == []
    assert osd.list_members(other) == [obj]


def test_in_two_collections(osd: Commands, collection: ObjectRef, obj: ObjectRef) -> None:
    other = osd.create_collection(collection.partition_id)
    osd.set_attributes(obj, [membership(collection, 1), membership(other, 2)])
    assert osd.list_members(collection) == osd.list_members(other) == [obj]


def test_same_collection_by_another_number(
    osd: Commands, collection: ObjectRef, obj: ObjectRef
) -> None:
    osd.set_attributes(obj, [membership(collection, 1)])
    reply = set_(osd, obj, membership(collection, 2))
    check(reply, LIST_FIELD, AttributeId(Page.USER_COLLECTIONS, 2))
    assert osd.list_members(collection) == [obj]


def test_join_again_by_the_same_number(
    osd: Commands, collection: ObjectRef, obj: ObjectRef
) -> None:
    osd.set_attributes(obj, [membership(collection)])
    osd.set_attributes(obj, [membership(collection)])
    assert osd.list_members(collection) == [obj]


@pytest.mark.parametrize("value", [b"\1", bytes(7), bytes(9), bytes(16)])
def test_membership_of_a_wrong_size(osd: Commands, obj: ObjectRef, value: bytes) -> None:
    wrong = AttributeValue(Page.USER_COLLECTIONS, 1, value)
    check(set_(osd, obj, wrong), LIST_FIELD, wrong.id)


def test_join_what_is_no_collection(osd: Commands, obj: ObjectRef) -> None:
    for value in (ref(obj.partition_id, ABSENT), obj, ref(obj.partition_id, 0)):
        check(set_(osd, obj, membership(value)), LIST_FIELD)


def test_join_a_collection_of_another_partition(osd: Commands, obj: ObjectRef) -> None:
    other = osd.create_partition()
    there = osd.create_collection(other, 0x9_0000)
    check(set_(osd, obj, membership(there)), LIST_FIELD)
    osd.remove_partition(other, contents=True)


def test_join_the_jobs_collection(osd: Commands, obj: ObjectRef) -> None:
    """It is of type TRACKING: the target's alone."""
    check(set_(osd, obj, membership(ref(obj.partition_id, 0x1001))), LIST_FIELD)


def test_failed_join_undoes_the_whole_list(
    osd: Commands, collection: ObjectRef, obj: ObjectRef
) -> None:
    absent = ref(obj.partition_id, ABSENT)
    check(set_(osd, obj, membership(collection), membership(absent, 2)), LIST_FIELD)
    assert osd.list_members(collection) == []


def test_page_form_lists_memberships(osd: Commands, collection: ObjectRef, obj: ObjectRef) -> None:
    other = osd.create_collection(collection.partition_id)
    osd.set_attributes(obj, [membership(collection, 1), membership(other, 5)])
    page = osd.get_page(obj, Page.USER_COLLECTIONS)
    assert page.length == 16
    assert page.body == membership(collection).value + membership(other).value


# ---- member commands ----


@pytest.fixture
def members(osd: Commands, collection: ObjectRef) -> list[ObjectRef]:
    """Five members, and one object outside."""
    made = osd.create_many(collection.partition_id, 5, attributes=[membership(collection)])
    osd.create(collection.partition_id)
    return made


def test_get_member_attributes(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    osd.set_attributes(members[1], [COLOUR])
    groups = osd.get_member_attributes(collection, [COLOUR.id])
    assert [each.object_id for each in groups] == [each.object_id for each in members]
    assert groups[1].attributes == (COLOUR,)
    assert groups[0].attributes == (AttributeValue(COLOUR.page, COLOUR.number, b""),)
    assert {each.object_type for each in groups} == {ObjectType.USER_OBJECT}


def test_get_member_attributes_truncated(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    """A group is 16 + 16 bytes here; the list length says what all would have needed."""
    lists = AttributeLists((COLOUR.id,), (), 8 + 2 * 32 + 8)
    reply = check(osd.reply(rq.get_member_attributes(collection, attributes=lists)), OK)
    assert len(reply.retrieved.members) == 2
    assert reply.retrieved.needed == 8 + 5 * 32
    assert not reply.retrieved.complete


def test_get_member_attributes_of_none(osd: Commands, collection: ObjectRef) -> None:
    assert osd.get_member_attributes(collection, [COLOUR.id]) == ()


def test_get_member_attributes_absent(osd: Commands, pid: int) -> None:
    lists = AttributeLists((COLOUR.id,))
    request = rq.get_member_attributes(ref(pid, ABSENT), attributes=lists)
    check(osd.reply(request), NO_OBJECT)


def test_get_member_attributes_of_another_kind(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    wrong = AttributeId(Page.PARTITION_INFORMATION, 9)
    request = rq.get_member_attributes(collection, attributes=AttributeLists((wrong,)))
    check(osd.reply(request), LIST_FIELD, wrong)


def test_set_member_attributes(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    osd.set_member_attributes(collection, [COLOUR])
    for each in members:
        assert osd.get_attribute(each, COLOUR.page, COLOUR.number) == COLOUR.value
    outside = osd.list_objects(collection.partition_id)[-1]
    assert osd.get_attribute(outside, COLOUR.page, COLOUR.number) == b""


def test_set_member_attributes_read_only(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    bad = AttributeValue(Page.USER_INFORMATION, 0x1, bytes(8))
    request = rq.set_member_attributes(collection, attributes=AttributeLists((), (bad,)))
    check(osd.reply(request), LIST_FIELD, bad.id)


def test_remove_member_objects(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    osd.remove_member_objects(collection)
    assert osd.list_members(collection) == []
    assert len(osd.list_objects(collection.partition_id)) == 1
    check(osd.reply(rq.read(members[0], 0, 1)), NO_OBJECT)


CAPACITY_CHANGE = AttributeId(Page.CURRENT_COMMAND, 6)


def change_told(reply: Reply) -> int:
    value = reply.attribute(CAPACITY_CHANGE).value
    return int.from_bytes(value, "big", signed=True)


def test_change_in_used_capacity(
    osd: Commands, collection: ObjectRef, members: list[ObjectRef]
) -> None:
    """A command reports its change in the used capacity of members."""
    for each in members:
        osd.write(each, 0, b"x" * 1000)
    lists = AttributeLists((CAPACITY_CHANGE,))
    longer = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, (5000).to_bytes(8, "big"))
    request = rq.set_member_attributes(
        collection, attributes=AttributeLists((CAPACITY_CHANGE,), (longer,))
    )
    told = check(osd.reply(request), OK)
    change = told.retrieved.members[0].attributes[0].value
    assert int.from_bytes(change, "big", signed=True) == len(members) * 4000
    reply = check(osd.reply(rq.remove_member_objects(collection, attributes=lists)), OK)
    assert change_told(reply) == -len(members) * 5000
    joined = osd.create(collection.partition_id, attributes=[membership(collection)])
    osd.write(joined, 0, b"stays")
    request = rq.remove_collection(collection, with_members=True, attributes=lists)
    assert change_told(check(osd.reply(request), OK)) == 0, "its members stay"


def test_more_members_than_one_transaction_takes(osd: Commands, collection: ObjectRef) -> None:
    """Member commands work in transactions of 1,024 members."""
    osd.create_many(collection.partition_id, 2500, attributes=[membership(collection)])
    osd.set_member_attributes(collection, [COLOUR])
    groups = osd.get_member_attributes(collection, [COLOUR.id])
    assert [each.attributes for each in groups] == [(COLOUR,)] * 2500
    osd.remove_member_objects(collection)
    assert osd.list_objects(collection.partition_id) == []


def test_page_format_on_a_collection(osd: Commands, collection: ObjectRef) -> None:
    request = rq.get_attributes(
        collection, attributes=AttributePage(Page.COLLECTION_TIMESTAMPS, 64)
    )
    page = check(osd.reply(request), OK).page
    assert page is not None
    assert page.length == 0x1E
