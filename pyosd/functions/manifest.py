# SPDX-License-Identifier: GPL-2.0-or-later
"""The manifest of a function: attribute page 2000_0006h of its object.  Pure.

Not here: the commands that read and set it (dialogues.py).
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import UTC, datetime
from enum import IntEnum

from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.exec_params import Limits, parse_duration, parse_size

__all__ = ["ALL_IDS", "Access", "Function", "Manifest", "ManifestNumber", "decode", "encode"]


class Access(IntEnum):
    """The access of a function to the zone of a call.

    NONE: nothing, it has its arguments alone.  READ: read.  WRITE: read and change.
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


UNSHOWN = (ManifestNumber.SIGNATURE, ManifestNumber.BOX_KEY)
ALL_IDS = (
    *(AttributeId(Page.FUNCTION, number) for number in ManifestNumber if number not in UNSHOWN),
    LOGICAL_LENGTH,
)


@dataclass(frozen=True)
class Manifest:
    """The description of a function: code, entry points, and the bounds of its calls.

    name: its alias, which calls name: letters, digits, ".", "_" and "-".  methods: entry points; the
    first is called if a call names none.  pool: of its calls, "": default.  limits: defaults of a
    call, and the most that one can have (wall, cpu, mem, output).  version, description: for people.
    """

    name: str = ""
    engine: str = "python"
    access: Access = Access.NONE
    methods: tuple[str, ...] = ("main",)
    pool: str = ""
    limits: Limits = field(default_factory=Limits)
    version: str = ""
    description: str = ""


@dataclass(frozen=True)
class Function:
    """A function of a target, as it was when it was asked for.

    active: whether it can be called.  sha256: of the code that was activated, "" if it is not active.
    activated: when.  size: bytes of code in the store.  signer, fingerprint: who has signed it and with
    which key, "" if it is not active or not signed.
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


def encode(manifest: Manifest) -> list[AttributeValue]:
    """The attributes to set.  An empty value removes what an earlier manifest had.

    Raises: ValueError: it has a limit that functions have not, or a duration or size that is none.
    """
    limits = manifest.limits
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
    }
    return [AttributeValue(Page.FUNCTION, each, value) for each, value in values.items()]


def decode(obj: ObjectRef, values: Iterable[AttributeValue]) -> Function:
    """A function of the attributes ALL_IDS of its object."""
    found = {each.id: each for each in values if each.value}

    def text(number: ManifestNumber, default: str = "") -> str:
        value = found.get(AttributeId(Page.FUNCTION, number))
        return value.value.decode(errors="replace") if value else default

    def uint(number: ManifestNumber) -> int | None:
        value = found.get(AttributeId(Page.FUNCTION, number))
        return value.uint if value else None

    def seconds(number: ManifestNumber) -> float | None:
        usec = uint(number)
        return None if usec is None else usec / 1e6

    manifest = Manifest(
        name=text(ManifestNumber.ALIAS),
        engine=text(ManifestNumber.ENGINE, "python"),
        access=Access(uint(ManifestNumber.ACCESS) or 0),
        methods=tuple(text(ManifestNumber.METHODS, "main").split()),
        pool=text(ManifestNumber.POOL),
        limits=Limits(
            wall=seconds(ManifestNumber.WALL),
            cpu=seconds(ManifestNumber.CPU),
            mem=uint(ManifestNumber.MEMORY),
            output=uint(ManifestNumber.OUTPUT),
        ),
        version=text(ManifestNumber.VERSION),
        description=text(ManifestNumber.DESCRIPTION),
    )
    digest = found.get(AttributeId(Page.FUNCTION, ManifestNumber.SHA256))
    activated = uint(ManifestNumber.ACTIVATED)
    length = found.get(LOGICAL_LENGTH)
    return Function(
        obj,
        manifest,
        active=bool(uint(ManifestNumber.STATE)),
        sha256=digest.value.hex() if digest else "",
        activated=None if activated is None else datetime.fromtimestamp(activated / 1000, UTC),
        size=length.uint if length else 0,
        signer=text(ManifestNumber.SIGNER),
        fingerprint=text(ManifestNumber.FINGERPRINT),
    )
