# SPDX-License-Identifier: GPL-2.0-or-later
"""QUERY: criteria, ids in Data-In, matches in a tracking collection, every check (osd2-wire 3.9)."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.osd._query import Criterion, encode_query_list
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import CURRENT_TYPE, Page
from pyosd.wire.cdb import AttributeLists, Descriptor, Request
from tests.command.test_collection import ABSENT, membership
from tests.expect import CDB_FIELD, NO_OBJECT, NO_PARTITION, OK, check, mangled

PAGE = Page.APPLICATION
QUERY_LIST = 0x0002
EVERYTHING = 0x1000
ROOM = 4096
BAD_LIST = CDB_FIELD.at(48)


def number(value: int) -> bytes:
    return value.to_bytes(4, "big")


def criterion(low: bytes = b"", high: bytes = b"", which: int = 1) -> Criterion:
    return Criterion(PAGE, which, low, high)


@pytest.fixture
def objects(osd: Commands, collection: ObjectRef) -> list[ObjectRef]:
    """Ten members; #1 of the i-th is 10 i in 4 bytes, #2 is its letter, of the last absent."""
    made = osd.create_many(collection.partition_id, 10, attributes=[membership(collection)])
    for i, obj in enumerate(made):
        letter = b"" if i == 9 else b"abc"[i % 3 : i % 3 + 1]
        values = [AttributeValue(PAGE, 1, number(10 * i)), AttributeValue(PAGE, 2, letter)]
        osd.set_attributes(obj, values)
    return made


def ask(
    osd: Commands, collection: ObjectRef, criteria: Iterable[Criterion], match_all: bool = True
) -> list[int]:
    return [each.object_id for each in osd.query(collection, criteria, match_all)]


def ids(objects: Iterable[ObjectRef]) -> list[int]:
    return [each.object_id for each in objects]


def with_list(request: Request, content: bytes, *more: Descriptor) -> Request:
    return replace(request, descriptors=(Descriptor(QUERY_LIST, content), *more))


# ---- criteria ----


def test_range(osd: Commands, collection: ObjectRef, objects: list[ObjectRef]) -> None:
    """Inclusive at both ends."""
    assert ask(osd, collection, [criterion(number(20), number(50))]) == ids(objects[2:6])
    assert ask(osd, collection, [criterion(number(21), number(49))]) == ids(objects[3:5])


def test_open_ended(osd: Commands, collection: ObjectRef, objects: list[ObjectRef]) -> None:
    assert ask(osd, collection, [criterion(low=number(70))]) == ids(objects[7:])
    assert ask(osd, collection, [criterion(high=number(10))]) == ids(objects[:2])


def test_bounds_the_wrong_way_round(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef]
) -> None:
    assert ask(osd, collection, [criterion(number(50), number(20))]) == []


def test_no_bounds_asks_whether_it_is_there(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef]
) -> None:
    """An object that lacks the attribute does not match."""
    assert ask(osd, collection, [criterion(which=2)]) == ids(objects[:9])
    assert ask(osd, collection, [criterion(which=3)]) == []


def test_bytes_compare_unsigned(osd: Commands, collection: ObjectRef) -> None:
    """Of two with a common beginning the shorter is less."""
    values = [b"\x01", b"\x01\x00", b"\x7f\xff", b"\x80", b"\xff"]
    made = osd.create_many(collection.partition_id, 5, attributes=[membership(collection)])
    for obj, value in zip(made, values, strict=True):
        osd.set_attributes(obj, [AttributeValue(PAGE, 1, value)])
    assert ask(osd, collection, [criterion(low=b"\x01\x00")]) == ids(made[1:])
    assert ask(osd, collection, [criterion(high=b"\x01")]) == ids(made[:1])
    assert ask(osd, collection, [criterion(b"\x80", b"\x80")]) == ids(made[3:4])


