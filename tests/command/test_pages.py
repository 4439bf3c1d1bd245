# SPDX-License-Identifier: GPL-2.0-or-later
"""Values of the information and Current Command pages and directories (osd2-wire 5.6-5.11, 5.19).
Lengths and settability are in test_standard_pages.py."""

from __future__ import annotations

import struct
import time

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ObjectType, PartitionId, ref
from pyosd.wire.attributes import ALL, Page
from pyosd.wire.cdb import AttributeLists, AttributePage, Request
from tests.conftest import MakeHarness
from tests.expect import LIST_FIELD, OK, check

SKEW_MS = 5000


def now_ms() -> int:
    return time.time_ns() // 1_000_000


# ---- Current Command ----


def current(osd: Commands, request: Request) -> tuple[bytes, int, int, int, int, int]:
    """ICV, type, partition, object, append start, capacity change: the page in page form."""
    page = check(osd.reply(request), OK).page
    assert page is not None
    assert (page.page, page.length, len(page.body)) == (Page.CURRENT_COMMAND, 0x44, 0x44)
    fields: tuple[bytes, int, int, int, int, int] = struct.unpack(">32sB3xQQQq", page.body)
    return fields


ASK = AttributePage(Page.CURRENT_COMMAND, 76)


def test_current_command_of_each_kind(osd: Commands, obj: ObjectRef, collection: ObjectRef) -> None:
    kinds = {
        ROOT: ObjectType.ROOT,
        ref(obj.partition_id): ObjectType.PARTITION,
        collection: ObjectType.COLLECTION,
        obj: ObjectType.USER_OBJECT,
    }
    for each, kind in kinds.items():
        fields = current(osd, rq.get_attributes(each, attributes=ASK))
        assert fields == (bytes(32), kind, each.partition_id, each.object_id, 0, 0)


