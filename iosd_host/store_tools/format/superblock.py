# SPDX-License-Identifier: GPL-2.0-or-later
"""The superblock of a root, byte for byte as docs/format.md lays it down.

Pure, as records.py.
"""

from __future__ import annotations

import struct
import zlib
from dataclasses import dataclass, replace
from enum import IntEnum

from iosd_host.store_tools.format.records import VERSION, FormatError, Unknown

__all__ = ["FEATURE_SUMS", "RootRole", "Superblock"]

FEATURE_SUMS = 1
"""A feature bit: data files have checksums."""


class RootRole(IntEnum):
    """RootRole of a directory among the roots."""

    MAIN = 1
    HEADS = 2


@dataclass(frozen=True)
class Superblock:
    """The first file of a root.

    Attributes:
        opening, mark: the last opening of both roots that this root has recorded.  0: it has recorded
            none, or the store has one root.
        previous_mark, begun: of the main root: the opening before that one.  They are set while the
            other root may lack the last opening.
        features: bits, see FEATURE_SUMS.
    """

    role: RootRole
    store_id: bytes
    system_id: bytes
    head_bytes: int
    created_ms: int
    opening: int = 0
    mark: int = 0
    previous_mark: int = 0
    begun: int = 0
    features: int = 0

    BYTES = 512
    READ = BYTES + 1  # from its file: a longer one is damaged
    MAGIC = b"IOSDSTOR"
    DESIGNATOR = b"\x01\x01\x00\x10IOSD    "
    _LAYOUT = struct.Struct(">8sIIQ16s20s4xQQQQQI400x")

    @classmethod
    def decode(cls, data: bytes) -> Superblock:
        """Read it.  Raises: Unknown: intact, of another release; FormatError: damaged."""
        if len(data) != cls.BYTES:
            raise FormatError(f"it has {len(data)} bytes instead of {cls.BYTES}")
        magic, version, role, features, *fields = cls._LAYOUT.unpack(data[:-4])
        if zlib.crc32(data[:-4]) != int.from_bytes(data[-4:], "big"):
            # Of another version it may be in order: where that keeps its checksum nobody knows.
            as_ours = cls.MAGIC + VERSION.to_bytes(4, "big") + data[12:-4]
            ours = zlib.crc32(as_ours) == int.from_bytes(data[-4:], "big")
            if magic == cls.MAGIC and version != VERSION and not ours:
                raise Unknown(
                    f"format version {version}, or a damaged one, is unknown to this release"
                )
            raise FormatError("its checksum is wrong")
        if magic != cls.MAGIC:
            raise FormatError("it does not begin with IOSDSTOR")
        if version != VERSION:
            raise Unknown(f"format version {version} is unknown to this release")
        if unknown := features & ~FEATURE_SUMS:
            raise Unknown(f"feature bits {unknown:#x} are unknown to this release")
        if role not in tuple(RootRole):
            raise FormatError(f"role {role} is unknown")
        return replace(cls(RootRole(role), *fields), features=features)

    def fits(self, heads: Superblock) -> bool:
        """Whether the other root is as it was when it was together with this one last."""
        if (heads.opening, heads.mark) == (self.opening, self.mark):
            return True
        before = (self.opening - 1, self.previous_mark)
        return bool(self.begun) and (heads.opening, heads.mark) == before

    def encode(self) -> bytes:
        """Write it."""
        data = self._LAYOUT.pack(
            self.MAGIC,
            VERSION,
            self.role,
            self.features,
            self.store_id,
            self.system_id,
            self.head_bytes,
            self.created_ms,
            self.opening,
            self.mark,
            self.previous_mark,
            self.begun,
        )
        return data + zlib.crc32(data).to_bytes(4, "big")