def test_all_and_any(osd: Commands, collection: ObjectRef, objects: list[ObjectRef]) -> None:
    criteria = [criterion(high=number(40)), criterion(b"a", b"a", 2)]
    assert ask(osd, collection, criteria) == ids([objects[0], objects[3]])
    either = ids([*objects[:5], objects[6]])
    assert ask(osd, collection, criteria, match_all=False) == either


def test_no_criteria(osd: Commands, collection: ObjectRef, objects: list[ObjectRef]) -> None:
    assert ask(osd, collection, []) == ids(objects)
    assert ask(osd, collection, [], match_all=False) == ids(objects)


def test_three_unaligned_entries(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef]
) -> None:
    """Values of odd lengths put the entries behind them anywhere."""
    criteria = [criterion(b"a", b"b", 2), criterion(number(10)), criterion(b"", b"bzz", 2)]
    assert ask(osd, collection, criteria) == ids([objects[1], *objects[3:5], *objects[6:8]])


def test_only_members_are_looked_at(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef]
) -> None:
    other = osd.create(collection.partition_id)
    osd.set_attributes(other, [AttributeValue(PAGE, 1, number(20))])
    wanted = [criterion(number(20), number(20))]
    assert ask(osd, collection, wanted) == ids(objects[2:3])
    everything = ref(collection.partition_id, EVERYTHING)
    assert ask(osd, everything, wanted) == [objects[2].object_id, other.object_id]


def test_empty_collection(osd: Commands, collection: ObjectRef) -> None:
    assert ask(osd, collection, []) == []


# ---- parameter data ----


def test_bytes_of_the_answer(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef]
) -> None:
    request = rq.query(collection, [criterion(low=number(80))], ROOM)
    reply = check(osd.reply(request), OK)
    two = b"".join(each.object_id.to_bytes(8, "big") for each in objects[8:])
    assert bytes(reply.data) == bytes.fromhex("0000000000000014 000000 84") + two
    assert reply.response.residual_in == ROOM - 28


@pytest.mark.parametrize(
    ("room", "placed"), [(0, 0), (5, 5), (11, 11), (12, 12), (13, 12), (19, 12), (20, 20), (27, 20)]
)
def test_truncation(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef], room: int, placed: int
) -> None:
    """ADDITIONAL LENGTH counts all; ids come whole or not at all."""
    request = rq.query(collection, [], room)
    reply = check(osd.reply(request), OK)
    whole = bytes.fromhex("0000000000000054 000000 84") + objects[0].object_id.to_bytes(8, "big")
    assert bytes(reply.data)[:placed] == whole[:placed]
    assert len(reply.response.data_in) == placed


def test_attributes_are_of_the_collection(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef]
) -> None:
    name = AttributeValue(Page.COLLECTION_INFORMATION, 0x9, b"asked")
    lists = AttributeLists((name.id, CURRENT_TYPE), (name,))
    reply = check(osd.reply(rq.query(collection, [], ROOM, attributes=lists)), OK)
    assert reply.attribute(name.id).value == b"asked"
    assert reply.attribute(CURRENT_TYPE).value == b"\x40"
    assert len(reply.data) >= 12 + 80


# ---- matches ----


@pytest.fixture
def matches(osd: Commands, pid: PartitionId) -> ObjectRef:
    return osd.create_tracking_collection(pid)


def test_matches(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef], matches: ObjectRef
) -> None:
    """Former members leave; the page tells of the command."""
    osd.query_into(collection, [], matches)
    assert osd.list_members(matches) == objects
    osd.query_into(collection, [criterion(number(20), number(50))], matches)
    assert osd.list_members(matches) == objects[2:6]
    page = osd.tracking(matches)
    assert page.ended_well
    assert (page.percent, page.members, page.done, page.missing_skipped) == (100, 4, 4, 0)
    assert page.sense is None
    assert page.newer_skipped is None


def test_matches_of_everything(osd: Commands, objects: list[ObjectRef], matches: ObjectRef) -> None:
    everything = ref(matches.partition_id, EVERYTHING)
    osd.query_into(everything, [criterion(high=number(10))], matches)
    assert osd.list_members(matches) == objects[:2]


