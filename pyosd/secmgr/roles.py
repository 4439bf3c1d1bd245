# SPDX-License-Identifier: GPL-2.0-or-later
"""Roles: the rules that a user needs in a partition for one kind of work.  Pure.

A role is a name for rules, made together; afterwards each is a rule like any other.
"""

from __future__ import annotations

from typing import NamedTuple

from pyosd.secmgr.scopes import Kind, Scope
from pyosd.types import JOBS_COLLECTION, ObjectRef, ref
from pyosd.wire.capability import JOB_RIGHTS, READ_ONLY, Permission

__all__ = ["ROLES", "Role", "rules_of"]

_A = Permission
_LOOK = _A.READ | _A.GET_ATTR | _A.M_OBJECT
_CHANGE = _A.WRITE | _A.APPEND | _A.CREATE | _A.REMOVE | _A.SET_ATTR | _A.OBJ_MGMT
_FOLLOW = ((Kind.COLLECTION, _A.GET_ATTR | _A.M_OBJECT),)  # the collection of jobs: one's own
_READ = (
    (Kind.PARTITION, _LOOK),
    (Kind.OBJECTS, _A.READ | _A.GET_ATTR),
    (Kind.COLLECTIONS, _LOOK | _A.QUERY),
)
_WRITE = (
    (Kind.PARTITION, _LOOK | _A.OBJ_MGMT),
    (Kind.OBJECTS, _A.READ | _A.GET_ATTR | _CHANGE),
    (Kind.COLLECTIONS, _LOOK | _A.QUERY | _CHANGE),
)
_MANAGE = _LOOK | _CHANGE | _A.QUERY | _A.DEV_MGMT | _A.POL_SEC | _A.GBL_REM


class Role(NamedTuple):
    """The purpose, and permissions by kind of scope in the partition."""

    purpose: str
    grants: tuple[tuple[Kind, Permission], ...]


ROLES = {
    "read": Role("List the partition, read its objects and their attributes, query.", _READ),
    "write": Role("As read; also create, change and remove objects and collections.", _WRITE),
    "run": Role(
        "Submit scripts that read (osd exec --rights read); follow, list and end one's own jobs.",
        ((Kind.ZONE, _A.FUN_EXE | READ_ONLY), *_FOLLOW),
    ),
    "run-write": Role(
        "As run; the scripts may also create, change and remove objects.",
        ((Kind.ZONE, _A.FUN_EXE | JOB_RIGHTS), *_FOLLOW),
    ),
    "owner": Role(
        "Everything in the partition, its quotas and policies, and its removal.",
        (
            (Kind.PARTITION, _MANAGE),
            (Kind.OBJECTS, _MANAGE),
            (Kind.COLLECTIONS, _MANAGE),
            (Kind.ZONE, _A.FUN_EXE | JOB_RIGHTS),
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
        (Scope(kind, jobs if kind is Kind.COLLECTION else partition), permissions)
        for kind, permissions in ROLES[role].grants
    ]
