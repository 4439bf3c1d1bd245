# SPDX-License-Identifier: GPL-2.0-or-later
"""The first keys of a target, by hand: for tests, benchmarks and places without a security manager.

The holder of the master key can make capabilities for everything. Those made here are dropped with
the object.  A security manager (pyosd.secmgr) keeps keys, changes them and knows who may do what.
"""

from __future__ import annotations

import secrets
from typing import NamedTuple

from pyosd.commands import Commands
from pyosd.security.credentials import Credential, KeySource
from pyosd.security.master_key import MasterKey
from pyosd.types import ObjectRef, ObjectType, ref
from pyosd.wire.capability import Algorithm, Capability, KeyLevel, Permission, SecurityMethod, mac

__all__ = ["Provisioner"]

_SEED, _IDENTIFIER = 20, 7


class _Pair(NamedTuple):
    authentication: bytes
    generation: bytes


class Provisioner:
    """Sets keys of one target, and makes credentials from them.

    Methods that set keys raise as pyosd.commands.unit says.
    """

    def __init__(
        self,
        osd: Commands,
        master: MasterKey,
        *,
        method: SecurityMethod = SecurityMethod.CAPKEY,
        algorithm: Algorithm = Algorithm.HMAC_SHA256,
    ) -> None:
        """osd: a session, with credentials or without.  method, algorithm: of what sets keys.

        Sets a new root key, and keys of partition zero; all keys there were are no more.
        """
        self._osd = osd
        self.system_id = master.system_id
        self._method, self._algorithm = method, algorithm
        self._pairs: dict[int, _Pair] = {}
        self.working: dict[int, bytes] = {}
        pair = _Pair(master.authentication, master.generation)
        self._root = self._set(KeyLevel.ROOT, 0, pair)
        self.add(0)

    def add(self, partition_id: int) -> bytes:
        """New keys for a partition (0: partition zero).  Returns: its working key 0."""
        self._pairs[partition_id] = self._set(KeyLevel.PARTITION, partition_id, self._root)
        working = self.working[partition_id] = self.set_working(partition_id)
        return working

    def set_working(self, partition_id: int, version: int = 0) -> bytes:
        """Another working key of a partition that was add()ed; the source()s go by number 0."""
        pair = self._pairs[partition_id]
        return self._set(KeyLevel.WORKING, partition_id, pair, version).authentication

    def source(
        self,
        method: SecurityMethod | None = None,
        algorithm: Algorithm | None = None,
        lifetime: float = 3600.0,
    ) -> KeySource:
        """Credentials for everything inside what was add()ed until now."""
        return KeySource(
            self.working,
            self.system_id,
            method=self._method if method is None else method,
            algorithm=self._algorithm if algorithm is None else algorithm,
            lifetime=lifetime,
        )

    def sign(
        self, key: bytes, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        """A credential by a key of one's choice."""
        capability = Capability(
            obj,
            object_type,
            permissions,
            self._method,
            self._algorithm,
            discriminator=secrets.token_bytes(12),
        )
        return Credential.sign(capability, key, self.system_id)

    def _set(self, level: KeyLevel, partition_id: int, parent: _Pair, version: int = 0) -> _Pair:
        seed, identifier = secrets.token_bytes(_SEED), secrets.token_bytes(_IDENTIFIER)
        kind = ObjectType.PARTITION if partition_id else ObjectType.ROOT
        permissions = Permission.DEV_MGMT | Permission.POL_SEC
        leave = self.sign(parent.authentication, ref(partition_id), kind, permissions)
        self._osd.set_key(level, partition_id, seed, identifier, version, credential=leave)
        other = seed[:-1] + bytes((seed[-1] ^ 1,))
        return _Pair(
            mac(parent.generation, other, algorithm=self._algorithm),
            mac(parent.generation, seed, algorithm=self._algorithm),
        )
