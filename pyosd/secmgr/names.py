# SPDX-License-Identifier: GPL-2.0-or-later
"""Names of permissions and object types, as requests and commands have them."""

from __future__ import annotations

from collections.abc import Iterable

from pyosd.types import ObjectRef, ObjectType
from pyosd.wire.capability import Permission

__all__ = ["TYPES", "names_of", "object_type_of", "permissions_of"]

TYPES = {
    "root": ObjectType.ROOT,
    "partition": ObjectType.PARTITION,
    "collection": ObjectType.COLLECTION,
    "user": ObjectType.USER_OBJECT,
}
"""Names of object types."""


def permissions_of(names: Iterable[str]) -> Permission:
    """READ,WRITE… as one value; EXEC is another name for FUN_EXE.  Raises: ValueError."""
    found = Permission(0)
    for name in names:
        word = name.strip().upper().replace("-", "_")
        try:
            found |= Permission["FUN_EXE" if word == "EXEC" else word]
        except KeyError:
            known = ", ".join(str(each.name) for each in Permission)
            raise ValueError(f"'{name}' is no permission; there are {known}") from None
    if not found:
        raise ValueError("no permission is named")
    return found


def names_of(permissions: Permission) -> list[str]:
    """The reverse, in the order of the bits."""
    return [str(each.name) for each in Permission if each in permissions]


def object_type_of(obj: ObjectRef) -> ObjectType:
    """Default type of an address: inside a partition a user object."""
    if obj.object_id:
        return ObjectType.USER_OBJECT
    return ObjectType.PARTITION if obj.partition_id else ObjectType.ROOT
