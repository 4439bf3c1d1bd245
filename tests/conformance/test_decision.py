# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects and attributes that a command touches beside the obvious ones get the whole decision: the least
method of their own partition, the permissions of the tables in docs/security.md, ALLOWED ATTRIBUTES ACCESS.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.conformance import wire as w
from tests.conformance.guard import ALLDATA, Guarded, Proof
from tests.conformance.lu import Answer
from tests.conformance.suite.instances import (
    CONTENT,
    MAKE,
    copy,
    copy_source,
    query,
    query_list,
    tracking,
)
from tests.conformance.test_guarded import (
    APPEND,
    FIELD,
    GET,
    METHODS,
    POL_SEC,
    READ,
    REMOVE,
    SET,
    TOKEN,
    WRITE,
    denied,
    with_extension,
)
from tests.conftest import MakeHarness

BARE = Proof(bytes(32), 0, 0x80, 0, 0, permissions=0)
"""No capability at all."""
METHOD_OF_PARTITION, METHOD_OF_ROOT = (0x3000_0005, 1), (0x9000_0005, 1)
LISTED = {136: struct.pack(">I", 3)}
"""ALLOWED ATTRIBUTES ACCESS 3."""


@pytest.fixture(params=METHODS)
def unit(
    request: pytest.FixtureRequest, tmp_path: Path, make_harness: MakeHarness
) -> Iterator[Guarded]:
    key = tmp_path / "master.key"
    options: dict[str, object] = {"memory": 1, "security": request.param, "token": TOKEN.hex()}
    harness = make_harness(None, **options, **{"master-key": key})
    found = Guarded(harness.transport, key, TOKEN, METHODS[request.param], residuals=False)
    found.take_over()
    found.supported = {*MAKE}
    found.begin()
    yield found


def set_method(t: Guarded, pid: int, method: int) -> None:
    page, number = METHOD_OF_PARTITION if pid else METHOD_OF_ROOT
    t.good(w.Request(0x888F, pid, 0, sets=((page, number, bytes((method,))),)))


def copy_from(t: Guarded, pid: int, oid: int) -> w.Request:
    segment = w.segment(0x8893, copy_source(pid, oid))
    return w.Request(0x8893, t.pid, t.free_oid(), segment=segment)


# ---- the partition of another object -------------------------------------------------------------


def test_source_in_a_protected_partition(unit: Guarded) -> None:
    """A partition that takes NOSEC opens no other one, and does not tell what is there."""
    protected = unit.second_partition()
    secret = unit.object(CONTENT, protected)
    own = unit.object(CONTENT)
    set_method(unit, unit.pid, 0)
    for source in (secret, unit.free_oid()):
        request = copy_from(unit, protected, source)
        unit.is_refused(unit.send_proved(request, BARE), FIELD, 48)
        assert not unit.exists(request.oid)
    unit.is_refused(unit.send_proved(copy_from(unit, unit.absent_pid(), own), BARE), FIELD, 48)
    unit.is_good(unit.send_proved(copy_from(unit, unit.pid, own), BARE))
    set_method(unit, protected, 0)
    unit.is_good(unit.send_proved(copy_from(unit, protected, secret), BARE))


def test_method_of_an_extension_capability(unit: Guarded) -> None:
    """It is compared with the least method of its own partition, as it is now."""
    stronger = unit.second_partition()
    secret = unit.object(CONTENT, stronger)
    reading = unit.proof(w.Request(0x8885, stronger, secret))
    unit.is_good(
        unit.send_proved(*with_extension(unit, copy_from(unit, stronger, secret), reading))
    )
    if unit.security_method == ALLDATA:
        return  # there is no stronger one
    set_method(unit, stronger, ALLDATA)
    for source in (secret, unit.free_oid()):
        reading = unit.proof(w.Request(0x8885, stronger, source))
        request = copy_from(unit, stronger, source)
        answer = unit.send_proved(*with_extension(unit, request, reading))
        unit.is_refused(answer, FIELD, 48)


def test_attributes_of_listed_partitions(unit: Guarded) -> None:
    """The root's method is not enough for the attributes of a partition that demands more."""
    name = (0x3000_0001, 9)
    unit.set(0, *name, b"secret")
    request = w.Request(0x8883, length=4096, byte11=0x40, gets=(name,), data_in=4096)

    def told(answer: Answer) -> list[tuple[int, int, bytes]]:
        blocks = w.object_blocks(w.ObjectList.read(unit.is_good(answer).data).body)
        return [
            attribute for each in blocks if each.oid == unit.pid for attribute in each.attributes
        ]

    set_method(unit, 0, 0)
    try:
        assert told(unit.send_proved(request, BARE)) == []
        set_method(unit, unit.pid, 0)
        assert told(unit.send_proved(request, BARE)) == [(*name, b"secret")]
    finally:
        set_method(unit, 0, unit.security_method)


# ---- what attributes need ------------------------------------------------------------------------


def changing(t: Guarded, oid: int, *values: tuple[int, int, bytes]) -> w.Request:
    return w.Request(0x888F, t.pid, oid, sets=values)


