# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions of data and of members: attributes of the vendor's pages, and the descriptor that wants one
(docs/wire.md)."""

from __future__ import annotations

import struct

from tests.conformance import wire as w
from tests.conformance.cells import cell, each
from tests.conformance.commands import Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import ANOTHER_VERSION, MISCOMPARE
from tests.conformance.suite.instances import CONTENT, MAKE, known
from tests.conformance.wire import Request

DATA, MEMBERS = (0x2000_0005, 1), (0x8000_0001, 1)
PRECONDITION = 0xF082
WANTING = known(having=lambda row: row.name in ("READ", "WRITE", "APPEND", "CLEAR", "PUNCH"))
CHANGING = known(having=lambda row: row.name in ("WRITE", "APPEND", "CLEAR", "PUNCH"))


def version(t: LogicalUnit, oid: int, name: tuple[int, int] = DATA) -> bytes:
    """The attribute, read alone."""
    answer = t.good(Request(0x888E, t.pid, oid, gets=(name,)))
    t.same([len(each) for each in answer.values], [12], "length of the version", answer)
    return answer.values[0]


def wanting(action: int, value: bytes, length: int = 12) -> bytes:
    """A segment with an entry of an attributes list."""
    return w.segment(action, entry(struct.pack(">II6xH12s4x", *DATA, length, value)))


def entry(content: bytes) -> bytes:
    return w.descriptor(PRECONDITION, content)


@each(WANTING, "continuation", "docs/wire.md precondition")
def only_with_the_wanted_version(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    before = version(t, request.oid)
    t.good(Request(0x8886, t.pid, request.oid, 4, 60, data=b"else"))
    now, content = version(t, request.oid), t.read(request.oid)
    name = (0x1_0000, 1)
    refused = request.but(segment=wanting(row.code, before), sets=((*name, b"set"),))
    t.refused(refused, ANOTHER_VERSION, key=MISCOMPARE)
    t.same(t.read(request.oid), content, "the object is unchanged")
    t.same(version(t, request.oid), now, "so is its version")
    answer = t.good(request.but(segment=wanting(row.code, now), gets=(DATA, name)))
    after = now if row.name == "READ" else version(t, request.oid)
    t.same(answer.values, [after, b""], "the version then, and no attribute set", answer)


@each(WANTING, "segment length", "docs/wire.md precondition of another form")
def preconditions_of_another_form(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    now = version(t, request.oid)
    t.bad_field(request.but(segment=wanting(row.code, now, 8)), 48)
    for page, number in ((DATA[0], 2), MEMBERS, (0x1, 0x82)):
        other = struct.pack(">II6xH12s4x", page, number, 12, now)
        t.bad_field(request.but(segment=w.segment(row.code, entry(other))), 48)
    t.bad_field(request.but(segment=w.segment(row.code, entry(now + bytes(4)))), 48)


@each(CHANGING, "list format", "docs/attributes.md version of the data")
def the_version_of_the_change(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    before = version(t, request.oid)
    answer = t.good(request.but(gets=(DATA,)))
    t.same(answer.values == [before], False, "another version", answer)
    t.same(answer.values, [version(t, request.oid)], "the version that stays", answer)


@cell("READ", "list format", "docs/attributes.md version of the data")
def reading_leaves_the_version(t: LogicalUnit) -> None:
    oid = t.object(CONTENT)
    before = version(t, oid)
    answer = t.good(Request(0x8885, t.pid, oid, 8, data_in=8, gets=(DATA,)))
    t.same(answer.values, [before], "the version of the data", answer)
    t.same(version(t, oid), before, "the version afterwards")


@cell("SET ATTRIBUTES", "ok", "docs/attributes.md version of members")
def members_that_join_and_leave(t: LogicalUnit) -> None:
    collection, oid = t.collection(), t.object(CONTENT)
    seen = [version(t, collection, MEMBERS)]
    for value in (struct.pack(">Q", collection), b""):
        t.good(Request(0x888F, t.pid, oid, sets=((0x4, 1, value),)))
        seen.append(version(t, collection, MEMBERS))
    t.same(len(set(seen)), 3, "different versions")


# ---- commands that compare in a transaction ----


COMPARING = {
    "REMOVE": DATA,
    "SET ATTRIBUTES": DATA,
    "REMOVE COLLECTION": MEMBERS,
    "SET MEMBER ATTRIBUTES": MEMBERS,
    "REMOVE MEMBER OBJECTS": MEMBERS,
}


def comparing(t: LogicalUnit, row: Row) -> Request:
    """A valid request with the version that its object has."""
    name = COMPARING[row.name]
    oid = t.collection() if name == MEMBERS else t.object(CONTENT)
    return Request(row.code, t.pid, oid, segment=wanting_of(row.code, name, version(t, oid, name)))


def wanting_of(action: int, name: tuple[int, int], value: bytes) -> bytes:
    return w.segment(action, entry(struct.pack(">II6xH12s4x", *name, 12, value)))


@cell("REMOVE", "continuation", "docs/wire.md precondition")
def removed_with_the_wanted_version_only(t: LogicalUnit) -> None:
    oid = t.object(CONTENT)
    before = version(t, oid)
    t.good(Request(0x8886, t.pid, oid, 4, 60, data=b"else"))
    request = Request(0x888A, t.pid, oid)
    refused = request.but(segment=wanting_of(0x888A, DATA, before), sets=((0x1_0000, 1, b"set"),))
    t.refused(refused, ANOTHER_VERSION, key=MISCOMPARE)
    t.same(t.get(oid, 0x1_0000, 1), b"", "an attribute that was not set")
    for name in (MEMBERS, (DATA[0], 2)):
        t.bad_field(request.but(segment=wanting_of(0x888A, name, before)), 48)
    t.good(request.but(segment=wanting_of(0x888A, DATA, version(t, oid))))


@cell("SET ATTRIBUTES", "continuation", "docs/wire.md precondition")
def set_with_the_wanted_version_only(t: LogicalUnit) -> None:
    oid, collection = t.object(CONTENT), t.collection()
    for target, name, attribute in (
        (oid, DATA, (0x1_0000, 1)),
        (collection, MEMBERS, (0x6001_0000, 1)),
    ):
        now = version(t, target, name)
        request = Request(0x888F, t.pid, target, sets=((*attribute, b"set"),))
        refused = request.but(segment=wanting_of(0x888F, name, bytes(12)))
        t.refused(refused, ANOTHER_VERSION, key=MISCOMPARE)
        t.same(t.get(target, *attribute), b"", "an attribute that was not set")
        t.good(request.but(segment=wanting_of(0x888F, name, now)))
        t.same(t.get(target, *attribute), b"set", "the attribute")
        t.same(version(t, target, name), now, "the version, which attributes do not change")
    for target, name in ((oid, MEMBERS), (collection, DATA)):
        request = Request(0x888F, t.pid, target)
        t.bad_field(request.but(segment=wanting_of(0x888F, name, bytes(12))), 48)


@each(
    known(
        having=lambda row: (
            row.name in ("REMOVE COLLECTION", "SET MEMBER ATTRIBUTES", "REMOVE MEMBER OBJECTS")
        )
    ),
    "continuation",
    "docs/wire.md precondition",
)
def with_the_wanted_membership_only(t: LogicalUnit, row: Row) -> None:
    collection, oid = t.collection(), t.object(CONTENT)
    before = version(t, collection, MEMBERS)
    t.good(Request(0x888F, t.pid, oid, sets=((0x4, 1, struct.pack(">Q", collection)),)))
    bits = {"byte11": 1} if row.name == "REMOVE COLLECTION" else {}
    sets = ((0x1_0000, 1, b"set"),) if row.name == "SET MEMBER ATTRIBUTES" else ()
    request = Request(row.code, t.pid, collection, sets=sets).but(**bits)
    refused = request.but(segment=wanting_of(row.code, MEMBERS, before))
    t.refused(refused, ANOTHER_VERSION, key=MISCOMPARE)
    t.same(t.read(oid), CONTENT, "the member")
    t.same(t.get(oid, 0x1_0000, 1), b"", "an attribute of the member that was not set")
    t.bad_field(request.but(segment=wanting_of(row.code, DATA, before)), 48)
    t.good(request.but(segment=wanting_of(row.code, MEMBERS, version(t, collection, MEMBERS))))
