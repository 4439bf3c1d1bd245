# SPDX-License-Identifier: GPL-2.0-or-later
"""Every call of a script on every object a job may come across, as raw frames and in the words of the
model; and the script that makes them and says how each one went.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass

from tests.conformance import wire as w
from tests.security import rights_model as m
from tests.security.rights_estate import APPLICATION, BASES, TAG, Estate
from tests.security.rights_model_jobs import Call

OPS = {
    "type": 16,
    "create partition": 17,
    "remove partition": 18,
    "remove partition with contents": 18,
    "create": 19,
    "remove": 20,
    "create collection": 21,
    "remove collection": 22,
    "collection add": 23,
    "collection drop": 24,
    "list partitions": 25,
    "list objects": 25,
    "list members": 25,
    "getattr": 26,
    "setattr": 27,
    "listattr": 28,
    "query": 29,
    "query all": 29,
    "swapattr": 30,
    "addattr": 31,
    "read": 32,
    "write": 33,
    "append": 34,
    "truncate": 35,
    "clear": 36,
    "punch": 37,
    "length": 38,
    "flush": 39,
    "share": 40,
}
"""Numbers of target/wire/proxy_frame.h."""

SCRIPT = '''
import json, os, _osdcore, osd

def numbers(entries):
    """Numbers of the attributes in a list."""
    found, at = [], 0
    while at < len(entries):
        found.append(int.from_bytes(entries[at + 4 : at + 8], "big"))
        length = int.from_bytes(entries[at + 14 : at + 16], "big")
        at += (16 + length + 7) // 8 * 8
    return found

def made(op, pid, oid, a, b, body):
    try:
        if op == 40:
            for fd in _osdcore.share(pid, oid)[2:]:
                if fd >= 0:
                    os.close(fd)
            return "ok"
        more, _, found = _osdcore.call(op, pid, oid, a, b, bytes.fromhex(body))
        if op == 28:
            return numbers(found)
        if op != 29:
            return "ok"
        while more:
            more, _, piece = _osdcore.call(op, pid, oid, more, b, bytes.fromhex(body))
            found += piece
        return [int.from_bytes(found[at : at + 8], "big") for at in range(0, len(found), 8)]
    except osd.PermissionDenied:
        return "no"
    except osd.StorageError as error:
        return "no" if op == 40 else repr(error)  # a range of an object is not shared
    except Exception as error:
        return repr(error)

print(json.dumps([made(*each) for each in CALLS]))
'''


@dataclass(frozen=True)
class Made:
    """A call and its frame."""

    what: str
    call: Call
    a: int = 0
    b: int = 0
    body: bytes = b""

    def frame(self) -> list[int | str]:
        thing = self.call.thing
        ids = (thing.pid, thing.oid)
        return [OPS[self.call.name], *ids, self.a, self.b, self.body.hex()]


def script_of(calls: list[Made]) -> bytes:
    """Source that makes the calls one after the other and prints how each went."""
    frames = json.dumps([each.frame() for each in calls])
    return f"CALLS = {frames}\n{SCRIPT}".encode()


@dataclass(frozen=True)
class Ground:
    """Objects of a job: in its partition, and elsewhere.

    The collection has user, marked and doomed as members; marked has a tag that the others do not have,
    unless all but plain have it.  away: in other partitions, by its method.
    """

    pid: int
    user: m.Thing
    marked: m.Thing
    doomed: m.Thing
    plain: m.Thing
    collection: m.Thing
    spare: m.Thing
    partition: m.Thing
    empty_partition: m.Thing
    full_partition: m.Thing
    away: tuple[m.Thing, ...]

    @property
    def members(self) -> tuple[m.Thing, ...]:
        return self.user, self.marked, self.doomed


def make_ground(t: Estate, method: int, tagged: bool, seconds: list[int], root: bool) -> Ground:
    """A partition with objects of its own, so that jobs do not see each other's."""
    pid = t.add_partition(method)
    tag = TAG if tagged else 0
    if tagged:
        value = struct.pack(">I", tag)
        t.set(0, 0x3000_0005, 0x4000_0001, value, pid)
        t.things[pid, 0] = t.thing(pid).but(tag=tag)
    members = [t.new_object(pid, tag), t.new_object(pid, 0 if tagged else TAG)]
    members.append(t.new_object(pid, tag))
    plain = t.new_object(pid)
    collection = t.new_collection(pid, *members, tag=tag)
    spare = t.new_collection(pid)
    elsewhere = [t.thing(second, t.new_object(second)) for second in seconds]
    removable = [m.Thing(m.PARTITION, t.partition() if root else pid) for _ in range(2)]
    if root:
        t.new_object(removable[1].pid)
    user, marked, doomed = (t.thing(pid, oid) for oid in members)
    return Ground(
        pid=pid,
        user=user,
        marked=marked,
        doomed=doomed,
        plain=t.thing(pid, plain),
        collection=t.thing(pid, collection),
        spare=t.thing(pid, spare),
        partition=t.thing(pid),
        empty_partition=removable[0],
        full_partition=removable[1],
        away=tuple(elsewhere),
    )


# ---- calls on one object -----------------------------------------------------------------------


def _page(thing: m.Thing, page: int = APPLICATION) -> int:
    return BASES[thing.kind] + page


