# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients that work on the same objects at once: every answer fits one order of all commands on an
object, also across kill -9 of the target.
"""

from __future__ import annotations

import itertools
import random
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import SessionLost, Unreachable
from pyosd.functions.stages import FunctionStage, encode
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ObjectType, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from pyosd.wire.reply import Reply
from tests.conftest import MakeHarness
from tests.linearize import Machine, Operation, at_once, cut_short, final_states, told
from tests.serving import Serving

CLIENTS = 5
OBJECTS = 3
COMMANDS = 60
"""Of each client in a round."""
BLOCK = 96 << 10
HEAD = 2 << 20
"""Bytes of an object under the first of two roots."""
NAME = AttributeId(Page.APPLICATION, 5)
ABSENT = "absent"


@dataclass(frozen=True)
class Thing:
    """A user object as these commands see it: what fills its data, its length, an attribute, the
    words of the atomics."""

    fill: int = 0
    length: int = 0
    name: bytes = b""
    word: int = 0
    counter: int = 0


def step(state: Thing | None, operation: Operation) -> tuple[Any, Thing | None]:
    """What a command answers, and what it leaves."""
    argument = operation.argument
    if operation.name == "create":
        return ("taken", state) if state else ("", Thing(name=argument))
    if state is None:
        return ABSENT, None
    match operation.name:
        case "remove":
            return "", None
        case "write":
            return "", replace(state, fill=argument, length=BLOCK)
        case "read":
            return (state.fill, state.length), state
        case "set":
            return state.name, replace(state, name=argument)
        case "swap":
            compare, swap = argument
            return state.word, replace(state, word=swap) if state.word == compare else state
        case "add":
            return state.counter, replace(state, counter=state.counter + argument)
        case "swap name":
            compare, swap = argument
            return state.name, replace(state, name=swap) if state.name == compare else state
    raise AssertionError(operation)


MACHINE: Machine[Thing | None] = Machine(None, step)

# ---- what is sent --------------------------------------------------------------------------------


def request_of(name: str, argument: Any, obj: ObjectRef, block: int) -> Request:
    """The command of an operation.  SET ATTRIBUTES is sent as GET: the value before comes back."""
    if name == "create":
        value = AttributeValue(*id_of(NAME), argument)
        lists = AttributeLists((), (value,))
        return rq.create(obj.partition_id, obj.object_id, attributes=lists)
    if name == "set":
        lists = AttributeLists((NAME,), (AttributeValue(*id_of(NAME), argument),), 4096)
        return rq.get_attributes(obj, attributes=lists)
    if name == "swap name":
        compare, swap = argument
        expected = AttributeValue(*id_of(NAME), compare)
        return rq.conditional_set_attributes(obj, expected, swap)
    simple: dict[str, Callable[[], Request]] = {
        "remove": lambda: rq.remove(obj),
        "write": lambda: rq.write(obj, 0, bytes([argument]) * block),
        "read": lambda: rq.read(obj, 0, block + 1),
        "swap": lambda: rq.compare_and_swap(obj, *argument),
        "add": lambda: rq.fetch_and_add(obj, argument),
    }
    return simple[name]()


def id_of(attribute: AttributeId) -> tuple[int, int]:
    return attribute.page, attribute.number


def answer_of(name: str, reply: Reply, block: int) -> Any:
    """The answer as step() words it, to which every block is of BLOCK bytes."""
    if reply.error:
        assert reply.error.field_pointer == 24, reply.error
        return "taken" if name == "create" else ABSENT
    if name == "read":
        data = bytes(reply.data)
        assert data == data[:1] * len(data), "half of one WRITE, half of another"
        return (data[0] if data else 0), BLOCK if len(data) == block else len(data)
    if name in ("set", "swap name"):
        return bytes(reply.attributes[0].value)
    if name in ("swap", "add"):
        return int.from_bytes(reply.data[:8], "big")
    return ""


def choose(rng: random.Random) -> tuple[str, Any]:
    name = rng.choices(
        ["create", "remove", "write", "read", "set", "swap", "add", "swap name"],
        [4, 1, 4, 5, 3, 3, 3, 3],
    )[0]
    names = [b"", b"a", b"b", b"c"]
    arguments: dict[str, Callable[[], Any]] = {
        "create": lambda: rng.choice(names[1:]),
        "write": lambda: rng.randrange(1, 6),
        "set": lambda: rng.choice(names),
        "swap": lambda: (rng.randrange(3), rng.randrange(3)),
        "add": lambda: rng.randrange(1, 4),
        "swap name": lambda: (rng.choice(names), rng.choice(names)),
    }
    return name, arguments[name]() if name in arguments else None


# ---- clients -------------------------------------------------------------------------------------


class History:
    """What all clients did, by object."""

    def __init__(self, partition_id: int, block: int = BLOCK) -> None:
        self.block = block
        self.objects = [ref(partition_id, 0x20000 + n) for n in range(OBJECTS)]
        self.operations: dict[ObjectRef, list[Operation]] = {each: [] for each in self.objects}

    def client(self, osd: Commands, rng: random.Random, on_answer: Callable[[], None]) -> None:
        """Send commands one after the other until the target is gone."""
        for _ in range(COMMANDS):
            obj = rng.choice(self.objects)
            if not self.send(osd, obj, *choose(rng)):
                return
            on_answer()

    def send(self, osd: Commands, obj: ObjectRef, name: str, argument: Any) -> bool:
        """One command; False: no answer came."""
        request = request_of(name, argument, obj, self.block)
        start = time.perf_counter()
        try:
            reply = osd.reply(request)
        except (Unreachable, SessionLost):
            lost = Operation(name, argument, None, start, answered=False)
            self.operations[obj].append(lost)
            return False
        end = time.perf_counter()
        answer = answer_of(name, reply, self.block)
        self.operations[obj].append(Operation(name, argument, answer, start, end))
        return True

    def run(
        self, sessions: list[Commands], rng: random.Random, on_answer: Callable[[], None]
    ) -> None:
        """All clients at once, until each is through or the target is gone."""
        at_once(
            [partial(self.client, osd, random.Random(rng.random()), on_answer) for osd in sessions]
        )

    def target_is_gone(self) -> None:
        now = time.perf_counter()
        for operations in self.operations.values():
            operations[:] = cut_short(operations, now)

    def check(self) -> None:
        for obj, operations in self.operations.items():
            explained = final_states(MACHINE, operations)
            assert explained, f"no order explains the answers of {obj}:\n{told(operations)}"


# ---- tests ---------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["memory", "bdb", "two roots", "stages"])
def test_one_order_explains_all_answers(
    make_harness: MakeHarness, tmp_path: Path, seed: int, backend: str
) -> None:
    """On two roots each WRITE is two, in two files: a READ sees both or none.  Stages of the root
    make each READ and WRITE look for the object's own."""
    rng = random.Random(seed)
    options: dict[str, object] = {"memory": 1} if backend == "memory" else {}
    if backend == "two roots":
        (tmp_path / "heads").mkdir()
        options = {"ssd": tmp_path / "heads"}
    harness = make_harness(**options)
    if backend == "stages":
        harness.osd.set_attributes(ROOT, encode(ObjectType.ROOT, [FunctionStage(None)]))
    wide = backend == "two roots"
    for _ in range(1 if wide else 3):
        history = History(harness.osd.create_partition(), HEAD + BLOCK if wide else BLOCK)
        history.run([harness.osd] * CLIENTS, rng, lambda: None)
        history.check()


