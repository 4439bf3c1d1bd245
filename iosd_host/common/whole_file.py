# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that are replaced as a whole or not at all, also by a process that is killed or a power loss."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

__all__ = ["sync_folder", "write_whole"]


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
