# SPDX-License-Identifier: GPL-2.0-or-later
"""Hardens the process that has the keys: no core dumps, and no other process can read its memory."""

from __future__ import annotations

import ctypes
import os
import resource
import socket
from pathlib import Path

from pyosd.secmgr.errors import SecmgrError

PR_SET_DUMPABLE = 4


def harden() -> None:
    """No core dumps, no ptrace by others of the same user, files for the owner alone.

    Raises: SecmgrError: the kernel will not.
    """
    os.umask(0o077)
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.prctl(PR_SET_DUMPABLE, 0, 0, 0, 0) != 0:
        raise SecmgrError(f"prctl: {os.strerror(ctypes.get_errno())}")


def become_owner(folder: Path) -> None:
    """Root becomes the user that owns the folder, who could lead root elsewhere by links in it."""
    if os.geteuid() != 0 or not folder.is_dir():
        return
    owner = folder.stat()
    if owner.st_uid:
        os.setgroups([])
        os.setresgid(*[owner.st_gid] * 3)
        os.setresuid(*[owner.st_uid] * 3)


def tell_systemd(text: str) -> None:
    """READY=1 and the like, where systemd wants to know."""
    path = os.environ.get("NOTIFY_SOCKET")
    if not path:
        return
    address = "\0" + path[1:] if path.startswith("@") else path
    with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as notify:
        notify.sendto(text.encode(), address)
