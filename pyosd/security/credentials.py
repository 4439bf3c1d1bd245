# SPDX-License-Identifier: GPL-2.0-or-later
"""Credentials: a capability with the key that proves it, and the sources that hand credentials out.

Lives here: sources that need no security manager, and files of credentials.
Not here: the bytes of a capability (wire/capability.py), signing of commands (signing.py), a security
manager as a source (pyosd.secmgr.client).
Source: docs/security-protocol.md.
"""

from __future__ import annotations

import json
import os
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Protocol

from pyosd.errors import PermissionDenied
from pyosd.forks import after_fork
from pyosd.types import ROOT, ObjectRef, ObjectType, PartitionId
from pyosd.wire.capability import (
    CHECK_LENGTH,
    Algorithm,
    Capability,
    Need,
    Permission,
    SecurityMethod,
    mac,
    milliseconds,
)

__all__ = [
    "SECRET_FILE_MAX",
    "CachingSource",
    "Credential",
    "CredentialSource",
    "KeySource",
    "StaticSource",
    "covers",
    "denied",
    "read_secret",
    "source_of",
]

CREDENTIALS_SCHEMA = "iosd.credentials/1"
SECRET_FILE_MAX = 1 << 20


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

    def partitions(self) -> list[PartitionId] | None:
        """The partitions in which its user may list jobs; None: it does not know them."""
        ...


# ---- sources --------------------------------------------------------------------------------------


def covers(capability: Capability, need: Need) -> bool:
    """Whether the fields of a capability permit a need."""
    allowed, wanted = capability.obj, need.obj
    if capability.object_type is not need.object_type or need.permissions & ~capability.permissions:
        return False
    if need.object_type is ObjectType.ROOT:
        return True
    if need.object_type is ObjectType.PARTITION:
        # To make one of any id is the only thing allowed of partition 0.
        any_new = allowed.partition_id == 0 and need.permissions == Permission.CREATE
        return any_new or allowed.partition_id == wanted.partition_id
    inside = allowed.object_id in (0, wanted.object_id)
    return inside and allowed.partition_id == wanted.partition_id


def denied(need: Need, *, expired: bool = False) -> PermissionDenied:
    """The error of a source that has no credential for a need.  expired: it has one that has expired."""
    wanted = need.permissions.name or hex(need.permissions)
    kind = need.object_type.name.lower().replace("_", " ")
    text = f"no credential for {kind} {need.obj} that allows {wanted}"
    text += "; the one given has expired: 'osd cred get' asks for another" if expired else ""
    return PermissionDenied(0, 0, 0, text, sam_status=0)


class StaticSource:
    """A few credentials that somebody was given; expired and refused ones are not handed out."""

    def __init__(self, credentials: Iterable[Credential]) -> None:
        self._credentials = list(credentials)
        self._lock = threading.Lock()
        after_fork(self, StaticSource._renew)

    def _renew(self) -> None:
        """Have a lock that no thread of the parent holds (pyosd.forks)."""
        self._lock = threading.Lock()

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._credentials)} credentials>"

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> StaticSource:
        """Those of a file as write() makes it, which nobody but its owner may read or write.

        Raises: OSError: not to be read; ValueError: others may read it, or it is not such a file.
        """
        text = read_secret(path)
        try:
            table = json.loads(text)
            if table["schema"] != CREDENTIALS_SCHEMA:
                raise ValueError(table["schema"])
            found = [
                Credential(
                    Capability.decode(bytes.fromhex(each["capability"])), bytes.fromhex(each["key"])
                )
                for each in table["credentials"]
            ]
        except (ValueError, KeyError, TypeError):  # what is wrong may be the secret: say nothing
            raise ValueError(f"{os.fspath(path)} is no file of {CREDENTIALS_SCHEMA}") from None
        if any(len(each.key) != CHECK_LENGTH for each in found):
            raise ValueError(f"{os.fspath(path)}: a capability key has {CHECK_LENGTH} bytes")
        return cls(found)

    def write(self, path: str | os.PathLike[str]) -> None:
        """Make a file of them, readable by its owner only.  Raises: OSError: it is there already."""
        table = {
            "schema": CREDENTIALS_SCHEMA,
            "credentials": [
                {"capability": each.capability.encode().hex(), "key": each.key.hex()}
                for each in self._credentials
            ],
        }
        descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(descriptor, "w") as file:
            json.dump(table, file, indent=1)

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        """The first that covers it (CredentialSource.credential)."""
        need = Need(obj, object_type, permissions)
        with self._lock:
            found = [each for each in self._credentials if covers(each.capability, need)]
        for each in found:
            if each.lasts():
                return each
        raise denied(need, expired=bool(found))

    def refused(self, credential: Credential) -> None:
        """Hand it out no more (CredentialSource.refused)."""
        with self._lock:
            self._credentials = [each for each in self._credentials if each != credential]

    def partitions(self) -> None:
        """It does not know them (CredentialSource.partitions)."""


