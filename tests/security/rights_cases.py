# SPDX-License-Identifier: GPL-2.0-or-later
"""The requests of the rights matrix: every command, with every kind of second object.

A shape is a request on objects of one partition, with what the model has to know of it.  Not here: the
capabilities under which it is sent (rights_defects.py).
"""

from __future__ import annotations

import struct
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from tests.conformance import wire as w
from tests.conformance.commands import BY_NAME
from tests.conformance.guard import SET_MASTER_KEY
from tests.conformance.lu import Answer
from tests.conformance.suite.instances import (
    FUNCTIONS,
    HOLD_JOB,
    call_parameters,
    copy_source,
    query_list,
)
from tests.fields import replace
from tests.security import rights_model as m
from tests.security.rights_estate import APPLICATION, BASES, FROZEN_MASK, TAG, Estate, seed_of
from tests.security.rights_model import P

ROOM = 4096
OURS = {"CAS": 0x8F84, "FA": 0x8F85, "GEN CAS": 0x8F86, "COND SETATTR": 0x8F87}
"""Codes of commands whose private ones are another implementation's."""
SPARE_VERSION = 9


@dataclass(frozen=True)
class Sent:
    """A request, what the model is told, and whether doing it changes what later cases find.

    seen: which of the objects inside the answer was about.  after: what is to be undone.
    room: QUERY has room for extension capabilities where it names a second collection, and only there.
    """

    request: w.Request
    ask: m.Ask
    spends: bool = False
    seen: Callable[[Estate, Answer], set[int]] | None = None
    after: Callable[[Estate, Answer], None] | None = None
    room: bool = False


Make = Callable[[Estate, int], Sent]


@dataclass(frozen=True)
class Shape:
    """name: of the command and how it is varied.  second: kind of second object.  of_root: judged by the
    root's method, so it is tried once for each of those."""

    name: str
    make: Make
    second: str = "none"
    of_root: bool = False


# ---- objects -----------------------------------------------------------------------------------


def user(t: Estate, pid: int, tag: int = 0) -> m.Thing:
    oid = t.keep(lambda: t.new_object(pid, tag), "user", pid, tag)
    return t.thing(pid, oid)


def members(t: Estate, pid: int, tag: int = 0) -> tuple[m.Thing, tuple[m.Thing, ...]]:
    """A collection of two objects, of which the second has the tag."""

    def make() -> tuple[int, tuple[int, int]]:
        inside = t.new_object(pid), t.new_object(pid, tag)
        return t.new_collection(pid, *inside, tag=tag), inside

    cid, inside = t.keep(make, "members", pid, tag)
    return t.thing(pid, cid), tuple(t.thing(pid, oid) for oid in inside)


def empty(t: Estate, pid: int) -> m.Thing:
    return t.thing(pid, t.keep(lambda: t.new_collection(pid), "empty", pid))


def tracking(t: Estate, pid: int) -> m.Thing:
    def make() -> int:
        cid = t.free_oid()
        t.good(w.Request(0x8894, pid, cid))
        t.things[pid, cid] = t.observed(m.Thing(m.COLLECTION, pid, cid))
        return cid

    return t.thing(pid, t.keep(make, "tracking", pid))


def fresh(t: Estate, pid: int, kind: int = m.USER) -> m.Thing:
    """An object to be made."""
    return m.Thing(kind, pid, t.free_oid(), made=True)


# ---- one request of each command ---------------------------------------------------------------


def ids(thing: m.Thing) -> tuple[int, int]:
    return thing.pid, thing.oid


def simple(name: str, thing: m.Thing, spends: bool = False, **how: object) -> Sent:
    code = OURS.get(name, BY_NAME[name].code)
    request = w.Request(code, *ids(thing)).but(**how)
    return Sent(request, m.Ask(name, thing), spends)


def data_of(
    name: str, thing: m.Thing, span: tuple[int, int], spends: bool = False, **how: object
) -> Sent:
    sent = simple(name, thing, spends, **how)
    return replace(sent, ask=sent.ask.but(span=span))


def create(t: Estate, pid: int) -> Sent:
    return simple("CREATE", fresh(t, pid))


