# SPDX-License-Identifier: GPL-2.0-or-later
"""CREATE, also of many objects at once, CREATE AND WRITE and REMOVE (osd2-wire 3.2)."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, CURRENT_PARTITION_ID, CURRENT_TYPE, Page
from pyosd.wire.cdb import AttributeLists, AttributePage, SetOne
from tests.expect import (
    CDB_FIELD,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    OBJECT_TAKEN,
    OK,
    check,
    mangled,
)

COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
LENGTH = AttributeId(Page.USER_INFORMATION, 0x82)
COUNT_MAX = 4096


def test_target_picks_consecutive_ids(osd: Commands, pid: PartitionId) -> None:
    assert [osd.create(pid).object_id for _ in range(3)] == [0x10000, 0x10001, 0x10002]


def test_target_goes_on_behind_the_highest(osd: Commands, pid: PartitionId) -> None:
    osd.create(pid, 0x2_0000)
    assert osd.create(pid).object_id == 0x2_0001


def test_ids_of_removed_objects_are_not_given_again(osd: Commands, pid: PartitionId) -> None:
    first = osd.create(pid)
    osd.remove(first)
    assert osd.create(pid).object_id > first.object_id


@pytest.mark.parametrize("requested", [0x10000, 0x1818_1818, 2**63, 2**64 - 2])
def test_requested_id(osd: Commands, pid: PartitionId, requested: int) -> None:
    assert osd.create(pid, requested) == ref(pid, requested)
    assert osd.list_objects(pid) == [ref(pid, requested)]


def test_highest_id(osd: Commands, pid: PartitionId) -> None:
    """An object with the highest id does not use up all ids: free ones are still found."""
    osd.create(pid, 2**64 - 2)
    assert osd.create(pid).object_id == 0x10000
    osd.remove(ref(pid, 2**64 - 2))
    assert osd.create(pid).object_id == 0x10001


def test_absent_partition(osd: Commands) -> None:
    check(osd.reply(rq.create(0x7777_0000_0000)), NO_PARTITION)
    check(osd.reply(rq.create(0)), NO_PARTITION)


def test_duplicate_id(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.create(obj.partition_id, obj.object_id)), OBJECT_TAKEN)


def test_id_of_a_collection(osd: Commands, collection: ObjectRef) -> None:
    """Collections and user objects share one name space."""
    check(osd.reply(rq.create(collection.partition_id, collection.object_id)), OBJECT_TAKEN)


@pytest.mark.parametrize("requested", [1, 0x1001, 0xFFFF])
def test_reserved_id(osd: Commands, pid: int, requested: int) -> None:
    check(osd.reply(rq.create(pid, requested)), OBJECT_TAKEN)


def test_same_id_in_two_partitions_is_two_objects(osd: Commands, pid: PartitionId) -> None:
    other = osd.create_partition()
    one, two = osd.create(pid, 0x10000), osd.create(PartitionId(other), 0x10000)
    osd.write(one, 0, b"one")
    osd.write(two, 0, b"two")
    assert bytes(osd.read(one, 0, 3)) == b"one"
    osd.remove(two)
    assert bytes(osd.read(one, 0, 3)) == b"one"
    osd.remove_partition(other)


def test_new_object_is_empty(osd: Commands, obj: ObjectRef) -> None:
    assert bytes(osd.read(obj, 0, 10)) == b""
    assert osd.get_attribute(obj, LENGTH.page, LENGTH.number) == bytes(8)


def test_set_and_get_in_list_format(osd: Commands, pid: int) -> None:
    lists = AttributeLists((COLOUR.id, CURRENT_OBJECT_ID, CURRENT_TYPE, LENGTH), (COLOUR,))
    reply = check(osd.reply(rq.create(pid, attributes=lists)), OK)
    assert reply.attribute(COLOUR.id) == COLOUR
    assert reply.attribute(CURRENT_OBJECT_ID).uint == 0x10000
    assert reply.attribute(CURRENT_TYPE).value == bytes([ObjectType.USER_OBJECT])
    assert reply.attribute(LENGTH).value == bytes(8)


def test_set_and_get_in_page_format(osd: Commands, pid: int) -> None:
    request = rq.create(pid, attributes=AttributePage(Page.CURRENT_COMMAND, 76, COLOUR))
    page = check(osd.reply(request), OK).page
    assert page is not None
    assert page.body[32] == ObjectType.USER_OBJECT
    assert int.from_bytes(page.body[36:44], "big") == pid
    assert int.from_bytes(page.body[44:52], "big") == 0x10000
    assert osd.get_attribute(ref(pid, 0x10000), COLOUR.page, COLOUR.number) == COLOUR.value


def test_set_in_the_cdb(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.create(pid, 0x10000, attributes=SetOne(COLOUR))), OK)
    assert osd.get_attribute(ref(pid, 0x10000), COLOUR.page, COLOUR.number) == COLOUR.value


def test_failed_attribute_leaves_no_object(osd: Commands, pid: PartitionId) -> None:
    bad = AttributeValue(Page.USER_TIMESTAMPS, 1, bytes(6))
    reply = osd.reply(rq.create(pid, attributes=AttributeLists((), (COLOUR, bad))))
    check(reply, LIST_FIELD, bad.id)
    assert osd.list_objects(pid) == []


# ---- many at once ----


def test_many_have_consecutive_ids(osd: Commands, pid: PartitionId) -> None:
    osd.create(pid, 0x2_0000)
    made = osd.create_many(pid, 10)
    assert [each.object_id for each in made] == list(range(0x2_0001, 0x2_000B))
    assert osd.list_objects(pid)[1:] == made


def test_many_with_more_attributes_than_one_transaction_takes(
    osd: Commands, pid: PartitionId
) -> None:
    values = [AttributeValue(Page.APPLICATION, number, bytes(60_000)) for number in (1, 2)]
    lists = AttributeLists((), tuple(values))
    check(osd.reply(rq.create(pid, count=COUNT_MAX, attributes=lists)), CDB_FIELD.at(32))
    assert osd.list_objects(pid) == []
    check(osd.reply(rq.create(pid, count=2, attributes=lists)), OK)


def test_current_command_holds_the_highest_id_of_many(osd: Commands, pid: int) -> None:
    request = rq.create(pid, 0, 5, attributes=AttributePage(Page.CURRENT_COMMAND, 76))
    page = check(osd.reply(request), OK).page
    assert page is not None
    assert int.from_bytes(page.body[44:52], "big") == 0x10004


def test_many_with_attributes_give_a_group_each(osd: Commands, pid: int) -> None:
    lists = AttributeLists((COLOUR.id, LENGTH), (COLOUR,), 4096)
    reply = check(osd.reply(rq.create(pid, 0, 3, attributes=lists)), OK)
    members = reply.retrieved.members
    assert [each.object_id for each in members] == [0x10000, 0x10001, 0x10002]
    for each in members:
        assert each.object_type == ObjectType.USER_OBJECT
        assert each.attributes == (COLOUR, AttributeValue(*_id(LENGTH), bytes(8)))


def _id(attribute: AttributeId) -> tuple[int, int]:
    return attribute.page, attribute.number


def test_count_0_means_one(osd: Commands, pid: PartitionId) -> None:
    check(osd.reply(rq.create(pid, 0, 0)), OK)
    assert osd.list_objects(pid) == [ref(pid, 0x10000)]


def test_many_with_a_requested_id(osd: Commands, pid: PartitionId) -> None:
    reply = check(osd.reply(rq.create(pid, 0x10000, 2)), CDB_FIELD)
    assert reply.sense is not None
    assert reply.sense.field_pointer in (24, 32)
    assert osd.list_objects(pid) == []


def test_as_many_as_there_may_be(osd: Commands, pid: PartitionId) -> None:
    made = osd.create_many(pid, COUNT_MAX)
    assert len(made) == COUNT_MAX
    assert osd.list_objects(pid) == made


def test_more_than_there_may_be(osd: Commands, pid: PartitionId) -> None:
    check(osd.reply(rq.create(pid, 0, COUNT_MAX + 1)), CDB_FIELD.at(32))
    check(osd.reply(rq.create(pid, 0, 0xFFFF)), CDB_FIELD.at(32))
    assert osd.list_objects(pid) == []


def test_many_in_page_format_of_another_page(osd: Commands, pid: PartitionId) -> None:
    request = rq.create(pid, 0, 2, attributes=AttributePage(Page.USER_TIMESTAMPS, 64))
    check(osd.reply(request), CDB_FIELD)
    assert osd.list_objects(pid) == []


def test_failed_attribute_of_many_leaves_none(osd: Commands, pid: PartitionId) -> None:
    bad = AttributeValue(Page.USER_INFORMATION, 0x2, bytes(8))
    request = rq.create(pid, 0, 10, attributes=AttributeLists((), (COLOUR, bad)))
    check(osd.reply(request), LIST_FIELD, bad.id)
    assert osd.list_objects(pid) == []


# ---- CREATE AND WRITE ----


def test_create_and_write(osd: Commands, pid: PartitionId) -> None:
    obj = osd.create_and_write(pid, b"content", attributes=[COLOUR])
    assert obj == ref(pid, 0x10000)
    assert bytes(osd.read(obj, 0, 100)) == b"content"
    assert osd.get_attribute(obj, COLOUR.page, COLOUR.number) == COLOUR.value


def test_create_and_write_at_an_offset(osd: Commands, pid: PartitionId) -> None:
    obj = osd.create_and_write(pid, b"tail", start=1000, requested_id=0x5_0000)
    assert obj.object_id == 0x5_0000
    assert bytes(osd.read(obj, 0, 2000)) == bytes(1000) + b"tail"


def test_create_and_write_nothing(osd: Commands, pid: PartitionId) -> None:
    obj = osd.create_and_write(pid, b"")
    assert osd.get_attribute(obj, LENGTH.page, LENGTH.number) == bytes(8)


def test_create_and_write_duplicate(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"mine")
    request = rq.create_and_write(obj.partition_id, obj.object_id, 0, b"theirs")
    check(osd.reply(request), OBJECT_TAKEN)
    assert bytes(osd.read(obj, 0, 100)) == b"mine"


def test_create_and_write_absent_partition(osd: Commands) -> None:
    check(osd.reply(rq.create_and_write(0x7777_0000_0000, 0, 0, b"x")), NO_PARTITION)


def test_create_and_write_failed_attribute_leaves_nothing(osd: Commands, pid: PartitionId) -> None:
    bad = AttributeValue(Page.USER_INFORMATION, 0x1, bytes(8))
    lists = AttributeLists((), (COLOUR, bad))
    request = rq.create_and_write(pid, 0, 0, b"data", attributes=lists)
    check(osd.reply(request), LIST_FIELD, bad.id)
    assert osd.list_objects(pid) == []


def test_create_and_write_data_out_short(osd: Commands, pid: PartitionId) -> None:
    request = rq.create_and_write(pid, 0, 0, b"12345678")
    check(mangled(osd, request, {}, data_out=b"1234567"), CDB_FIELD.at(32))
    assert osd.list_objects(pid) == []


# ---- REMOVE ----


def test_remove(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"x" * 10_000)
    osd.remove(obj)
    check(osd.reply(rq.read(obj, 0, 1)), NO_OBJECT)
    check(osd.reply(rq.remove(obj)), NO_OBJECT)
    assert osd.list_objects(obj.partition_id) == []


def test_remove_absent(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.remove(ref(pid, 0x1_2345))), NO_OBJECT)
    check(osd.reply(rq.remove(ref(0x7777_0000_0000, 0x1_2345))), NO_PARTITION)


def test_remove_a_collection(osd: Commands, collection: ObjectRef) -> None:
    """REMOVE is for user objects."""
    check(osd.reply(rq.remove(collection)), NO_OBJECT)
    assert collection in osd.list_collections(collection.partition_id)


def test_remove_without_object_id(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.remove(ref(pid))), NO_OBJECT)
    assert pid in osd.list_partitions()


def test_attributes_are_processed_before_the_removal(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    lists = AttributeLists((COLOUR.id, LENGTH, CURRENT_PARTITION_ID), (COLOUR,))
    reply = check(osd.reply(rq.remove(obj, attributes=lists)), OK)
    assert reply.attribute(COLOUR.id) == COLOUR
    assert reply.attribute(LENGTH).uint == 5
    check(osd.reply(rq.get_attributes(obj)), NO_OBJECT)


def test_failed_attribute_keeps_the_object(osd: Commands, obj: ObjectRef) -> None:
    bad = AttributeValue(Page.USER_INFORMATION, 0x1, bytes(8))
    reply = osd.reply(rq.remove(obj, attributes=AttributeLists((), (COLOUR, bad))))
    check(reply, LIST_FIELD, bad.id)
    assert osd.get_attribute(obj, COLOUR.page, COLOUR.number) == b""


def test_object_made_again_remembers_nothing(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"old" * 1000)
    osd.set_attributes(obj, [COLOUR])
    osd.remove(obj)
    osd.create(obj.partition_id, obj.object_id)
    assert bytes(osd.read(obj, 0, 10)) == b""
    osd.write(obj, 10, b"new")
    assert bytes(osd.read(obj, 0, 100)) == bytes(10) + b"new"
    assert osd.get_attribute(obj, COLOUR.page, COLOUR.number) == b""
