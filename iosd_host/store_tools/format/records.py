# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of a store as docs/format.md lays them down: keys and records.

Written from that page alone, so that tests that compare it with stores of the target check both.
Pure: no files, no database.  Decoders raise FormatError and nothing else.
Not here: superblocks (superblock.py), the records of jobs (jobs.py), names of files (file_names.py).
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field, replace
from enum import IntEnum, IntFlag

__all__ = [
    "ALL",
    "ALL_OBJECTS",
    "FIRST_ID",
    "IDS_COUNTED",
    "JOBS_PARTITION",
    "JOB_IDS",
    "LOST_PARTITION",
    "U64_MAX",
    "WELL_KNOWN",
    "AttributeKey",
    "CollectionType",
    "FormatError",
    "MemberKey",
    "MetaKind",
    "ObjectRecord",
    "PartitionRecord",
    "Place",
    "Quotas",
    "RecordFlag",
    "RecordType",
    "RootRecord",
    "Unknown",
    "dead_epoch_key",
    "dead_files_key",
    "dead_partition_key",
    "id_mark_key",
    "parse_dead_files",
    "parse_partition_key",
    "parse_partition_meta",
    "partition_key",
]

U64_MAX = (1 << 64) - 1
ALL = U64_MAX
"""As a head size: all bytes are in the head file.  As a limit: none."""
FIRST_ID = 0x10000
ALL_OBJECTS = 0x1000
"""The collection of all user objects of a partition: it has no record."""
WELL_KNOWN = range(0x1000, 0x1082)
"""Ids of collections that the target makes itself."""
JOBS_PARTITION = 0x7FFF_FFFF_0000_0000
LOST_PARTITION = 0x7FFF_FFFF_0000_0001
"""Partition for objects that repair finds and cannot place. It is ignored when ids are assigned."""
IDS_COUNTED = 1 << 62
"""Ids from here on that a client asked for do not move the marks behind which free ids are sought."""
JOB_IDS = range(1 << 62, 1 << 63)
"""Of jobs' objects that stand apart from a partition's data; they have the flag SURROGATE."""
VERSION = 1


class FormatError(Exception):
    """The bytes are not what docs/format.md says; the text says why."""


class Unknown(FormatError):
    """They are in order, but of a version or with a feature this release does not know."""


# ---- records


class RecordType(IntEnum):
    """Subject of an object record."""

    COLLECTION = 0x40
    USER_OBJECT = 0x80


class CollectionType(IntEnum):
    """Source of a collection's members."""

    LINKED = 0x00
    TRACKING = 0x01
    SPONTANEOUS = 0xEF


class RecordFlag(IntFlag):
    """Bits of an object record."""

    LENGTH_RULES = 1
    HAS_FILES = 2
    UNFINISHED = 4
    SURROGATE = 8
    NAMED = 16
    DIRECTORY = 32
    STACKED = 64
    CHECKS_WRITE = 128
    CHECKS_REMOVE = 256
    CHECKS_SET = 512
    FOLLOWED = 1024
    DUE = 2048


NO_FLAGS = RecordFlag(0)
KNOWN_FLAGS = sum(RecordFlag)
Times = tuple[int, int, int, int, int]
"""Created, attributes accessed and modified, data accessed and modified: ms since 1970."""
NO_TIMES: Times = (0, 0, 0, 0, 0)


def _pack_times(times: Times) -> bytes:
    return b"".join(each.to_bytes(6, "big") for each in times)


def _unpack_times(data: bytes) -> Times:
    a, b, c, d, e = (int.from_bytes(data[at : at + 6], "big") for at in range(0, 30, 6))
    return a, b, c, d, e


def _check(data: bytes, length: int, what: str) -> None:
    """Longer is fine: the target reads what it knows.  Raises: FormatError."""
    if len(data) < length:
        raise FormatError(f"{what} of {len(data)} bytes instead of {length}")
    if data[0] != VERSION:
        raise FormatError(f"{what} of version {data[0]}")


