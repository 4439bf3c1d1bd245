# SPDX-License-Identifier: GPL-2.0-or-later
"""Checksums as they are on disk: files of sums, and the record that says which of them hold."""

from __future__ import annotations

import array
import ctypes
import functools
import struct
import sys
from dataclasses import dataclass
from pathlib import Path

from iosd_host.common.acting import call_as_root
from iosd_host.common.paths import CRC32C, find_component
from iosd_host.store_tools.format.records import FormatError

__all__ = ["BLOCK", "SumsHeader", "SumsRun", "block_crcs", "crc32c", "current_run"]

BLOCK = 4096
"""Bytes that have one sum."""
VERSION = 1
BOOT_ID = Path("/proc/sys/kernel/random/boot_id")


@functools.cache
def _library() -> ctypes.CDLL:
    """The target's CRC-32C.  Raises: MissingComponent."""
    # Below /root the owner of a store, as whom root works, could not reach it.
    library = call_as_root(lambda: ctypes.CDLL(str(find_component(CRC32C))))
    library.osd_crc32c.restype = ctypes.c_uint32
    library.osd_crc32c.argtypes = (ctypes.c_uint32, ctypes.c_char_p, ctypes.c_size_t)
    library.osd_crc32c_blocks.restype = None
    library.osd_crc32c_blocks.argtypes = (ctypes.c_char_p, ctypes.c_size_t, ctypes.c_void_p)
    return library


def crc32c(data: bytes) -> int:
    """Of bytes.  Raises: MissingComponent."""
    return int(_library().osd_crc32c(0, data, len(data)))


def block_crcs(data: bytes) -> bytes:
    """Of each whole block, 4 bytes big-endian.  Raises: MissingComponent."""
    found = array.array("I", bytes(len(data) // BLOCK * 4))
    assert found.itemsize == 4
    _library().osd_crc32c_blocks(data, len(found), found.buffer_info()[0])
    if sys.byteorder == "little":
        found.byteswap()
    return found.tobytes()


@dataclass(frozen=True)
class SumsHeader:
    """How a file of sums begins; then 4 bytes for each block, 0: not known."""

    epoch: int
    sealed: bool

    BYTES = 32
    MAGIC = b"IOSDSUMS"
    _LAYOUT = struct.Struct(">8sIIII4x")

    @classmethod
    def decode(cls, data: bytes) -> SumsHeader:
        """Read it.  Raises: FormatError."""
        if len(data) < cls.BYTES:
            raise FormatError(f"{len(data)} bytes instead of a header of {cls.BYTES}")
        data = data[: cls.BYTES]
        magic, version, epoch, state, shift = cls._LAYOUT.unpack(data[:-4])
        if magic != cls.MAGIC or crc32c(data[:-4]) != int.from_bytes(data[-4:], "big"):
            raise FormatError("its header is damaged")
        if version != VERSION or 1 << shift != BLOCK:
            raise FormatError("its header is of another release")
        return cls(epoch, state == 1)


@dataclass(frozen=True)
class SumsRun:
    """The last process that had the store open."""

    epoch: int
    boot: bytes
    device: int
    inode: int

    BYTES = 40
    _LAYOUT = struct.Struct(">B3xI16sQQ")

    @classmethod
    def decode(cls, data: bytes) -> SumsRun:
        """Read it.  Raises: FormatError."""
        if len(data) != cls.BYTES or data[0] != VERSION:
            raise FormatError("the record of checksums does not decode")
        return cls(*cls._LAYOUT.unpack(data)[1:])


def current_run(data: Path) -> tuple[bytes, int, int]:
    """Record of this machine and the data directory, made now."""
    try:
        boot = bytes.fromhex(BOOT_ID.read_text(encoding="ascii").strip().replace("-", ""))
    except (OSError, ValueError):
        boot = bytes(16)
    stat = data.stat()
    return boot, stat.st_dev, stat.st_ino
