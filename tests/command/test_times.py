# SPDX-License-Identifier: GPL-2.0-or-later
"""Timestamps: which command moves whose, and what keeps them still (osd2-wire 2.4, 5.13)."""

from __future__ import annotations

import time

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from tests.expect import CDB_FIELD, LIST_FIELD, OK, check, mangled

SKEW_MS = 5000
CREATED, ATTR_READ, ATTR_SET, DATA_READ, DATA_SET = range(1, 6)
BYPASS = 0xFFFF_FFFE


def now_ms() -> int:
    return time.time_ns() // 1_000_000


def stamps(osd: Commands, obj: ObjectRef) -> dict[int, int]:
    wanted = [AttributeId(Page.USER_TIMESTAMPS, number) for number in range(1, 6)]
    found = osd.get_attributes(obj, wanted)
    assert {len(each.value) for each in found} == {6}
    return {each.number: each.uint for each in found}


def test_timestamps_of_a_new_object(osd: Commands, pid: PartitionId) -> None:
    start = now_ms()
    obj = osd.create(pid)
    end = now_ms()
    assert start - SKEW_MS < stamps(osd, obj)[1] < end + SKEW_MS


def test_timestamps_follow_what_happens(osd: Commands, obj: ObjectRef) -> None:
    start = stamps(osd, obj)
    osd.write(obj, 0, b"x")
    written = stamps(osd, obj)
    assert written[5] >= max(start[5], start[1])
    assert written[1] == start[1]
    osd.set_attributes(obj, [AttributeValue(Page.APPLICATION, 1, b"x")])
    assert stamps(osd, obj)[3] >= written[5]


def test_timestamps_page_form(osd: Commands, obj: ObjectRef) -> None:
    page = osd.get_page(obj, Page.USER_TIMESTAMPS)
    assert page.length == 0x1E
    values = [int.from_bytes(page.body[at : at + 6], "big") for at in range(0, 30, 6)]
    assert values[0] == stamps(osd, obj)[1]


@pytest.mark.parametrize(
    ("kind", "page", "length"),
    [
        ("root", Page.ROOT_TIMESTAMPS, 0x0D),
        ("partition", Page.PARTITION_TIMESTAMPS, 0x1F),
        ("collection", Page.COLLECTION_TIMESTAMPS, 0x1E),
    ],
)
def test_timestamps_elsewhere(
    osd: Commands, collection: ObjectRef, kind: str, page: int, length: int
) -> None:
    where = {"root": ROOT, "partition": ref(collection.partition_id), "collection": collection}
    assert osd.get_page(where[kind], page).length == length


# ---- which command moves which ----

STILL = {12: b"\x7f"}


class Watch:
    """Says which times of an object moved since the last look."""

    def __init__(self, osd: Commands, where: ObjectRef, page: int) -> None:
        self.osd, self.where, self.page = osd, where, page
        self.last = self.read()

    def read(self) -> dict[int, int]:
        numbers = [2, 3] if self.page == Page.ROOT_TIMESTAMPS else [1, 2, 3, 4, 5]
        wanted = tuple(AttributeId(self.page, number) for number in numbers)
        request = rq.get_attributes(self.where, attributes=AttributeLists(wanted, (), 256))
        reply = check(mangled(self.osd, request, STILL), OK)
        return {each.number: each.uint for each in reply.attributes}

    def moved(self) -> set[int]:
        before, self.last = self.last, self.read()
        assert all(self.last[number] >= before[number] for number in before), "time goes back"
        return {number for number in before if self.last[number] != before[number]}


def wait_for_the_clock(osd: Commands) -> None:
    """Until the target's clock, which counts milliseconds, has moved.  Moves no time itself."""
    clock = AttributeLists((AttributeId(Page.ROOT_INFORMATION, 0x100),), (), 64)
    request = rq.get_attributes(ROOT, attributes=clock)

    def read() -> int:
        return check(mangled(osd, request, STILL), OK).attributes[0].uint

    first = read()
    while read() == first:
        pass


def names(pid: int, obj: ObjectRef, collection: ObjectRef) -> dict[str, tuple[ObjectRef, int]]:
    return {
        "root": (ROOT, Page.ROOT_TIMESTAMPS),
        "partition": (ref(pid), Page.PARTITION_TIMESTAMPS),
        "collection": (collection, Page.COLLECTION_TIMESTAMPS),
        "object": (obj, Page.USER_TIMESTAMPS),
    }


