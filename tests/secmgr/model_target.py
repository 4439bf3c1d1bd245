# SPDX-License-Identifier: GPL-2.0-or-later
"""The keys of a target by docs/security-protocol.md in a few lines, and deaths at any step of
whoever sets them.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass, field

from iosd_secmgr.keys.derive import Exchange, KeyPair, from_secret, from_seed
from iosd_secmgr.keys.device import KeyRefused
from iosd_secmgr.keys.keystore import Level, Slot
from pyosd import errors
from pyosd.security.credentials import Credential
from pyosd.types import ObjectRef, ObjectType
from pyosd.wire.capability import Capability, Permission, SecurityMethod, mac

KEY_BITS = Permission.DEV_MGMT | Permission.POL_SEC


class Died(BaseException):
    """kill -9: nothing catches it."""


@dataclass
class ModelTarget:
    """State across sessions. die_at: the step at which its user dies. Each command has one step
    before and one after its execution."""

    ids: list[int]
    system_id: bytes = field(default_factory=lambda: secrets.token_bytes(20))
    die_at: int | None = None
    steps: int = 0
    unreachable: bool = False

    def __post_init__(self) -> None:
        self.master = KeyPair(secrets.token_bytes(32), secrets.token_bytes(32))
        self.keys: dict[tuple[Level, int, int], tuple[KeyPair, bytes]] = {}
        self.masks: dict[int, int] = {}
        self.methods: dict[int, SecurityMethod] = {}
        self.tags: dict[ObjectRef, int] = {}
        self.pending: tuple[Exchange, bytes] | None = None

    def master_file(self) -> str:
        return (
            f"iosd master key 1\nauthentication {self.master.authentication.hex()}\n"
            f"generation {self.master.generation.hex()}\nsystem-id {self.system_id.hex()}\n"
        )

    def format(self) -> None:
        """FORMAT OSD: partitions are gone, and all keys but those of the root."""
        self.ids = []
        self.keys = {
            place: key
            for place, key in self.keys.items()
            if place[0] is Level.ROOT or (place[0] is not Level.MASTER and place[1] == 0)
        }

    def session(self) -> Session:
        if self.unreachable:
            raise errors.Unreachable("the model is off")
        return Session(self)

    # ---- what it checks ----

    def step(self) -> None:
        self.steps += 1
        if self.die_at is not None and self.steps >= self.die_at:
            raise Died

    def working(self, partition_id: int, version: int) -> bytes | None:
        found = self.keys.get((Level.WORKING, partition_id, version))
        frozen = self.masks.get(partition_id, 0) >> version & 1
        return None if found is None or frozen else found[0].authentication

    def takes(self, credential: Credential, partition_id: int) -> bool:
        """Whether a command to that partition would be obeyed under it."""
        secret = self.working(partition_id, credential.capability.key_version)
        return secret is not None and self.proven(credential, secret)

    def proven(self, credential: Credential, secret: bytes) -> bool:
        capability = Capability.decode(credential.capability.encode())
        data = capability.encode()
        return credential.key == mac(secret, data, self.system_id, algorithm=capability.algorithm)

    def check(self, credential: Credential, secret: bytes | None, permissions: Permission) -> None:
        if secret is None or not self.proven(credential, secret):
            raise KeyRefused("24/00 at 80")
        assert permissions in credential.capability.permissions

    def check_working(
        self, partition_id: int, credential: Credential, permissions: Permission
    ) -> None:
        secret = self.working(partition_id, credential.capability.key_version)
        self.check(credential, secret, permissions)

    def forget_below(self, level: Level, partition_id: int) -> None:
        for place in list(self.keys):
            below = place[0] > level
            if below and (level is not Level.PARTITION or place[1] == partition_id):
                del self.keys[place]


class Session:
    """A Device."""

    def __init__(self, model: ModelTarget) -> None:
        self.model = model

    def set_key(self, slot: Slot, seed: bytes, identifier: bytes, credential: Credential) -> None:
        model = self.model
        model.step()
        if slot.level is Level.ROOT:
            parent: KeyPair | None = model.master
        else:
            above = (Level.ROOT, 0, 0)
            if slot.level is Level.WORKING:
                above = (Level.PARTITION, slot.partition_id, 0)
            parent = model.keys[above][0] if above in model.keys else None
        model.check(credential, parent.authentication if parent else None, KEY_BITS)
        if slot.partition_id and slot.partition_id not in model.ids:
            raise errors.NotFound(5, 0x24, 0, "no such partition")
        assert parent is not None
        pair = from_seed(parent, seed, credential.capability.algorithm)
        model.forget_below(slot.level, slot.partition_id)
        model.keys[slot.level, slot.partition_id, slot.version] = (pair, identifier)
        model.step()

    def master_seed(
        self, group: int, identifier: bytes, public: bytes, credential: Credential
    ) -> bytes:
        model = self.model
        model.step()
        model.check(credential, model.master.authentication, KEY_BITS | Permission.GLOBAL)
        model.pending = Exchange(group), public
        model.step()
        return model.pending[0].public

    def master_change(
        self, group: int, identifier: bytes, public: bytes, theirs: bytes, credential: Credential
    ) -> None:
        model = self.model
        model.step()
        assert model.pending is not None
        exchange, seen = model.pending
        assert (public, theirs) == (seen, exchange.public)
        algorithm = credential.capability.algorithm
        new = from_secret(model.master, exchange.secret(public), model.system_id, algorithm)
        model.check(credential, new.authentication, KEY_BITS | Permission.GLOBAL)
        model.master = new
        model.forget_below(Level.MASTER, 0)
        model.pending = None
        model.step()

    def identifier(self, slot: Slot, credential: Credential) -> bytes:
        model = self.model
        model.step()
        model.check_working(slot.partition_id, credential, Permission.GET_ATTR)
        found = model.keys.get((slot.level, slot.partition_id, slot.version))
        return found[1] if found else b""

    def partitions(self, credential: Credential) -> list[int]:
        self.model.step()
        self.model.check_working(0, credential, Permission.READ)
        return list(self.model.ids)

    def least_method(self, partition_id: int, credential: Credential) -> SecurityMethod:
        self.model.step()
        self.model.check_working(partition_id, credential, Permission.GET_ATTR)
        return self.model.methods.get(partition_id, SecurityMethod.CAPKEY)

    def frozen(self, partition_id: int, credential: Credential) -> int:
        self.model.step()
        self.model.check_working(partition_id, credential, Permission.GET_ATTR)
        return self.model.masks.get(partition_id, 0)

    def freeze(self, partition_id: int, mask: int, credential: Credential) -> None:
        permissions = Permission.SET_ATTR | Permission.POL_SEC
        self.model.step()
        self.model.check_working(partition_id, credential, permissions)
        self.model.masks[partition_id] = mask
        self.model.step()

    def set_tag(
        self, obj: ObjectRef, object_type: ObjectType, tag: int, credential: Credential
    ) -> None:
        permissions = Permission.SET_ATTR | Permission.POL_SEC
        self.model.step()
        self.model.check_working(obj.partition_id, credential, permissions)
        self.model.tags[obj] = tag
        self.model.step()

    def tag(self, obj: ObjectRef, object_type: ObjectType, credential: Credential) -> int:
        self.model.step()
        self.model.check_working(obj.partition_id, credential, Permission.GET_ATTR)
        return self.model.tags.get(obj, 0)

    def close(self) -> None:
        pass
