# SPDX-License-Identifier: GPL-2.0-or-later
"""Records of transfers of large files: a later transfer continues one that was cut off.

A record is a file of the user: a line of JSON with facts about both ends, and for each piece of 1 MiB
that is stored here its CRC-32C.  It is locked while a transfer uses it.
"""

from __future__ import annotations

import fcntl
import hashlib
import json
import os
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyosd.user_folder import user_folder

__all__ = ["TransferFacts", "TransferRecord", "TransferRecords"]

TransferFacts = dict[str, Any]
"""About one transfer.  A record whose facts are others is of another transfer."""

_LINE_MOST = 4096
_CRC = 4


class TransferRecord:
    """The record of one transfer.  facts: of the last one, {} if there are none.

    If a record cannot be written, the transfer goes on and cannot be continued later.
    """

    def __init__(self, path: Path, descriptor: int) -> None:
        self._path, self._descriptor = path, descriptor
        data = os.pread(descriptor, os.fstat(descriptor).st_size, 0)
        line, _, rest = data.partition(b"\n")
        self._end_of_facts = len(line) + 1
        self.facts: TransferFacts = {}
        with suppress(ValueError, RecursionError):
            found = json.loads(line[:_LINE_MOST])
            self.facts = found if isinstance(found, dict) else {}
        self.checksums = [rest[at : at + _CRC] for at in range(0, len(rest) // _CRC * _CRC, _CRC)]

    def begin(self, facts: TransferFacts) -> None:
        """Begin anew."""
        self.facts, self.checksums = facts, []
        line = json.dumps(facts).encode() + b"\n"
        with suppress(OSError):
            os.ftruncate(self._descriptor, 0)
            os.pwrite(self._descriptor, line, 0)
            os.lseek(self._descriptor, len(line), os.SEEK_SET)
        self._end_of_facts = len(line)

    def keep(self, count: int) -> None:
        """Continue behind so many pieces."""
        del self.checksums[count:]
        end = self._end_of_facts + count * _CRC
        with suppress(OSError):
            os.ftruncate(self._descriptor, end)
            os.lseek(self._descriptor, end, os.SEEK_SET)

    def add(self, checksum: int) -> None:
        """One more piece is stored."""
        with suppress(OSError):
            os.write(self._descriptor, checksum.to_bytes(_CRC))

    def remove(self) -> None:
        """The transfer is complete, or cannot be continued."""
        with suppress(OSError):
            self._path.unlink()

    def close(self) -> None:
        """Let other processes have it."""
        os.close(self._descriptor)


@dataclass(frozen=True)
class TransferRecords:
    """The records of transfers with one target.  folder: None: the user's."""

    target: str
    folder: Path | None = None

    def open(self, *key: str) -> TransferRecord | None:
        """The record of what the key names.

        Returns: None: the folder cannot be written, or another process has the record.
        """
        folder, descriptor = self.folder or _folder(), -1
        text = "\0".join([self.target, *key]).encode(errors="surrogateescape")
        path = folder / hashlib.sha256(text).hexdigest()
        try:
            folder.mkdir(0o700, parents=True, exist_ok=True)
            descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW, 0o600)
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
            return TransferRecord(path, descriptor)
        except OSError:
            if descriptor >= 0:
                os.close(descriptor)
            return None


def _folder() -> Path:
    return user_folder("XDG_STATE_HOME", ".local/state") / "iosd/transfers"
