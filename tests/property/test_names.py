# SPDX-License-Identifier: GPL-2.0-or-later
"""Names against a model: one client with any sequence of commands, four clients at once."""

from __future__ import annotations

import random
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import NameExists, NoSuchName, OSDError
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.names import NameParams, NameVerb
from tests.linearize import Machine, Operation, final_states
from tests.serving import Serving
from tests.waiting import until

NAMES = "abc"
TOKEN = AttributeValue(Page.APPLICATION, 1, b"green")
REMOVALS = 1000
Tree = dict[str, Any]
PATHS = st.sampled_from(["a", "b", "a/a", "a/b", "b/a", "a/a/a", "a/a/b", "b/a/a"])
STEPS = st.one_of(
    st.tuples(st.sampled_from(["create", "mkdir", "unlink", "rmdir", "lookup"]), PATHS),
    st.tuples(st.sampled_from(["rename", "replace", "exchange"]), PATHS, PATHS),
)


class Model:
    """Directories are dicts, user objects are numbers.  Every call says whether it is allowed."""

    def __init__(self) -> None:
        self.root: Tree = {}
        self.made = 0

    def place(self, path: str) -> tuple[Tree, str] | None:
        *above, name = path.split("/")
        at: Any = self.root
        for each in above:
            at = at.get(each)
            if not isinstance(at, dict):
                return None
        return at, name

    def act(self, verb: str, path: str, *new: str) -> bool:
        place = self.place(path)
        if place is None:
            return False
        at, name = place
        found = at.get(name)
        if verb in ("create", "mkdir"):
            if name in at:
                return False
            self.made += 1
            at[name] = self.made if verb == "create" else {}
            return True
        if found is None:
            return False
        if verb == "lookup":
            return True
        if verb in ("unlink", "rmdir"):
            if isinstance(found, dict) != (verb == "rmdir") or (verb == "rmdir" and found):
                return False
            del at[name]
            return True
        return self.move(verb, path, at, name, new[0])

    def move(self, verb: str, path: str, at: Tree, name: str, new: str) -> bool:
        target = self.place(new)
        if target is None:
            return False
        to, new_name = target
        found, there = at[name], to.get(new_name)
        if isinstance(found, dict) and new.startswith(path + "/"):
            return False
        if path == new:
            return verb != "rename"
        if verb == "exchange":
            if there is None or (isinstance(there, dict) and path.startswith(new + "/")):
                return False
            at[name], to[new_name] = there, found
            return True
        if there is not None:
            if verb == "rename" or isinstance(there, dict) != isinstance(found, dict):
                return False
            if there and isinstance(there, dict):
                return False
        del at[name]
        to[new_name] = found
        return True


def do(osd: Commands, root: ObjectRef, verb: str, path: str, *new: str) -> bool:
    try:
        if verb == "create":
            osd.create_name(root, path)
        elif verb == "mkdir":
            osd.make_directory(root, path)
        elif verb == "unlink":
            osd.unlink(root, path)
        elif verb == "rmdir":
            osd.remove_directory(root, path)
        elif verb == "lookup":
            osd.lookup(root, path)
        else:
            osd.rename(root, path, *new, replace=verb == "replace", exchange=verb == "exchange")
    except OSDError as error:
        assert error.sense is not None
        assert error.sense.sense_key == 5, error
        return False
    return True


def shape(tree: Tree) -> Any:
    return {k: shape(v) if isinstance(v, dict) else None for k, v in sorted(tree.items())}


def look(osd: Commands, directory: ObjectRef) -> Any:
    return {
        each.name.decode(): look(osd, each.object) if each.is_directory else None
        for each in osd.list_names(directory).entries
    }


def count(tree: Tree) -> int:
    return sum(count(v) if isinstance(v, dict) else 1 for v in tree.values())


@settings(
    max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture]
)
@given(steps=st.lists(STEPS, min_size=10, max_size=60))
def test_one_client(memory_unit: Commands, steps: list[tuple[str, ...]]) -> None:
    osd, model = memory_unit, Model()
    root = ref(osd.create_partition())
    for step in steps:
        assert do(osd, root, *step) == model.act(*step), step
    assert look(osd, root) == shape(model.root)
    assert len(osd.list_objects(root.partition_id)) == count(model.root)
    osd.remove_partition(root.partition_id, contents=True)


