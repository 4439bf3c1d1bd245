# SPDX-License-Identifier: GPL-2.0-or-later
"""Attribute pages of each type of object (docs/format.md).

Pure, as records.py.
"""

from __future__ import annotations

from enum import IntFlag

from iosd_host.store_tools.format.records import ALL_OBJECTS, Place, RecordType

__all__ = ["STANDARD_LAST", "Owner", "is_application_page", "owner_of", "owners"]

PARTITION_PAGES, COLLECTION_PAGES, ROOT_PAGES = 0x3000_0000, 0x6000_0000, 0x9000_0000
RESERVED_PAGES, ANY_PAGES, CURRENT_COMMAND = 0xC000_0000, 0xF000_0000, 0xFFFF_FFFE
STANDARD_LAST = 7
NOBODYS = range(0x80, 0x8000)
"""Relative to the first page of a kind."""
ALL_NUMBERS = 0xFFFF_FFFF


class Owner(IntFlag):
    """Kinds of objects an attribute can be of; several: of any of them."""

    NOBODY = 0
    USER_OBJECT = 1
    PARTITION = 2
    COLLECTION = 4
    ROOT = 8
    ANY = 15


_KINDS = (
    (PARTITION_PAGES, Owner.USER_OBJECT),
    (COLLECTION_PAGES, Owner.PARTITION),
    (ROOT_PAGES, Owner.COLLECTION),
    (RESERVED_PAGES, Owner.ROOT),
)


def owners(page: int, number: int) -> Owner:
    """Types of objects that can have an attribute."""
    if number == ALL_NUMBERS:
        return Owner.NOBODY
    if page >= ANY_PAGES:
        return Owner.ANY if page < CURRENT_COMMAND else Owner.NOBODY
    if page % PARTITION_PAGES in NOBODYS:
        return Owner.NOBODY
    return next((owner for end, owner in _KINDS if page < end), Owner.NOBODY)


def owner_of(place: Place, kind: RecordType | None) -> Owner:
    """The type of something.  kind: of its object record, if it has one."""
    if place.object_id == 0:
        return Owner.PARTITION if place.partition_id else Owner.ROOT
    is_collection = kind is RecordType.COLLECTION or place.object_id == ALL_OBJECTS
    return Owner.COLLECTION if is_collection else Owner.USER_OBJECT


def is_application_page(page: int, number: int) -> bool:
    """Whether an attribute of a user object is on none of the standard's pages."""
    return bool(owners(page, number) & Owner.USER_OBJECT) and page > STANDARD_LAST