def test_current_command_of_append(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    assert current(osd, rq.append(obj, b"x", attributes=ASK))[4] == 5


def test_change_in_used_capacity(osd: Commands, obj: ObjectRef) -> None:
    grown = current(osd, rq.write(obj, 0, b"x" * (256 << 10), attributes=ASK))[5]
    assert grown >= 256 << 10
    assert current(osd, rq.read(obj, 0, 1, attributes=ASK))[5] == 0


def test_current_command_in_list_format(osd: Commands, obj: ObjectRef) -> None:
    lists = AttributeLists((AttributeId(Page.CURRENT_COMMAND, ALL),), (), 4096)
    reply = check(osd.reply(rq.get_attributes(obj, attributes=lists)), OK)
    lengths = {each.number: len(each.value) for each in reply.attributes}
    assert lengths == {0: 40, 1: 32, 2: 1, 3: 8, 4: 8, 5: 8, 6: 8}
    name = reply.attribute(AttributeId(Page.CURRENT_COMMAND, 0)).value
    assert name.startswith(b"INCITS  T10 Current Command")


@pytest.mark.parametrize("allocation", [8, 12, 60, 75, 76, 100])
def test_current_command_truncated(osd: Commands, obj: ObjectRef, allocation: int) -> None:
    request = rq.get_attributes(obj, attributes=AttributePage(Page.CURRENT_COMMAND, allocation))
    reply = check(osd.reply(request), OK)
    assert reply.page is not None
    assert reply.page.length == 0x44
    assert reply.response.data_in.nbytes == min(allocation, 76)


# ---- root ----

LINUX_READS = {
    0x4: 8,
    0x5: 16,
    0x6: 32,
    0x7: 4,
    0x8: 64,
    0x9: 64,
    0x80: 8,
    0x81: 8,
    0xC0: 8,
    0x100: 6,
    0x3: 20,
}
"""Root Information as Linux reads it on attach, in this order, with the room it leaves."""
MAY_BE_SHORTER = {0x8, 0x9}


def test_root_information_as_linux_reads_it(osd: Commands) -> None:
    """Linux gives each answer exactly its slot, and falls back to OSD-1 if the command fails."""
    wanted = tuple(AttributeId(Page.ROOT_INFORMATION, number) for number in LINUX_READS)
    room = 8 + sum(16 + (length + 7 & ~7) for length in LINUX_READS.values())
    lists = AttributeLists(wanted, (), room)
    start = now_ms()
    reply = check(osd.reply(rq.get_attributes(ROOT, attributes=lists)), OK)
    end = now_ms()
    assert reply.retrieved.complete
    assert [each.id for each in reply.attributes] == list(wanted)
    for each in reply.attributes:
        length = LINUX_READS[each.number]
        if each.number in MAY_BE_SHORTER:
            assert len(each.value) <= length
        else:
            assert len(each.value) == length, f"{each.number:#x} has {len(each.value)} bytes"
    by_number = {each.number: each for each in reply.attributes}
    for number in (0x4, 0x5, 0x6, 0x7):
        text = by_number[number].value.rstrip(b"\0 ")
        assert text and text.isascii()
    assert by_number[0x80].uint > 0
    assert by_number[0x81].uint <= by_number[0x80].uint
    assert start - SKEW_MS < by_number[0x100].uint < end + SKEW_MS


def test_root_information_as_in_the_appendix(osd: Commands) -> None:
    """Appendix A.1: vendor and number of partitions, byte by byte."""
    lists = AttributeLists((AttributeId(0x9000_0001, 4), AttributeId(0x9000_0001, 0xC0)), (), 0x38)
    reply = check(osd.reply(rq.get_attributes(ROOT, attributes=lists)), OK)
    data = bytes(reply.response.data_in)
    assert len(data) == 56
    assert data[:8] == bytes.fromhex("0900000000000030")
    assert data[8:24] == bytes.fromhex("90000001 00000004 000000000000 0008")
    assert data[32:48] == bytes.fromhex("90000001 000000C0 000000000000 0008")


def test_number_of_partitions(osd: Commands, pid: int) -> None:
    count = osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0xC0)
    assert int.from_bytes(count, "big") == len(osd.list_partitions())


def test_osd_name(osd: Commands) -> None:
    name = AttributeValue(Page.ROOT_INFORMATION, 0x9, b"shelf 3")
    before = osd.get_attribute(ROOT, name.page, name.number)
    osd.set_attributes(ROOT, [name])
    assert osd.get_attribute(ROOT, name.page, name.number) == b"shelf 3"
    osd.set_attributes(ROOT, [AttributeValue(name.page, name.number, before)])


def test_osd_name_longer_than_linux_has_room_for(osd: Commands) -> None:
    name = AttributeValue(Page.ROOT_INFORMATION, 0x9, b"x" * 65)
    reply = osd.reply(rq.set_attributes(ROOT, attributes=AttributeLists((), (name,))))
    check(reply, LIST_FIELD, name.id)


def test_what_we_do_not_have_is_empty(osd: Commands) -> None:
    """Clones, snapshots, other methods of duplication: length 0 (osd2-wire 3.14)."""
    numbers = [0x83, 0x1C1, 0x1C2, 0x1CC, 0x202, 0x241, 0x2FE, 0x300, 0x310, 0x311]
    wanted = [AttributeId(Page.ROOT_INFORMATION, number) for number in numbers]
    assert [each.value for each in osd.get_attributes(ROOT, wanted)] == [b""] * len(numbers)


def test_exec_root_page_says_what_exec_can_do(osd: Commands) -> None:
    """Page B000_0001h."""
    action = osd.get_attribute(ROOT, Page.EXEC_ROOT, 1)
    if action:
        assert int.from_bytes(action, "big") == 0x8F81


