# SPDX-License-Identifier: GPL-2.0-or-later
"""Parameter data of LIST, LIST COLLECTION, QUERY and READ MAP: bytes to values.

Source: osd2-wire 3.8, 3.9, 3.11.  Never raises OSDError; data that contradicts itself: ValueError.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from pyosd.attributes import decode_members
from pyosd.cdb import LIST_HEADER_LENGTH
from pyosd.types import ListResult, ObjectId

_FORMATS_WITH_ATTRIBUTES = {0x02, 0x12, 0x22}
_LIST_CHANGED = 0x02


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
        members = tuple(decode_members(body))
        ids = tuple(each.object_id for each in members)
        return ListResult(ids, continuation, identifier, len(ids), changed, members)
    whole = len(body) // 8
    ids = tuple(map(ObjectId, struct.unpack_from(f">{whole}Q", body)))
    return ListResult(ids, continuation, identifier, (additional - 16) // 8, changed)


def decode_query(data: bytes | memoryview) -> tuple[ObjectId, ...]:
    """Ids of a QUERY answer, r05 (12-byte header) or r01-r04 (13): the additional length tells.

    Raises: ValueError: no whole header.
    """
    if len(data) < 12:
        raise ValueError(f"QUERY answer of {len(data)} bytes has no whole header")
    additional = int.from_bytes(data[:8], "big")
    start = 13 if additional % 8 == 5 else 12
    body = data[start : 8 + additional]
    return tuple(map(ObjectId, struct.unpack_from(f">{len(body) // 8}Q", body)))


@dataclass(frozen=True)
class Extent:
    """One descriptor of a READ MAP answer: type 1 written data, 2 hole, 3 damaged data."""

    type: int
    start: int
    length: int


def decode_map(data: bytes | memoryview) -> tuple[Extent, ...]:
    """Extents of a READ MAP answer.  Raises: ValueError: no whole header."""
    if len(data) < 8:
        raise ValueError(f"READ MAP answer of {len(data)} bytes has no whole header")
    body = data[8 : 8 + int.from_bytes(data[:8], "big")]
    found = struct.iter_unpack(">HHIQ", body[: len(body) // 16 * 16])
    return tuple(Extent(kind, start, length) for _, kind, length, start in found)
