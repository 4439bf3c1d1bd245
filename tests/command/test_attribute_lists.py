# SPDX-License-Identifier: GPL-2.0-or-later
"""Attribute lists: wildcards, lists about many objects, long ones, and that a refused one sets
nothing (osd2-wire 5.2-5.5)."""

from __future__ import annotations

import struct

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.osd._query import Criterion
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import ALL, Page, encode_set_list
from pyosd.wire.cdb import AttributeLists, AttributePage, Request, SetOne, encode
from pyosd.wire.reply import Reply
from tests.conftest import MakeHarness
from tests.expect import CDB_FIELD, LIST_FIELD, OK, QUOTA, Outcome, check, mangled

RESOURCES = Outcome("out of a resource", 4, 0x55, 0x00)
APPLICATION = 0x1_0000
LIMIT = 65_536


def get(osd: Commands, obj: ObjectRef, *wanted: AttributeId, room: int = 64 << 10) -> Reply:
    return osd.reply(rq.get_attributes(obj, attributes=AttributeLists(wanted, (), room)))


def mine(number: int, value: bytes = b"x", page: int = APPLICATION) -> AttributeValue:
    return AttributeValue(page, number, value)


# ---- wildcards ----


def test_all_pages_are_the_pages_of_the_directory(osd: Commands, obj: ObjectRef) -> None:
    """Those that have attributes, and the standard's; not the Current Command page."""
    osd.set_attributes(obj, [mine(1), mine(7, page=0xF000_0000), mine(1, page=0xA)])
    everything = check(get(osd, obj, AttributeId(ALL, ALL)), OK).attributes
    assert [each.id for each in everything] == sorted(
        (each.id for each in everything), key=lambda one: (one.page, one.number)
    )
    pages = {each.page for each in everything}
    directory = osd.get_attributes(obj, [AttributeId(Page.USER_DIRECTORY, ALL)])
    empty = {Page.CURRENT_COMMAND, Page.HEAD, Page.FUNCTION, Page.STACK, Page.HOOKS}
    empty |= {Page.JOB_STATUS, Page.JOB_PAYLOAD, Page.JOB_CONTROL, Page.JOB_USED}
    assert pages == {each.number for each in directory} - empty
    assert {APPLICATION, 0xF000_0000, 0xA, 0, 1, 2, 3, 4, 5, 6} <= pages


def test_all_pages_are_each_page_in_turn(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [mine(1), mine(2), mine(9, page=0x2_0000)])
    everything = check(get(osd, obj, AttributeId(ALL, ALL)), OK).attributes
    by_page: list[AttributeValue] = []
    for page in sorted({each.page for each in everything}):
        by_page += check(get(osd, obj, AttributeId(page, ALL)), OK).attributes
    moving = {Page.USER_TIMESTAMPS}
    assert [one for one in everything if one.page not in moving] == [
        one for one in by_page if one.page not in moving
    ]


def test_one_number_of_all_pages(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [mine(1, b"a"), mine(1, b"b", 0x2_0000), mine(2, b"c", 0x3_0000)])
    found = check(get(osd, obj, AttributeId(ALL, 1)), OK).attributes
    by_page = {each.page: each.value for each in found}
    assert {each.number for each in found} == {1}
    assert by_page[APPLICATION] == b"a"
    assert by_page[0x2_0000] == b"b"
    assert 0x3_0000 not in by_page, "undefined there"
    assert by_page[Page.USER_INFORMATION] == obj.partition_id.to_bytes(8, "big")
    names = check(get(osd, obj, AttributeId(ALL, 0)), OK).attributes
    assert {len(each.value) for each in names} == {40}
    unnamed = [each for each in names if each.page == 0x3_0000]
    assert unnamed[0].value[8:].rstrip(b"\0") == b"unidentified attributes page"


def test_one_number_of_all_pages_many_times(osd: Commands, obj: ObjectRef) -> None:
    """Each time the target looks at all pages: so one command would keep it busy for long."""
    check(get(osd, obj, *[AttributeId(ALL, 7)] * 8), OK)
    check(get(osd, obj, *[AttributeId(ALL, 7)] * 9), RESOURCES)


def test_wildcards_stand_where_they_were_asked_for(osd: Commands, obj: ObjectRef) -> None:
    first, second, other = mine(1), mine(2), mine(1, b"y", 0x2_0000)
    osd.set_attributes(obj, [first, second, other])
    reply = check(get(osd, obj, other.id, AttributeId(APPLICATION, ALL), second.id, other.id), OK)
    assert reply.attributes == (other, first, second, second, other)


def test_a_page_without_attributes(osd: Commands, obj: ObjectRef) -> None:
    assert check(get(osd, obj, AttributeId(0x5_0000, ALL)), OK).attributes == ()
    assert check(get(osd, obj, AttributeId(0x5_0000, 0)), OK).attributes[0].value == b""


