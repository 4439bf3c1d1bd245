# SPDX-License-Identifier: GPL-2.0-or-later
"""Parameters and answers of READ NAMES and CHANGE NAMES (docs/names.md).

Never raises OSDError; an answer that contradicts itself: ValueError.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from pyosd.types import ObjectRef, ref

PATH_MAX = 4096
NAME_MAX = 255
ENTRY_BYTES = 24
_PARAMS = struct.Struct(">BBxxHHIHxxQQ")
_ENTRY = struct.Struct(">QBBxxIQ")
_LIST_HEADER = struct.Struct(">IB3x")
_LIST_ENTRY = struct.Struct(">QB5xHQQQ12s4x")
_PARTITION, _COLLECTION = 0x02, 0x40
_MADE, _REMOVED = 0x01, 0x02


class NameVerb(IntEnum):
    """What the commands do."""

    LOOKUP = 0x01
    LIST = 0x02
    CREATE = 0x11
    MKDIR = 0x12
    LINK = 0x13
    UNLINK = 0x14
    RMDIR = 0x15
    RENAME = 0x16

    @property
    def only_reads(self) -> bool:
        """READ NAMES has it."""
        return self < NameVerb.CREATE


class NameFlag(IntFlag):
    """Options of the verbs."""

    OPEN_EXISTING = 0x01
    REPLACE = 0x02
    EXCHANGE = 0x04
    ATTRIBUTES = 0x08


NO_NAME_FLAGS = NameFlag(0)


@dataclass(frozen=True)
class NameParams:
    """The parameters in Data-Out."""

    verb: NameVerb
    path: bytes
    other: bytes = b""
    prefix: bytes = b""
    flags: NameFlag = NO_NAME_FLAGS
    most: int = 0
    object_id: int = 0
    expected: int = 0

    def encode(self) -> bytes:
        """Raises: ValueError: a path is longer than PATH_MAX."""
        if max(len(self.path), len(self.other), len(self.prefix)) > PATH_MAX:
            raise ValueError(f"a path has at most {PATH_MAX} bytes")
        head = _PARAMS.pack(
            self.verb,
            self.flags,
            len(self.path),
            len(self.other),
            self.most,
            len(self.prefix),
            self.object_id,
            self.expected,
        )
        return head + self.path + self.other + self.prefix


def decode_params(data: bytes | memoryview) -> NameParams:
    """Raises: ValueError: the lengths do not add up, or there is no such verb or flag."""
    if len(data) < _PARAMS.size:
        raise ValueError(f"parameters of {len(data)} bytes")
    verb, flags, path, other, most, prefix, object_id, expected = _PARAMS.unpack_from(data)
    at, end = _PARAMS.size + path, _PARAMS.size + path + other
    if end + prefix != len(data):
        raise ValueError(f"parameters of {len(data)} bytes have texts up to {end + prefix}")
    return NameParams(
        NameVerb(verb),
        bytes(data[_PARAMS.size : at]),
        bytes(data[at:end]),
        bytes(data[end:]),
        flags=NameFlag(flags),
        most=most,
        object_id=object_id,
        expected=expected,
    )


@dataclass(frozen=True)
class NameEntry:
    """What a path names.

    is_directory: of a partition, too.  names: how many names it has.  made, removed: what the command
    did with it.
    """

    object: ObjectRef
    is_directory: bool
    names: int
    made: bool = False
    removed: bool = False


@dataclass(frozen=True)
class ListedName:
    """An entry of a directory; is_directory: of a partition, too.  Length, times (ms since 1970) and
    version: 0 unless asked for."""

    name: bytes
    object: ObjectRef
    is_directory: bool
    length: int = 0
    created_ms: int = 0
    modified_ms: int = 0
    version: bytes = bytes(12)


@dataclass(frozen=True)
class NameList:
    """Entries in the order of their bytes.  more: there are others behind the last one."""

    entries: tuple[ListedName, ...]
    more: bool


def decode_entry(data: bytes | memoryview) -> NameEntry:
    """Raises: ValueError: it is not the answer to a verb that names one object."""
    if len(data) != ENTRY_BYTES:
        raise ValueError(f"an entry of {len(data)} bytes instead of {ENTRY_BYTES}")
    object_id, kind, outcome, names, partition_id = _ENTRY.unpack(data)
    found = ref(partition_id, object_id)
    directory = kind in (_PARTITION, _COLLECTION)
    return NameEntry(found, directory, names, bool(outcome & _MADE), bool(outcome & _REMOVED))


def decode_names(data: bytes | memoryview, partition_id: int) -> NameList:
    """Decode entries of a directory in a partition; partition_id 0: partitions, which the root lists.

    Raises: ValueError: an entry runs past the end, or there are other bytes.
    """
    try:
        count, more = _LIST_HEADER.unpack_from(data)
        at, entries = _LIST_HEADER.size, list[ListedName]()
        for _ in range(count):
            object_id, kind, length, size, created, modified, version = _LIST_ENTRY.unpack_from(
                data, at
            )
            at += _LIST_ENTRY.size
            name = bytes(data[at : at + length])
            at += length + -length % 8
            place = ref(partition_id, object_id) if kind != _PARTITION else ref(object_id)
            directory = kind in (_PARTITION, _COLLECTION)
            entries.append(ListedName(name, place, directory, size, created, modified, version))
    except struct.error as error:
        raise ValueError(f"a list of names of {len(data)} bytes is cut off: {error}") from None
    if at != len(data):
        raise ValueError(f"a list of names of {len(data)} bytes has entries of {at}")
    return NameList(tuple(entries), bool(more))
