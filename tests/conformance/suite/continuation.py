# SPDX-License-Identifier: GPL-2.0-or-later
"""CDB continuation segments: headers and descriptors that are wrong, scatter/gather that is right."""

from __future__ import annotations

import struct

from tests.conformance import wire as w
from tests.conformance.cells import cell, each
from tests.conformance.commands import Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import READ_PAST_END, RECOVERED
from tests.conformance.suite import versions
from tests.conformance.suite.instances import (
    CONTENT,
    MAKE,
    copy_source,
    known,
    query_list,
    scattered,
    user_object,
)
from tests.conformance.wire import Request

SCATTERED = {"READ": 0x8885, "WRITE": 0x8886, "CREATE AND WRITE": 0x8892}
TAKING = known("EXEC", having=lambda row: row.continuation)


def example(t: LogicalUnit, row: Row) -> Request:
    """A valid request with a continuation segment of at least one descriptor."""
    if row.name in SCATTERED:
        oid = t.free_oid() if row.name == "CREATE AND WRITE" else user_object(t)
        return scattered(SCATTERED[row.name], t, oid)
    request = MAKE[row.name](t)
    if row.name in ("APPEND", "CLEAR", "PUNCH"):
        return request.but(segment=versions.wanting(row.code, versions.version(t, request.oid)))
    if row.name in versions.COMPARING:
        return versions.comparing(t, row)
    if row.name == "CREATE USER TRACKING COLLECTION":
        extension = w.descriptor(0xFFEE, bytes(104))
        return request.but(address=t.collection(), segment=w.segment(row.code, extension))
    return request


