# SPDX-License-Identifier: GPL-2.0-or-later
"""Joining and leaving collections: a user object's Collections page says what it is in (5.14).

Not here: collections themselves, and commands on all members (collections.py).
"""

from __future__ import annotations

from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import ALL, Page

__all__ = ["join", "leave"]

NUMBERS = 0xFFFF_FF00  # 1 and up
ID_BYTES = 8


def memberships(commands: Commands, member: ObjectRef) -> dict[int, int]:
    """The collections that an object is in, by attribute number."""
    found = commands.get_attributes(member, [AttributeId(Page.USER_COLLECTIONS, ALL)])
    return {each.number: each.uint for each in found if each.number and len(each.value) == ID_BYTES}


def join(commands: Commands, collection: ObjectRef, member: ObjectRef) -> None:
    """Make an object a member; nothing happens where it is one.

    The number comes from the collection's id: two clients that join at once do not take the same one
    for two collections, which would end the first's membership.
    """
    held = memberships(commands, member)
    if collection.object_id in held.values():
        return
    tries = (1 + (collection.object_id + n) % NUMBERS for n in range(len(held) + 1))
    number = next(n for n in tries if n not in held)
    value = collection.object_id.to_bytes(ID_BYTES, "big")
    commands.set_attributes(member, [AttributeValue(Page.USER_COLLECTIONS, number, value)])


def leave(commands: Commands, collection: ObjectRef, member: ObjectRef) -> bool:
    """End an object's membership; False: there is none."""
    held = memberships(commands, member)
    numbers = [n for n, each in held.items() if each == collection.object_id]
    values = [AttributeValue(Page.USER_COLLECTIONS, n, b"") for n in numbers]
    if values:
        commands.set_attributes(member, values)
    return bool(values)
