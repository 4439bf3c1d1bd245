# SPDX-License-Identifier: GPL-2.0-or-later
"""The rules of access, and how they decide a request.  Pure: no clock, no database.

A request is refused unless rules permit it.  Several rules together may permit one request; the
capability then has the policy access tag of those that have one, and the restrictions of all of them.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable
from dataclasses import dataclass

from pyosd.secmgr.scopes import Scope, ScopeKind
from pyosd.types import ObjectRef, ObjectType
from pyosd.wire.capability import Permission, SecurityMethod

EVERY_TARGET = "*"
DEFAULT_LIFETIME_S = 600


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

    def applies(
        self, user: str, groups: Collection[str], request: AccessRequest, now_ms: int
    ) -> bool:
        """Whether it has anything to say about a request."""
        named = self.subject in groups if self.group else self.subject == user
        return (
            named
            and self.target in (EVERY_TARGET, request.target)
            and self.scope.covers(request.obj, request.object_type)
            and (not self.until_ms or now_ms < self.until_ms)
            and bool(self.permissions & request.permissions)
            and self._is_for(request.permissions)
        )

    def _is_for(self, permissions: Permission) -> bool:
        """Whether its scope is for such requests.

        With WRITE, the partition's own key signs a capability of the partition, so it permits CHANGE
        NAMES, and neither CREATE PARTITION nor REMOVE PARTITION.
        """
        runs = Permission.FUN_EXE in permissions
        if self.scope.kind is ScopeKind.NAMES:
            return Permission.WRITE in permissions and not runs
        return self.scope.kind is not ScopeKind.ZONE or runs

    def end_ms(self, now_ms: int) -> int:
        """When a capability given now by it has to end."""
        end = now_ms + self.lifetime_s * 1000
        return min(end, self.until_ms) if self.until_ms else end


@dataclass(frozen=True)
class AccessRequest:
    """A request. tag: the object's policy access tag, or None if unknown. method: the weakest
    acceptable one.
    """

    target: str
    obj: ObjectRef
    object_type: ObjectType
    permissions: Permission
    method: SecurityMethod = SecurityMethod.CAPKEY
    tag: int | None = None


@dataclass(frozen=True)
class AllowedAccess:
    """The grant for a request. rules: ids of the rules that permit it."""

    permissions: Permission
    tag: int
    method: SecurityMethod
    end_ms: int
    rules: tuple[int, ...]


def decide(
    rules: Iterable[Rule], user: str, groups: Collection[str], request: AccessRequest, now_ms: int
) -> AllowedAccess | None:
    """The grant of exactly the requested permissions; None: the rules do not permit it.

    Among several grants, prefer no tag, then the lowest tag, then the weakest sufficient method,
    then the longest time.
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
    rules: Iterable[Rule], user: str, groups: Collection[str], request: AccessRequest, now_ms: int
) -> Permission:
    """Permissions of a refused request that no rule gives; none: rules give each, and not together."""
    lacking = request.permissions
    for rule in rules:
        if rule.applies(user, groups, request, now_ms):
            lacking &= ~rule.permissions
    return lacking


def _united(
    rules: list[Rule], request: AccessRequest, tag: int, method: SecurityMethod, now_ms: int
) -> AllowedAccess | None:
    """For each permission the rule that lasts longest."""
    best: list[Rule] = []
    for bit in request.permissions:
        having = [rule for rule in rules if bit in rule.permissions]
        if not having:
            return None
        best.append(max(having, key=lambda rule: rule.end_ms(now_ms)))
    if not best:
        return None
    return AllowedAccess(
        permissions=request.permissions,
        tag=tag,
        method=method,
        end_ms=min(rule.end_ms(now_ms) for rule in best),
        rules=tuple(sorted({rule.id for rule in best})),
    )
