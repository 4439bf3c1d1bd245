# SPDX-License-Identifier: GPL-2.0-or-later
"""Parameters and answers of READ NAMES and CHANGE NAMES (docs/names.md).

Never raises OSDError; an answer that contradicts itself: ValueError.
"""

from __future__ import annotations

import re
import struct
from dataclasses import dataclass
from enum import IntEnum, IntFlag

from pyosd.types import AttributeValue, Buffer, ObjectRef, ref
from pyosd.wire.attributes import decode_entries

PATH_MAX = 4096
NAME_MAX = 255
ENTRY_BYTES = 24
DATA_MAX = 1 << 20
"""Bytes of data that one PUT stores, or one LOOKUP returns."""
_PARAMS = struct.Struct(">BBxxHHIHxxQQ")
_ENTRY = struct.Struct(">QBBxxIQ")
_LIST_HEADER = struct.Struct(">IB3x")
_LIST_ENTRY = struct.Struct(">QBxIHQQQ12sI")
_DATA_HEADER = struct.Struct(">Q12sI")
FOUND_BYTES = ENTRY_BYTES + _DATA_HEADER.size
"""Of the answer of a LOOKUP with data, before the data."""
_NAME = re.compile(rb"(?!\.{1,2}\Z)[^/\0]{1,255}", re.DOTALL)
_PARTITION, _COLLECTION = 0x02, 0x40
_MSEC_BITS = 48
_MADE, _REMOVED, _DATA = 0x01, 0x02, 0x04


class NameVerb(IntEnum):
    """The operations of the commands."""

    LOOKUP = 0x01
    LIST = 0x02
    CREATE = 0x11
    MKDIR = 0x12
    LINK = 0x13
    UNLINK = 0x14
    RMDIR = 0x15
    RENAME = 0x16
    PUT = 0x17

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
    CHECKSUM = 0x10
    EACH = 0x20


NO_NAME_FLAGS = NameFlag(0)


@dataclass(frozen=True)
class NameParams:
    """The parameters in Data-Out.

    most: of LIST: entries; of LOOKUP: bytes of data; of PUT it is the length of data.  checksum: of data,
    with NameFlag.CHECKSUM.
    """

    verb: NameVerb
    path: bytes
    other: bytes = b""
    prefix: bytes = b""
    flags: NameFlag = NO_NAME_FLAGS
    most: int = 0
    object_id: int = 0
    expected: int = 0
    data: Buffer = b""
    checksum: int = 0

    def encode(self) -> bytes:
        """Raises: ValueError: a path is longer than PATH_MAX."""
        if max(len(self.path), len(self.other), len(self.prefix)) > PATH_MAX:
            raise ValueError(f"a path has at most {PATH_MAX} bytes")
        puts = self.verb == NameVerb.PUT
        head = _PARAMS.pack(
            self.verb,
            self.flags,
            len(self.path),
            len(self.other),
            memoryview(self.data).nbytes if puts else self.most,
            len(self.prefix),
            self.checksum if puts else self.object_id,
            self.expected,
        )
        return b"".join((head, self.path, self.other, self.prefix, self.data))


def decode_params(data: bytes | memoryview) -> NameParams:
    """Raises: ValueError: the lengths do not add up, or there is no such verb or flag."""
    if len(data) < _PARAMS.size:
        raise ValueError(f"parameters of {len(data)} bytes")
    verb, flags, path, other, most, prefix, object_id, expected = _PARAMS.unpack_from(data)
    puts = verb == NameVerb.PUT
    at, end = _PARAMS.size + path, _PARAMS.size + path + other
    whole = end + prefix + most * puts
    if whole != len(data):
        raise ValueError(f"parameters of {len(data)} bytes have texts and data up to {whole}")
    return NameParams(
        NameVerb(verb),
        bytes(data[_PARAMS.size : at]),
        bytes(data[at:end]),
        bytes(data[end : end + prefix]),
        flags=NameFlag(flags),
        most=0 if puts else most,
        object_id=0 if puts else object_id,
        expected=expected,
        data=bytes(data[end + prefix :]),
        checksum=object_id if puts else 0,
    )


@dataclass(frozen=True)
class NameEntry:
    """The object at a path.

    is_directory: of a partition, too.  names: how many names it has.  made, removed: what the command
    did with it.
    """

    object: ObjectRef
    is_directory: bool
    names: int
    made: bool = False
    removed: bool = False


