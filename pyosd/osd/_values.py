# SPDX-License-Identifier: GPL-2.0-or-later
"""Attribute values, and the list entries they travel in (OSD-2 list type 9: page 4, number 4,
reserved 6, length 2, value, padded to 8).
"""

from __future__ import annotations

import struct
from typing import TYPE_CHECKING

from ._errors import Invalid

if TYPE_CHECKING:
    from collections.abc import Iterable

__all__ = ["Attribute", "Settable", "Value", "decode_entries", "encode_entries", "encode_names"]

ENTRY = struct.Struct(">II6xH")
NAME = struct.Struct(">II")
PADDING = [bytes(-length % 8) for length in range(8)]  # by length modulo 8
VALUE_MAX = 0xFFFE
NAME_MAX = 0xFFFF_FFFE  # all ones stands for all there are
INTEGER_BYTES = 8


class Value(bytes):
    """The bytes of an attribute, which can be read as a number or as text; empty: it is not defined.

    >>> u.setattr([(10, 1, 513), (10, 2, "blue")])
    >>> (_, _, number), (_, _, text) = u.getattr([(10, 1), (10, 2)])
    >>> number.int, text.text, bytes(text)
    (513, 'blue', b'blue')
    """

    __slots__ = ()

    @property
    def int(self) -> int:
        """The value as a big-endian unsigned number of any length; 0 if it is empty.

        >>> osd.Value(b"\\x02\\x01").int
        513
        """
        return int.from_bytes(self, "big")

    @property
    def text(self) -> str:
        """The value as UTF-8 text, without zero bytes at its end.

        >>> osd.Value(b"caf\\xc3\\xa9\\0").text
        'café'

        Raises: UnicodeDecodeError, which is a ValueError.
        """
        return self.rstrip(b"\0").decode()


Attribute = tuple[int, int, Value]
Settable = str | int | bytes | bytearray | memoryview


def encode_value(value: Settable) -> bytes:
    """str as UTF-8, int as 8 bytes big-endian, bytes as they are."""
    if type(value) is bytes and len(value) <= VALUE_MAX:
        return value
    if isinstance(value, str):
        encoded = value.encode()
    elif isinstance(value, int):
        try:
            encoded = value.to_bytes(INTEGER_BYTES, "big")
        except OverflowError:
            raise Invalid("a number in an attribute is 0 to 2**64 - 1") from None
    else:
        encoded = bytes(value)
    if len(encoded) > VALUE_MAX:
        raise Invalid(f"an attribute holds at most {VALUE_MAX} bytes, not {len(encoded)}")
    return encoded


def encode_entries(attributes: Iterable[tuple[int, int, Settable]]) -> list[bytes]:
    """One entry for each (page, number, value)."""
    entries = []
    for page, number, value in attributes:
        encoded = encode_value(value)
        length = len(encoded)
        if not (0 <= page <= NAME_MAX and 0 <= number <= NAME_MAX):
            raise bad_name(page, number)
        entries.append(ENTRY.pack(page, number, length) + encoded + PADDING[length & 7])
    return entries


def encode_names(names: Iterable[tuple[int, int]]) -> list[bytes]:
    """One entry for each (page, number).  Raises: Invalid."""
    entries = []
    for page, number in names:
        if not (0 <= page <= NAME_MAX and 0 <= number <= NAME_MAX):
            raise bad_name(page, number)
        entries.append(NAME.pack(page, number))
    return entries


def bad_name(page: int, number: int) -> Invalid:
    """The error for a page or number of an attribute that is not of 32 bits."""
    return Invalid(f"{page:#x}/{number:#x} is no attribute's page and number")


def decode_entries(body: bytes) -> list[Attribute]:
    """Entries of an answer, in order."""
    entries = []
    at, last = 0, len(body) - ENTRY.size
    while at <= last:
        page, number, length = ENTRY.unpack_from(body, at)
        begin = at + ENTRY.size
        at = begin + length
        entries.append((page, number, Value(body[begin:at])))
        at += -length & 7
    return entries