@dataclass(frozen=True)
class ObjectRecord:
    """A user object or a collection."""

    type: RecordType
    collection_type: int = 0
    head_on: int = 0
    flags: RecordFlag = NO_FLAGS
    times: Times = NO_TIMES
    length: int = 0
    reserved_bytes: int = 0
    head_bytes: int = ALL
    generation: int = 0
    spare_generation: int = 0
    max_length: int = U64_MAX
    attribute_count: int = 0
    policy_tag: int = 0
    attribute_units: int | None = None
    """Charged for the attributes; None: not counted, the target does that when it opens the store."""
    version_counter: int = 0
    """Of the data, or of the members.  STALE: the target gives the object another version."""
    version_opening: int = 0

    BYTES = 108
    BYTES_FIRST = 96
    """Releases before data versions."""
    STALE = U64_MAX
    _LAYOUT = struct.Struct(">BBBBHH30sHQQQQQQII")
    _VERSION = struct.Struct(">QI")

    @property
    def head_in(self) -> int:
        """The root that its head lies in, as head_on says it: an empty one is not put elsewhere."""
        return self.head_on if self.head_bytes else 1

    @classmethod
    def decode(cls, data: bytes) -> ObjectRecord:
        """Read it.  Raises: FormatError."""
        _check(data, cls.BYTES_FIRST, "an object record")
        (_, kind, collection, head_on, flags, high, times, low, *numbers) = cls._LAYOUT.unpack(
            data[: cls.BYTES_FIRST]
        )
        units = (high << 16 | low) - 1
        numbers.append(units if units >= 0 else None)
        if len(data) > cls.BYTES_FIRST:
            _check(data, cls.BYTES, "an object record")
            numbers += cls._VERSION.unpack(data[cls.BYTES_FIRST : cls.BYTES])
        if kind not in (RecordType.COLLECTION, RecordType.USER_OBJECT):
            raise FormatError(f"an object record of type {kind:#04x}")
        if flags & ~KNOWN_FLAGS:
            raise FormatError(f"an object record with flags {flags:#06x}")
        return cls(
            RecordType(kind),
            collection,
            head_on,
            RecordFlag(flags),
            _unpack_times(times),
            *numbers,
        )

    def encode(self) -> bytes:
        """Write it."""
        units = 0 if self.attribute_units is None else self.attribute_units + 1
        return self._LAYOUT.pack(
            VERSION,
            self.type,
            self.collection_type,
            self.head_on,
            self.flags,
            units >> 16,
            _pack_times(self.times),
            units & 0xFFFF,
            self.length,
            self.reserved_bytes,
            self.head_bytes,
            self.generation,
            self.spare_generation,
            self.max_length,
            self.attribute_count,
            self.policy_tag,
        ) + self._VERSION.pack(self.version_counter, self.version_opening)

    @property
    def is_stale(self) -> bool:
        """Its data was being changed: the version is not valid."""
        return self.version_counter == self.STALE

    @property
    def is_settled(self) -> bool:
        """The record says all; else the target reads the files when it opens the store."""
        return (
            self.reserved_bytes == self.length
            and not self.flags & RecordFlag.LENGTH_RULES
            and not self.spare_generation
        )


@dataclass(frozen=True)
class Quotas:
    """Limits of a partition or of the store; all ones: none."""

    max_length: int = U64_MAX
    capacity: int = U64_MAX
    object_count: int = U64_MAX
    collections: int = 0xFFFF_FFFF
    partition_count: int = U64_MAX