@pytest.mark.parametrize("page", [0x80, 0x7FFF, 0x3000_0001, 0xC000_0000, 0xEFFF_FFFF])
@pytest.mark.parametrize("number", [0, 1, ALL])
def test_pages_an_object_cannot_have(osd: Commands, obj: ObjectRef, page: int, number: int) -> None:
    wanted = AttributeId(page, number)
    check(get(osd, obj, wanted), LIST_FIELD, wanted)
    good = mine(1)
    check(get(osd, obj, good.id, wanted), LIST_FIELD, wanted)


@pytest.mark.parametrize("page", [ALL, Page.CURRENT_COMMAND, APPLICATION])
def test_wildcards_are_not_set(osd: Commands, obj: ObjectRef, page: int) -> None:
    number = 1 if page != APPLICATION else ALL
    value = AttributeValue(page, number, b"x")
    reply = osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), (mine(1), value))))
    check(reply, LIST_FIELD, value.id)
    assert osd.get_attribute(obj, APPLICATION, 1) == b""


def test_set_one_of_all(osd: Commands, obj: ObjectRef) -> None:
    request = rq.set_attributes(obj, attributes=SetOne(mine(1)))
    wild = (0xFFFF_FFFF).to_bytes(4, "big")
    check(mangled(osd, request, {52: wild}), CDB_FIELD.at(52))
    check(mangled(osd, request, {56: wild}), CDB_FIELD.at(56))
    check(mangled(osd, request, {60: b"\0\x13"}), CDB_FIELD.at(60))
    check(mangled(osd, request, {52: bytes(4)}), OK)
    assert osd.get_attribute(obj, APPLICATION, 1) == b""


# ---- one bad entry ----

GOOD = (mine(1, b"good"), mine(2, b"good", 0x2_0000))
BAD = [
    AttributeValue(Page.USER_INFORMATION, 0x1, bytes(8)),
    AttributeValue(Page.USER_INFORMATION, 0x82, bytes(7)),
    AttributeValue(Page.USER_QUOTAS, 1, bytes(4)),
    AttributeValue(Page.USER_COLLECTIONS, 1, bytes(8)),
    AttributeValue(Page.USER_SECURITY, 0x4000_0001, bytes(3)),
    AttributeValue(0x80, 1, b"x"),
    AttributeValue(0x3000_0001, 9, b"x"),
    AttributeValue(APPLICATION, 0, b"a name that ends in no NUL and is far too long for a page"),
]


@pytest.mark.parametrize("bad", BAD, ids=lambda bad: f"{bad.page:X}-{bad.number:X}")
@pytest.mark.parametrize("position", [0, 1, 2])
def test_one_bad_entry_undoes_all(
    osd: Commands, pid: PartitionId, obj: ObjectRef, bad: AttributeValue, position: int
) -> None:
    """In each command that sets: nothing of the list, nothing of the command is left."""
    length = AttributeValue(Page.USER_INFORMATION, 0x82, (5000).to_bytes(8, "big"))
    values = [*GOOD, length]
    values.insert(position, bad)
    lists = AttributeLists((), tuple(values))
    cid = osd.create_collection(pid)
    osd.set_attributes(obj, [AttributeValue(4, 9, cid.object_id.to_bytes(8, "big"))])
    for request in (
        rq.set_attributes(obj, attributes=lists),
        rq.get_attributes(obj, attributes=lists),
        rq.create(pid, attributes=lists),
        rq.create(pid, 0, 3, attributes=lists),
        rq.remove(obj, attributes=lists),
        rq.set_member_attributes(cid, attributes=lists),
    ):
        reply = check(osd.reply(request), LIST_FIELD, bad.id)
        assert reply.response.data_in.nbytes == 0
        assert osd.list_objects(pid) == [obj]
        assert osd.get_attributes(obj, [GOOD[0].id, GOOD[1].id, length.id]) == (
            AttributeValue(GOOD[0].page, GOOD[0].number, b""),
            AttributeValue(GOOD[1].page, GOOD[1].number, b""),
            AttributeValue(length.page, length.number, bytes(8)),
        )


def test_a_value_longer_than_any(osd: Commands, obj: ObjectRef) -> None:
    """FFFEh bytes are the most; FFFFh is a bad value, not a bad list."""
    longest = mine(1, b"x" * 0xFFFE)
    check(send_list(osd, obj, [longest]), OK)
    assert osd.get_attribute(obj, APPLICATION, 1) == longest.value
    head = struct.pack(">BxxxI", 9, 0) + struct.pack(">II6xH", APPLICATION, 2, 0xFFFF)
    body = head + b"x" * 0xFFFF + b"\0"
    request = rq.set_attributes(obj, attributes=AttributeLists((), (mine(1),)))
    reply = mangled(osd, request, {68: len(body).to_bytes(4, "big")}, data_out=body)
    check(reply, LIST_FIELD, AttributeId(APPLICATION, 2))


