# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of what a job may do: which of a script's calls are permitted, and what ends the job.

Typed from sections 4 and 10 of docs/security.md; like rights_model.py it shares nothing with the target.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace

from tests.security.rights_model import (
    ANY,
    COLLECTION,
    COLLECTIONS_PAGE,
    HOOK_PAGES,
    LENGTH,
    NONE,
    NOSEC,
    PARTITION,
    PERMITTED,
    POLICY_PAGES,
    ROOT,
    STACK_PAGES,
    TO_JOIN,
    USER,
    Capability,
    Name,
    P,
    Policy,
    Thing,
    Verdict,
    World,
    grants,
    refused,
    to_set,
)

CALLS: Mapping[str, tuple[str, P]] = {
    "type": ("zone", NONE),
    "create partition": ("root", P.CREATE),
    "remove partition": ("root", P.REMOVE),
    "remove partition with contents": ("root", P.REMOVE | P.GBL_REM),
    "create": ("partition", P.CREATE),
    "remove": ("zone", P.REMOVE),
    "create collection": ("partition", P.CREATE),
    "remove collection": ("partition", P.REMOVE),
    "collection add": ("partition", P.SET_ATTR),
    "collection drop": ("partition", P.SET_ATTR),
    "list partitions": ("root", P.READ),
    "list objects": ("partition", P.READ),
    "list members": ("zone", P.READ),
    "getattr": ("zone", P.GET_ATTR),
    "setattr": ("zone", P.SET_ATTR),
    "listattr": ("zone", P.GET_ATTR),
    "query": ("zone", P.QUERY),
    "query all": ("partition", P.QUERY),
    "swapattr": ("zone", P.GET_ATTR | P.SET_ATTR),
    "addattr": ("zone", P.GET_ATTR | P.SET_ATTR),
    "read": ("zone", P.READ),
    "write": ("zone", P.WRITE),
    "append": ("zone", P.APPEND),
    "truncate": ("zone", P.WRITE),
    "clear": ("zone", P.WRITE),
    "punch": ("zone", P.WRITE),
    "length": ("zone", P.READ),
    "flush": ("zone", P.WRITE),
    "share": ("zone", P.READ),
}
"""Calls of a script: what the zone has to own ("zone": the object is in it), and permissions."""

BY_PARTITION_ZERO = (
    "create partition",
    "remove partition",
    "remove partition with contents",
    "list partitions",
)
NEVER_SET = (*POLICY_PAGES, *STACK_PAGES, *HOOK_PAGES, 0x2000_0003)
FIRST_UNSETTABLE = 0xC000_0000


@dataclass(frozen=True)
class Job:
    """zone: what it was submitted for.  members: ids of those of a collection that is the zone.
    capability: that it was submitted under; None: none."""

    zone: Thing
    capability: Capability | None
    members: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Call:
    """One call.

    span: first byte and end of the data.  gets, sets: attributes.  member: of a collection changed.
    joins: a set list puts the object into this collection.  inside: objects a query may find.
    """

    name: str
    thing: Thing
    span: tuple[int, int] | None = None
    gets: tuple[Name, ...] = ()
    sets: tuple[Name, ...] = ()
    member: Thing | None = None
    joins: Thing | None = None
    inside: tuple[Thing, ...] = ()


# ---- the zone ----------------------------------------------------------------------------------


def _owns(zone: Thing, pid: int) -> bool:
    """Whole partitions: objects may be made in them."""
    return zone.kind == ROOT or (zone.kind == PARTITION and zone.pid == pid)


def _same(a: Thing, b: Thing) -> bool:
    return (a.pid, a.oid) == (b.pid, b.oid)


def _in_zone(job: Job, thing: Thing) -> bool:
    if _owns(job.zone, thing.pid) or _same(job.zone, thing):
        return True
    return job.zone.kind == COLLECTION and job.zone.pid == thing.pid and thing.oid in job.members


