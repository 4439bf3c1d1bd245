# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes of OSD-2 requests and answers, typed from the standard's tables (osd2-wire 2, 4, 5).

Lives here: a CDB put together field by field, lists, continuation segments, the offset format, and
readers for what comes back.  Deliberately not shared with any client or target of this project: a
mistake both ends make must not go unseen.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

from tests.fields import replace

CDB_LENGTH = 236
UNUSED = 0xFFFF_FFFF
ALL = 0xFFFF_FFFF
CURRENT_COMMAND = 0xFFFF_FFFE
FIRST_ID = 0x1_0000

SET_ONE, PAGE, LIST = 1, 2, 3
GET_LIST, VALUE_LIST, MULTI_OBJECT_LIST = 0x1, 0x9, 0xE

FUA, DPO = 0x08, 0x10
ROOT, PARTITION, COLLECTION, USER_OBJECT = 0x01, 0x02, 0x40, 0x80

AttributeName = tuple[int, int]
Attribute = tuple[int, int, bytes]


def round8(length: int) -> int:
    """The next multiple of 8."""
    return length + -length % 8


def offset(wanted: int) -> tuple[int, int]:
    """The 32-bit form of a buffer offset, and the byte offset it really names (rounded up)."""
    if not wanted:
        return 0, 0
    shift = 3
    while (mantissa := -(-wanted >> shift)) >= 1 << 28:
        shift += 1
    return (shift - 8 & 0xF) << 28 | mantissa, mantissa << shift


def get_list(*names: AttributeName, kind: int = GET_LIST) -> bytes:
    """A list of attributes to retrieve: header of 8, entries of 8."""
    entries = b"".join(struct.pack(">II", *name) for name in names)
    return struct.pack(">B3xI", kind, 0) + entries


def value_entry(page: int, number: int, value: bytes, length: int | None = None) -> bytes:
    """One entry of a list with values, padded to 8; `length` lies about the value's."""
    said = len(value) if length is None else length
    return struct.pack(">II6xH", page, number, said) + value.ljust(
        round8(16 + len(value)) - 16, b"\0"
    )


def set_list(*attributes: Attribute, kind: int = VALUE_LIST) -> bytes:
    """A list of attributes to set."""
    return struct.pack(">B3xI", kind, 0) + b"".join(value_entry(*each) for each in attributes)


def descriptor(
    kind: int, content: bytes, pad: int | None = None, length: int | None = None
) -> bytes:
    """A descriptor of a continuation segment; `pad` and `length` may contradict the content."""
    fill = -len(content) % 8
    said_pad = fill if pad is None else pad
    said = len(content) if length is None else length
    return struct.pack(">HxBI", kind, said_pad, said) + content + bytes(fill)


def segment(action: int, *descriptors: bytes, form: int = 1) -> bytes:
    """A CDB continuation segment: header of 40 bytes, then descriptors."""
    return struct.pack(">BxH4x32x", form, action) + b"".join(descriptors)


def pieces(*ranges: tuple[int, int]) -> bytes:
    """A scatter/gather list descriptor: (offset, length) pairs."""
    return descriptor(0x0001, b"".join(struct.pack(">QQ", *each) for each in ranges))


