# SPDX-License-Identifier: GPL-2.0-or-later
"""The record that says which versions of data and of members hold."""

from __future__ import annotations

import struct
from dataclasses import dataclass

from iosd_host.store_tools.format.records import FormatError

__all__ = ["VersionsRun"]

VERSION = 1


@dataclass(frozen=True)
class VersionsRun:
    """The last opening of the store.  Versions of openings before the floor count as of the floor."""

    opening: int
    floor: int
    boot: bytes
    device: int
    inode: int

    BYTES = 44
    _LAYOUT = struct.Struct(">B3xII16sQQ")

    @classmethod
    def decode(cls, data: bytes) -> VersionsRun:
        """Read it.  Raises: FormatError."""
        if len(data) != cls.BYTES or data[0] != VERSION:
            raise FormatError("the record of data versions does not decode")
        return cls(*cls._LAYOUT.unpack(data)[1:])
