# SPDX-License-Identifier: GPL-2.0-or-later
"""Credentials of a security manager as JSON, and the partition whose key signs one."""

from __future__ import annotations

from typing import Any

from pyosd.security.credentials import Credential
from pyosd.types import ObjectRef, ObjectType
from pyosd.wire.capability import Capability, Permission


def signing_partition(obj: ObjectRef, object_type: ObjectType, permissions: Permission) -> int:
    """The partition whose working key signs it. Partition zero signs CREATE PARTITION, REMOVE
    PARTITION and commands to the root. COPY USER OBJECTS both creates and reads.  The permissions
    of a job inside its zone come with the permission to run, and those of CHANGE NAMES with WRITE."""
    if object_type is ObjectType.ROOT:
        return 0
    of_root = Permission.REMOVE in permissions or (
        Permission.CREATE in permissions and Permission.READ not in permissions
    )
    inside = permissions & (Permission.FUN_EXE | Permission.WRITE)
    if object_type is ObjectType.PARTITION and of_root and not inside:
        return 0
    return obj.partition_id


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
