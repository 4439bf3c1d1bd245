# SPDX-License-Identifier: GPL-2.0-or-later
"""Scopes: the objects that a rule of access covers, and their notation."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from pyosd.types import ROOT, ObjectRef, ObjectType

__all__ = ["Scope", "ScopeKind"]


class ScopeKind(StrEnum):
    """The objects of a rule.

    ZONE: a partition as the zone of scripts, for EXEC alone.  NAMES: a partition as the place of names, for
    CHANGE NAMES alone.
    """

    ANY = "any"
    ROOT = "root"
    PARTITION = "partition"
    OBJECT = "object"
    COLLECTION = "collection"
    OBJECTS = "objects"
    COLLECTIONS = "collections"
    ZONE = "zone"
    NAMES = "names"


WHOLE = {ObjectType.USER_OBJECT: ScopeKind.OBJECTS, ObjectType.COLLECTION: ScopeKind.COLLECTIONS}
SINGLE = {
    ObjectType.ROOT: ScopeKind.ROOT,
    ObjectType.PARTITION: ScopeKind.PARTITION,
    ObjectType.USER_OBJECT: ScopeKind.OBJECT,
    ObjectType.COLLECTION: ScopeKind.COLLECTION,
}


@dataclass(frozen=True)
class Scope:
    """A set of objects: all of a target, one, or all user objects or collections of a partition."""

    kind: ScopeKind
    obj: ObjectRef = ROOT

    @classmethod
    def parse(cls, text: str, object_type: ObjectType | None = None) -> Scope:
        """Read ``*``, ``root``, PID, PID/OID, or PID/* for all of that type in the partition.

        object_type: of what is in a partition; None: user objects.  A partition with id 0 is one that
        is to be made.  Raises: ValueError.
        """
        if text == "*":
            return cls(ScopeKind.ANY)
        if text.startswith("/"):
            raise ValueError(f"'{text}' is a path: rules are about ids, as 'osd ls -l' prints them")
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
            return cls(ScopeKind.PARTITION, obj)
        return cls(ScopeKind.ROOT)

    def __str__(self) -> str:
        if self.kind is ScopeKind.ANY:
            return "*"
        if self.kind in (ScopeKind.OBJECTS, ScopeKind.COLLECTIONS):
            return f"{self.obj.partition_id:#x}/*"
        return str(self.obj) if self.obj != ROOT or self.kind is ScopeKind.ROOT else "0"

    def covers(self, obj: ObjectRef, object_type: ObjectType) -> bool:
        """Whether it holds for all that a capability with these fields is good for."""
        if self.kind is ScopeKind.ANY:
            return True
        if self.kind is WHOLE.get(object_type):
            return obj.partition_id == self.obj.partition_id
        inside = self.kind in (ScopeKind.ZONE, ScopeKind.NAMES)
        kind = ScopeKind.PARTITION if inside else self.kind
        return kind is SINGLE[object_type] and obj == self.obj
