# SPDX-License-Identifier: GPL-2.0-or-later
"""The folders of a running supervisor: its sockets, and its copies of tgtd and the module.

    /run/iosd-XXXXXXXX/.supervisor    locked while the supervisor lives

A supervisor removes its folders when it ends. One that was killed cannot, so each start removes the
folders of this user whose lock is free.  They may lie in /tmp beside stores and backups, whose locks have
another name.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import shutil
import stat
import tempfile
from pathlib import Path

__all__ = ["RunFolder"]

PREFIX = "iosd-"
LOCK = ".supervisor"


class RunFolder:
    """A new folder, until remove() or the next start after the end of this process.

    Args: root: the folder to make it in.  Raises: OSError.
    """

    def __init__(self, root: str) -> None:
        remove_left_over(root)
        self.path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=root))
        new = self.path / f"{LOCK}.new"
        self._lock = os.open(new, os.O_RDWR | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
        fcntl.flock(self._lock, fcntl.LOCK_EX)
        new.rename(self.path / LOCK)  # it appears locked, so nobody takes us for dead

    def remove(self) -> None:
        """Remove it with all that it holds."""
        shutil.rmtree(self.path, ignore_errors=True)
        os.close(self._lock)


def remove_left_over(root: str) -> None:
    """Remove the folders of supervisors of this user that have died."""
    for path in Path(root).glob(f"{PREFIX}*"):
        with contextlib.suppress(OSError):
            remove_if_dead(path)


def remove_if_dead(path: Path) -> None:
    """Raises: OSError: it is no such folder, or a process has its lock."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid():
        return
    lock = os.open(path / LOCK, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        shutil.rmtree(path, ignore_errors=True)
    finally:
        os.close(lock)