def _zone(job: Job, call: Call) -> Iterator[Verdict]:
    owned = {
        "root": job.zone.kind == ROOT,
        "partition": _owns(job.zone, call.thing.pid),
        "zone": _in_zone(job, call.thing),
    }
    if not owned[CALLS[call.name][0]]:
        yield refused("outside the job's zone")
    if call.sets and job.zone.kind == COLLECTION and _same(job.zone, call.thing):
        yield refused("a collection that is the zone is there to be read")
    for page, _ in call.sets:
        if page in NEVER_SET or page >= FIRST_UNSETTABLE:
            yield refused("pages that no script sets")
        if page == COLLECTIONS_PAGE and not _owns(job.zone, call.thing.pid):
            yield refused("membership is changed in zones of a partition or more")


# ---- what it was submitted with ----------------------------------------------------------------


def _may(world: World, job: Job, thing: Thing, permissions: P, call: Call) -> Verdict:
    """The whole decision about one object: the method of its partition now, then the capability."""
    c = job.capability
    pid = 0 if call.name in BY_PARTITION_ZERO else thing.pid
    if (NOSEC if c is None else c.method) < world.policy(pid).method:
        return refused("rule 1: the least method of the object's partition now")
    if c is None:
        return PERMITTED
    itself = _same(job.zone, thing) and job.zone.kind == USER
    span = call.span if _same(call.thing, thing) else None
    return grants(world, c, thing, permissions, span, inside=not itself)


def may_see(world: World, job: Job, name: Name) -> bool:
    """Whether a job may touch an attribute; a list of attributes leaves out what it may not."""
    c = job.capability
    if c is None or not c.attributes:
        return True
    policy = world.policy(c.pid) if c.pid else Policy(NOSEC)
    pairs = policy.lists.get(c.attributes, ())
    return any(page in (name[0], ANY) and number in (name[1], ANY) for page, number in pairs)


def _attributes(world: World, job: Job, call: Call) -> Iterator[Verdict]:
    c = job.capability
    if c is None:
        return
    for name in (*call.gets, *call.sets):
        if not may_see(world, job, name):
            yield refused("rule 6: allowed attributes access")
    whole = any(name == LENGTH or name[0] == COLLECTIONS_PAGE for name in call.sets)
    if whole and _same(job.zone, call.thing) and (c.length or c.start):
        yield refused("length and membership need all of the object")


def _checks(world: World, job: Job, call: Call) -> Iterator[Verdict]:
    yield from _zone(job, call)
    needed = CALLS[call.name][1]
    for name in call.sets:
        needed |= to_set(name)
    yield _may(world, job, call.thing, needed, call)
    yield from _attributes(world, job, call)
    if call.member:
        lent = TO_JOIN if call.name == "collection add" else P.SET_ATTR
        yield _may(world, job, call.member, lent, call)
    if call.joins:
        yield _may(world, job, call.joins, P.SET_ATTR, call)


def judge_call(world: World, job: Job, call: Call) -> Verdict:
    """Whether a call of a job that goes on is permitted."""
    for verdict in _checks(world, job, call):
        if not verdict.permitted:
            return replace(verdict, at=None)  # a script is not told which field it was
    found = (each for each in call.inside if _may(world, job, each, P.QUERY, call).permitted)
    return replace(PERMITTED, seen=frozenset(each.oid for each in found))


# ---- revocation --------------------------------------------------------------------------------


def _revoked(world: World, zone: Thing, c: Capability) -> Iterator[str]:
    policy = world.policy(0 if zone.kind == ROOT else zone.pid)
    if c.expires and c.expires <= world.now:
        yield "the capability has expired"
    if c.version in policy.changed:
        yield "its key was changed"
    if c.version in policy.frozen:
        yield "its key is frozen"
    if not grants(world, c, zone, P.FUN_EXE).permitted:
        yield "the zone is not what the capability names any more"


def ended(world: World, job: Job) -> str:
    """Why a job has no right to run any more; "": it has.  job.zone: as it is now."""
    c = job.capability
    method = NOSEC if c is None else c.method
    if method < world.policy(job.zone.pid).method:
        return "the zone's partition demands more by now"
    return "" if c is None else next(_revoked(world, job.zone, c), "")
