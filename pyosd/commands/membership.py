# SPDX-License-Identifier: GPL-2.0-or-later
"""Joining and leaving collections: a user object's Collections page says what it is in (5.14).

Not here: collections themselves, and commands on all members (collections.py).
"""

from __future__ import annotations

from pyosd.commands.attributes import get_attributes, set_attributes
from pyosd.commands.dialogue import Dialogue
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import ALL, Page

NUMBERS = 0xFFFF_FF00  # 1 and up
ID_BYTES = 8


def memberships(member: ObjectRef) -> Dialogue[dict[int, int]]:
    """The collections that an object is in, by attribute number."""
    found = yield from get_attributes(member, [AttributeId(Page.USER_COLLECTIONS, ALL)])
    return {each.number: each.uint for each in found if each.number and len(each.value) == ID_BYTES}


def add_member(collection: ObjectRef, member: ObjectRef) -> Dialogue[None]:
    """Make a user object a member of a collection; nothing happens if it is one.

    The number comes from the collection's id: two clients that join at once do not take the same one
    for two collections, which would end the first's membership.
    """
    held = yield from memberships(member)
    if collection.object_id in held.values():
        return
    tries = (1 + (collection.object_id + n) % NUMBERS for n in range(len(held) + 1))
    number = next(n for n in tries if n not in held)
    value = collection.object_id.to_bytes(ID_BYTES, "big")
    yield from set_attributes(member, [AttributeValue(Page.USER_COLLECTIONS, number, value)])


def remove_member(collection: ObjectRef, member: ObjectRef) -> Dialogue[bool]:
    """End an object's membership.  Returns: False: it was no member."""
    held = yield from memberships(member)
    numbers = [n for n, each in held.items() if each == collection.object_id]
    values = [AttributeValue(Page.USER_COLLECTIONS, n, b"") for n in numbers]
    if values:
        yield from set_attributes(member, values)
    return bool(values)
