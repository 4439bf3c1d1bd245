# SPDX-License-Identifier: GPL-2.0-or-later
"""The capabilities of the rights matrix: the good one for a request, and every defect it may have.

A defect differs from the good capability in one respect.  A few of them stay good, so that a target
that refuses everything is found out, too.
"""

from __future__ import annotations

from collections.abc import Callable

from tests.security import rights_model as m
from tests.security.rights_estate import ALL_IN, FROZEN_VERSION, LEFT_OUT, LET_IN, TAG
from tests.security.rights_model import P

FAR = 60 * 60 * 1000


def good(ask: m.Ask, method: int, extended: bool = False) -> m.Capability:
    """The capability that a security manager would give for the request.  Without an extension
    capability it is for all objects of a type where the command names two of one partition."""
    key = ask.signed_by or f"working {m.governing(ask):x} 0"
    oid = ask.target.oid
    if ask.other and not extended:
        both = (ask.other[1].pid, ask.other[1].kind) == (ask.target.pid, ask.target.kind)
        oid = 0 if both else oid
    return m.Capability(method, key, ask.target.kind, ask.target.pid, oid)


def good_extension(ask: m.Ask, method: int) -> m.Capability:
    assert ask.other
    thing = ask.other[1]
    return m.Capability(method, f"working {thing.pid:x} 0", thing.kind, thing.pid, thing.oid)


Defect = Callable[[m.World, m.Ask, m.Capability], m.Capability]


def _but(**changes: object) -> Defect:
    return lambda world, ask, c: c.but(**changes)


def _other_kind(world: m.World, ask: m.Ask, c: m.Capability) -> m.Capability:
    return c.but(kind=m.COLLECTION if c.kind == m.USER else m.USER)


def _tag_of(world: m.World, ask: m.Ask, c: m.Capability) -> m.Capability:
    return c.but(tag=ask.target.tag)


DEFECTS: dict[str, Defect] = {
    "good": lambda world, ask, c: c,
    "wrong key": _but(key="nobody"),
    "check value changed": _but(intact=False),
    "key changed since": lambda world, ask, c: c.but(key=f"former {m.governing(ask):x}"),
    "frozen key": lambda world, ask, c: c.but(
        key=c.key if ask.signed_by else f"working {m.governing(ask):x} {FROZEN_VERSION}",
        version=FROZEN_VERSION,
    ),
    "capability format of OSD-1": _but(form=1),
    "expired": _but(expires=1),
    "expires later": lambda world, ask, c: c.but(expires=world.now + FAR),
    "other kind of object": _other_kind,
    "descriptor of another kind": _but(descriptor=7),
    "other partition": lambda world, ask, c: c.but(pid=c.pid ^ 0x11),
    "other object": lambda world, ask, c: c.but(oid=0x7777_7777),
    "every object of the partition": _but(oid=0),
    "tag": _but(tag=TAG + 1),
    "tag of its object": _tag_of,
    "created another time": _but(created=1),
    "created then": lambda world, ask, c: c.but(created=ask.target.created),
    "boot epoch": lambda world, ask, c: c.but(epoch=world.epoch ^ 1),
    "this boot epoch": lambda world, ask, c: c.but(epoch=world.epoch),
    "attributes left out": _but(attributes=LEFT_OUT),
    "attributes let in": _but(attributes=LET_IN),
    "attributes all let in": _but(attributes=ALL_IN),
    "attributes of no list": _but(attributes=99),
    "range too short": _but(length=1),
    "range behind": _but(start=1 << 40),
    "range of all": _but(length=1 << 62),
    "no permission": _but(permissions=m.NONE),
    "only what is needed": lambda world, ask, c: c.but(permissions=m.needs(ask)),
    **{f"without {bit.name}": _but(permissions=m.EVERYTHING & ~bit) for bit in P},
}


def spoiled(defect: str, world: m.World, ask: m.Ask, c: m.Capability) -> m.Capability:
    """The capability of the CDB with a defect."""
    return DEFECTS[defect](world, ask, c)


def spoiled_extension(defect: str, world: m.World, ask: m.Ask, c: m.Capability) -> m.Capability:
    """The extension capability with a defect: it is about the second object."""
    assert ask.other
    if defect == "only what is needed":
        return c.but(permissions=m.OTHERS[ask.other[0]])
    if defect == "another method":
        return c.but(method=m.CAPKEY if c.method != m.CAPKEY else m.ALLDATA)
    return DEFECTS[defect](world, m.Ask("READ", ask.other[1]), c)


OF_EXTENSIONS = (*DEFECTS, "another method")