class KeySource:
    """Makes credentials from working keys.  Administrators and tests have such keys.

    keys: working keys by partition id.  The key of partition 0 signs commands to the root, and those
    that create and remove partitions.  version: the version of all keys.  lifetime: seconds until a
    credential expires; None: it does not expire.
    """

    def __init__(
        self,
        keys: Mapping[int, bytes],
        system_id: bytes,
        *,
        method: SecurityMethod = SecurityMethod.CAPKEY,
        algorithm: Algorithm = Algorithm.HMAC_SHA256,
        version: int = 0,
        lifetime: float | None = 3600.0,
        audit: bytes = bytes(20),
    ) -> None:
        self._keys = dict(keys)
        self._system_id = system_id
        self._pattern = Capability(
            ROOT, ObjectType.ROOT, Permission(0), method, algorithm, version, audit=audit
        )
        self._lifetime = lifetime

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {len(self._keys)} keys>"

    def set_key(self, partition_id: int, key: bytes) -> None:
        """From now on that is the working key of a partition."""
        self._keys[partition_id] = key

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        """Exactly what is asked for (CredentialSource.credential)."""
        made = permissions & (Permission.CREATE | Permission.REMOVE | Permission.GBL_REM)
        # To make or remove the partition itself; a job, or CHANGE NAMES, does so inside.
        itself = made and not permissions & (Permission.FUN_EXE | Permission.WRITE)
        key = self._keys.get(
            0 if object_type is ObjectType.PARTITION and itself else obj.partition_id
        )
        if key is None:
            raise denied(Need(obj, object_type, permissions))
        lifetime = self._lifetime
        capability = replace(
            self._pattern,
            obj=obj,
            object_type=object_type,
            permissions=permissions,
            expires_ms=0 if lifetime is None else milliseconds(time.time() + lifetime),
            discriminator=os.urandom(12),
        )
        return Credential.sign(capability, key, self._system_id)

    def refused(self, credential: Credential) -> None:
        """Nothing is kept (CredentialSource.refused)."""

    def partitions(self) -> None:
        """It does not know them (CredentialSource.partitions)."""


class CachingSource:
    """Keeps what another source hands out as long as it lasts, and gives it for whatever it covers.

    most: credentials kept.  margin: seconds before its end from which on one is not handed out.
    """

    def __init__(self, source: CredentialSource, *, most: int = 4096, margin: float = 30.0) -> None:
        self._source = source
        self._most = most
        self._margin = margin
        self._lock = threading.Lock()
        self._kept: OrderedDict[tuple[int, ObjectType], list[Credential]] = OrderedDict()
        after_fork(self, CachingSource._renew)

    def _renew(self) -> None:
        """Have a lock that no thread of the parent holds (pyosd.forks)."""
        self._lock = threading.Lock()

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        """One that is kept, else the source's (CredentialSource.credential)."""
        need, place = Need(obj, object_type, permissions), (obj.partition_id, object_type)
        with self._lock:
            for each in self._kept.get(place, ()):
                if covers(each.capability, need) and each.lasts(self._margin):
                    return each
        found = self._source.credential(obj, object_type, permissions)
        with self._lock:
            kept = [each for each in self._kept.pop(place, ()) if each.lasts(self._margin)]
            self._kept[place] = [found, *kept]
            while sum(map(len, self._kept.values())) > self._most:
                oldest = next(iter(self._kept.values()))
                oldest.pop()
                if not oldest:
                    self._kept.popitem(last=False)
        return found

    def refused(self, credential: Credential) -> None:
        """Forget it, and tell the source (CredentialSource.refused)."""
        with self._lock:
            for place, kept in self._kept.items():
                self._kept[place] = [each for each in kept if each != credential]
        self._source.refused(credential)

    def partitions(self) -> list[PartitionId] | None:
        """The source's (CredentialSource.partitions)."""
        return self._source.partitions()


def source_of(credentials: CredentialSource | Credential | None) -> CredentialSource | None:
    """One credential as a source of that one.  Raises: TypeError: it is none of these."""
    if isinstance(credentials, Credential):
        return StaticSource([credentials])
    if isinstance(credentials, str | os.PathLike):
        raise TypeError(
            f"credentials are a Credential or a CredentialSource, not {credentials!r}: "
            "pyosd.security.credentials.StaticSource.read() reads a file"
        )
    return credentials


def read_secret(path: str | os.PathLike[str]) -> str:
    """Text of a file that nobody but its owner may read or write.

    Raises: OSError: not to be read; ValueError: others may, or it is no text.
    """
    with Path(path).open("rb") as file:
        if os.fstat(file.fileno()).st_mode & 0o077:
            raise ValueError(f"{os.fspath(path)} is not its owner's alone: chmod 600 it")
        data = file.read(SECRET_FILE_MAX + 1)
    if len(data) > SECRET_FILE_MAX:
        raise ValueError(f"{os.fspath(path)} is longer than {SECRET_FILE_MAX} bytes")
    try:
        return data.decode()
    except UnicodeDecodeError:
        raise ValueError(f"{os.fspath(path)} is no text") from None