def lists(*values: AttributeValue) -> AttributeLists:
    return AttributeLists((), values)


def member_of(collection: ObjectRef | None) -> AttributeLists:
    value = collection.object_id.to_bytes(8, "big") if collection else b""
    return lists(AttributeValue(Page.USER_COLLECTIONS, 1, value))


def expectations(
    pid: int, obj: ObjectRef, other: ObjectRef, collection: ObjectRef
) -> list[tuple[str, Request, dict[str, set[int]]]]:
    """A history: what is done, and every time that it moves."""
    mine = AttributeValue(Page.APPLICATION, 1, b"x")
    length = AttributeValue(Page.USER_INFORMATION, 0x82, (3).to_bytes(8, "big"))
    read = AttributeLists((AttributeId(0xF000_0000, 1),), (), 64)
    return [
        ("READ", rq.read(obj, 0, 1), {"object": {4}, "partition": {4}}),
        ("WRITE", rq.write(obj, 0, b"x"), {"object": {5}, "partition": {5}}),
        ("APPEND", rq.append(obj, b"x"), {"object": {5}, "partition": {5}}),
        ("CLEAR", rq.clear(obj, 0, 1), {"object": {5}, "partition": {5}}),
        (
            "set of the length",
            rq.set_attributes(obj, attributes=lists(length)),
            {"object": {3, 5}, "partition": {5}},
        ),
        ("PUNCH", rq.punch(obj, 0, 1), {"object": {5}, "partition": {5}}),
        ("get of the object", rq.get_attributes(obj, attributes=read), {"object": {2}}),
        ("set of the object", rq.set_attributes(obj, attributes=lists(mine)), {"object": {3}}),
        ("get of the partition", rq.get_attributes(ref(pid), attributes=read), {"partition": {2}}),
        (
            "set of the partition",
            rq.set_attributes(ref(pid), attributes=lists(AttributeValue(0x3001_0000, 1, b"x"))),
            {"partition": {3}},
        ),
        ("get of the root", rq.get_attributes(ROOT, attributes=read), {"root": {2}}),
        (
            "get of the collection",
            rq.get_attributes(collection, attributes=read),
            {"collection": {2}},
        ),
        (
            "set of the collection",
            rq.set_attributes(collection, attributes=lists(AttributeValue(0x6001_0000, 1, b"x"))),
            {"collection": {3}},
        ),
        (
            "join",
            rq.set_attributes(obj, attributes=member_of(collection)),
            {"object": {3}, "collection": {5}},
        ),
        ("LIST COLLECTION", rq.list_collection(collection), {"collection": {4}}),
        (
            "GET MEMBER ATTRIBUTES",
            rq.get_member_attributes(collection, attributes=read),
            {"object": {2}, "collection": {4}},
        ),
        (
            "leave",
            rq.set_attributes(obj, attributes=member_of(None)),
            {"object": {3}, "collection": {5}},
        ),
        ("QUERY", rq.query(collection, [], 64), {"collection": {4}}),
        ("LIST", rq.list_objects(pid), {"partition": {4}}),
        ("LIST of partitions", rq.list_objects(), {}),
        ("CREATE", rq.create(pid), {"partition": {5}}),
        ("REMOVE", rq.remove(other), {"partition": {5}}),
    ]


@pytest.mark.parametrize("index", range(22))
def test_which_times_move(
    osd: Commands, pid: PartitionId, collection: ObjectRef, index: int
) -> None:
    obj, other = osd.create(pid), osd.create(pid)
    osd.write(obj, 0, b"12345")
    name, request, expected = expectations(pid, obj, other, collection)[index]
    if name in ("LIST COLLECTION", "GET MEMBER ATTRIBUTES", "leave"):
        check(osd.reply(rq.set_attributes(obj, attributes=member_of(collection))), OK)
    watches = {kind: Watch(osd, *where) for kind, where in names(pid, obj, collection).items()}
    wait_for_the_clock(osd)
    for watch in watches.values():
        watch.last = watch.read()
    check(osd.reply(request), OK)
    moved = {kind: watch.moved() for kind, watch in watches.items()}
    assert {kind: found for kind, found in moved.items() if found} == expected, name


