# SPDX-License-Identifier: GPL-2.0-or-later
"""Scopes: the objects that a rule of access covers, and their notation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pyosd.types import ROOT, ObjectRef, ObjectType

__all__ = ["Kind", "Scope"]


class Kind(StrEnum):
    """The objects of a rule.  ZONE: a partition as the zone of scripts, for EXEC alone."""

    ANY = "any"
    ROOT = "root"
    PARTITION = "partition"
    OBJECT = "object"
    COLLECTION = "collection"
    OBJECTS = "objects"
    COLLECTIONS = "collections"
    ZONE = "zone"


WHOLE = {ObjectType.USER_OBJECT: Kind.OBJECTS, ObjectType.COLLECTION: Kind.COLLECTIONS}
SINGLE = {
    ObjectType.ROOT: Kind.ROOT,
    ObjectType.PARTITION: Kind.PARTITION,
    ObjectType.USER_OBJECT: Kind.OBJECT,
    ObjectType.COLLECTION: Kind.COLLECTION,
}


@dataclass(frozen=True)
class Scope:
    """A set of objects: all of a target, one, or all user objects or collections of a partition."""

    kind: Kind
    obj: ObjectRef = ROOT

    @classmethod
    def parse(cls, text: str, object_type: ObjectType | None = None) -> Scope:
        """Read ``*``, ``root``, PID, PID/OID, or PID/* for all of that type in the partition.

        object_type: of what is in a partition; None: user objects.  A partition with id 0 is one that
        is to be made.  Raises: ValueError.
        """
        if text == "*":
            return cls(Kind.ANY)
        inside = object_type or ObjectType.USER_OBJECT
        partition, slash, rest = text.partition("/")
        if slash:
            if inside not in WHOLE:
                raise ValueError(f"'{text}' is neither a user object nor a collection")
            if rest == "*":
                obj = ObjectRef.parse(partition)
                scope = cls(WHOLE[inside], obj)
            else:
                obj = ObjectRef.parse(text)
                scope = cls(SINGLE[inside], obj)
                if not obj.object_id:
                    raise ValueError(f"'{text}' has no object id")
            if not obj.partition_id:
                raise ValueError(f"'{text}' has no partition id")
            return scope
        obj = ObjectRef.parse(text)
        if obj.partition_id or object_type is ObjectType.PARTITION:
            return cls(Kind.PARTITION, obj)
        return cls(Kind.ROOT)

    def __str__(self) -> str:
        if self.kind is Kind.ANY:
            return "*"
        if self.kind in (Kind.OBJECTS, Kind.COLLECTIONS):
            return f"{self.obj.partition_id:#x}/*"
        return str(self.obj) if self.obj != ROOT or self.kind is Kind.ROOT else "0"

    def covers(self, obj: ObjectRef, object_type: ObjectType) -> bool:
        """Whether it holds for all that a capability with these fields is good for."""
        if self.kind is Kind.ANY:
            return True
        if self.kind is WHOLE.get(object_type):
            return obj.partition_id == self.obj.partition_id
        kind = Kind.PARTITION if self.kind is Kind.ZONE else self.kind
        return kind is SINGLE[object_type] and obj == self.obj
