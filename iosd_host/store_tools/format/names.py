# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of names: entries of names.db, and their other halves in named.db (docs/format.md)."""

from __future__ import annotations

from dataclasses import dataclass

from iosd_host.store_tools.format.records import FormatError, Place, RecordType

__all__ = ["NameRecord"]

_NAME_MAX = 255
_VALUE_BYTES = 9


@dataclass(frozen=True)
class NameRecord:
    """directory: object id 0 is the partition itself.  object: what has the name."""

    directory: Place
    name: bytes
    object: Place
    type: RecordType

    @property
    def entry_key(self) -> bytes:
        """In names.db."""
        return self.directory.encode() + self.name

    @property
    def entry_value(self) -> bytes:
        """In names.db."""
        return bytes((self.type,)) + self.object.object_id.to_bytes(8, "big")

    @property
    def named_key(self) -> bytes:
        """In named.db; the value is empty."""
        return self.object.encode() + self.directory.object_id.to_bytes(8, "big") + self.name

    @classmethod
    def of_entry(cls, key: bytes, value: bytes) -> NameRecord:
        """Read a record of names.db.  Raises: FormatError."""
        name = key[Place.BYTES :]
        if not 1 <= len(name) <= _NAME_MAX or len(value) != _VALUE_BYTES:
            raise FormatError(f"a name of {len(name)} bytes with a value of {len(value)}")
        directory = Place.decode(key[: Place.BYTES])
        try:
            kind = RecordType(value[0])
        except ValueError:
            raise FormatError(f"a name of an object of type {value[0]:#x}") from None
        return cls(directory, name, directory.sibling(int.from_bytes(value[1:], "big")), kind)

    @classmethod
    def parse_named(cls, key: bytes) -> tuple[Place, Place, bytes]:
        """Read a key of named.db: object, directory, name.  Raises: FormatError."""
        name = key[Place.BYTES + 8 :]
        if not 1 <= len(name) <= _NAME_MAX:
            raise FormatError(f"a name of {len(name)} bytes")
        place = Place.decode(key[: Place.BYTES])
        directory = place.sibling(int.from_bytes(key[Place.BYTES : Place.BYTES + 8], "big"))
        return place, directory, name
