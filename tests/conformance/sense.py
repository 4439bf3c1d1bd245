# SPDX-License-Identifier: GPL-2.0-or-later
"""Sense data taken apart by a reader of the suite's own, and what a refusal has to look like.

Lives here: the descriptor format (osd2-wire 7), checks of its form.  Not here: which refusal a
cell expects.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field

RECOVERED, NOT_READY, ILLEGAL, DATA_PROTECT, MISCOMPARE = 1, 2, 5, 7, 14
INVALID_FIELD_IN_CDB = 0x2400
INVALID_OPCODE = 0x2000
LIST_LENGTH_ERROR = 0x1A00
INVALID_FIELD_IN_LIST = 0x2600
NOT_EMPTY = 0x2C0A
ANOTHER_VERSION = 0x1D00
QUOTA_ERROR = 0x5507
READ_PAST_END = 0x3B17
JOB_IN_WAY = 0x8011


class Malformed(ValueError):
    """Sense data that break the format; the text says how."""


@dataclass(frozen=True)
class Sense:
    """Descriptor-format sense data.  pointer: the CDB byte pointed at; data_pointer: one of Data-Out."""

    key: int
    code: int
    kinds: tuple[int, ...] = ()
    pointer: int | None = None
    data_pointer: int | None = None
    information: int | None = None
    identified: tuple[int, int] | None = None
    not_initiated: int = 0
    completed: int = 0
    attributes: tuple[tuple[int, int], ...] = field(default=())

    def __str__(self) -> str:
        where = "" if self.pointer is None else f" at CDB byte {self.pointer}"
        if self.data_pointer is not None:
            where = f" at Data-Out byte {self.data_pointer}"
        names = "".join(f", attribute {page:X}h #{number:X}h" for page, number in self.attributes)
        return f"{self.key:X}/{self.code >> 8:02X}/{self.code & 0xFF:02X}{where}{names}"


def _descriptors(data: bytes) -> list[tuple[int, bytes]]:
    found, at = [], 8
    while at < len(data):
        if at + 2 > len(data) or at + 2 + data[at + 1] > len(data):
            raise Malformed(f"a descriptor at byte {at} runs past the end")
        found.append((data[at], data[at : at + 2 + data[at + 1]]))
        at += 2 + data[at + 1]
    return found


LENGTHS = {0x00: 12, 0x01: 12, 0x02: 8, 0x06: 32, 0x07: 34}


def decode(data: bytes) -> Sense:
    """Take sense data apart.

    Raises: Malformed: not descriptor format, or lengths that do not add up.
    """
    if len(data) < 8:
        raise Malformed(f"{len(data)} bytes of sense data, fewer than the header's 8")
    if data[0] not in (0x72, 0x73):
        raise Malformed(f"response code {data[0]:02X}h, not the descriptor format 72h")
    if len(data) != 8 + data[7] or len(data) > 252:
        raise Malformed(f"{len(data)} bytes, ADDITIONAL SENSE LENGTH {data[7]}")
    parts = _descriptors(data)
    for kind, body in parts:
        if kind in LENGTHS and len(body) != LENGTHS[kind]:
            raise Malformed(f"descriptor {kind:02X}h of {len(body)} bytes, not {LENGTHS[kind]}")
    kinds = tuple(kind for kind, _ in parts)
    if len(set(kinds)) != len(kinds):
        raise Malformed("a descriptor type occurs twice")
    if 0x08 in kinds and kinds[-1] != 0x08:
        raise Malformed("descriptor 08h is not the last")
    found = Sense(data[1] & 0xF, data[2] << 8 | data[3], kinds)
    return _with_bodies(found, dict(parts))


def _with_bodies(head: Sense, bodies: dict[int, bytes]) -> Sense:
    pointer = data_pointer = information = identified = None
    not_initiated = completed = 0
    attributes: tuple[tuple[int, int], ...] = ()
    if body := bodies.get(0x01):
        (information,) = struct.unpack_from(">Q", body, 4)
    if body := bodies.get(0x02):
        flags, at = struct.unpack_from(">BH", body, 4)
        if flags & 0x80:
            pointer, data_pointer = (at, None) if flags & 0x40 else (None, at)
    if body := bodies.get(0x06):
        not_initiated, completed, pid, oid = struct.unpack_from(">IIQQ", body, 8)
        identified = (pid, oid)
    if body := bodies.get(0x08):
        attributes = tuple(struct.iter_unpack(">II", body[4 : len(body) - (len(body) - 4) % 8]))
    return Sense(
        *(head.key, head.code, head.kinds, pointer, data_pointer, information, identified),
        *(not_initiated, completed, attributes),
    )
