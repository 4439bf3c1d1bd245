# SPDX-License-Identifier: GPL-2.0-or-later
"""The manifest of a function: attribute page 2000_0006h of its object.  Pure.

Not here: the commands that read and set it (dialogues.py).
"""

from __future__ import annotations

import re
import struct
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from datetime import datetime
from enum import IntEnum

from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.exec_params import Limits, parse_duration, parse_size
from pyosd.wire.times import time_of

__all__ = [
    "ALL_IDS",
    "CALL_IDS",
    "Access",
    "Contract",
    "Function",
    "FunctionCalls",
    "FunctionFailure",
    "FunctionUser",
    "Manifest",
    "ManifestNumber",
    "OutputSize",
    "RecordForm",
    "decode",
    "decode_calls",
    "encode",
]


_NAME = re.compile(r"[A-Za-z0-9._-]{1,64}")
_DIGITS = re.compile(r"[0-9a-f]{8,}")  # would be taken for a SHA-256


class Access(IntEnum):
    """The access of a function to the zone of a call.

    NONE: none, it has only its arguments.  READ: read.  WRITE: read and change.
    """

    NONE = 0
    READ = 1
    WRITE = 2


class ManifestNumber(IntEnum):
    """Attributes of the page."""

    STATE = 1
    ENGINE = 2
    ABI = 3
    VERSION = 4
    ACCESS = 5
    ALIAS = 6
    DESCRIPTION = 7
    METHODS = 8
    POOL = 9
    WALL = 10
    CPU = 11
    MEMORY = 12
    OUTPUT = 13
    SHA256 = 14
    ACTIVATED = 15
    SIGNATURE = 16
    SIGNER = 17
    FINGERPRINT = 18
    BOX_KEY = 19
    SIZE = 20
    BLOCK = 21
    RATIO = 22
    INVERSE = 23
    DETERMINISTIC = 24
    OPTIONAL = 25
    RECORDS = 26
    CALLS = 32
    USERS = 33


UNSHOWN = (
    *(ManifestNumber.SIGNATURE, ManifestNumber.BOX_KEY),
    *(ManifestNumber.CALLS, ManifestNumber.USERS),
)
ALL_IDS = (
    *(AttributeId(Page.FUNCTION, number) for number in ManifestNumber if number not in UNSHOWN),
    LOGICAL_LENGTH,
)


class OutputSize(IntEnum):
    """The length of the output: the SAME as of the input, by a FIXED ratio to it, or UNKNOWN."""

    SAME = 1
    FIXED = 2
    UNKNOWN = 3


class RecordForm(IntEnum):
    """The form of records, if a function can process its input in parts of whole records.

    The outputs of the parts, joined, are the output of the whole.
    LINES: each record ends with a newline.  TABLE: the same, and each part begins with the first line of
    the input.
    """

    LINES = 1
    TABLE = 2


@dataclass(frozen=True)
class Contract:
    """The promises of a function about data that pass through it (docs/views.md, "Contracts").

    size: the length of its output.
    block: bytes.  A block of the output depends only on the same block of the input; size is SAME.
        0: the function needs the whole input, or records of it.
    ratio: header, numerator and denominator, for size FIXED: the output has header and numerator /
        denominator of the input.  A negative header: as many bytes less.
    inverse: the entry point that computes the input from the output.  "": there is none.
    deterministic: the same input always gives the same output.
    optional: if the function fails, its input takes the place of its output.
    records: parts of the input that are enough for the function.  None: it needs the whole input, or
        blocks of it.
    """

    size: OutputSize = OutputSize.UNKNOWN
    block: int = 0
    ratio: tuple[int, int, int] | None = None
    inverse: str = ""
    deterministic: bool = False
    optional: bool = False
    records: RecordForm | None = None


@dataclass(frozen=True)
class Manifest:
    """The description of a function: code, entry points, and the bounds of its calls.

    name: the alias that calls use: letters, digits, ".", "_" and "-".
    methods: the entry points.  A call that names none runs the first.
    pool: the pool of its calls.  "": the first pool with the engine.
    limits: defaults of a call, and the most that a call can have.  wall, cpu, mem and output count.
    version, description: text for people.
    contract: the promises of a function that data pass through.
    """

    name: str = ""
    engine: str = "python"
    access: Access = Access.NONE
    methods: tuple[str, ...] = ("main",)
    pool: str = ""
    limits: Limits = field(default_factory=Limits)
    version: str = ""
    description: str = ""
    contract: Contract | None = None


