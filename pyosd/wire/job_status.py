# SPDX-License-Identifier: GPL-2.0-or-later
"""Page 2000_0001h of a job's surrogate, decoded.  Pure."""

from __future__ import annotations

import struct
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum, IntFlag
from functools import cached_property
from typing import NamedTuple

from pyosd import _core
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.exec_params import After, AfterEnd, HomeCost, Limits
from pyosd.wire.indices import MOST, Ranges, indices_in, position, text_of
from pyosd.wire.indices import decode as decode_ranges
from pyosd.wire.times import time_of

_PROGRESS_UNKNOWN = 0xFFFF
_AFTER_ENTRY = struct.Struct(">QQII")
_ARRAY = struct.Struct(">QIII")
_COUNT = struct.Struct(">II")
_OFFLOAD = struct.Struct(">5Q")
_APART = range(1 << 62, 1 << 63)
JOBS_PARTITION = 0x7FFF_FFFF_0000_0000
"""Has the objects of jobs whose zone is the root, and no data."""


def is_apart(job: ObjectRef) -> bool:
    """Whether a job's objects stand apart from its partition's data, as they do unless the submission named
    a partition for them."""
    return job.object_id in _APART


class JobState(IntEnum):
    """States of a job; from COMPLETED on they are final."""

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

    def __str__(self) -> str:
        return self.name

    @property
    def terminal(self) -> bool:
        """Whether the job has ended; then its state never changes again."""
        return bool(self & 0x10)


class JobFlag(IntFlag):
    """Flags of a job's status."""

    STDOUT_CUT = 0x01
    STDERR_CUT = 0x02
    RESULT_SPILLED = 0x04
    IDEMPOTENT = 0x08
    WROTE = 0x10
    RESULT_JSON = 0x20
    AFTER = 0x40
    KILL_ASKED = 0x80
    ARRAY = 0x100
    MEMBER = 0x200
    RANGES = 0x400
    CODE_KEPT = 0x800
    NATIVE = 0x2000
    LISTED = 0x8000
    PURE = 0x10000
    REUSABLE = 0x20000
    ANSWERED = 0x40000


class Number(IntEnum):
    """Numbers on the status page."""

    VERSION = 0x01
    GENERATION = 0x02
    STATE = 0x03
    REASON = 0x04
    EXIT_CODE = 0x05
    SIGNAL = 0x06
    ATTEMPT = 0x07
    PROGRESS = 0x08
    MESSAGE = 0x09
    SUBMITTED = 0x0A
    STARTED = 0x0B
    ENDED = 0x0C
    QUEUE_TIME = 0x0D
    RUN_TIME = 0x0E
    POSITION = 0x0F
    POLL_INTERVAL = 0x10
    CPU_USER = 0x11
    CPU_SYSTEM = 0x12
    PEAK_MEMORY = 0x13
    BYTES_READ = 0x14
    BYTES_WRITTEN = 0x15
    CALLS = 0x16
    RESULT_LENGTH = 0x17
    STDOUT_LENGTH = 0x18
    STDERR_LENGTH = 0x19
    FLAGS = 0x1A
    RESULT_OBJECT = 0x1B
    SHA256 = 0x1C
    ZONE = 0x1D
    POOL = 0x1E
    SANDBOX = 0x1F
    ENGINE = 0x20
    LIMITS = 0x21
    KEY = 0x22
    EXPIRY = 0x23
    REASON_LABEL = 0x24
    HINT = 0x25
    NAME = 0x26
    PREDECESSOR = 0x27
    TAGS = 0x28
    AFTER = 0x29
    AWAITED = 0x2A
    ARRAY = 0x2B
    MEMBERS = 0x2C
    STATES = 0x2D
    STARVED = 0x2E
    INDICES = 0x2F
    BEGIN = 0x30
    PRINCIPAL = 0x32
    FUNCTION = 0x33
    SIGNER = 0x34
    OFFLOAD = 0x3A


