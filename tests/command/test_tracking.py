# SPDX-License-Identifier: GPL-2.0-or-later
"""Tracking collections and IMMED_TR: CREATE USER TRACKING COLLECTION, the Command Tracking page,
commands that go on after GOOD (osd2-wire 3.2, 3.9, 3.10, 5.16; docs/commands.md)."""

from __future__ import annotations

from dataclasses import replace

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, Page
from pyosd.wire.cdb import AttributeLists, AttributePage, Descriptor
from tests.command.held import IMMED_TR, RED, create_tracking, ended
from tests.command.test_collection import ABSENT, membership
from tests.expect import (
    CDB_FIELD,
    CHECK_CONDITION,
    NO_OBJECT,
    NO_PARTITION,
    OBJECT_TAKEN,
    OK,
    check,
)
from tests.waiting import until

EVERYTHING = 0x1000


# ---- CREATE USER TRACKING COLLECTION ----


@pytest.fixture
def members(osd: Commands, collection: ObjectRef) -> list[ObjectRef]:
    return osd.create_many(collection.partition_id, 5, attributes=[membership(collection)])


def test_type(osd: Commands, pid: PartitionId) -> None:
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


def test_requested_id(osd: Commands, pid: PartitionId) -> None:
    assert osd.create_tracking_collection(pid, 0x5_0000) == ref(pid, 0x5_0000)
    check(osd.reply(create_tracking(pid, 0x5_0000)), OBJECT_TAKEN)
    for reserved in (1, 0x1000, 0x1001, 0xFFFF):
        check(osd.reply(create_tracking(pid, reserved)), OBJECT_TAKEN)


def test_absent_partition(osd: Commands) -> None:
    check(osd.reply(create_tracking(0x7777_0000_0000)), NO_PARTITION)


@pytest.mark.parametrize("source", [ABSENT, 1, 0x1002])
def test_absent_source(osd: Commands, pid: PartitionId, source: int) -> None:
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
    assert page.members == 0
    assert osd.list_objects(collection.partition_id) == []


def test_query_at_once(osd: Commands, collection: ObjectRef, members: list[ObjectRef]) -> None:
    matches = osd.create_tracking_collection(collection.partition_id)
    osd.query_into(collection, [], matches, immediate=True)
    page = ended(osd, matches)
    assert page.ended_well
    assert (page.percent, page.done) == (100, 5)
    assert page.members == 5
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
