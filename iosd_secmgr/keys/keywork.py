# SPDX-License-Identifier: GPL-2.0-or-later
"""Setting keys at one target so that a death at any moment loses nothing.

A new key goes: intent into the store, SET KEY to the target, key into the store. SET KEY with the
same seed under the same parent makes the same key, so what is found half done is done again. Only
SET MASTER KEY cannot be: there it is tried whether the target obeys the new key. If a target
refuses a key that we have (its store was formatted or restored), the level above sets it again, up
to the master key.
"""

from __future__ import annotations

import contextlib
import secrets
import time
from collections.abc import Callable
from dataclasses import replace

from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.keys.derive import (
    IDENTIFIER_LENGTH,
    SEED_LENGTH,
    Exchange,
    KeyPair,
    from_secret,
    from_seed,
)
from iosd_secmgr.keys.device import VERSIONS, Device, KeyRefused
from iosd_secmgr.keys.keystore import Intent, KeyStore, Level, Slot, TargetKey
from iosd_secmgr.keys.signer import CredentialSigner, own_type
from iosd_secmgr.records.audit import Audit
from iosd_secmgr.records.database import Database, Transaction
from iosd_secmgr.records.store import TargetRecord
from pyosd import errors
from pyosd.security.credentials import Credential
from pyosd.types import ROOT, ObjectRef, ObjectType
from pyosd.wire.capability import Permission, SecurityMethod

KEY_PERMISSIONS = Permission.DEV_MGMT | Permission.POL_SEC
MASTER_PERMISSIONS = KEY_PERMISSIONS | Permission.GLOBAL
SET_POLICY = Permission.GET_ATTR | Permission.SET_ATTR | Permission.POL_SEC


class NotObeyed(Refusal):
    """The target has taken a working key, and does not obey it."""

    def __init__(self, slot: Slot) -> None:
        super().__init__("conflict", f"the target does not obey the key it was given: {slot}")


def parent_of(slot: Slot) -> Slot:
    """The level whose key authorises and derives this one."""
    if slot.level is Level.WORKING:
        return replace(slot, level=Level.PARTITION, version=0)
    above = Level.ROOT if slot.level is Level.PARTITION else Level.MASTER
    return Slot(slot.target, above)


