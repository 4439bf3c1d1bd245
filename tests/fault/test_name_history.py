# SPDX-License-Identifier: GPL-2.0-or-later
"""Four clients make, look up, list, rename and unlink the same names while the target is killed: every
answer fits one order of all commands.

The names are in the root directory and in one directory below it, which is renamed, too.
"""

from __future__ import annotations

import random
import time
from collections.abc import Callable
from functools import partial
from typing import Any

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import NotADirectory, OSDError, SessionLost, TargetBusy, Unreachable
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.names import NameParams, NameVerb
from tests.conftest import MakeHarness
from tests.linearize import Machine, Operation, at_once, cut_short, final_states, told
from tests.property.test_histories import after

CLIENTS, COMMANDS, ROUNDS = 4, 40, 6
TOKEN = AttributeId(Page.APPLICATION, 1)
DIRECTORIES = ("d", "e")
PATHS = ("a", "b", "d/a", "e/a")
NOTHING = "nothing"
WEIGHTS = {"create": 3, "unlink": 2, "rename": 3, "exchange": 1, "move": 1, "lookup": 8, "list": 1}

Tree = tuple[str, frozenset[tuple[str, int]]]
"""The name of the directory, and the tokens of all objects by their paths; the path of one in the
directory begins with d/, whatever the name of the directory is."""


def kept_as(directory: str, path: str) -> str | None:
    """The path as the state has it; None: its directory does not exist."""
    above, _, name = path.rpartition("/")
    if not above:
        return path
    return f"d/{name}" if above == directory else None


def step(state: Tree, operation: Operation) -> tuple[Any, Tree]:
    """The answer to a command, and what it leaves."""
    directory, objects = state
    there = dict(objects)
    if operation.name == "move":
        old, new = operation.argument
        return ("", (new, objects)) if directory == old else (NOTHING, state)
    if operation.name == "list":
        return frozenset([directory, *(each for each in there if "/" not in each)]), state
    if operation.name == "create":
        path = kept_as(directory, operation.argument[0])
        if path is None or path in there:
            return NOTHING, state
        return "", (directory, objects | {(path, operation.argument[1])})
    paths = [kept_as(directory, path) for path in operation.argument]
    if paths[0] is None or paths[0] not in there:
        return NOTHING, state
    if operation.name == "lookup":
        return there[paths[0]], state
    token = there.pop(paths[0])
    if operation.name == "unlink":
        return "", (directory, frozenset(there.items()))
    old, new = paths
    assert old is not None
    if new is None or (new in there) != (operation.name == "exchange") or old == new:
        return NOTHING, state
    if operation.name == "exchange":
        there[old] = there[new]
    there[new] = token
    return "", (directory, frozenset(there.items()))


MACHINE = Machine[Tree](("d", frozenset()), step)


def do(osd: Commands, root: ObjectRef, name: str, argument: Any) -> Any:
    """The answer as step() words it.  Raises: OSDError: the command was refused, or is lost."""
    if name == "create":
        token = AttributeValue(TOKEN.page, TOKEN.number, argument[1].to_bytes(8, "big"))
        osd.create_name(root, argument[0], attributes=[token])
    elif name == "unlink":
        osd.unlink(root, argument[0])
    elif name == "lookup":
        lists = AttributeLists((TOKEN,), (), 64)
        params = NameParams(NameVerb.LOOKUP, argument[0].encode())
        reply = osd.reply(rq.names(root, params, attributes=lists))
        if reply.error:
            raise reply.error
        return reply.attribute(TOKEN).uint
    elif name == "list":
        return frozenset(each.name.decode() for each in osd.list_names(root).entries)
    else:
        osd.rename(root, *argument, exchange=name == "exchange")
    return ""


def argument_of(name: str, rng: random.Random, token: int) -> Any:
    if name == "move":
        return tuple(rng.sample(DIRECTORIES, 2))
    if name == "create":
        return rng.choice(PATHS), token
    return tuple(rng.sample(PATHS, 2)) if name in ("rename", "exchange") else (rng.choice(PATHS),)


class History:
    """What all clients did."""

    def __init__(self, root: ObjectRef) -> None:
        self.root = root
        self.operations: list[Operation] = []

    def send(self, osd: Commands, name: str, argument: Any) -> bool:
        """One command; False: no answer came.  One that is refused as BUSY has not happened."""
        start = time.perf_counter()
        try:
            answer = do(osd, self.root, name, argument)
        except TargetBusy:
            return True
        except (Unreachable, SessionLost):
            self.operations.append(Operation(name, argument, None, start, answered=False))
            return False
        except OSDError as error:
            assert error.sense is not None, error
            assert (error.sense.sense_key, error.sense.asc) == (5, 0x80), error
            assert not isinstance(error, NotADirectory), error
            answer = NOTHING
        self.operations.append(Operation(name, argument, answer, start, time.perf_counter()))
        return True

    def client(
        self, osd: Commands, number: int, rng: random.Random, on_answer: Callable[[], None]
    ) -> None:
        for each in range(COMMANDS):
            (name,) = rng.choices(list(WEIGHTS), list(WEIGHTS.values()))
            if not self.send(osd, name, argument_of(name, rng, number * COMMANDS + each)):
                return
            on_answer()

    def run(
        self, osd: Commands, rng: random.Random, first: int, on_answer: Callable[[], None]
    ) -> None:
        """All clients at once, until each is through or the target is gone."""
        at_once(
            [
                partial(self.client, osd, first + n, random.Random(rng.random()), on_answer)
                for n in range(CLIENTS)
            ]
        )

    def target_is_gone(self) -> None:
        self.operations = cut_short(self.operations, time.perf_counter())

    def __str__(self) -> str:
        return told(self.operations)


def test_one_order_explains_all_answers_across_kills(make_harness: MakeHarness, seed: int) -> None:
    rng = random.Random(seed)
    harness = make_harness()
    root = ref(harness.osd.create_partition())
    directory = harness.osd.make_directory(root, "d").object
    history = History(root)
    for number in range(ROUNDS):
        kill = after(rng.randrange(COMMANDS, CLIENTS * COMMANDS), harness.transport.process.kill)
        history.run(harness.osd, rng, number * CLIENTS, kill)
        harness.kill()
        history.target_is_gone()
        harness.start()
        for path in PATHS:
            assert history.send(harness.osd, "lookup", (path,))
        assert history.send(harness.osd, "list", ())
    ends = final_states(MACHINE, history.operations)
    assert ends, f"no order explains this:\n{history}"
    objects = harness.osd.list_objects(root.partition_id)
    assert len(objects) in {len(each) for _, each in ends}
    inside = [each.object for each in harness.osd.list_names(directory).entries]
    assert sorted(inside) == sorted(harness.osd.list_members(directory))
    answers = {each.answer for each in history.operations if each.name == "lookup"}
    assert NOTHING in answers
    assert len(answers) > ROUNDS


def test_the_checker_can_fail() -> None:
    made = Operation("create", ("a", 1), "", 0, 1)
    moved = Operation("rename", ("a", "d/a"), "", 2, 5)
    new, old = Operation("lookup", ("d/a",), 1, 3, 3.5), Operation("lookup", ("a",), 1, 4, 4.5)
    assert final_states(MACHINE, [made, moved, new])
    assert final_states(MACHINE, [made, moved, old])
    assert not final_states(MACHINE, [made, moved, new, old])
    gone = Operation("move", ("d", "e"), "", 6, 7)
    late = Operation("lookup", ("d/a",), 1, 8, 9)
    assert not final_states(MACHINE, [made, moved, gone, late])