def remove(t: Estate, pid: int) -> Sent:
    return simple("REMOVE", user(t, pid), True)


def read(t: Estate, pid: int) -> Sent:
    return data_of("READ", user(t, pid), (0, 16), length=16, data_in=16)


def scattered_read(t: Estate, pid: int) -> Sent:
    part = w.segment(0x8885, w.pieces((0, 4), (16, 8)))
    return data_of("READ", user(t, pid), (0, 24), length=12, segment=part, data_in=12)


def unscattered_read(t: Estate, pid: int) -> Sent:
    """With a segment that has no pieces."""
    part = w.segment(0x8885)
    return data_of("READ", user(t, pid), (0, 16), length=16, segment=part, data_in=16)


def unscattered_write(t: Estate, pid: int) -> Sent:
    part = w.segment(0x8886)
    return data_of("WRITE", user(t, pid), (0, 5), length=5, segment=part, data=b"hello")


def write(t: Estate, pid: int) -> Sent:
    return data_of("WRITE", user(t, pid), (0, 5), length=5, data=b"hello")


def append(t: Estate, pid: int) -> Sent:
    span = (m.ENDLESS - 1, m.ENDLESS - 1)  # what it changes has no address yet
    return data_of("APPEND", user(t, pid), span, length=5, data=b"hello")


def punch(t: Estate, pid: int) -> Sent:
    return data_of("PUNCH", user(t, pid), (4, m.ENDLESS), True, length=8, address=4)


def clear(t: Estate, pid: int) -> Sent:
    return data_of("CLEAR", user(t, pid), (4, 12), length=8, address=4)


def create_and_write(t: Estate, pid: int) -> Sent:
    return data_of("CREATE AND WRITE", fresh(t, pid), (0, 5), length=5, data=b"hello")


def counter(name: str, operands: int) -> Make:
    return lambda t, pid: simple(name, user(t, pid), length=8, data=bytes(operands), data_in=8)


def conditional(name: str) -> Make:
    def make(t: Estate, pid: int) -> Sent:
        sets = ((APPLICATION, 1, b""), (APPLICATION, 1, b"new"))
        sent = simple(name, user(t, pid), True, sets=sets)
        return replace(sent, ask=sent.ask.but(sets=((APPLICATION, 1),)))

    return make


def listing(name: str, thing: m.Thing) -> Sent:
    return simple(name, thing, length=ROOM, data_in=ROOM)


def root(t: Estate) -> m.Thing:
    return t.thing(0)


def create_partition(t: Estate, _: int) -> Sent:
    pid = t.free_pid()

    def remove_it(t: Estate, answer: Answer) -> None:
        t.good(w.Request(0x888C, pid))

    made = m.Thing(m.PARTITION, pid, made=True)
    return replace(simple("CREATE PARTITION", made), after=remove_it)


def remove_partition(t: Estate, _: int) -> Sent:
    return simple("REMOVE PARTITION", t.thing(t.keep(lambda: doomed(t), "doomed")), True)


def remove_contents(t: Estate, _: int) -> Sent:
    pid = t.keep(lambda: doomed(t), "doomed")
    sent = simple("REMOVE PARTITION", t.thing(pid), True, byte11=1)
    return replace(sent, ask=sent.ask.but(extra=P.GBL_REM))


def doomed(t: Estate) -> int:
    pid = t.partition()
    t.things[pid, 0] = t.observed(m.Thing(m.PARTITION, pid))
    return pid


def removed_collection(t: Estate, pid: int) -> Sent:
    return simple("REMOVE COLLECTION", empty(t, pid), True)


def query_of(t: Estate, pid: int) -> Sent:
    part = w.segment(0x88A0, query_list())
    return simple("QUERY", members(t, pid)[0], length=ROOM, data_in=ROOM, segment=part)


def member_command(name: str, spends: bool) -> Make:
    return lambda t, pid: simple(name, members(t, pid)[0], spends)


def task_management(t: Estate, _: int) -> Sent:
    name = "PERFORM TASK MANAGEMENT FUNCTION"
    return simple(name, root(t), length=8 << 48 | 0x81, data_in=8)


