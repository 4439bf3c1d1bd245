# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a few system calls as another user, without another process; gives up root in a process that acts
as another user.

In the kernel each thread has its own ids; the C library changes the ids of all threads at once.  So a new
thread takes the ids of the user by system calls, calls the function, and ends.  It keeps our real and saved
ids, so that no process of that user can signal or trace it.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import TypedDict, TypeVar

__all__ = ["call_as", "call_as_root", "enclose", "program_ids"]

NUMBERS = {  # of the system calls setgroups, setresgid and setresuid
    "x86_64": (116, 119, 117),
    "aarch64": (159, 149, 147),
    "riscv64": (159, 149, 147),
}
UNCHANGED = -1
CLONE_NEWUSER = 0x1000_0000

Result = TypeVar("Result")


class ProgramIds(TypedDict, total=False):
    """Arguments of subprocess."""

    user: int
    group: int


def program_ids() -> ProgramIds:
    """Arguments of subprocess by which a program has our effective ids alone.

    Otherwise root's real id, which it would have too, lets it become root again.
    """
    if os.getuid() == os.geteuid():
        return {}
    return {"user": os.geteuid(), "group": os.getegid()}


def enclose(folder: Path) -> Path:
    """Keep our effective ids alone, for ever, and reach no file outside the folder.

    For a process with one thread.  Returns: the path of the folder from then on; as it was: the host does
    not permit to close the rest off.
    """
    uid, gid, root = os.geteuid(), os.getegid(), os.getuid() == 0
    if root:
        os.seteuid(0)
    else:  # an ordinary user may do it in a namespace
        ctypes.CDLL(None).unshare(CLONE_NEWUSER)
    with contextlib.suppress(PermissionError):
        os.chroot(folder)
        os.chdir("/")
        folder = Path()
    if root:
        os.setresgid(gid, gid, gid)
        os.setresuid(uid, uid, uid)
    return folder


def call_as(user: tuple[int, int] | None, call: Callable[[], Result]) -> Result:
    """Return the result of `call`, made with the effective ids of that user and no supplementary groups.

    The caller waits, so `call` must not block in an event loop.

    Args: user: uid and gid; None: ours.

    Raises: OSError: the kernel refuses the ids.  NotImplementedError: no system call numbers are known for
        this machine.  Else the exception of `call`.
    """
    if user is None:
        return call()
    uid, gid = user
    setgroups, setresgid, setresuid = _numbers(uid)
    ids = (setresgid, UNCHANGED, gid, UNCHANGED), (setresuid, UNCHANGED, uid, UNCHANGED)
    return _after([(setgroups, 0, 0), *ids], call)


def call_as_root(call: Callable[[], Result]) -> Result:
    """The same with the effective user id of root, in a process that root started; else `call` alone."""
    if os.getuid() != 0 or os.geteuid() == 0:
        return call()
    *_, setresuid = _numbers(0)
    return _after([(setresuid, UNCHANGED, 0, UNCHANGED)], call)


def _numbers(uid: int) -> tuple[int, int, int]:
    if platform.machine() in NUMBERS:
        return NUMBERS[platform.machine()]
    raise NotImplementedError(
        f"cannot act as user {uid}: no system call numbers are known for {platform.machine()}"
    )


def _after(changes: list[tuple[int, ...]], call: Callable[[], Result]) -> Result:
    """Return the result of `call` in a thread that has changed its ids by these system calls.

    The thread takes its ids back.  It can outlive this function by microseconds, and the C library aborts
    the process if a change of the ids of all threads fails in one of them.
    """

    def change_and_call() -> Result:
        uid, gid, groups = os.geteuid(), os.getegid(), os.getgroups()
        setgroups, setresgid, setresuid = _numbers(uid)
        try:
            for words in changes:
                _system(*words)
            return call()
        finally:
            _system(setresuid, UNCHANGED, uid, UNCHANGED)
            if os.getegid() != gid:
                _system(setresgid, UNCHANGED, gid, UNCHANGED)
            if os.getgroups() != groups:
                listed = (ctypes.c_uint32 * len(groups))(*groups)
                _system(setgroups, len(groups), ctypes.addressof(listed))

    with ThreadPoolExecutor(1) as alone:
        return alone.submit(change_and_call).result()


def _system(*words: int) -> None:
    if ctypes.CDLL(None, use_errno=True).syscall(*map(ctypes.c_long, words)):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
