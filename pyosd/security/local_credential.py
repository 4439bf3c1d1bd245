# SPDX-License-Identifier: GPL-2.0-or-later
"""The credential of the user who serves a target on this host: found without a flag, good for everything.

`osd target serve` writes it when the target starts, into a folder that only its user can enter, and locks
the file for as long as the target is served.  It holds the key from which all keys of the store follow
(docs/security-protocol.md, "The local administrator"), so no security manager is needed.

Not here: writing the file (iosd_host/serve/local_credential.py).
"""

from __future__ import annotations

import fcntl
import json
import os
import pwd
import stat
from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import quote

from pyosd.iscsi.session import TargetAddress
from pyosd.security.credentials import (
    SECRET_FILE_MAX,
    Credential,
    CredentialSource,
    KeySource,
    StaticSource,
    read_secret,
)
from pyosd.types import ObjectRef, ObjectType
from pyosd.wire.capability import (
    CHECK_LENGTH,
    SYSTEM_ID_LENGTH,
    Algorithm,
    Permission,
    SecurityMethod,
    mac,
)

__all__ = ["LocalCredential", "LocalSource", "advice", "find", "read_source"]

SCHEMA = "iosd.local-credential/1"
SYSTEM = Path("/run/iosd-credentials")  # root's
_PARTITION_SEED, _WORKING_SEED = b"iosd local p", b"iosd local working 0"
_LOOPBACK = ("127.0.0.1", "::1")
_WILDCARDS = ("0.0.0.0", "::")
_WHOLE = (ObjectType.USER_OBJECT, ObjectType.COLLECTION)
_EVERYTHING = Permission((1 << 16) - 2) & ~Permission.FUN_EXE


@dataclass(frozen=True)
class LocalCredential:
    """Contents of the file.  generation: generation part of the store's root key."""

    target: str
    portal: str
    system_id: bytes
    generation: bytes = field(repr=False)
    method: SecurityMethod
    path: str

    @classmethod
    def parse(cls, text: str, path: str) -> LocalCredential:
        """Of such a file.  Raises: ValueError, which does not repeat what the file holds."""
        try:
            table = json.loads(text)
            if table["schema"] != SCHEMA:
                raise ValueError
            found = cls(
                str(table["target"]),
                str(table["portal"]),
                bytes.fromhex(table["system_id"]),
                bytes.fromhex(table["generation"]),
                SecurityMethod[table["method"].upper()],
                path,
            )
            if (len(found.system_id), len(found.generation)) != (SYSTEM_ID_LENGTH, CHECK_LENGTH):
                raise ValueError
        except (ValueError, KeyError, TypeError, AttributeError):
            raise ValueError(f"{path} is no file of {SCHEMA}") from None
        return found


class LocalSource(KeySource):
    """Credentials for everything in a store, from its local credential.

    They do not expire: a job acts with the one that it was submitted with for as long as it takes.
    """

    has_all_keys = True
    """A key that the target does not know is one of a partition that does not exist."""

    def __init__(self, credential: LocalCredential, url: str = "") -> None:
        """url: where to look for another one when the target does not take this one; "": nowhere."""
        self._url = url
        self._take(credential)

    def _take(self, credential: LocalCredential) -> None:
        super().__init__({}, credential.system_id, method=credential.method, lifetime=None)
        self._local = credential

    def __repr__(self) -> str:
        return f"<{type(self).__name__} of {self._local.path}>"

    def working_key(self, partition_id: int) -> bytes:
        """Working key 0 of a partition, which follows from the root key."""
        key = self._keys.get(partition_id)
        if key is None:
            seed = _PARTITION_SEED + partition_id.to_bytes(8, "big")
            partition = mac(self._local.generation, seed, algorithm=Algorithm.HMAC_SHA256)
            # A key's authentication part: the last bit of the seed is inverted.
            seed = _WORKING_SEED[:-1] + bytes((_WORKING_SEED[-1] ^ 1,))
            key = mac(partition, seed, algorithm=Algorithm.HMAC_SHA256)
            self.set_key(partition_id, key)
        return key

    def credential(
        self, obj: ObjectRef, object_type: ObjectType, permissions: Permission
    ) -> Credential:
        """One with all permissions on the object, save for jobs: those get what they ask for.

        It names the object: a capability for all user objects of a partition does not permit to read the
        jobs of other principals, which the administrator may.
        """
        self.working_key(0)
        self.working_key(obj.partition_id)
        if object_type not in _WHOLE or permissions & Permission.FUN_EXE:
            return super().credential(obj, object_type, permissions)
        return super().credential(obj, object_type, _EVERYTHING)

    def refused(self, credential: Credential) -> None:
        """Perhaps another store is served there by now (CredentialSource.refused)."""
        found = _find(self._url) if self._url else None
        if found and found.generation != self._local.generation:
            self._take(found)