def cancel(t: Estate, answer: Answer) -> None:
    """Cancel a held job and remove its object."""
    pid, oid = (int.from_bytes(value, "big") for value in answer.values)
    if pid not in t.pairs:
        t.give_keys(pid)  # the partition of jobs without one has just been made
    t.good(w.Request(0x888F, pid, oid, sets=((0x2000_0003, 1, b"\1"),)))
    t.good(w.Request(0x888A, pid, oid))


def exec_in(thing: m.Thing, surrogate: int | None = None, oid: int = 0) -> Sent:
    """A job that is accepted but held, so that it runs nowhere.

    surrogate: partition of the surrogate.  oid: its id; its partition is not sent then.
    """
    code, parameters = b"print('never')\n", HOLD_JOB
    if surrogate is not None:
        parameters = struct.pack(">HH", 1, 2) + HOLD_JOB[4:]
        parameters += struct.pack(">HHIQ", 15 if oid else 14, 1, 8, oid or surrogate)
    part = w.segment(0x8F81, w.descriptor(0xF081, parameters))
    gets = ((m.CURRENT_COMMAND, 3), (m.CURRENT_COMMAND, 4))
    sent = simple("EXEC", thing, length=len(code), byte11=0x80, segment=part, data=code, gets=gets)
    return replace(sent, ask=sent.ask.but(surrogate=surrogate), after=cancel)


def function(t: Estate) -> int:
    """An active function, whose partition demands ALLDATA of requests to itself."""
    t.good(w.Request(0x888B, FUNCTIONS))
    t.give_keys(FUNCTIONS)
    oid = t.new_object(FUNCTIONS, content=b"def main(args): return args\n")
    t.good(w.Request(0x8F83, FUNCTIONS, oid))
    return oid


def call_in(t: Estate, thing: m.Thing) -> Sent:
    """A call that is accepted but held."""
    oid = t.keep_for_ever("function", lambda: function(t))
    part = w.segment(0x8F82, w.descriptor(0xF081, call_parameters(oid)))
    gets = ((m.CURRENT_COMMAND, 3), (m.CURRENT_COMMAND, 4))
    sent = simple(
        "EXECUTE FUNCTION", thing, length=4, byte11=0x80, segment=part, data=b"args", gets=gets
    )
    return replace(sent, after=cancel)


def set_key(t: Estate, pid: int) -> Sent:
    """A working key that nobody uses."""
    request = t.key_request(pid, 3, SPARE_VERSION, seed_of(pid, SPARE_VERSION))
    ask = m.Ask("SET KEY", t.thing(pid), signed_by=f"partition {pid:x}")
    return Sent(request, ask)


def set_partition_key(t: Estate, pid: int) -> Sent:
    """The key of a partition that nobody uses, signed by the root's."""
    spare = t.keep_for_ever("spare", lambda: doomed(t))
    request = t.key_request(spare, 2, 0, seed_of(spare, 2))
    return Sent(request, m.Ask("SET KEY", t.thing(spare), signed_by="root"))


def set_master_key(t: Estate, _: int) -> Sent:
    """The first step, which changes nothing yet.  The client's DH value may be any number."""
    request = w.Request(SET_MASTER_KEY, data=(5).to_bytes(256, "big"), data_in=260)
    request = request.patched(24, bytes((14,)) + b"keyname" + struct.pack(">II", 256, 260))
    return Sent(request, m.Ask("SET MASTER KEY", root(t), signed_by="master"))


def formatted(t: Estate, _: Answer) -> None:
    t.begin_again()


