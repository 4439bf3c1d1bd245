# SPDX-License-Identifier: GPL-2.0-or-later
"""A script can reach the zone's objects and nothing else, with every call."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import pytest

import pyosd
from pyosd.types import ROOT, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S, end_jobs
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

GREEN = AttributeValue(Page.APPLICATION, 1, b"green")


@dataclass(frozen=True)
class World:
    """Two partitions; in the first a collection with one member, and an object outside of it."""

    here: int
    there: int
    collection: ObjectRef
    member: ObjectRef
    outside: ObjectRef
    foreign: ObjectRef
    foreign_collection: ObjectRef

    def zone(self, kind: str) -> ObjectRef:
        zones = {"root": ROOT, "partition": ref(self.here)}
        return zones.get(kind) or (self.collection if kind == "collection" else self.member)

    def inside(self, kind: str) -> set[ObjectRef]:
        """User objects a script in that zone may touch."""
        all_here = {self.member, self.outside}
        return {
            "root": all_here | {self.foreign},
            "partition": all_here,
            "collection": {self.member},
            "object": {self.member},
        }[kind]


@pytest.fixture(scope="module")
def session(serving: Serving) -> Iterator[pyosd.Target]:
    with serving.connect() as target:
        yield target


@pytest.fixture
def world(session: pyosd.Target) -> Iterator[World]:
    target = session
    here, there = target.create_partition(), target.create_partition()
    collection = target.create_collection(here)
    joined = AttributeValue(Page.USER_COLLECTIONS, 1, collection.object_id.to_bytes(8, "big"))
    member = target.create_and_write(here, b"member", attributes=[joined])
    outside = target.create_and_write(here, b"outside")
    foreign = target.create_and_write(there, b"foreign", attributes=[GREEN])
    theirs = target.create_collection(there)
    yield World(here, there, collection, member, outside, foreign, theirs)
    for each in (here, there):
        end_jobs(target, each)
        target.remove_partition(each, contents=True)


# Calls on a user object, by name; `u` is the object, `c` a collection beside it.
CALLS = {
    "exists": "assert u.exists()",
    "get": "u.get()",
    "read": "assert u.data.read()",
    "read large": "u.data.read(1 << 20)",
    "write": "u.data.write(b'changed')",
    "append": "f = u.data; f.seek(0, 2); f.write(b'more')",
    "truncate": "u.data.truncate(1)",
    "clear": "u.clear(0, 1)",
    "punch": "u.punch(0, 1)",
    "length": "u.length()",
    "flush": "u.flush()",
    "getattr": "u.getattr([(0x10000, 1)])",
    "setattr": "u.setattr([(0x10000, 1, b'changed')])",
    "attributes": "list(u.attributes())",
    "remove": "u.remove()",
    "map": "bytes(u.data.map())",
}
PRELUDE = """
import osd
u = osd.userobject({pid:#x}, {oid:#x})
try:
    {call}
except (osd.PermissionDenied, osd.NotFound) as error:
    print("denied")
else:
    print("done")
"""


def outcome(target: pyosd.Target, zone: ObjectRef, script: str) -> str:
    job = target.exec(script, zone=zone)
    status = job.wait(WAIT_S)
    assert status.state is JobState.COMPLETED, (status, job.traceback())
    text = job.output().decode().strip()
    job.remove()
    return text


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("kind", ["root", "partition", "collection", "object"])
def test_every_call_on_every_object(
    session: pyosd.Target, world: World, kind: str, call: str
) -> None:
    """Each call on an object inside and on each outside, in one script."""
    targets = (world.foreign, world.outside, world.member)
    script = "".join(
        PRELUDE.format(pid=each.partition_id, oid=each.object_id, call=CALLS[call])
        for each in targets
    )
    # In a root zone the surrogate goes beside the objects, so that it is removed with them.
    surrogate = ref(world.here) if kind == "root" else None
    job = session.exec(script, zone=world.zone(kind), surrogate=surrogate)
    status = job.wait(WAIT_S)
    assert status.state is JobState.COMPLETED, (status, job.traceback())
    inside = world.inside(kind)
    expected = ["done" if each in inside else "denied" for each in targets]
    assert job.output().decode().split() == expected
    for each in targets:
        if each not in inside:
            assert bytes(session.read(each, 0, 100)) in (b"foreign", b"outside", b"member")
    if world.foreign not in inside:
        assert session.get_attribute(world.foreign, GREEN.page, GREEN.number) == b"green"


CREATIONS = {
    "user object": "osd.userobject({here}).create()",
    "many": "osd.partition({here}).create_many(3)",
    "collection": "osd.collection({here}).create()",
    "foreign user object": "osd.userobject({there}).create()",
    "foreign collection": "osd.collection({there}).create()",
    "partition": "osd.partition().create().remove()",
    "remove partition": "osd.partition({there}).remove(True)",
    "list": "list(osd.partition({here}))",
    "foreign list": "list(osd.partition({there}))",
    "list partitions": "list(osd.root())",
    "members": "list(osd.collection({here}, {cid}))",
    "foreign members": "list(osd.collection({there}, {foreign_cid}))",
    "partition attributes": "osd.partition({here}).setattr([(0x30010000, 1, b'x')])",
    "foreign partition attributes": "osd.partition({there}).getattr([(0x30000001, 9)])",
    "root attributes": "osd.root().setattr([(0x90010000, 1, b'x')])",
}
ALLOWED = {
    "root": set(CREATIONS),
    "partition": {
        "user object",
        "many",
        "collection",
        "list",
        "members",
        "partition attributes",
    },
    "collection": {"members"},
    "object": set(),
}


@pytest.mark.parametrize("what", CREATIONS)
@pytest.mark.parametrize("kind", ["partition", "collection", "object"])
def test_creations_and_lists(session: pyosd.Target, world: World, kind: str, what: str) -> None:
    """Collection and object zones create nothing; nobody reaches over his zone's edge."""
    call = CREATIONS[what].format(
        here=world.here,
        there=world.there,
        cid=world.collection.object_id,
        foreign_cid=world.foreign_collection.object_id,
    )
    script = PRELUDE.format(pid=0x10000, oid=0x10000, call=call)
    got = outcome(session, world.zone(kind), script)
    assert got == ("done" if what in ALLOWED[kind] else "denied")
    assert world.there in session.list_partitions()
    assert session.list_objects(PartitionId(world.there)) == [world.foreign]


@pytest.mark.parametrize("call", ["read", "setattr", "remove"])
def test_zone_of_every_user_object(session: pyosd.Target, world: World, call: str) -> None:
    """The well-known collection 1000h as a zone: all user objects here, and nothing is created."""
    targets = (world.foreign, world.outside, world.member)
    script = "".join(
        PRELUDE.format(pid=each.partition_id, oid=each.object_id, call=CALLS[call])
        for each in targets
    )
    script += PRELUDE.format(
        pid=world.here, oid=0x10000, call=f"osd.userobject({world.here}).create()"
    )
    got = outcome(session, ref(world.here, 0x1000), script)
    assert got.split() == ["denied", "done", "done", "denied"]


def test_membership_is_looked_up_at_each_open(session: pyosd.Target, world: World) -> None:
    """An object that leaves the collection is out of reach from then on."""
    script = f"""
import osd
u = osd.userobject({world.member.partition_id:#x}, {world.member.object_id:#x})
print(u.data.read().decode(), flush=True)
while True: u.data.read(1)
"""
    job = session.exec(script, zone=world.collection)
    next(job.iter_output(follow=True))
    leave = AttributeValue(Page.USER_COLLECTIONS, 1, b"")
    session.set_attributes(world.member, [leave])
    status = job.wait(WAIT_S)
    assert status.state is JobState.FAILED
    assert status.reason == 201
    assert "PermissionDenied" in job.traceback() or "NotFound" in job.traceback()


def test_removed_object_is_not_found(session: pyosd.Target, world: World) -> None:
    script = f"""
import osd
u = osd.userobject({world.outside.partition_id:#x}, {world.outside.object_id:#x})
print(u.data.read().decode(), flush=True)
try:
    while True: u.data.read(1)
except osd.NotFound:
    print("gone")
"""
    job = session.exec(script, zone=ref(world.here))
    next(job.iter_output(follow=True))
    session.remove(world.outside)
    assert job.wait(WAIT_S).state is JobState.COMPLETED
    assert job.output() == b"outside\ngone\n"


def test_policy_pages_are_out_of_reach(session: pyosd.Target, world: World) -> None:
    script = PRELUDE.format(
        pid=world.member.partition_id,
        oid=world.member.object_id,
        call="u.setattr([(5, 0x40000001, b'1234')])",
    )
    assert outcome(session, world.member, script) == "denied"


def test_status_pages_are_out_of_reach(session: pyosd.Target, world: World) -> None:
    """A script may not write its own record."""
    script = """
import osd
try:
    osd.job.setattr([(0x20000001, 3, b"\\x10")])
except osd.OSDError as error:
    print("denied")
"""
    assert outcome(session, ref(world.here), script) == "denied"
