# SPDX-License-Identifier: GPL-2.0-or-later
"""The EXEC PARAMETERS descriptor (type F081h of the CDB continuation).

Content: be16 format version 1, be16 count; then per parameter be16 tag, be16 flags (bit 0 critical),
be32 length, value, zero bytes until the value is a multiple of 8.
"""

from __future__ import annotations

import re
import struct
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from math import ceil, inf
from typing import NamedTuple, TypeAlias

from pyosd.types import ObjectRef
from pyosd.wire.capability import JOB_RIGHTS, Permission
from pyosd.wire.cdb import Descriptor
from pyosd.wire.indices import Ranges
from pyosd.wire.indices import encode as encode_ranges

__all__ = [
    "DESCRIPTOR_TYPE",
    "After",
    "AfterEnd",
    "ArgsEncoding",
    "CallRecord",
    "Duration",
    "ExecFlag",
    "ExecParams",
    "FunctionCall",
    "HomeCost",
    "Limits",
    "ResultForm",
    "Tag",
    "parse_duration",
    "parse_size",
    "show_duration",
]

DESCRIPTOR_TYPE = 0xF081
FORMAT_VERSION = 1
_CRITICAL = 0x0001
_ENTRY = struct.Struct(">HHI")
RETRIES_MOST = 14
PRIORITY_MOST = 100
_HOME_USEC_MOST = 86400 * 10**6


class Tag(IntEnum):
    """Parameter tags."""

    ENGINE = 1
    ARGS = 2
    WALL = 3
    CPU = 4
    MEMORY = 5
    PROCESSES = 6
    OUTPUT = 7
    OPEN_FILES = 8
    IO = 9
    PRIORITY = 10
    NAME = 11
    TAG = 12
    KEY = 13
    SURROGATE_PARTITION = 14
    SURROGATE_ID = 15
    SYNC_WAIT = 16
    FLAGS = 17
    AFTER = 18
    ARRAY = 19
    POOL = 20
    EXPIRY = 21
    PREDECESSOR = 22
    GRACE = 23
    BEGIN = 24
    FUNCTION = 25
    HOME = 26
    REUSE = 27


class ArgsEncoding(IntEnum):
    """How the arguments of a job are encoded."""

    NONE = 0
    BYTES = 1
    JSON = 2


class CallRecord(IntEnum):
    """Whether a call of a function has a record: a surrogate, and what a job leaves behind.

    IF_NEEDED: if the function may write, or the call asks for what only a record can give.
    """

    IF_NEEDED = 0
    NEVER = 1
    ALWAYS = 2


class ResultForm(IntEnum):
    """The form of a result.  REPORT: a call without a record failed; the reason, in UTF-8."""

    NONE = 0
    BYTES = 1
    JSON = 2
    REPORT = 3


class ExecFlag(IntFlag):
    """Parameter FLAGS; bits 7-4 hold how often it may be tried in all (0: 3), bits 15-8 an exit code to
    run again for, bits 18-16 the code's form.

    PREDECESSOR_ARGS: with code: the arguments are those that the target keeps of the predecessor, unless
    there are others.
    """

    HOLD = 0x01
    IDEMPOTENT = 0x02
    END_ON_ABORT = 0x04
    RETRY_OOM = 0x08
    CODE_ZLIB = 0x10000
    CODE_ZSTD = 0x20000
    CODE_BYTECODE = 0x40000
    PREDECESSOR_ARGS = 0x80000


_NO_FLAGS = ExecFlag(0)

Size: TypeAlias = int | str
"""Bytes as an int, or text with a unit: "256MiB", "1.5GB", "4096"."""
Duration: TypeAlias = float | str
"""Seconds as a number, or text with units: "30s", "500ms", "2h", "1h30m"."""

