# SPDX-License-Identifier: GPL-2.0-or-later
"""Capabilities and credentials as the security manager makes them.

AUDIT is the first 20 bytes of the SHA-256 of the user's name, so that the target's queues and
logs know whom it was given to without knowing the name; the discriminator is 12 random bytes, by
which the audit log tells which capability it was.
"""

from __future__ import annotations

import hashlib
import secrets
from dataclasses import dataclass
from typing import Any

from pyosd.credentials import Algorithm, Capability, Credential, Permission, SecurityMethod
from pyosd.secmgr.rules import Grant
from pyosd.types import ROOT, ObjectRef, ObjectType, ref

OWN_LIFETIME_S = 300
"""Of capabilities that the security manager makes for itself."""
OWN_NAME = "iosd-secmgr"
"""Whose these are, for AUDIT."""


@dataclass(frozen=True)
class Signer:
    """What capabilities of a target are signed with.  secret: an authentication key; version: of it."""

    secret: bytes
    version: int
    system_id: bytes
    algorithm: Algorithm
    method: SecurityMethod

    def __repr__(self) -> str:
        return f"Signer(version={self.version})"

    def own(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission, now_ms: int
    ) -> Credential:
        """A credential for a command of ours."""
        capability = Capability(
            obj=obj,
            object_type=object_type,
            permissions=permissions,
            method=self.method,
            algorithm=self.algorithm,
            key_version=self.version,
            expires_ms=now_ms + OWN_LIFETIME_S * 1000,
            audit=audit_of(OWN_NAME),
            discriminator=secrets.token_bytes(12),
        )
        return Credential.sign(capability, self.secret, self.system_id)

    def granted(
        self,
        grant: Grant,
        obj: ObjectRef,
        object_type: ObjectType,
        user: str,
        range_: tuple[int, int],
        expires_ms: int,
    ) -> Credential:
        """A credential for somebody, as narrow as what was granted.  range_: start and length."""
        capability = Capability(
            obj=obj,
            object_type=object_type,
            permissions=grant.permissions,
            method=max(grant.method, self.method),
            algorithm=self.algorithm,
            key_version=self.version,
            expires_ms=expires_ms,
            audit=audit_of(user),
            discriminator=secrets.token_bytes(12),
            policy_access_tag=grant.tag,
            range_start=range_[0],
            range_length=range_[1],
        )
        return Credential.sign(capability, self.secret, self.system_id)


def audit_of(user: str) -> bytes:
    """A user's AUDIT."""
    return hashlib.sha256(user.encode()).digest()[:20]


def signing_partition(obj: ObjectRef, object_type: ObjectType, permissions: Permission) -> int:
    """Whose working key signs it: CREATE PARTITION and REMOVE PARTITION are partition zero's, as what is
    addressed to the root; COPY USER OBJECTS, which creates too, reads as well.  What a job may do inside
    comes with leave to run."""
    if object_type is ObjectType.ROOT:
        return 0
    of_root = Permission.REMOVE in permissions or (
        Permission.CREATE in permissions and Permission.READ not in permissions
    )
    if object_type is ObjectType.PARTITION and of_root and Permission.FUN_EXE not in permissions:
        return 0
    return obj.partition_id


def own_type(partition_id: int) -> tuple[ObjectRef, ObjectType]:
    """Partition zero is the root."""
    if not partition_id:
        return ROOT, ObjectType.ROOT
    return ref(partition_id), ObjectType.PARTITION


def to_json(credential: Credential, system_id: bytes) -> dict[str, Any]:
    """As it travels; what people want to read is beside the bytes."""
    capability = credential.capability
    return {
        "schema": "iosd.credential/1",
        "capability": capability.encode().hex(),
        "key": credential.key.hex(),
        "system_id": system_id.hex(),
        "discriminator": capability.discriminator.hex(),
        "expires_ms": capability.expires_ms,
    }


def from_json(fields: dict[str, Any]) -> Credential:
    """The reverse.  Raises: ValueError."""
    try:
        capability = Capability.decode(bytes.fromhex(fields["capability"]))
        key = bytes.fromhex(fields["key"])
    except (KeyError, TypeError) as error:
        raise ValueError(f"not a credential: {error!r}") from None
    if len(key) != 32:
        raise ValueError("not a credential: its key has not 32 bytes")
    return Credential(capability, key)
