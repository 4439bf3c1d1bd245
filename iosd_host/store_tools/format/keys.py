# SPDX-License-Identifier: GPL-2.0-or-later
"""keys.db: records of secret keys, which only the target can open, and times of nonces (docs/format.md)."""

from __future__ import annotations

import struct
from dataclasses import dataclass
from enum import IntEnum

from iosd_host.store_tools.format.records import FormatError, Place

__all__ = [
    "SEAL_BYTES",
    "KeyKind",
    "KeyName",
    "decode_identifier",
    "decode_spans",
    "use_nonces",
]

SEAL_BYTES = 32
RECORD_VERSION = 1
RECORD_BYTES = 1 + 7 + 92
VERSIONS = 16
SPANS = 8
AHEAD_MS = 10_000
"""Nonces may have been used with times so far ahead of the clock (docs/security-protocol.md)."""


class KeyKind(IntEnum):
    """Subject of a record."""

    MASTER = 1
    ROOT = 2
    PARTITION = 3
    WORKING = 4
    NONCES = 5


@dataclass(frozen=True)
class KeyName:
    """A key of the table.  Partition zero has incarnation 0 in every epoch."""

    place: Place
    kind: KeyKind
    version: int

    _LAYOUT = struct.Struct(">QIBB")

    @classmethod
    def decode(cls, key: bytes) -> KeyName:
        """Read it.  Raises: FormatError."""
        if len(key) != cls._LAYOUT.size:
            raise FormatError(f"a key of {len(key)} bytes")
        partition_id, incarnation, kind, version = cls._LAYOUT.unpack(key)
        if kind not in tuple(KeyKind) or version >= VERSIONS:
            raise FormatError(f"kind {kind}, version {version}")
        name = cls(Place(partition_id, incarnation), KeyKind(kind), version)
        above = kind in (KeyKind.MASTER, KeyKind.ROOT)
        if (above and partition_id) or (version and kind != KeyKind.WORKING):
            raise FormatError(f"a {name.kind.name.lower()} record of {name.place}")
        if not partition_id and incarnation:
            raise FormatError(f"incarnation {incarnation} of partition zero")
        return name

    def encode(self) -> bytes:
        """Write it."""
        place = self.place
        return self._LAYOUT.pack(place.partition_id, place.incarnation, self.kind, self.version)

    def __str__(self) -> str:
        return f"{self.place.partition_id:#x}"


def decode_identifier(value: bytes) -> bytes:
    """The key identifier of a key's record; the rest is sealed.  Raises: FormatError."""
    if len(value) != RECORD_BYTES or value[0] != RECORD_VERSION:
        raise FormatError(f"a record of {len(value)} bytes")
    return value[1:8]


def decode_spans(value: bytes) -> list[tuple[int, int]]:
    """First and last ms of spans in which nonces were used.  Raises: FormatError."""
    count, rest = divmod(len(value) - 1, 16)
    if rest or not 0 <= count <= SPANS or value[0] != RECORD_VERSION:
        raise FormatError(f"a record of {len(value)} bytes")
    spans = [struct.unpack_from(">QQ", value, 1 + 16 * each) for each in range(count)]
    return [(first, last) for first, last in spans]


def use_nonces(value: bytes | None, now_ms: int) -> bytes:
    """A record by which every nonce that can have been used until now counts as used.

    Args: value: the record; None: there is none.  Of a damaged one nothing is kept.
    """
    try:
        used = [] if value is None else sorted(decode_spans(value))
    except FormatError:
        used = []
    spans = [(0, now_ms + AHEAD_MS)]
    for first, last in used:
        # The clock may be behind: then more spans would be left than a record has.
        if first <= spans[-1][1] + 1 or len(spans) == SPANS:
            spans[-1] = spans[-1][0], max(spans[-1][1], last)
        else:
            spans.append((first, last))
    return bytes((RECORD_VERSION,)) + b"".join(struct.pack(">QQ", *each) for each in spans)
