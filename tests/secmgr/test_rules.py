# SPDX-License-Identifier: GPL-2.0-or-later
"""Rules against a model that tries every set of them; what scopes mean."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import chain, combinations

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iosd_secmgr.access.rules import EVERY_TARGET, AccessRequest, AllowedAccess, Rule, decide
from pyosd.secmgr.capabilities import signing_partition
from pyosd.secmgr.scopes import Scope, ScopeKind
from pyosd.types import ObjectRef, ObjectType, ref
from pyosd.wire.capability import Permission, SecurityMethod

NOW = 1_000_000
BITS = (Permission.READ, Permission.WRITE, Permission.GET_ATTR)
OBJECTS = {
    ObjectType.ROOT: [ref()],
    ObjectType.PARTITION: [ref(0x10000), ref(0x10001)],
    ObjectType.USER_OBJECT: [ref(0x10000), ref(0x10000, 0x10000), ref(0x10001, 0x10000)],
    ObjectType.COLLECTION: [ref(0x10000), ref(0x10000, 0x10000)],
}
permissions = st.lists(st.sampled_from(BITS), min_size=1).map(
    lambda bits: Permission(sum(set(bits)))
)
scopes = st.sampled_from(
    [
        Scope(ScopeKind.ANY),
        Scope(ScopeKind.ROOT),
        *(Scope(ScopeKind.PARTITION, ref(each)) for each in (0x10000, 0x10001)),
        *(Scope(ScopeKind.OBJECT, ref(each, 0x10000)) for each in (0x10000, 0x10001)),
        *(Scope(ScopeKind.OBJECTS, ref(each)) for each in (0x10000, 0x10001)),
        Scope(ScopeKind.COLLECTION, ref(0x10000, 0x10000)),
        Scope(ScopeKind.COLLECTIONS, ref(0x10000)),
    ]
)
methods = st.sampled_from(list(SecurityMethod)[1:])
rules = st.builds(
    Rule,
    subject=st.sampled_from(["alice", "bob"]),
    group=st.booleans(),
    target=st.sampled_from([EVERY_TARGET, "one", "two"]),
    scope=scopes,
    permissions=permissions,
    tag=st.sampled_from([0, 0, 5, 6]),
    until_ms=st.sampled_from([0, 0, NOW, NOW + 1, NOW + 5000]),
    lifetime_s=st.sampled_from([1, 10, 600]),
    method=methods,
)
requests = (
    st.sampled_from([(kind, obj) for kind, objects in OBJECTS.items() for obj in objects])
    .flatmap(
        lambda found: st.tuples(st.just(found), permissions, methods, st.sampled_from([None, 0, 5]))
    )
    .map(lambda f: AccessRequest("one", f[0][1], f[0][0], f[1], f[2], f[3]))
)


def covers(scope: Scope, obj: ObjectRef, kind: ObjectType) -> bool:
    """Every object that a capability stands for is one of the rule's."""
    if scope.kind is ScopeKind.ANY:
        return True
    if scope.kind is ScopeKind.ROOT:
        return kind is ObjectType.ROOT
    if scope.kind is ScopeKind.PARTITION:
        return kind is ObjectType.PARTITION and obj.partition_id == scope.obj.partition_id
    wanted = ObjectType.USER_OBJECT
    if scope.kind in (ScopeKind.COLLECTION, ScopeKind.COLLECTIONS):
        wanted = ObjectType.COLLECTION
    if kind is not wanted or obj.partition_id != scope.obj.partition_id:
        return False
    if scope.kind in (ScopeKind.OBJECTS, ScopeKind.COLLECTIONS):
        return True
    return obj.object_id != 0 and obj.object_id == scope.obj.object_id


def subsets(found: list[Rule]) -> Iterable[tuple[Rule, ...]]:
    return chain.from_iterable(combinations(found, size) for size in range(1, len(found) + 1))


def model(
    rules: list[Rule], user: str, groups: set[str], asked: AccessRequest
) -> tuple[int, ...] | None:
    """The best of all sets of rules that give it: (tag, method, minus the end)."""
    usable = [
        rule
        for rule in rules
        if (rule.subject in groups if rule.group else rule.subject == user)
        and rule.target in ("*", asked.target)
        and covers(rule.scope, asked.obj, asked.object_type)
        and not (rule.until_ms and rule.until_ms <= NOW)
    ]
    outcomes = []
    for chosen in subsets(usable):
        given = Permission(0)
        for rule in chosen:
            given |= rule.permissions
        tags = {rule.tag for rule in chosen} - {0}
        if asked.permissions not in given or len(tags) > 1:
            continue
        tag = max(tags, default=0)
        if asked.tag is not None:
            if tag not in (0, asked.tag):
                continue
            tag = asked.tag
        ends = [
            min(NOW + rule.lifetime_s * 1000, rule.until_ms or NOW + rule.lifetime_s * 1000)
            for rule in chosen
        ]
        method = max(asked.method, *(rule.method for rule in chosen))
        outcomes.append((tag, int(method), -min(ends)))
    return min(outcomes, default=None)


