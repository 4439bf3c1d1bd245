# SPDX-License-Identifier: GPL-2.0-or-later
"""Every command with every ingredient of its authorisation missing or wrong: refused with the right sense,
and nothing has changed; then the same request in order does its work.
"""

from __future__ import annotations

import struct
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.conformance import wire as w
from tests.conformance.commands import BY_NAME, Row
from tests.conformance.guard import (
    ALLDATA,
    CAPKEY,
    CMDRSP,
    EVERYTHING,
    SHA1,
    SHA256,
    Guarded,
    Proof,
    fresh_nonce,
    mac,
)
from tests.conformance.lu import CHECK_CONDITION, GOOD, Answer, LogicalUnit
from tests.conformance.suite.instances import (
    CONTENT,
    MAKE,
    application,
    copy_source,
    query,
    query_list,
    scattered,
    tracking,
)
from tests.conformance.suite.versions import version, wanting
from tests.conftest import MakeHarness
from tests.harness import StartFailed, build_sanitized

TOKEN = bytes(range(16))
METHODS = {"capkey": CAPKEY, "cmdrsp": CMDRSP, "alldata": ALLDATA}
FIELD, DATA_OUT, REPEATED, OUT_OF_TIME = 0x2400, 0x260F, 0x2406, 0x2407

READ, WRITE, GET, SET, CREATE, REMOVE, OBJ_MGMT, APPEND = (1 << bit for bit in range(15, 7, -1))
DEV_MGMT, GLOBAL, POL_SEC, M_OBJECT, QUERY, GBL_REM, FUN_EXE = (1 << bit for bit in range(7, 0, -1))
NEEDS = {
    "OBJECT STRUCTURE CHECK": DEV_MGMT,
    "FORMAT OSD": OBJ_MGMT | GLOBAL,
    "CREATE": CREATE,
    "LIST": READ,
    "PUNCH": WRITE,
    "READ": READ,
    "WRITE": WRITE,
    "APPEND": APPEND,
    "FLUSH": OBJ_MGMT,
    "CLEAR": WRITE,
    "REMOVE": REMOVE,
    "CREATE PARTITION": CREATE,
    "REMOVE PARTITION": REMOVE,
    "CAS": GET | SET,
    "GET ATTRIBUTES": GET,
    "SET ATTRIBUTES": SET,
    "FA": GET | SET,
    "COND SETATTR": GET | SET,
    "CREATE AND WRITE": CREATE | WRITE,
    "COPY USER OBJECTS": CREATE | READ | WRITE,
    "CREATE USER TRACKING COLLECTION": CREATE | READ | WRITE,
    "CREATE COLLECTION": CREATE,
    "REMOVE COLLECTION": REMOVE,
    "LIST COLLECTION": READ,
    "FLUSH COLLECTION": OBJ_MGMT,
    "FLUSH PARTITION": OBJ_MGMT,
    "FLUSH OSD": OBJ_MGMT,
    "QUERY": QUERY,
    "REMOVE MEMBER OBJECTS": REMOVE | M_OBJECT,
    "GET MEMBER ATTRIBUTES": GET | M_OBJECT,
    "SET MEMBER ATTRIBUTES": SET | M_OBJECT,
    "GEN CAS": GET | SET,
    "READ MAP": DEV_MGMT,
    "PERFORM SCSI COMMAND": DEV_MGMT | GLOBAL,
    "PERFORM TASK MANAGEMENT FUNCTION": DEV_MGMT | GLOBAL,
    "EXEC": FUN_EXE,
    "EXECUTE FUNCTION": FUN_EXE,
    "ACTIVATE FUNCTION": SET | FUN_EXE,
}
OURS = {"CAS": 0x8F84, "FA": 0x8F85, "GEN CAS": 0x8F86, "COND SETATTR": 0x8F87}
"""Codes of commands whose private ones are another implementation's."""
RANGED = ("READ", "WRITE", "CLEAR", "CREATE AND WRITE", "PUNCH")


@dataclass(frozen=True)
class Wrong:
    """A fault of a request, and its refusal. least: the weakest method that detects it."""

    name: str
    spoil: Callable[[Proof], Proof]
    code: int = FIELD
    at: int | None = 80
    least: int = CAPKEY


def field(at: int, value: bytes) -> Callable[[Proof], Proof]:
    return lambda proof: proof.but(fields={at: value})


