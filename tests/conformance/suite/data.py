# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands about the bytes of a user object: READ, WRITE, APPEND, CLEAR, PUNCH, FLUSH, READ MAP."""

from __future__ import annotations

import struct

from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, Row
from tests.conformance.lu import ABSENT, LogicalUnit
from tests.conformance.sense import (
    DATA_PROTECT,
    QUOTA_ERROR,
    READ_PAST_END,
    RECOVERED,
)
from tests.conformance.suite.instances import CONTENT, FLUSHES, MAKE, user_object
from tests.conformance.wire import CURRENT_COMMAND, Request

MOST = 2**64 - 1
SIZE = (0x1, 0x82)


def size(t: LogicalUnit, oid: int) -> int:
    return t.number(oid, *SIZE)


def read(t: LogicalUnit, oid: int, length: int, at: int) -> Request:
    return Request(0x8885, t.pid, oid, length, at, data_in=length)


# ---- READ ----


@cell("READ", "ok", "osd2-wire 3.3 READ")
def returns_the_range(t: LogicalUnit) -> None:
    oid = user_object(t)
    for at, length in ((0, 64), (0, 1), (63, 1), (10, 20)):
        answer = t.good(read(t, oid, length, at))
        t.same(answer.data, CONTENT[at : at + length], f"{length} bytes at {at}", answer)


@cell("READ", "beyond end", "osd2-wire 3.3 READ past end")
def returns_what_there_is_and_says_how_much(t: LogicalUnit) -> None:
    oid = user_object(t)
    answer = t.refused(read(t, oid, 100, 60), READ_PAST_END, key=RECOVERED)
    assert answer.sense is not None
    t.same(answer.sense.information, 4, "bytes read, in descriptor 01h", answer)
    t.same(answer.data[:4], CONTENT[60:], "the bytes before the end", answer)
    t.same(answer.data[4:].strip(b"\0"), b"", "nothing but zeros behind them", answer)


@cell("READ", "Data-In short", "osd2-wire 8.4, 3.3 a length beyond any transport")
def reads_as_much_as_there_is_and_room_for(t: LogicalUnit) -> None:
    oid = user_object(t)
    request = Request(0x8885, t.pid, oid, 1 << 40, expect_in=80)
    answer = t.refused(request, READ_PAST_END, key=RECOVERED)
    assert answer.sense is not None
    t.same(answer.sense.information, 64, "bytes read, in descriptor 01h", answer)
    t.same(answer.data[:64], CONTENT, "the bytes before the end", answer)


@cell("READ", "beyond end", "osd2-wire 9-23 READ starting at or past the end")
def starting_at_or_past_the_end(t: LogicalUnit) -> None:
    oid = user_object(t)
    for at in (64, 65, 1 << 40):
        answer = t.refused(read(t, oid, 8, at), READ_PAST_END, key=RECOVERED)
        assert answer.sense is not None
        t.same(answer.sense.information, 0, "bytes read, in descriptor 01h", answer)


@cell("READ", "zero length", "osd2-wire 3.3 READ length 0")
def no_bytes(t: LogicalUnit) -> None:
    oid = user_object(t)
    for at in (0, 64, 1 << 40):
        t.same(t.good(read(t, oid, 0, at)).data, b"", f"0 bytes at {at}")