@dataclass(frozen=True)
class PartitionRecord:
    """A partition."""

    incarnation: int
    bypass: int = 0
    times: Times = NO_TIMES
    quotas: Quotas = field(default_factory=Quotas)
    user_tag: int = 0

    BYTES = 84
    _LAYOUT = struct.Struct(">BB2xI30s2xQQQIQI4x")

    @classmethod
    def decode(cls, data: bytes) -> PartitionRecord:
        """Read it.  Raises: FormatError."""
        _check(data, cls.BYTES, "a partition record")
        (_, bypass, incarnation, times, *limits, tag) = cls._LAYOUT.unpack(data[: cls.BYTES])
        return cls(incarnation, bypass, _unpack_times(times), Quotas(*limits), tag)

    def encode(self) -> bytes:
        """Write it."""
        quotas = self.quotas
        return self._LAYOUT.pack(
            VERSION,
            self.bypass,
            self.incarnation,
            _pack_times(self.times),
            quotas.max_length,
            quotas.capacity,
            quotas.object_count,
            quotas.collections,
            quotas.partition_count,
            self.user_tag,
        )


@dataclass(frozen=True)
class RootRecord:
    """The store as a whole: what comes next, and the defaults of partitions."""

    epoch: int
    next_incarnation: int
    next_partition_id: int
    capacity: int = 0
    common: PartitionRecord = field(default_factory=lambda: PartitionRecord(0))
    isolation: int = 0

    BYTES = 112
    _TAIL = struct.Struct(">IIQQB3x")

    @classmethod
    def decode(cls, data: bytes) -> RootRecord:
        """Read it.  Raises: FormatError."""
        if len(data) < cls.BYTES:
            raise FormatError(f"a root record of {len(data)} bytes instead of {cls.BYTES}")
        common = PartitionRecord.decode(data[: PartitionRecord.BYTES])
        epoch, incarnation, partition_id, capacity, isolation = cls._TAIL.unpack(
            data[PartitionRecord.BYTES : cls.BYTES]
        )
        return cls(epoch, incarnation, partition_id, capacity, common, isolation)

    def encode(self) -> bytes:
        """Write it."""
        return self.common.encode() + self._TAIL.pack(
            self.epoch,
            self.next_incarnation,
            self.next_partition_id,
            self.capacity,
            self.isolation,
        )

    def with_next(self, incarnation: int, partition_id: int) -> RootRecord:
        """The same with counters that are at least these."""
        return replace(
            self,
            next_incarnation=max(self.next_incarnation, incarnation),
            next_partition_id=max(self.next_partition_id, partition_id),
        )


# ---- keys


@dataclass(frozen=True, order=True)
class Place:
    """Ids that begin most keys: an object of one incarnation of a partition."""

    partition_id: int
    incarnation: int
    object_id: int = 0

    _LAYOUT = struct.Struct(">QIQ")
    BYTES = _LAYOUT.size

    def encode(self) -> bytes:
        """Write it: also the key in objects.db."""
        return self._LAYOUT.pack(self.partition_id, self.incarnation, self.object_id)

    @classmethod
    def decode(cls, key: bytes) -> Place:
        """Read it from the beginning of a key.  Raises: FormatError."""
        if len(key) < cls.BYTES:
            raise FormatError(f"a key of {len(key)} bytes")
        return cls(*cls._LAYOUT.unpack(key[: cls.BYTES]))

    @classmethod
    def of_object_key(cls, key: bytes) -> Place:
        """Read a key of objects.db.  Raises: FormatError."""
        if len(key) != cls.BYTES:
            raise FormatError(f"a key of {len(key)} bytes instead of {cls.BYTES}")
        return cls.decode(key)

    @property
    def partition(self) -> Place:
        """The partition itself."""
        return replace(self, object_id=0)

    def sibling(self, object_id: int) -> Place:
        """Another object of the same partition."""
        return replace(self, object_id=object_id)

    def __str__(self) -> str:
        if not self.partition_id:
            return "root" if not self.object_id else f"0/{self.object_id:#x}"
        if not self.object_id:
            return f"{self.partition_id:#x}"
        return f"{self.partition_id:#x}/{self.object_id:#x}"


