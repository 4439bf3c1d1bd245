# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of jobs.db and job_keys.db, as target/exec/record/record.h and docs/format.md describe them.

Pure, as records.py.  Not here: what states and reasons mean to people (the job pages do that).
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass, field
from enum import IntEnum

from iosd_host.store_tools.format.records import FormatError, Place
from pyosd.wire.job_status import JobState

__all__ = ["CODE_PIECE", "JobId", "JobKey", "JobKeyKind", "JobPayload", "JobRecord", "JobState"]

VERSION = 7
"""Of a record that is written: a head and tagged fields.  Versions 1 to 6 are read, too."""
CODE_PIECE = 60 << 10
"""Bytes of arguments and code in one record."""


class JobPayload(IntEnum):
    """Contents of a record of kind PAYLOAD."""

    RESULT = 1
    STDERR = 2
    TRACEBACK = 3
    TAGS = 4
    AFTER = 5
    STATES = 6
    INDICES = 7


class JobKeyKind(IntEnum):
    """The first byte of a key of jobs.db."""

    EXPIRY = 0
    RECORD = 1
    CODE = 2
    PAYLOAD = 3
    COMPANION = 4
    USED = 5


# name, bytes: the numbers of a record in stored order, behind the version
_NUMBERS = (
    ("partition_id", 8),
    ("object_id", 8),
    ("sequence", 8),
    ("generation", 8),
    ("state", 1),
    ("reason", 2),
    ("exit_code", 4),
    ("signal", 1),
    ("attempt", 2),
    ("progress", 2),
    ("submitted_ms", 8),
    ("started_ms", 8),
    ("ended_ms", 8),
    ("expiry_ms", 8),
    ("keep_ms", 8),
    ("queue_us", 8),
    ("run_us", 8),
    ("cpu_user_us", 8),
    ("cpu_system_us", 8),
    ("peak_bytes", 8),
    ("bytes_read", 8),
    ("bytes_written", 8),
    ("calls", 8),
    ("result_length", 8),
    ("stdout_length", 8),
    ("stderr_length", 8),
    ("flags", 4),
    ("result_object", 8),
    ("sandbox_id", 8),
    ("zone_type", 1),
    ("zone_partition_id", 8),
    ("zone_object_id", 8),
    ("limit_wall_us", 8),
    ("limit_cpu_us", 8),
    ("limit_memory_bytes", 8),
    ("limit_processes", 8),
    ("limit_output_bytes", 8),
    ("limit_open_files", 8),
    ("limit_io_bytes", 8),
    ("limit_result_bytes", 8),
    ("client_flags", 4),
    ("priority", 2),
    ("args_encoding", 1),
    ("args_length", 4),
    ("code_length", 4),
)
_ARRAY_NUMBERS = (
    ("array_object_id", 8),
    ("array_index", 4),
    ("array_count", 4),
    ("array_at_once", 4),
    ("array_ending", 2),
)
_PREDECESSOR_NUMBERS = (("predecessor_partition_id", 8), ("predecessor_object_id", 8))
_CHARGE_NUMBERS = (("starved_usec", 8), ("charged", 8))
_BEGIN_NUMBERS = (("begin_ms", 8),)
_USED_NUMBERS = (("used_length", 4),)
_Numbers = tuple[tuple[str, int], ...]


class FieldTag(IntEnum):
    """Of a field behind the head."""

    BEGIN = 1
    ARRAY = 2
    PREDECESSOR = 3
    RIGHTS = 4
    KEY = 5
    NAME = 6
    MESSAGE = 7
    PRINCIPAL = 8
    POOL = 9
    SET = 10
    SIGNER = 11
    USED = 12
    FUNCTION = 0x8001


