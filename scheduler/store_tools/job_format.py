# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of jobs.db and job_keys.db, as target/exec/record/record.h describes them.

Pure, as format.py.  Not here: what states and reasons mean to people (the job pages do that).
"""

from __future__ import annotations

import hashlib
import struct
from dataclasses import dataclass
from enum import IntEnum

from scheduler.store_tools.format import FormatError, Place

__all__ = ["CODE_PIECE", "JobId", "JobKey", "JobKeyKind", "JobPayload", "JobRecord", "JobState"]

VERSIONS = (1, 2, 3, 4, 5, 6)
"""What is read; the target writes the last of jobs that wait for their begin, and 5 of others."""
CODE_PIECE = 60 << 10
"""Bytes of arguments and code in one record."""


class JobState(IntEnum):
    """Where a job stands; 10h and above: it has ended."""

    QUEUED = 0x01
    HELD = 0x02
    STARTING = 0x03
    RUNNING = 0x04
    COMPLETING = 0x05
    COMPLETED = 0x10
    FAILED = 0x11
    CANCELLED = 0x12
    TIMEOUT = 0x13
    OUT_OF_MEMORY = 0x14
    LIMIT_EXCEEDED = 0x15
    SANDBOX_LOST = 0x16


class JobPayload(IntEnum):
    """What a record of kind PAYLOAD holds."""

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
    ("key_length", 1),
)
_CODES = {1: "B", 2: "H", 4: "I", 8: "Q"}
_LAYOUT = struct.Struct(">H" + "".join(_CODES[width] for _, width in _NUMBERS))
# at the end, since version 3
_ARRAY_NUMBERS = (
    ("array_object_id", 8),
    ("array_index", 4),
    ("array_count", 4),
    ("array_at_once", 4),
    ("array_ending", 2),
    ("predecessor_partition_id", 8),
    ("predecessor_object_id", 8),
)
_ARRAY = struct.Struct(">" + "".join(_CODES[width] for _, width in _ARRAY_NUMBERS))
WITH_ARRAYS = 3
# behind these, since version 4: the rights it acts with, behind their length
WITH_RIGHTS = 4
_RIGHTS = 121
# behind these, since version 5: microseconds starved, bytes charged
WITH_CHARGE = 5
_CHARGE = struct.Struct(">QQ")
BASE_BYTES = 1024
"""Charged for a job's record, and for each member of an array."""
_MEMBER = 0x200
_CODE_KEPT = 0x800
_UNCOUNTED = (1 << 64) - 1
_DIGEST = 32
_KEY_MAX = 64
# bytes of a text at most; the last two are in records of version 2 and later
_TEXTS = (("name", 128), ("message", 256), ("principal", 511), ("pool", 64), ("set", 64))
_TEXTS_OF = {1: 3, 2: 5, 3: 5, 4: 5, 5: 5, 6: 5}
# behind these, since version 6: ms since 1970, until when it is held
WITH_BEGIN = 6


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
}
"""Bytes of a whole key."""


