# SPDX-License-Identifier: GPL-2.0-or-later
"""Capabilities: what a command is permitted, as the target reads it from the CDB.

Lives here: Capability with its 104 bytes, permissions, and the check value over any bytes.
Not here: the keys that prove a capability, and sources of both (security/credentials.py).
Source: osd2-wire section 6; docs/security-protocol.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum, IntFlag
from typing import TYPE_CHECKING, NamedTuple

from pyosd.types import ObjectRef, ObjectType, ref, shown

if TYPE_CHECKING:
    import hashlib

__all__ = [
    "CHECK_LENGTH",
    "JOB_RIGHTS",
    "READ_ONLY",
    "SYSTEM_ID_LENGTH",
    "Algorithm",
    "Capability",
    "KeyLevel",
    "Need",
    "Permission",
    "SecurityMethod",
    "check_permission",
    "digest_of",
    "mac",
    "method_name",
    "milliseconds",
]

CAPABILITY_LENGTH = 104
CHECK_LENGTH = 32
"""Bytes of a check value."""
SYSTEM_ID_LENGTH = 20


class SecurityMethod(IntEnum):
    """How much of a command is protected (osd2-wire 6.5)."""

    NOSEC = 0
    CAPKEY = 1
    CMDRSP = 2
    ALLDATA = 3


def method_name(method: int) -> str:
    """For people: "nosec" and so on, or the number of one that nobody knows."""
    known = {each.value: each.name.lower() for each in SecurityMethod}
    return known.get(method, str(method))


class Algorithm(IntEnum):
    """Of check values: the index into the target's list."""

    HMAC_SHA256 = 0
    HMAC_SHA1 = 1


class Permission(IntFlag):
    """Permissions of a capability: its bytes 49 and 50 as one number (osd2-wire 6.2)."""

    READ = 0x8000
    WRITE = 0x4000
    GET_ATTR = 0x2000
    SET_ATTR = 0x1000
    CREATE = 0x0800
    REMOVE = 0x0400
    OBJ_MGMT = 0x0200
    APPEND = 0x0100
    DEV_MGMT = 0x0080
    GLOBAL = 0x0040
    POL_SEC = 0x0020
    M_OBJECT = 0x0010
    QUERY = 0x0008
    GBL_REM = 0x0004
    FUN_EXE = 0x0002


READ_ONLY = Permission.READ | Permission.GET_ATTR | Permission.QUERY | Permission.M_OBJECT
JOB_RIGHTS = (
    READ_ONLY
    | Permission.WRITE
    | Permission.SET_ATTR
    | Permission.CREATE
    | Permission.REMOVE
    | Permission.OBJ_MGMT
    | Permission.APPEND
)
"""Default permissions of a job in its zone, in addition to the permission to run."""


def check_permission(name: str, value: object) -> None:
    """An argument that is permissions.  Raises: TypeError: it is none, such as text."""
    if not isinstance(value, int):
        raise TypeError(
            f"{name} are a Permission of pyosd.wire.capability, such as READ_ONLY, not {shown(value)}"
        )


class KeyLevel(IntEnum):
    """Keys that SET KEY sets (CDB byte 11)."""

    ROOT = 1
    PARTITION = 2
    WORKING = 3


class Need(NamedTuple):
    """The permissions that a command needs for one object of a type."""

    obj: ObjectRef
    object_type: ObjectType
    permissions: Permission


_DESCRIPTORS = {
    ObjectType.ROOT: 2,
    ObjectType.PARTITION: 2,
    ObjectType.USER_OBJECT: 1,
    ObjectType.COLLECTION: 3,
}


def digest_of(algorithm: Algorithm) -> Callable[..., hashlib._Hash]:
    """The hash function of check values."""
    import hashlib  # loads OpenSSL, which clients without credentials do not need

    return hashlib.sha1 if algorithm is Algorithm.HMAC_SHA1 else hashlib.sha256


def mac(key: bytes, *parts: bytes | bytearray | memoryview, algorithm: Algorithm) -> bytes:
    """A check value of 32 bytes over the parts, one after the other."""
    import hmac

    state = hmac.new(key, digestmod=digest_of(algorithm))
    for part in parts:
        state.update(part)
    return state.digest().ljust(CHECK_LENGTH, b"\0")


def milliseconds(seconds: float) -> int:
    """A time of time.time() in the form of the wire."""
    return int(seconds * 1000)


@dataclass(frozen=True)
class Capability:
    """Permissions of a user for an object until a time.  Times: ms since 1970; 0: never, or not
    checked.

    obj: an object id of 0 in a partition stands for every object of that type there.
    audit: 20 bytes; who it was given to, as queues and accounts of the target see it.
    """

    obj: ObjectRef
    object_type: ObjectType
    permissions: Permission
    method: SecurityMethod = SecurityMethod.CAPKEY
    algorithm: Algorithm = Algorithm.HMAC_SHA256
    key_version: int = 0
    expires_ms: int = 0
    audit: bytes = bytes(20)
    discriminator: bytes = bytes(12)
    created_ms: int = 0
    attributes_access: int = 0
    policy_access_tag: int = 0
    boot_epoch: int = 0
    range_length: int = 0
    range_start: int = 0

    def encode(self) -> bytes:
        """The 104 bytes (osd2-wire 6.1).  Raises: OverflowError, ValueError: a field does not fit."""
        if len(self.audit) != 20 or len(self.discriminator) != 12 or not 0 <= self.key_version < 16:
            raise ValueError("audit has 20 bytes, discriminator 12, key versions go to 15")
        return b"".join(
            (
                bytes((2, self.key_version << 4 | self.algorithm, self.method, 0)),
                self.expires_ms.to_bytes(6, "big"),
                self.audit,
                self.discriminator,
                self.created_ms.to_bytes(6, "big"),
                bytes((self.object_type,)),
                self.permissions.to_bytes(2, "big"),
                bytes(4),
                bytes((_DESCRIPTORS[self.object_type] << 4,)),
                self.attributes_access.to_bytes(4, "big"),
                self.policy_access_tag.to_bytes(4, "big"),
                self.boot_epoch.to_bytes(2, "big"),
                bytes(6),
                self.obj.partition_id.to_bytes(8, "big"),
                self.obj.object_id.to_bytes(8, "big"),
                self.range_length.to_bytes(8, "big"),
                self.range_start.to_bytes(8, "big"),
            )
        )

    @classmethod
    def decode(cls, data: bytes) -> Capability:
        """The reverse.  Raises: ValueError: not 104 bytes of an OSD-2 capability."""
        if len(data) != CAPABILITY_LENGTH or data[0] & 15 != 2:
            raise ValueError("not an OSD-2 capability")

        def number(at: int, length: int) -> int:
            return int.from_bytes(data[at : at + length], "big")

        return cls(
            obj=ref(number(72, 8), number(80, 8)),
            object_type=ObjectType(data[48]),
            permissions=Permission(number(49, 2)),
            method=SecurityMethod(data[2] & 15),
            algorithm=Algorithm(data[1] & 15),
            key_version=data[1] >> 4,
            expires_ms=number(4, 6),
            audit=data[10:30],
            discriminator=data[30:42],
            created_ms=number(42, 6),
            attributes_access=number(56, 4),
            policy_access_tag=number(60, 4),
            boot_epoch=number(64, 2),
            range_length=number(88, 8),
            range_start=number(96, 8),
        )