def far(proof: Proof) -> Proof:
    return proof.but(nonce=int((time.time() + 3600) * 1000).to_bytes(6, "big") + bytes(6))


def other_type(proof: Proof) -> Proof:
    kind = w.COLLECTION if proof.kind == w.USER_OBJECT else w.USER_OBJECT
    return proof.but(fields={128: bytes((kind,))})


WRONG = [
    Wrong("no capability", lambda proof: proof.but(fields={80: bytes(104)}, method=0)),
    Wrong("format 0", field(80, b"\0")),
    Wrong("format of OSD-1", field(80, b"\1")),
    Wrong("algorithm unknown", field(81, b"\x02")),
    Wrong("key version not set", lambda proof: proof.but(version=5)),
    Wrong("another key", lambda proof: proof.but(secret=bytes(32))),
    Wrong("method NOSEC", field(82, b"\0")),
    Wrong("method unknown", field(82, b"\4")),
    Wrong("check value flipped", lambda proof: proof.but(tampered="request")),
    Wrong("audit flipped", lambda proof: proof.but(tampered=95)),
    Wrong("last byte of the capability flipped", lambda proof: proof.but(tampered=183)),
    Wrong("nonce flipped", lambda proof: proof.but(tampered=227), least=CMDRSP),
    Wrong("offset flipped", lambda proof: proof.but(tampered=235), least=CMDRSP),
    Wrong("timestamps control flipped", lambda proof: proof.but(tampered=12), least=CMDRSP),
    Wrong("less protection", lambda proof: proof.but(method=CAPKEY), at=82, least=CMDRSP),
    Wrong("nonce too old", lambda proof: proof.but(nonce=bytes(12)), OUT_OF_TIME, None, CMDRSP),
    Wrong("nonce of the future", far, OUT_OF_TIME, None, CMDRSP),
    Wrong("expired", field(84, bytes(5) + b"\1"), at=84),
    Wrong("type of object", other_type, at=128),
    Wrong("two types of object", field(128, b"\xc3"), at=128),
    Wrong("type of descriptor", field(135, b"\0"), at=135),
    Wrong("another partition", field(152, b"\x11" * 8), at=152),
    Wrong("policy access tag", lambda proof: proof.but(tag=7), at=140),
    Wrong("created another time", field(122, bytes(5) + b"\1"), at=122),
    Wrong("another boot epoch", field(144, b"\xff\xff"), at=144),
    Wrong("no permission", lambda proof: proof.but(permissions=0), at=129),
]


def less(bit: int) -> Wrong:
    return Wrong(f"without {bit:04X}", lambda p: p.but(permissions=EVERYTHING & ~bit), at=129)


def wrongs(row: Row, request: w.Request, proof: Proof) -> Iterator[Wrong]:
    """All that can be wrong with a request."""
    yield from WRONG
    yield from (less(1 << bit) for bit in range(16) if NEEDS[row.name] & 1 << bit)
    if proof.kind in (w.USER_OBJECT, w.COLLECTION):
        yield Wrong("another object", field(160, b"\x22" * 8), at=160)
    short, start = struct.pack(">QQ", 1, 0), struct.pack(">QQ", 1 << 50, 1 << 40)
    if row.name in RANGED:
        yield Wrong("range too short", field(168, short), at=168)
        yield Wrong("range elsewhere", field(168, start), at=176)
    if row.name == "APPEND":
        yield Wrong("range has an end", field(168, short), at=168)
    if request.segment:
        yield Wrong("continuation", lambda p: p.but(tampered="continuation"), FIELD, 48, CMDRSP)
    if request.build().data_out:
        yield Wrong("Data-Out", lambda p: p.but(tampered="data-out"), DATA_OUT, None, ALLDATA)


@pytest.fixture(params=[*METHODS, "sanitized"])
def unit(
    request: pytest.FixtureRequest, tmp_path: Path, make_harness: MakeHarness
) -> Iterator[Guarded]:
    key = tmp_path / "master.key"
    build = build_sanitized() if request.param == "sanitized" else None
    method = "alldata" if build else request.param
    options: dict[str, object] = {"memory": 1, "security": method, "token": TOKEN.hex()}
    harness = make_harness(build, **options, **{"master-key": key})
    found = Guarded(harness.transport, key, TOKEN, METHODS[method], residuals=False)
    found.take_over()
    found.supported = {name for name in BY_NAME if name in MAKE}
    found.begin()
    yield found


