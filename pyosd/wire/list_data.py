# SPDX-License-Identifier: GPL-2.0-or-later
"""Parameter data of LIST, LIST COLLECTION, QUERY and READ MAP: bytes to values.

Source: osd2-wire 3.8, 3.9, 3.11.  Never raises OSDError; data that contradicts itself: ValueError.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from pyosd.types import ListResult, ObjectId
from pyosd.wire.attributes import decode_members
from pyosd.wire.cdb import LIST_HEADER_LENGTH

_FORMATS_WITH_ATTRIBUTES = {0x02, 0x12, 0x22}
_LIST_CHANGED = 0x02
_QUERY_HEADER = 12
QUERY_HEADER_MAX = 13


def decode_list(data: bytes | memoryview) -> ListResult:
    """Decode a LIST answer.

    Raises: ValueError: it is shorter than its header, or its additional length is below 16.
    """
    if len(data) < LIST_HEADER_LENGTH:
        raise ValueError(f"LIST answer of {len(data)} bytes has no whole header")
    additional, continuation_id, identifier, last = struct.unpack_from(">QQI3xB", data)
    if additional < 16:
        raise ValueError(f"LIST additional length {additional} is below 16")
    body = data[LIST_HEADER_LENGTH : 8 + additional]
    continuation, changed = ObjectId(continuation_id), bool(last & _LIST_CHANGED)
    if last >> 2 in _FORMATS_WITH_ATTRIBUTES:
        # If the list continues, its space can end in zeros that look like groups of object 0.
        members = tuple(each for each in decode_members(body) if each.object_id)
        ids = tuple(each.object_id for each in members)
        return ListResult(ids, continuation, identifier, len(ids), changed, members)
    whole = len(body) // 8
    ids = tuple(map(ObjectId, struct.unpack_from(f">{whole}Q", body)))
    return ListResult(ids, continuation, identifier, (additional - 16) // 8, changed)


@dataclass(frozen=True)
class QueryResult:
    """Answer of QUERY.  ids: ascending, those that fitted; total_count: how many there are."""

    ids: tuple[ObjectId, ...]
    total_count: int


def decode_query_result(data: bytes | memoryview) -> QueryResult:
    """Decode a QUERY answer, r05 (12-byte header) or r01-r04 (13): the additional length tells.

    Raises: ValueError: no whole header.
    """
    if len(data) < _QUERY_HEADER:
        raise ValueError(f"QUERY answer of {len(data)} bytes has no whole header")
    additional = int.from_bytes(data[:8], "big")
    start = QUERY_HEADER_MAX if additional % 8 == 5 else _QUERY_HEADER
    body = data[start : 8 + additional]
    whole = len(body) // 8
    ids = tuple(map(ObjectId, struct.unpack_from(f">{whole}Q", body)))
    return QueryResult(ids, max(0, additional - (start - 8)) // 8)


class MapType(IntEnum):
    """Types of extents, which READ MAP can select."""

    ALL = 0x0000
    WRITTEN = 0x0001
    HOLE = 0x0002
    DAMAGED = 0x0003
    DAMAGED_ATTRIBUTES = 0x8000


@dataclass(frozen=True)
class Extent:
    """One range of a READ MAP answer, with its MapType."""

    type: int
    start: int
    length: int

    @property
    def end(self) -> int:
        """First byte behind it."""
        return self.start + self.length


@dataclass(frozen=True)
class MapResult:
    """Answer of READ MAP.  extents: those that fitted; more: there are others behind them."""

    extents: tuple[Extent, ...]
    more: bool


def decode_map(data: bytes | memoryview) -> MapResult:
    """Decode a READ MAP answer.

    Raises: ValueError: no whole header, or extents that are empty, overlap or go backwards.
    """
    if len(data) < 8:
        raise ValueError(f"READ MAP answer of {len(data)} bytes has no whole header")
    additional = int.from_bytes(data[:8], "big")
    body = data[8 : 8 + additional]
    found = struct.iter_unpack(">HHIQ", body[: len(body) // 16 * 16])
    extents = tuple(Extent(kind, start, length) for _, kind, length, start in found)
    at = 0
    for each in extents:
        if each.start < at or not each.length:
            raise ValueError("READ MAP answer with extents out of order")
        at = each.end
    return MapResult(extents, additional // 16 > len(extents))