def step_of(state: frozenset[str], operation: Operation) -> tuple[Any, frozenset[str]]:
    """A directory with names alone."""
    name, *new = operation.argument
    if operation.name == "create":
        return name not in state, state | {name}
    if operation.name == "unlink":
        return name in state, state - {name}
    if operation.name == "list":
        return state, state
    moves = name in state and (new[0] not in state)
    return moves, (state - {name} | {new[0]}) if moves else state


class Client(threading.Thread):
    """Sends changes of one directory, and writes down when each began and ended."""

    def __init__(self, osd: Commands, directory: ObjectRef, seed: int) -> None:
        super().__init__()
        self.osd, self.directory, self.random = osd, directory, random.Random(seed)
        self.history: list[Operation] = []
        self.failure: BaseException | None = None

    def answer(self, verb: str, arguments: list[str]) -> Any:
        try:
            if verb == "list":
                entries = self.osd.list_names(self.directory).entries
                return frozenset(each.name.decode() for each in entries)
            if verb == "create":
                self.osd.create_name(self.directory, arguments[0])
            elif verb == "unlink":
                self.osd.unlink(self.directory, arguments[0])
            else:
                self.osd.rename(self.directory, *arguments)
        except (NameExists, NoSuchName):
            return False
        return True

    def run(self) -> None:
        try:
            for _ in range(25):
                verb = self.random.choice(["create", "unlink", "rename", "list"])
                arguments = self.random.sample(NAMES, 2)
                start = time.monotonic()
                answer = self.answer(verb, arguments)
                end = time.monotonic()
                self.history.append(Operation(verb, tuple(arguments), answer, start, end))
        except BaseException as error:
            self.failure = error


@pytest.fixture
def clients(serving: Serving) -> Iterator[list[Commands]]:
    targets = [serving.connect() for _ in range(4)]
    yield list(targets)
    for each in targets:
        each.close()


def test_four_clients(clients: list[Commands], seed: int) -> None:
    """What they were answered could have happened one after the other."""
    root = ref(clients[0].create_partition())
    directory = clients[0].make_directory(root, "d").object
    threads = [Client(osd, directory, seed + n) for n, osd in enumerate(clients)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
        assert each.failure is None, each.failure
    history = [operation for each in threads for operation in each.history]
    names = frozenset(e.name.decode() for e in clients[0].list_names(directory).entries)
    assert names in final_states(Machine(frozenset[str](), step_of), history)
    assert len(clients[0].list_objects(root.partition_id)) == len(names)
    assert len(clients[0].list_members(directory)) == len(names)
    clients[0].remove_partition(root.partition_id, contents=True)


def test_lookup_beside_removals(clients: list[Commands]) -> None:
    """A lookup reads the attributes of the object it has found, or finds no name: never half of it."""
    root = ref(clients[0].create_partition())
    removed = threading.Event()
    left = iter(range(REMOVALS))
    found: set[bool] = set()

    def removed_and_looked_up() -> bool:
        clients[0].create_name(root, "a", attributes=[TOKEN])
        clients[0].unlink(root, "a")
        return next(left, None) is None and found == {True, False}  # lookups may be late

    def make_and_remove() -> None:
        try:
            until(removed_and_looked_up, lambda: f"lookups saw {found}", pause=0)
        finally:
            removed.set()

    def look_up(osd: Commands) -> None:
        lists = AttributeLists((TOKEN.id,), (), 64)
        request = rq.names(root, NameParams(NameVerb.LOOKUP, b"a"), attributes=lists)
        while not removed.is_set():
            try:
                reply = osd.reply(request)
                if reply.error:
                    raise reply.error
                assert reply.attribute(TOKEN.id).value == TOKEN.value
                found.add(True)
            except NoSuchName:
                found.add(False)

    with ThreadPoolExecutor() as pool:
        readers = [pool.submit(look_up, each) for each in clients[1:]]
        pool.submit(make_and_remove).result()
        for each in readers:
            each.result()
    clients[0].remove_partition(root.partition_id)