@dataclass(frozen=True, order=True)
class AttributeKey:
    """A key of attributes.db."""

    place: Place
    page: int
    number: int

    BYTES = Place.BYTES + 8

    def encode(self) -> bytes:
        """Write it."""
        return self.place.encode() + struct.pack(">II", self.page, self.number)

    @classmethod
    def decode(cls, key: bytes) -> AttributeKey:
        """Read it.  Raises: FormatError."""
        if len(key) != cls.BYTES:
            raise FormatError(f"a key of {len(key)} bytes instead of {cls.BYTES}")
        return cls(Place.decode(key), *struct.unpack(">II", key[Place.BYTES :]))


@dataclass(frozen=True, order=True)
class MemberKey:
    """A key of members.db (place: the collection) or memberships.db (place: the user object)."""

    place: Place
    other_id: int

    BYTES = Place.BYTES + 8

    def encode(self) -> bytes:
        """Write it."""
        return self.place.encode() + self.other_id.to_bytes(8, "big")

    @classmethod
    def decode(cls, key: bytes) -> MemberKey:
        """Read it.  Raises: FormatError."""
        if len(key) != cls.BYTES:
            raise FormatError(f"a key of {len(key)} bytes instead of {cls.BYTES}")
        return cls(Place.decode(key), int.from_bytes(key[Place.BYTES :], "big"))

    def turned(self) -> MemberKey:
        """The key of the same membership in the other table."""
        return MemberKey(self.place.sibling(self.other_id), self.place.object_id)


class MetaKind(IntEnum):
    """The first byte of a key of meta.db."""

    ROOT = ord("R")
    BOOT = ord("B")
    SUMS = ord("S")
    SCRUB = ord("Q")
    CLEAN = ord("C")
    ID_MARK = ord("I")
    DEAD_FILES = ord("D")
    DRAFT_FILES = ord("N")
    DEAD_PARTITION = ord("P")
    DEAD_EPOCH = ord("E")
    INDEX = ord("X")
    INDEX_BOOT = ord("V")
    VERSIONS = ord("W")

    @property
    def key(self) -> bytes:
        """The key of a kind that has one record, and the beginning of the others'."""
        return bytes((self,))


def partition_key(epoch: int, partition_id: int) -> bytes:
    """A key of partitions.db."""
    return struct.pack(">IQ", epoch, partition_id)


def parse_partition_key(key: bytes) -> tuple[int, int]:
    """Epoch and partition id.  Raises: FormatError."""
    if len(key) != 12:
        raise FormatError(f"a key of {len(key)} bytes instead of 12")
    epoch, partition_id = struct.unpack(">IQ", key)
    return epoch, partition_id


def _partition_meta(kind: MetaKind, place: Place) -> bytes:
    return kind.key + struct.pack(">QI", place.partition_id, place.incarnation)


def id_mark_key(place: Place) -> bytes:
    """Key in meta.db of the assigned object ids of a partition."""
    return _partition_meta(MetaKind.ID_MARK, place)


def dead_partition_key(place: Place) -> bytes:
    """The entry that retires a partition."""
    return _partition_meta(MetaKind.DEAD_PARTITION, place)


def parse_partition_meta(key: bytes) -> Place:
    """The partition of a key I or P.  Raises: FormatError."""
    if len(key) != 13:
        raise FormatError(f"a key of {len(key)} bytes instead of 13")
    return Place(*struct.unpack(">QI", key[1:]))


def dead_files_key(place: Place, generation: int) -> bytes:
    """The entry that gives an object's files to the reaper."""
    return MetaKind.DEAD_FILES.key + place.encode() + generation.to_bytes(8, "big")


def parse_dead_files(key: bytes) -> tuple[Place, int]:
    """Object and generation of a key D or N.  Raises: FormatError."""
    if len(key) != 1 + Place.BYTES + 8:
        raise FormatError(f"a key of {len(key)} bytes instead of {1 + Place.BYTES + 8}")
    return Place.decode(key[1:]), int.from_bytes(key[-8:], "big")


def dead_epoch_key(epoch: int) -> bytes:
    """The entry that retires everything before a FORMAT OSD."""
    return MetaKind.DEAD_EPOCH.key + epoch.to_bytes(4, "big")