def state(t: Guarded, request: w.Request) -> object:
    """State that a refused request must not change."""
    roots = w.ObjectList.read(t.good(w.Request(0x8883, length=4096, data_in=4096)).data).ids()
    inside = (sorted(t.user_objects()), sorted(t.members(0)))
    named: object = None
    if request.oid in inside[0]:
        named = (t.read(request.oid), t.get(request.oid, 0x1_0000, 1))
    return roots, inside, named


def refused_as_it_should(t: Guarded, request: w.Request, proof: Proof, wrong: Wrong) -> None:
    answer = t.send_proved(request, wrong.spoil(proof))
    assert answer.status == CHECK_CONDITION, f"{wrong.name}: {answer}"
    t.is_refused(answer, wrong.code, wrong.at)
    assert not answer.data, wrong.name


def test_every_ingredient(unit: Guarded) -> None:
    """Each command with each thing that can be wrong: one item a method, which lists what differs."""
    wrong = []
    for name in sorted(NEEDS, key=lambda name: name == "FORMAT OSD"):  # it takes all objects away
        try:
            try_ingredients(unit, name)
        except AssertionError as error:
            wrong.append(f"{name}: {error}")
    assert not wrong, "\n".join(wrong)


def try_ingredients(unit: Guarded, name: str) -> None:
    """Send a command with everything that can be wrong, then as it should be, then repeated."""
    row = BY_NAME[name]
    request = MAKE[name](unit)
    request = request.but(action=OURS.get(name, request.action))
    proof = unit.proof(request)
    if name == "COPY USER OBJECTS":
        proof = proof.but(oid=0)  # its source, too
    before = state(unit, request)
    for wrong in wrongs(row, request, proof):
        if wrong.least <= unit.security_method:
            refused_as_it_should(unit, request, proof, wrong)
    assert state(unit, request) == before
    once = proof.but(nonce=fresh_nonce())
    answer = unit.send_proved(request, once)
    unit.is_good(answer)
    if unit.security_method >= CMDRSP:
        unit.is_refused(unit.send_proved(request, once), REPEATED)


def test_sha1(unit: Guarded) -> None:
    unit.algorithm = SHA1
    oid = unit.object(CONTENT)
    assert unit.read(oid) == CONTENT
    proof = unit.proof(w.Request(0x8888, unit.pid, oid)).but(tampered="request")
    unit.is_refused(unit.send_proved(w.Request(0x8888, unit.pid, oid), proof), FIELD, 80)


def denied(t: Guarded, request: w.Request, less_than_all: int, at: int = 129) -> Answer:
    proof = t.proof(request).but(permissions=EVERYTHING & ~less_than_all)
    return t.is_refused(t.send_proved(request, proof), FIELD, at)


@pytest.mark.parametrize("name", ["READ", "WRITE", "CREATE", "REMOVE", "LIST", "FLUSH OSD"])
def test_attributes_along(unit: Guarded, name: str) -> None:
    """Set and got with a command they need permissions of their own; the Current Command page none."""
    page = application(BY_NAME[name])
    setting = MAKE[name](unit).but(sets=((page, 1, b"x"),))
    denied(unit, setting, SET)
    getting = MAKE[name](unit).but(gets=((page, 1),))
    denied(unit, getting, GET)
    current = MAKE[name](unit).but(gets=((w.CURRENT_COMMAND, w.ALL),))
    proof = unit.proof(current).but(permissions=EVERYTHING & ~(GET | SET))
    unit.is_good(unit.send_proved(current, proof))
    paged = MAKE[name](unit).but(form=w.PAGE, page=page + 0x10)
    denied(unit, paged, GET)