def test_store_root_page_counts(osd: Commands, pid: PartitionId) -> None:
    """Commits grow with every change; nothing is locked that nobody uses."""

    def commits() -> int:
        return int.from_bytes(osd.get_attribute(ROOT, Page.STORE_ROOT, 1), "big")

    before = commits()
    osd.create(pid)
    assert commits() > before
    assert len(osd.get_attribute(ROOT, Page.STORE_ROOT, 9)) == 8
    assert int.from_bytes(osd.get_attribute(ROOT, Page.STORE_ROOT, 10), "big") >= 1
    assert osd.get_attribute(ROOT, Page.STORE_ROOT, 13) == b""
    value = AttributeValue(Page.STORE_ROOT, 1, b"\0" * 8)
    reply = osd.reply(rq.set_attributes(ROOT, attributes=AttributeLists((), (value,))))
    check(reply, LIST_FIELD, value.id)


# ---- partition, collection, user object ----


def test_partition_information(osd: Commands, pid: PartitionId, obj: ObjectRef) -> None:
    osd.create_collection(pid)
    page = Page.PARTITION_INFORMATION
    assert osd.get_attribute(ref(pid), page, 1) == pid.to_bytes(8, "big")
    assert len(osd.get_attribute(ref(pid), page, 0x81)) == 8
    count = int.from_bytes(osd.get_attribute(ref(pid), page, 0xC1), "big")
    assert count == len(osd.list_objects(pid)) + len(osd.list_collections(pid))


def test_user_object_information(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"x" * 10_000)
    page = Page.USER_INFORMATION
    assert osd.get_attribute(obj, page, 1) == obj.partition_id.to_bytes(8, "big")
    assert osd.get_attribute(obj, page, 2) == obj.object_id.to_bytes(8, "big")
    assert osd.get_attribute(obj, page, 0x82) == (10_000).to_bytes(8, "big")
    used = int.from_bytes(osd.get_attribute(obj, page, 0x81), "big")
    assert used >= 10_000


@pytest.mark.parametrize("kind", ["partition", "collection", "user object"])
def test_username(osd: Commands, obj: ObjectRef, collection: ObjectRef, kind: str) -> None:
    where, page = {
        "partition": (ref(obj.partition_id), Page.PARTITION_INFORMATION),
        "collection": (collection, Page.COLLECTION_INFORMATION),
        "user object": (obj, Page.USER_INFORMATION),
    }[kind]
    name = AttributeValue(page, 0x9, "Zoë".encode())
    osd.set_attributes(where, [name])
    assert osd.get_attribute(where, page, 0x9) == name.value


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (Page.ROOT_INFORMATION, b"T10 Root Information"),
        (Page.ROOT_DIRECTORY, b"T10 Root Directory"),
        (Page.PARTITION_INFORMATION, b"T10 Partition Information"),
        (Page.COLLECTION_INFORMATION, b"T10 Collection Information"),
        (Page.USER_INFORMATION, b"T10 User Object Information"),
        (Page.USER_DIRECTORY, b"T10 User Object Directory"),
    ],
)
def test_page_identification(
    osd: Commands, obj: ObjectRef, collection: ObjectRef, page: int, name: bytes
) -> None:
    base = page & 0xF000_0000
    where = {0: obj, 0x3000_0000: ref(obj.partition_id), 0x6000_0000: collection}.get(base, ROOT)
    identification = osd.get_attribute(where, page, 0)
    assert len(identification) == 40
    assert identification.startswith(b"INCITS  ")
    assert identification[8:].rstrip(b"\0 ") == name


def test_directory_names_the_pages(osd: Commands, obj: ObjectRef) -> None:
    found = osd.get_attributes(obj, [AttributeId(Page.USER_DIRECTORY, ALL)])
    names = {each.number: each.value[8:].rstrip(b"\0 ") for each in found}
    assert names[Page.USER_INFORMATION] == b"T10 User Object Information"
    assert names[Page.USER_TIMESTAMPS] == b"T10 User Object Timestamps"
    osd.set_attributes(obj, [AttributeValue(0x1_0000, 0, b"ACME    " + b"mine".ljust(32, b"\0"))])
    assert osd.get_attribute(obj, Page.USER_DIRECTORY, 0x1_0000).startswith(b"ACME    mine")


