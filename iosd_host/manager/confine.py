# SPDX-License-Identifier: GPL-2.0-or-later
"""Gives up the rights that the resource manager never needs, so that an attacker who takes it over
lacks them.

The manager starts no program, has no capability, traces no process and mounts nothing.  The same list
as tgtd's (target/base/confine.c), and io_uring, which could bypass the filter.
"""

from __future__ import annotations

import ctypes
import errno
import os
import socket

__all__ = ["ConfineError", "confine", "drop_capabilities"]

PR_CAPBSET_DROP, PR_SET_DUMPABLE, PR_SET_NO_NEW_PRIVS, PR_CAP_AMBIENT = 24, 4, 38, 47
CLEAR_ALL = 4  # of PR_CAP_AMBIENT
LIBRARY = "libseccomp.so.2"  # not find_library, which starts programs
ALLOW, ERRNO = 0x7FFF0000, 0x00050000
CTL_TSYNC = 4  # the attribute: all threads
MASKED_EQ, EQUAL, AT_LEAST = 7, 4, 5
NAMESPACES = (0x80, 0x20000, 0x2000000, 0x4000000, 0x8000000, 0x10000000, 0x20000000, 0x40000000)
FAMILIES = {socket.AF_UNIX, socket.AF_INET, socket.AF_INET6, socket.AF_NETLINK}
FAMILIES_MOST = 64
DENIED = """
execve execveat fork vfork
ptrace process_vm_readv process_vm_writev process_madvise kcmp pidfd_getfd
bpf perf_event_open kexec_load kexec_file_load init_module finit_module delete_module userfaultfd
syslog reboot add_key keyctl request_key personality lookup_dcookie iopl ioperm modify_ldt
mount umount2 pivot_root chroot move_mount open_tree fsopen fsconfig fsmount fspick mount_setattr
setns unshare open_by_handle_at name_to_handle_at fanotify_init mknod mknodat quotactl quotactl_fd
swapon swapoff acct settimeofday clock_settime clock_adjtime adjtimex sethostname setdomainname
io_uring_setup io_uring_enter io_uring_register
""".split()


class ConfineError(Exception):
    """The kernel or a library refuses; the text says what."""


class Compare(ctypes.Structure):
    """struct scmp_arg_cmp."""

    _fields_ = (
        ("arg", ctypes.c_uint),
        ("op", ctypes.c_int),
        ("a", ctypes.c_uint64),
        ("b", ctypes.c_uint64),
    )


def prctl(*values: int) -> int:
    """The system call; -1: it refuses, and the errno is ctypes'."""
    arguments = [ctypes.c_ulong(each) for each in (*values, 0, 0, 0, 0)[:5]]
    return int(ctypes.CDLL(None, use_errno=True).prctl(*arguments))


def drop_capabilities() -> None:
    """Leave none that a program could give back.  As root, before the user is changed."""
    prctl(PR_CAP_AMBIENT, CLEAR_ALL)
    capability = 0
    while prctl(PR_CAPBSET_DROP, capability) == 0:
        capability += 1


def confine() -> None:
    """For this process, once; it cannot be undone.

    Raises:
        ConfineError: it cannot be done.
    """
    if prctl(PR_SET_NO_NEW_PRIVS, 1) or prctl(PR_SET_DUMPABLE, 0):
        raise ConfineError(f"cannot confine itself: {os.strerror(ctypes.get_errno())}")
    try:
        library = ctypes.CDLL(LIBRARY, use_errno=True)
    except OSError as error:
        raise ConfineError(f"{error}: apt-get install libseccomp2") from None
    library.seccomp_init.restype = ctypes.c_void_p
    library.seccomp_init.argtypes = (ctypes.c_uint32,)
    for name in ("seccomp_release", "seccomp_load"):
        getattr(library, name).argtypes = (ctypes.c_void_p,)
    library.seccomp_attr_set.argtypes = (ctypes.c_void_p, ctypes.c_int, ctypes.c_uint32)
    library.seccomp_rule_add_array.argtypes = (
        *(ctypes.c_void_p, ctypes.c_uint32, ctypes.c_int, ctypes.c_uint),
        ctypes.POINTER(Compare),
    )
    filter_ = library.seccomp_init(ALLOW)
    if not filter_:
        raise ConfineError("no memory for a seccomp filter")
    try:
        _fill(library, filter_)
        failed = library.seccomp_load(filter_)
        if failed:
            raise ConfineError(f"the kernel takes no seccomp filter: {os.strerror(-failed)}")
    finally:
        library.seccomp_release(filter_)


def _fill(library: ctypes.CDLL, filter_: int) -> None:
    def deny(name: str, error: int, *compare: Compare) -> None:
        number = library.seccomp_syscall_resolve_name(name.encode())
        if number == -1:  # newer than the library: no part of the list is vital alone
            return
        rules = (Compare * len(compare))(*compare)
        failed = library.seccomp_rule_add_array(filter_, ERRNO | error, number, len(compare), rules)
        if failed:
            raise ConfineError(f"no seccomp rule for {name}: {os.strerror(-failed)}")

    library.seccomp_attr_set(filter_, CTL_TSYNC, 1)
    for name in DENIED:
        deny(name, errno.EPERM)
    deny("clone3", errno.ENOSYS)  # its flags lie in memory; libraries use clone where there is none
    for flag in NAMESPACES:
        deny("clone", errno.EPERM, Compare(0, MASKED_EQ, flag, flag))
    for family in set(range(FAMILIES_MOST)) - FAMILIES:
        deny("socket", errno.EAFNOSUPPORT, Compare(0, EQUAL, family, 0))
    deny("socket", errno.EAFNOSUPPORT, Compare(0, AT_LEAST, FAMILIES_MOST, 0))
