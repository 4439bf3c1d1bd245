# SPDX-License-Identifier: GPL-2.0-or-later
"""LIST and LIST COLLECTION: headers, continuation, attributes, truncation (osd2-wire 3.8)."""

from __future__ import annotations

import struct
from collections.abc import Callable

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, AttributePage, Request
from pyosd.wire.list_data import decode_list
from pyosd.wire.reply import Reply
from tests.expect import (
    CDB_FIELD,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    OK,
    check,
    mangled,
)

COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
HEADER = 24


def header(reply: Reply) -> tuple[int, int, int, int]:
    """Additional length, continuation id, list identifier, object descriptor format."""
    additional, continuation, identifier, last = struct.unpack_from(">QQI3xB", reply.data)
    return additional, continuation, identifier, last >> 2


@pytest.fixture
def ten(osd: Commands, pid: PartitionId) -> list[ObjectRef]:
    """Ten user objects with gaps between their ids."""
    return [osd.create(pid, 0x2_0000 + 7 * each) for each in range(10)]


def test_empty_partition(osd: Commands, pid: int) -> None:
    reply = check(osd.reply(rq.list_objects(pid, 4096)), OK)
    assert header(reply) == (16, 0, 0, 0x21)


def test_user_objects_ascending(osd: Commands, pid: int, ten: list[ObjectRef]) -> None:
    reply = check(osd.reply(rq.list_objects(pid, 4096)), OK)
    assert header(reply) == (16 + 80, 0, 0, 0x21)
    assert decode_list(reply.data).ids == tuple(each.object_id for each in ten)


def test_collections_are_not_among_user_objects(
    osd: Commands, pid: PartitionId, obj: ObjectRef, collection: ObjectRef
) -> None:
    assert osd.list_objects(pid) == [obj]
    assert collection in osd.list_collections(pid)
    assert obj not in osd.list_collections(pid)


def test_partitions(osd: Commands, pid: int) -> None:
    reply = check(osd.reply(rq.list_objects(0, 1 << 16)), OK)
    assert header(reply)[3] == 0x01
    ids = decode_list(reply.data).ids
    assert pid in ids
    assert list(ids) == sorted(ids)


def test_absent_partition(osd: Commands) -> None:
    check(osd.reply(rq.list_objects(0x7777_0000_0000, 4096)), NO_PARTITION)
    check(osd.reply(rq.list_collection(ref(0x7777_0000_0000), 4096)), NO_PARTITION)


def test_absent_collection(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.list_collection(ref(pid, 0x1_2345), 4096)), NO_OBJECT)


def test_list_collection_of_a_user_object(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.list_collection(obj, 4096)), NO_OBJECT)


def test_allocation_0_transfers_nothing(osd: Commands, pid: int, ten: list[ObjectRef]) -> None:
    reply = check(osd.reply(rq.list_objects(pid, 0)), OK)
    assert reply.response.data_in.nbytes == 0


@pytest.mark.parametrize("allocation", [1, 8, 23])
def test_allocation_shorter_than_the_header(osd: Commands, pid: int, allocation: int) -> None:
    check(osd.reply(rq.list_objects(pid, allocation)), CDB_FIELD.at(32))
    check(osd.reply(rq.list_collection(ref(pid), allocation)), CDB_FIELD.at(32))


@pytest.mark.parametrize("order", [1, 15])
def test_reserved_sort_order(osd: Commands, pid: int, order: int) -> None:
    for request in (rq.list_objects(pid, 4096), rq.list_collection(ref(pid), 4096)):
        check(mangled(osd, request, {11: bytes([0x30 | order])}), CDB_FIELD.at(11))


def test_header_alone(osd: Commands, pid: int, ten: list[ObjectRef]) -> None:
    reply = check(osd.reply(rq.list_objects(pid, HEADER)), OK)
    additional, continuation, identifier, _ = header(reply)
    assert additional == 16 + 80, "counts what would not fit"
    assert continuation == ten[0].object_id
    assert identifier != 0


@pytest.mark.parametrize("room", [24 + 24, 24 + 31])
def test_only_whole_ids(osd: Commands, pid: int, ten: list[ObjectRef], room: int) -> None:
    reply = check(osd.reply(rq.list_objects(pid, room)), OK)
    additional, continuation, identifier, _ = header(reply)
    assert additional == 16 + 80
    assert continuation == ten[3].object_id
    assert identifier != 0
    assert decode_list(reply.data[:48]).ids == tuple(each.object_id for each in ten[:3])