def test_query_of_matches(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef], matches: ObjectRef
) -> None:
    osd.query_into(collection, [criterion(low=number(50))], matches)
    assert ask(osd, matches, [criterion(high=number(60))]) == ids(objects[5:7])


def test_more_than_one_step(osd: Commands, collection: ObjectRef, matches: ObjectRef) -> None:
    value = AttributeValue(PAGE, 1, number(5))
    osd.create_many(collection.partition_id, 2100, attributes=[membership(collection), value])
    osd.query_into(collection, [criterion(number(5), number(5))], matches)
    assert osd.tracking(matches).done == osd.tracking(matches).members == 2100
    osd.query_into(collection, [criterion(number(6))], matches)
    assert osd.tracking(matches).members == 0


def test_descriptors_in_either_order(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef], matches: ObjectRef
) -> None:
    request = rq.query_into(collection, [], matches.object_id)
    swapped = replace(request, descriptors=request.descriptors[::-1])
    check(osd.reply(swapped), OK)
    alone = replace(request, descriptors=request.descriptors[:1])
    assert osd.list_members(matches) == objects
    check(osd.reply(alone), BAD_LIST)


def test_attributes_with_matches(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef], matches: ObjectRef
) -> None:
    name = AttributeValue(Page.COLLECTION_INFORMATION, 0x9, b"asked")
    lists = AttributeLists((name.id,), (name,))
    request = rq.query_into(collection, [], matches.object_id, attributes=lists)
    assert check(osd.reply(request), OK).attribute(name.id).value == b"asked"
    assert osd.get_attribute(matches, *_id(name)) == b""


def _id(value: AttributeValue) -> tuple[int, int]:
    return value.page, value.number


# ---- checks ----


def test_absent(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.query(ref(0x7777_0000_0000, ABSENT), [], ROOM)), NO_PARTITION)
    check(osd.reply(rq.query(ref(pid, ABSENT), [], ROOM)), NO_OBJECT)


def test_not_a_collection(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.query(obj, [], ROOM)), NO_OBJECT)


def test_at_once_needs_matches(osd: Commands, collection: ObjectRef) -> None:
    request = replace(rq.query(collection, [], 0), bits11=0x80)
    check(osd.reply(request), CDB_FIELD.at(11))


@pytest.mark.parametrize("immediate", [False, True])
def test_ids_and_matches(
    osd: Commands, collection: ObjectRef, matches: ObjectRef, immediate: bool
) -> None:
    request = rq.query_into(collection, [], matches.object_id, immediate=immediate)
    check(mangled(osd, request, {32: (64).to_bytes(8, "big")}), CDB_FIELD.at(32))


def test_matches_in_itself(osd: Commands, matches: ObjectRef) -> None:
    check(osd.reply(rq.query_into(matches, [], matches.object_id)), CDB_FIELD.at(40))


@pytest.mark.parametrize("reserved", [1, 0x1000, 0x1001, 0x1082, 0xFFFF])
def test_matches_reserved(osd: Commands, collection: ObjectRef, reserved: int) -> None:
    check(osd.reply(rq.query_into(collection, [], reserved)), CDB_FIELD.at(40))


def test_matches_absent(osd: Commands, collection: ObjectRef) -> None:
    check(osd.reply(rq.query_into(collection, [], ABSENT)), CDB_FIELD.at(40))


def test_matches_a_user_object(osd: Commands, collection: ObjectRef, obj: ObjectRef) -> None:
    check(osd.reply(rq.query_into(collection, [], obj.object_id)), CDB_FIELD.at(40))


def test_matches_linked(osd: Commands, pid: PartitionId, collection: ObjectRef) -> None:
    linked = osd.create_collection(pid)
    check(osd.reply(rq.query_into(collection, [], linked.object_id)), CDB_FIELD.at(40))


