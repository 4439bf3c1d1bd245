# SPDX-License-Identifier: GPL-2.0-or-later
"""A model of OSD-2 access rights: whether a command or a script's call is permitted, and why not.

The model is typed from the standard's tables (`COMMANDS`: permissions per command; `Capability`: its
fields; `_checks`: the order of checks), and from docs/security-protocol.md and section 10 of
docs/security.md where the standard is silent.  It shares no code and no table with the target or with
pyosd, so that a mistake made there is not repeated here.  Not here: how a case is sent
(rights_estate.py), which cases there are (rights_cases.py, rights_defects.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

from tests.fields import replace

NOSEC, CAPKEY, CMDRSP, ALLDATA = range(4)
METHODS = ("NOSEC", "CAPKEY", "CMDRSP", "ALLDATA")

ROOT, PARTITION, COLLECTION, USER = 0x01, 0x02, 0x40, 0x80
DESCRIPTORS = {ROOT: (2,), PARTITION: (2,), COLLECTION: (3, 1), USER: (1,)}
"""OBJECT DESCRIPTOR TYPEs that go with an OBJECT TYPE."""
ANY, ENDLESS = 0xFFFF_FFFF, 1 << 64
FROZEN = 0x2405


class P(IntFlag):
    """PERMISSIONS BIT MASK, bytes 49 and 50 of a capability."""

    READ = 0x8000
    WRITE = 0x4000
    GET_ATTR = 0x2000
    SET_ATTR = 0x1000
    CREATE = 0x0800
    REMOVE = 0x0400
    OBJ_MGMT = 0x0200
    APPEND = 0x0100
    DEV_MGMT = 0x0080
    GLOBAL = 0x0040
    POL_SEC = 0x0020
    M_OBJECT = 0x0010
    QUERY = 0x0008
    GBL_REM = 0x0004
    FUN_EXE = 0x0002


NONE, EVERYTHING = P(0), P(0xFFFE)

COMMANDS: Mapping[str, tuple[int, P]] = {
    "OBJECT STRUCTURE CHECK": (ROOT | PARTITION, P.DEV_MGMT),
    "FORMAT OSD": (ROOT, P.OBJ_MGMT | P.GLOBAL),
    "CREATE": (USER, P.CREATE),
    "LIST": (ROOT | PARTITION, P.READ),
    "PUNCH": (USER, P.WRITE),
    "READ": (USER, P.READ),
    "WRITE": (USER, P.WRITE),
    "APPEND": (USER, P.APPEND),
    "FLUSH": (USER, P.OBJ_MGMT),
    "CLEAR": (USER, P.WRITE),
    "REMOVE": (USER, P.REMOVE),
    "CREATE PARTITION": (PARTITION, P.CREATE),
    "REMOVE PARTITION": (PARTITION, P.REMOVE),
    "GET ATTRIBUTES": (ROOT | PARTITION | COLLECTION | USER, P.GET_ATTR),
    "SET ATTRIBUTES": (ROOT | PARTITION | COLLECTION | USER, P.SET_ATTR),
    "CREATE AND WRITE": (USER, P.CREATE | P.WRITE),
    "COPY USER OBJECTS": (USER, P.CREATE | P.READ | P.WRITE),
    "CREATE USER TRACKING COLLECTION": (COLLECTION, P.CREATE | P.READ | P.WRITE),
    "CREATE COLLECTION": (COLLECTION, P.CREATE),
    "REMOVE COLLECTION": (COLLECTION, P.REMOVE),
    "LIST COLLECTION": (PARTITION | COLLECTION, P.READ),
    "FLUSH COLLECTION": (COLLECTION, P.OBJ_MGMT),
    "FLUSH PARTITION": (PARTITION, P.OBJ_MGMT),
    "FLUSH OSD": (ROOT, P.OBJ_MGMT),
    "QUERY": (COLLECTION, P.QUERY),
    "REMOVE MEMBER OBJECTS": (COLLECTION, P.REMOVE | P.M_OBJECT),
    "GET MEMBER ATTRIBUTES": (COLLECTION, P.GET_ATTR | P.M_OBJECT),
    "SET MEMBER ATTRIBUTES": (COLLECTION, P.SET_ATTR | P.M_OBJECT),
    "READ MAP": (USER, P.DEV_MGMT),
    "PERFORM SCSI COMMAND": (ROOT, P.DEV_MGMT | P.GLOBAL),
    "PERFORM TASK MANAGEMENT FUNCTION": (ROOT, P.DEV_MGMT | P.GLOBAL),
    "SET KEY": (ROOT | PARTITION, P.DEV_MGMT | P.POL_SEC),
    "SET MASTER KEY": (ROOT, P.DEV_MGMT | P.POL_SEC | P.GLOBAL),
    "EXEC": (ROOT | PARTITION | COLLECTION | USER, P.FUN_EXE),
    "EXECUTE FUNCTION": (ROOT | PARTITION | COLLECTION | USER, P.FUN_EXE),
    "CAS": (USER, P.GET_ATTR | P.SET_ATTR),
    "FA": (USER, P.GET_ATTR | P.SET_ATTR),
    "GEN CAS": (USER, P.GET_ATTR | P.SET_ATTR),
    "COND SETATTR": (USER, P.GET_ATTR | P.SET_ATTR),
}
"""Types of object a command addresses, and permissions it needs of them (osd2-wire 6.3)."""

BY_PARTITION_ZERO = ("FORMAT OSD", "FLUSH OSD", "CREATE PARTITION", "REMOVE PARTITION")
"""Judged and signed by partition zero, whatever partition they name."""
KEYS_ABOVE = ("master", "root")
"""Keys of the root: what they sign is judged by partition zero, too."""

COPIED = "copy source with attributes"
OTHERS = {
    "copy source": P.READ,
    COPIED: P.READ | P.GET_ATTR,
    "matches collection": P.WRITE,
    "tracking source": P.READ,
}
"""Second objects that a command names, and what it needs of them."""

CURRENT_COMMAND = 0xFFFF_FFFE
LENGTH = (0x0000_0001, 0x82)
COLLECTIONS_PAGE, ACCESS_PAGE = 0x0000_0004, 0x3000_0004
POLICY_PAGES = (0x0000_0005, 0x3000_0005, 0x6000_0005, 0x9000_0005, ACCESS_PAGE)
QUOTA_PAGES = (0x0000_0002, 0x3000_0002, 0x9000_0002)
STACK_PAGES = (0x2000_0020, 0x5000_0020, 0x8000_0020, 0xB000_0020)
HOOK_PAGES = (0x2000_0021, 0x5000_0021, 0xB000_0021)
TO_JOIN = P.SET_ATTR | P.READ | P.WRITE | P.APPEND | P.REMOVE | P.GET_ATTR
"""Permissions on a collection may be used on its members, so joining needs all that they lend."""

Name = tuple[int, int]
COUNTERS: Mapping[str, Name] = {"CAS": (0x7, 1), "FA": (0x7, 2)}
"""Attributes that a command touches without a list."""


@dataclass(frozen=True)
class Thing:
    """An object as it is now.  made: it is about to be made, so it has no created time."""

    kind: int
    pid: int
    oid: int = 0
    tag: int = 0
    created: int = 0
    made: bool = False

    def but(self, **changes: Any) -> Thing:
        return replace(self, **changes)


@dataclass
class Policy:
    """The policy of a partition now.  lists: page 3000_0004h.  frozen, changed: versions of working keys
    that are frozen, or that were changed since they signed a capability."""

    method: int
    lists: dict[int, tuple[Name, ...]] = field(default_factory=dict)
    frozen: frozenset[int] = frozenset()
    changed: frozenset[int] = frozenset()


@dataclass(frozen=True)
class Capability:
    """All fields of a capability, and how it was signed.

    key: name of the key that signed it.  intact: no bit was changed since.
    """

    method: int
    key: str
    kind: int
    pid: int
    oid: int = 0
    permissions: P = EVERYTHING
    version: int = 0
    form: int = 2
    expires: int = 0
    created: int = 0
    descriptor: int = 0
    attributes: int = 0
    tag: int = 0
    epoch: int = 0
    length: int = 0
    start: int = 0
    intact: bool = True

    def but(self, **changes: Any) -> Capability:
        return replace(self, **changes)


@dataclass(frozen=True)
class Verdict:
    """at: the CDB byte a refusal points at; None: the standard fixes none.  code: ASC and ASCQ.
    seen: of the objects reached through the one that is named, those that are not skipped."""

    permitted: bool
    clause: str
    at: int | None = None
    code: int = 0x2400
    seen: frozenset[int] = frozenset()

    def __str__(self) -> str:
        if self.permitted:
            return f"permitted ({self.clause})"
        place = f" at {self.at}" if self.at is not None else ""
        return f"refused {self.code >> 8:02X}/{self.code & 0xFF:02X}{place} ({self.clause})"


PERMITTED = Verdict(True, "all checks passed")


def refused(clause: str, at: int | None = None, code: int = 0x2400) -> Verdict:
    return Verdict(False, clause, at, code)


@dataclass
class World:
    """The state of the target.  now: its clock.  epoch: its boot epoch.  policies: of each partition.
    inherited: the method of new partitions, which absent ones are taken to have."""

    now: int
    epoch: int
    policies: dict[int, Policy]
    inherited: int = CAPKEY

    def policy(self, pid: int) -> Policy:
        return self.policies.get(pid) or Policy(self.inherited)


@dataclass(frozen=True)
class Ask:
    """One command.

    span: first byte and end of the data it concerns.  gets, sets: attributes.  criteria: attributes that
    a query compares.  joined: the collection that a set list puts the object into.  extra: permissions
    that its options add.  other: role and object of a second object.  inside: objects reached through
    the target.
    surrogate: partition of the surrogate, None: that of the zone.  signed_by: the key that must sign it
    where that is no working key.
    """

    command: str
    target: Thing
    span: tuple[int, int] | None = None
    gets: tuple[Name, ...] = ()
    sets: tuple[Name, ...] = ()
    criteria: tuple[Name, ...] = ()
    joined: Thing | None = None
    extra: P = NONE
    other: tuple[str, Thing] | None = None
    inside: tuple[Thing, ...] = ()
    surrogate: int | None = None
    signed_by: str = ""

    def but(self, **changes: Any) -> Ask:
        return replace(self, **changes)


# ---- one capability and one object -------------------------------------------------------------


def _names(c: Capability, thing: Thing) -> Iterator[Verdict]:
    """Steps 9: is it the object the capability was given for?"""
    if c.kind != thing.kind:
        yield refused("6.9 step 9: object type", 128)
    if (c.descriptor or DESCRIPTORS[c.kind][0]) not in DESCRIPTORS[c.kind]:
        yield refused("6.9 step 9: object descriptor type", 135)
    if c.pid != thing.pid and not (c.pid == 0 and thing.made and thing.kind == PARTITION):
        yield refused("6.9 step 9: allowed partition id", 152)
    if thing.kind in (COLLECTION, USER) and c.oid not in (0, thing.oid):
        yield refused("6.9 step 9: allowed object id", 160)


def _in_range(c: Capability, thing: Thing, span: tuple[int, int] | None) -> Iterator[Verdict]:
    """Step 14: an allowed range of length 0 has no end."""
    if span is None or thing.kind != USER:
        return
    if span[0] < c.start:
        yield refused("6.9 step 14: before the allowed range", 176)
    elif span[1] > (c.start + c.length if c.length else ENDLESS):
        yield refused("6.9 step 14: behind the allowed range", 168)


def _checks(
    world: World,
    c: Capability,
    thing: Thing,
    permissions: P,
    span: tuple[int, int] | None,
    inside: bool,
) -> Iterator[Verdict]:
    if c.expires and c.expires <= world.now:
        yield refused("6.9 step 7: expired", 84)
    if not inside:
        yield from _names(c, thing)
    if c.tag and c.tag != thing.tag:
        yield refused("6.9 step 10: policy access tag", 140)
    if c.created and not inside and c.created != thing.created:
        yield refused("6.9 step 11: created time", 122)
    if c.epoch and c.epoch != world.epoch:
        yield refused("6.9 step 12: boot epoch", 144)
    if permissions & ~c.permissions:
        yield refused("6.9 step 13: permission", 129)
    if not inside:
        yield from _in_range(c, thing, span)


def grants(
    world: World,
    c: Capability,
    thing: Thing,
    permissions: P,
    span: tuple[int, int] | None = None,
    inside: bool = False,
) -> Verdict:
    """Whether a genuine capability permits an act.  inside: the object is reached through the one that is
    named (a member, an object listed, one in a job's zone), so ids, created time and range are not its own.
    """
    return next(_checks(world, c, thing, permissions, span, inside), PERMITTED)


# ---- is the capability genuine, and does it do for the partition? ------------------------------


def governing(ask: Ask) -> int:
    """The partition whose policy and keys decide about the request."""
    zero = ask.command in BY_PARTITION_ZERO or ask.signed_by in KEYS_ABOVE
    return 0 if zero else ask.target.pid


def _key(ask: Ask, c: Capability) -> str:
    """Name of the key that must have signed the capability (6.7)."""
    return ask.signed_by or f"working {governing(ask):x} {c.version}"


def _genuine(world: World, ask: Ask, c: Capability) -> Verdict:
    policy = world.policy(governing(ask))
    if c.form != 2 or c.method not in (CAPKEY, CMDRSP, ALLDATA):
        return refused("6.9 step 1: capability format, method", 80)
    if c.key != _key(ask, c) or not c.intact:
        return refused("6.9 steps 3 and 5: key, check value", 80)
    if c.method < policy.method:
        return refused("6.9 step 2: weaker method than the partition's", 82)
    if not ask.signed_by and c.version in policy.frozen:
        return refused("6.9 step 4: frozen key", None, FROZEN)
    return PERMITTED


def _is_open(world: World, ask: Ask, c: Capability | None) -> bool:
    """NOSEC: nothing is checked, unless keys are set."""
    method = NOSEC if c is None else c.method
    return method == NOSEC and not ask.signed_by and world.policy(governing(ask)).method == NOSEC


# ---- attributes --------------------------------------------------------------------------------


def _listed(policy: Policy, number: int, name: Name) -> bool:
    """ALLOWED ATTRIBUTES ACCESS (5.15): 0 limits nothing."""
    if not number or name[0] == CURRENT_COMMAND:
        return True
    pairs = policy.lists.get(number, ())
    return any(page in (name[0], ANY) and n in (name[1], ANY) for page, n in pairs)


def to_set(name: Name) -> P:
    """Permissions that setting an attribute needs."""
    if name[0] in POLICY_PAGES or name[0] in QUOTA_PAGES:
        return P.SET_ATTR | P.POL_SEC
    if name[0] in STACK_PAGES + HOOK_PAGES:
        hook = P.READ if name[0] in HOOK_PAGES else NONE
        whole = NONE if name[0] < 0x3000_0000 else P.POL_SEC
        return P.SET_ATTR | P.FUN_EXE | hook | whole
    if name == LENGTH:
        return P.SET_ATTR | P.WRITE
    return TO_JOIN if name[0] == COLLECTIONS_PAGE else P.SET_ATTR


def _touched(ask: Ask) -> Iterator[tuple[Name, P]]:
    """Attributes a command touches, and permissions beyond those of the command."""
    if ask.command in COUNTERS:
        yield COUNTERS[ask.command], NONE
    yield from ((name, to_set(name)) for name in ask.sets)
    yield from ((name, P.GET_ATTR) for name in ask.gets if name[0] != CURRENT_COMMAND)
    yield from ((name, NONE) for name in ask.criteria)
    if ask.other and ask.other[0] == COPIED:
        yield (ANY, ANY), NONE


def _attributes(world: World, ask: Ask, c: Capability) -> Iterator[Verdict]:
    policy = world.policy(c.pid) if c.pid else Policy(NOSEC)
    for name, permissions in _touched(ask):
        if permissions & ~c.permissions:
            yield refused("6.3: setting or getting attributes", 129)
        if not _listed(policy, c.attributes, name):
            yield refused("5.15: allowed attributes access", 136)
        whole = name == LENGTH or name[0] == COLLECTIONS_PAGE
        if whole and name in ask.sets and c.kind == USER and (c.length or c.start):
            yield refused("length and membership need all of the object, not a range")
    if ask.joined:
        verdict = grants(world, c, ask.joined, P.SET_ATTR, inside=True)
        yield verdict if verdict.permitted else refused("the collection joined")


# ---- second objects ----------------------------------------------------------------------------


def _extensions(
    world: World, c: Capability, extensions: tuple[Capability, ...]
) -> Iterator[Verdict]:
    """Check values of extension capabilities, before any attribute is looked at."""
    for each in extensions:
        key = f"working {each.pid:x} {each.version}"
        if each.form != 2 or each.key != key or not each.intact:
            yield refused("extension capability: format, check value", 48)
        if each.method != c.method:
            yield refused("extension capability: another method", 48)
        if each.version in world.policy(each.pid).frozen:
            yield refused("extension capability: frozen key", None, FROZEN)


def _other(
    world: World, ask: Ask, c: Capability | None, extensions: tuple[Capability, ...]
) -> Verdict:
    """A second object is judged by the present policy of its own partition."""
    if ask.other is None:
        return PERMITTED
    role, thing = ask.other
    needed, policy = OTHERS[role], world.policy(thing.pid)
    whole = (0, ENDLESS)
    if c is None:
        if policy.method == NOSEC:
            return PERMITTED
        return refused("second object: NOSEC is not enough in its partition", 48)
    weaker = c.method < policy.method
    for each in extensions:
        copies = role != COPIED or _listed(world.policy(each.pid), each.attributes, (ANY, ANY))
        if copies and not weaker and grants(world, each, thing, needed, whole).permitted:
            return PERMITTED
    if extensions:
        return refused("second object: no extension capability permits it", 48)
    verdict = grants(world, c, thing, needed, whole)
    if verdict.permitted and weaker:
        return refused("second object: weaker method than its partition's", 48)
    return verdict


def _surrogate(world: World, ask: Ask, c: Capability | None) -> Verdict:
    """In a partition that the client names it is an ordinary object, which CREATE permits.  A capability
    for the zone is none for another partition."""
    if ask.surrogate is None:
        return PERMITTED
    if c is not None and P.CREATE not in c.permissions:
        return refused("surrogate among the data without CREATE", 48)
    if ask.surrogate == ask.target.pid:
        return PERMITTED
    if c is not None:
        return refused("surrogate in another partition under a capability", 48)
    if world.policy(ask.surrogate).method != NOSEC:
        return refused("surrogate: NOSEC is not enough in its partition", 48)
    return PERMITTED


def _seen(world: World, ask: Ask, c: Capability | None) -> frozenset[int]:
    """Members, listed objects and matches: others than those of the capability's tag are skipped."""
    needed = (needs(ask) & ~P.M_OBJECT) if ask.command != "LIST COLLECTION" else P.GET_ATTR
    return frozenset(
        each.oid
        for each in ask.inside
        if c is None or grants(world, c, each, needed, inside=True).permitted
    )


# ---- commands ----------------------------------------------------------------------------------


def needs(ask: Ask) -> P:
    """Permissions a command needs of what it addresses."""
    found = COMMANDS[ask.command][1] | ask.extra
    for name in ask.sets:
        found |= to_set(name)
    if any(page != CURRENT_COMMAND for page, _ in ask.gets):
        found |= P.GET_ATTR
    return found


def _command(
    world: World, ask: Ask, c: Capability, extensions: tuple[Capability, ...]
) -> Iterator[Verdict]:
    yield _genuine(world, ask, c)
    own = COMMANDS[ask.command][1] | ask.extra | (P.SET_ATTR if ask.sets else NONE)
    yield grants(world, c, ask.target, own, ask.span)
    yield from _extensions(world, c, extensions)
    yield from _attributes(world, ask, c)
    yield _other(world, ask, c, extensions)
    yield _surrogate(world, ask, c)


def judge(
    world: World, ask: Ask, c: Capability | None, extensions: tuple[Capability, ...] = ()
) -> Verdict:
    """Whether the target must permit a command.  c: None: the capability is zeros."""
    assert ask.target.kind & COMMANDS[ask.command][0]
    if _is_open(world, ask, c):
        verdict = _other(world, ask, None, ())
        if verdict.permitted:
            verdict = _surrogate(world, ask, None)
        return replace(verdict, seen=_seen(world, ask, None)) if verdict.permitted else verdict
    if c is None:
        return refused("6.9 step 1: no capability", 80)
    for verdict in _command(world, ask, c, extensions):
        if not verdict.permitted:
            return verdict
    return replace(PERMITTED, seen=_seen(world, ask, c))