def test_continuation_by_initial_id(osd: Commands, pid: int, ten: list[ObjectRef]) -> None:
    seen: list[int] = []
    initial = 0
    for _ in range(20):
        page = osd.list_page(ref(pid), initial, 3)
        seen += page.ids
        if not page.continuation_id:
            break
        initial = page.continuation_id
    assert seen == [each.object_id for each in ten]


def test_begun_far_in_the_middle(osd: Commands, pid: PartitionId) -> None:
    """Nobody counts to the end of a long list: very many are left, unless a page ended there."""
    made = [each for _ in range(5) for each in osd.create_many(pid, 4096)]
    middle = made[2].object_id
    for initial, left in [(0, len(made)), (middle, None), (made[-10].object_id, 10)]:
        reply = check(osd.reply(rq.list_objects(pid, HEADER + 8, initial)), OK)
        additional, continuation, _, _ = header(reply)
        assert additional == (0xFFFF_FFFF_FFFF_FFFF if left is None else 16 + 8 * left)
        assert continuation == max(initial, made[0].object_id) + 1
    check(osd.reply(rq.list_objects(pid, HEADER + 16, 0)), OK)
    reply = check(osd.reply(rq.list_objects(pid, HEADER + 8, middle)), OK)
    assert header(reply)[0] == 16 + 8 * (len(made) - 2)


def test_continuation_with_the_list_identifier(
    osd: Commands, pid: int, ten: list[ObjectRef]
) -> None:
    first = decode_list(check(osd.reply(rq.list_objects(pid, 24 + 40)), OK).data)
    request = rq.list_objects(pid, 4096, first.continuation_id, first.list_identifier)
    rest = decode_list(check(osd.reply(request), OK).data)
    assert first.ids + rest.ids == tuple(each.object_id for each in ten)
    assert rest.list_identifier == 0


def test_objects_removed_and_made_between_two_parts(
    osd: Commands, pid: PartitionId, ten: list[ObjectRef]
) -> None:
    first = osd.list_page(ref(pid), 0, 4)
    osd.remove(ten[4])
    osd.remove(ten[0])
    made = osd.create(pid, ten[5].object_id + 1)
    rest = osd.list_page(ref(pid), first.continuation_id, 100)
    expected = {each.object_id for each in ten[5:]} | {made.object_id}
    assert set(rest.ids) == expected


@pytest.mark.parametrize(("initial", "first"), [(0x2_0000, 0), (0x2_0001, 1), (0x2_0007, 1)])
def test_initial_id(
    osd: Commands, pid: int, ten: list[ObjectRef], initial: int, first: int
) -> None:
    ids = osd.list_page(ref(pid), initial).ids
    assert ids == tuple(each.object_id for each in ten[first:])


def test_initial_id_behind_the_last(osd: Commands, pid: int, ten: list[ObjectRef]) -> None:
    for initial in (ten[-1].object_id + 1, 2**64 - 1):
        reply = check(osd.reply(rq.list_objects(pid, 4096, initial)), OK)
        assert header(reply)[:3] == (16, 0, 0)


# ---- with attributes ----


def with_attributes(pid: int, room: int, *wanted: AttributeId) -> Request:
    return rq.list_objects(pid, room, with_attributes=True, attributes=AttributeLists(wanted))


def test_ids_with_attributes(osd: Commands, pid: int, ten: list[ObjectRef]) -> None:
    osd.set_attributes(ten[2], [COLOUR])
    reply = check(osd.reply(with_attributes(pid, 4096, COLOUR.id)), OK)
    assert header(reply)[3] == 0x22
    members = decode_list(reply.data).members
    assert [each.object_id for each in members] == [each.object_id for each in ten]
    assert {each.object_type for each in members} == {ObjectType.USER_OBJECT}
    assert members[2].attributes == (COLOUR,)
    assert members[3].attributes == (AttributeValue(COLOUR.page, COLOUR.number, b""),)


def test_attributes_of_the_partition_go_to_the_retrieved_segment(
    osd: Commands, pid: int, ten: list[ObjectRef]
) -> None:
    count = AttributeId(Page.PARTITION_INFORMATION, 0xC1)
    reply = check(osd.reply(with_attributes(pid, 4096, COLOUR.id, count)), OK)
    assert [each.id for each in reply.attributes] == [count]
    assert reply.attribute(count).uint == 10
    assert len(decode_list(reply.data).members[0].attributes) == 1