def test_policy_pages(unit: Guarded) -> None:
    """Setting an attribute that decides about rights needs POL/SEC."""
    oid = unit.object()
    tag = struct.pack(">I", 9)
    for request in (
        w.Request(0x888F, unit.pid, oid, sets=((0x5, 0x4000_0001, tag),)),
        w.Request(0x888F, unit.pid, 0, sets=((0x3000_0005, 1, b"\0"),)),
        w.Request(0x888F, unit.pid, 0, sets=((0x3000_0004, 1, bytes(8)),)),
        w.Request(0x888F, 0, 0, sets=((0x9000_0005, 6, b"\0"),)),
        w.Request(0x888F, unit.pid, oid, form=w.SET_ONE, set_one=(0x5, 0x4000_0001, tag)),
    ):
        denied(unit, request, POL_SEC)
    setting = w.Request(0x888F, unit.pid, oid, sets=((0x5, 0x4000_0001, tag),))
    proof = unit.proof(setting).but(permissions=EVERYTHING & ~POL_SEC)
    answer = unit.send_proved(setting, proof)
    unit.is_refused(answer, FIELD, 129, attribute=(0x5, 0x4000_0001))
    unit.set(oid, 0x5, 0x4000_0001, tag)
    assert unit.number(oid, 0x5, 0x4000_0001) == 9
    reading = w.Request(0x8885, unit.pid, oid, 0, 0)
    unit.is_refused(unit.send_proved(reading, unit.proof(reading).but(tag=8)), FIELD, 140)
    unit.is_good(unit.send_proved(reading, unit.proof(reading).but(tag=9)))


def test_allowed_attributes(unit: Guarded) -> None:
    """ALLOWED ATTRIBUTES ACCESS: those that the partition's page names, and no others."""
    oid = unit.object()
    pairs = struct.pack(">IIII", 0x1_0000, 1, 0x1_0001, w.ALL)
    unit.set(0, 0x3000_0004, 3, pairs)
    limit = {136: struct.pack(">I", 3)}
    for page, number, permitted in (
        (0x1_0000, 1, True),
        (0x1_0000, 2, False),
        (0x1_0001, 7, True),
        (0x1_0001, w.ALL, True),
        (0x1_0000, w.ALL, False),
        (w.CURRENT_COMMAND, w.ALL, True),
    ):
        getting = w.Request(0x888E, unit.pid, oid, gets=((page, number),), allocation=1024)
        answer = unit.send_proved(getting, unit.proof(getting).but(fields=limit))
        if permitted:
            unit.is_good(answer)
        else:
            unit.is_refused(answer, FIELD, 136, attribute=(page, number))
    counting = w.Request(OURS["FA"], unit.pid, oid, 8, data=bytes(8), data_in=8)
    answer = unit.send_proved(counting, unit.proof(counting).but(fields=limit))
    unit.is_refused(answer, FIELD, 136)
    setting = w.Request(0x888F, unit.pid, oid, sets=((0x1_0000, 2, b"x"),))
    unit.is_refused(unit.send_proved(setting, unit.proof(setting).but(fields=limit)), FIELD, 136)


def test_pieces_lie_in_the_range(unit: Guarded) -> None:
    oid = unit.object(CONTENT)
    for action in (0x8885, 0x8886):
        request = scattered(action, unit, oid)  # bytes 0-3 and 16-23
        proof = unit.proof(request)
        inside = proof.but(fields={168: struct.pack(">QQ", 24, 0)})
        unit.is_good(unit.send_proved(request, inside))
        short = proof.but(fields={168: struct.pack(">QQ", 23, 0)})
        unit.is_refused(unit.send_proved(request, short), FIELD, 168)


@pytest.mark.parametrize(
    ("name", "conditional"),
    [
        ("READ", False),
        ("READ", True),
        ("WRITE", False),
        ("WRITE", True),
        ("CREATE AND WRITE", False),
    ],
)
def test_a_segment_without_pieces_widens_no_range(
    unit: Guarded, name: str, conditional: bool
) -> None:
    """The bytes are those of the CDB: 24 from 0 on."""
    action, creates = BY_NAME[name].code, name == "CREATE AND WRITE"
    oid = unit.free_oid() if creates else unit.object(CONTENT)
    part = wanting(action, version(unit, oid)) if conditional else w.segment(action)
    how = {"data_in": 24} if name == "READ" else {"data": bytes(24)}
    request = w.Request(action, unit.pid, oid, 24, segment=part).but(**how)
    proof = unit.proof(request)
    for length, start, at in ((23, 0, 168), (0, 1, 176)):
        limit = {168: struct.pack(">QQ", length, start)}
        answer = unit.send_proved(request, proof.but(fields=limit))
        assert not unit.is_refused(answer, FIELD, at).data
    if creates:
        assert not unit.exists(oid)
    else:
        assert unit.read(oid) == CONTENT
    inside = proof.but(fields={168: struct.pack(">QQ", 24, 0)})
    unit.is_good(unit.send_proved(request, inside))


