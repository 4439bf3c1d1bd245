# SPDX-License-Identifier: GPL-2.0-or-later
"""The file with a store's first master key, moved out of the store as soon as the target has made it.

The key gives every right.  tgtd needs it once: its store keeps the key encrypted
from then on.  So the file lies beside the store, and belongs to the user who serves it (root, as a rule):
tgtd's user cannot read it.  Stores of earlier releases have it inside until their next start.
"""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

from iosd_host.common import logs
from iosd_host.common.whole_file import write_whole

__all__ = ["INSIDE", "take_out"]

INSIDE = "master.key"  # in the store, where the module writes it
FILE_MOST = 4096
EARLIER_MOST = 20


def take_out(data: Path, kept: Path) -> None:
    """Move the file, if it is there, and log it.  A file that cannot be moved stays, with a warning."""
    try:
        moved = _move(data, kept)
    except OSError as error:
        logs.say(
            "iosd-supervisor",
            "warning",
            f"the master key stays in {data / INSIDE}, where tgtd can read it: {error}; "
            "name a file for it with --master-key",
        )
    else:
        if moved:
            logs.say("iosd-supervisor", "info", f"the store's first master key is in {kept}")


def _move(data: Path, kept: Path) -> bool:
    """Whether it was there.  A crash leaves one of the two files, or both, and never a part of one."""
    inside = os.open(data, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
    try:
        try:
            text = _read(inside)
        except FileNotFoundError:
            return False
        _write(kept, text)
        os.unlink(INSIDE, dir_fd=inside)
        os.fsync(inside)
    finally:
        os.close(inside)
    return True


def _read(inside: int) -> bytes:
    """tgtd's user owns the folder, so nothing that it can put there may have us read another file."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    with os.fdopen(os.open(INSIDE, flags, dir_fd=inside), "rb") as file:
        found = os.fstat(file.fileno())
        owner = os.fstat(inside).st_uid
        if not stat.S_ISREG(found.st_mode) or found.st_nlink != 1 or found.st_uid != owner:
            raise PermissionError(f"{INSIDE} is not a file of the store's owner alone")
        text = file.read(FILE_MOST + 1)
    if len(text) > FILE_MOST:
        raise PermissionError(f"{INSIDE} is longer than any master key file")
    return text


def _write(kept: Path, text: bytes) -> None:
    """In place of an earlier one, which gets another name: it may be of a store that was restored."""
    with contextlib.suppress(FileNotFoundError):
        if not kept.is_symlink() and kept.read_bytes() == text:
            return
        kept.rename(_free_name(kept))
    write_whole(kept, text)


def _free_name(kept: Path) -> Path:
    """For an earlier one.  tgtd's user can have us write any text, so no file is replaced."""
    for number in range(1, EARLIER_MOST + 1):
        path = kept.with_name(f"{kept.name}.old{'' if number == 1 else number}")
        if not os.path.lexists(path):
            return path
    raise FileExistsError(f"remove {kept}.old and the like of stores that are gone")
