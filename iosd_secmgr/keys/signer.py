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

from iosd_secmgr.access.rules import AllowedAccess
from pyosd.security.credentials import Credential
from pyosd.types import ROOT, ObjectRef, ObjectType, ref
from pyosd.wire.capability import Algorithm, Capability, Permission, SecurityMethod

__all__ = ["OWN_NAME", "CredentialSigner", "audit_of", "own_type"]

OWN_LIFETIME_S = 300
"""Of capabilities that the security manager makes for itself."""
OWN_NAME = "iosd-secmgr"
"""The user, for AUDIT."""


@dataclass(frozen=True)
class CredentialSigner:
    """Signing key of a target's capabilities. secret: an authentication key; version: of it."""

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
        grant: AllowedAccess,
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


def own_type(partition_id: int) -> tuple[ObjectRef, ObjectType]:
    """Partition zero is the root."""
    if not partition_id:
        return ROOT, ObjectType.ROOT
    return ref(partition_id), ObjectType.PARTITION