PLAIN = {
    "OBJECT STRUCTURE CHECK": lambda t, pid: simple("OBJECT STRUCTURE CHECK", t.thing(pid)),
    "CREATE": create,
    "LIST": lambda t, pid: listing("LIST", t.thing(pid)),
    "PUNCH": punch,
    "READ": read,
    "READ, scattered": scattered_read,
    "READ, a segment without pieces": unscattered_read,
    "WRITE": write,
    "WRITE, a segment without pieces": unscattered_write,
    "APPEND": append,
    "FLUSH": lambda t, pid: simple("FLUSH", user(t, pid)),
    "CLEAR": clear,
    "REMOVE": remove,
    "CAS": counter("CAS", 16),
    "FA": counter("FA", 8),
    "GET ATTRIBUTES": lambda t, pid: simple("GET ATTRIBUTES", user(t, pid)),
    "SET ATTRIBUTES": lambda t, pid: simple("SET ATTRIBUTES", user(t, pid)),
    "COND SETATTR": conditional("COND SETATTR"),
    "GEN CAS": conditional("GEN CAS"),
    "CREATE AND WRITE": create_and_write,
    "CREATE USER TRACKING COLLECTION": lambda t, pid: simple(
        "CREATE USER TRACKING COLLECTION", fresh(t, pid, m.COLLECTION)
    ),
    "CREATE COLLECTION": lambda t, pid: simple("CREATE COLLECTION", fresh(t, pid, m.COLLECTION)),
    "REMOVE COLLECTION": removed_collection,
    "LIST COLLECTION": lambda t, pid: listing("LIST COLLECTION", members(t, pid)[0]),
    "LIST COLLECTION of a partition": lambda t, pid: listing("LIST COLLECTION", t.thing(pid)),
    "FLUSH COLLECTION": lambda t, pid: simple("FLUSH COLLECTION", members(t, pid)[0]),
    "FLUSH PARTITION": lambda t, pid: simple("FLUSH PARTITION", t.thing(pid)),
    "QUERY": query_of,
    "REMOVE MEMBER OBJECTS": member_command("REMOVE MEMBER OBJECTS", True),
    "GET MEMBER ATTRIBUTES": member_command("GET MEMBER ATTRIBUTES", False),
    "SET MEMBER ATTRIBUTES": member_command("SET MEMBER ATTRIBUTES", False),
    "READ MAP": lambda t, pid: listing("READ MAP", user(t, pid)),
    "SET KEY": set_key,
}
OF_ROOT = {
    "FORMAT OSD": lambda t, _: replace(simple("FORMAT OSD", root(t), True), after=formatted),
    "SET KEY of a partition": set_partition_key,
    "SET MASTER KEY": set_master_key,
    "EXEC in the root": lambda t, _: exec_in(root(t)),
    "LIST of the root": lambda t, _: listing("LIST", root(t)),
    "CREATE PARTITION": create_partition,
    "REMOVE PARTITION": remove_partition,
    "REMOVE PARTITION with contents": remove_contents,
    "FLUSH OSD": lambda t, _: simple("FLUSH OSD", root(t)),
    "OBJECT STRUCTURE CHECK of the root": lambda t, _: simple("OBJECT STRUCTURE CHECK", root(t)),
    "PERFORM SCSI COMMAND": lambda t, _: simple("PERFORM SCSI COMMAND", root(t)),
    "PERFORM TASK MANAGEMENT FUNCTION": task_management,
}


# ---- attributes along with a command -----------------------------------------------------------


def base_of(sent: Sent) -> int:
    """Base of the pages that the request's lists are about."""
    if sent.ask.command in ("GET MEMBER ATTRIBUTES", "SET MEMBER ATTRIBUTES"):
        return BASES[m.USER]
    return BASES[sent.ask.target.kind]


def getting(make: Make, page: int = APPLICATION) -> Make:
    def made(t: Estate, pid: int) -> Sent:
        sent = make(t, pid)
        name = (page if page == m.CURRENT_COMMAND else base_of(sent) + page, 1)
        request = sent.request.but(gets=(name,), allocation=1024)
        return replace(sent, request=request, ask=sent.ask.but(gets=(name,)))

    return made


def setting(make: Make, page: int, number: int, value: bytes, base: int | None = None) -> Make:
    def made(t: Estate, pid: int) -> Sent:
        sent = make(t, pid)
        at = (base_of(sent) if base is None else base) + page
        request = sent.request.but(sets=((at, number, value),))
        return replace(sent, request=request, ask=sent.ask.but(sets=((at, number),)))

    return made


