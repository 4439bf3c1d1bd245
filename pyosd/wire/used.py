# SPDX-License-Identifier: GPL-2.0-or-later
"""Page 2000_0007h of a job's surrogate, decoded: the objects that the job has used.  Pure.

The form is that of target/exec/used/used.h.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from dataclasses import dataclass, replace
from enum import IntFlag

from pyosd.types import ObjectRef, ref

__all__ = [
    "CHANGES",
    "PIECE",
    "PIECES_MOST",
    "READS",
    "ChangedInput",
    "Used",
    "UsedKind",
    "UsedObject",
    "decode_used",
]

PIECE = 60 << 10
"""Bytes of one attribute of the page; the last one is shorter."""
PIECES_MOST = 32
"""Attributes of the page: 16,384 objects and 32,768 ranges take 1.5 MB at most."""
_FORM = 1
_HEAD = struct.Struct(">HHIQ")
_ENTRY = struct.Struct(">QQII")
_RANGE = struct.Struct(">QQ")
_VERSION = 12


class UsedKind(IntFlag):
    """The uses of an object by a job."""

    DATA = 0x0001
    ATTRIBUTES = 0x0002
    MEMBERS = 0x0004
    CONTENTS = 0x0008
    QUERY = 0x0010
    NAMES = 0x0020
    TYPE = 0x0040
    FUNCTION = 0x0080
    REFUSED = 0x0100
    VARIED = 0x0200
    WHOLE = 0x0400
    CHANGED_MEMBERS = 0x0800
    WROTE = 0x1000
    SET_ATTRIBUTES = 0x2000
    CREATED = 0x4000
    REMOVED = 0x8000


_VERSIONED = UsedKind.DATA | UsedKind.MEMBERS
READS = UsedKind(0x07FF)
"""The kinds of an input."""
CHANGES = UsedKind(0xF800)
"""The kinds of an output."""


@dataclass(frozen=True)
class UsedObject:
    """An object that a job used.

    kinds: what the job did with it.
    version: of the data or members that it read.  VARIED: others changed the object between its reads,
    and this is the first version.
    ranges: bytes that it read, as (start, end).  WHOLE: they are not known, and can be all.
    before, after: versions of the data before and after its own changes.
    """

    object: ObjectRef
    kinds: UsedKind
    version: bytes = b""
    ranges: tuple[tuple[int, int], ...] = ()
    before: bytes = b""
    after: bytes = b""


@dataclass(frozen=True)
class Used:
    """The objects that a job used, in the order of first use.

    left_out: number of further uses, of objects that no longer fitted the list.
    """

    objects: tuple[UsedObject, ...] = ()
    left_out: int = 0

    @property
    def complete(self) -> bool:
        """Whether all objects are listed."""
        return not self.left_out

    def only(self, kinds: UsedKind) -> Used:
        """The objects that were used in one of these ways."""
        return replace(self, objects=tuple(each for each in self.objects if each.kinds & kinds))


@dataclass(frozen=True)
class ChangedInput:
    """An object that has another version than the one that a job read.

    then, now: versions; now is empty if the object was removed.  by_itself: the job itself made the
    present version.
    """

    object: ObjectRef
    then: bytes
    now: bytes
    by_itself: bool


def decode_used(data: bytes) -> Used:
    """Decode the pieces, put together.  Raises: ValueError: they contradict themselves."""
    if not data:
        return Used()
    try:
        form, _, count, left_out = _HEAD.unpack_from(data)
        if form != _FORM:
            raise ValueError(f"a list of used objects of form {form}, which is not known here")
        objects = tuple(_entries(data, count))
    except struct.error as error:
        raise ValueError(f"a list of used objects that is cut short: {error}") from None
    return Used(objects, left_out)


def _entries(data: bytes, count: int) -> Iterator[UsedObject]:
    at = _HEAD.size
    for _ in range(count):
        partition_id, object_id, bits, ranges = _ENTRY.unpack_from(data, at)
        at += _ENTRY.size
        kinds, versions = UsedKind(bits), list[bytes]()
        for _ in range(bool(kinds & _VERSIONED) + 2 * bool(kinds & UsedKind.WROTE)):
            (version,) = struct.unpack_from(f"{_VERSION}s", data, at)
            versions.append(version)
            at += _VERSION
        version = versions.pop(0) if kinds & _VERSIONED else b""
        before, after = versions or (b"", b"")
        end = at + ranges * _RANGE.size
        if end > len(data):
            raise ValueError("a list of used objects that is cut short")
        found = tuple(_RANGE.iter_unpack(data[at:end]))
        at = end
        yield UsedObject(ref(partition_id, object_id), kinds, version, found, before, after)
    if at != len(data):
        raise ValueError("bytes behind a list of used objects")