def setting(what: str, thing: m.Thing, page: int, number: int, value: bytes) -> Made:
    call = Call("setattr", thing, sets=((page, number),))
    return Made(what, call, body=w.value_entry(page, number, value))


def on_any(thing: m.Thing) -> Iterator[Made]:
    """Calls that every kind of object has."""
    name = (_page(thing), 1)
    yield Made("", Call("getattr", thing, gets=(name,)), body=struct.pack(">II", *name))
    yield setting("", thing, *name, b"x")
    yield Made("", Call("listattr", thing), a=name[0])
    if thing.kind != m.ROOT:
        yield Made("", Call("type", thing))
        yield setting("tag", thing, _page(thing, 0x5), 0x4000_0001, struct.pack(">I", thing.tag))


def on_user(thing: m.Thing, joined: m.Thing | None) -> Iterator[Made]:
    """Calls on a user object, which leave it as long as it was."""
    yield from on_any(thing)
    counter = (APPLICATION, 2)
    packed = counter[0] << 32 | counter[1]
    swap = Call("swapattr", thing, gets=(counter,), sets=(counter,))
    add = Call("addattr", thing, gets=(counter,), sets=(counter,))
    yield Made("", swap, packed, 0, bytes(8))
    yield Made("", add, packed, 1)
    yield Made("", Call("read", thing, (0, 16)), 0, 16)
    yield Made("", Call("write", thing, (4, 9)), 4, 0, b"hello")
    yield Made("", Call("append", thing, (m.ENDLESS - 1, m.ENDLESS)), body=b"end")
    yield Made("", Call("punch", thing, (64, m.ENDLESS)), 64, 3)
    yield Made("", Call("truncate", thing, (64, m.ENDLESS)), 64)
    yield Made("", Call("clear", thing, (4, 9)), 4, 5)
    yield Made("", Call("length", thing))
    yield Made("", Call("flush", thing))
    yield Made("", Call("share", thing, (0, m.ENDLESS)))
    yield setting("length", thing, *m.LENGTH, (64).to_bytes(8, "big"))
    yield setting("quota", thing, 0x2, 1, struct.pack(">Q", m.ENDLESS - 1))
    yield setting("job control", thing, 0x2000_0003, 1, b"\1")
    yield setting("a page of the client's", thing, 0xC000_0000, 1, b"x")
    if joined:
        value = struct.pack(">Q", joined.oid)
        call = Call("setattr", thing, sets=((m.COLLECTIONS_PAGE, 0x77),), joins=joined)
        body = w.value_entry(m.COLLECTIONS_PAGE, 0x77, value)
        yield Made("joins a collection", call, body=body)


def on_collection(thing: m.Thing, inside: tuple[m.Thing, ...]) -> Iterator[Made]:
    yield from on_any(thing)
    yield Made("", Call("list members", thing), 3)
    yield Made("", Call("query", thing, inside=inside), body=b"\1\0\0\0")
    compared = (APPLICATION, 1)
    criterion = b"\1\0\0\0" + struct.pack(">2xHIIHH", 12, *compared, 0, 0)
    call = Call("query", thing, gets=(compared,))
    yield Made("with a criterion", call, body=criterion)


def on_partition(thing: m.Thing) -> Iterator[Made]:
    yield from on_any(thing)
    yield Made("user objects", Call("list objects", thing), 1)
    yield Made("collections", Call("list objects", thing), 2)
    yield Made("", Call("query all", thing), body=b"\1\0\0\0")
    count = struct.pack(">Q", m.ENDLESS - 1)
    yield setting("quota", thing, 0x3000_0002, 0x1_0002, count)
    yield setting("attributes access", thing, m.ACCESS_PAGE, 9, bytes(8))
    yield Made("", Call("create", m.Thing(m.USER, thing.pid, made=True)), 1)
    yield Made("", Call("create collection", m.Thing(m.COLLECTION, thing.pid, made=True)))


def on_root(root: m.Thing, ground: Ground) -> Iterator[Made]:
    name = (0x9000_0000 + APPLICATION, 1)
    yield Made("", Call("getattr", root, gets=(name,)), body=struct.pack(">II", *name))
    yield Made("", Call("list partitions", root))
    yield Made("", Call("create partition", m.Thing(m.PARTITION, 0, made=True)))
    yield Made("", Call("remove partition", ground.empty_partition))
    yield Made("", Call("remove partition with contents", ground.full_partition), 1)


def all_calls(t: Estate, g: Ground) -> list[Made]:
    """Every call on every object of the ground, in an order in which none is in another's way."""
    found: list[Made] = []
    found += on_user(g.user, g.spare)
    for thing in (g.marked, g.plain, *g.away):
        found += on_user(thing, None)
    found += on_collection(g.collection, g.members)
    found += on_any(g.spare)
    for member in (g.plain, g.marked):
        call = Call("collection add", g.spare, member=member)
        found.append(Made("", call, member.oid))
    found += on_partition(g.partition)
    found += on_root(t.thing(0), g)
    for member in (g.user, g.marked):
        call = Call("collection drop", g.collection, member=member)
        found.append(Made("", call, member.oid))
    found.append(Made("", Call("remove", g.doomed)))
    found.append(Made("with members", Call("remove collection", g.spare), 1))
    return found
