# SPDX-License-Identifier: GPL-2.0-or-later
"""A history of READs through a view while its base, its functions and its stack change (docs/views.md).

Each writer of the base has a region of its own, and writes its next number all over it.  Each function
adds a number of its own.  So each READ says which writes and which function it has seen: all of a region
is of one write, which is not older than one that had ended before the READ began.  One function has seen
all of it, which was attached meanwhile.  READs of the same version of the base through the same function
are equal.
"""

from __future__ import annotations

import struct
import threading
import time
from collections.abc import Callable
from dataclasses import dataclass, field

import pytest

import pyosd
from pyosd import requests as rq
from pyosd.errors import OSDError, TargetBusy
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import ObjectRef, TaskManagement, ref
from tests.command.test_perform import manage
from tests.exec.test_kept import INACTIVE, KIB
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

REGION, WRITERS, READERS = 16 * KIB, 3, 4
LENGTH = REGION * WRITERS
BITS = 14  # of a number; the function's stands above
MARK = """
import osd

def main(args):
    data = bytearray(osd.stage(args).data)
    data[::2] = bytes(data[::2]).translate(bytes((each % 64) + 64 * {number} for each in range(256)))
    return bytes(data)
"""
CONTRACTS = {
    "blocks": Contract(OutputSize.SAME, block=4096, deterministic=True),
    "sequential": Contract(OutputSize.SAME, deterministic=True),
}


@dataclass
class Change:
    """The function that READs pass from then on; 0: none."""

    number: int
    began: float
    ended: float = float("inf")


@dataclass
class World:
    """What all threads know."""

    served: Serving
    base: ObjectRef
    shown: ObjectRef
    stop: threading.Event = field(default_factory=threading.Event)
    lock: threading.Lock = field(default_factory=threading.Lock)
    written: list[int] = field(default_factory=lambda: [0] * WRITERS)  # acknowledged
    changes: list[Change] = field(default_factory=list)
    seen: dict[tuple[bytes, int, int, int], bytes] = field(default_factory=dict)
    reads: int = 0
    failures: list[BaseException] = field(default_factory=list)

    def guarded(self, work: Callable[[pyosd.Target], None]) -> None:
        """Do a step again and again, with a session of its own."""
        try:
            with self.served.connect() as target:
                while not self.stop.is_set():
                    work(target)
        except BaseException as error:
            self.failures.append(error)
            self.stop.set()

    def change(self, number: int, act: Callable[[], object]) -> None:
        """Change the function that READs pass."""
        made = Change(number, time.monotonic())
        with self.lock:
            self.changes.append(made)
        act()
        with self.lock:
            made.ended = time.monotonic()

    def possible(self, began: float, ended: float) -> tuple[set[int], bool]:
        """The functions that a READ of this time may have passed, and whether one changed meanwhile."""
        with self.lock:
            before = [each for each in self.changes if each.ended <= began]
            during = [each for each in self.changes if each.began <= ended and each.ended > began]
        return {before[-1].number, *(each.number for each in during)}, bool(during)


def numbers_of(data: bytes) -> tuple[int, list[int]]:
    """The function that has seen all the data, and the write of each piece of a region in them."""
    cells = struct.unpack(f">{len(data) // 2}H", data)
    (mark,) = {cell >> BITS for cell in cells}
    return mark, [cell % (1 << BITS) for cell in cells]


