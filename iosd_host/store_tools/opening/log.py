# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what recovery drops of Berkeley DB's log: it takes the first record that it cannot read for its
end.

After a kill that is right: the last record may be there in part.  But a byte that has changed makes
every later transaction disappear without a word.
"""

from __future__ import annotations

import struct
from pathlib import Path

__all__ = ["LogWatch"]

HEADER = struct.Struct("=II")
"""Of a record: offset of the one before, length.  A checksum of 4 bytes follows."""
HEADER_BYTES = 12


def last_record(data: bytes) -> tuple[int, int]:
    """Begin and end of the last record of a log file, by the headers."""
    at, before = 0, 0
    while at + HEADER_BYTES <= len(data):
        previous, length = HEADER.unpack_from(data, at)
        if length < HEADER_BYTES or at + length > len(data) or previous != before:
            break
        before, at = at, at + length
    return before, at


def written_end(data: bytes) -> int:
    """The end of what recovery should read.  A record that a kill has left in part does not count: zeros
    follow its first bytes."""
    (begin, end), whole = last_record(data), len(data.rstrip(b"\0"))
    if whole < end:
        return begin
    torn = end + HEADER_BYTES <= len(data) and whole <= end + HEADER.unpack_from(data, end)[1]
    return end if torn or whole <= end + HEADER_BYTES else whole


class LogWatch:
    """The newest file of the log, before recovery.  Raises: OSError."""

    def __init__(self, folder: Path) -> None:
        self.path = max(folder.glob("log." + "[0-9]" * 10), default=None)
        self.data = self.path.read_bytes() if self.path is not None else b""
        self.end = written_end(self.data)

    @property
    def name(self) -> str:
        """Of the file."""
        return self.path.name if self.path is not None else ""

    def dropped(self) -> str:
        """What recovery has dropped since, in words; "": nothing.  Raises: OSError."""
        if self.path is None or not self.path.exists():  # all of it was used, and it was removed
            return ""
        now = self.path.read_bytes()[: self.end]
        if now == self.data[: self.end]:
            return ""
        pairs = enumerate(zip(now, self.data, strict=False))
        at = next((number for number, (a, b) in pairs if a != b), len(now))
        return f"{self.path.name} cannot be read from byte {at} on: the changes in it are lost"