# ---- about many objects ----


def test_groups_of_a_creation(osd: Commands, pid: PartitionId) -> None:
    """osd2-wire 5.5, byte by byte: id, type, 5 reserved, length, entries as in a plain list."""
    lists = AttributeLists((mine(1).id, AttributeId(Page.USER_INFORMATION, 2)), (mine(1),), 4096)
    reply = check(osd.reply(rq.create(pid, 0, 2, attributes=lists)), OK)
    data = bytes(reply.response.data_in)
    assert data[:8] == struct.pack(">BxxxI", 0xE, 2 * (16 + 24 + 24))
    for index in range(2):
        at = 8 + index * 64
        oid = int.from_bytes(data[at : at + 8], "big")
        assert data[at + 8 : at + 16] == struct.pack(">B5xH", 0x80, 48)
        assert data[at + 16 : at + 40] == struct.pack(">II6xH", APPLICATION, 1, 1) + b"x".ljust(
            8, b"\0"
        )
        assert data[at + 40 : at + 56] == struct.pack(">II6xH", Page.USER_INFORMATION, 2, 8)
        assert data[at + 56 : at + 64] == oid.to_bytes(8, "big")
    assert [ref(pid, 0x10000), ref(pid, 0x10001)] == osd.list_objects(pid)


@pytest.mark.parametrize("room", [0, 4, 8, 15, 23, 24, 31, 39, 40, 48, 71, 72, 1000])
def test_groups_are_cut(osd: Commands, pid: int, room: int) -> None:
    """The list's length is that of the whole; what is sent is a beginning of it."""
    lists = AttributeLists((mine(1).id,), (mine(1),), 1000)
    whole = bytes(check(osd.reply(rq.create(pid, 0, 3, attributes=lists)), OK).response.data_in)
    lists = AttributeLists((mine(1).id,), (mine(1),), room)
    reply = check(osd.reply(rq.create(pid, 0, 3, attributes=lists)), OK)
    data = bytes(reply.response.data_in)
    assert len(data) <= room
    if room >= 8:
        assert data[:8] == whole[:8]
    for at in range(8, len(data) - 15, 40):
        assert data[at + 8 : at + 16] == whole[at + 8 : at + 16]


def test_wildcards_in_groups(osd: Commands, pid: int, collection: ObjectRef) -> None:
    join = AttributeValue(4, 1, collection.object_id.to_bytes(8, "big"))
    osd.reply(rq.create(pid, 0, 2, attributes=AttributeLists((), (join, mine(1), mine(2)))))
    groups = osd.get_member_attributes(collection, [AttributeId(APPLICATION, ALL)])
    assert [group.attributes for group in groups] == [(mine(1), mine(2))] * 2


# ---- long ones ----


def numbers_of(count: int) -> list[AttributeValue]:
    return [mine(number, struct.pack(">I", number)) for number in range(1, count + 1)]


def send_list(osd: Commands, obj: ObjectRef, values: list[AttributeValue]) -> Reply:
    request: Request = rq.set_attributes(obj, attributes=AttributeLists((), (mine(1),)))
    body = encode_set_list(values)
    return mangled(osd, request, {68: len(body).to_bytes(4, "big")}, data_out=body)


@pytest.mark.core
def test_as_many_as_an_object_may_have(osd: Commands, pid: int, obj: ObjectRef) -> None:
    """65,536 in one command; then not one more, but any of them again, on each kind of object."""
    for where, page in ((obj, APPLICATION), (ref(pid), 0x3001_0000)):
        values = [AttributeValue(page, n, b"%d" % n) for n in range(1, LIMIT + 1)]
        check(send_list(osd, where, values), OK)
        more = AttributeValue(page, LIMIT + 1, b"x")
        check(send_list(osd, where, [more]), QUOTA)
        check(send_list(osd, where, [AttributeValue(page, 1, b""), more]), OK)
        check(send_list(osd, where, [AttributeValue(page, 1, b"y")]), QUOTA)
        check(send_list(osd, where, [AttributeValue(page, 2, b"z")]), OK)
        assert osd.get_attribute(where, page, 2) == b"z"
        wanted = AttributeLists((AttributeId(page, ALL),), (), 4 << 20)
        reply = check(osd.reply(rq.get_attributes(where, attributes=wanted)), OK)
        assert len(reply.attributes) == LIMIT