def tagged(t: Guarded, tag: int) -> tuple[int, int, int]:
    """A collection with that tag of two objects, the first without, the second with it."""
    plain, marked = t.object(CONTENT), t.object(CONTENT)
    cid = t.collection(plain, marked)
    for oid, base in ((marked, 0), (cid, 0x6000_0000)):
        t.set(oid, base + 0x5, 0x4000_0001, struct.pack(">I", tag))
    return cid, plain, marked


def test_members_of_another_tag_are_skipped(unit: Guarded) -> None:
    cid, plain, marked = tagged(unit, 5)

    def sent(request: w.Request) -> Answer:
        return unit.is_good(unit.send_proved(request, unit.proof(request).but(tag=5)))

    sent(w.Request(0x88A3, unit.pid, cid, sets=((0x1_0000, 1, b"new"),)))
    assert (unit.get(plain, 0x1_0000, 1), unit.get(marked, 0x1_0000, 1)) == (b"", b"new")
    got = sent(w.Request(0x88A2, unit.pid, cid, gets=((0x1_0000, 1),)))
    assert [each.oid for each in w.object_blocks(got.retrieved[8:])] == [marked]
    found = sent(query(unit, cid, query_list()))
    assert list(struct.iter_unpack(">Q", found.data[-8:])) == [(marked,)]
    listed = sent(
        w.Request(*(0x8897, unit.pid, cid, 4096), byte11=0x40, gets=((0x1_0000, 1),), data_in=4096)
    )
    blocks = w.object_blocks(w.ObjectList.read(listed.data).body)
    values = {each.oid: [value for _, _, value in each.attributes] for each in blocks}
    assert values == {plain: [], marked: [b"new"]}
    sent(w.Request(0x88A1, unit.pid, cid))
    assert unit.exists(plain)
    assert not unit.exists(marked)


def with_extension(t: Guarded, request: w.Request, *proofs: Proof) -> tuple[w.Request, Proof]:
    room = struct.pack(">H6x", len(proofs)) + bytes(136 * len(proofs))
    extended = request.but(segment=request.segment + w.descriptor(0xFFEE, room))
    return extended, t.proof(request).but(extensions=proofs)


def test_extension_capabilities(unit: Guarded) -> None:
    """The source of a copy is permitted by the capability or by another one in the continuation."""
    source, made = unit.object(CONTENT), unit.free_oid()
    segment = w.segment(0x8893, copy_source(unit.pid, source))
    request = w.Request(0x8893, unit.pid, made, segment=segment)
    unit.is_refused(unit.send_proved(request, unit.proof(request)), FIELD, 160)
    reading = unit.proof(w.Request(0x8885, unit.pid, source))
    for wrong in (
        reading.but(permissions=EVERYTHING & ~READ),
        reading.but(oid=made),
        reading.but(tag=3),
        reading.but(fields={84: bytes(5) + b"\1"}),
        reading.but(fields={168: struct.pack(">QQ", 5, 0)}),
        reading.but(tampered="request"),
        reading.but(secret=bytes(32)),
        reading.but(method=CAPKEY if unit.security_method != CAPKEY else CMDRSP),
    ):
        unit.is_refused(unit.send_proved(*with_extension(unit, request, wrong)), FIELD, 48)
    assert not unit.exists(made)
    unit.is_good(unit.send_proved(*with_extension(unit, request, reading)))
    assert unit.read(made) == CONTENT


def test_matches_and_source_of_collections(unit: Guarded) -> None:
    cid = unit.collection(unit.object())
    matches = tracking(unit)
    request = query(unit, cid, query_list(), matches=matches)
    writing = unit.proof(w.Request(0x8896, unit.pid, matches))
    unit.is_refused(
        unit.send_proved(*with_extension(unit, request, writing.but(permissions=READ))), FIELD, 48
    )
    unit.is_good(unit.send_proved(*with_extension(unit, request, writing)))
    made = unit.free_oid()
    segment = w.segment(0x8894)
    making = w.Request(0x8894, unit.pid, made, address=cid, segment=segment)
    reading = unit.proof(w.Request(0x8897, unit.pid, cid))
    unit.is_refused(
        unit.send_proved(*with_extension(unit, making, reading.but(permissions=WRITE))), FIELD, 48
    )
    unit.is_good(unit.send_proved(*with_extension(unit, making, reading)))
    wide = unit.proof(making).but(oid=0)  # every collection
    unit.is_good(unit.send_proved(making.but(oid=unit.free_oid()), wide))