def in_form(form: int, make: Make) -> Make:
    """The one attribute that a request sets, in another form of the CDB than a list."""

    def made(t: Estate, pid: int) -> Sent:
        sent = make(t, pid)
        request = sent.request.but(form=form, set_one=sent.request.sets[0], sets=())
        return replace(sent, request=request)

    return made


NO_LISTS = (
    *("COND SETATTR", "GEN CAS", "CAS", "FA", "SET KEY", "READ MAP"),
    *("READ, scattered", "READ, a segment without pieces", "WRITE, a segment without pieces"),
)
STAGES, HOOKS = 0x2000_0020, 0x2000_0021
UNCHANGED_TAG = (0x5, 0x4000_0001, bytes(4))


def attribute_shapes() -> Iterator[Shape]:
    plain = {name: make for name, make in PLAIN.items() if name not in NO_LISTS}
    for name, make in plain.items():
        yield Shape(f"{name} [gets]", getting(make))
        yield Shape(f"{name} [sets]", setting(make, APPLICATION, 1, b"x"))
        yield Shape(f"{name} [gets the current command]", getting(make, m.CURRENT_COMMAND))
        yield Shape(f"{name} [sets its tag]", setting(make, *UNCHANGED_TAG))
    of_users = ("WRITE", "CREATE AND WRITE", "READ", "SET ATTRIBUTES", "SET MEMBER ATTRIBUTES")
    for name in of_users:
        yield Shape(f"{name} [sets the length]", setting(plain[name], *m.LENGTH, bytes(7) + b"@"))


def of_partition(t: Estate, pid: int) -> Sent:
    return simple("SET ATTRIBUTES", t.thing(pid))


def of_collection(t: Estate, pid: int) -> Sent:
    return simple("SET ATTRIBUTES", empty(t, pid))


def same_method(t: Estate, pid: int) -> Sent:
    method = bytes((t.model.policy(pid).method,))
    return setting(of_partition, 0x5, 1, method)(t, pid)


def policy_shapes() -> Iterator[Shape]:
    """Attributes that decide about rights and space, in each form of request."""
    quota = struct.pack(">Q", m.ENDLESS - 1)
    length = setting(PLAIN["SET ATTRIBUTES"], *m.LENGTH, bytes(7) + b"@")
    tag = setting(PLAIN["SET ATTRIBUTES"], *UNCHANGED_TAG)
    for name, make in {
        "tag of a user object": tag,
        "length": length,
        "tag of a collection": setting(of_collection, *UNCHANGED_TAG),
        "tag of a partition": setting(of_partition, *UNCHANGED_TAG),
        "method of a partition": same_method,
        "frozen keys of a partition": setting(of_partition, 0x5, 5, FROZEN_MASK),
        "attributes access of a partition": setting(of_partition, 0x4, 77, bytes(8)),
        "length quota of a partition": setting(of_partition, 0x2, 1, quota),
        "capacity quota of a partition": setting(of_partition, 0x2, 0x1_0001, quota),
        "count quota of a partition": setting(of_partition, 0x2, 0x1_0002, quota),
        "stage of a user object": setting(PLAIN["SET ATTRIBUTES"], STAGES, 1, b""),
        "stage of a collection": setting(of_collection, STAGES, 1, b""),
        "stage of a partition": setting(of_partition, STAGES, 1, b""),
        "hook of a user object": setting(PLAIN["SET ATTRIBUTES"], HOOKS, 1, b""),
        "hook of a partition": setting(of_partition, HOOKS, 1, b""),
        "application page of a partition": setting(of_partition, APPLICATION, 1, b"x"),
        "application page of a collection": setting(of_collection, APPLICATION, 1, b"x"),
    }.items():
        yield Shape(f"SET ATTRIBUTES [{name}]", make)
        yield Shape(f"SET ATTRIBUTES [{name}, by CDB]", in_form(w.SET_ONE, make))
        yield Shape(f"SET ATTRIBUTES [{name}, by page]", in_form(w.PAGE, make))


