# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions, stages, hooks and views that are replaced, attached and removed while commands use them."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress

import pytest

from pyosd import errors
from pyosd.functions import Contract, Functions, FunctionStage, Hook, HookEvent, OutputSize
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from tests.jobs.conftest import Target
from tests.jobs.meeting import Meeting, Questions, Shelf

COMMANDS = 20_000 if os.environ.get("IOSD_LONG") else 120
"""Of each reader."""
STEPS = 40_000 if os.environ.get("IOSD_LONG") else 120
READERS = 4
COMINGS = 8000 if os.environ.get("IOSD_LONG") else 500
REFRESHES = 30
FUNCTIONS = PartitionId(0x12)
ALL_PAGES, ALL_NUMBERS = 0xFFFF_FFFF, 0xFFFF_FFFF
TEXT = b"some text " * 10
SHIFT = """
import osd

def main(args):  # a stage, or called with a byte
    return bytes(byte ^ 1 for byte in osd.stage(args).data) if len(args) > 1 else args

def check(args):
    return None
"""
KEPT = Contract(OutputSize.SAME, inverse="main", deterministic=True)
SHIFTED = bytes(byte ^ 1 for byte in TEXT)

DOCUMENTED = {
    (0x24, 0x00): "there is no such object",
    (0x26, 0x00): "the function of a stage or hook is not active",
    (0x80, 0x11): "an unfinished job stands in the way",
    (0x80, 0x17): "a function is not active",
    (0x80, 0x19): "no active function has this name",
    (0x80, 0x28): "calls of the function are under way",
    (0x80, 0x2C): "data of an object with functions are changed, or its source is gone",
    (0x80, 0x2E): "a function that checks changes is not active",
}
"""Sense codes of refusals that a removal explains, or what the commands are sent to."""


def put(target: Target, name: str) -> ObjectRef:
    table = Functions(target.commands)
    return table.put(SHIFT, name=name, methods=["main", "check"], contract=KEPT).id


# ---- what comes and goes


def versions_follow(target: Target, shelf: Shelf, number: int) -> None:
    """A call by this name finds one or the other."""
    shelf.put("function", put(target, "steady"))


def functions_go(target: Target, shelf: Shelf, number: int) -> None:
    made = put(target, "going")
    shelf.put("function", made)
    Functions(target.commands).deactivate(made)
    Functions(target.commands).activate(made)
    try:
        Functions(target.commands).remove(made, force=number % 2 == 0)
    except errors.FunctionInUse:
        Functions(target.commands).remove(made, force=True)


def stages_go(target: Target, shelf: Shelf, number: int) -> None:
    """Its data are as they were, or shifted."""
    made = target.commands.create_and_write(target.partition.partition_id, TEXT)
    shelf.put("staged", made)
    table = Functions(target.commands)
    for _ in range(3):
        table.attach(made, [FunctionStage(shelf.made["stays"][0])])
        table.detach(made)
    target.commands.remove(made)


def hooks_go(target: Target, shelf: Shelf, number: int) -> None:
    table, made = Functions(target.commands), put(target, "checks")
    where = random.choice([ref(target.partition.partition_id), shelf.made["plain"][0]])
    table.hook(where, Hook(made, random.choice([HookEvent.CHANGES, HookEvent.SET]), "check"))
    with suppress(errors.OSDError):
        table.remove(made, force=True)
    table.unhook(where)


def views_go(target: Target, shelf: Shelf, number: int) -> None:
    table = Functions(target.commands)
    view = table.view_create(
        shelf.made["base"][0].partition_id, [FunctionStage(shelf.made["stays"][0])]
    )
    shelf.put("view", ref(view.id))
    for each in target.commands.list_objects(view.id):
        shelf.put("shown", each)
    table.view_remove(view.id)