class KeyWork:
    """Operations on a target's keys, over one session.  The caller sees to it that only one works
    on a target at a time.

    who: on whose behalf, for the log.  Raises, all: Refusal; pyosd.errors.OSDError.
    """

    def __init__(
        self,
        record: TargetRecord,
        device: Device,
        database: Database,
        keys: KeyStore,
        audit: Audit,
        who: str,
        clock: Callable[[], float] = time.time,
    ) -> None:
        self._record = record
        self._device = device
        self._database = database
        self._keys = keys
        self._audit = audit
        self._who = who
        self._clock = clock

    # ---- credentials of our own ----

    def _now_ms(self) -> int:
        return int(self._clock() * 1000)

    def _sign(
        self,
        pair: KeyPair,
        version: int,
        obj: ObjectRef,
        object_type: ObjectType,
        permissions: Permission,
    ) -> Credential:
        record = self._record
        signer = CredentialSigner(
            pair.authentication, version, record.system_id, record.algorithm, record.method
        )
        return signer.own(obj, object_type, permissions, self._now_ms())

    def _by_working_key(
        self, partition_id: int, permissions: Permission, key: TargetKey | None = None
    ) -> Credential:
        key = key or self._current(partition_id)
        return self._sign(
            key.pair, key.slot.version, *own_type(partition_id), permissions=permissions
        )

    def _current(self, partition_id: int) -> TargetKey:
        with self._database.transaction() as tx:
            key = self._keys.current(tx, self._record.name, partition_id)
        if key is None:
            raise Refusal("not-ready", f"partition {partition_id:#x} has no working key yet")
        return key

    def _slot(self, level: Level, partition_id: int = 0, version: int = 0) -> Slot:
        return Slot(self._record.name, level, partition_id, version)

    def _key(self, slot: Slot) -> TargetKey | None:
        with self._database.transaction() as tx:
            return self._keys.key(tx, slot)

    # ---- one key ----

    def set_key(self, slot: Slot, *, again: bool = False) -> None:
        """Give the target a new key in this slot; those below it are no more.

        again: what was intended before, rather than another one.
        """
        for last in (False, True):
            parent = self._parent(slot)
            intent = self._intent(slot, parent, again)
            try:
                self._device.set_key(
                    slot, intent.seed, intent.identifier, self._parents(slot, parent)
                )
            except KeyRefused:
                with self._database.transaction() as tx:
                    self._keys.done(tx, slot)
                if parent.slot.level is Level.MASTER:
                    raise self._unknown_master() from None
                if last:
                    raise Refusal("conflict", f"the target refuses a new key: {slot}") from None
                # The target has not got the key above it that we think it has.
                self.set_key(parent.slot)
            except errors.NotFound:
                self._forget(slot)
                raise
            else:
                self._keep(intent)
                return

    def _parent(self, slot: Slot) -> TargetKey:
        above = parent_of(slot)
        key = self._key(above)
        if key is None:
            if above.level is Level.MASTER:
                raise self._unknown_master()
            self.set_key(above)
            key = self._key(above)
            assert key is not None
        return key

    def _parents(self, slot: Slot, parent: TargetKey) -> Credential:
        """The credential for SET KEY."""
        partition_id = 0 if slot.level is Level.ROOT else slot.partition_id
        return self._sign(parent.pair, 0, *own_type(partition_id), permissions=KEY_PERMISSIONS)

    def _unknown_master(self) -> Refusal:
        return Refusal(
            "conflict",
            f"{self._record.name} does not know the master key that we have: import its key again "
            "(osd key import); of a backup that is older than our key, 'osd target restore --new-keys' "
            "makes a store with a new one",
        )

    def _intent(self, slot: Slot, parent: TargetKey, again: bool) -> Intent:
        """The intent to set a key, stored before the request to the target."""
        with self._database.transaction() as tx:
            left = {each.slot: each for each in self._keys.intents(tx, slot.target)}
            if again and slot in left:
                return left[slot]
            seed = secrets.token_bytes(SEED_LENGTH)
            pair = from_seed(parent.pair, seed, self._record.algorithm)
            if slot.level is Level.WORKING:
                pair = KeyPair(pair.authentication)
            intent = Intent(slot, secrets.token_bytes(IDENTIFIER_LENGTH), pair, seed)
            self._keys.intend(tx, intent, self._now_ms())
            return intent

    def _keep(self, intent: Intent) -> None:
        """The target has set it."""
        if intent.slot.level is Level.WORKING:
            try:
                self._confirm(intent)
            except NotObeyed:
                with self._database.transaction() as tx:
                    self._keys.done(tx, intent.slot)
                raise
        with self._database.transaction() as tx:
            self._put(tx, intent)

    def _put(self, tx: Transaction, intent: Intent) -> None:
        slot = intent.slot
        self._keys.put(tx, slot, intent.identifier, intent.pair, self._now_ms())
        self._keys.done(tx, slot)
        self._audit.append(
            tx,
            self._who,
            "key.set",
            target=slot.target,
            level=slot.level.name.lower(),
            partition=slot.partition_id,
            version=slot.version,
            identifier=intent.identifier.hex(),
        )

    def _confirm(self, intent: Intent) -> None:
        """A command signed with the new key must be obeyed, and find the key's identifier."""
        self._thaw(intent)
        key = TargetKey(intent.slot, intent.identifier, intent.pair)
        credential = self._by_working_key(intent.slot.partition_id, Permission.GET_ATTR, key)
        try:
            found = self._device.identifier(intent.slot, credential)
        except KeyRefused:
            found = b""
        if found != intent.identifier:
            raise NotObeyed(intent.slot)

    def _thaw(self, intent: Intent) -> None:
        """Unfreeze the version after it has the new key. Before that, the old key would be valid
        again.  Signed with the key that is still current."""
        slot = intent.slot
        with self._database.transaction() as tx:
            current = self._keys.current(tx, slot.target, slot.partition_id)
        if current is None or current.slot == slot:
            return
        credential = self._by_working_key(slot.partition_id, SET_POLICY, current)
        try:
            if self._device.identifier(slot, credential) != intent.identifier:
                return
            mask = self._device.frozen(slot.partition_id, credential)
            if mask >> slot.version & 1:
                self._device.freeze(slot.partition_id, mask & ~(1 << slot.version), credential)
        except KeyRefused:
            return  # the target has lost that one

    def _forget(self, slot: Slot) -> None:
        """The partition is gone: and so are its keys."""
        with self._database.transaction() as tx:
            self._keys.done(tx, slot)
            self._keys.forget(tx, self._slot(Level.PARTITION, slot.partition_id))

    # ---- all keys ----

    def complete(self) -> None:
        """Set what the target lacks, from the root down."""
        if self._key(self._slot(Level.ROOT)) is None:
            self.set_key(self._slot(Level.ROOT))
        self.complete_partition(0)
        for partition_id in self.partitions():
            try:
                self.complete_partition(partition_id)
            except errors.NotFound:
                continue  # removed meanwhile

    def complete_partition(self, partition_id: int) -> None:
        """The same for one partition.  Raises: pyosd.errors.NotFound: there is none."""
        if self._key(self._slot(Level.PARTITION, partition_id)) is None:
            self.set_key(self._slot(Level.PARTITION, partition_id))
        with self._database.transaction() as tx:
            current = self._keys.current(tx, self._record.name, partition_id)
        if current is None:
            self._first_working(partition_id)

    def _first_working(self, partition_id: int) -> None:
        """A working key where there is none.  Versions that were frozen are so still, and only an obeyed
        key can thaw them: one at least is not."""
        for version in range(VERSIONS):
            try:
                self.set_key(self._slot(Level.WORKING, partition_id, version))
                break
            except NotObeyed:
                if version == VERSIONS - 1:
                    raise
        if version:
            credential = self._by_working_key(partition_id, SET_POLICY)
            self._device.freeze(partition_id, 0, credential)  # no other version has a key

    def partitions(self) -> list[int]:
        """Those the target has now."""
        self.complete_partition(0)
        return self._device.partitions(self._by_working_key(0, Permission.READ))

    def open_to_all(self) -> list[int]:
        """Partitions that demand no capabilities; 0: the root, and partition zero."""
        found = []
        for partition_id in [0, *self.partitions()]:
            with contextlib.suppress(errors.NotFound, KeyRefused):  # gone, or keyed anew, since
                self.complete_partition(partition_id)
                credential = self._by_working_key(partition_id, Permission.GET_ATTR)
                if self._device.least_method(partition_id, credential) is SecurityMethod.NOSEC:
                    found.append(partition_id)
        return found

    def verify(self, partition_id: int) -> bool:
        """Whether the target has the working key that we sign with; if not, give it one.

        Raises: pyosd.errors.NotFound: there is no such partition any more.
        """
        try:
            key = self._current(partition_id)
            credential = self._by_working_key(partition_id, Permission.GET_ATTR, key)
            if self._device.identifier(key.slot, credential) == key.identifier:
                return True
        except (KeyRefused, Refusal):
            pass
        except errors.NotFound:
            self._forget(self._slot(Level.WORKING, partition_id))
            raise
        with self._database.transaction() as tx:
            self._keys.forget(tx, self._slot(Level.PARTITION, partition_id))
        self.complete_partition(partition_id)
        return False

    def rotate_working(self, partition_id: int, version: int) -> None:
        """A new working key in that slot, which is thawed if it was frozen."""
        self.set_key(self._slot(Level.WORKING, partition_id, version))

    def freeze(self, partition_id: int, versions: list[int]) -> None:
        """Have the target refuse what these versions signed."""
        credential = self._by_working_key(partition_id, SET_POLICY)
        mask = self._device.frozen(partition_id, credential)
        for version in versions:
            mask |= 1 << version
        self._device.freeze(partition_id, mask & (1 << VERSIONS) - 1, credential)

    def set_tag(self, obj: ObjectRef, object_type: ObjectType, tag: int) -> None:
        """Give an object another policy access tag: capabilities with the old one are void."""
        key = self._current(obj.partition_id)
        credential = self._sign(key.pair, key.slot.version, obj, object_type, SET_POLICY)
        self._device.set_tag(obj, object_type, tag, credential)

    def tag(self, obj: ObjectRef, object_type: ObjectType) -> int:
        """The policy access tag that an object has."""
        key = self._current(obj.partition_id)
        wanted = Permission.GET_ATTR
        credential = self._sign(key.pair, key.slot.version, obj, object_type, wanted)
        return self._device.tag(obj, object_type, credential)

    # ---- the master key ----

    def set_master(self, group: int) -> None:
        """A new master key, which nobody who overheard the exchange knows, and all keys below it."""
        slot = self._slot(Level.MASTER)
        old = self._key(slot)
        if old is None:
            raise self._unknown_master()
        exchange = Exchange(group)
        identifier = secrets.token_bytes(IDENTIFIER_LENGTH)
        credential = self._sign(old.pair, 0, ROOT, ObjectType.ROOT, MASTER_PERMISSIONS)
        try:
            theirs = self._device.master_seed(group, identifier, exchange.public, credential)
        except KeyRefused:
            raise self._unknown_master() from None
        try:
            secret = exchange.secret(theirs)
        except ValueError as error:
            raise Refusal("conflict", str(error)) from None
        new = from_secret(old.pair, secret, self._record.system_id, self._record.algorithm)
        intent = Intent(slot, identifier, new)
        with self._database.transaction() as tx:
            self._keys.intend(tx, intent, self._now_ms())
        credential = self._sign(new, 0, ROOT, ObjectType.ROOT, MASTER_PERMISSIONS)
        try:
            self._device.master_change(group, identifier, exchange.public, theirs, credential)
        except (KeyRefused, errors.SessionLost):
            if not self._try_master(intent):
                raise Refusal(
                    "conflict", "the target refuses a new master key; the old one is good"
                ) from None
            return
        with self._database.transaction() as tx:
            self._put(tx, intent)

    def check_master(self, pair: KeyPair, group: int) -> None:
        """Look whether the target has this master key; nothing is changed.  Raises: Refusal."""
        credential = self._sign(pair, 0, ROOT, ObjectType.ROOT, MASTER_PERMISSIONS)
        public = Exchange(group).public
        try:
            self._device.master_seed(group, bytes(IDENTIFIER_LENGTH), public, credential)
        except KeyRefused:
            why = (
                f"{self._record.name} has another master key: the one of this file was replaced, as "
                "'osd key import' does; 'osd key ls' lists the keys that are here"
            )
            raise Refusal("conflict", why) from None

    def _try_master(self, intent: Intent) -> bool:
        """Was the master key changed?  A root key set with the new one tells."""
        slot = self._slot(Level.ROOT)
        seed = secrets.token_bytes(SEED_LENGTH)
        pair = from_seed(intent.pair, seed, self._record.algorithm)
        root = Intent(slot, secrets.token_bytes(IDENTIFIER_LENGTH), pair, seed)
        credential = self._sign(intent.pair, 0, ROOT, ObjectType.ROOT, KEY_PERMISSIONS)
        try:
            self._device.set_key(slot, root.seed, root.identifier, credential)
        except KeyRefused:
            with self._database.transaction() as tx:
                self._keys.done(tx, intent.slot)
                self._audit.append(tx, self._who, "key.undone", target=slot.target, level="master")
            return False
        with self._database.transaction() as tx:
            self._put(tx, intent)
            self._put(tx, root)
        return True

    # ---- what was left half done ----

    def recover(self) -> None:
        """Finish what was begun before we died, then set what is missing."""
        while True:
            with self._database.transaction() as tx:
                left = self._keys.intents(tx, self._record.name)
            if not left:
                break
            intent = left[0]
            if intent.slot.level is Level.MASTER:
                self._try_master(intent)
            elif intent.slot.level is Level.WORKING and self._is_there(intent):
                with self._database.transaction() as tx:
                    self._put(tx, intent)
            else:
                try:
                    self.set_key(intent.slot, again=True)
                except errors.NotFound:
                    continue
        self.complete()

    def _is_there(self, intent: Intent) -> bool:
        """Whether the target has what was intended already."""
        try:
            self._confirm(intent)
        except (Refusal, errors.NotFound):
            return False
        return True