@pytest.mark.core
def test_the_same_again_and_again(osd: Commands, obj: ObjectRef) -> None:
    """65,536 times one attribute: the last value stays, and one attribute is there."""
    values = [mine(1, struct.pack(">I", number)) for number in range(LIMIT)]
    check(send_list(osd, obj, values), OK)
    assert osd.get_attribute(obj, APPLICATION, 1) == struct.pack(">I", LIMIT - 1)
    check(send_list(osd, obj, [mine(1), *[mine(1, b"")] * 1000]), OK)
    assert osd.get_attribute(obj, APPLICATION, 1) == b""


@pytest.mark.core
def test_everything_asked_for_again_and_again(osd: Commands, obj: ObjectRef) -> None:
    """A list of wildcards ends when it has come to 131,072 attributes."""
    check(send_list(osd, obj, numbers_of(5_000)), OK)
    wanted = AttributeId(APPLICATION, ALL)
    reply = check(get(osd, obj, *[wanted] * 20), OK)
    assert reply.retrieved.needed == 8 + 20 * 5_000 * 24
    check(get(osd, obj, *[wanted] * 1_000), RESOURCES, wanted)


@pytest.mark.core
def test_many_collections(osd: Commands, pid: PartitionId, obj: ObjectRef) -> None:
    """Thousands joined in one command, left in another; the page form has them all."""
    cids = [osd.create_collection(pid).object_id for _ in range(1_000)]
    joins = [
        AttributeValue(4, number, cid.to_bytes(8, "big")) for number, cid in enumerate(cids, 1)
    ]
    check(send_list(osd, obj, joins), OK)
    page = check(osd.reply(rq.get_attributes(obj, attributes=AttributePage(4, 16 << 10))), OK).page
    assert page is not None
    assert page.length == 8_000
    assert [each[0] for each in struct.iter_unpack(">Q", page.body)] == cids
    found = check(get(osd, obj, *[each.id for each in joins], room=64 << 10), OK).attributes
    assert list(found) == joins
    again = [AttributeValue(4, 5_000, cids[10].to_bytes(8, "big"))]
    check(send_list(osd, obj, again), LIST_FIELD, again[0].id)
    swap = [AttributeValue(4, 11, b""), *again]
    check(send_list(osd, obj, swap), OK)
    assert osd.get_attribute(obj, 4, 5_000) == cids[10].to_bytes(8, "big")
    check(send_list(osd, obj, [AttributeValue(4, n, b"") for n in range(1, 5_001)]), OK)
    assert osd.get_page(obj, 4).length == 0
    assert osd.list_members(ref(pid, cids[0])) == []


def test_root_takes_application_pages(make_harness: MakeHarness) -> None:
    osd = make_harness(memory=1).osd
    values = [AttributeValue(0x9001_0000, n, b"%d" % n) for n in range(1, 300)]
    osd.set_attributes(ROOT, values)
    assert osd.get_attributes(ROOT, [each.id for each in values]) == tuple(values)


@pytest.mark.parametrize("count", [200, 10_000])
def test_object_with_many_attributes(
    osd: Commands, collection: ObjectRef, obj: ObjectRef, count: int
) -> None:
    """All set by one command, all got by one, by list and by page; found by any; all gone."""
    page = 0xA_0000
    values = [AttributeValue(page, number, b"%d" % number) for number in range(1, count + 1)]
    everything = AttributeId(page, ALL)
    osd.set_attributes(
        obj, [*values, AttributeValue(4, 1, collection.object_id.to_bytes(8, "big"))]
    )
    assert osd.get_attributes(obj, [everything]) == tuple(values)
    assert osd.get_attributes(obj, [each.id for each in values]) == tuple(values)
    for number in (1, count // 2, count):
        text = b"%d" % number
        found = osd.query(collection, [Criterion(page, number, text, text)])
        assert [each.object_id for each in found] == [obj.object_id]
    assert list(osd.query(collection, [Criterion(page, count + 1, b"0", b"9")])) == []
    osd.set_attributes(obj, [AttributeValue(page, each.number, b"") for each in values])
    assert all(not each.value for each in osd.get_attributes(obj, [everything]))


@pytest.mark.core
@pytest.mark.parametrize("where", ["root", "partition"])
def test_many_clients_set_on_one_container(make_harness: MakeHarness, where: str) -> None:
    """New attributes from many at once: all are there, nobody is turned away."""
    osd = make_harness().osd
    target = ROOT if where == "root" else ref(osd.create_partition())
    page = 0x9001_0000 if where == "root" else 0x3001_0000
    values = [AttributeValue(page, number, b"%d" % number) for number in range(1, 200)]
    pending = []
    for each in values:
        lists = AttributeLists((), (each,))
        command, _ = encode(rq.set_attributes(target, attributes=lists))
        pending.append(osd.transport.submit(command))
    assert [each.result().status for each in pending] == [0] * len(values)
    assert osd.get_attributes(target, [each.id for each in values]) == tuple(values)
