# SPDX-License-Identifier: GPL-2.0-or-later
"""What authorises a command: capabilities, the keys that prove them, and who hands both out.

Lives here: values and bytes of docs/security-protocol.md that the initiator, the security manager and
tests share.  Not here: signing of commands (the initiator's), keys of a target (pyosd.secmgr).
"""

from __future__ import annotations

import hashlib
import hmac
import time
from dataclasses import dataclass, field
from enum import IntEnum, IntFlag
from typing import Protocol

from pyosd.types import ObjectRef, ObjectType

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


class Algorithm(IntEnum):
    """Of check values: the index into the target's list."""

    HMAC_SHA256 = 0
    HMAC_SHA1 = 1


class Permission(IntFlag):
    """What a capability permits: its bytes 49 and 50 as one number (osd2-wire 6.2)."""

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


_DIGESTS = {Algorithm.HMAC_SHA256: hashlib.sha256, Algorithm.HMAC_SHA1: hashlib.sha1}
_DESCRIPTORS = {
    ObjectType.ROOT: 2,
    ObjectType.PARTITION: 2,
    ObjectType.USER_OBJECT: 1,
    ObjectType.COLLECTION: 3,
}


def mac(key: bytes, *parts: bytes | bytearray | memoryview, algorithm: Algorithm) -> bytes:
    """A check value of 32 bytes over the parts, one after the other."""
    state = hmac.new(key, digestmod=_DIGESTS[algorithm])
    for part in parts:
        state.update(part)
    return state.digest().ljust(CHECK_LENGTH, b"\0")


def milliseconds(seconds: float) -> int:
    """A time of time.time() as the wire has it."""
    return int(seconds * 1000)


@dataclass(frozen=True)
class Capability:
    """Who may do what to which object, until when.  Times: ms since 1970; 0: never, or not checked.

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
            obj=ObjectRef(number(72, 8), number(80, 8)),  # type: ignore[arg-type]
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


@dataclass(frozen=True)
class Credential:
    """A capability and its key.  The key never goes on the wire, into a log or a repr."""

    capability: Capability
    key: bytes = field(repr=False)

    @classmethod
    def sign(cls, capability: Capability, secret_key: bytes, system_id: bytes) -> Credential:
        """Make one, as who has the target's keys does."""
        key = mac(secret_key, capability.encode(), system_id, algorithm=capability.algorithm)
        return cls(capability, key)

    def lasts(self, seconds: float = 0.0) -> bool:
        """Whether it is good for so long from now."""
        expires = self.capability.expires_ms
        return expires == 0 or expires > milliseconds(time.time() + seconds)


class CredentialSource(Protocol):
    """Hands out credentials; the initiator asks for each command and may keep what it gets."""

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        """One that permits all of this at least, and lasts for a command.

        Any thread.  Raises: pyosd.errors.PermissionDenied: nobody may give it;
        Unreachable: who could is not there.
        """
        ...

    def refused(self, credential: Credential) -> None:
        """The target did not take it (a key was changed, or it was revoked): hand out no such
        credential again."""
        ...
