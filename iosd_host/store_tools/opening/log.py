# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what recovery drops of Berkeley DB's log: it takes the first record that it cannot read for its
end.

After a kill that is right: the last record may be there in part.  But a byte that has changed makes
every later transaction disappear without a word.
"""

from __future__ import annotations

import os
import struct
from pathlib import Path

from iosd_host.store_tools.opening.folders import ZEROS, data_of

__all__ = ["LogWatch", "trim_log"]

HEADER = struct.Struct("=II")
"""Of a record: offset of the one before, length.  A checksum of 4 bytes follows."""
HEADER_BYTES = 12
STEP = 32 << 10
"""Bytes that are compared with zeros together: rstrip takes a hundred times as long."""
LOG_ZEROS_KEPT = 1 << 20


def written_end(data: bytes) -> int:
    """The end of what recovery should read.  A record that a kill has left in part does not count: zeros
    follow its first bytes.

    Args: data: a log file up to its last byte that is not zero.
    """
    at, before, size = 0, 0, len(data)
    while at + HEADER_BYTES <= size:
        previous, length = HEADER.unpack_from(data, at)
        if length < HEADER_BYTES or at + length > size or previous != before:
            torn = size <= at + length
            return at if torn or size <= at + HEADER_BYTES else size
        before, at = at, at + length
    return at


def newest_log(folder: Path) -> Path | None:
    """The file of the log that is written to; None: there is no log."""
    return max(folder.glob("log." + "[0-9]" * 10), default=None)


def content_end(descriptor: int) -> int:
    """The end of the last byte of a file that is not zero.  Berkeley DB writes a zero at the end of a new
    log file, so that a hole of nearly 64 MiB lies before it."""
    for begin, end in reversed([*data_of(descriptor)]):
        while end > begin:
            at = max(begin, end - STEP)
            piece = os.pread(descriptor, end - at, at)
            if piece != ZEROS[: len(piece)]:
                return at + len(piece.rstrip(b"\0"))
            end = at
    return 0


def trim_log(folder: Path) -> None:
    """Cut off the zeros at the end of the newest log file: recovery would write them to the disk.

    A record may end in zeros: some blocks of it stay (target/store/bdb_log.c).
    """
    newest = newest_log(folder)
    if newest is None:
        return
    with newest.open("rb+") as file:
        end = content_end(file.fileno())
        if end and end + LOG_ZEROS_KEPT < os.fstat(file.fileno()).st_size:
            file.truncate(end + LOG_ZEROS_KEPT)


class LogWatch:
    """The newest file of the log, before recovery.  Raises: OSError."""

    def __init__(self, folder: Path) -> None:
        self.path = newest_log(folder)
        self.data = b""
        if self.path is not None:
            with self.path.open("rb") as file:
                self.data = os.pread(file.fileno(), content_end(file.fileno()), 0)
        self.end = written_end(self.data)

    @property
    def name(self) -> str:
        """Of the file."""
        return self.path.name if self.path is not None else ""

    def dropped(self) -> str:
        """The transactions that recovery has dropped since, as text; "": none.  Raises: OSError."""
        if self.path is None or not self.path.exists():  # all of it was used, and it was removed
            return ""
        with self.path.open("rb") as file:
            now = file.read(self.end)
        if now == self.data[: self.end]:
            return ""
        pairs = enumerate(zip(now, self.data, strict=False))
        at = next((number for number, (a, b) in pairs if a != b), len(now))
        return f"{self.path.name} cannot be read from byte {at} on: the changes in it are lost"