_SIZE_UNITS = {
    "": 1,
    "b": 1,
    "k": 1 << 10,
    "m": 1 << 20,
    "g": 1 << 30,
    "t": 1 << 40,
    "kib": 1 << 10,
    "mib": 1 << 20,
    "gib": 1 << 30,
    "tib": 1 << 40,
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
_DURATION_UNITS = {
    "us": 1e-6,
    "ms": 1e-3,
    "s": 1.0,
    "m": 60.0,
    "min": 60.0,
    "h": 3600.0,
    "d": 86400.0,
}
_NUMBER = r"[0-9]+(?:\.[0-9]+)?"
# Patterns are compiled when they are first used.
_QUANTITY = rf"\s*({_NUMBER})\s*([A-Za-z]*)\s*"
_PART = rf"\s*({_NUMBER})\s*([A-Za-z]+)\s*"
_PLAIN = rf"\s*({_NUMBER})\s*"


def parse_size(size: Size) -> int:
    """Bytes of a size.  Raises: ValueError: not a size, or negative."""
    if isinstance(size, int):
        if size < 0:
            raise ValueError(f"size {size} is negative")
        return size
    match = re.fullmatch(_QUANTITY, size)
    unit = _SIZE_UNITS.get(match[2].lower()) if match else None
    if match is None or unit is None:
        known = ", ".join(filter(None, _SIZE_UNITS))
        raise ValueError(f"cannot read size '{size}': a number and one of {known}")
    return int(float(match[1]) * unit)


def _read_duration(text: str) -> float | None:
    """Seconds of "90", "90s" or "1h30m"; None: it is no duration."""
    if plain := re.fullmatch(_PLAIN, text):
        return float(plain[1])
    total, at, before = 0.0, 0, inf
    while at < len(text):
        part = re.compile(_PART).match(text, at)
        unit = _DURATION_UNITS.get(part[2].lower()) if part else None
        if part is None or unit is None or unit >= before:
            return None
        total, at, before = total + float(part[1]) * unit, part.end(), unit
    return total if at else None


def parse_duration(duration: Duration) -> float:
    """Seconds of a duration: a number of seconds, or numbers with units, the largest unit first.

    Raises: ValueError: not a duration, or negative.
    """
    if isinstance(duration, str):
        seconds = _read_duration(duration)
        if seconds is None:
            known = ", ".join(_DURATION_UNITS)
            raise ValueError(
                f"cannot read duration '{duration}': numbers with units, as 90s or 1h30m "
                f"({known}; the largest first)"
            )
        return seconds
    if not duration >= 0:
        raise ValueError(f"duration {duration} is negative")
    return float(duration)


def show_duration(seconds: float) -> str:
    """The text of a duration, in the largest of d, h, m and s of which it is a multiple."""
    for unit in "dhm":
        if seconds and seconds % _DURATION_UNITS[unit] == 0:
            return f"{seconds / _DURATION_UNITS[unit]:.0f}{unit}"
    return f"{seconds:.15g}s"


def _usec(duration: Duration) -> int:
    return round(parse_duration(duration) * 1e6)


_NO_LIMIT = (None, 0, (1 << 64) - 1)  # spellings of it


@dataclass(frozen=True)
class Limits:
    """Limits of one job; None: the default.  wall, cpu: durations; mem, output, io: sizes."""

    wall: Duration | None = None
    cpu: Duration | None = None
    mem: Size | None = None
    procs: int | None = None
    output: Size | None = None
    open_files: int | None = None
    io: Size | None = None

    def stated(self) -> Limits:
        """Limits in force as a submission says them: what is not limited is None."""
        return Limits(**{k: None if v in _NO_LIMIT else v for k, v in vars(self).items()})


_DEFAULTS = Limits()


class AfterEnd(IntEnum):
    """How a job must end for another to start."""

    ANY = 0
    COMPLETED = 1
    FAILED = 2


@dataclass(frozen=True)
class After:
    """Start after another job has ended.

    completed: only if it ended COMPLETED; False: after any end.
    failed: only if it did not end COMPLETED; completed has no effect then.
    """

    job: ObjectRef
    completed: bool = True
    failed: bool = False

    def __post_init__(self) -> None:
        """Only one of the two conditions holds."""
        if self.failed:
            object.__setattr__(self, "completed", False)

    @property
    def condition(self) -> AfterEnd:
        """The condition as it is sent."""
        return AfterEnd.FAILED if self.failed else AfterEnd(self.completed)

    @property
    def word(self) -> str:
        """The condition as people write it: "ok", "any" or "failed"."""
        return {AfterEnd.COMPLETED: "ok", AfterEnd.FAILED: "failed"}.get(self.condition, "any")

    def __str__(self) -> str:
        return f"{self.job}:{self.word}"


class FunctionCall(NamedTuple):
    """The function that EXECUTE FUNCTION calls.

    partition_id: a function partition, 1h to FFFFh.  function: object id, alias, or at least 8
    hexadecimal digits of the SHA-256 of its code.  method: entry point; empty: the manifest's first.
    args_encoding: of the command's data.  record: whether the call has one.
    """

    partition_id: int
    function: int | str
    method: str = ""
    args_encoding: ArgsEncoding = ArgsEncoding.NONE
    record: CallRecord = CallRecord.IF_NEEDED

    def encode(self) -> bytes:
        """The value of the parameter FUNCTION."""
        by_id = isinstance(self.function, int)
        object_id = self.function if isinstance(self.function, int) else 0
        name = b"" if by_id else str(self.function).encode()
        method = self.method.encode()
        numbers = (self.partition_id, object_id, self.record, self.args_encoding, len(method))
        return struct.pack(">QQBBH", *numbers) + method + name


class HomeCost(NamedTuple):
    """The cost of a job if its client ran it.

    seconds: until its end at the client.  size: bytes that it reads.  0: not known.
    """

    seconds: float = 0.0
    size: int = 0

    def encode(self) -> bytes:
        """The value of the parameter HOME; more than a day is a day."""
        usec = min(max(0, ceil(self.seconds * 1e6)), _HOME_USEC_MOST)
        return struct.pack(">QQ", usec, self.size)


@dataclass(frozen=True)
class ExecParams:
    """The parameters of EXEC, apart from the code.  None or empty: the default of the target.

    name: at most 128 bytes.  tags: at most 16, each "key=value" of at most 128 bytes.
    key: idempotency key, 1 to 64 bytes.
    grace: how long a script can clean up when it is ended; default 20 ms, at most 5 s.
    begin: the target holds the job until then; ms since 1970.
    reuse: an earlier job can answer that ended no longer ago than this; infinity: at any time.
    wait: how long a synchronous EXEC waits; at most 60 s.
    expiry: how long the target keeps the record after the end.
    array: first index, last index, and how many run at once (0: all).
    array_ranges: the indices, if they are not all from the first to the last.
    predecessor: the earlier job that this one runs again.
    function: for EXECUTE FUNCTION only.
    surrogate: partition and requested id (0: any) of the job's object, which is an ordinary object then.
    rights: permissions in the zone, if credentials are in use.  They are not sent, but requested.
    home: the job changes no objects, and the target can leave it to the client.  An older target ignores
    this.
    """

    engine: str = ""
    args: bytes = b""
    args_encoding: ArgsEncoding = ArgsEncoding.NONE
    limits: Limits = _DEFAULTS
    priority: int | None = None
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    key: bytes = b""
    surrogate: ObjectRef | None = None
    wait: Duration | None = None
    flags: ExecFlag = _NO_FLAGS
    retry_exit: int = 0
    retries: int | None = None
    after: tuple[After, ...] = ()
    array: tuple[int, int, int] | None = None
    array_ranges: Ranges = ()
    pool: str = ""
    expiry: Duration | None = None
    predecessor: ObjectRef | None = None
    grace: Duration | None = None
    begin: int = 0
    reuse: Duration | None = None
    function: FunctionCall | None = None
    rights: Permission = JOB_RIGHTS
    home: HomeCost | None = None

    def _entries(self) -> list[bytes]:
        """The parameters that were said, in tag order, encoded."""
        found: list[bytes] = []

        def say(tag: Tag, value: bytes) -> None:
            flags = 0 if tag is Tag.HOME else _CRITICAL
            length = len(value)
            found.append(_ENTRY.pack(tag, flags, length) + value + bytes(-length % 8))

        if self.engine:
            say(Tag.ENGINE, self.engine.encode())
        if self.args_encoding is not ArgsEncoding.NONE:
            say(Tag.ARGS, struct.pack(">H", self.args_encoding) + self.args)
        for tag, number in self.limit_numbers():
            if number is not None:
                say(tag, struct.pack(">Q", number))
        if self.priority is not None:
            if not -PRIORITY_MOST <= self.priority <= PRIORITY_MOST:
                raise ValueError(f"priority must be -{PRIORITY_MOST} to {PRIORITY_MOST}")
            say(Tag.PRIORITY, struct.pack(">h", self.priority))
        if self.name:
            say(Tag.NAME, self.name.encode())
        for key, value in self.tags.items():
            say(Tag.TAG, f"{key}={value}".encode())
        if self.key:
            say(Tag.KEY, self.key)
        if self.surrogate:
            say(Tag.SURROGATE_PARTITION, struct.pack(">Q", self.surrogate.partition_id))
        if self.surrogate and self.surrogate.object_id:
            say(Tag.SURROGATE_ID, struct.pack(">Q", self.surrogate.object_id))
        if self.wait is not None:
            say(Tag.SYNC_WAIT, struct.pack(">Q", _usec(self.wait)))
        if self.flags or self.retry_exit or self.retries is not None:
            say(Tag.FLAGS, struct.pack(">I", self._flag_bits()))
        if self.after:
            jobs = [(a.job.partition_id, a.job.object_id, a.condition, 0) for a in self.after]
            say(Tag.AFTER, b"".join(struct.pack(">QQII", *each) for each in jobs))
        if self.array:
            say(Tag.ARRAY, struct.pack(">III", *self.array) + encode_ranges(self.array_ranges))
        if self.pool:
            say(Tag.POOL, self.pool.encode())
        if self.expiry is not None:
            say(Tag.EXPIRY, struct.pack(">Q", _usec(self.expiry)))
        if self.predecessor:
            ids = (self.predecessor.partition_id, self.predecessor.object_id)
            say(Tag.PREDECESSOR, struct.pack(">QQ", *ids))
        if self.grace is not None:
            say(Tag.GRACE, struct.pack(">Q", _usec(self.grace)))
        if self.begin:
            say(Tag.BEGIN, struct.pack(">Q", self.begin))
        if self.reuse is not None:
            say(
                Tag.REUSE,
                struct.pack(">Q", (1 << 64) - 1 if self.reuse == inf else _usec(self.reuse)),
            )
        if self.function:
            say(Tag.FUNCTION, self.function.encode())
        if self.home is not None:
            say(Tag.HOME, self.home.encode())
        return found

    def _flag_bits(self) -> int:
        """The value of the parameter FLAGS."""
        bits = int(self.flags) | self.retry_exit << 8
        if self.retries is not None:
            if not 0 <= self.retries <= RETRIES_MOST:
                raise ValueError(f"retries must be 0 to {RETRIES_MOST}")
            bits |= self.retries + 1 << 4
        return bits

    def limit_numbers(self) -> list[tuple[Tag, int | None]]:
        """The limits as they are sent, times in microseconds; None: the default.  []: all are."""
        limits = self.limits
        if limits is _DEFAULTS or limits == _DEFAULTS:
            return []
        return [
            (Tag.WALL, None if limits.wall is None else _usec(limits.wall)),
            (Tag.CPU, None if limits.cpu is None else _usec(limits.cpu)),
            (Tag.MEMORY, None if limits.mem is None else parse_size(limits.mem)),
            (Tag.PROCESSES, limits.procs),
            (Tag.OUTPUT, None if limits.output is None else parse_size(limits.output)),
            (Tag.OPEN_FILES, limits.open_files),
            (Tag.IO, None if limits.io is None else parse_size(limits.io)),
        ]

    def descriptor(self) -> Descriptor | None:
        """The continuation descriptor, or None when nothing was said (a bare EXEC).

        Raises: ValueError: a number does not fit its field.
        """
        try:
            entries = self._entries()
        except struct.error as error:
            raise ValueError(f"EXEC parameter out of range: {error}") from None
        if not entries:
            return None
        head = struct.pack(">HH", FORMAT_VERSION, len(entries))
        return Descriptor(DESCRIPTOR_TYPE, head + b"".join(entries))