@dataclass(frozen=True)
class Request:
    """One command, field by field; what is left out is zero or not sent.

    data: command data of Data-Out.  segment: the continuation segment before it.  data_in: how
    much command data Data-In holds.  gets, sets: list format; page, set_one: the other two.
    allocation: None: 512 bytes where anything is retrieved.  retrieved_at: None: behind the command
    data.  patches: bytes put into the finished CDB, by offset.  out_patches: the same for Data-Out.
    cut_out: bytes missing at the end of Data-Out.  surplus: bytes nobody asked for behind it.
    gets_first: the list of attributes to retrieve before the other.  gap: bytes of no meaning before
    every list.  expect_in: what the transport is told to expect, None: what the CDB says.
    cdb_length: the CDB is cut to that.
    """

    action: int
    pid: int = 0
    oid: int = 0
    length: int = 0
    address: int = 0
    word48: int = 0
    byte10: int = 0
    byte11: int = 0
    byte12: int = 0
    form: int = LIST
    data: bytes = b""
    segment: bytes = b""
    data_in: int = 0
    gets: tuple[AttributeName, ...] = ()
    sets: tuple[Attribute, ...] = ()
    raw_gets: bytes | None = None
    raw_sets: bytes | None = None
    page: int = 0
    set_one: Attribute | None = None
    allocation: int | None = None
    retrieved_at: int | None = None
    patches: Mapping[int, bytes] = field(default_factory=dict)
    out_patches: Mapping[int, bytes] = field(default_factory=dict)
    cut_out: int = 0
    surplus: bytes = b""
    gets_first: bool = False
    gap: int = 0
    expect_in: int | None = None
    cdb_length: int = CDB_LENGTH

    def but(self, **changes: Any) -> Request:
        """The same with other fields."""
        return replace(self, **changes)

    def patched(self, at: int, value: bytes) -> Request:
        """The same with bytes of the finished CDB overwritten."""
        return replace(self, patches={**self.patches, at: value})

    def build(self) -> Built:
        """CDB, Data-Out and expected Data-In."""
        out = bytearray(self.segment + self.data)
        parameters, room = self._parameters(out)
        cdb = bytearray(CDB_LENGTH)
        cdb[0], cdb[7] = 0x7F, 0xE4
        cdb[8:10] = self.action.to_bytes(2, "big")
        cdb[10], cdb[11], cdb[12] = self.byte10, self.byte11 | self.form << 4, self.byte12
        cdb[16:48] = struct.pack(">QQQQ", self.pid, self.oid, self.length, self.address)
        cdb[48:52] = (len(self.segment) or self.word48).to_bytes(4, "big")
        cdb[52:80] = parameters
        for at, value in self.patches.items():
            cdb[at : at + len(value)] = value
        for at, value in self.out_patches.items():
            out[at : at + len(value)] = value
        if self.cut_out:
            del out[-self.cut_out :]
        expected = room if self.expect_in is None else self.expect_in
        return Built(
            bytes(cdb[: self.cdb_length]), bytes(out) + self.surplus, expected, self._retrieved_at()
        )

    def _retrieved_at(self) -> int:
        wanted = self.data_in if self.retrieved_at is None else self.retrieved_at
        return offset(wanted)[1]

    def _segment(self, out: bytearray, content: bytes) -> int:
        """Put a list behind what is there; returns its offset field."""
        if not content:
            return UNUSED
        coded, real = offset(len(out) + self.gap)
        out.extend(bytes(real - len(out)) + content)
        return coded

    def _lists(self) -> tuple[bytes, bytes]:
        sets = set_list(*self.sets) if self.sets else b""
        gets = get_list(*self.gets) if self.gets else b""
        return (
            sets if self.raw_sets is None else self.raw_sets,
            gets if self.raw_gets is None else self.raw_gets,
        )

    def _room(self) -> int:
        return 512 if self.allocation is None else self.allocation

    def _parameters(self, out: bytearray) -> tuple[bytes, int]:
        """Bytes 52-79, and the Data-In they and the command ask for."""
        retrieved = offset(self._retrieved_at())[0]
        if self.form == LIST:
            sets, gets = self._lists()
            get_at = self._segment(out, gets) if self.gets_first else UNUSED
            set_at = self._segment(out, sets)
            get_at = get_at if self.gets_first else self._segment(out, gets)
            room = self._room() if gets else 0
            retrieved = retrieved if gets else UNUSED
            lengths = (len(gets), get_at, room, retrieved, len(sets), set_at)
            packed = struct.pack(">6I4x", *lengths)
        elif self.form == PAGE:
            room = self._room() if self.page else 0
            page, number, value = self.set_one or (0, 0, b"")
            set_at = self._segment(out, value) if value else 0
            packed = struct.pack(
                ">7I", self.page, room, retrieved if room else 0, page, number, len(value), set_at
            )
        else:
            room = 0
            page, number, value = self.set_one or (0, 0, b"")
            packed = struct.pack(">IIH18s", page, number, len(value), value[:18])
        return packed, max(self.data_in, self._retrieved_at() + room if room else 0)


@dataclass(frozen=True)
class Built:
    """The request for the transport, and the offset of retrieved attributes in Data-In."""

    cdb: bytes
    data_out: bytes
    data_in_length: int
    retrieved_at: int


# ---- answers ----


def page_fields(data: bytes) -> tuple[int, int, bytes]:
    """An attributes page: its number, PAGE LENGTH, the fields that came."""
    number, length = struct.unpack_from(">II", data)
    return number, length, data[8 : 8 + length]


def value_entries(data: bytes) -> Iterator[Attribute]:
    """Entries of a list with values, up to the end of what is given."""
    at = 0
    while at + 16 <= len(data):
        page, number, length = struct.unpack_from(">II6xH", data, at)
        yield page, number, data[at + 16 : at + 16 + length]
        at += round8(16 + length)


@dataclass(frozen=True)
class ValueList:
    """A list header with its entries.  length: LIST LENGTH as the target filled it in."""

    kind: int
    length: int
    attributes: list[Attribute]

    @classmethod
    def read(cls, data: bytes) -> ValueList:
        kind, length = struct.unpack_from(">B3xI", data)
        return cls(kind, length, list(value_entries(data[8 : 8 + length])))

    def values(self) -> list[bytes]:
        return [value for _, _, value in self.attributes]


@dataclass(frozen=True)
class ObjectBlock:
    """One object of a multi-object list or of a LIST with attributes."""

    oid: int
    kind: int
    attributes: list[Attribute]


def object_blocks(data: bytes) -> list[ObjectBlock]:
    """Blocks of 16 bytes and entries, back to back."""
    found, at = [], 0
    while at + 16 <= len(data):
        oid, kind, length = struct.unpack_from(">QB5xH", data, at)
        found.append(ObjectBlock(oid, kind, list(value_entries(data[at + 16 : at + 16 + length]))))
        at += 16 + length
    return found


@dataclass(frozen=True)
class ObjectList:
    """Data-In of LIST and LIST COLLECTION."""

    additional: int
    continuation: int
    identifier: int
    form: int
    changed: bool
    body: bytes

    @classmethod
    def read(cls, data: bytes) -> ObjectList:
        additional, continuation, identifier, last = struct.unpack_from(">QQI3xB", data)
        body = data[24 : 8 + additional]
        return cls(additional, continuation, identifier, last >> 2, bool(last & 2), body)

    def ids(self) -> list[int]:
        return [each for (each,) in struct.iter_unpack(">Q", self.body[: len(self.body) // 8 * 8])]
