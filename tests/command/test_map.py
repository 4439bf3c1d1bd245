# SPDX-License-Identifier: GPL-2.0-or-later
"""READ MAP (osd2-wire 3.11): data and holes as they are, on one device and on two."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from pyosd.wire.reply import Reply
from tests.conftest import MakeHarness
from tests.expect import BEYOND_END, CDB_FIELD, NO_OBJECT, NO_PARTITION, OK, check

ALL, DATA, HOLE, DAMAGED, BAD_ATTRIBUTES = 0, 1, 2, 3, 0x8000
UNIT = 1 << 16
"""No file system has larger blocks, so extents of this size are exact everywhere."""
HEAD = 2 << 20
Extent = tuple[int, int, int]


def request(obj: ObjectRef, kind: int = ALL, start: int = 0, room: int = 65536) -> Request:
    return rq.read_map(obj, start, room, kind)


def decode(reply: Reply) -> list[Extent]:
    """Type, offset, length of every descriptor that came."""
    data = bytes(reply.data)
    assert len(data) % 16 == 8
    found = [struct.unpack_from(">2xHIQ", data, at) for at in range(8, len(data), 16)]
    return [(kind, offset, length) for kind, length, offset in found]


def extents(osd: Commands, obj: ObjectRef, kind: int = ALL, start: int = 0) -> list[Extent]:
    reply = check(osd.reply(request(obj, kind, start)), OK)
    found = decode(reply)
    assert struct.unpack_from(">Q", reply.data)[0] == 16 * len(found)
    return found


def test_empty(osd: Commands, obj: ObjectRef) -> None:
    assert extents(osd, obj) == []


def test_data(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"x" * 1000)
    assert extents(osd, obj) == [(DATA, 0, 1000)]
    assert extents(osd, obj, HOLE) == []


def test_data_and_holes_in_turn(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, UNIT, b"x" * UNIT)
    osd.write(obj, 4 * UNIT, b"y" * 10)
    data = [(DATA, UNIT, UNIT), (DATA, 4 * UNIT, 10)]
    holes = [(HOLE, 0, UNIT), (HOLE, 2 * UNIT, 2 * UNIT)]
    assert extents(osd, obj) == [holes[0], data[0], holes[1], data[1]]
    assert extents(osd, obj, DATA) == data
    assert extents(osd, obj, HOLE) == holes
    assert extents(osd, obj, DAMAGED) == extents(osd, obj, BAD_ATTRIBUTES) == []


def test_from_the_middle_of_an_extent(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, UNIT, b"x" * UNIT)
    assert extents(osd, obj, start=100) == [(HOLE, 100, UNIT - 100), (DATA, UNIT, UNIT)]
    assert extents(osd, obj, start=UNIT + 7) == [(DATA, UNIT + 7, UNIT - 7)]
    assert extents(osd, obj, start=2 * UNIT) == []
    check(osd.reply(request(obj, start=2 * UNIT + 1)), BEYOND_END)


def test_cleared_and_extended(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"x" * (4 * UNIT))
    osd.clear(obj, UNIT, UNIT)
    osd.clear(obj, 6 * UNIT, 5)
    assert extents(osd, obj) == [
        (DATA, 0, UNIT),
        (HOLE, UNIT, UNIT),
        (DATA, 2 * UNIT, 2 * UNIT),
        (HOLE, 4 * UNIT, 2 * UNIT + 5),
    ]


def test_truncated_and_punched(osd: Commands, obj: ObjectRef) -> None:
    """PUNCH keeps the holes of what it moves."""
    osd.write(obj, 0, b"x" * UNIT)
    osd.write(obj, 8 * UNIT, b"y" * UNIT)
    osd.punch(obj, 2 * UNIT, 2 * UNIT)
    assert extents(osd, obj) == [
        (DATA, 0, UNIT),
        (HOLE, UNIT, 5 * UNIT),
        (DATA, 6 * UNIT, UNIT),
    ]
    osd.punch(obj, UNIT // 2, 1 << 40)
    assert extents(osd, obj) == [(DATA, 0, UNIT // 2)]


@pytest.mark.parametrize("kind", [4, 5, 0x7FFF, 0x8001, 0xFFFF])
def test_reserved_type(osd: Commands, obj: ObjectRef, kind: int) -> None:
    check(osd.reply(request(obj, kind)), CDB_FIELD.at(48))


@pytest.mark.parametrize("room", [1, 7])
def test_no_room_for_the_header(osd: Commands, obj: ObjectRef, room: int) -> None:
    check(osd.reply(request(obj, room=room)), CDB_FIELD.at(32))


@pytest.mark.parametrize(("room", "fit"), [(8, 0), (23, 0), (24, 1), (39, 1), (40, 2), (56, 3)])
def test_truncated_answer(osd: Commands, obj: ObjectRef, room: int, fit: int) -> None:
    """Whole descriptors only; the length says what there is."""
    osd.write(obj, UNIT, b"x" * UNIT)
    osd.write(obj, 4 * UNIT, b"x")
    reply = check(osd.reply(request(obj, room=room)), OK)
    assert struct.unpack_from(">Q", reply.data)[0] == 64
    assert decode(reply) == extents(osd, obj)[:fit]


def test_no_answer_wanted(osd: Commands, obj: ObjectRef) -> None:
    reply = check(osd.reply(request(obj, room=0)), OK)
    assert reply.response.data_in.nbytes == 0
    check(osd.reply(request(obj, start=1, room=0)), BEYOND_END)


def test_absent(osd: Commands, pid: int, collection: ObjectRef) -> None:
    check(osd.reply(request(ref(pid, 0x1_2345))), NO_OBJECT)
    check(osd.reply(request(ref(0x7777_0000_0000, 0x1_2345))), NO_PARTITION)
    check(osd.reply(request(collection)), NO_OBJECT)


def test_with_attributes(osd: Commands, obj: ObjectRef) -> None:
    colour = AttributeValue(Page.APPLICATION, 1, b"green")
    osd.write(obj, 0, b"12345")
    lists = AttributeLists((colour.id,), (colour,))
    reply = check(osd.reply(rq.read_map(obj, 0, 64, attributes=lists)), OK)
    assert struct.unpack(">Q2xHIQ", reply.response.data_in[:24]) == (16, DATA, 5, 0)
    assert reply.attribute(colour.id) == colour


def test_more_than_4_gib(make_harness: MakeHarness) -> None:
    """A length has 32 bits: longer extents take several descriptors."""
    osd = make_harness().osd
    obj = osd.create(osd.create_partition())
    osd.write(obj, 10 << 30, b"far")
    found = extents(osd, obj)
    assert found[-1] == (DATA, 10 << 30, 3)
    at = 0
    for kind, offset, length in found[:-1]:
        assert (kind, offset) == (HOLE, at)
        at += length
    assert at == 10 << 30


def test_across_the_border_of_two_devices(make_harness: MakeHarness, tmp_path: Path) -> None:
    """Data that goes on from the head into the tail is one extent, and so is a hole."""
    (tmp_path / "heads").mkdir()
    osd = make_harness(ssd=tmp_path / "heads").osd
    pid = osd.create_partition()
    whole, sparse = osd.create(pid), osd.create(pid)
    osd.write(whole, HEAD - UNIT, b"x" * (3 * UNIT))
    assert extents(osd, whole) == [(HOLE, 0, HEAD - UNIT), (DATA, HEAD - UNIT, 3 * UNIT)]
    assert extents(osd, whole, start=HEAD + UNIT) == [(DATA, HEAD + UNIT, UNIT)]
    osd.write(sparse, 0, b"x" * UNIT)
    osd.write(sparse, HEAD + 2 * UNIT, b"y")
    assert extents(osd, sparse) == [
        (DATA, 0, UNIT),
        (HOLE, UNIT, HEAD + UNIT),
        (DATA, HEAD + 2 * UNIT, 1),
    ]
    osd.clear(whole, HEAD - UNIT, 2 * UNIT)
    assert extents(osd, whole) == [(HOLE, 0, HEAD + UNIT), (DATA, HEAD + UNIT, UNIT)]
