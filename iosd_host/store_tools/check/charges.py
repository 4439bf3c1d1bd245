# SPDX-License-Identifier: GPL-2.0-or-later
"""Charges of the target for attributes (docs/limits.md, Space)."""

from __future__ import annotations

__all__ = ["attribute_units"]

_UNIT_BYTES = 16
_OVERHEAD = 64
_FREE_PAGES = 7
_RANGE = 0x3000_0000
_ANY = 0xF000_0000


def attribute_units(page: int, length: int) -> int:
    """Charge of an attribute: its value and 64 bytes, in units. The standard's pages are free."""
    if length == 0 or (page < _ANY and page % _RANGE < _FREE_PAGES):
        return 0
    return (length + _OVERHEAD + _UNIT_BYTES - 1) // _UNIT_BYTES