def test_contents_of_a_partition(unit: Guarded) -> None:
    """REMOVE PARTITION with what is in it needs GBL_REM too."""
    pid = unit.partition()
    unit.object(pid=pid)
    removing = w.Request(0x888C, pid, byte11=1)
    denied(unit, removing, GBL_REM)
    unit.good(removing)


def test_nobody_finds_out_what_is_there(unit: Guarded) -> None:
    """Without the key all refusals are the same, whatever exists and however the CDB is broken."""
    there, partition = unit.object(), unit.pid
    seen = set()
    for request in (
        w.Request(0x8885, partition, there),
        w.Request(0x8885, partition, unit.free_oid()),
        w.Request(0x8885, unit.absent_pid(), there),
        w.Request(0x8885, 5, there),
        w.Request(0x8885, partition, there, form=0),
        w.Request(0x88FF, partition, there),
        w.Request(0x8886, partition, there, 100, 0, data=b"short"),
        w.Request(0x8885, partition, there, segment=bytes(40)),
        w.Request(0x8898, partition, byte11=3),
        w.Request(0x8899),
    ):
        proof = unit.proof(request)
        for wrong in (proof.but(secret=bytes(32)), proof.but(method=0)):
            answer = unit.send_proved(request, wrong)
            assert answer.status != GOOD
            sense = answer.sense
            assert sense is not None
            seen.add((sense.key, sense.code, sense.pointer, tuple(sense.kinds)))
    assert len(seen) == 1, seen


def test_missing_object_is_told_to_who_may_ask(unit: Guarded) -> None:
    request = w.Request(0x8885, unit.pid, unit.free_oid())
    unit.is_refused(unit.send_proved(request, unit.proof(request)), FIELD, 24)
    request = w.Request(0x8885, unit.absent_pid(), unit.free_oid())
    unit.is_refused(unit.send_proved(request, unit.proof(request)), FIELD, 80)  # it has no keys


def test_frozen_key(unit: Guarded) -> None:
    oid = unit.object()
    unit.set(0, 0x3000_0005, 5, b"\0\1")
    unit.is_refused(unit.send(w.Request(0x8888, unit.pid, oid)), 0x2405)


def test_method_of_a_partition_changes(unit: Guarded) -> None:
    """Lowered with POL/SEC it takes requests without a capability, raised again it does not."""
    oid = unit.object(CONTENT)
    plain = w.Request(0x8885, unit.pid, oid, len(CONTENT), data_in=len(CONTENT))
    bare = Proof(bytes(32), 0, 0x80, 0, 0, permissions=0)
    unit.is_refused(unit.send_proved(plain, bare), FIELD, 80)
    unit.set(0, 0x3000_0005, 1, b"\0")
    assert unit.is_good(unit.send_proved(plain, bare)).data == CONTENT
    wrong = unit.proof(plain).but(permissions=WRITE)
    unit.is_refused(unit.send_proved(plain, wrong), FIELD, 129)  # who shows one is held to it
    unit.set(0, 0x3000_0005, 1, b"\3")
    unit.is_refused(unit.send_proved(plain, bare), FIELD, 80)