_NO_FLAGS, _NO_LIMITS = JobFlag(0), Limits()
STATUS_IDS = tuple(
    AttributeId(Page.JOB_STATUS, number) for number in Number if number is not Number.STATES
)
"""Everything a JobStatus is made of."""
STATES_ID = AttributeId(Page.JOB_STATUS, Number.STATES)
"""States of all members of an array, a byte each."""
POLL_IDS = tuple(
    AttributeId(Page.JOB_STATUS, number) for number in (Number.STATE, Number.POLL_INTERVAL)
)
"""The attributes that polling needs."""
POLL_ROOM = 64
"""Bytes to allow for the page in its fixed form: what polling needs, and a little more."""
WATCH_IDS = tuple(
    AttributeId(Page.JOB_STATUS, number)
    for number in (
        *(Number.GENERATION, Number.STATE, Number.REASON, Number.EXIT_CODE, Number.SIGNAL),
        *(Number.ATTEMPT, Number.PROGRESS, Number.MESSAGE, Number.SUBMITTED, Number.QUEUE_TIME),
        *(Number.RUN_TIME, Number.POSITION, Number.POLL_INTERVAL, Number.RESULT_LENGTH),
        *(Number.STDOUT_LENGTH, Number.REASON_LABEL, Number.NAME, Number.ARRAY, Number.MEMBERS),
    )
)
"""The status of a job for people who watch it."""


class JobPoll(NamedTuple):
    """The page in its fixed form: what a poll needs, in one command without a list.

    progress: 0-1000, FFFFh when the script does not say.  poll_msec: suggested time to the next.
    """

    version: int
    state: int
    signal: int
    exit_code: int
    generation: int
    reason: int
    attempt: int
    progress: int
    poll_msec: int
    position: int
    stdout_length: int
    result_length: int


_POLL_WIDTHS = bytes((2, 1, 1, 4, 8, 2, 2, 2, 4, 4, 8, 8))  # of the numbers above


def decode_poll(page: memoryview) -> JobPoll | None:
    """The fixed form of a job's status page; None: it is no job's surrogate (any more)."""
    return _core.decode_form(page, _POLL_WIDTHS, JobPoll)


JOB_POLL_IDS = tuple(
    AttributeId(Page.JOB_STATUS, number)
    for number in (
        *(Number.VERSION, Number.STATE, Number.SIGNAL, Number.EXIT_CODE, Number.GENERATION),
        *(Number.REASON, Number.ATTEMPT, Number.PROGRESS, Number.POLL_INTERVAL, Number.POSITION),
        *(Number.STDOUT_LENGTH, Number.RESULT_LENGTH),
    )
)
"""The attributes of a JobPoll, in its order."""


def poll_of(attributes: Iterable[AttributeValue]) -> JobPoll | None:
    """The same from a list of JOB_POLL_IDS; None: as decode_poll()."""
    values = [each.uint if each.value else None for each in attributes]
    return None if None in values[:2] else JobPoll._make(each or 0 for each in values)


@dataclass(frozen=True)
class ArrayPlace:
    """The place of a job in an array, or the array that it represents.

    array: surrogate of the array.  The members' object ids follow its id, in order of index.
    index: of the member; of an array, the first one.  members: their number; 0: the job is a member.
    at_once: how many can run at a time; 0: all.
    ranges: the indices of an array, ascending; (): all from the first on.
    """

    array: ObjectRef
    index: int
    members: int = 0
    at_once: int = 0
    ranges: Ranges = ()

    @cached_property
    def indices(self) -> Sequence[int]:
        """Of an array, those of its members, ascending."""
        if self.ranges:
            return indices_in(self.ranges)
        return range(self.index, self.index + self.members)

    @property
    def text(self) -> str:
        """Of an array, its indices as people write them: "1,3,10-20:2"."""
        return text_of(self.ranges or (range(self.index, self.index + self.members),))

    def position(self, index: int) -> int:
        """Of an array, where the member with that index stands, from 0.  Raises: IndexError."""
        try:
            return position(self.indices, index)
        except ValueError:
            raise IndexError(f"array {self.array} has no member {index}, but {self.text}") from None

    def member(self, index: int) -> ObjectRef:
        """Of an array, the surrogate of the member with that index.  Raises: IndexError."""
        return ref(self.array.partition_id, self.array.object_id + 1 + self.position(index))


class Offload(NamedTuple):
    """The expected times of a pure job, near the data and at its client.  Seconds; 0: not known.

    cost: what the client said.  near, wait, home: what the target compared last.
    """

    cost: HomeCost
    near: float
    wait: float
    home: float