def root_attributes() -> Iterator[Shape]:
    def nothing(t: Estate, _: int) -> Sent:
        return simple("SET ATTRIBUTES", root(t))

    def looking(t: Estate, _: int) -> Sent:
        return simple("GET ATTRIBUTES", root(t))

    count = struct.pack(">Q", m.ENDLESS - 1)
    for name, make in {
        "application page": setting(nothing, APPLICATION, 1, b"x"),
        "frozen keys": setting(nothing, 0x5, 5, FROZEN_MASK),
        "count quota": setting(nothing, 0x2, 0x2_0002, count),
        "stage": setting(nothing, STAGES, 1, b""),
        "hook": setting(nothing, HOOKS, 1, b""),
    }.items():
        yield Shape(f"SET ATTRIBUTES [{name} of the root]", make, of_root=True)
    yield Shape("GET ATTRIBUTES of the root", getting(looking), of_root=True)


# ---- second objects ----------------------------------------------------------------------------


def copying(second: Callable[[int], int], attributes: bool, source_tag: int = 0) -> Make:
    """COPY USER OBJECTS.  second: partition of the source, for that of the copy."""

    def make(t: Estate, pid: int) -> Sent:
        source = user(t, second(pid), source_tag)
        part = w.segment(0x8893, copy_source(*ids(source), attributes))
        sent = simple("COPY USER OBJECTS", fresh(t, pid), segment=part)
        role = "copy source with attributes" if attributes else "copy source"
        return replace(sent, ask=sent.ask.but(other=(role, source)))

    return make


def matching(t: Estate, pid: int) -> Sent:
    """QUERY into a collection, which comes with room for extension capabilities."""
    found, matches = members(t, pid)[0], tracking(t, pid)
    part = w.segment(0x88A0, query_list())
    sent = simple("QUERY", found, segment=part, address=matches.oid)
    ask = sent.ask.but(other=("matches collection", matches))
    return replace(sent, ask=ask, room=True)


def tracking_of(t: Estate, pid: int) -> Sent:
    source = members(t, pid)[0]
    made = fresh(t, pid, m.COLLECTION)
    part = w.segment(0x8894)
    sent = simple("CREATE USER TRACKING COLLECTION", made, address=source.oid, segment=part)
    return replace(sent, ask=sent.ask.but(other=("tracking source", source)))


def criteria(t: Estate, pid: int) -> Sent:
    sent = query_of(t, pid)
    listed = query_list((APPLICATION, 1, b"", b""))
    request = sent.request.but(segment=w.segment(0x88A0, listed))
    return replace(sent, request=request, ask=sent.ask.but(criteria=((APPLICATION, 1),)))


def joining(make: Make) -> Make:
    """A user object is put into a collection by its page 4h."""

    def made(t: Estate, pid: int) -> Sent:
        sent = make(t, pid)
        joined = empty(t, pid)
        value = struct.pack(">Q", joined.oid)
        request = sent.request.but(sets=((m.COLLECTIONS_PAGE, 9, value),))
        ask = sent.ask.but(sets=((m.COLLECTIONS_PAGE, 9),), joined=joined)
        return Sent(request, ask, True)

    return made


def _groups(t: Estate, answer: Answer) -> set[int]:
    return {each.oid for each in w.object_blocks(answer.retrieved[8:])}


def _listed(t: Estate, answer: Answer) -> set[int]:
    blocks = w.object_blocks(w.ObjectList.read(answer.data).body)
    return {each.oid for each in blocks if each.attributes}


def _found(t: Estate, answer: Answer) -> set[int]:
    return {oid for (oid,) in struct.iter_unpack(">Q", answer.data[12:])}


NEW = ((APPLICATION, 1, b"new"),)


