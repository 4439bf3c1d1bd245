# SPDX-License-Identifier: GPL-2.0-or-later
"""Roles: the rules that a user needs in a partition for one kind of work.  Pure.

A role is a name for rules, made together; afterwards each is a rule like any other.
"""

from __future__ import annotations

from typing import NamedTuple

from pyosd.secmgr.scopes import Scope, ScopeKind
from pyosd.types import JOBS_COLLECTION, ObjectRef, ref
from pyosd.wire.capability import JOB_RIGHTS, READ_ONLY, Permission

__all__ = ["ROLES", "Role", "rules_of"]

_A = Permission
_LOOK = _A.READ | _A.GET_ATTR | _A.M_OBJECT
_CHANGE = _A.WRITE | _A.APPEND | _A.CREATE | _A.REMOVE | _A.SET_ATTR | _A.OBJ_MGMT
_FOLLOW = ((ScopeKind.COLLECTION, _A.GET_ATTR | _A.M_OBJECT),)  # the collection of jobs: one's own
_READ = (
    (ScopeKind.PARTITION, _LOOK),
    (ScopeKind.OBJECTS, _A.READ | _A.GET_ATTR),
    (ScopeKind.COLLECTIONS, _LOOK | _A.QUERY),
)
_WRITE = (
    (ScopeKind.PARTITION, _LOOK | _A.OBJ_MGMT),
    (ScopeKind.OBJECTS, _A.READ | _A.GET_ATTR | _CHANGE),
    (ScopeKind.COLLECTIONS, _LOOK | _A.QUERY | _CHANGE),
    (ScopeKind.NAMES, _A.CREATE | _A.WRITE | _A.REMOVE),
)
_MANAGE = _LOOK | _CHANGE | _A.QUERY | _A.DEV_MGMT | _A.POL_SEC | _A.GBL_REM


class Role(NamedTuple):
    """The purpose, and permissions by kind of scope in the partition."""

    purpose: str
    grants: tuple[tuple[ScopeKind, Permission], ...]


ROLES = {
    "read": Role("List the partition, read its objects and their attributes, query.", _READ),
    "write": Role(
        "As read; also create, change, name and remove objects, collections and directories.",
        _WRITE,
    ),
    "run": Role(
        "Submit scripts that read (osd exec --rights read); follow, list and end one's own jobs.",
        ((ScopeKind.ZONE, _A.FUN_EXE | READ_ONLY), *_FOLLOW),
    ),
    "run-write": Role(
        "As run; the scripts may also create, change and remove objects.",
        ((ScopeKind.ZONE, _A.FUN_EXE | JOB_RIGHTS), *_FOLLOW),
    ),
    "owner": Role(
        "Everything in the partition, its quotas, policies, stages and hooks, and its removal.",
        (
            (ScopeKind.PARTITION, _MANAGE),
            (ScopeKind.OBJECTS, _MANAGE),
            (ScopeKind.COLLECTIONS, _MANAGE),
            (ScopeKind.ZONE, _A.FUN_EXE | JOB_RIGHTS),
        ),
    ),
}


def rules_of(role: str, partition: ObjectRef) -> list[tuple[Scope, Permission]]:
    """Scopes and permissions.  Raises: ValueError: no such role, or not a partition."""
    if role not in ROLES:
        raise ValueError(f"'{role}' is no role; there are {', '.join(ROLES)}")
    if not partition.partition_id or partition.object_id:
        raise ValueError(f"a role is for a partition, and '{partition}' is none")
    jobs = ref(partition.partition_id, JOBS_COLLECTION)
    return [
        (Scope(kind, jobs if kind is ScopeKind.COLLECTION else partition), permissions)
        for kind, permissions in ROLES[role].grants
    ]
