# SPDX-License-Identifier: GPL-2.0-or-later
"""A target's keys over OSD-2: the commands that set keys, and the attributes that list them."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from typing import Protocol

import pyosd
from iosd_secmgr.keys.keystore import Level, Slot
from pyosd import errors
from pyosd.security.credentials import Credential, StaticSource
from pyosd.security.signing import Signer
from pyosd.types import ROOT, ObjectRef, ObjectType, ref
from pyosd.wire.capability import KeyLevel, SecurityMethod

ROOT_POLICY = 0x9000_0005
PARTITION_POLICY = 0x3000_0005
OBJECT_POLICY = {ObjectType.USER_OBJECT: 5, ObjectType.COLLECTION: 0x6000_0005}
MASTER_IDENTIFIER = 0x7FFD
ROOT_IDENTIFIER = 0x7FFE
PARTITION_IDENTIFIER = 0x7FFF
WORKING_IDENTIFIER = 0x8000
LEAST_METHOD = 1
FROZEN_KEYS = 5
POLICY_TAG = 0x4000_0001
VERSIONS = 16


class KeyRefused(Exception):
    """The target does not take what this credential was signed with."""


class Device(Protocol):
    """One session with a target.  Each call goes out under the credential it is given.

    Raises, all of them: KeyRefused; pyosd.errors.OSDError: another refusal; Unreachable.
    """

    def set_key(self, slot: Slot, seed: bytes, identifier: bytes, credential: Credential) -> None:
        """SET KEY."""
        ...

    def master_seed(
        self, group: int, identifier: bytes, public: bytes, credential: Credential
    ) -> bytes:
        """SET MASTER KEY, step 0: the target's half of the exchange."""
        ...

    def master_change(
        self, group: int, identifier: bytes, public: bytes, theirs: bytes, credential: Credential
    ) -> None:
        """SET MASTER KEY, step 1."""
        ...

    def identifier(self, slot: Slot, credential: Credential) -> bytes:
        """Of the key in a slot; empty: there is none."""
        ...

    def partitions(self, credential: Credential) -> list[int]:
        """Ids of all partitions."""
        ...

    def least_method(self, partition_id: int, credential: Credential) -> SecurityMethod:
        """Security method of a partition; 0: the root, and partition zero."""
        ...

    def frozen(self, partition_id: int, credential: Credential) -> int:
        """Bit mask of frozen working keys."""
        ...

    def freeze(self, partition_id: int, mask: int, credential: Credential) -> None:
        """Set that mask."""
        ...

    def set_tag(
        self, obj: ObjectRef, object_type: ObjectType, tag: int, credential: Credential
    ) -> None:
        """Set the policy access tag of an object."""
        ...

    def tag(self, obj: ObjectRef, object_type: ObjectType, credential: Credential) -> int:
        """Read it; 0: it has none."""
        ...

    def close(self) -> None:
        """End the session."""
        ...


def identifier_attribute(slot: Slot) -> tuple[ObjectRef, int, int]:
    """Address of a key's identifier: object, page, number."""
    if slot.level is Level.MASTER:
        return ROOT, ROOT_POLICY, MASTER_IDENTIFIER
    if slot.level is Level.ROOT:
        return ROOT, ROOT_POLICY, ROOT_IDENTIFIER
    number = PARTITION_IDENTIFIER
    if slot.level is Level.WORKING:
        number = WORKING_IDENTIFIER + slot.version
    return ref(slot.partition_id), policy_page(slot.partition_id), number


def policy_page(partition_id: int) -> int:
    """Page of a partition's keys; for partition zero the root's page."""
    return PARTITION_POLICY if partition_id else ROOT_POLICY


class IscsiDevice:
    """A Device over iSCSI.  One thread at a time."""

    def __init__(self, url: str, chap: pyosd.Chap | None, timeout: float) -> None:
        self._target = pyosd.connect(url, chap=chap, timeout=timeout, local=False)

    @contextlib.contextmanager
    def _under(self, credential: Credential) -> Iterator[pyosd.Target]:
        # A signer of its own: one keeps for later commands what it has for a need.
        self._target.signer = Signer(StaticSource([credential]))
        try:
            yield self._target
        except errors.OSDError as error:
            # A capability that is not proven is 24/00 at 80, a frozen key 24/05.
            code = error.asc, error.ascq
            if (code == (0x24, 0) and error.field_pointer == 80) or code == (0x24, 5):
                raise KeyRefused(str(error)) from None
            raise

    def set_key(self, slot: Slot, seed: bytes, identifier: bytes, credential: Credential) -> None:
        """SET KEY."""
        with self._under(credential) as target:
            target.set_key(
                KeyLevel(slot.level), slot.partition_id, seed, identifier, version=slot.version
            )

    def master_seed(
        self, group: int, identifier: bytes, public: bytes, credential: Credential
    ) -> bytes:
        """SET MASTER KEY, step 0."""
        with self._under(credential) as target:
            return bytes(target.set_master_key_seed(group, identifier, public))

    def master_change(
        self, group: int, identifier: bytes, public: bytes, theirs: bytes, credential: Credential
    ) -> None:
        """SET MASTER KEY, step 1."""
        with self._under(credential) as target:
            target.set_master_key_change(group, identifier, public, theirs)

    def identifier(self, slot: Slot, credential: Credential) -> bytes:
        """Of the key in a slot."""
        with self._under(credential) as target:
            return bytes(target.get_attribute(*identifier_attribute(slot)))

    def partitions(self, credential: Credential) -> list[int]:
        """Ids of all partitions."""
        with self._under(credential) as target:
            return list(target.list_partitions())

    def least_method(self, partition_id: int, credential: Credential) -> SecurityMethod:
        """Security method of a partition."""
        with self._under(credential) as target:
            page = policy_page(partition_id)
            return SecurityMethod(target.get_attribute(ref(partition_id), page, LEAST_METHOD)[0])

    def frozen(self, partition_id: int, credential: Credential) -> int:
        """Bit mask of frozen working keys."""
        with self._under(credential) as target:
            value = target.get_attribute(ref(partition_id), policy_page(partition_id), FROZEN_KEYS)
            return int.from_bytes(value, "big")

    def freeze(self, partition_id: int, mask: int, credential: Credential) -> None:
        """Set that mask."""
        value = pyosd.AttributeValue(
            policy_page(partition_id), FROZEN_KEYS, mask.to_bytes(2, "big")
        )
        with self._under(credential) as target:
            target.set_attributes(ref(partition_id), [value])

    def set_tag(
        self, obj: ObjectRef, object_type: ObjectType, tag: int, credential: Credential
    ) -> None:
        """Set the policy access tag of an object."""
        page = OBJECT_POLICY.get(object_type, PARTITION_POLICY)
        value = tag.to_bytes(4, "big")
        with self._under(credential) as target:
            target.set_attributes(obj, [pyosd.AttributeValue(page, POLICY_TAG, value)])

    def tag(self, obj: ObjectRef, object_type: ObjectType, credential: Credential) -> int:
        """Read the policy access tag of an object."""
        page = OBJECT_POLICY.get(object_type, PARTITION_POLICY)
        with self._under(credential) as target:
            return int.from_bytes(target.get_attribute(obj, page, POLICY_TAG), "big")

    def close(self) -> None:
        """Log out."""
        self._target.close()
