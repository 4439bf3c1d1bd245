# SPDX-License-Identifier: GPL-2.0-or-later
"""The names of the files with objects' data, as docs/format.md lays them down."""

from __future__ import annotations

import re
from dataclasses import dataclass

from iosd_host.store_tools.format.records import U64_MAX, FormatError, Place

__all__ = ["FileName"]


@dataclass(frozen=True, order=True)
class FileName:
    """A file below data/: the head or the tail of one generation of an object."""

    place: Place
    generation: int
    tail: bool

    _PATTERN = re.compile(
        r"([0-9a-f]{16})\.([0-9a-f]{8})/([0-9a-f]{2})/([0-9a-f]{16})\.([0-9a-f]{16})([ht])"
    )

    @property
    def folder(self) -> str:
        """The partition's directory."""
        return f"{self.place.partition_id:016x}.{self.place.incarnation:08x}"

    @property
    def path(self) -> str:
        """Relative to data/."""
        return (
            f"{self.folder}/{self.hash:02x}/{self.place.object_id:016x}."
            f"{self.generation:016x}{'t' if self.tail else 'h'}"
        )

    @property
    def hash(self) -> int:
        """The directory between."""
        return (self.place.object_id * 0x9E37_79B9_7F4A_7C15 & U64_MAX) >> 56

    @property
    def sums_path(self) -> str:
        """Of the file with its checksums."""
        return f"{self.path}s"

    @classmethod
    def parse(cls, path: str) -> FileName:
        """Read a path.  Raises: FormatError: no file of the target has this path."""
        found = cls._PATTERN.fullmatch(path)
        if found is None:
            raise FormatError("not the name of a data file")
        partition, incarnation, hash_, object_id, generation = (
            int(each, 16) for each in found.groups()[:5]
        )
        name = cls(Place(partition, incarnation, object_id), generation, found[6] == "t")
        if name.hash != hash_:
            raise FormatError("a data file in the wrong directory")
        return name
