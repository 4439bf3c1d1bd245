# SPDX-License-Identifier: GPL-2.0-or-later
"""The well-known collection 1000h: every user object of its partition (osd2-wire 1.2)."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from tests.expect import (
    CDB_FIELD,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    OBJECT_TAKEN,
    check,
)

OBJECTS_COLLECTION = 0x1000
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
MEMBERS = AttributeId(Page.COLLECTION_TRACKING, 0x10)


@pytest.fixture
def everything(pid: int) -> ObjectRef:
    return ref(pid, OBJECTS_COLLECTION)


def test_empty_in_a_new_partition(osd: Commands, everything: ObjectRef) -> None:
    assert osd.list_members(everything) == []


def test_absent_partition(osd: Commands) -> None:
    reply = osd.reply(rq.list_collection(ref(0x7777_0000_0000, OBJECTS_COLLECTION), 4096))
    check(reply, NO_PARTITION)


def test_lists_user_objects_only(
    osd: Commands, everything: ObjectRef, obj: ObjectRef, collection: ObjectRef
) -> None:
    second = osd.create(obj.partition_id)
    assert osd.list_members(everything) == [obj, second]
    osd.remove(obj)
    assert osd.list_members(everything) == [second]


def test_is_no_object_of_the_partition(
    osd: Commands, pid: PartitionId, everything: ObjectRef
) -> None:
    count = osd.get_attribute(ref(pid), Page.PARTITION_INFORMATION, 0xC1)
    assert count == bytes(8)
    assert everything not in osd.list_collections(pid)
    osd.list_members(everything)
    osd.remove_partition(pid)


def test_pages_are_readable(osd: Commands, everything: ObjectRef, obj: ObjectRef) -> None:
    page = Page.COLLECTION_INFORMATION
    assert osd.get_attribute(everything, page, 1) == everything.partition_id.to_bytes(8, "big")
    assert osd.get_attribute(everything, page, 2) == everything.object_id.to_bytes(8, "big")
    assert osd.get_attribute(everything, page, 0xA) == b"\xef", "the target keeps its members"
    assert osd.get_attribute(everything, MEMBERS.page, MEMBERS.number) == (1).to_bytes(8, "big")
    assert len(osd.get_attribute(everything, Page.COLLECTION_TIMESTAMPS, 1)) == 6


@pytest.mark.parametrize(
    "value",
    [
        AttributeValue(Page.COLLECTION_INFORMATION, 0x9, b"mine"),
        AttributeValue(0x6001_0000, 1, b"mine"),
        AttributeValue(Page.COLLECTION_TRACKING, 1, b"\1"),
    ],
)
def test_attributes_are_not_settable(
    osd: Commands, everything: ObjectRef, value: AttributeValue
) -> None:
    lists = AttributeLists((), (value,))
    check(osd.reply(rq.set_attributes(everything, attributes=lists)), LIST_FIELD, value.id)
    assert osd.get_attribute(everything, value.page, value.number) in (b"", b"\0")


def test_cannot_be_joined(osd: Commands, everything: ObjectRef, obj: ObjectRef) -> None:
    join = AttributeValue(Page.USER_COLLECTIONS, 1, everything.object_id.to_bytes(8, "big"))
    lists = AttributeLists((), (join,))
    check(osd.reply(rq.set_attributes(obj, attributes=lists)), LIST_FIELD, join.id)


def test_cannot_be_made(osd: Commands, everything: ObjectRef) -> None:
    request = rq.create_collection(everything.partition_id, everything.object_id)
    check(osd.reply(request), OBJECT_TAKEN)


@pytest.mark.parametrize("with_members", [False, True])
def test_cannot_be_removed(osd: Commands, everything: ObjectRef, with_members: bool) -> None:
    check(osd.reply(rq.remove_collection(everything, with_members)), CDB_FIELD.at(24))


def test_remove_member_objects_is_refused(
    osd: Commands, everything: ObjectRef, obj: ObjectRef
) -> None:
    """Only REMOVE PARTITION empties a partition."""
    check(osd.reply(rq.remove_member_objects(everything)), CDB_FIELD.at(24))
    assert osd.list_objects(obj.partition_id) == [obj]


def test_is_no_user_object(osd: Commands, everything: ObjectRef) -> None:
    check(osd.reply(rq.read(everything, 0, 1)), CDB_FIELD.at(24))


def test_member_attributes(osd: Commands, everything: ObjectRef, obj: ObjectRef) -> None:
    second = osd.create(obj.partition_id)
    osd.set_member_attributes(everything, [COLOUR])
    assert osd.get_attribute(second, COLOUR.page, COLOUR.number) == COLOUR.value
    groups = osd.get_member_attributes(everything, [COLOUR.id])
    assert [each.object_id for each in groups] == [obj.object_id, second.object_id]
    tracked = osd.get_attribute(everything, Page.COLLECTION_TRACKING, 0x11)
    assert tracked == (2).to_bytes(8, "big")


def test_source_of_a_tracking_collection(
    osd: Commands, everything: ObjectRef, obj: ObjectRef
) -> None:
    second = osd.create(obj.partition_id)
    made = osd.create_tracking_collection(obj.partition_id, source=everything.object_id)
    assert osd.list_members(made) == [obj, second]
    osd.remove(obj)
    assert osd.list_members(made) == [second]
    assert osd.get_attribute(made, MEMBERS.page, MEMBERS.number) == (1).to_bytes(8, "big")


def test_query_of_everything(osd: Commands, everything: ObjectRef, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [COLOUR])
    other = osd.create(obj.partition_id)
    criterion = rq.Criterion(COLOUR.page, COLOUR.number, b"green", b"green")
    assert osd.query(everything, [criterion]) == [obj]
    matches = osd.create_tracking_collection(obj.partition_id)
    osd.query_into(everything, [], matches)
    assert osd.list_members(matches) == [obj, other]
    osd.query_into(everything, [criterion], matches)
    assert osd.list_members(matches) == [obj], "its old members are let go"


def test_is_no_collection_of_matches(osd: Commands, everything: ObjectRef, obj: ObjectRef) -> None:
    source = osd.create_tracking_collection(obj.partition_id)
    request = rq.query_into(source, [], everything.object_id)
    check(osd.reply(request), CDB_FIELD.at(40))


def test_other_well_known_ids_are_absent(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.list_collection(ref(pid, 0x1002), 4096)), NO_OBJECT)