@dataclass(frozen=True)
class Function:
    """A function of a target, as it was when the target was asked.

    active: whether it can be called.
    sha256: the digest of the activated code.  "": it is not active.
    activated: the time of its activation.
    size: bytes of code in the store.
    signer, fingerprint: of its signature.  "": it is not active, or not signed.
    """

    id: ObjectRef
    manifest: Manifest
    active: bool
    sha256: str
    activated: datetime | None
    size: int
    signer: str = ""
    fingerprint: str = ""

    @property
    def name(self) -> str:
        """Its alias, "" without."""
        return self.manifest.name


@dataclass(frozen=True)
class FunctionFailure:
    """A call that failed.

    reason: its number, as of a job.
    method: the entry point.
    report: the end of its report, such as a traceback; at most 4 KiB.  "": the record of the call has
        it.
    """

    when: datetime
    reason: int
    method: str
    report: str


@dataclass(frozen=True)
class FunctionUser:
    """A call under way.  job: None: it has no record.  principal: its user."""

    job: ObjectRef | None
    principal: str

    def __str__(self) -> str:
        return f"{f'job {self.job}' if self.job else 'a call without a record'} of {self.principal}"


@dataclass(frozen=True)
class FunctionCalls:
    """The calls of an active function since it was activated, or since the target was started.

    plain, recorded: number of ended calls, without and with a record.  failed: how many of them failed.
    last: when the last call ended.  failure: the last call that failed.
    under_way: calls that have not ended, also those of earlier versions.  A long list is cut.
    """

    plain: int = 0
    recorded: int = 0
    failed: int = 0
    last: datetime | None = None
    failure: FunctionFailure | None = None
    under_way: tuple[FunctionUser, ...] = ()


CALL_IDS = (
    AttributeId(Page.FUNCTION, ManifestNumber.CALLS),
    AttributeId(Page.FUNCTION, ManifestNumber.USERS),
)


def decode_users(value: bytes) -> Iterator[FunctionUser]:
    """The value of attribute USERS."""
    for line in value.decode(errors="replace").splitlines():
        job, _, principal = line.partition(" ")
        yield FunctionUser(None if job == "call" else ObjectRef.parse(job), principal)


def decode_calls(values: Iterable[AttributeValue]) -> FunctionCalls:
    """The attributes CALL_IDS; that of counts is empty if the function is not active."""
    given = {each.number: each.value for each in values}
    value = given.get(ManifestNumber.CALLS, b"")
    line, _, report = value.partition(b"\n")
    found = dict(word.split("=", 1) for word in line.decode().split())

    def moment(name: str) -> datetime | None:
        milliseconds = int(found.get(name, 0))
        return time_of(milliseconds) if milliseconds else None

    failed = moment("failure")
    return FunctionCalls(
        plain=int(found.get("plain", 0)),
        recorded=int(found.get("recorded", 0)),
        failed=int(found.get("failed", 0)),
        last=moment("last"),
        under_way=tuple(decode_users(given.get(ManifestNumber.USERS, b""))),
        failure=None
        if failed is None
        else FunctionFailure(
            failed, int(found["reason"]), found["method"], report.decode(errors="replace")
        ),
    )


_RATIO = struct.Struct(">i2I")
CONTRACT = ("SIZE", "BLOCK", "RATIO", "INVERSE", "DETERMINISTIC", "OPTIONAL", "RECORDS")


def encode_contract(contract: Contract | None) -> dict[ManifestNumber, bytes]:
    """The values of a contract; those that are empty remove what an earlier manifest had.

    Raises: ValueError: the ratio has a number that does not fit.
    """
    if contract is None:
        numbers = [each for each in ManifestNumber if each.name in CONTRACT]
        return dict.fromkeys(numbers, b"")
    try:
        ratio = _RATIO.pack(*contract.ratio) if contract.ratio else b""
    except struct.error as error:
        raise ValueError(f"the ratio {contract.ratio} is none: {error}") from None
    return {
        ManifestNumber.SIZE: bytes((contract.size,)),
        ManifestNumber.BLOCK: contract.block.to_bytes(4) if contract.block else b"",
        ManifestNumber.RATIO: ratio,
        ManifestNumber.INVERSE: contract.inverse.encode(),
        ManifestNumber.DETERMINISTIC: b"\1" if contract.deterministic else b"",
        ManifestNumber.OPTIONAL: b"\1" if contract.optional else b"",
        ManifestNumber.RECORDS: bytes((contract.records,)) if contract.records else b"",
    }