def find(url: str) -> LocalSource | None:
    """The credential of the target with that URL, where this user (or, for root, any user) serves it."""
    found = _find(url)
    return LocalSource(found, url) if found else None


def read_source(path: str | os.PathLike[str]) -> CredentialSource:
    """Contents of a file named by --credentials: a local credential, or a list of credentials.

    Raises: OSError: it cannot be read; ValueError: others may read it, or it is not such a file.
    """
    text = read_secret(path)
    if SCHEMA in text:
        return LocalSource(LocalCredential.parse(text, os.fspath(path)))
    return StaticSource.read(path)


def advice() -> str:
    """Advice for a target that requires a credential which this user does not have."""
    folder = _own_folder()
    hints = []
    if os.geteuid() != 0 and SYSTEM.is_dir():
        hints.append(f"root serves targets on this host and has their credentials in {SYSTEM}")
    with suppress(OSError, KeyError):
        owner = folder.stat().st_uid
        if owner != os.geteuid():
            hints.append(f"{folder} belongs to {pwd.getpwuid(owner).pw_name}")
    where = "; ".join(hints)
    return (
        "the target requires a credential: run this as the user who serves the target, or ask that user "
        "for a copy of its credential and name it with --credentials or IOSD_CREDENTIALS"
        + (f" ({where})" if where else "")
        + "; if a security manager has the keys of the target ('osd key import'), only that gives out "
        "credentials: name it with IOSD_SECMGR (docs/secmgr.md)"
    )


# ---- files ----------------------------------------------------------------------------------------


def _find(url: str) -> LocalCredential | None:
    try:
        address = TargetAddress.parse(url)
    except ValueError:
        return None  # the connection will report it
    for folder, owner in _folders():
        with suppress(OSError):
            descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW)
            try:
                found = _in_folder(descriptor, folder, owner, address)
            finally:
                os.close(descriptor)
            if found:
                return found
    return None


def _own_folder() -> Path:
    """Folder of the credentials of targets that this user serves (see also
    iosd_host/serve/local_credential.py)."""
    said = os.environ.get("IOSD_RUN")
    if said:
        return Path(said, "credentials")
    if os.geteuid() == 0:
        return SYSTEM
    base = os.environ.get("XDG_RUNTIME_DIR") or _temporary()
    return Path(base, f"iosd-{os.geteuid()}", "credentials")


def _folders() -> Iterator[tuple[Path, int]]:
    """Folders to look in, and whose each must be: our own; for root those of other users, too."""
    user = os.geteuid()
    yield _own_folder(), user
    if user != 0:
        return
    for base in (*Path("/run/user").glob("*"), Path(_temporary())):
        for folder in base.glob("iosd-[0-9]*"):
            number = folder.name.removeprefix("iosd-")
            if number.isdecimal() and not folder.is_symlink():
                yield folder / "credentials", int(number)


def _in_folder(
    descriptor: int, folder: Path, owner: int, address: TargetAddress
) -> LocalCredential | None:
    if not _private(os.fstat(descriptor), owner):
        return None
    for host in _hosts(address.host):
        portal = f"{host}:{address.port}"
        name = f"{portal}-{quote(address.target, safe=':')[:200]}.json"
        with suppress(OSError, ValueError):
            flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
            with os.fdopen(os.open(name, flags, dir_fd=descriptor), "rb") as file:
                status = os.fstat(file.fileno())
                if not stat.S_ISREG(status.st_mode) or not _private(status, owner):
                    continue
                data = file.read(SECRET_FILE_MAX)
                if b'"held": true' in data and not _is_locked(file.fileno()):
                    continue  # what a target that was killed has left
            found = LocalCredential.parse(data.decode(), str(folder / name))
            if (found.target, found.portal) == (address.target, portal):
                return found
    return None


def _temporary() -> str:
    """As tempfile.gettempdir(), whose import takes longer than all else here."""
    named = [os.environ.get(each, "") for each in ("TMPDIR", "TEMP", "TMP")]
    for folder in map(Path, (*filter(None, named), "/tmp", "/var/tmp", "/usr/tmp")):
        if folder.is_dir() and os.access(folder, os.W_OK | os.X_OK):
            return str(folder.absolute())
    return str(Path.cwd())


def _private(status: os.stat_result, owner: int) -> bool:
    return status.st_uid == owner and not status.st_mode & 0o077


def _is_locked(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_SH | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    return False


def _hosts(host: str) -> Iterator[str]:
    """Names under which the portal of a URL's host may be known to those who serve it."""
    if host == "localhost":
        yield from _LOOPBACK
    else:
        yield host
    if host == "localhost" or host in _LOOPBACK or host.startswith("127."):
        yield from _WILDCARDS
