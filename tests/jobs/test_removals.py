# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that meet the removal of what they address answer as if it were there, or as if it were not."""

from __future__ import annotations

import random
from contextlib import suppress
from typing import Any

import pytest

from pyosd import attr, errors
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.jobs.job import Job
from pyosd.types import (
    JOBS_COLLECTION,
    AttributeId,
    AttributeValue,
    PartitionId,
    ref,
)
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import STATUS_IDS
from tests.jobs.conftest import Target
from tests.jobs.meeting import Meeting, Questions, Shelf
from tests.jobs.test_exec import run

COMMANDS = 1000
"""Of each reader."""
FUNCTIONS = PartitionId(0x12)
ALL_PAGES, ALL_NUMBERS = 0xFFFF_FFFF, 0xFFFF_FFFF
NAME = AttributeId(Page.APPLICATION, 1)
SOURCE = 17
USER_PAGES = [page for page in Page if 0 < page < Page.PARTITION_DIRECTORY]
COLLECTION_PAGES = [
    page for page in Page if Page.COLLECTION_DIRECTORY <= page < Page.ROOT_DIRECTORY
]
PARTITION_PAGES = [
    page for page in Page if Page.PARTITION_DIRECTORY <= page < Page.COLLECTION_DIRECTORY
]
SAME_DATA = """
import osd

def main(args):  # a stage, or called with a byte
    return osd.stage(args).data if len(args) > 1 else args
"""
SAME_SIZE = Contract(OutputSize.SAME)

DOCUMENTED = {
    (0x24, 0x00): "there is no such object",
    (0x26, 0x00): "there is no such member",
    (0x80, 0x11): "an unfinished job stands in the way",
    (0x80, 0x17): "a function is not active",
    (0x80, 0x19): "no active function has this name",
    (0x80, 0x28): "calls of the function are under way",
    (0x80, 0x2C): "data of an object with functions are changed, or its source is gone",
    (0x80, 0x30): "there is no such name",
}
"""Sense codes of refusals that a removal explains, or what the commands are sent to."""
ALSO_REFUSED = {*"copy join map members page poll query read status write".split()}
"""Commands that are certain to meet a removal."""


# ---- what comes and goes


def objects_go(target: Target, shelf: Shelf, number: int) -> None:
    """With data, an attribute, a name and a membership; ids come again."""
    osd, partition_id = target.commands, target.partition.partition_id
    made = ref(partition_id, 0x2_0000 + number % 5)
    with suppress(errors.OSDError):
        osd.remove(made)
    osd.create_and_write(partition_id, b"x" * 5000, requested_id=made.object_id)
    shelf.put("object", made)
    osd.set_attributes(made, [AttributeValue(*NAME, b"name")])
    osd.link(target.partition, f"name{number % 3}", made, replace=True)
    osd.add_member(shelf.made["stays"][0], made)
    osd.remove(made)


def collections_go(target: Target, shelf: Shelf, number: int) -> None:
    osd, partition_id = target.commands, target.partition.partition_id
    made = ref(partition_id, 0x3_0000 + number % 5)
    with suppress(errors.OSDError):
        osd.remove_collection(made, with_members=True)
    osd.create_collection(partition_id, made.object_id)
    shelf.put("collection", made)
    for member in osd.create_many(partition_id, 3):
        osd.add_member(made, member)
        shelf.put("object", member)
    for member in osd.list_members(made):
        osd.remove(member)
    osd.remove_collection(made, with_members=True)
    osd.remove(osd.create(partition_id, made.object_id))


def partitions_go(target: Target, shelf: Shelf, number: int) -> None:
    osd = target.commands
    made = PartitionId(0x6_0000 + number % 5)
    with suppress(errors.OSDError):
        osd.remove_partition(made, contents=True)
    osd.create_partition(made)
    shelf.put("partition", ref(made))
    for _ in range(2):
        shelf.put("object", osd.create_and_write(made, b"y" * 100))
    shelf.put("collection", osd.create_collection(made))
    osd.remove_partition(made, contents=True)


def jobs_expire(target: Target, shelf: Shelf, number: int) -> None:
    """Also while somebody polls them."""
    options: dict[str, Any] = {"array": range(4)} if number % 4 == 0 else {}
    made = run(target, "pass", hold=True, expire=0.05, tags={"k": "v"}, **options)
    shelf.put("job", made.id)
    with suppress(errors.JobExpired):
        made.wait(60)


def jobs_go(target: Target, shelf: Shelf, number: int) -> None:
    """Removed by a command, with a result of its own object."""
    made = run(target, "import osd\nprint(1)\nosd.result(b'r' * 100_000)")
    shelf.put("job", made.id)
    made.wait(60)
    made.remove()