# ---- the change in used capacity, and OSC's page ----


def change(osd: Commands, request: Request) -> int:
    return current(osd, request)[5]


def test_change_in_used_capacity_of_each_command(
    osd: Commands, pid: PartitionId, obj: ObjectRef
) -> None:
    """Used capacity is the length, so a hole counts."""

    def cut(length: int) -> AttributePage:
        value = AttributeValue(Page.USER_INFORMATION, 0x82, length.to_bytes(8, "big"))
        return AttributePage(Page.CURRENT_COMMAND, 76, value)

    assert change(osd, rq.create(pid, attributes=ASK)) == 0
    assert change(osd, rq.create(pid, attributes=cut(1000))) == 1000
    assert change(osd, rq.append(obj, b"12345", attributes=ASK)) == 5
    assert change(osd, rq.write(obj, 100, b"x", attributes=ASK)) == 96
    assert change(osd, rq.clear(obj, 0, 200, attributes=ASK)) == 99
    assert change(osd, rq.punch(obj, 0, 50, attributes=ASK)) == -50
    assert change(osd, rq.set_attributes(obj, attributes=cut(10))) == -140
    assert change(osd, rq.set_attributes(obj, attributes=cut(4000))) == 3990
    assert change(osd, rq.write(obj, 0, b"x" * 5000, attributes=cut(100))) == -3900
    assert change(osd, rq.get_attributes(obj, attributes=ASK)) == 0
    assert change(osd, rq.remove(obj, attributes=ASK)) == -100
    other = osd.create(pid)
    osd.write(other, 0, b"x" * 30)
    assert change(osd, rq.remove(other, attributes=cut(77))) == -30
    assert change(osd, rq.create_and_write(pid, 0, 0, b"123", attributes=ASK)) == 3


def test_change_is_the_change_of_the_attributes(osd: Commands, pid: PartitionId) -> None:
    used = AttributeId(Page.PARTITION_INFORMATION, 0x81)

    def now() -> int:
        return int.from_bytes(osd.get_attribute(ref(pid), used.page, used.number), "big")

    obj = osd.create(pid)
    for request in (
        rq.write(obj, 0, b"x" * 70_000, attributes=ASK),
        rq.clear(obj, 60_000, 20_000, attributes=ASK),
        rq.punch(obj, 10, 20, attributes=ASK),
        rq.remove(obj, attributes=ASK),
    ):
        before = now()
        assert change(osd, request) == now() - before


def test_osc_page_is_shorter(make_harness: MakeHarness) -> None:
    """osd2-wire 9-15: 68 bytes, without the change in used capacity."""
    osd = make_harness(osc_compat=1).osd
    obj = osd.create(osd.create_partition())
    for room in (68, 76, 1024):
        ask = AttributePage(Page.CURRENT_COMMAND, room)
        reply = check(osd.reply(rq.append(obj, b"x", attributes=ask)), OK)
        assert reply.page is not None
        assert (reply.page.length, len(reply.page.body)) == (0x3C, 0x3C)
    page = osd.reply(rq.append(obj, b"x", attributes=AttributePage(Page.CURRENT_COMMAND, 68))).page
    assert page is not None
    fields = struct.unpack(">32sB3xQQQ", page.body)
    assert fields == (bytes(32), ObjectType.USER_OBJECT, obj.partition_id, obj.object_id, 3)
    found = osd.get_attributes(obj, [AttributeId(Page.CURRENT_COMMAND, ALL)])
    assert [each.number for each in found] == [0, 1, 2, 3, 4, 5]
    assert osd.get_attribute(obj, Page.CURRENT_COMMAND, 6) == b""
