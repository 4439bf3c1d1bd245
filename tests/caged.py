# SPDX-License-Identifier: GPL-2.0-or-later
"""`python3 -m tests.caged COMMAND...` runs a command as a container with default settings does: no new
namespaces, no mounts.  So one can try what `make test` does there.
"""

from __future__ import annotations

import ctypes
import errno
import os
import sys

ALLOW, ERRNO, MASKED_EQUAL = 0x7FFF0000, 0x00050000, 7
CLONES = b"clone", b"unshare"
"""Their first argument has the flags below.  clone3 has them in memory, where no filter sees them."""
NEW_NAMESPACES = (0x0002_0000, 0x0400_0000, 0x0800_0000, 0x1000_0000, 0x2000_0000, 0x4000_0000)


class Comparison(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (
        ("argument", ctypes.c_uint),
        ("operation", ctypes.c_int),
        ("mask", ctypes.c_uint64),
        ("value", ctypes.c_uint64),
    )


def forbid() -> None:
    """Load the filter into this process; those it starts have it too.  Raises: OSError."""
    library = ctypes.CDLL("libseccomp.so.2")
    library.seccomp_init.restype = ctypes.c_void_p
    rules = ctypes.c_void_p(library.seccomp_init(ALLOW))

    def refuse(call: bytes, error: int, *comparisons: Comparison) -> None:
        number = library.seccomp_syscall_resolve_name(call)
        array = (Comparison * len(comparisons))(*comparisons)
        code = library.seccomp_rule_add_array(rules, ERRNO | error, number, len(comparisons), array)
        if code:
            raise OSError(-code, os.strerror(-code))

    for call in CLONES:
        for flag in NEW_NAMESPACES:
            refuse(call, errno.EPERM, Comparison(0, MASKED_EQUAL, flag, flag))
    refuse(b"clone3", errno.ENOSYS)
    refuse(b"mount", errno.EPERM)
    if code := library.seccomp_load(rules):
        raise OSError(-code, os.strerror(-code))


if __name__ == "__main__":
    forbid()
    os.execvp(sys.argv[1], sys.argv[1:])