def test_logical_length(unit: Guarded) -> None:
    """It is written, all of it: WRITE, and no range."""
    oid = unit.object(CONTENT)
    for request in (
        changing(unit, oid, (1, 0x82, bytes(8))),
        w.Request(0x888F, unit.pid, oid, form=w.SET_ONE, set_one=(1, 0x82, bytes(8))),
    ):
        denied(unit, request, WRITE)
        for at, length in ((0, 1), (4, 0)):
            limited = unit.proof(request).but(fields={168: struct.pack(">QQ", length, at)})
            unit.is_refused(unit.send_proved(request, limited), FIELD, 176 if at else 168)
        assert unit.read(oid) == CONTENT
    unit.good(changing(unit, oid, (1, 0x82, bytes(8))))
    assert unit.read(oid) == b""


def test_quotas(unit: Guarded) -> None:
    none = b"\xff" * 8
    for request in (
        changing(unit, 0, (0x3000_0002, 0x1_0001, none)),
        changing(unit, unit.object(), (2, 1, none)),
        w.Request(0x888F, 0, 0, sets=((0x9000_0002, 0x1_0001, none),)),
        w.Request(0x888B, unit.free_pid(), sets=((0x3000_0002, 0x1_0001, none),)),
    ):
        denied(unit, request, POL_SEC)
        unit.good(request)


def test_joining(unit: Guarded) -> None:
    """An object is lent to a collection by who has all the rights that may be lent; leaving needs none."""
    oid, cid = unit.object(CONTENT), unit.collection()
    joining = changing(unit, oid, (4, 1, cid.to_bytes(8, "big")))
    for bit in (READ, WRITE, APPEND, REMOVE, GET, SET):
        denied(unit, joining, bit)
    narrow = unit.proof(joining).but(fields={168: struct.pack(">QQ", 4, 0)})
    unit.is_refused(unit.send_proved(joining, narrow), FIELD, 168)
    assert unit.members(cid) == []
    unit.good(joining)
    leaving = changing(unit, oid, (4, 1, b""))
    unit.is_good(unit.send_proved(leaving, unit.proof(leaving).but(permissions=SET)))
    assert unit.members(cid) == []


def test_collection_of_another_tag(unit: Guarded) -> None:
    """The collection is a second object."""
    oid, cid = unit.object(), unit.collection()
    unit.set(oid, 5, 0x4000_0001, struct.pack(">I", 5))
    joining = changing(unit, oid, (4, 1, cid.to_bytes(8, "big")))
    mine = unit.proof(joining).but(tag=5)
    unit.is_refused(unit.send_proved(joining, mine), FIELD, 140)
    unit.set(cid, 0x6000_0005, 0x4000_0001, struct.pack(">I", 5))
    unit.is_good(unit.send_proved(joining, mine))


# ---- ALLOWED ATTRIBUTES ACCESS -------------------------------------------------------------------


def allow(t: Guarded, *pairs: tuple[int, int]) -> None:
    t.set(0, 0x3000_0004, 3, b"".join(struct.pack(">II", *each) for each in pairs))


@pytest.mark.parametrize("into", [False, True])
def test_criteria(unit: Guarded, into: bool) -> None:
    """Whether an object matches tells what its attribute is."""
    oid = unit.object()
    unit.set(oid, 0x1_0000, 2, b"secret")
    cid, allowed = unit.collection(oid), (0x1_0000, 1)
    allow(unit, allowed)
    matches = tracking(unit) if into else 0
    for criterion, at in (((0x1_0000, 2), 136), (allowed, None)):
        criteria = query_list((*criterion, b"a", b"z"))
        request = query(unit, cid, criteria, matches=matches)
        proof = unit.proof(request).but(fields=LISTED, oid=0)
        if into:
            request, proof = with_extension(unit, request, _writing(unit, matches))
            proof = proof.but(fields=LISTED)
        answer = unit.send_proved(request, proof)
        if at is None:
            unit.is_good(answer)
        else:
            unit.is_refused(answer, FIELD, at, attribute=criterion)


def _writing(t: Guarded, cid: int) -> Proof:
    return t.proof(w.Request(0x8896, t.pid, cid))


def test_attributes_of_a_copy(unit: Guarded) -> None:
    """They are whichever the source has."""
    source = unit.object(CONTENT)
    unit.set(source, 0x1_0000, 2, b"secret")
    allow(unit, (0x1_0000, 1), (w.CURRENT_COMMAND, w.ALL))
    made = unit.free_oid()

    def sent(attributes: bool, limited: str) -> Answer:
        request = copy(unit, source, made, attributes)
        reading = unit.proof(w.Request(0x8885, unit.pid, source))
        if limited == "source":
            reading = reading.but(fields=LISTED)
        extended, proof = with_extension(unit, request, reading)
        if limited == "destination":
            proof = proof.but(fields=LISTED)
        return unit.send_proved(extended, proof)

    unit.is_refused(sent(True, "destination"), FIELD, 136)
    unit.is_refused(sent(True, "source"), FIELD, 48)
    assert not unit.exists(made)
    unit.is_good(sent(False, "source"))
    allow(unit, (w.ALL, w.ALL))
    made = unit.free_oid()
    unit.is_good(sent(True, "source"))
    made = unit.free_oid()
    unit.is_good(sent(True, "destination"))
