# SPDX-License-Identifier: GPL-2.0-or-later
"""Clients activate, replace, call and remove the same functions while the target is killed: every answer
fits one order of all commands.

Commands about the same function come one after the other; all else comes at once.
"""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.commands.execute import CALL_ATTRIBUTES
from pyosd.errors import SessionLost, Unreachable
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from pyosd.wire.exec_params import ArgsEncoding, CallRecord, ExecParams, FunctionCall
from pyosd.wire.reply import Reply, decode_call
from tests.fault.function_machine import ABSENT, COUNT, MACHINE, TAKEN, UNKNOWN
from tests.jobs.conftest import Target, skip_without_sandboxes
from tests.linearize import Operation, at_once, cut_short, final_states, told
from tests.property.test_histories import after

CLIENTS, COMMANDS, ROUNDS = 5, 40, 8
FUNCTIONS = PartitionId(0x11)
STATE, ALIAS, NAME = 1, 6, "count"
NO_FUNCTION, ALIAS_TAKEN, IN_USE = (0x80, 0x19), (0x80, 0x1A), (0x80, 0x28)
BUSY = 0x08
WEIGHTS = {"put": 3, "remove": 2, "deactivate": 2, "activate": 4, "replace": 5, "call": 8}


def function_of(index: int) -> ObjectRef:
    return ref(FUNCTIONS, 0x1_0000 + index)


def request_of(name: str, index: int, zone: ObjectRef) -> Request:
    function = function_of(index)
    if name == "call":
        named = FunctionCall(FUNCTIONS, NAME, "", ArgsEncoding.JSON, CallRecord.NEVER)
        params = ExecParams(function=named)
        return rq.execute_function(
            zone, b"0", params, result_allocation_length=64, attributes=CALL_ATTRIBUTES
        )
    if name == "put":
        code = b"def main(args): return %d\n" % index
        alias = AttributeValue(Page.FUNCTION, ALIAS, NAME.encode())
        lists = AttributeLists((), (alias,))
        return rq.create_and_write(FUNCTIONS, function.object_id, 0, code, attributes=lists)
    if name == "remove":
        return rq.remove(function)
    return rq.activate_function(
        function, deactivate=name == "deactivate", replace=name == "replace"
    )


def active(osd: Commands) -> list[ObjectRef]:
    there = osd.list_objects(FUNCTIONS)
    return [each for each in there if osd.get_attribute(each, Page.FUNCTION, STATE) == b"\1"]


def answer_of(name: str, reply: Reply) -> object:
    """The answer as step() words it."""
    if reply.error is None:
        return int(decode_call(reply).result) if name == "call" else ""
    sense = reply.sense
    assert sense is not None, reply.error
    if (sense.asc, sense.ascq) == NO_FUNCTION:
        return UNKNOWN
    if (sense.asc, sense.ascq) == ALIAS_TAKEN:
        return TAKEN
    assert reply.error.field_pointer == 24, reply.error
    return TAKEN if name == "put" else ABSENT


def is_in_use(reply: Reply) -> bool:
    sense = reply.sense if reply.error else None
    return sense is not None and (sense.asc, sense.ascq) == IN_USE


class History:
    """What all clients did."""

    def __init__(self, zone: ObjectRef) -> None:
        self.zone = zone
        self.operations: list[Operation] = []
        self.changing = [threading.Lock() for _ in range(COUNT)]

    def send(self, osd: Commands, name: str, index: int) -> bool:
        """One command; False: no answer came.  One that is refused as BUSY has not happened."""
        request = request_of(name, index, self.zone)
        start = time.perf_counter()
        try:
            reply = osd.reply(request)
        except (Unreachable, SessionLost):
            self.operations.append(Operation(name, index, None, start, answered=False))
            return False
        end = time.perf_counter()
        if is_in_use(reply):
            assert name == "remove"
            self.operations.append(Operation("refused removal", index, "", start, end))
        elif reply.response.status != BUSY:
            answer = answer_of(name, reply)
            self.operations.append(Operation(name, index, answer, start, end))
        return True

    def client(self, osd: Commands, rng: random.Random, on_answer: Callable[[], None]) -> None:
        for _ in range(COMMANDS):
            (name,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
            index = rng.randrange(COUNT)
            with nullcontext() if name == "call" else self.changing[index]:
                answered = self.send(osd, name, index)
            if not answered:
                return
            on_answer()

    def run(self, osd: Commands, rng: random.Random, on_answer: Callable[[], None]) -> None:
        """All clients at once, until each is through or the target is gone."""
        at_once(
            [
                partial(self.client, osd, random.Random(rng.random()), on_answer)
                for _ in range(CLIENTS)
            ]
        )

    def target_is_gone(self) -> None:
        self.operations = cut_short(self.operations, time.perf_counter())

    def __str__(self) -> str:
        return told(self.operations)


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    skip_without_sandboxes()
    running = Target(tmp_path)
    yield running
    running.stop()


@pytest.mark.sandbox
def test_one_order_explains_all_answers_across_kills(target: Target, seed: int) -> None:
    rng = random.Random(seed)
    target.commands.create_partition(FUNCTIONS)
    history = History(target.partition)
    for _ in range(ROUNDS):
        kill = after(rng.randrange(10, CLIENTS * COMMANDS), target.transport.process.kill)
        history.run(target.commands, rng, kill)
        target.kill()
        history.target_is_gone()
        target.start()
        assert history.send(target.commands, "call", 0)
        assert len(active(target.commands)) <= 1, f"the alias has two owners:\n{history}"
    assert final_states(MACHINE, history.operations), f"no order explains this:\n{history}"
    assert {each.answer for each in history.operations} >= {"", ABSENT, TAKEN, UNKNOWN}


def test_the_checker_can_fail() -> None:
    born = [Operation("put", n, "", n, n + 0.5) for n in range(2)]
    first = Operation("activate", 0, "", 3, 4)
    second = Operation("replace", 1, "", 5, 7)
    old, new = Operation("call", 0, 0, 5.5, 6), Operation("call", 0, 1, 8, 9)
    assert final_states(MACHINE, [*born, first, second, old, new])
    between = Operation("call", 0, UNKNOWN, 5.5, 6)
    assert not final_states(MACHINE, [*born, first, second, between, new])
    refused = Operation("refused removal", 0, "", 3.5, 4)
    assert final_states(MACHINE, [*born, first, refused, second])
    assert not final_states(MACHINE, [*born, replace(refused, start=1.6, end=2), first])
    both = Operation("activate", 1, "", 4.5, 5)
    assert not final_states(MACHINE, [*born, first, both])
