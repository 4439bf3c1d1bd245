# SPDX-License-Identifier: GPL-2.0-or-later
"""Superblocks of folders that no target may serve: a backup, and a restore until it is whole.

They carry a feature bit.  A release that knows it says what the folder is; an earlier release refuses
the folder because it does not know the bit (docs/format.md).
"""

from __future__ import annotations

import struct
import zlib

from iosd_host.store_tools.format.superblock import Superblock

__all__ = ["is_marked", "marked"]

NOT_TO_BE_SERVED = 1 << 63
_FEATURES = struct.Struct(">Q")
_AT = 16
_CRC = 4


def marked(superblock: Superblock) -> bytes:
    """The superblock with the bit."""
    data = bytearray(superblock.encode())
    _FEATURES.pack_into(data, _AT, NOT_TO_BE_SERVED)
    data[-_CRC:] = zlib.crc32(data[:-_CRC]).to_bytes(_CRC, "big")
    return bytes(data)


def is_marked(data: bytes) -> bool:
    """Whether these are the bytes of such a superblock, and undamaged."""
    if len(data) != Superblock.BYTES or not data.startswith(Superblock.MAGIC):
        return False
    intact = zlib.crc32(data[:-_CRC]) == int.from_bytes(data[-_CRC:], "big")
    return intact and bool(_FEATURES.unpack_from(data, _AT)[0] & NOT_TO_BE_SERVED)