@pytest.mark.tgtd
def test_over_the_wire(serving: Serving, seed: int) -> None:
    """Each client in a session of its own."""
    sessions = [serving.connect() for _ in range(CLIENTS)]
    try:
        history = History(sessions[0].create_partition())
        history.run(list(sessions), random.Random(seed), lambda: None)
        history.check()
        sessions[0].remove_partition(history.objects[0].partition_id, contents=True)
    finally:
        for each in sessions:
            each.close()


def after(answers: int, do: Callable[[], None]) -> Callable[[], None]:
    """To be called at each answer; does it at that one."""
    counter, lock = itertools.count(1), threading.Lock()

    def on_answer() -> None:
        with lock:
            if next(counter) == answers:
                do()

    return on_answer


def test_across_kills(make_harness: MakeHarness, seed: int) -> None:
    """What was under way at a kill may have happened or not; all that was answered has."""
    rng = random.Random(seed)
    harness = make_harness()
    history = History(harness.osd.create_partition())
    for _ in range(6):
        kill = after(rng.randrange(20, 150), harness.transport.process.kill)
        history.run([harness.osd] * CLIENTS, rng, kill)
        harness.kill()
        history.target_is_gone()
        harness.start()
        for obj in history.objects:
            for name in ("read", "swap", "add"):
                assert history.send(harness.osd, obj, name, {"swap": (9, 9), "add": 0}.get(name))
    history.check()


def test_the_checker_can_fail() -> None:
    born = Operation("create", b"a", "", 0, 1)
    wrote = Operation("write", 7, "", 2, 5)
    seen = Operation("read", None, (7, BLOCK), 3, 4)
    stale = Operation("read", None, (0, 0), 4.5, 6)
    assert final_states(MACHINE, [born, wrote, seen])
    assert not final_states(MACHINE, [born, wrote, seen, stale])
    assert final_states(MACHINE, [born, replace(wrote, answered=False), stale])
    lost = [Operation("add", 1, 0, 2, 3), Operation("add", 1, 0, 4, 5)]
    assert not final_states(MACHINE, [born, *lost])


def test_what_was_there_before_is_told_once(make_harness: MakeHarness) -> None:
    """Clients set an attribute and get, in the same command, what it was: no value comes back twice."""
    osd = make_harness().osd
    obj = osd.create(osd.create_partition())

    def set_all(client: int) -> list[bytes]:
        values = [b"%d.%d" % (client, n) for n in range(4 * COMMANDS)]
        requests = (request_of("set", value, obj, BLOCK) for value in values)
        return [bytes(osd.call(each).attributes[0].value) for each in requests]

    with ThreadPoolExecutor(CLIENTS) as clients:
        told = [value for each in clients.map(set_all, range(CLIENTS)) for value in each]
    assert len(set(told)) == len(told) == 4 * CLIENTS * COMMANDS