@each(TAKING, "segment format", "osd2-wire 4.1 FORMAT")
def other_formats(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    for form in (0, 2, 0xFF):
        t.bad_field(request.but(out_patches={0: bytes([form])}))


@each(TAKING, "segment action", "osd2-wire 4.1 SERVICE ACTION")
def segment_of_another_command(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    other = 0x8886 if row.code == 0x8885 else 0x8885
    t.bad_field(request.but(out_patches={2: other.to_bytes(2, "big")}))


@each(TAKING, "segment type", "osd2-wire 4.3 unknown type")
def descriptors_nobody_defined(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    for kind in (0x0003, 0x00FF, 0xFFFF):
        t.bad_field(request.but(out_patches={40: kind.to_bytes(2, "big")}))


@each(TAKING, "segment type", "osd2-wire 4.3 used by")
def descriptor_of_another_command(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    other = w.pieces((0, 4)) if row.name not in SCATTERED else query_list()
    t.bad_field(request.but(segment=w.segment(row.code, other)))


@each(
    [row for row in TAKING if row.name != "CREATE USER TRACKING COLLECTION"],
    "segment type",
    "osd2-wire 3.4, 3.9, 3.13 at most one",
)
def descriptor_twice(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    t.bad_field(request.but(segment=request.segment + request.segment[40:]))


@each(TAKING, "segment pad", "osd2-wire 4.2 length + pad a multiple of 8")
def pad_and_length_that_do_not_fit(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    length = int.from_bytes(request.segment[44:48], "big")
    t.bad_field(request.but(out_patches={44: (length + 1).to_bytes(4, "big")}))
    pad = (request.segment[43] + 1) % 8
    t.bad_field(request.but(out_patches={43: bytes([pad])}))


@each(TAKING, "segment pad", "osd2-wire 4.2 descriptor past the segment")
def descriptor_longer_than_the_segment(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    length = int.from_bytes(request.segment[44:48], "big")
    for wrong in (length + 8, 0xFFFF_FFF8 - request.segment[43]):
        t.bad_field(request.but(out_patches={44: wrong.to_bytes(4, "big")}))


@each(TAKING, "segment length", "osd2-wire 4.1 length rules")
def lengths_of_the_segment(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    for length in (1, 8, 32, 39, 41, 44, len(request.segment) + 1):
        t.bad_field(request.patched(48, length.to_bytes(4, "big")))


@each(TAKING, "segment length", "osd2-wire 4.1 beyond the transport's Data-Out")
def segment_beyond_data_out(t: LogicalUnit, row: Row) -> None:
    request = example(t, row).but(data=b"")
    t.bad_field(request.but(length=0, cut_out=8))
    for length in (len(request.segment) + 8, 1 << 20, 0xFFFF_FFF8):
        t.bad_field(request.but(length=0).patched(48, length.to_bytes(4, "big")))


@each(TAKING, "continuation", "osd2-wire 4.2 terminator")
def what_follows_the_terminator_is_ignored(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    ended = request.segment + w.descriptor(0, b"") + b"\xee" * 16
    t.good(request.but(segment=ended))


# ---- scatter/gather ----


def _pieces(t: LogicalUnit, action: int, oid: int, *ranges: tuple[int, int]) -> Request:
    total = sum(length for _, length in ranges)
    part = w.segment(action, w.pieces(*ranges))
    return Request(action, t.pid, oid, total, segment=part)


@cell("READ", "continuation", "osd2-wire A.3 and 3.4 scatter/gather")
def two_pieces_back_to_back(t: LogicalUnit) -> None:
    oid = t.object(bytes(range(256)) * 300)
    request = _pieces(t, 0x8885, oid, (0, 4096), (65536, 8192)).but(data_in=12288)
    t.same(len(request.build().data_out), 80, "Data-Out of the example")
    answer = t.good(request)
    whole = bytes(range(256)) * 300
    t.same(answer.data == whole[:4096] + whole[65536 : 65536 + 8192], True, "both pieces", answer)


@cell("READ", "continuation", "osd2-wire 3.4 any order, overlaps, base address")
def any_order_overlaps_and_a_base(t: LogicalUnit) -> None:
    oid = t.object(CONTENT)
    request = _pieces(t, 0x8885, oid, (8, 4), (0, 8), (6, 4)).but(address=10, data_in=16)
    answer = t.good(request)
    t.same(answer.data, CONTENT[18:22] + CONTENT[10:18] + CONTENT[16:20], "the pieces", answer)


@cell("READ", "continuation", "osd2-wire 9-24 fixed slots")
def short_piece_keeps_its_slot(t: LogicalUnit) -> None:
    oid = t.object(CONTENT)
    request = _pieces(t, 0x8885, oid, (60, 16), (0, 8)).but(data_in=24)
    answer = t.refused(request, READ_PAST_END, key=RECOVERED)
    wanted = CONTENT[60:].ljust(16, b"\0") + CONTENT[:8]
    t.same(answer.data[:24], wanted, "fixed slots, zeros behind the end", answer)


@cell("READ", "continuation", "osd2-wire 2.12, 3.4 pieces, then attributes")
def attributes_behind_the_pieces(t: LogicalUnit) -> None:
    oid = t.object(CONTENT)
    request = _pieces(t, 0x8885, oid, (1, 3), (40, 2)).but(data_in=5, gets=((0x1, 0x82),))
    answer = t.good(request)
    t.same(answer.data[:8], CONTENT[1:4] + CONTENT[40:42] + bytes(3), "pieces and gap", answer)
    t.same(answer.values, [struct.pack(">Q", 64)], "logical length", answer)


@cell("CREATE AND WRITE", "continuation", "osd2-wire 2.11, 3.4 pieces and attributes")
def pieces_and_attributes_in_one(t: LogicalUnit) -> None:
    oid, name = t.free_oid(), (0x1_0000, 1)
    request = scattered(0x8892, t, oid).but(sets=((*name, b"set"),), gets=(name,))
    t.same(t.good(request).values, [b"set"], "the attribute")
    t.same(t.read(oid), b"abcd" + bytes(12) + b"ABCDEFGH", "the object")


@cell("WRITE", "continuation", "osd2-wire 3.4 scatter/gather")
def pieces_land_where_they_belong(t: LogicalUnit) -> None:
    oid = t.object()
    t.good(scattered(0x8886, t, oid))
    t.same(t.read(oid), b"abcd" + bytes(12) + b"ABCDEFGH", "the object")


@cell("WRITE", "continuation", "osd2-wire 3.4 base address")
def base_address_is_added(t: LogicalUnit) -> None:
    oid = t.object()
    t.good(scattered(0x8886, t, oid).but(address=8))
    t.same(t.read(oid), bytes(8) + b"abcd" + bytes(12) + b"ABCDEFGH", "the object")


@cell("CREATE AND WRITE", "continuation", "osd2-wire 3.4 scatter/gather")
def created_of_pieces(t: LogicalUnit) -> None:
    oid = t.free_oid()
    t.good(scattered(0x8892, t, oid))
    t.same(t.read(oid), b"abcd" + bytes(12) + b"ABCDEFGH", "the object")


@each([row for row in TAKING if row.name in SCATTERED], "range overflow", "osd2-wire 3.4")
def piece_beyond_64_bits(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    for piece in ((2**64 - 4, 12), (2**64 - 1, 12)):
        part = w.segment(row.code, w.pieces(piece))
        t.bad_field(request.but(segment=part))
    base = request.but(segment=w.segment(row.code, w.pieces((2**63, 12))), address=2**63)
    t.bad_field(base)


@each([row for row in TAKING if row.name in SCATTERED], "own fields", "osd2-wire 3.4 CDB LENGTH")
def pieces_do_not_add_up_to_the_length(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    if row.name == "READ":
        request = request.but(data_in=64)
    for length in (11, 13):
        t.bad_field(request.but(length=length, data=request.data + bytes(8)))


@each(
    [row for row in TAKING if row.name in SCATTERED], "segment pad", "osd2-wire 4.3 pad must be 0"
)
def list_that_is_no_multiple_of_an_entry(t: LogicalUnit, row: Row) -> None:
    request = example(t, row)
    content = struct.pack(">QQ", 0, 12) + bytes(8)
    t.bad_field(request.but(segment=w.segment(row.code, w.descriptor(0x0001, content))))


@cell("COPY USER OBJECTS", "segment type", "osd2-wire 3.13 exactly one source")
def source_must_be_there(t: LogicalUnit) -> None:
    request = MAKE["COPY USER OBJECTS"](t)
    t.bad_field(request.but(segment=w.segment(0x8893)))
    t.bad_field(request.but(segment=b""))


@cell("COPY USER OBJECTS", "segment type", "osd2-wire 3.13 at most one of each")
def extension_capabilities_beside_the_source(t: LogicalUnit) -> None:
    request = MAKE["COPY USER OBJECTS"](t)
    source, extension = request.segment[40:], w.descriptor(0xFFEE, bytes(104))
    t.bad_field(request.but(segment=w.segment(0x8893, source, extension, extension)))
    t.good(request.but(segment=w.segment(0x8893, source, extension)))


@cell("COPY USER OBJECTS", "bad object", "osd2-wire 3.13 source object")
def source_does_not_exist(t: LogicalUnit) -> None:
    request = MAKE["COPY USER OBJECTS"](t)
    for pid, oid in ((t.pid, t.free_oid()), (t.absent_pid(), t.free_oid())):
        t.bad_field(request.but(segment=w.segment(0x8893, copy_source(pid, oid))))