@each(
    [BY_NAME[name] for name in ("READ", "WRITE", "CLEAR", "PUNCH", "CREATE AND WRITE")],
    "range overflow",
    "osd2-wire 7.4 start + length beyond 64 bits",
)
def range_beyond_64_bits(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for at in (MOST, MOST - request.length + 2):
        t.bad_field(request.but(address=at), (32, 40))
    if row.name == "CREATE AND WRITE":
        t.check(not t.exists(request.oid), None, "no object of that id afterwards")


@cell("READ", "range overflow", "osd2-wire 7.4 start + length beyond 64 bits")
def length_beyond_64_bits(t: LogicalUnit) -> None:
    request = MAKE["READ"](t).but(length=MOST, address=1, expect_in=64)
    t.bad_field(request, (32, 40))


# ---- WRITE ----


@cell("WRITE", "ok", "osd2-wire 3.3 WRITE")
def replaces_the_range(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.good(Request(0x8886, t.pid, oid, 5, 10, data=b"hello"))
    t.same(t.read(oid), CONTENT[:10] + b"hello" + CONTENT[15:], "the object")
    t.same(size(t, oid), 64, "logical length")


@cell("WRITE", "ok", "osd2-wire A.2 write with a set attribute")
def write_byte_for_byte(t: LogicalUnit) -> None:
    """The worked example: offset B000_0001h for the set list behind 5 bytes of data."""
    oid = t.object()
    request = Request(
        *(0x8886, t.pid, oid, 5, 100),
        data=b"hello",
        sets=((0x1_0000, 1, bytes.fromhex("01020304")),),
    )
    built = request.build()
    wanted = bytes.fromhex(
        "68656C6C6F 000000 09000000 00000000 00010000 00000001 0000000000000004 01020304 00000000"
    )
    t.same(built.data_out, wanted, "Data-Out of the example")
    t.same(built.cdb[52:76].hex(), "00000000ffffffff00000000ffffffff00000020b0000001", "52-75")
    t.good(request)
    t.same(t.read(oid), bytes(100) + b"hello", "the object")
    t.same(t.get(oid, 0x1_0000, 1), bytes.fromhex("01020304"), "the attribute")


@cell("WRITE", "beyond end", "osd2-wire 3.3 WRITE past end")
def extends_and_fills_with_zeros(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.good(Request(0x8886, t.pid, oid, 3, 100, data=b"end"))
    t.same(t.read(oid), CONTENT + bytes(36) + b"end", "the object")
    t.same(size(t, oid), 103, "logical length")
    far = (64 << 20) + 1
    t.good(Request(0x8886, t.pid, oid, 3, far, data=b"far"))
    t.same((size(t, oid), t.read(oid, far - 4, 7)), (far + 3, bytes(4) + b"far"), "far end")


@each(
    [BY_NAME[name] for name in ("WRITE", "APPEND", "CLEAR")],
    "zero length",
    "osd2-wire 3.3 length 0",
)
def nothing_changes(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    t.good(request.but(length=0, data=b""))
    t.same(t.read(request.oid), CONTENT, "the object")


@cell("PUNCH", "zero length", "osd2-wire 3.3 PUNCH length 0")
def punch_of_nothing(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.good(Request(0x8884, t.pid, oid, 0, 4))
    t.same(t.read(oid), CONTENT, "the object")


@cell("CREATE AND WRITE", "zero length", "osd2-wire 3.2, 3.3 length 0")
def created_empty(t: LogicalUnit) -> None:
    oid = t.free_oid()
    t.good(Request(0x8892, t.pid, oid))
    t.same((t.exists(oid), size(t, oid)), (True, 0), "exists, logical length")


@cell("READ MAP", "zero length", "osd2-wire 3.11 an empty object")
def map_of_an_empty_object(t: LogicalUnit) -> None:
    oid = t.object()
    answer = t.good(MAKE["READ MAP"](t).but(oid=oid))
    t.same(answer.data[:8], bytes(8), "ADDITIONAL LENGTH", answer)


# ---- APPEND ----


def _appended_at(t: LogicalUnit, oid: int, data: bytes) -> int:
    request = Request(0x8887, t.pid, oid, len(data), data=data, gets=((CURRENT_COMMAND, 5),))
    return int.from_bytes(t.good(request).values[0], "big")


@cell("APPEND", "ok", "osd2-wire 3.3 APPEND, 5.19 #5")
def writes_at_the_end_and_says_where(t: LogicalUnit) -> None:
    oid = t.object()
    t.same([_appended_at(t, oid, b"abc"), _appended_at(t, oid, b"defg")], [0, 3], "starting bytes")
    t.same(t.read(oid), b"abcdefg", "the object")


@cell("APPEND", "beyond end", "osd2-wire 3.3 logical length decides")
def appends_at_the_logical_length(t: LogicalUnit) -> None:
    oid = t.object(b"abc")
    t.set(oid, *SIZE, struct.pack(">Q", 10))
    t.same(_appended_at(t, oid, b"x"), 10, "starting byte")
    t.same(t.read(oid), b"abc" + bytes(7) + b"x", "the object")


# ---- CLEAR, PUNCH ----


@cell("CLEAR", "ok", "osd2-wire 3.3 CLEAR")
def range_becomes_zeros(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.good(Request(0x8889, t.pid, oid, 8, 4))
    t.same(t.read(oid), CONTENT[:4] + bytes(8) + CONTENT[12:], "the object")


@cell("CLEAR", "beyond end", "osd2-wire 3.3 CLEAR past the end extends")
def clear_extends(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.good(Request(0x8889, t.pid, oid, 40, 60))
    t.same((t.read(oid), size(t, oid)), (CONTENT[:60] + bytes(40), 100), "object, length")
    t.good(Request(0x8889, t.pid, oid, 10, 200))
    t.same(size(t, oid), 210, "logical length")


@cell("PUNCH", "ok", "osd2-wire 3.3 PUNCH")
def tail_moves_down(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.good(Request(0x8884, t.pid, oid, 8, 4))
    t.same((t.read(oid), size(t, oid)), (CONTENT[:4] + CONTENT[12:], 56), "object, length")


@cell("PUNCH", "beyond end", "osd2-wire 3.3 PUNCH start > length")
def start_past_the_end(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.bad_field(Request(0x8884, t.pid, oid, 1, 65), 40)
    t.same(t.read(oid), CONTENT, "the object")


@cell("PUNCH", "beyond end", "osd2-wire 3.3 PUNCH start + length beyond the end")
def cuts_at_start(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.good(Request(0x8884, t.pid, oid, 100, 60))
    t.same((t.read(oid), size(t, oid)), (CONTENT[:60], 60), "object, length")


# ---- quota ----


@each(
    [BY_NAME[name] for name in ("WRITE", "APPEND", "CLEAR")],
    "quota",
    "osd2-wire 5.12 maximum user object length",
)
def object_longer_than_its_quota(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    t.set(request.oid, 0x2, 0x1, struct.pack(">Q", 66))
    over = request if row.name == "APPEND" else request.but(address=64)
    t.refused(over, QUOTA_ERROR, key=DATA_PROTECT)
    t.same(t.read(request.oid), CONTENT, "the object")
    if row.name != "APPEND":
        t.good(request.but(address=66 - request.length))


@cell("SET ATTRIBUTES", "quota", "osd2-wire 5.11, 5.12 logical length")
def logical_length_beyond_the_quota(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.set(oid, 0x2, 0x1, struct.pack(">Q", 66))
    request = Request(0x888F, t.pid, oid, sets=((*SIZE, struct.pack(">Q", 67)),))
    t.refused(request, QUOTA_ERROR, key=DATA_PROTECT)
    t.same(size(t, oid), 64, "logical length")


@cell("CREATE AND WRITE", "quota", "osd2-wire 5.12 inherited maximum length")
def created_longer_than_the_partition_allows(t: LogicalUnit) -> None:
    pid = t.partition()
    t.set(0, 0x3000_0002, 0x1, struct.pack(">Q", 8), pid)
    oid = t.free_oid()
    t.good(Request(0x8892, pid, oid, 8, data=CONTENT[:8]))
    over = t.free_oid()
    t.refused(Request(0x8892, pid, over, 9, data=CONTENT[:9]), QUOTA_ERROR, key=DATA_PROTECT)
    t.check(not t.exists(over, pid), None, "no object left behind")


# ---- FLUSH ----


@each([BY_NAME[name] for name in FLUSHES], "ok", "osd2-wire 3.6, 9-2 every scope")
def any_scope_in_either_place(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for scope in (0, 1, 2):
        t.good(request.but(byte11=scope))
        t.good(request.but(byte10=scope))


@each([BY_NAME[name] for name in FLUSHES], "isolation", "osd2-wire 9-2 byte 10 of FLUSH")
def byte_10_is_no_isolation(t: LogicalUnit, row: Row) -> None:
    for bits in (1, 2):
        t.good(MAKE[row.name](t).but(byte10=bits))


@each(
    [BY_NAME[name] for name in FLUSHES if name != "FLUSH OSD"],
    "zero length",
    "osd2-wire 3.6 nothing to flush",
)
def nothing_to_flush(t: LogicalUnit, row: Row) -> None:
    if row.name == "FLUSH PARTITION":
        t.good(Request(row.code, t.partition()))
    else:
        t.good(Request(row.code, t.pid, t.object() if row.name == "FLUSH" else t.collection()))


@cell("FLUSH PARTITION", "own fields", "osd2-wire 9-25 bytes 24-31 are ignored")
def collection_id_is_ignored(t: LogicalUnit) -> None:
    t.good(Request(0x889B, t.pid, ABSENT))


@cell("FLUSH", "beyond end", "osd2-wire 3.6 range of scope 2")
def range_past_the_end(t: LogicalUnit) -> None:
    request = MAKE["FLUSH"](t).but(byte11=2)
    t.good(request.but(length=10, address=60))
    t.good(request.but(length=0, address=0))


# ---- READ MAP ----

Extent = tuple[int, int, int]
DATA, HOLE = 1, 2


def extents(
    t: LogicalUnit, oid: int, kind: int = 0, start: int = 0, room: int = 4096
) -> list[Extent]:
    """(type, offset, length) of every descriptor."""
    request = Request(0x88B1, t.pid, oid, room, start, kind << 16, data_in=room)
    answer = t.good(request)
    (additional,) = struct.unpack_from(">Q", answer.data)
    t.check(additional % 16 == 0, answer, "ADDITIONAL LENGTH, 16 bytes a descriptor", additional)
    body = answer.data[8 : 8 + additional]
    t.check(len(body) == additional, answer, "as many descriptors as the length says", len(body))
    found = [(each[0], each[2], each[1]) for each in struct.iter_unpack(">2xHIQ", body)]
    t.check(found == sorted(found, key=lambda each: each[1]), answer, "ascending offsets", found)
    return found


@cell("READ MAP", "ok", "osd2-wire 3.11 all types")
def map_covers_the_object_once(t: LogicalUnit) -> None:
    """Every byte in exactly one descriptor; what was written is never a hole."""
    oid = t.object(b"x" * 100)
    t.write(oid, 1 << 20, b"y" * 100)
    found, at = extents(t, oid), 0
    for kind, start, length in found:
        t.same((start, kind in (DATA, HOLE)), (at, True), "next offset, and a type")
        at = start + length
    t.same(at, (1 << 20) + 100, "where the map ends")
    for byte in (0, 99, 1 << 20, (1 << 20) + 99):
        here = [kind for kind, start, length in found if start <= byte < start + length]
        t.same(here, [DATA], f"type at byte {byte}")


@cell("READ MAP", "ok", "osd2-wire 3.11 REQUESTED MAP TYPE")
def one_type_only(t: LogicalUnit) -> None:
    oid = t.object(b"x" * 100)
    t.write(oid, 1 << 20, b"y" * 100)
    everything = extents(t, oid)
    for kind in (DATA, HOLE):
        wanted = [each for each in everything if each[0] == kind]
        t.same(extents(t, oid, kind), wanted, f"descriptors of type {kind}")
    t.same(extents(t, oid, 3) + extents(t, oid, 0x8000), [], "damaged data and attributes")


@cell("READ MAP", "ok", "osd2-wire 3.11 DATA MAP BYTE OFFSET")
def map_from_an_offset_on(t: LogicalUnit) -> None:
    oid = t.object(b"x" * 100)
    found = extents(t, oid, start=40)
    t.same(sum(length for _, at, length in found if at >= 40) >= 60, True, "bytes from 40 on")
    t.check(all(at + length > 40 for _, at, length in found), None, "nothing before 40", found)


@cell("READ MAP", "beyond end", "osd2-wire 3.11 offset > logical length")
def offset_past_the_end(t: LogicalUnit) -> None:
    request = MAKE["READ MAP"](t)
    t.bad_field(request.but(address=65), 40)
    t.good(request.but(address=64))


@cell("READ MAP", "own fields", "osd2-wire 3.11 REQUESTED MAP TYPE")
def unknown_map_type(t: LogicalUnit) -> None:
    request = MAKE["READ MAP"](t)
    for kind in (4, 0x7FFF, 0x8001):
        t.bad_field(request.but(word48=kind << 16), 48)


@cell("READ MAP", "truncated", "osd2-wire 3.11 ALLOCATION LENGTH")
def only_what_fits(t: LogicalUnit) -> None:
    oid = t.object(b"x" * 100)
    t.write(oid, 1 << 20, b"y" * 100)
    whole = t.good(MAKE["READ MAP"](t).but(oid=oid)).data
    answer = t.good(MAKE["READ MAP"](t).but(oid=oid, length=24, data_in=24))
    t.same(answer.data[:24], whole[:24], "the untruncated length, and one descriptor", answer)
