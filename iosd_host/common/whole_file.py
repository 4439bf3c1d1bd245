# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are replaced as a whole or not at all, also by a process that is killed or a power loss;
small files in folders that belong to another user.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat
from pathlib import Path

__all__ = ["open_file", "read_small", "sync_folder", "write_whole"]

NO_FILE = (
    errno.EINVAL,
    errno.ELOOP,
    errno.ENXIO,
)  # of open_file(): the last are a link and a socket


def write_whole(path: Path, data: bytes, mode: int = 0o600) -> None:
    """Put a file with these bytes in place of what has the name, if anything.

    mode: of the file, whatever the umask is.  Raises: OSError: nothing has changed.
    """
    new = path.with_name(path.name + ".new")
    try:
        new.unlink(missing_ok=True)  # of a process that was killed
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC
        descriptor = os.open(new, flags, 0o600)
        try:
            rest = memoryview(data)
            while rest:  # a disk that is nearly full takes a part
                rest = rest[os.write(descriptor, rest) :]
            os.fchmod(descriptor, mode)
            os.fsync(descriptor)
        finally:
            os.close(descriptor)
        new.replace(path)
    except BaseException:
        with contextlib.suppress(OSError):
            new.unlink()
        raise
    sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Names made, changed or removed in it so far survive power loss."""
    descriptor = os.open(path, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def open_file(path: Path) -> int:
    """A descriptor of a file to read, in a folder whose owner may put a link, a FIFO or a device there.

    Raises: OSError: also if it is no file; nothing waits, and no link is followed.
    """
    descriptor = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    raise OSError(errno.EINVAL, "it is no file", str(path))


def read_small(path: Path, most: int) -> bytes:
    """The first bytes of a file, at most so many; b"": it is no file, as for open_file().

    Raises: OSError: it cannot be read, or is absent.
    """
    try:
        with os.fdopen(open_file(path), "rb") as file:
            return file.read(most)
    except OSError as error:
        if error.errno in NO_FILE:
            return b""
        raise
