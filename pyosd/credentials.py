# SPDX-License-Identifier: GPL-2.0-or-later
"""What authorises a command: capabilities, the keys that prove them, and who hands both out.

Lives here: values and bytes of docs/security-protocol.md that the initiator, the security manager and
tests share; sources of credentials that need nobody else.
Not here: signing of commands (the initiator's), keys of a target (pyosd.secmgr).
"""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import secrets
import threading
import time
from collections import OrderedDict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum, IntFlag
from pathlib import Path
from typing import NamedTuple, Protocol

from pyosd.errors import PermissionDenied
from pyosd.types import ROOT, ObjectRef, ObjectType, PartitionId

CAPABILITY_LENGTH = 104
CHECK_LENGTH = 32
"""Bytes of a check value."""
SYSTEM_ID_LENGTH = 20
CREDENTIALS_SCHEMA = "iosd.credentials/1"
SECRET_FILE_MAX = 1 << 20


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
"""What a job is given in its zone beside leave to run, unless it asks for less."""


class KeyLevel(IntEnum):
    """Keys that SET KEY sets (CDB byte 11)."""

    ROOT = 1
    PARTITION = 2
    WORKING = 3


class Need(NamedTuple):
    """What a command needs leave for: an object, of which type, and all of these permissions."""

    obj: ObjectRef
    object_type: ObjectType
    permissions: Permission


DIGESTS = {Algorithm.HMAC_SHA256: hashlib.sha256, Algorithm.HMAC_SHA1: hashlib.sha1}
_DESCRIPTORS = {
    ObjectType.ROOT: 2,
    ObjectType.PARTITION: 2,
    ObjectType.USER_OBJECT: 1,
    ObjectType.COLLECTION: 3,
}


def mac(key: bytes, *parts: bytes | bytearray | memoryview, algorithm: Algorithm) -> bytes:
    """A check value of 32 bytes over the parts, one after the other."""
    state = hmac.new(key, digestmod=DIGESTS[algorithm])
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

    def partitions(self) -> list[PartitionId] | None:
        """The partitions in which its user may list jobs; None: it does not know them."""
        ...


# ---- sources --------------------------------------------------------------------------------------


def covers(capability: Capability, need: Need) -> bool:
    """Whether a capability is leave for what is needed, as far as it says itself."""
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


def denied(need: Need) -> PermissionDenied:
    """What a source raises that has nothing for a need."""
    wanted = need.permissions.name or hex(need.permissions)
    kind = need.object_type.name.lower().replace("_", " ")
    return PermissionDenied(
        0, 0, 0, f"no credential for {kind} {need.obj} that allows {wanted}", sam_status=0
    )


class StaticSource:
    """A few credentials that somebody was given; expired and refused ones are not handed out."""

    def __init__(self, credentials: Iterable[Credential]) -> None:
        self._credentials = list(credentials)
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
            for each in self._credentials:
                if covers(each.capability, need) and each.lasts():
                    return each
        raise denied(need)

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
        # To make or remove the partition itself; a job may have leave to do so inside.
        itself = made and not permissions & Permission.FUN_EXE
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
            discriminator=secrets.token_bytes(12),
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
    """One credential as a source of that one."""
    return StaticSource([credentials]) if isinstance(credentials, Credential) else credentials


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