@pytest.mark.parametrize("form", ["list", "page", "single", "members"])
def test_response(unit: Guarded, form: str) -> None:
    """Attribute #1 of the Current Command page is over what the page says in the end."""
    if unit.security_method < CMDRSP:
        pytest.skip("responses are proved from CMDRSP on")
    cid = unit.collection(unit.object(CONTENT), unit.object(CONTENT))
    appending = w.Request(0x8887, unit.pid, unit.object(CONTENT), 5, data=b"hello")
    everything = ((w.CURRENT_COMMAND, w.ALL),)
    request = {
        "list": appending.but(gets=(*everything, (0x1_0000, 1))),
        "page": appending.but(form=w.PAGE, page=w.CURRENT_COMMAND, allocation=76),
        "single": w.Request(0x8885, unit.pid, unit.object(), gets=((w.CURRENT_COMMAND, 1),)),
        "members": w.Request(
            *(0x88A3, unit.pid, cid), sets=((0x1_0000, 1, b"new"),), gets=everything
        ),
    }[form]
    answer = unit.is_good(unit.send_proved(request, unit.proof(request)))
    retrieved = answer.retrieved
    if form == "page":
        page = retrieved[:76]
    else:
        entries = list(w.value_entries(retrieved[8:]))
        if form == "members":
            blocks = w.object_blocks(retrieved[8:])
            assert (blocks[0].oid, blocks[0].kind) == (cid, w.COLLECTION)
            entries = blocks[0].attributes
            assert [each.attributes for each in blocks[1:]] == [[], []]
        values = {number: value for at, number, value in entries if at == w.CURRENT_COMMAND}
        if form == "single":
            kind, ids = bytes((w.USER_OBJECT,)), struct.pack(">QQ", unit.pid, request.oid)
            values |= {2: kind, 3: ids[:8], 4: ids[8:], 5: bytes(8), 6: bytes(8)}
        head = struct.pack(">II", w.CURRENT_COMMAND, 68)
        page = head + values[1] + values[2] + bytes(3) + b"".join(values[n] for n in (3, 4, 5, 6))
    check, plain = page[8:40], page[:8] + bytes(32) + page[40:]
    nonce = answer.built.cdb[216:228]
    key = mac(SHA256, unit.working(), answer.built.cdb[80:184], unit.system_id)
    assert check == mac(SHA256, key, nonce, bytes((GOOD,)), plain)
    if form == "list":
        assert page[60:68] == struct.pack(">Q", len(CONTENT))


def test_no_room_for_integrity_information(unit: Guarded) -> None:
    """An offset that names no place: in Data-In 24/00 at 228, in Data-Out at 232."""
    if unit.security_method < ALLDATA:
        pytest.skip("only ALLDATA protects data")
    oid = unit.object(CONTENT)
    reading = w.Request(0x8885, unit.pid, oid, 64, 0, data_in=64)
    for offset in (w.UNUSED, w.offset(56)[0], w.offset(120)[0], 0):
        proof = unit.proof(reading).but(offsets=(offset, w.UNUSED))
        unit.is_refused(unit.send_proved(reading, proof), FIELD, 228)
    writing = w.Request(0x8886, unit.pid, oid, 5, 0, data=b"other")
    for offset in (w.UNUSED, w.offset(16)[0], w.offset(1 << 40)[0]):
        proof = unit.proof(writing).but(offsets=(w.UNUSED, offset))
        unit.is_refused(unit.send_proved(writing, proof), FIELD, 232)
    proof = unit.proof(writing).but(offsets=(w.UNUSED, 0))
    unit.is_refused(unit.send_proved(writing, proof), DATA_OUT)
    assert unit.read(oid) == CONTENT


def test_in_the_background(unit: Guarded) -> None:
    """A background command keeps the rights that it had when it was accepted."""
    cid, plain, marked = tagged(unit, 5)
    request = w.Request(0x88A3, unit.pid, cid, byte11=0x80, sets=((0x1_0000, 1, b"late"),))
    soon = int((time.time() + 60) * 1000).to_bytes(6, "big")
    unit.is_good(unit.send_proved(request, unit.proof(request).but(tag=5, fields={84: soon})))
    unit.until(lambda: unit.get(marked, 0x1_0000, 1) == b"late", "the attribute set")
    unit.until(lambda: unit.number(cid, 0x6000_0004, 2) == 0, "the command over")
    assert unit.get(plain, 0x1_0000, 1) == b""


def test_nobody_is_served_by_mistake(tmp_path: Path, make_harness: MakeHarness) -> None:
    """secure=1, as osd target serve says beyond loopback, wants a store that asks for capabilities."""
    store = tmp_path / "store"
    make_harness(dir=store).finish()  # as one of an earlier release: nothing is asked for
    with pytest.raises(StartFailed, match="the security method of its root is NOSEC"):
        make_harness(dir=store, security="alldata", secure=1)
    other = tmp_path / "other"
    make_harness(dir=other, security="capkey", secure=1).finish()
    harness = make_harness(dir=other, secure=1)  # it keeps what it says
    plain = LogicalUnit(harness.transport, residuals=False)
    plain.is_refused(plain.send(w.Request(0x888E)), FIELD, 80)