@dataclass(frozen=True)
class JobStatus:
    """The status of a job.  Durations are in seconds.  Values that are not known yet are None or 0.

    generation: grows with every change.  progress: 0.0 to 1.0; None: the script reports none.
    position: number of jobs ahead in the queue, approximately.
    poll_interval: suggested seconds between polls.
    result_length, stdout_length, stderr_length, peak_memory: bytes.
    key: idempotency key.
    result_object: companion object of a result of more than 60 KiB.
    expiry: when the target removes the record.  begin: when a held job starts.
    after: the jobs after which it was submitted.  awaited: the first of them that has not ended.
    predecessor: the earlier job that it runs again.
    array: set for an array and for its members.
    counts: of an array, the number of members in each state.
    starved_time: how long it was ready to run, but got no processor.
    tags: as submitted; a member has those of its array.
    principal: the user who submitted it, as the target names users.
    function: the function that it calls; None: it runs a script.
    signer: the signer of that function at the call; "": it was not signed.
    offload: of a pure job, the times for which the target decided to run it near the data.
    """

    id: ObjectRef
    state: JobState
    generation: int = 0
    reason: int = 0
    reason_label: str = ""
    hint: str = ""
    exit_code: int = 0
    signal: int = 0
    attempt: int = 0
    progress: float | None = None
    message: str = ""
    submitted: datetime | None = None
    started: datetime | None = None
    ended: datetime | None = None
    expiry: datetime | None = None
    begin: datetime | None = None
    queue_time: float = 0.0
    run_time: float = 0.0
    starved_time: float = 0.0
    position: int = 0
    poll_interval: float = 0.0
    cpu_user: float = 0.0
    cpu_system: float = 0.0
    peak_memory: int = 0
    bytes_read: int = 0
    bytes_written: int = 0
    calls: int = 0
    result_length: int = 0
    stdout_length: int = 0
    stderr_length: int = 0
    flags: JobFlag = _NO_FLAGS
    result_object: ObjectRef | None = None
    sha256: str = ""
    zone: ObjectRef | None = None
    pool: str = ""
    sandbox: int = 0
    engine: str = ""
    limits: Limits = _NO_LIMITS
    key: bytes = b""
    name: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    principal: str = ""
    function: ObjectRef | None = None
    signer: str = ""
    offload: Offload | None = None
    predecessor: ObjectRef | None = None
    after: tuple[After, ...] = ()
    awaited: ObjectRef | None = None
    array: ArrayPlace | None = None
    counts: Mapping[JobState, int] = field(default_factory=dict)
    version: int = 0

    @property
    def done(self) -> bool:
        """Whether the job has ended."""
        return self.state.terminal


def _time(milliseconds: int) -> datetime | None:
    return time_of(milliseconds) if milliseconds else None


def _limits(value: bytes) -> Limits:
    if len(value) < 56:
        return Limits()
    wall, cpu, memory, processes, output, files, io = struct.unpack_from(">7Q", value)
    return Limits(wall / 1e6, cpu / 1e6, memory, processes, output, files, io)


def _zone(value: bytes) -> ObjectRef | None:
    return ref(*struct.unpack_from(">QQ", value, 1)) if len(value) >= 17 else None


def _pair(value: bytes) -> ObjectRef | None:
    found = ref(*struct.unpack(">QQ", value)) if len(value) == 16 else None
    return found if found and found.object_id else None


def _after(value: bytes) -> tuple[After, ...]:
    whole = len(value) // _AFTER_ENTRY.size * _AFTER_ENTRY.size
    entries = _AFTER_ENTRY.iter_unpack(value[:whole])
    return tuple(
        After(ref(*pair), bool(condition), condition == AfterEnd.FAILED)
        for *pair, condition, _ in entries
    )


def _array(partition_id: int, value: bytes, ranges: bytes) -> ArrayPlace | None:
    if len(value) != _ARRAY.size:
        return None
    array, index, members, at_once = _ARRAY.unpack(value)
    if members > MOST:  # nobody can have submitted it
        return None
    found = decode_ranges(ranges) if members else ()
    if sum(map(len, found)) != members:
        found = ()
    return ArrayPlace(ref(partition_id, array), index, members, at_once, found)


def _offload(value: bytes) -> Offload | None:
    if len(value) != _OFFLOAD.size:
        return None
    usec, size, *compared = _OFFLOAD.unpack(value)
    near, wait, home = (each / 1e6 for each in compared)
    return Offload(HomeCost(usec / 1e6, size), near, wait, home)


