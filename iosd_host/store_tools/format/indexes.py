# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of value indexes: entries of index.db, and how far each index is.

Pure, as records.py.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from iosd_host.store_tools.format.pages import STANDARD_LAST, Owner, owners
from iosd_host.store_tools.format.records import FormatError, MetaKind, Place

__all__ = [
    "IndexEntry",
    "IndexStage",
    "Stage",
    "indexed_value",
    "is_indexed",
    "may_have_index",
    "parse_index_stage",
]

PREFIX_BYTES = 64
"""Of a value, in a key."""
KEY_LEAST = 12 + 8 + 2 + 8
"""Ids and incarnation, page and number, an empty value, object id."""
INFORMATION_PAGE, USERNAME = 1, 9


class Stage(IntEnum):
    """How far an index is."""

    CLEAR = 1
    FILL = 2
    READY = 3
    DROP = 4


@dataclass(frozen=True)
class IndexStage:
    """The record of a declared page.  Attributes before the next ones have their entries."""

    stage: Stage
    next_number: int = 0
    next_object: int = 0

    _LAYOUT = struct.Struct(">B3xIQ")

    @classmethod
    def decode(cls, data: bytes) -> IndexStage:
        """Read it.  Raises: FormatError."""
        if len(data) != cls._LAYOUT.size:
            raise FormatError(f"the state of an index of {len(data)} bytes")
        stage, number, next_object = cls._LAYOUT.unpack(data)
        if stage not in tuple(Stage):
            raise FormatError(f"an index in stage {stage}")
        return cls(Stage(stage), number, next_object)

    def encode(self) -> bytes:
        """Write it."""
        return self._LAYOUT.pack(self.stage, self.next_number, self.next_object)

    def has(self, object_id: int, number: int) -> bool:
        """Whether an attribute must have an entry."""
        if self.stage is Stage.FILL:
            return (object_id, number) < (self.next_object, self.next_number)
        return self.stage is Stage.READY

    @property
    def keeps(self) -> bool:
        """Entries are kept up to date; else they are being removed, whatever they say."""
        return self.stage in (Stage.FILL, Stage.READY)


def parse_index_stage(key: bytes) -> tuple[Place, int]:
    """Partition and page of a key X.  Raises: FormatError."""
    if len(key) != 17 or key[0] != MetaKind.INDEX:
        raise FormatError(f"a key of {len(key)} bytes instead of 17")
    partition_id, incarnation, page = struct.unpack(">QII", key[1:])
    return Place(partition_id, incarnation), page


def may_have_index(page: int) -> bool:
    """Whether a partition can declare it."""
    own = page == INFORMATION_PAGE or page >= STANDARD_LAST
    return own and owners(page, 1) is Owner.USER_OBJECT


def is_indexed(page: int, number: int) -> bool:
    """Whether a declared page's attribute of this number has an entry."""
    return number == USERNAME if page == INFORMATION_PAGE else number != 0


def indexed_value(value: bytes) -> bytes:
    """As a key has it: in the order of the values, and it can be told where it ends."""
    begin = value[:PREFIX_BYTES].replace(b"\0", b"\0\xff")
    return begin + (b"\0\2" if len(value) > PREFIX_BYTES else b"\0\1")


@dataclass(frozen=True)
class IndexEntry:
    """A key of index.db; value: as indexed_value makes it."""

    place: Place
    page: int
    number: int
    value: bytes

    @classmethod
    def decode(cls, key: bytes) -> IndexEntry:
        """Read it.  Raises: FormatError."""
        if len(key) < KEY_LEAST:
            raise FormatError(f"a key of {len(key)} bytes")
        partition_id, incarnation, page, number = struct.unpack(">QIII", key[:20])
        object_id = int.from_bytes(key[-8:], "big")
        return cls(Place(partition_id, incarnation, object_id), page, number, key[20:-8])

    def encode(self) -> bytes:
        """Write it."""
        place = self.place
        head = struct.pack(">QIII", place.partition_id, place.incarnation, self.page, self.number)
        return head + self.value + place.object_id.to_bytes(8, "big")