@pytest.mark.parametrize("index", range(22))
def test_none_moves_when_the_cdb_says_so(
    osd: Commands, pid: PartitionId, collection: ObjectRef, index: int
) -> None:
    obj, other = osd.create(pid), osd.create(pid)
    osd.write(obj, 0, b"12345")
    name, request, _ = expectations(pid, obj, other, collection)[index]
    if name in ("LIST COLLECTION", "GET MEMBER ATTRIBUTES", "leave"):
        check(osd.reply(rq.set_attributes(obj, attributes=member_of(collection))), OK)
    wait_for_the_clock(osd)
    watches = {kind: Watch(osd, *where) for kind, where in names(pid, obj, collection).items()}
    wait_for_the_clock(osd)
    for watch in watches.values():
        watch.last = watch.read()
    check(mangled(osd, request, STILL), OK)
    assert not any(watch.moved() for watch in watches.values()), name


def test_bypass_of_the_partition(osd: Commands, pid: PartitionId, collection: ObjectRef) -> None:
    """Nothing in it moves, but what is made has its times."""
    on = AttributeValue(Page.PARTITION_TIMESTAMPS, BYPASS, b"\x7f")
    osd.set_attributes(ref(pid), [on])
    start = now_ms()
    obj, other = osd.create(pid), osd.create(pid)
    end = now_ms()
    osd.write(obj, 0, b"12345")
    watches = {
        kind: Watch(osd, *where)
        for kind, where in names(pid, obj, collection).items()
        if kind != "root"
    }
    assert start - SKEW_MS < watches["object"].last[CREATED] < end + SKEW_MS
    wait_for_the_clock(osd)
    for name, request, _ in expectations(pid, obj, other, collection):
        check(osd.reply(request), OK)
        for kind, watch in watches.items():
            assert not watch.moved(), f"{name} moves a time of the {kind}"
    osd.set_attributes(ref(pid), [AttributeValue(on.page, on.number, b"\0")])
    osd.write(obj, 0, b"x")
    assert watches["object"].moved() == {DATA_SET}


def test_bypass_of_the_root(osd: Commands, pid: int) -> None:
    """Of its own times, and what new partitions begin with."""
    watch = Watch(osd, ROOT, Page.ROOT_TIMESTAMPS)
    on = AttributeValue(Page.ROOT_TIMESTAMPS, BYPASS, b"\x7f")
    osd.set_attributes(ROOT, [on])
    try:
        wait_for_the_clock(osd)
        watch.last = watch.read()
        wait_for_the_clock(osd)
        assert osd.get_attribute(ROOT, on.page, on.number) == b"\x7f"
        assert not watch.moved()
        made = osd.create_partition()
        assert osd.get_attribute(ref(made), Page.PARTITION_TIMESTAMPS, BYPASS) == b"\x7f"
        assert osd.get_attribute(ref(pid), Page.PARTITION_TIMESTAMPS, BYPASS) == b"\0"
        osd.remove_partition(made)
    finally:
        osd.set_attributes(ROOT, [AttributeValue(on.page, on.number, b"\0")])
    watch.last = watch.read()
    wait_for_the_clock(osd)
    osd.get_attribute(ROOT, on.page, on.number)
    assert watch.moved() == {ATTR_READ}


@pytest.mark.parametrize("value", [b"\x01", b"\x7e", b"\x80", b"\xe0", b"\xff", b"", b"\x7f\0"])
def test_bypass_takes_what_byte_12_takes(osd: Commands, pid: int, value: bytes) -> None:
    bypass = AttributeValue(Page.PARTITION_TIMESTAMPS, BYPASS, value)
    reply = osd.reply(rq.set_attributes(ref(pid), attributes=lists(bypass)))
    check(reply, LIST_FIELD, bypass.id)


@pytest.mark.parametrize("control", [0x01, 0x40, 0x7E, 0x80, 0xDF, 0xE0, 0xFF])
def test_reserved_and_vendor_values_of_byte_12(osd: Commands, obj: ObjectRef, control: int) -> None:
    reply = mangled(osd, rq.read(obj, 0, 0), {12: bytes([control])})
    check(reply, CDB_FIELD.at(12))


@pytest.mark.parametrize("number", [CREATED, ATTR_READ, ATTR_SET, DATA_READ, DATA_SET])
def test_times_are_not_settable(osd: Commands, obj: ObjectRef, number: int) -> None:
    value = AttributeValue(Page.USER_TIMESTAMPS, number, bytes(6))
    check(osd.reply(rq.set_attributes(obj, attributes=lists(value))), LIST_FIELD, value.id)
