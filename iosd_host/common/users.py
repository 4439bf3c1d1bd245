# SPDX-License-Identifier: GPL-2.0-or-later
"""The users that the daemons of a target run as, where `osd target serve` was started as root.

Each target has two users of its own: one for tgtd, which owns the store, and one for its resource manager.
An attacker in one process can reach neither the other's files nor those of another target.  The ids
need no entry in /etc/passwd.  They follow from the path of the store; the owner of a folder that is
there already says which id it has, so a folder that moves keeps its users.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pwd
import shutil
import stat
from collections.abc import Collection
from pathlib import Path

__all__ = [
    "MANAGER_USER",
    "OLD_UID",
    "TARGET_USER",
    "adopt",
    "described",
    "group_of",
    "manager_uid",
    "move_folder",
    "target_uid",
    "uid_of",
]

TARGET_USER, MANAGER_USER = "iosd", "iosd-manager"  # as packages make them
OLD_UID = 64733  # of every target and manager before each had its own
# No distribution and no system service hands these out: they lie between systemd's container range
# (up to 6FFFFFFFh) and its range of foreign users (from 7FFE0000h).
FIRST, COUNT = 0x7A000000, 0x100000


def uid_of(name: str) -> int | None:
    """The id of a user that packages make; None: there is none."""
    try:
        return pwd.getpwnam(name).pw_uid
    except KeyError:
        return None


def group_of(uid: int) -> int:
    """The group a user's processes have: of the same number where the host does not know the user."""
    try:
        return pwd.getpwuid(uid).pw_gid
    except KeyError:
        return uid


def described(uid: int) -> str:
    """ "user root"; of one without a name "uid 1000", and whether it is one of ours."""
    try:
        return f"user {pwd.getpwuid(uid).pw_name}"
    except KeyError:
        return f"uid {uid}" + (" (a target or manager of iosd)" if is_ours(uid) else "")


def is_ours(uid: int) -> bool:
    """Whether a folder with this owner is one that a daemon of ours has used."""
    known = {OLD_UID, uid_of(TARGET_USER), uid_of(MANAGER_USER)}
    return uid in known or FIRST <= uid < FIRST + COUNT


def owner_of(folder: Path) -> int | None:
    """None: it is not there."""
    try:
        return folder.stat().st_uid
    except OSError:
        return None


def target_uid(data: Path) -> int | None:
    """The user of tgtd for a store: that of the folder where it is there, else one of its own.

    None: the folder belongs to somebody else and is not empty.
    """
    owner = owner_of(data)
    if owner is not None and is_ours(owner):
        return owner
    if owner is not None and (not data.is_dir() or any(data.iterdir())):
        return None
    return _derived(data, 0)


def manager_uid(data: Path, state: Path, target: int | None) -> int:
    """The user of the manager that keeps things in `state`, never that of its target."""
    owner = owner_of(state)
    if owner is not None and is_ours(owner) and owner not in (target, OLD_UID):
        return owner
    return _derived(data, 1, {target})


def _derived(data: Path, role: int, out: Collection[int | None] = ()) -> int:
    """An id that follows from the path, and that no user and no process of this host has."""
    digest = hashlib.sha256(os.fsencode(data.resolve())).digest()
    at = int.from_bytes(digest[:4], "big") * 2 % COUNT + role
    used = _in_use() | set(out)
    for step in range(0, COUNT, 2):
        uid = FIRST + (at + step) % COUNT
        if uid not in used:
            with contextlib.suppress(KeyError):
                pwd.getpwuid(uid)
                continue
            return uid
    raise OSError(f"all user ids from {FIRST} on are in use")


def _in_use() -> set[int]:
    """Users that processes run as."""
    found = set()
    with os.scandir("/proc") as entries:
        for entry in entries:
            if entry.name.isdigit():
                with contextlib.suppress(OSError):
                    found.add(entry.stat().st_uid)
    return found


def adopt(folder: Path, uid: int, gid: int, before: Collection[int]) -> None:
    """Give a folder and what is in it, if it is there, to a user where it belongs to one of `before`.

    Files of other users keep their owner: a user of `before` may have put a link there.

    Raises:
        OSError: it cannot be done.
    """
    if not folder.exists():
        return
    for _, folders, files, inside in os.fwalk(folder, follow_symlinks=False):
        for name in (".", *folders, *files):
            found = os.stat(name, dir_fd=inside, follow_symlinks=False)
            alone = stat.S_ISDIR(found.st_mode) or found.st_nlink == 1
            if found.st_uid in before and alone:
                os.chown(name, uid, gid, dir_fd=inside, follow_symlinks=False)


def move_folder(old: Path, new: Path) -> None:
    """Copy the folders and files of a folder to a new one and remove it.

    Its owner may do less than we, so nothing is read through a link, and what is neither folder nor
    file is left out.  A move that was interrupted begins anew.

    Raises:
        OSError: it cannot be done; the old folder is whole then.
    """
    work = new.with_name(f"{new.name}.moving")
    with contextlib.suppress(FileNotFoundError):
        shutil.rmtree(work)
    work.mkdir(mode=0o700)
    for path, folders, files, inside in os.fwalk(old, follow_symlinks=False):
        here = work / os.path.relpath(path, old)
        for name in folders:
            if stat.S_ISDIR(os.stat(name, dir_fd=inside, follow_symlinks=False).st_mode):
                here.joinpath(name).mkdir(mode=0o700)
        for name in files:
            _copy_file(name, inside, here / name)
    work.rename(new)
    shutil.rmtree(old, ignore_errors=True)


def _copy_file(name: str, inside: int, to: Path) -> None:
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        source = os.fdopen(os.open(name, flags, dir_fd=inside), "rb")
    except OSError:  # a link or a socket
        return
    with source:
        found = os.fstat(source.fileno())
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1:
            return
        made = os.open(to, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        with os.fdopen(made, "wb") as copy:
            shutil.copyfileobj(source, copy)
            os.fchmod(made, found.st_mode & 0o777)
            copy.flush()
            os.fsync(made)