def test_with_attributes_only_whole_blocks(osd: Commands, pid: int, ten: list[ObjectRef]) -> None:
    """A block is 16 + 24 bytes here."""
    for each in ten:
        osd.set_attributes(each, [COLOUR])
    reply = check(osd.reply(with_attributes(pid, 24 + 2 * 40 + 39, COLOUR.id)), OK)
    additional, continuation, _, _ = header(reply)
    assert additional == 16 + 10 * 40
    assert continuation == ten[2].object_id


def test_additional_length_counts_what_does_not_fit(
    osd: Commands, pid: int, ten: list[ObjectRef]
) -> None:
    """Blocks of different sizes: the reported length is still that of the whole list."""
    for number, each in enumerate(ten):
        osd.set_attributes(each, [AttributeValue(COLOUR.page, COLOUR.number, b"x" * 37 * number)])
    whole = header(check(osd.reply(with_attributes(pid, 1 << 16, COLOUR.id)), OK))
    for room in (24, 24 + 40, 700):
        cut = header(check(osd.reply(with_attributes(pid, room, COLOUR.id)), OK))
        assert cut[0] == whole[0]
        assert cut[1] != 0


def test_collections_with_attributes(osd: Commands, collection: ObjectRef) -> None:
    name = AttributeValue(Page.COLLECTION_INFORMATION, 0x9, b"blue ones")
    osd.set_attributes(collection, [name])
    request = rq.list_collection(
        ref(collection.partition_id),
        4096,
        with_attributes=True,
        attributes=AttributeLists((name.id,)),
    )
    reply = check(osd.reply(request), OK)
    assert header(reply)[3] == 0x12
    found = {each.object_id: each for each in decode_list(reply.data).members}
    assert found[collection.object_id].attributes == (name,)
    assert found[collection.object_id].object_type == ObjectType.COLLECTION


def test_with_attributes_needs_list_format(osd: Commands, pid: int, obj: ObjectRef) -> None:
    request = rq.list_objects(
        pid, 4096, with_attributes=True, attributes=AttributePage(Page.USER_TIMESTAMPS, 64)
    )
    check(osd.reply(request), CDB_FIELD)


def test_with_attributes_of_another_kind(osd: Commands, pid: int, obj: ObjectRef) -> None:
    wrong = AttributeId(Page.COLLECTION_INFORMATION, 0x9)
    check(osd.reply(with_attributes(pid, 4096, wrong)), LIST_FIELD, wrong)


# ---- members of collections ----


@pytest.fixture
def join(osd: Commands, collection: ObjectRef) -> Callable[[ObjectRef], None]:
    """Make objects members of the collection."""

    def join(obj: ObjectRef) -> None:
        value = collection.object_id.to_bytes(8, "big")
        osd.set_attributes(obj, [AttributeValue(Page.USER_COLLECTIONS, 1, value)])

    return join


def test_members(
    osd: Commands, collection: ObjectRef, ten: list[ObjectRef], join: Callable[[ObjectRef], None]
) -> None:
    for each in ten[::3]:
        join(each)
    reply = check(osd.reply(rq.list_collection(collection, 4096)), OK)
    assert header(reply) == (16 + 32, 0, 0, 0x21)
    assert osd.list_members(collection) == ten[::3]


def test_members_in_parts(
    osd: Commands, collection: ObjectRef, ten: list[ObjectRef], join: Callable[[ObjectRef], None]
) -> None:
    for each in ten:
        join(each)
    first = osd.list_page(collection, 0, 4)
    rest = osd.list_page(collection, first.continuation_id, 100)
    assert list(first.ids + rest.ids) == [each.object_id for each in ten]


def test_removed_objects_are_no_members(
    osd: Commands, collection: ObjectRef, ten: list[ObjectRef], join: Callable[[ObjectRef], None]
) -> None:
    join(ten[0])
    join(ten[1])
    osd.remove(ten[0])
    assert osd.list_members(collection) == [ten[1]]


def test_collections_ascending(osd: Commands, pid: PartitionId) -> None:
    made = [osd.create_collection(pid, 0x20000 - each) for each in range(3)]
    assert [each for each in osd.list_collections(pid) if each.object_id >= 0x10000] == made[::-1]


def test_root_has_no_collections(osd: Commands) -> None:
    check(osd.reply(rq.list_collection(ROOT, 4096)), NO_PARTITION)