def sources_go(target: Target, shelf: Shelf, number: int) -> None:
    """Of an object that shows it; ids come again."""
    osd, partition_id = target.commands, target.partition.partition_id
    source = ref(partition_id, 0x4_0000 + number % 2)
    with suppress(errors.OSDError):
        osd.remove(source)
    osd.create_and_write(partition_id, TEXT, requested_id=source.object_id)
    shown = osd.create(partition_id)
    value = source.partition_id.to_bytes(8) + source.object_id.to_bytes(8)
    osd.set_attributes(shown, [AttributeValue(Page.STACK, 17, value)])
    Functions(osd).attach(shown, [FunctionStage(shelf.made["stays"][0])])
    shelf.put("staged", shown)
    osd.remove(source)
    osd.remove(shown)


MAKERS = (versions_follow, functions_go, stages_go, hooks_go, views_go, sources_go)


# ---- what meets it


def call_steady(target: Target) -> None:
    """Its versions replace one another, so there is always one."""
    try:
        assert Functions(target.commands).call("steady", b"1", zone=target.partition) == b"1"
    except errors.TargetBusy:
        return
    except errors.OSDError as error:
        raise AssertionError(f"a version is always active: {error}") from error


def read_whole(target: Target, obj: ObjectRef) -> None:
    assert bytes(target.commands.read(obj, 0, len(TEXT))) in (TEXT, SHIFTED, b"\0" * len(TEXT))


def questions(target: Target, shelf: Shelf, rng: random.Random) -> Questions:
    osd, partition_id = target.commands, target.partition.partition_id
    table = Functions(osd)
    function, staged = shelf.pick(rng, "function"), shelf.pick(rng, "staged")
    view, shown = shelf.pick(rng, "view"), shelf.pick(rng, "shown")
    anything = rng.choice([function, staged, view, shown])
    plain = shelf.made["plain"][0]
    page = Page.PARTITION_STACK if anything is view else rng.choice([Page.STACK, Page.HOOKS])
    lengths = [
        AttributeId(*LOGICAL_LENGTH),
        AttributeId(Page.VERSION, 1),
        AttributeId(Page.STACK, 1),
    ]
    return {
        "call steady": lambda: call_steady(target),
        "call going": lambda: table.call("going", b"1", zone=target.partition),
        "call by id": lambda: table.call(function, b"1", zone=target.partition),
        "list functions": table.ls,
        "show": lambda: table.show(function),
        "calls": lambda: table.calls(function),
        "capacity": table.capacity,
        "all pages": lambda: osd.get_attributes(anything, [AttributeId(ALL_PAGES, ALL_NUMBERS)]),
        "all of a page": lambda: osd.get_attributes(anything, [AttributeId(page, ALL_NUMBERS)]),
        "read": lambda: read_whole(target, staged),
        "read shown": lambda: read_whole(target, shown),
        "read part": lambda: osd.read(staged, rng.randrange(50), 10),
        "write": lambda: osd.write(staged, 0, TEXT),
        "write plain": lambda: osd.write(plain, 0, TEXT),
        "set plain": lambda: osd.set_attributes(
            plain, [AttributeValue(Page.APPLICATION, 1, b"new")]
        ),
        "create": lambda: osd.remove(osd.create(partition_id)),
        "lengths": lambda: osd.get_attributes(staged, lengths),
        "list shown": lambda: osd.list_objects(view.partition_id),
        "list with lengths": lambda: list(osd.list_attributes(view.partition_id, lengths)),
        "list all with lengths": lambda: list(osd.list_attributes(partition_id, lengths)),
        "views": table.views,
        "attached": lambda: table.attached(staged),
        "hooks": lambda: table.hooks(plain),
        "origin": lambda: table.origin(staged),
        "attach": lambda: table.attach(staged, [FunctionStage(function)]),
        "hook": lambda: table.hook(staged, Hook(function, HookEvent.SET, "check")),
    }


@pytest.mark.sandbox
def test_functions_that_go_meanwhile_are_there_or_are_not(target: Target, seed: int) -> None:
    osd = target.commands
    osd.create_partition(FUNCTIONS)
    meeting = Meeting(target, MAKERS, questions, DOCUMENTED)
    base = osd.create_partition()
    for _ in range(2):
        osd.create_and_write(base, TEXT)
    meeting.shelf.put("base", ref(base))
    meeting.shelf.put("stays", put(target, "stays"))
    meeting.shelf.put("plain", osd.create_and_write(target.partition.partition_id, TEXT))
    meeting.take_place(seed, COMMANDS)
    asked = questions(target, meeting.shelf, random.Random(seed)).keys()
    assert meeting.answered.keys() | meeting.refused.keys() == asked


