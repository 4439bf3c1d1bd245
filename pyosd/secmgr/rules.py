# SPDX-License-Identifier: GPL-2.0-or-later
"""May they? The rules of access and how a request is judged by them. Pure: no clock, no database.

Nothing is permitted but by a rule. What is asked for may be put together from several rules; the
capability then has the policy access tag of those that have one, and every restriction of those
it stands on.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass
from enum import StrEnum

from pyosd.credentials import Permission, SecurityMethod
from pyosd.types import ROOT, ObjectRef, ObjectType, ref

EVERY_TARGET = "*"
DEFAULT_LIFETIME_S = 600


class Kind(StrEnum):
    """What a rule is about.  ZONE: a partition as the zone of scripts, for EXEC alone."""

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
    """Which objects: all of a target, one, or all user objects or collections of a partition."""

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


@dataclass(frozen=True)
class Rule:
    """Somebody may do something.

    group: whether `subject` is one.  target: a name, or * for all.  tag: the policy access tag that
    capabilities by this rule carry; 0: none.  until_ms: when it ends, 0: never.
    lifetime_s: the longest a capability by it may last.  method: the least.
    """

    subject: str
    group: bool
    target: str
    scope: Scope
    permissions: Permission
    tag: int = 0
    until_ms: int = 0
    lifetime_s: int = DEFAULT_LIFETIME_S
    method: SecurityMethod = SecurityMethod.CAPKEY
    id: int = 0

    def applies(self, user: str, groups: Collection[str], request: Request, now_ms: int) -> bool:
        """Whether it has anything to say about a request."""
        named = self.subject in groups if self.group else self.subject == user
        return (
            named
            and self.target in (EVERY_TARGET, request.target)
            and self.scope.covers(request.obj, request.object_type)
            and (not self.until_ms or now_ms < self.until_ms)
            and bool(self.permissions & request.permissions)
            and (self.scope.kind is not Kind.ZONE or Permission.FUN_EXE in request.permissions)
        )

    def end_ms(self, now_ms: int) -> int:
        """When a capability given now by it has to end."""
        end = now_ms + self.lifetime_s * 1000
        return min(end, self.until_ms) if self.until_ms else end


@dataclass(frozen=True)
class Request:
    """What is asked for.

    tag: the object's policy access tag where it is known; None: it is not.
    method: the least wanted.
    """

    target: str
    obj: ObjectRef
    object_type: ObjectType
    permissions: Permission
    method: SecurityMethod = SecurityMethod.CAPKEY
    tag: int | None = None


@dataclass(frozen=True)
class Grant:
    """What a request may be given; rules: ids of those it stands on."""

    permissions: Permission
    tag: int
    method: SecurityMethod
    end_ms: int
    rules: tuple[int, ...]


def decide(
    rules: Iterable[Rule], user: str, groups: Collection[str], request: Request, now_ms: int
) -> Grant | None:
    """What the rules give, exactly the permissions asked for; None: they do not give it.

    Where there is a choice: no tag rather than one (the lowest), then the weakest method that
    is enough, then the longest time.
    """
    found = [rule for rule in rules if rule.applies(user, groups, request, now_ms)]
    tags = sorted({0, *(rule.tag for rule in found)}) if request.tag is None else [request.tag]
    for tag in tags:
        for method in SecurityMethod:
            if method < request.method:
                continue
            usable = [rule for rule in found if rule.tag in (0, tag) and rule.method <= method]
            grant = _united(usable, request, tag, method, now_ms)
            if grant is not None:
                return grant
    return None


def missing(
    rules: Iterable[Rule], user: str, groups: Collection[str], request: Request, now_ms: int
) -> Permission:
    """Permissions of a refused request that no rule gives; none: rules give each, and not together."""
    lacking = request.permissions
    for rule in rules:
        if rule.applies(user, groups, request, now_ms):
            lacking &= ~rule.permissions
    return lacking


def _united(
    rules: list[Rule], request: Request, tag: int, method: SecurityMethod, now_ms: int
) -> Grant | None:
    """For each permission the rule that lasts longest."""
    best: list[Rule] = []
    for bit in request.permissions:
        having = [rule for rule in rules if bit in rule.permissions]
        if not having:
            return None
        best.append(max(having, key=lambda rule: rule.end_ms(now_ms)))
    if not best:
        return None
    return Grant(
        permissions=request.permissions,
        tag=tag,
        method=method,
        end_ms=min(rule.end_ms(now_ms) for rule in best),
        rules=tuple(sorted({rule.id for rule in best})),
    )


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
    """What an address is where nobody says it: inside a partition a user object."""
    if obj.object_id:
        return ObjectType.USER_OBJECT
    return ObjectType.PARTITION if obj.partition_id else ObjectType.ROOT


def partition_of(obj: ObjectRef) -> ObjectRef:
    """The partition something is in."""
    return ref(obj.partition_id)
