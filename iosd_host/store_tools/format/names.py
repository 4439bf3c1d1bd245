# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of names: entries of names.db, and their other halves in named.db (docs/format.md)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from iosd_host.store_tools.format.records import FormatError, Place, RecordType

__all__ = ["NameRecord"]

_NAME_MAX = 255
_VALUE_BYTES = 9
_PARTITION = 0x02


@dataclass(frozen=True)
class NameRecord:
    """directory: object id 0 is the partition itself, and partition id 0 the root.  object: what has the
    name; a name in the root is a partition's.  type: None: a partition.
    """

    directory: Place
    name: bytes
    object: Place
    type: RecordType | None

    @property
    def entry_key(self) -> bytes:
        """In names.db."""
        return self.directory.encode() + self.name

    @property
    def entry_value(self) -> bytes:
        """In names.db."""
        if self.type is None:
            return bytes((_PARTITION,)) + self.object.partition_id.to_bytes(8, "big")
        return bytes((self.type,)) + self.object.object_id.to_bytes(8, "big")

    @property
    def named_key(self) -> bytes:
        """In named.db; the value is empty."""
        return self.object.encode() + self.directory.object_id.to_bytes(8, "big") + self.name

    @classmethod
    def of_entry(cls, key: bytes, value: bytes, incarnation: Callable[[int], int]) -> NameRecord:
        """Read a record of names.db.

        Args: incarnation: of the partition with this id, which the record does not have; 0: there is
            none.
        Raises: FormatError.
        """
        name = key[Place.BYTES :]
        if not 1 <= len(name) <= _NAME_MAX or len(value) != _VALUE_BYTES:
            raise FormatError(f"a name of {len(name)} bytes with a value of {len(value)}")
        directory, number = Place.decode(key[: Place.BYTES]), int.from_bytes(value[1:], "big")
        if value[0] == _PARTITION and directory.partition_id == 0:
            return cls(directory, name, Place(number, incarnation(number)), None)
        try:
            kind = RecordType(value[0])
        except ValueError:
            raise FormatError(f"a name of an object of type {value[0]:#x}") from None
        return cls(directory, name, directory.sibling(number), kind)

    @classmethod
    def parse_named(cls, key: bytes, epoch: int) -> tuple[Place, Place, bytes]:
        """Read a key of named.db: object, directory, name; epoch: of the root, which has the names of
        partitions.  Raises: FormatError."""
        name = key[Place.BYTES + 8 :]
        if not 1 <= len(name) <= _NAME_MAX:
            raise FormatError(f"a name of {len(name)} bytes")
        place = Place.decode(key[: Place.BYTES])
        if place.object_id == 0:
            return place, Place(0, epoch), name
        directory = place.sibling(int.from_bytes(key[Place.BYTES : Place.BYTES + 8], "big"))
        return place, directory, name