MUST_UNDERSTAND = 0x8000
"""From this tag on, a release that does not know the tag refuses the record."""
_NUMBERS_OF: dict[int, _Numbers] = {
    FieldTag.BEGIN: _BEGIN_NUMBERS,
    FieldTag.ARRAY: _ARRAY_NUMBERS,
    FieldTag.PREDECESSOR: _PREDECESSOR_NUMBERS,
    FieldTag.USED: _USED_NUMBERS,
}
_RIGHTS = 121
BASE_BYTES = 1024
"""Charged for a job's record, and for each member of an array."""
_MEMBER = 0x200
_CODE_KEPT = 0x800
_UNCOUNTED = (1 << 64) - 1
_DIGEST = 32
# name, bytes at most, in the order of versions 1 to 6; the last two since version 2
_TEXTS = (("name", 128), ("message", 256), ("principal", 511), ("pool", 64), ("set", 64))
_FUNCTION_HEAD = 17  # partition, object, access class; the name of the entry point follows
_MOST = {
    FieldTag.KEY: 64,
    FieldTag.RIGHTS: _RIGHTS,
    **{FieldTag[name.upper()]: most for name, most in _TEXTS},
    FieldTag.SIGNER: 128,
    FieldTag.FUNCTION: _FUNCTION_HEAD + 64,
}


@dataclass(frozen=True, order=True)
class JobId:
    """A job is named by its surrogate, whatever the incarnation of the partition."""

    partition_id: int
    object_id: int

    def __str__(self) -> str:
        return f"{self.partition_id:#x}/{self.object_id:#x}"

    def encode(self) -> bytes:
        """Sixteen bytes, as keys and job_keys.db have them."""
        return struct.pack(">QQ", self.partition_id, self.object_id)

    @classmethod
    def decode(cls, data: bytes) -> JobId:
        """Read them.  Raises: FormatError."""
        if len(data) != 16:
            raise FormatError(f"a job's id of {len(data)} bytes instead of 16")
        return cls(*struct.unpack(">QQ", data))

    def at(self, incarnation: int) -> Place:
        """The surrogate, given which incarnation of its partition is live."""
        return Place(self.partition_id, incarnation, self.object_id)


_LENGTHS = {
    JobKeyKind.EXPIRY: 25,
    JobKeyKind.RECORD: 17,
    JobKeyKind.CODE: 21,
    JobKeyKind.PAYLOAD: 18,
    JobKeyKind.COMPANION: 17,
    JobKeyKind.USED: 21,
}
"""Bytes of a whole key."""


@dataclass(frozen=True)
class JobKey:
    """A key of jobs.db.  number: expiry in ms, piece of the code or of the list of objects used, or kind
    of payload.

    Of kind COMPANION, job is the object that holds a result; the value says whose.
    """

    kind: JobKeyKind
    job: JobId
    number: int = 0

    @classmethod
    def decode(cls, key: bytes) -> JobKey:
        """Read it.  Raises: FormatError."""
        if not key or key[0] not in tuple(JobKeyKind):
            raise FormatError("a key of unknown kind")
        kind = JobKeyKind(key[0])
        if len(key) != _LENGTHS[kind]:
            raise FormatError(f"a key {kind.name} of {len(key)} bytes")
        if kind is JobKeyKind.EXPIRY:
            return cls(kind, JobId.decode(key[9:]), int.from_bytes(key[1:9], "big"))
        return cls(kind, JobId.decode(key[1:17]), int.from_bytes(key[17:], "big"))

    def encode(self) -> bytes:
        """Write it."""
        if self.kind is JobKeyKind.EXPIRY:
            return bytes((self.kind,)) + self.number.to_bytes(8, "big") + self.job.encode()
        rest = _LENGTHS[self.kind] - 17
        return bytes((self.kind,)) + self.job.encode() + self.number.to_bytes(rest, "big")


class _Reader:
    """Takes a record apart from front to back."""

    def __init__(self, data: bytes) -> None:
        self.data = data
        self.at = 0

    def take(self, length: int) -> bytes:
        """The next bytes.  Raises: FormatError."""
        part = self.data[self.at : self.at + length]
        if len(part) != length:
            raise FormatError(f"a job record that ends after {len(self.data)} bytes")
        self.at += length
        return part

    def number(self, width: int) -> int:
        """The next number."""
        return int.from_bytes(self.take(width), "big")

    def numbers(self, names: _Numbers) -> dict[str, int]:
        """The next numbers, by their names."""
        return {name: self.number(width) for name, width in names}

    @property
    def left(self) -> int:
        """Bytes that have not been taken."""
        return len(self.data) - self.at


