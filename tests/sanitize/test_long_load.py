# SPDX-License-Identifier: GPL-2.0-or-later
"""Long commands at once, to a harness built with sanitizers: queries with an index that comes and
goes, copies, maps, atomics, member commands that run on after GOOD, structure checks, partitions
removed under all of them, and task management that ends any of them.  Beside what sanitizers report,
no check may find damage, and in the end the counters must be what is there."""

from __future__ import annotations

import random
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from pyosd import Criterion, attr
from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef, PartitionId, TaskManagement, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from tests.sanitize.builds import Build, made
from tests.sanitize.test_load import BUILDS, clients_at_once, store

__all__ = ["store"]

ROUNDS = 60
MEMBERS = 40
INDEX = Page.INDEX
PAGE = Page.APPLICATION
WELL_KNOWN = 0x1000
ENDS = (TaskManagement.ABORT_TASK_SET, TaskManagement.LOGICAL_UNIT_RESET)


def value(chance: random.Random) -> AttributeValue:
    return AttributeValue(PAGE, 1, chance.randbytes(2))


def members_of(osd: Commands, partition: PartitionId, chance: random.Random) -> None:
    """The life of a collection and its members."""
    collection = osd.create_collection(partition)
    join = AttributeValue(Page.USER_COLLECTIONS, 1, collection.object_id.to_bytes(8, "big"))
    osd.create_many(partition, MEMBERS, attributes=[join, value(chance)])
    osd.set_member_attributes(collection, [value(chance)], immediate=chance.random() < 0.5)
    osd.create_tracking_collection(partition, source=collection.object_id)
    osd.remove_member_objects(collection, immediate=chance.random() < 0.5)
    osd.remove_collection(collection, with_members=True)


def queries(osd: Commands, partition: PartitionId, chance: random.Random) -> None:
    matches = osd.create_tracking_collection(partition)
    criteria = Criterion(PAGE, 1, b"\x20", b"\xe0")
    where = ref(partition, WELL_KNOWN)
    osd.query_into(where, [criteria], matches, immediate=chance.random() < 0.5)
    osd.query(ref(partition), attr(PAGE, 1) >= chance.randbytes(1))
    osd.remove_collection(matches, with_members=True)


def partition_of_its_own(osd: Commands, shared: ObjectRef, chance: random.Random) -> None:
    """Removed while copies into it, and what runs on in it, are under way."""
    partition = osd.create_partition()
    with ThreadPoolExecutor(1) as other:
        copied = other.submit(osd.copy, shared, partition)
        members_of(osd, partition, chance)
        osd.remove_partition(partition, contents=True)
        copied.exception()


def declare(osd: Commands, partition: int, chance: random.Random) -> None:
    building = chance.choice([b"", b"\x01"])
    lists = AttributeLists((), (AttributeValue(INDEX, PAGE, building),))
    osd.reply(rq.set_attributes(ref(partition), attributes=lists))


def one_of_all(
    osd: Commands, partition: PartitionId, shared: ObjectRef, chance: random.Random
) -> None:
    match chance.randrange(11):
        case 0:
            members_of(osd, partition, chance)
        case 1:
            queries(osd, partition, chance)
        case 2:
            partition_of_its_own(osd, shared, chance)
        case 3:
            declare(osd, partition, chance)
        case 4:
            assert osd.object_structure_check(partition) == 0
        case 5:
            osd.remove(osd.copy(shared, partition))
        case 6:
            osd.read_map(shared)
        case 7:
            osd.write(shared, chance.choice([0, 5000, 1 << 21]), chance.randbytes(9000))
            osd.punch(shared, 100, 5000)
        case 8:
            lists = AttributeLists((), (value(chance),))
            osd.reply(rq.write(shared, 0, chance.randbytes(100), attributes=lists))
        case 9:
            osd.perform_task_management(chance.choice(ENDS))
        case _:
            osd.fetch_and_add(shared, 1)


@BUILDS
def test_long_commands_at_once(build: Build, store: str, tmp_path: Path) -> None:  # noqa: F811
    command = made(build).command("osd_harness", store)
    assert clients_at_once(command, tmp_path / "log", one_of_all, ROUNDS) == 0