@settings(max_examples=250)
@given(st.lists(rules, max_size=7), st.sets(st.sampled_from(["alice", "bob"])), requests)
def test_decisions_are_the_models(
    found: list[Rule], groups: set[str], asked: AccessRequest
) -> None:
    grant = decide(found, "alice", groups, asked, NOW)
    shown = grant and (grant.tag, int(grant.method), -grant.end_ms)
    assert shown == model(found, "alice", groups, asked)
    if grant is not None:
        assert grant.permissions == asked.permissions


def test_nothing_is_permitted_without_a_rule() -> None:
    asked = AccessRequest("one", ref(0x10000, 0x10000), ObjectType.USER_OBJECT, Permission.READ)
    assert decide([], "alice", {"admin"}, asked, NOW) is None


def test_one_object_is_not_all_of_them() -> None:
    one = Rule("alice", False, "one", Scope.parse("0x10000/0x10000"), Permission.READ)
    whole = AccessRequest("one", ref(0x10000), ObjectType.USER_OBJECT, Permission.READ)
    assert decide([one], "alice", (), whole, NOW) is None


NAMES = Permission.CREATE | Permission.WRITE | Permission.REMOVE


@pytest.mark.parametrize(
    ("asked", "given"),
    [
        (NAMES, True),
        (NAMES | Permission.READ, True),
        (Permission.WRITE | Permission.REMOVE, True),
        (Permission.REMOVE, False),
        (Permission.CREATE, False),
        (Permission.CREATE | Permission.REMOVE, False),
        (NAMES | Permission.FUN_EXE, False),
        (NAMES | Permission.SET_ATTR, False),
    ],
)
def test_names_are_changed_inside_a_partition(asked: Permission, given: bool) -> None:
    """What a rule of names gives is signed by the partition's key: the partition itself stays."""
    place = ref(0x10000)
    found = [
        Rule("alice", False, "one", Scope(ScopeKind.NAMES, place), NAMES, id=1),
        Rule("alice", False, "one", Scope(ScopeKind.PARTITION, place), Permission.READ, id=2),
        Rule("alice", False, "one", Scope(ScopeKind.ZONE, place), Permission.FUN_EXE, id=3),
    ]
    request = AccessRequest("one", place, ObjectType.PARTITION, asked)
    grant = decide(found, "alice", (), request, NOW)
    assert (grant is not None) is given
    if grant is not None:
        assert signing_partition(place, ObjectType.PARTITION, grant.permissions) == 0x10000


def test_rules_of_two_tags_do_not_add_up() -> None:
    every = Scope.parse("0x10000/*")
    read = Rule("alice", False, "*", every, Permission.READ, tag=5, id=1)
    write = Rule("alice", False, "*", every, Permission.WRITE, tag=6, id=2)
    both = Permission.READ | Permission.WRITE
    asked = AccessRequest("one", ref(0x10000, 0x10000), ObjectType.USER_OBJECT, both)
    assert decide([read, write], "alice", (), asked, NOW) is None
    untagged = Rule("alice", False, "*", every, Permission.WRITE, id=3)
    grant = decide([read, write, untagged], "alice", (), asked, NOW)
    assert grant == AllowedAccess(both, 5, SecurityMethod.CAPKEY, NOW + 600_000, (1, 3))


@pytest.mark.parametrize(
    ("text", "kind", "scope"),
    [
        ("*", None, Scope(ScopeKind.ANY)),
        ("root", None, Scope(ScopeKind.ROOT)),
        ("0", ObjectType.PARTITION, Scope(ScopeKind.PARTITION)),
        ("65536", None, Scope(ScopeKind.PARTITION, ref(65536))),
        ("0x10000/*", None, Scope(ScopeKind.OBJECTS, ref(0x10000))),
        ("0x10000/*", ObjectType.COLLECTION, Scope(ScopeKind.COLLECTIONS, ref(0x10000))),
        ("0x10000/0x10001", None, Scope(ScopeKind.OBJECT, ref(0x10000, 0x10001))),
    ],
)
def test_scopes_are_written_as_they_are_read(
    text: str, kind: ObjectType | None, scope: Scope
) -> None:
    assert Scope.parse(text, kind) == scope
    assert Scope.parse(str(scope), kind) == scope


@pytest.mark.parametrize("text", ["", "x", "0x10000/", "0/*", "0x10000/0", "*/*", "1/2/3", "-1"])
def test_what_is_no_scope(text: str) -> None:
    with pytest.raises(ValueError, match=r"' (is not|has no) "):
        Scope.parse(text)


def test_a_path_is_no_scope() -> None:
    with pytest.raises(ValueError, match="'/lab' is a path: rules are about ids"):
        Scope.parse("/lab")