def _counts(value: bytes) -> dict[JobState, int]:
    whole = len(value) // _COUNT.size * _COUNT.size
    return {JobState(state): count for state, count in _COUNT.iter_unpack(value[:whole])}


def _tags(value: bytes) -> dict[str, str]:
    pairs = (line.partition("=") for line in value.decode(errors="replace").split("\n"))
    return {key: text for key, equals, text in pairs if equals}


def decode_state(attributes: Iterable[AttributeValue]) -> JobState | None:
    """The state among retrieved attributes; None: it is no job's surrogate (any more).

    Raises: ValueError: a state of a later version.
    """
    for each in attributes:
        if each.page == Page.JOB_STATUS and each.number == Number.STATE and each.value:
            return JobState(each.uint)
    return None


def decode_status(job: ObjectRef, attributes: Iterable[AttributeValue]) -> JobStatus | None:
    """Make a JobStatus of retrieved attributes, in any order; None: not a job's surrogate.

    Raises: ValueError: a state of a later version.
    """
    found = {each.number: each for each in attributes if each.page == Page.JOB_STATUS}
    empty = AttributeValue(0, 0, b"")

    def number(which: Number) -> int:
        return found.get(which, empty).uint

    def text(which: Number) -> str:
        return found.get(which, empty).text

    def raw(which: Number) -> bytes:
        return found.get(which, empty).value

    if not raw(Number.STATE):
        return None
    progress = number(Number.PROGRESS)
    result_object = number(Number.RESULT_OBJECT)
    return JobStatus(
        id=job,
        state=JobState(number(Number.STATE)),
        generation=number(Number.GENERATION),
        reason=number(Number.REASON),
        reason_label=text(Number.REASON_LABEL),
        hint=text(Number.HINT),
        exit_code=number(Number.EXIT_CODE),
        signal=number(Number.SIGNAL),
        attempt=number(Number.ATTEMPT),
        progress=None if progress == _PROGRESS_UNKNOWN else progress / 1000,
        message=text(Number.MESSAGE),
        submitted=_time(number(Number.SUBMITTED)),
        started=_time(number(Number.STARTED)),
        ended=_time(number(Number.ENDED)),
        expiry=_time(number(Number.EXPIRY)),
        begin=_time(number(Number.BEGIN)),
        queue_time=number(Number.QUEUE_TIME) / 1e6,
        run_time=number(Number.RUN_TIME) / 1e6,
        starved_time=number(Number.STARVED) / 1e6,
        position=number(Number.POSITION),
        poll_interval=number(Number.POLL_INTERVAL) / 1000,
        cpu_user=number(Number.CPU_USER) / 1e6,
        cpu_system=number(Number.CPU_SYSTEM) / 1e6,
        peak_memory=number(Number.PEAK_MEMORY),
        bytes_read=number(Number.BYTES_READ),
        bytes_written=number(Number.BYTES_WRITTEN),
        calls=number(Number.CALLS),
        result_length=number(Number.RESULT_LENGTH),
        stdout_length=number(Number.STDOUT_LENGTH),
        stderr_length=number(Number.STDERR_LENGTH),
        flags=JobFlag(number(Number.FLAGS)),
        result_object=ref(job.partition_id, result_object) if result_object else None,
        sha256=raw(Number.SHA256).hex(),
        zone=_zone(raw(Number.ZONE)),
        pool=text(Number.POOL),
        sandbox=number(Number.SANDBOX),
        engine=text(Number.ENGINE),
        limits=_limits(raw(Number.LIMITS)),
        key=raw(Number.KEY),
        name=text(Number.NAME),
        tags=_tags(raw(Number.TAGS)),
        principal=text(Number.PRINCIPAL),
        function=_pair(raw(Number.FUNCTION)),
        signer=text(Number.SIGNER),
        offload=_offload(raw(Number.OFFLOAD)),
        predecessor=_pair(raw(Number.PREDECESSOR)),
        after=_after(raw(Number.AFTER)),
        awaited=_pair(raw(Number.AWAITED)),
        array=_array(job.partition_id, raw(Number.ARRAY), raw(Number.INDICES)),
        counts=_counts(raw(Number.MEMBERS)),
        version=number(Number.VERSION),
    )