def _bytes_of(numbers: dict[str, int], names: _Numbers) -> bytes:
    """Numbers as a record has them; those that are not there: 0."""
    return b"".join(numbers.get(name, 0).to_bytes(width, "big") for name, width in names)


@dataclass
class _Parts:
    """Fields of a record of any version."""

    numbers: dict[str, int]
    digests: tuple[bytes, bytes]
    fields: dict[int, bytes]
    """By tag: those that hold no numbers."""


def _tagged(reader: _Reader) -> _Parts:
    """A record of version 7 behind its version."""
    if reader.number(2) != len(reader.data):
        raise FormatError(f"a job record of {len(reader.data)} bytes, which is not its length")
    numbers = reader.numbers(_NUMBERS) | reader.numbers(_CHARGE_NUMBERS)
    parts = _Parts(numbers, (reader.take(_DIGEST), reader.take(_DIGEST)), {})
    before = 0
    while reader.left:
        tag = reader.number(2)
        value = reader.take(reader.number(2))
        if tag <= before:
            raise FormatError(f"a job record with field {tag:#x} behind field {before:#x}")
        if tag >= MUST_UNDERSTAND and tag not in tuple(FieldTag):
            raise FormatError(f"a job record with field {tag:#x}: of a later release, or damaged")
        before = tag
        if tag in _NUMBERS_OF:
            inside = _Reader(value)
            numbers |= inside.numbers(_NUMBERS_OF[tag])
            if inside.left:
                raise FormatError(f"a job record whose field {FieldTag(tag).name} is too long")
        else:
            parts.fields[tag] = value
    return parts


def _earlier(reader: _Reader, version: int) -> _Parts:
    """A record of versions 1 to 6 behind its version: one order of fields, to which each version added."""
    numbers = reader.numbers(_NUMBERS)
    key_length = reader.number(1)
    parts = _Parts(numbers, (reader.take(_DIGEST), reader.take(_DIGEST)), {})
    parts.fields[FieldTag.KEY] = reader.take(key_length)
    for name, _ in _TEXTS if version >= 2 else _TEXTS[:3]:
        parts.fields[FieldTag[name.upper()]] = reader.take(reader.number(2))
    if version >= 3:
        numbers |= reader.numbers(_ARRAY_NUMBERS) | reader.numbers(_PREDECESSOR_NUMBERS)
    if version >= 4:
        parts.fields[FieldTag.RIGHTS] = reader.take(reader.number(2))
    numbers |= reader.numbers(_CHARGE_NUMBERS) if version >= 5 else {"charged": _UNCOUNTED}
    if version >= 6:
        numbers |= reader.numbers(_BEGIN_NUMBERS)
    if reader.left:
        raise FormatError("a job record with bytes behind its end")
    return parts


def _check(parts: _Parts) -> None:
    """Conditions for a record of any version.  Raises: FormatError."""
    if parts.numbers["state"] not in tuple(JobState):
        raise FormatError(f"a job record of state {parts.numbers['state']:#04x}")
    for tag, most in _MOST.items():
        value = parts.fields.get(tag, b"")
        if len(value) > most or (tag is FieldTag.RIGHTS and len(value) not in (0, most)):
            raise FormatError(f"a job record whose {tag.name.lower()} has {len(value)} bytes")
        if tag is FieldTag.FUNCTION:
            if value and len(value) <= _FUNCTION_HEAD:
                raise FormatError(f"a job record whose function has {len(value)} bytes")
        elif tag >= FieldTag.NAME and b"\0" in value:
            raise FormatError(f"a job record whose {tag.name.lower()} has a zero byte")


