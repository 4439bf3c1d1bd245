# SPDX-License-Identifier: GPL-2.0-or-later
"""The local credential of a target: a file by which the user who serves it is its administrator.

    FOLDER/HOST:PORT-TARGET.json    "iosd.local-credential/1", mode 0600, in a folder with mode 0700

FOLDER is /run/iosd-credentials for root, $XDG_RUNTIME_DIR/iosd-UID/credentials for others, and
credentials below IOSD_RUN where that is set. The module makes the key (target/security/local_keys.c) and
writes it into a private folder, from which it is published here. `osd target serve` holds a lock on the
file until it ends; a file without that lock is what a killed process has left. Nothing here asks for the
name of a file that a stranger can choose: links are not followed, and a folder of another user is refused.

Not here: finding the file and using it (pyosd/security/local_credential.py).
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import tempfile
from pathlib import Path
from urllib.parse import quote

__all__ = ["CredentialError", "Published", "file_name", "publish", "take_key", "withdraw"]

SCHEMA = "iosd.local-credential/1"
SYSTEM = Path("/run/iosd-credentials")
METHODS = ("nosec", "capkey", "cmdrsp", "alldata")
KEY_MOST = 1024
FOLDER_FLAGS = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


class CredentialError(Exception):
    """The credential cannot be written; the text says why and what to do."""


class Published:
    """A credential that clients find, until `close` or, if it is held, the end of this process."""

    def __init__(self, folder: int, path: Path, descriptor: int, key: str) -> None:
        self.folder = folder
        self.path = path
        self.name = path.name
        self.descriptor = descriptor
        self.key = key

    def close(self) -> None:
        """Remove the file, unless another target has replaced it."""
        with contextlib.suppress(OSError):
            there = os.stat(self.name, dir_fd=self.folder, follow_symlinks=False)
            if os.path.samestat(there, os.fstat(self.descriptor)):
                os.unlink(self.name, dir_fd=self.folder)
        self.forget()

    def forget(self) -> None:
        """Leave the file, unlocked."""
        os.close(self.descriptor)
        os.close(self.folder)


def folder_path() -> Path:
    """Folder of this user's credentials (pyosd/security/local_credential.py reads it)."""
    said = os.environ.get("IOSD_RUN")
    if said:
        return Path(said, "credentials")
    if os.geteuid() == 0:
        return SYSTEM
    base = os.environ.get("XDG_RUNTIME_DIR") or tempfile.gettempdir()
    return Path(base, f"iosd-{os.geteuid()}", "credentials")


def file_name(portal: tuple[str, int], target: str) -> str:
    """The name of the file for a target, by its address and port and its iSCSI name."""
    return f"{portal[0]}:{portal[1]}-{quote(target, safe=':')[:200]}.json"


def take_key(path: Path) -> str | None:
    """Keys from the module; None: the store has no local keys.  The file is removed.

    Raises: CredentialError: it cannot be read.
    """
    try:
        descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
        with os.fdopen(descriptor, "rb") as file:
            text = file.read(KEY_MOST).decode("ascii")
        path.unlink()
    except FileNotFoundError:
        return None
    except (OSError, UnicodeDecodeError) as error:
        raise CredentialError(f"cannot read the local key {path}: {error}") from None
    return text


def publish(key: str, portal: tuple[str, int], target: str, *, held: bool = True) -> Published:
    """Write the credential, whole or not at all, in place of whatever has its name.

    Args:
        key: as take_key() returns it.
        held: as long as this process lives; else until withdraw().

    Raises:
        CredentialError: the folder cannot be used.
    """
    fields = fields_of(key) | {
        "schema": SCHEMA,
        "target": target,
        "portal": f"{portal[0]}:{portal[1]}",
        "held": held,
    }
    path = folder_path()
    folder = open_folder(path)
    name = file_name(portal, target)
    fresh = f".new-{os.getpid()}"
    try:
        with contextlib.suppress(FileNotFoundError):
            os.unlink(fresh, dir_fd=folder)
        flags = os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(fresh, flags, 0o600, dir_fd=folder)
        try:
            if held:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.fchmod(descriptor, 0o600)
            os.write(descriptor, json.dumps(fields).encode() + b"\n")
            os.rename(fresh, name, src_dir_fd=folder, dst_dir_fd=folder)
        except BaseException:
            os.close(descriptor)
            raise
    except OSError as error:
        os.close(folder)
        raise CredentialError(f"cannot write a credential in {path}: {error.strerror}") from None
    return Published(folder, path / name, descriptor, key)


def withdraw(portal: tuple[str, int], target: str) -> None:
    """Remove a credential that is not held, or that a killed process has left."""
    with contextlib.suppress(CredentialError, OSError):
        folder = open_folder(folder_path())
        try:
            os.unlink(file_name(portal, target), dir_fd=folder)
        finally:
            os.close(folder)


def fields_of(key: str) -> dict[str, str]:
    """The lines of a local key as fields."""
    said = dict(line.split(" ", 1) for line in key.splitlines() if " " in line)
    try:
        method = METHODS[int(said["method"])]
        return {
            "generation": said["generation"],
            "system_id": said["system-id"],
            "method": method,
        }
    except (KeyError, ValueError, IndexError):
        raise CredentialError("the module has written a local key that is not complete") from None


def open_folder(path: Path) -> int:
    """A descriptor of the folder, made with mode 0700 when it is absent.

    Raises:
        CredentialError: it, or the folder above it, is another user's, or a link.
    """
    try:
        if not os.environ.get("IOSD_RUN") and path != SYSTEM:
            with contextlib.suppress(FileExistsError):
                path.parent.mkdir(mode=0o755)
            os.close(checked(os.open(path.parent, FOLDER_FLAGS), path.parent, 0o022))
        elif path != SYSTEM:
            path.parent.mkdir(mode=0o755, parents=True, exist_ok=True)
        with contextlib.suppress(FileExistsError):
            path.mkdir(mode=0o700)
        return checked(os.open(path, FOLDER_FLAGS), path, 0o077)
    except OSError as error:
        why = error.strerror
        if path.is_symlink() or path.parent.is_symlink():
            why = "it is a symbolic link"
        raise CredentialError(
            f"cannot keep the local credential in {path}: {why}; "
            "remove it, or set XDG_RUNTIME_DIR to a folder of yours"
        ) from None


def checked(descriptor: int, path: Path, others: int) -> int:
    """The same descriptor.  Raises: CredentialError: not our folder, or others may use it."""
    status = os.fstat(descriptor)
    if status.st_uid == os.geteuid() and not status.st_mode & others:
        return descriptor
    os.close(descriptor)
    raise CredentialError(
        f"cannot keep the local credential in {path}: it belongs to uid {status.st_uid} and has mode "
        f"{status.st_mode & 0o777:04o}; remove it, or set XDG_RUNTIME_DIR to a folder of yours"
    )