@dataclass(frozen=True)
class NamedData:
    """The first bytes of a user object; length and version: of all its data at that moment."""

    data: memoryview
    length: int
    version: bytes


@dataclass(frozen=True)
class ListedName:
    """An entry of a directory; is_directory: of a partition, too.

    Length, times (ms since 1970) and version: 0 unless asked for.  The same holds for names, their number,
    and attributes: those of them that objects of this type have.  0 names: they are not permitted.
    """

    name: bytes
    object: ObjectRef
    is_directory: bool
    length: int = 0
    created_ms: int = 0
    modified_ms: int = 0
    version: bytes = bytes(12)
    names: int = 0
    attributes: tuple[AttributeValue, ...] = ()


@dataclass(frozen=True)
class NameList:
    """Entries in the order of their bytes.  more: there are others behind the last one."""

    entries: tuple[ListedName, ...]
    more: bool


def decode_entry(data: bytes | memoryview) -> NameEntry:
    """Raises: ValueError: it is not the answer to a verb that names one object."""
    if len(data) != ENTRY_BYTES:
        raise ValueError(f"an entry of {len(data)} bytes instead of {ENTRY_BYTES}")
    return decode_found(data)[0]


def decode_found(
    data: bytes | memoryview, *, padded: bool = False
) -> tuple[NameEntry, NamedData | None]:
    """The answer to a LOOKUP that wants data; None: it has none.

    padded: other bytes follow, because the answer has attributes, too.

    Raises: ValueError: it is not such an answer.
    """
    if len(data) < ENTRY_BYTES:
        raise ValueError(f"an entry of {len(data)} bytes instead of {ENTRY_BYTES}")
    object_id, kind, outcome, names, partition_id = _ENTRY.unpack_from(data)
    found = ref(partition_id, object_id)
    directory = kind in (_PARTITION, _COLLECTION)
    entry = NameEntry(found, directory, names, bool(outcome & _MADE), bool(outcome & _REMOVED))
    if not outcome & _DATA:
        return entry, None
    if len(data) < FOUND_BYTES:
        raise ValueError(f"an entry with data of {len(data)} bytes")
    length, version, count = _DATA_HEADER.unpack_from(data, ENTRY_BYTES)
    there = len(data) - FOUND_BYTES
    if there < count or (there > count and not padded) or count > length:
        raise ValueError(f"{count} of {length} bytes of data in an answer of {len(data)} bytes")
    return entry, NamedData(memoryview(data)[FOUND_BYTES : FOUND_BYTES + count], length, version)


def decode_names(data: bytes | memoryview, partition_id: int, *, padded: bool = False) -> NameList:
    """Decode entries of a directory in a partition; partition_id 0: partitions, which the root lists.

    Programs make paths of their own machine of these names, so only names that can be are accepted.

    padded: as for decode_found().

    Raises: ValueError: an entry runs past the end, there are other bytes, a name is none, or the list
        goes on after no name.
    """
    try:
        count, more = _LIST_HEADER.unpack_from(data)
        at, entries = _LIST_HEADER.size, list[ListedName]()
        for _ in range(count):
            head = _LIST_ENTRY.unpack_from(data, at)
            object_id, kind, names, length, size, created, modified, version, extra = head
            at += _LIST_ENTRY.size
            name = bytes(data[at : at + length])
            if not _NAME.fullmatch(name):
                raise ValueError(f"a list of names has {name!r}")
            at += length + -length % 8
            if max(created, modified) >> _MSEC_BITS:
                raise ValueError(f"a list of names has times of more than {_MSEC_BITS} bits")
            attributes = decode_entries(data[at : at + extra]) if extra else ()
            at += extra
            place = ref(partition_id, object_id) if kind != _PARTITION else ref(object_id)
            directory = kind in (_PARTITION, _COLLECTION)
            facts = (size, created, modified, version, names, attributes)
            entries.append(ListedName(name, place, directory, *facts))
    except struct.error as error:
        raise ValueError(f"a list of names of {len(data)} bytes is cut off: {error}") from None
    if at > len(data) or (at < len(data) and not padded):
        raise ValueError(f"a list of names of {len(data)} bytes has entries of {at}")
    if more and not entries:
        raise ValueError("a list of names goes on, and has none")
    return NameList(tuple(entries), bool(more))