@dataclass(frozen=True)
class JobRecord:
    """Everything about a job that survives a restart.  numbers: by the names of the tables above."""

    numbers: dict[str, int]
    code_sha256: bytes
    content_sha256: bytes
    key: bytes
    name: bytes
    message: bytes
    principal: bytes
    pool: bytes = b""
    set: bytes = b""
    rights: bytes = b""
    signer: bytes = b""
    function: bytes = b""
    version: int = VERSION
    """Of the bytes that it was read from."""
    charged: int | None = None
    """Bytes; None: not counted, the target does that when it opens the store."""
    unknown: dict[int, bytes] = field(default_factory=dict)
    """Fields of a later release, by tag; they are written as they were read."""

    @classmethod
    def decode(cls, data: bytes) -> JobRecord:
        """Read it, of whatever version.  Raises: FormatError."""
        reader = _Reader(data)
        version = reader.number(2)
        if not 1 <= version <= VERSION:
            raise FormatError(f"a job record of version {version}: of a later release, or damaged")
        parts = _tagged(reader) if version == VERSION else _earlier(reader, version)
        _check(parts)
        numbers = dict.fromkeys(
            (name for name, _ in _ARRAY_NUMBERS + _PREDECESSOR_NUMBERS + _USED_NUMBERS), 0
        )
        numbers |= parts.numbers
        charged = numbers.pop("charged")
        named = {tag.name.lower(): parts.fields.pop(tag, b"") for tag in _MOST}
        return cls(
            numbers,
            *parts.digests,
            **named,
            version=version,
            charged=charged if charged != _UNCOUNTED else None,
            unknown=parts.fields,
        )

    def encode(self) -> bytes:
        """Write it, as the target writes it."""
        charged = _UNCOUNTED if self.charged is None else self.charged
        numbers = self.numbers | {"charged": charged}
        head = _bytes_of(numbers, _NUMBERS + _CHARGE_NUMBERS)
        head += self.code_sha256 + self.content_sha256
        fields = {tag: _bytes_of(numbers, names) for tag, names in _NUMBERS_OF.items()}
        fields = {tag: value for tag, value in fields.items() if any(value)}
        fields |= {tag: getattr(self, tag.name.lower()) for tag in _MOST} | self.unknown
        rest = b"".join(
            struct.pack(">HH", tag, len(value)) + value
            for tag, value in sorted(fields.items())
            if value or tag in self.unknown
        )
        return struct.pack(">HH", VERSION, 4 + len(head) + len(rest)) + head + rest

    @property
    def id(self) -> JobId:
        """The surrogate."""
        return JobId(self.numbers["partition_id"], self.numbers["object_id"])

    @property
    def state(self) -> JobState:
        """Where it stands."""
        return JobState(self.numbers["state"])

    @property
    def has_ended(self) -> bool:
        """It will not change any more."""
        return bool(self.state & 0x10)

    @property
    def array(self) -> JobId | None:
        """Of a member of an array, that array's job."""
        if self.numbers["array_count"] or not self.numbers["array_object_id"]:
            return None
        return JobId(self.id.partition_id, self.numbers["array_object_id"])

    def has_member(self, job: JobId) -> bool:
        """Whether it stands for an array that the other job is a member of, by its id."""
        behind = job.object_id - self.id.object_id
        return (
            self.id.partition_id == job.partition_id and 0 < behind <= self.numbers["array_count"]
        )

    @property
    def expiry_ms(self) -> int:
        """When an ended job's record goes; 0 of a member of an array, which goes with that."""
        return self.numbers["expiry_ms"]

    @property
    def used_pieces(self) -> int:
        """Records of kind USED: the list of objects that it has used."""
        return -(-self.numbers["used_length"] // CODE_PIECE)

    def charge(self, payload_bytes: int) -> int:
        """Its charge, given the bytes in its records of kind PAYLOAD."""
        numbers = self.numbers
        payload_bytes += numbers["used_length"]
        if numbers["flags"] & _MEMBER:
            return payload_bytes
        kept = not self.has_ended or numbers["flags"] & _CODE_KEPT
        content = numbers["args_length"] + numbers["code_length"] if kept else 0
        return payload_bytes + content + (1 + numbers["array_count"]) * BASE_BYTES

    @property
    def idempotency_key(self) -> bytes:
        """Its key in job_keys.db, if it was submitted with one."""
        digest = hashlib.sha256(self.principal + b"\0")
        digest.update(self.id.partition_id.to_bytes(8, "big") + self.key)
        return digest.digest()