def encode(manifest: Manifest) -> list[AttributeValue]:
    """The attributes to set.  An empty value removes what an earlier manifest had.

    Raises: ValueError: it has a limit that functions have not, or a name, duration, size or ratio that is
        none.
    """
    name, limits = manifest.name, manifest.limits
    if name and (not _NAME.fullmatch(name) or _DIGITS.fullmatch(name)):
        raise ValueError(
            f"{name!r} is no name of a function: 1 to 64 letters, digits, '.', '_' and '-', and not only "
            "8 or more hexadecimal digits"
        )
    if (limits.procs, limits.open_files, limits.io) != (None, None, None):
        raise ValueError("a function has limits wall, cpu, mem and output, and no others")

    def number(value: int | None) -> bytes:
        return b"" if value is None else value.to_bytes(8, "big")

    def usec(value: float | str | None) -> int | None:
        return None if value is None else round(parse_duration(value) * 1e6)

    def size(value: int | str | None) -> int | None:
        return None if value is None else parse_size(value)

    values = {
        ManifestNumber.ENGINE: manifest.engine.encode(),
        ManifestNumber.VERSION: manifest.version.encode(),
        ManifestNumber.ACCESS: bytes((manifest.access,)),
        ManifestNumber.ALIAS: manifest.name.encode(),
        ManifestNumber.DESCRIPTION: manifest.description.encode(),
        ManifestNumber.METHODS: " ".join(manifest.methods).encode(),
        ManifestNumber.POOL: manifest.pool.encode(),
        ManifestNumber.WALL: number(usec(limits.wall)),
        ManifestNumber.CPU: number(usec(limits.cpu)),
        ManifestNumber.MEMORY: number(size(limits.mem)),
        ManifestNumber.OUTPUT: number(size(limits.output)),
        **encode_contract(manifest.contract),
    }
    return [AttributeValue(Page.FUNCTION, each, value) for each, value in values.items()]


class _ManifestPage:
    """Attributes of a manifest, by number."""

    def __init__(self, found: Iterable[AttributeValue]) -> None:
        self._found = {each.number: each for each in found if each.page == Page.FUNCTION}

    def raw(self, number: ManifestNumber) -> bytes:
        found = self._found.get(number)
        return found.value if found else b""

    def text(self, number: ManifestNumber, default: str = "") -> str:
        return self.raw(number).decode(errors="replace") or default

    def uint(self, number: ManifestNumber) -> int | None:
        found = self._found.get(number)
        return found.uint if found else None

    def seconds(self, number: ManifestNumber) -> float | None:
        usec = self.uint(number)
        return None if usec is None else usec / 1e6

    def contract(self) -> Contract | None:
        size = self.uint(ManifestNumber.SIZE)
        if not size:
            return None
        ratio, records = self.raw(ManifestNumber.RATIO), self.uint(ManifestNumber.RECORDS)
        return Contract(
            OutputSize(size),
            self.uint(ManifestNumber.BLOCK) or 0,
            _RATIO.unpack(ratio) if ratio else None,
            self.text(ManifestNumber.INVERSE),
            bool(self.uint(ManifestNumber.DETERMINISTIC)),
            bool(self.uint(ManifestNumber.OPTIONAL)),
            RecordForm(records) if records else None,
        )

    def manifest(self) -> Manifest:
        return Manifest(
            name=self.text(ManifestNumber.ALIAS),
            engine=self.text(ManifestNumber.ENGINE, "python"),
            access=Access(self.uint(ManifestNumber.ACCESS) or 0),
            methods=tuple(self.text(ManifestNumber.METHODS, "main").split()),
            pool=self.text(ManifestNumber.POOL),
            limits=Limits(
                wall=self.seconds(ManifestNumber.WALL),
                cpu=self.seconds(ManifestNumber.CPU),
                mem=self.uint(ManifestNumber.MEMORY),
                output=self.uint(ManifestNumber.OUTPUT),
            ),
            version=self.text(ManifestNumber.VERSION),
            description=self.text(ManifestNumber.DESCRIPTION),
            contract=self.contract(),
        )


def decode(obj: ObjectRef, values: Iterable[AttributeValue]) -> Function:
    """Make a Function of the attributes ALL_IDS of its object."""
    found = [each for each in values if each.value]
    page = _ManifestPage(found)
    activated = page.uint(ManifestNumber.ACTIVATED)
    return Function(
        obj,
        page.manifest(),
        active=bool(page.uint(ManifestNumber.STATE)),
        sha256=page.raw(ManifestNumber.SHA256).hex(),
        activated=None if activated is None else time_of(activated),
        size=next((each.uint for each in found if each.id == LOGICAL_LENGTH), 0),
        signer=page.text(ManifestNumber.SIGNER),
        fingerprint=page.text(ManifestNumber.FINGERPRINT),
    )
