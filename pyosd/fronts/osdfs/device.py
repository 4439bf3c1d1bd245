# SPDX-License-Identifier: GPL-2.0-or-later
"""Mount and unmount: with CAP_SYS_ADMIN by mount(2), else by the program fusermount3."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import os
import shutil
import socket
import stat
import subprocess
from pathlib import Path

__all__ = ["attach", "detach", "device_number", "is_attached", "set_read_ahead"]

DEVICE = Path("/dev/fuse")
_NOSUID, _NODEV, _DETACH = 0x2, 0x4, 0x2
_HELPER = "fusermount3"
_FSNAME_MOST = 200


def attach(place: Path, name: str, *, others: bool) -> int:
    """Mount a file system on a directory.

    Args:
        name: shown as the device of the mount.
        others: users other than this one may use it.

    Returns: the descriptor that requests are read from, non-blocking.
    Raises: OSError: it cannot be mounted; its text says why.
    """
    if not DEVICE.exists():
        raise OSError(
            errno.ENODEV, f"this kernel has no FUSE: '{DEVICE}' is missing (modprobe fuse)"
        )
    if b"fuse.osdfs" in (_mounted_on(place) or []):
        text = "'osd mount' has mounted here already: umount it first, or name another directory"
        raise OSError(errno.EBUSY, text, str(place))
    if not place.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, "the mount point is not a directory", str(place))
    shown = name.replace(",", "_").replace("\\", "_")[:_FSNAME_MOST]
    if os.geteuid() == 0:
        fd = _mount(place, shown, others=others)
    else:
        fd = _mount_by_helper(place, shown, others=others)
    os.set_blocking(fd, False)
    return fd


def detach(place: Path, *, lazy: bool = False) -> bool:
    """Unmount; lazy: also if it is in use, as soon as it no longer is.  Returns: whether it did."""
    if os.geteuid() == 0:
        libc = ctypes.CDLL(None, use_errno=True)
        return bool(libc.umount2(os.fsencode(place), _DETACH if lazy else 0) == 0)
    command = [_HELPER, "-u", *(["-z"] if lazy else []), "--", str(place)]
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


def device_number(place: Path) -> str:
    """The number of the device that is mounted on a directory, as text.  Asks nothing of the file system.

    place: without symbolic links.  Raises: OSError: none is.
    """
    found = _mounted_on(place)
    if found is None:
        raise OSError(errno.EINVAL, "nothing is mounted here", str(place))
    return found[2].decode()


def set_read_ahead(number: str, length: int) -> None:
    """Let the kernel read so many bytes ahead, if it permits that; its default is 128 KiB.

    number: of the device.
    """
    with contextlib.suppress(OSError):
        Path(f"/sys/class/bdi/{number}/read_ahead_kb").write_text(str(length >> 10))


def is_attached(number: str) -> bool:
    """Whether a device is mounted anywhere this process can see.  Asks nothing of the file system."""
    return any(each[2] == number.encode() for each in _mounts())


def _mounted_on(place: Path) -> list[bytes] | None:
    """The line of the uppermost mount on a directory; None: there is none."""
    where = os.fsencode(place)
    found = [
        each for each in _mounts() if each[4].decode("unicode_escape").encode("latin-1") == where
    ]
    return found[-1] if found else None


def _mounts() -> list[list[bytes]]:
    return [line.split() for line in Path("/proc/self/mountinfo").read_bytes().splitlines()]


def _options(*, others: bool) -> list[str]:
    return ["default_permissions", *(["allow_other"] if others else [])]


def _mount(place: Path, name: str, *, others: bool) -> int:
    fd = os.open(DEVICE, os.O_RDWR | os.O_CLOEXEC)
    mode = stat.S_IFMT(place.stat().st_mode)
    identity = [
        f"fd={fd}",
        f"rootmode={mode:o}",
        f"user_id={os.getuid()}",
        f"group_id={os.getgid()}",
    ]
    options = ",".join([*identity, *_options(others=others)]).encode()
    libc = ctypes.CDLL(None, use_errno=True)
    where = os.fsencode(place)
    if libc.mount(name.encode(), where, b"fuse.osdfs", _NOSUID | _NODEV, options) == 0:
        return fd
    number = ctypes.get_errno()
    os.close(fd)
    raise OSError(number, f"cannot mount: {os.strerror(number)}", str(place))


def _mount_by_helper(place: Path, name: str, *, others: bool) -> int:
    if not shutil.which(_HELPER):
        raise OSError(
            errno.ENOENT, f"'{_HELPER}' is missing: install the package fuse3, or be root"
        )
    ours, its = socket.socketpair()
    options = ",".join([f"fsname={name}", "subtype=osdfs", *_options(others=others)])
    with ours, its:
        done = subprocess.run(
            [_HELPER, "-o", options, "--", str(place)],
            env={**os.environ, "_FUSE_COMMFD": str(its.fileno())},
            pass_fds=[its.fileno()],
            stderr=subprocess.PIPE,
            text=True,
            check=False,
        )
        if done.returncode:
            raise OSError(errno.EPERM, done.stderr.strip() or "cannot mount", str(place))
        _, found, _, _ = socket.recv_fds(ours, 1, 1)
    os.set_inheritable(found[0], False)
    return found[0]
