# SPDX-License-Identifier: GPL-2.0-or-later
"""Acting as another user for a few system calls, without a process for them.

The kernel keeps the ids of each thread apart, where the C library changes those of all threads at once.
So a thread of its own takes the ids of the user, makes the calls, and ends.  Its real and saved ids stay
ours: no process of that user can signal or trace it.
"""

from __future__ import annotations

import ctypes
import os
import platform
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

__all__ = ["call_as"]

# Numbers of system calls; those of aarch64 and riscv64 are the same.
SETGROUPS, SETRESGID, SETRESUID = {"x86_64": (116, 119, 117)}.get(
    platform.machine(), (159, 149, 147)
)
UNCHANGED = -1

Result = TypeVar("Result")


def call_as(user: tuple[int, int] | None, call: Callable[[], Result]) -> Result:
    """Return what `call` does, made with the effective ids of that user, and no supplementary groups.

    Args: user: uid and gid; None: ours.

    Raises: OSError: the kernel does not let us; else what `call` raises.
    """
    if user is None:
        return call()
    uid, gid = user

    def become_and_call() -> Result:
        _system(SETGROUPS, 0, 0)
        _system(SETRESGID, UNCHANGED, gid, UNCHANGED)
        _system(SETRESUID, UNCHANGED, uid, UNCHANGED)
        return call()

    with ThreadPoolExecutor(1) as alone:
        return alone.submit(become_and_call).result()


def _system(*words: int) -> None:
    if ctypes.CDLL(None, use_errno=True).syscall(*map(ctypes.c_long, words)):
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
