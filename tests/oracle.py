# SPDX-License-Identifier: GPL-2.0-or-later
"""What a killed target must still know: clients that log each command before they send it and each
answer when it comes, and the comparison afterwards.

The log is a file of JSON lines outside the killed processes: {"n", "do"} before, {"n", "ok"} after.
A command without an answer may have happened, or not; a WRITE may have happened in part, inside its
own range.  Everything answered must be there.

Each client works in a partition of its own, so that its history is a sequence; all of them append
to, and set their own attribute on, one shared object.
"""

from __future__ import annotations

import functools
import json
import os
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Lock, Thread
from time import perf_counter
from typing import Any

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import Unreachable
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import CURRENT_APPEND_START, CURRENT_OBJECT_ID, LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, Request
from tests.model import ObjectModel

SIZES = (1, 17, 100, 512, 4095, 4096, 5000, 16384, 65536, 70_000, 200_000)
LONGEST = 1 << 20
OBJECTS_EACH = 12
ATTRIBUTES = [(Page.APPLICATION, 1), (Page.APPLICATION, 2), (0xA, 1), (0x1_0005, 9)]
SHARED_PAGE = 0x1_0007
RECORD = 64

Op = dict[str, Any]


@functools.cache
def unit_of(first: int) -> bytes:
    return bytes((first + at * 7) % 255 + 1 for at in range(257))