def test_no_list(osd: Commands, collection: ObjectRef) -> None:
    check(osd.reply(replace(rq.query(collection, [], ROOM), descriptors=())), BAD_LIST)


def test_extension_capabilities_without_matches(osd: Commands, collection: ObjectRef) -> None:
    capabilities = rq.query_into(collection, [], ABSENT).descriptors[1]
    request = with_list(rq.query(collection, [], ROOM), encode_query_list([], True), capabilities)
    check(osd.reply(request), BAD_LIST)


def test_two_lists(osd: Commands, collection: ObjectRef) -> None:
    twice = Descriptor(QUERY_LIST, encode_query_list([], True))
    request = with_list(rq.query(collection, [], ROOM), twice.content, twice)
    check(osd.reply(request), BAD_LIST)


def test_scatter_list(osd: Commands, collection: ObjectRef) -> None:
    request = replace(rq.query(collection, [], ROOM), descriptors=(Descriptor(1, bytes(16)),))
    check(osd.reply(request), BAD_LIST)


ENTRY = Criterion(PAGE, 1, b"\0\0\0\4", b"\0\0\0P").encode()
LISTS = {
    "reserved type": b"\2" + bytes(7),
    "entry length too small": b"\1\0\0\0" + b"\0\0\0\x13" + ENTRY[4:] + bytes(4),
    "entry length too large": b"\1\0\0\0" + b"\0\0\0\x15" + ENTRY[4:] + bytes(4),
    "entry runs past the end": b"\1\0\0\0" + ENTRY[:-4],
    "minimum runs past the end": b"\1\0\0\0" + ENTRY[:12] + b"\xff\xff" + ENTRY[14:] + bytes(4),
    "partition page": b"\1\0\0\0" + ENTRY[:4] + b"\x30\0\0\1" + ENTRY[8:] + bytes(4),
    "root page": b"\1\0\0\0" + ENTRY[:4] + b"\x90\0\0\1" + ENTRY[8:] + bytes(4),
    "all pages": b"\1\0\0\0" + ENTRY[:4] + b"\xff\xff\xff\xff" + ENTRY[8:] + bytes(4),
    "second entry bad": b"\1\0\0\0" + ENTRY + b"\0\0\0\1",
}


@pytest.mark.parametrize("content", LISTS.values(), ids=LISTS.keys())
def test_bad_list(osd: Commands, collection: ObjectRef, content: bytes) -> None:
    assert len(content) % 8 == 0
    check(osd.reply(with_list(rq.query(collection, [], ROOM), content)), BAD_LIST)


@pytest.mark.parametrize("padding", [b"", bytes(8), bytes(2) + b"\0\0" + b"\xff" * 4])
def test_what_follows_the_last_entry(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef], padding: bytes
) -> None:
    """An entry of length 0 ends the list."""
    content = b"\1\0\0\0" + Criterion(PAGE, 1, number(80), b"").encode() + padding
    reply = check(osd.reply(with_list(rq.query(collection, [], ROOM), content)), OK)
    assert len(reply.data) >= 28
    assert bytes(reply.data)[7] == 4 + 16


def test_query_list_must_be_a_multiple_of_8(osd: Commands, collection: ObjectRef) -> None:
    """Its descriptor takes no pad."""
    check(osd.reply(with_list(rq.query(collection, [], ROOM), bytes(4))), BAD_LIST)


@pytest.mark.parametrize("length", [8, 41, 1 << 21])
def test_continuation_length(osd: Commands, collection: ObjectRef, length: int) -> None:
    request = rq.query(collection, [], ROOM)
    check(mangled(osd, request, {48: length.to_bytes(4, "big")}), BAD_LIST)


def test_a_thousand_criteria(
    osd: Commands, collection: ObjectRef, objects: list[ObjectRef]
) -> None:
    criteria = [criterion(number(n), number(n)) for n in range(1000)]
    assert ask(osd, collection, criteria, match_all=False) == ids(objects)
    assert ask(osd, collection, criteria) == []