def inside(name: str) -> Make:
    """A command on a collection of two objects with different tags."""

    def make(t: Estate, pid: int) -> Sent:
        cid, each = members(t, pid, TAG)
        oids = [thing.oid for thing in each]
        sent = simple(name, cid, True)

        def changed(_: Estate, answer: Answer) -> set[int]:
            return {oid for oid in oids if t.get(oid, APPLICATION, 1, pid) == b"new"}

        def removed(_: Estate, answer: Answer) -> set[int]:
            return {oid for oid in oids if not t.exists(oid, pid)}

        gets = {"gets": ((APPLICATION, 1),), "allocation": 1024}
        room = {"length": ROOM, "data_in": ROOM}
        listed = w.segment(0x88A0, query_list())
        kinds: dict[str, tuple[dict[str, object], Callable[[Estate, Answer], set[int]]]] = {
            "GET MEMBER ATTRIBUTES": (gets, _groups),
            "SET MEMBER ATTRIBUTES": ({"sets": NEW}, changed),
            "REMOVE MEMBER OBJECTS": ({}, removed),
            "LIST COLLECTION": (gets | room | {"byte11": 0x40}, _listed),
            "QUERY": (room | {"segment": listed}, _found),
        }
        how, seen = kinds[name]
        ask = sent.ask.but(inside=each)
        if "gets" in how:
            ask = ask.but(gets=((APPLICATION, 1),))
        if "sets" in how:
            ask = ask.but(sets=((APPLICATION, 1),))
        if name == "LIST COLLECTION":
            ask = ask.but(extra=P.M_OBJECT)
        return replace(sent, request=sent.request.but(**how), ask=ask, seen=seen)

    return make


def second_shapes(seconds: Sequence[int]) -> Iterator[Shape]:
    """seconds: a partition of each method, for objects in another partition."""
    for attributes in (False, True):
        name = "COPY USER OBJECTS" + (" with attributes" if attributes else "")
        yield Shape(name, copying(lambda pid: pid, attributes), "source beside it")
        for method, second in enumerate(seconds):
            there = copying(lambda _, second=second: second, attributes)  # type: ignore[misc]
            yield Shape(name, there, f"source in a partition of {m.METHODS[method]}")
    yield Shape("COPY USER OBJECTS", copying(lambda pid: pid, False, TAG), "source of another tag")
    yield Shape("QUERY", matching, "matches collection")
    yield Shape("QUERY", criteria, "criteria attribute")
    yield Shape("CREATE USER TRACKING COLLECTION", tracking_of, "source collection")
    yield Shape("SET ATTRIBUTES", joining(PLAIN["SET ATTRIBUTES"]), "collection joined")
    yield Shape("CREATE", joining(create), "collection joined")
    for name in (
        "GET MEMBER ATTRIBUTES",
        "SET MEMBER ATTRIBUTES",
        "REMOVE MEMBER OBJECTS",
        "QUERY",
    ):
        yield Shape(name, inside(name), "members")
    yield Shape("LIST COLLECTION [attributes]", inside("LIST COLLECTION"), "objects listed")


def exec_shapes(seconds: Sequence[int]) -> Iterator[Shape]:
    zones: dict[str, Callable[[Estate, int], m.Thing]] = {
        "an object": user,
        "a collection": lambda t, pid: members(t, pid)[0],
        "a partition": lambda t, pid: t.thing(pid),
    }
    for name, zone in zones.items():
        yield Shape(f"EXEC in {name}", lambda t, pid, zone=zone: exec_in(zone(t, pid)), "zone")  # type: ignore[misc]
        call = f"EXECUTE FUNCTION in {name}"
        yield Shape(call, lambda t, pid, zone=zone: call_in(t, zone(t, pid)), "zone")  # type: ignore[misc]
    for method, second in enumerate(seconds):
        yield Shape(
            "EXEC in a partition",
            lambda t, pid, second=second: exec_in(t.thing(pid), second),  # type: ignore[misc]
            f"surrogate in a partition of {m.METHODS[method]}",
        )
    yield Shape(
        "EXEC in a partition",
        lambda t, pid: exec_in(t.thing(pid), pid),
        "surrogate in the zone's partition",
    )
    yield Shape(
        "EXEC in a partition",
        lambda t, pid: exec_in(t.thing(pid), pid, 0x55_0000),
        "surrogate of a chosen id",
    )


def shapes_of_partitions(seconds: Sequence[int]) -> Iterator[Shape]:
    yield from (Shape(name, make) for name, make in PLAIN.items())
    yield from attribute_shapes()
    yield from policy_shapes()
    yield from second_shapes(seconds)
    yield from exec_shapes(seconds)


def shapes_of_root() -> Iterator[Shape]:
    yield from (Shape(name, make, of_root=True) for name, make in OF_ROOT.items())
    yield from root_attributes()