@dataclass(frozen=True)
class JobKey:
    """A key of jobs.db.  number: expiry in ms, piece of the code, or kind of payload.

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


@dataclass(frozen=True)
class JobRecord:
    """Everything about a job that survives a restart.  numbers: by the names of the table above."""

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
    version: int = WITH_CHARGE
    charged: int | None = None
    """Bytes; None: not counted, the target does that when it opens the store."""

    @classmethod
    def decode(cls, data: bytes) -> JobRecord:
        """Read it.  Raises: FormatError."""
        if len(data) < _LAYOUT.size + 2 * _DIGEST:
            raise FormatError(f"a job record of {len(data)} bytes")
        version, *values = _LAYOUT.unpack(data[: _LAYOUT.size])
        if version not in VERSIONS:
            raise FormatError(f"a job record of version {version}: of a later release, or damaged")
        numbers = dict(zip((name for name, _ in _NUMBERS), values, strict=True))
        if numbers["state"] not in tuple(JobState):
            raise FormatError(f"a job record of state {numbers['state']:#04x}")
        at = _LAYOUT.size + 2 * _DIGEST
        code_sha256, content_sha256 = data[at - 2 * _DIGEST : at - _DIGEST], data[at - _DIGEST : at]
        key = data[at : at + numbers["key_length"]]
        at += numbers["key_length"]
        if len(key) != numbers["key_length"] or len(key) > _KEY_MAX:
            raise FormatError("a job record whose key is too long")
        texts: dict[str, bytes] = {}
        for name, most in _TEXTS[: _TEXTS_OF[version]]:
            length = int.from_bytes(data[at : at + 2], "big")
            text = data[at + 2 : at + 2 + length]
            if len(data) < at + 2 + length or length > most:
                raise FormatError(f"a job record whose {name} is too long")
            texts[name] = text
            at += 2 + length
        array = data[at : at + _ARRAY.size] if version >= WITH_ARRAYS else bytes(_ARRAY.size)
        at += _ARRAY.size if version >= WITH_ARRAYS else 0
        if len(array) == _ARRAY.size:
            names = (name for name, _ in _ARRAY_NUMBERS)
            numbers.update(zip(names, _ARRAY.unpack(array), strict=True))
        rights = b""
        if version >= WITH_RIGHTS:
            length = int.from_bytes(data[at : at + 2], "big")
            rights = data[at + 2 : at + 2 + length]
            at += 2 + length
        charged = None
        tail = data[at : at + _CHARGE.size] if version >= WITH_CHARGE else b""
        if len(tail) == _CHARGE.size:
            numbers["starved_usec"], number = _CHARGE.unpack(tail)
            charged = number if number != _UNCOUNTED else None
        at += _CHARGE.size if version >= WITH_CHARGE else 0
        if version >= WITH_BEGIN:
            numbers["begin_ms"] = int.from_bytes(data[at : at + 8], "big")
            at += 8
        if at != len(data) or len(rights) not in (0, _RIGHTS):
            raise FormatError("a job record with bytes behind its end")
        return cls(
            numbers,
            code_sha256,
            content_sha256,
            key,
            **texts,
            rights=rights,
            version=version,
            charged=charged,
        )

    def encode(self) -> bytes:
        """Write it."""
        head = _LAYOUT.pack(self.version, *(self.numbers[name] for name, _ in _NUMBERS))
        array = _ARRAY.pack(*(self.numbers[name] for name, _ in _ARRAY_NUMBERS))
        charged = _UNCOUNTED if self.charged is None else self.charged
        starved = self.numbers.get("starved_usec", 0)
        begin = self.numbers.get("begin_ms", 0)
        texts = [self.name, self.message, self.principal, self.pool, self.set]
        return b"".join(
            [
                head,
                self.code_sha256,
                self.content_sha256,
                self.key,
                *(len(each).to_bytes(2, "big") + each for each in texts[: _TEXTS_OF[self.version]]),
                array if self.version >= WITH_ARRAYS else b"",
                len(self.rights).to_bytes(2, "big") if self.version >= WITH_RIGHTS else b"",
                self.rights,
                _CHARGE.pack(starved, charged) if self.version >= WITH_CHARGE else b"",
                begin.to_bytes(8, "big") if self.version >= WITH_BEGIN else b"",
            ]
        )

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
    def code_pieces(self) -> int:
        """Records of kind CODE it has until it ends, or as long as its flags say.

        Those of a member of an array are its array's.
        """
        if self.array is not None:
            return 0
        return -(-(self.numbers["args_length"] + self.numbers["code_length"]) // CODE_PIECE)

    def charge(self, payload_bytes: int) -> int:
        """What it is charged, given how many bytes its records of kind PAYLOAD hold."""
        numbers = self.numbers
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