def pattern(fill: int, length: int) -> bytes:
    """Bytes that tell which WRITE they are of; never zero."""
    unit = unit_of(fill * 31 % 255)
    return (unit * (length // len(unit) + 1))[:length]


def lists(values: list[AttributeValue], *get: AttributeId) -> AttributeLists:
    return AttributeLists(tuple(get), tuple(values))


def attribute_values(op: Op) -> list[AttributeValue]:
    return [
        AttributeValue(page, number, pattern(op["fill"], length))
        for page, number, length in op.get("attributes", ())
    ]


@dataclass
class Client:
    """One initiator: chooses commands, logs, sends, and knows what must be there."""

    number: int
    partition: int
    shared: ObjectRef
    log: Path
    rng: random.Random
    objects: dict[int, ObjectModel] = field(default_factory=dict)
    collection: int = 0
    shared_attribute: bytes = b""
    shared_records: dict[int, bytes] = field(default_factory=dict)
    pending: Op | None = None
    n: int = 0
    answered: int = 0

    # ---- sending ----

    def begin_round(self) -> None:
        """From here on the log tells what changed."""
        self.base = {oid: obj.copy() for oid, obj in self.objects.items()}
        self.base_shared = (self.shared_attribute, dict(self.shared_records))
        self.log.write_bytes(b"")
        self.descriptor = os.open(self.log, os.O_WRONLY | os.O_APPEND)
        self.pending = None

    def end_round(self) -> None:
        os.close(self.descriptor)

    def note(self, line: dict[str, Any]) -> None:
        os.write(self.descriptor, json.dumps(line).encode() + b"\n")

    def step(self, osd: Commands) -> None:
        """One command: logged, sent, its answer logged.  Raises: Unreachable: no answer came."""
        op = self.choose()
        self.n += 1
        self.note({"n": self.n, "do": op})
        self.pending = op
        reply = osd.call(self.request(op))
        answer = {}
        if op["op"].endswith("append"):
            answer["start"] = reply.attribute(CURRENT_APPEND_START).uint
        elif op["op"] in ("create", "create and write"):
            answer["id"] = reply.attribute(CURRENT_OBJECT_ID).uint
        self.note({"n": self.n, "ok": answer})
        self.pending = None
        self.answered += 1
        self.apply(op, answer)

    def run(self, osd: Commands, on_answer: Callable[[], None], stop: Event) -> None:
        """Commands until the target is gone, or all shall stop."""
        while not stop.is_set():
            try:
                self.step(osd)
            except Unreachable:
                return
            on_answer()

    # ---- choosing ----

    def choose(self) -> Op:
        rng = self.rng
        fill = rng.getrandbits(20)
        if len(self.objects) < 3 or (len(self.objects) < OBJECTS_EACH and rng.random() < 0.15):
            return self.choose_create(fill)
        oid = rng.choice(sorted(self.objects))
        obj = self.objects[oid]
        kind = rng.choices(
            [
                "write",
                "append",
                "attributes",
                "clear",
                "punch",
                "truncate",
                "remove",
                "member",
                "shared append",
                "shared attribute",
            ],
            [30, 10, 15, 4, 4, 4, 5, 4, 8, 6],
        )[0]
        op: Op = {"op": kind, "id": oid, "fill": fill}
        if kind in ("write", "clear", "punch"):
            op["start"] = rng.randrange(min(len(obj.data), LONGEST - 200_000) + 5000)
            op["length"] = rng.choice(SIZES)
        if kind == "punch":
            op["start"] = rng.randrange(len(obj.data) + 1)
        if kind == "append":
            op["length"] = rng.choice(SIZES)
            if len(obj.data) > LONGEST:
                op["op"] = "truncate"
        if kind in ("attributes", "write") and rng.random() < 0.7:
            op["attributes"] = self.choose_attributes()
        if op["op"] == "truncate":
            op["length"] = rng.randrange(len(obj.data) + 100)
        if kind == "member":
            op["join"] = not obj.memberships
        if kind == "shared append":
            op["length"] = RECORD
        return op

    def choose_create(self, fill: int) -> Op:
        op: Op = {"op": self.rng.choice(["create", "create and write"]), "fill": fill}
        op["requested"] = 0 if self.rng.random() < 0.5 else 0x10_0000 + self.n
        op["attributes"] = self.choose_attributes()
        op["length"] = self.rng.choice(SIZES)
        return op

    def choose_attributes(self) -> list[tuple[int, int, int]]:
        some = self.rng.sample(ATTRIBUTES, self.rng.randint(1, len(ATTRIBUTES)))
        return [(*each, self.rng.choice([0, 1, 8, 40, 300, 3000])) for each in some]

    def request(self, op: Op) -> Request:
        """The command as it is sent."""
        kind, fill = op["op"], op["fill"]
        obj = ref(self.partition, op.get("id", 0))
        values = attribute_values(op)
        if kind == "create":
            attributes = lists(values, CURRENT_OBJECT_ID)
            return rq.create(self.partition, op["requested"], attributes=attributes)
        if kind == "create and write":
            data = pattern(fill, op["length"])
            attributes = lists(values, CURRENT_OBJECT_ID)
            requested = op["requested"]
            return rq.create_and_write(self.partition, requested, 0, data, attributes=attributes)
        if kind == "write":
            data = pattern(fill, op["length"])
            return rq.write(obj, op["start"], data, attributes=lists(values))
        if kind == "append":
            data = pattern(fill, op["length"])
            return rq.append(obj, data, attributes=lists([], CURRENT_APPEND_START))
        if kind == "shared append":
            attributes = lists([], CURRENT_APPEND_START)
            return rq.append(self.shared, self.shared_record(op), attributes=attributes)
        if kind == "shared attribute":
            value = AttributeValue(SHARED_PAGE, self.number + 1, pattern(fill, 30))
            return rq.set_attributes(self.shared, attributes=lists([value]))
        if kind == "clear":
            return rq.clear(obj, op["start"], op["length"])
        if kind == "punch":
            return rq.punch(obj, op["start"], op["length"])
        if kind == "remove":
            return rq.remove(obj)
        if kind == "truncate":
            id_ = (LOGICAL_LENGTH.page, LOGICAL_LENGTH.number)
            values = [AttributeValue(*id_, op["length"].to_bytes(8, "big"))]
        elif kind == "member":
            cid = self.collection.to_bytes(8, "big") if op["join"] else b""
            values = [AttributeValue(Page.USER_COLLECTIONS, 1, cid)]
        return rq.set_attributes(obj, attributes=lists(values))

    def shared_record(self, op: Op) -> bytes:
        return pattern(op["fill"] * 64 + self.number, RECORD)

    # ---- what it means ----

    def apply(self, op: Op, answer: Op) -> None:
        """Take an answered command into what must be there."""
        kind = op["op"]
        if kind == "shared append":
            self.shared_records[answer["start"]] = self.shared_record(op)
        elif kind == "shared attribute":
            self.shared_attribute = pattern(op["fill"], 30)
        elif kind == "append":
            assert answer["start"] == len(self.objects[op["id"]].data), f"APPEND elsewhere: {op}"
        if kind in ("create", "create and write"):
            self.objects[answer["id"]] = effect(op, ObjectModel(), self.collection)
        elif kind == "remove":
            del self.objects[op["id"]]
        elif not kind.startswith("shared"):
            self.objects[op["id"]] = effect(op, self.objects[op["id"]], self.collection)

    def replay(self) -> None:
        """Forget what was kept in memory: go by the log, from the state at the round's begin."""
        self.objects = {oid: obj.copy() for oid, obj in self.base.items()}
        self.shared_attribute, records = self.base_shared
        self.shared_records = dict(records)
        self.pending = None
        for line in self.log.read_text().splitlines():
            record = json.loads(line)
            if "do" in record:
                self.pending = record["do"]
            elif self.pending is not None:
                self.apply(self.pending, record["ok"])
                self.pending = None

    # ---- looking afterwards ----

    def losses(self, osd: Commands) -> list[str]:
        """Acknowledged data that is missing. The present data is the base of later checks."""
        found: list[str] = []
        there = {each.object_id for each in osd.list_objects(PartitionId(self.partition))}
        expected = set(self.objects)
        pending = self.pending or {"op": "nothing"}
        about = pending.get("id") if not pending["op"].startswith("shared") else None
        if about is not None and pending["op"] == "remove" and about not in there:
            expected.discard(about)
            self.objects.pop(about, None)
        extra = there - expected
        if pending["op"] in ("create", "create and write") and len(extra) == 1:
            made = extra.pop()
            found += self.check_made(osd, made, pending)
        found += [f"object {oid:#x} is there, but was removed or never made" for oid in extra]
        for oid in sorted(expected):
            if oid not in there:
                found.append(f"object {oid:#x} is gone")
                continue
            found += self.check_object(osd, oid, pending if oid == about else None)
        members = {
            each.object_id for each in osd.list_members(ref(self.partition, self.collection))
        }
        joined = {oid for oid, obj in self.objects.items() if obj.memberships}
        if members != joined:
            found.append(f"members {members} instead of {joined}")
        return [f"client {self.number}: {each}" for each in found]

    def check_made(self, osd: Commands, oid: int, op: Op) -> list[str]:
        """An unanswered CREATE that happened: whole, but for the data of CREATE AND WRITE."""
        actual = fetch(osd, ref(self.partition, oid))
        self.objects[oid] = actual
        wanted = effect(op, ObjectModel(), self.collection)
        if op["op"] == "create and write":
            fits = within(ObjectModel(), wanted, actual, 0, op["length"])
            # The data goes in before the attributes; a cut between the two leaves none of them.
            whole = actual.attributes in ({}, wanted.attributes)
        else:
            fits, whole = actual.data == b"", actual.attributes == wanted.attributes
        return [] if fits and whole else [f"object {oid:#x} is half made by {op}"]

    def check_object(self, osd: Commands, oid: int, pending: Op | None) -> list[str]:
        before = self.objects[oid]
        actual = fetch(osd, ref(self.partition, oid))
        self.objects[oid] = actual
        if pending is None:
            return differences(oid, before, actual)
        after = effect(pending, before, self.collection)
        found = []
        if pending["op"] in ("write", "append", "clear"):
            start = len(before.data) if pending["op"] == "append" else pending["start"]
            if not within(before, after, actual, start, pending["length"]):
                found.append(f"object {oid:#x} changed outside of the unanswered {pending}")
        elif actual.data not in (before.data, after.data):
            found.append(f"object {oid:#x} is neither as before nor as after {pending}")
        if actual.attributes not in (before.attributes, after.attributes):
            found.append(f"object {oid:#x} has some of the attributes of {pending}")
        if actual.memberships not in (before.memberships, after.memberships):
            found.append(f"object {oid:#x} has memberships {actual.memberships}")
        return found


def effect(op: Op, before: ObjectModel, collection: int) -> ObjectModel:
    """The object after the whole command."""
    obj = before.copy()
    kind = op["op"]
    if kind == "create and write":
        obj.write(0, pattern(op["fill"], op["length"]))
    elif kind == "write":
        obj.write(op["start"], pattern(op["fill"], op["length"]))
    elif kind == "append":
        obj.append(pattern(op["fill"], op["length"]))
    elif kind == "clear":
        obj.clear(op["start"], op["length"])
    elif kind == "punch":
        obj.punch(op["start"], op["length"])
    elif kind == "truncate":
        obj.truncate(op["length"])
    elif kind == "member":
        obj.memberships = {1: collection} if op["join"] else {}
    for each in attribute_values(op):
        obj.set(each.page, each.number, each.value)
    return obj


def within(
    before: ObjectModel, after: ObjectModel, actual: ObjectModel, start: int, length: int
) -> bool:
    """Whether only bytes of the range differ, each old or new, and the length is in between."""
    old, new, data = before.data, after.data, actual.data
    if not min(len(old), len(new)) <= len(data) <= max(len(old), len(new)):
        return False
    padded = bytes(old.ljust(max(len(old), len(new)), b"\0"))
    end = min(start + length, len(data))
    if data[:start] != padded[: min(start, len(data))] or data[end:] != padded[end : len(data)]:
        return False
    pieces = zip(data[start:end], padded[start:end], new[start:end], strict=True)
    return data[start:end] in (padded[start:end], new[start:end]) or all(
        byte in (was, will) for byte, was, will in pieces
    )


def fetch(osd: Commands, obj: ObjectRef) -> ObjectModel:
    """An object as it is now."""
    length = int.from_bytes(osd.get_attribute(obj, LOGICAL_LENGTH.page, 0x82), "big")
    data = bytearray(osd.read(obj, 0, length + 1))
    wanted = [AttributeId(*each) for each in ATTRIBUTES]
    wanted.append(AttributeId(Page.USER_COLLECTIONS, 1))
    model = ObjectModel(data)
    for each in osd.get_attributes(obj, wanted):
        if each.page == Page.USER_COLLECTIONS:
            if each.value:
                model.memberships[1] = each.uint
        elif each.value:
            model.attributes[each.page, each.number] = each.value
    return model


def differences(oid: int, expected: ObjectModel, actual: ObjectModel) -> list[str]:
    found = []
    if actual.data != expected.data:
        pairs = zip(actual.data, expected.data, strict=False)
        at = next((n for n, (is_, was) in enumerate(pairs) if is_ != was), "the end")
        found.append(
            f"object {oid:#x}: {len(actual.data)} bytes, not {len(expected.data)}, differ at {at}"
        )
    for each in sorted(expected.attributes.keys() | actual.attributes.keys()):
        if expected.attributes.get(each) != actual.attributes.get(each):
            found.append(f"object {oid:#x}: attribute {each[0]:#x}/{each[1]} is another")
    if actual.memberships != expected.memberships:
        found.append(f"object {oid:#x}: memberships {actual.memberships}")
    return found


def shared_losses(osd: Commands, clients: list[Client]) -> list[str]:
    """The object all clients worked on: every acknowledged record whole and in its place."""
    found = []
    shared = clients[0].shared
    length = int.from_bytes(osd.get_attribute(shared, LOGICAL_LENGTH.page, 0x82), "big")
    data = bytes(osd.read(shared, 0, length + 1))
    taken: set[int] = set()
    for client in clients:
        for start, record in client.shared_records.items():
            if data[start : start + RECORD] != record:
                found.append(f"client {client.number}: shared record at {start} is gone")
            if start in taken:
                found.append(f"client {client.number}: shared record at {start} given twice")
            taken.add(start)
        value = osd.get_attribute(shared, SHARED_PAGE, client.number + 1)
        allowed = {client.shared_attribute}
        if client.pending and client.pending["op"] == "shared attribute":
            allowed.add(pattern(client.pending["fill"], 30))
        if value not in allowed:
            found.append(f"client {client.number}: shared attribute is another")
        client.shared_attribute = value
    unanswered = [c for c in clients if c.pending and c.pending["op"] == "shared append"]
    known = RECORD * len(taken)
    if not known <= length <= known + RECORD * len(unanswered):
        found.append(f"shared object of {length} bytes, {known} of them acknowledged")
    for start in range(0, length, RECORD):
        if start not in taken:  # an unanswered APPEND that happened: from now on it stays
            clients[0].shared_records[start] = data[start : start + RECORD]
    return found


class Clients:
    """All initiators of a round: they work at once until the target is killed under them."""

    def __init__(self, osd: Commands, count: int, seed: int, folder: Path) -> None:
        self.rng = random.Random(seed)
        self.stop = Event()
        """For a kill that no client notices."""
        shared = osd.create(osd.create_partition())
        self.members = []
        for number in range(count):
            partition = osd.create_partition()
            log = folder / f"client{number}.log"
            client = Client(number, partition, shared, log, random.Random(self.rng.random()))
            client.collection = osd.create_collection(partition, 0x8_0000).object_id
            self.members.append(client)

    def work(
        self,
        connect: Callable[[int], Commands],
        kill: Callable[[], None],
        answers: int,
        spin: float,
    ) -> int:
        """Let all work; kill once so many commands were answered, and spin seconds have passed.

        connect: commands of a session for that client.  Returns: commands answered.
        """
        lock, enough = Lock(), Event()
        answered = 0

        def on_answer() -> None:
            nonlocal answered
            with lock:
                answered += 1
                if answered >= answers:
                    enough.set()

        def run(client: Client) -> None:
            try:
                client.run(connect(client.number), on_answer, self.stop)
            except BaseException as error:
                failures.append(error)
            finally:
                enough.set()

        failures: list[BaseException] = []
        self.stop.clear()
        for client in self.members:
            client.begin_round()
        threads = [Thread(target=run, args=(client,)) for client in self.members]
        for thread in threads:
            thread.start()
        assert enough.wait(60), f"only {answered} answers in time"
        until = perf_counter() + spin
        while perf_counter() < until:
            pass
        kill()
        for thread in threads:
            thread.join(60)
            assert not thread.is_alive(), "a client got neither an answer nor an end"
        for client in self.members:
            client.end_round()
        if failures:
            raise failures[0]
        return answered

    def losses(self, osd: Commands) -> list[str]:
        """By the logs alone: what was acknowledged and is not there."""
        found = []
        for client in self.members:
            client.replay()
        found += shared_losses(osd, self.members)
        for client in self.members:
            found += client.losses(osd)
        return found