class Steps:
    """An object that gets a function, data, loses the function, and gets data, again and again.

    After step n a READ returns the n-th state: even ones as they were written, odd ones changed by the
    function or, without it, as a WRITE through the function has left them.
    """

    def __init__(self, target: Target) -> None:
        self.osd, self.table = target.commands, Functions(target.commands)
        self.stage = [FunctionStage(put(target, "steps"))]
        self.obj = self.osd.create_and_write(target.partition.partition_id, self.state(0))
        self.begun = self.ended = 0

    def state(self, number: int) -> bytes:
        return b"state" + (number // 2).to_bytes(4, "big")

    def shown(self, data: bytes) -> int:
        """The number of the state that a READ has returned."""
        odd = not data.startswith(b"state")
        plain = bytes(byte ^ 1 for byte in data) if odd else data
        return 2 * int.from_bytes(plain[5:], "big") + odd

    def step(self) -> None:
        acts: list[Callable[[], object]] = [
            lambda: self.table.attach(self.obj, self.stage),
            lambda: self.osd.write(self.obj, 0, self.state(self.begun)),
            lambda: self.table.detach(self.obj),
            lambda: self.osd.write(self.obj, 0, self.state(self.begun)),
        ]
        self.begun += 1
        act = acts[(self.begun - 1) % 4]
        while True:
            with suppress(errors.TargetBusy):
                act()
                break
        self.ended += 1

    def read(self) -> None:
        least = self.ended
        with suppress(errors.TargetBusy):
            shown = self.shown(bytes(self.osd.read(self.obj, 0, 9)))
            assert least <= shown <= self.begun, "functions and data of two times"


@pytest.mark.sandbox
def test_a_read_passes_through_the_functions_of_its_data(target: Target) -> None:
    target.commands.create_partition(FUNCTIONS)
    steps = Steps(target)

    def read_on() -> None:
        while steps.ended < STEPS:
            steps.read()

    with ThreadPoolExecutor(READERS) as threads:
        readers = [threads.submit(read_on) for _ in range(READERS)]
        while steps.ended < STEPS and not any(each.done() for each in readers):
            steps.step()
        steps.ended = STEPS
    for each in readers:
        each.result()


def test_a_view_follows_a_partition_whose_objects_go(target: Target) -> None:
    """What is removed between two commands of a refresh does not end it."""
    osd, table = target.commands, Functions(target.commands)
    base = osd.create_partition()
    view = table.view_create(base, [])

    def come_and_go() -> None:
        for _ in range(REFRESHES):
            for each in [osd.create(base) for _ in range(4)]:
                osd.remove(each)

    with ThreadPoolExecutor(3) as threads:
        makers = [threads.submit(come_and_go) for _ in range(2)]
        refreshing = threads.submit(table.view_refresh, view.id)
        while not all(each.done() for each in makers):
            table.view_refresh(view.id)
        refreshing.result()
    table.view_refresh(view.id)
    assert osd.list_objects(view.id) == []


@pytest.mark.sandbox
def test_an_object_whose_id_comes_again_has_no_source(target: Target) -> None:
    """A READ finds it with its data or not at all: it shows no other object's."""
    osd, partition_id = target.commands, target.partition.partition_id
    osd.create_partition(FUNCTIONS)
    Functions(osd).attach(target.partition, [FunctionStage(put(target, "all"))])
    obj = osd.create(partition_id)

    def come_and_go() -> None:
        for _ in range(COMINGS):
            osd.remove(obj)
            osd.create(partition_id, obj.object_id)

    def read_on() -> None:
        while not coming.done():
            with suppress(errors.NotFound):
                assert bytes(osd.read(obj, 0, 1)) == b""

    with ThreadPoolExecutor(READERS + 1) as threads:
        coming = threads.submit(come_and_go)
        readers = [threads.submit(read_on) for _ in range(READERS)]
    for each in (coming, *readers):
        each.result()