def functions_go(target: Target, shelf: Shelf, number: int) -> None:
    """While objects have them as stages."""
    functions = Functions(target.commands)
    made = functions.put(SAME_DATA, name=f"same{number % 3}", contract=SAME_SIZE).id
    shelf.put("function", made)
    stacked = target.commands.create_and_write(target.partition.partition_id, b"z" * 100)
    shelf.put("stacked", stacked)
    functions.attach(stacked, [FunctionStage(made)])
    source = stacked.partition_id.to_bytes(8, "big") + stacked.object_id.to_bytes(8, "big")
    view = target.commands.create(target.partition.partition_id)
    target.commands.set_attributes(view, [AttributeValue(Page.STACK, SOURCE, source)])
    shelf.put("stacked", view)
    functions.remove(made)
    target.commands.remove(stacked)
    target.commands.remove(view)


MAKERS = (objects_go, collections_go, partitions_go, jobs_expire, jobs_go, functions_go)


# ---- what meets it


def questions(target: Target, shelf: Shelf, rng: random.Random) -> Questions:
    """Every kind of command, about something that may go meanwhile."""
    osd, partition = target.commands, target.partition
    kind = rng.choice(["object", "job", "stacked", "function"])
    obj = shelf.pick(rng, kind)
    collection = shelf.pick(rng, "collection")
    group = rng.choice([collection, ref(partition.partition_id, JOBS_COLLECTION)])
    any_kind = rng.choice([kind, "collection", "partition"])
    anything = shelf.pick(rng, any_kind)
    pages = {"collection": COLLECTION_PAGES, "partition": PARTITION_PAGES}.get(any_kind, USER_PAGES)
    page = rng.choice(pages)
    return {
        "status": lambda: osd.get_attributes(shelf.pick(rng, "job"), STATUS_IDS),
        "poll": lambda: osd.poll_job(shelf.pick(rng, "job")),
        "page": lambda: osd.get_page(anything, page),
        "all of a page": lambda: osd.get_attributes(anything, [AttributeId(page, ALL_NUMBERS)]),
        "all pages": lambda: osd.get_attributes(anything, [AttributeId(ALL_PAGES, ALL_NUMBERS)]),
        "set": lambda: osd.set_attributes(obj, [AttributeValue(*NAME, b"new")]),
        "control": lambda: Job(osd, shelf.pick(rng, "job")).cancel(),
        "hold": lambda: Job(osd, shelf.pick(rng, "job")).hold(),
        "read": lambda: osd.read(obj, 0, 50),
        "read with version": lambda: osd.read_with_version(obj, 0, 50),
        "write": lambda: osd.write(obj, 0, b"w" * 50),
        "append": lambda: osd.append(obj, b"a"),
        "punch": lambda: osd.punch(obj, 0, 1),
        "clear": lambda: osd.clear(obj, 0, 1),
        "flush": lambda: osd.flush(obj),
        "map": lambda: osd.read_map(obj),
        "count": lambda: osd.fetch_and_add(obj, 1),
        "copy": lambda: osd.remove(osd.copy(shelf.pick(rng, "object"), partition.partition_id)),
        "members": lambda: osd.get_member_attributes(group, [*STATUS_IDS, NAME]),
        "list members": lambda: osd.list_members(group),
        "list objects": lambda: osd.list_objects(shelf.pick(rng, "partition").partition_id),
        "list attributes": lambda: list(
            osd.list_attributes(
                partition.partition_id, [*STATUS_IDS, AttributeId(rng.choice(USER_PAGES), 1)]
            )
        ),
        "query": lambda: osd.query(group, attr(*NAME) >= b"n"),
        "join": lambda: osd.add_member(collection, shelf.pick(rng, "object")),
        "memberships": lambda: osd.memberships(obj),
        "lookup": lambda: osd.lookup(partition, f"name{rng.randrange(3)}"),
        "list names": lambda: osd.list_names(partition, details=True),
        "unlink": lambda: osd.unlink(partition, f"name{rng.randrange(3)}"),
        "call": lambda: Functions(osd).call(f"same{rng.randrange(3)}", b"1", zone=partition),
        "run there": lambda: run(target, "pass", hold=True, expire=0.05, zone=anything),
    }


@pytest.mark.sandbox
def test_what_is_removed_meanwhile_is_there_or_is_not(target: Target, seed: int) -> None:
    target.commands.create_partition(FUNCTIONS)
    meeting = Meeting(target, MAKERS, questions, DOCUMENTED)
    meeting.shelf.put("stays", target.commands.create_collection(target.partition.partition_id))
    meeting.take_place(seed, COMMANDS, refused=ALSO_REFUSED)
    assert meeting.answered.keys() == questions(target, meeting.shelf, random.Random(seed)).keys()
    assert meeting.refused.keys() >= ALSO_REFUSED