def check(world: World, data: bytes, start: int, began: float, ended: float, old: list[int]) -> int:
    """One READ.  Returns: the number of its function."""
    mark, cells = numbers_of(data)
    possible, _ = world.possible(began, ended)
    assert mark in possible, (mark, possible)
    for place in range(WRITERS):
        of_region = {cell for at, cell in enumerate(cells) if place == (start + 2 * at) // REGION}
        assert len(of_region) <= 1, f"a mix of the writes {of_region}"
        assert not of_region or min(of_region) >= old[place], "a write that was there is not"
    return mark


def read_once(world: World, target: pyosd.Target, turn: list[int]) -> None:
    turn[0] += 1
    start, length = ((0, LENGTH), (REGION - 4 * KIB, 8 * KIB), (REGION, 2 * KIB))[turn[0] % 3]
    old, began = [*world.written], time.monotonic()
    try:
        data, version = target.read_with_version(world.shown, start, length)
    except TargetBusy:
        return
    except OSDError as error:
        sense = error.sense
        assert sense is not None and sense.asc << 8 | sense.ascq == INACTIVE, error
        assert world.possible(began, time.monotonic())[1], "nothing changed, and it was refused"
        return
    mark = check(world, bytes(data), start, began, time.monotonic(), old)
    with world.lock:
        known = world.seen.setdefault((version, mark, start, length), bytes(data))
        world.reads += 1
    assert known == bytes(data), "the same version, and other data"


def can_be_judged(world: World) -> bool:
    """Whether enough has happened."""
    with world.lock:
        marks = {key[1] for key in world.seen}
    return marks >= {0, 1, 2} and world.reads > 100 and min(world.written) > 10


def write_once(world: World, target: pyosd.Target, place: int) -> None:
    number = world.written[place] + 1
    target.write(world.base, place * REGION, struct.pack(">H", number) * (REGION // 2))
    world.written[place] = number
    world.stop.wait(0.02)


def abort_once(world: World, target: pyosd.Target) -> None:
    """READs that go away, those that compute and those that wait."""
    for _ in range(4):
        target.submit(rq.read(world.shown, 0, LENGTH))
    manage(target, TaskManagement.ABORT_TASK_SET)
    world.stop.wait(0.05)


def change_once(
    world: World, target: pyosd.Target, functions: list[ObjectRef], turn: list[int]
) -> None:
    """Another function, none, another version of one, and one that is not active for a while."""
    table = Functions(target)
    turn[0] += 1
    step = turn[0] % 5
    if step == 0:
        world.change(0, lambda: table.detach(world.shown))
    elif step in (1, 3):
        chosen = functions[step // 2]
        world.change(1 + step // 2, lambda: table.attach(world.shown, [FunctionStage(chosen)]))
    elif step == 2:
        world.change(1, lambda: (table.deactivate(functions[0]), table.activate(functions[0])))
    else:
        number = 2 + turn[0] // 5 % 2

        def replace() -> None:
            table.target.write(functions[1], 0, MARK.format(number=number).encode())
            table.activate(functions[1])

        world.change(number, replace)
        world.stop.wait(0.2)
        world.change(2, lambda: restore(table, functions[1]))
    world.stop.wait(0.15)


def restore(table: Functions, function: ObjectRef) -> None:
    table.target.write(function, 0, MARK.format(number=2).encode())
    table.activate(function)


@pytest.mark.parametrize("kind", CONTRACTS)
def test_readers_never_see_a_mix_or_the_past(
    own_serving: Serving, kind: str, request: pytest.FixtureRequest
) -> None:
    with own_serving.connect() as target:
        table = Functions(target)
        functions = [
            table.put(MARK.format(number=number), name=f"mark{number}", contract=CONTRACTS[kind]).id
            for number in (1, 2)
        ]
        base = target.create(target.create_partition())
        target.write(base, 0, bytes(LENGTH))
        view = table.view_create(base.partition_id, [])
        world = World(own_serving, base, ref(view.id, base.object_id))
        world.change(0, lambda: None)
        before = table.results()
        changes = [0]
        works: list[Callable[[pyosd.Target], None]] = [
            *(
                lambda target, place=place: write_once(world, target, place)
                for place in range(WRITERS)
            ),
            *(
                lambda target, turn=turn: read_once(world, target, turn)
                for turn in ([place] for place in range(READERS))
            ),
            lambda target: abort_once(world, target),
            lambda target: change_once(world, target, functions, changes),
        ]
        threads = [threading.Thread(target=world.guarded, args=(work,)) for work in works]
        for each in threads:
            each.start()
        world.stop.wait(request.config.getoption("--history-seconds"))
        until(lambda: world.stop.is_set() or can_be_judged(world))
        world.stop.set()
        for each in threads:
            each.join()
        after = table.results()
    if world.failures:
        raise world.failures[0]
    assert after.hits > before.hits and after.computed > before.computed
