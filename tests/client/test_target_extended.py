# SPDX-License-Identifier: GPL-2.0-or-later
"""Typed commands beyond everyday use, and task management, against a real target."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from pyosd import (
    AttributeId,
    AttributeValue,
    CommandTracking,
    Criterion,
    Duplication,
    MapType,
    NotFound,
    ObjectRef,
    OSDError,
    Page,
    Target,
    TaskAborted,
    TaskFunction,
    TaskManagement,
    TaskResponse,
    aio,
    attr,
    connect,
    ref,
    requests,
)
from pyosd.types import OBJECTS_COLLECTION, PartitionId
from pyosd.wire.attributes import LOGICAL_LENGTH
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

NUMBER, WORD = AttributeId(Page.APPLICATION, 1), AttributeId(Page.APPLICATION, 2)
number, word = attr(NUMBER.page, NUMBER.number), attr(WORD.page, WORD.number)


def be(value: int) -> bytes:
    return value.to_bytes(8, "big")


@pytest.fixture
def herd(target: Target, zone: ObjectRef) -> list[ObjectRef]:
    """Twenty objects with a number and a word each."""
    made = target.create_many(zone.partition_id, 20)
    for n, each in enumerate(made):
        values = [
            AttributeValue(NUMBER.page, NUMBER.number, be(n)),
            AttributeValue(WORD.page, WORD.number, b"odd" if n % 2 else b"even"),
        ]
        target.set_attributes(each, values)
    return made


def test_query(target: Target, zone: ObjectRef, herd: list[ObjectRef]) -> None:
    assert target.query(zone) == herd
    assert target.query(zone, number >= 15) == herd[15:]
    assert target.query(zone, (number >= 3) & (number <= 8) & (word == "odd")) == herd[3:9:2]
    assert target.query(zone, (number == 3) | (number == 3) | (word > "even")) == herd[1::2]
    mixed = ((number <= 4) & (word == "even")) | (number == 19) | (number < 1)
    assert target.query(zone, mixed) == [herd[0], herd[2], herd[4], herd[19]]
    assert target.query(zone, (number > 5) & (number < 5)) == []
    criteria = [Criterion(*astuple(NUMBER), be(5), be(5)), Criterion(*astuple(WORD), b"odd")]
    assert target.query(zone, criteria) == herd[5:6]
    assert target.query(zone, criteria[:1], match_all=False) == herd[5:6]
    whole = ref(zone.partition_id, OBJECTS_COLLECTION)
    assert target.query(whole, number >= 15) == herd[15:] == target.list_members(whole)[15:]
    with pytest.raises(NotFound):
        target.query(ref(0x7777777), number >= 1)


def test_query_by_coroutines(osd_url: str, zone: ObjectRef, herd: list[ObjectRef]) -> None:
    async def ask() -> tuple[list[ObjectRef], list[ObjectRef]]:
        async with aio.connect(osd_url) as target:
            mixed = (number == 3) & (word == "odd") | (number >= 18)
            found = await asyncio.gather(target.query(zone, mixed), target.query(zone))
            return found[0], found[1]

    assert asyncio.run(ask()) == ([herd[3], *herd[18:]], herd)


def astuple(wanted: AttributeId) -> tuple[int, int]:
    return wanted.page, wanted.number


def test_an_answer_longer_than_expected(
    target: Target, zone: ObjectRef, herd: list[ObjectRef], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("pyosd.commands.collections._IDS_PER_LIST", 3)
    assert target.query(zone, number >= 0) == herd


def test_query_into_a_collection(target: Target, zone: ObjectRef, herd: list[ObjectRef]) -> None:
    matches = target.create_tracking_collection(zone.partition_id)
    criteria = (number >= 12).queries()[0].criteria
    target.query_into(zone, criteria, matches)
    assert target.list_members(matches) == herd[12:]
    assert target.tracking(matches).ended_well and target.tracking(matches).members == 8
    target.query_into(zone, (number >= 18).queries()[0].criteria, matches, immediate=True)
    assert settled(target, matches).ended_well
    assert target.list_members(matches) == herd[18:]
    target.set_member_attributes(matches, [AttributeValue(Page.APPLICATION, 9, b"found")])
    (first, _) = target.get_member_attributes(matches, [AttributeId(Page.APPLICATION, 9)])
    assert first.attributes[0].value == b"found"
    twin = target.create_tracking_collection(zone.partition_id, source=matches.object_id)
    assert target.list_members(twin) == herd[18:]
    target.remove_member_objects(twin, immediate=True)
    assert settled(target, twin).ended_well
    assert target.list_objects(zone.partition_id) == herd[:18]


def settled(target: Target, collection: ObjectRef) -> CommandTracking:
    """The page after the last command has ended."""
    until(lambda: not target.tracking(collection).active, "the command does not end")
    return target.tracking(collection)


def test_copy(target: Target, zone: ObjectRef) -> None:
    value = AttributeValue(NUMBER.page, NUMBER.number, b"kept")
    source = target.create_and_write(zone.partition_id, b"bytes" * 1000, attributes=[value])
    other = target.create_partition()
    for method in (Duplication.DEFAULT, Duplication.BYTE_BY_BYTE, Duplication.DO_NOT_CARE):
        made = target.copy(source, other, method=method)
        assert made.partition_id == other
        assert bytes(target.read_range(made)) == b"bytes" * 1000
        assert target.get_attribute(made, *astuple(NUMBER)) == b"kept"
    bare = target.copy(source, zone.partition_id, 0x50000, with_attributes=False)
    assert bare == ref(zone.partition_id, 0x50000)
    assert target.get_attribute(bare, *astuple(NUMBER)) == b""
    with pytest.raises(NotFound):
        target.copy(ref(zone.partition_id, 0x7777777), zone.partition_id)


def test_map(target: Target, zone: ObjectRef, monkeypatch: pytest.MonkeyPatch) -> None:
    obj = target.create(zone.partition_id)
    for n in range(8):
        target.write(obj, n << 20, b"x" * 4096)
    whole = target.read_map(obj)
    assert [each.type for each in whole] == [MapType.WRITTEN, MapType.HOLE] * 7 + [MapType.WRITTEN]
    assert whole[0].start == 0 and whole[-1].end == (7 << 20) + 4096
    assert [each.end for each in whole[:-1]] == [each.start for each in whole[1:]]
    assert target.read_map(obj, 0, MapType.HOLE) == whole[1::2]
    monkeypatch.setattr("pyosd.commands.copy._EXTENTS_PER_MAP", 4)
    assert target.read_map(obj) == whole
    assert target.read_map(obj, most=3) == whole[:3]
    with pytest.raises(OSDError) as caught:
        target.read_map(obj, 1 << 40)
    assert caught.value.field_pointer == 40


def test_structure_check(target: Target, zone: ObjectRef, herd: list[ObjectRef]) -> None:
    assert target.object_structure_check(zone.partition_id) == 0
    assert target.object_structure_check() == 0
    with pytest.raises(NotFound):
        target.object_structure_check(PartitionId(0x7777777))
    assert target.list_objects(zone.partition_id) == herd


def test_words(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id)
    assert [target.fetch_and_add(obj, 5), target.fetch_and_add(obj, 1)] == [0, 5]
    assert [target.compare_and_swap(obj, 0, 7), target.compare_and_swap(obj, 0, 8)] == [0, 7]
    assert target.compare_and_swap(obj, 7, 9) == 7
    with pytest.raises(NotFound):
        target.fetch_and_add(ref(zone.partition_id, 0x7777777), 1)


def test_swap_attribute(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id)
    extra = [AttributeValue(*astuple(WORD), b"with it")]
    assert target.swap_attribute(obj, NUMBER, b"", b"first", extra) == b""
    assert target.get_attribute(obj, *astuple(WORD)) == b"with it"
    other = [AttributeValue(*astuple(WORD), b"not set")]
    assert target.swap_attribute(obj, NUMBER, b"wrong", b"second", other) == b"first"
    assert target.get_attribute(obj, *astuple(WORD)) == b"with it"
    long = bytes(range(256)) * 200
    assert target.swap_attribute(obj, NUMBER, b"first", long) == b"first"
    assert target.swap_attribute(obj, NUMBER, b"", b"x") == long
    assert target.swap_attribute(obj, NUMBER, long, b"") == long
    assert target.get_attribute(obj, *astuple(NUMBER)) == b""


def test_many_add_to_one_counter(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id)
    before: list[int] = []

    def add() -> None:
        before.extend(target.fetch_and_add(obj, 1) for _ in range(25))

    threads = [threading.Thread(target=add) for _ in range(4)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert sorted(before) == list(range(100))


ADDING = """
import osd
counter = osd.userobject(*osd.args)
print([counter.fetch_and_add(0x10000, 1) for _ in range(100)])
"""


def test_scripts_and_a_client_add_to_one_counter(target: Target, zone: ObjectRef) -> None:
    obj = target.create(zone.partition_id)
    jobs = [target.exec(ADDING, zone=zone, args=[*map(int, pair(obj))]) for _ in range(3)]
    mine: list[int] = []
    before = b""
    while len(mine) < 50:
        following = be(int.from_bytes(before) + 1)
        found = target.swap_attribute(obj, NUMBER, before, following)
        if found == before:
            mine.append(int.from_bytes(before))
            before = following
        else:
            before = found
    for job in jobs:
        assert job.wait(60).state.name == "COMPLETED", job.traceback()
        mine += json.loads(bytes(target.read(job.id, 0, 1 << 16)))
    assert sorted(mine) == list(range(350))


def pair(obj: ObjectRef) -> tuple[int, int]:
    return obj.partition_id, obj.object_id


def test_perform(target: Target) -> None:
    inquiry = bytes(target.perform_scsi_command(bytes.fromhex("12000000ff00"), b"", 255))
    assert inquiry[8:16] == target.inquiry()[8:16]
    assert bytes(target.perform_scsi_command(bytes(6))) == b""
    with pytest.raises(OSDError):
        target.perform_scsi_command(b"\x28" + bytes(9), b"", 512)
    assert target.perform_task_management(TaskManagement.QUERY_TASK, 0x7777).response in (0, 5)


def test_abort_of_a_command_that_waits(target: Target, zone: ObjectRef) -> None:
    forever = b"import time\nwhile True: time.sleep(60)"
    pending = target.submit(requests.execute(zone, forever, synchronous=True))
    until(lambda: target.jobs(zone.partition_id))
    assert target.abort(pending) in (TaskResponse.COMPLETE, TaskResponse.NO_TASK)
    assert isinstance(pending.reply().error, TaskAborted)
    (job,) = target.jobs(zone.partition_id)
    target.job(job.id).kill()


MANY = """
import osd
found = list(osd.query(osd.attr(0x10000, 3) == "found"))
ids = [u.object_id for u in found]
print(len(found), ids == sorted(ids))
"""


def test_a_long_query_is_many_calls(target: Target, zone: ObjectRef) -> None:
    target.create_many(zone.partition_id, 3000)
    everything = ref(zone.partition_id, OBJECTS_COLLECTION)
    target.set_member_attributes(everything, [AttributeValue(Page.APPLICATION, 3, b"found")])
    job = target.exec(MANY, zone=zone)
    status = job.wait(60)
    assert bytes(target.read(job.id, 0, 100)) == b"3000 True\n"
    assert 3000 / 1024 < status.calls < 100


def test_task_management(target: Target, osd_url: str, zone: ObjectRef) -> None:
    """The answer of a stock tgtd. The target continues in any case."""
    obj = target.create_and_write(zone.partition_id, b"data")
    pending = target.submit(requests.get_attributes(obj))
    assert pending.reply().error is None
    assert target.abort(pending) == TaskResponse.NO_TASK
    with connect(osd_url) as other:
        assert other.manage_tasks(TaskFunction.ABORT_TASK_SET) == TaskResponse.COMPLETE
        for unknown in (
            TaskFunction.CLEAR_TASK_SET,
            TaskFunction.TARGET_WARM_RESET,
            TaskFunction.TARGET_COLD_RESET,
        ):
            assert other.manage_tasks(unknown) == TaskResponse.NOT_SUPPORTED
        assert other.manage_tasks(TaskFunction.LOGICAL_UNIT_RESET) == TaskResponse.COMPLETE
        with pytest.raises(ValueError, match="needs the task"):
            other.manage_tasks(TaskFunction.ABORT_TASK)
    assert target.length(obj) == 4
    assert target.get_attribute(obj, *astuple(LOGICAL_LENGTH)) == be(4)


def test_example(osd_url: str) -> None:
    """examples/search.py does what it says."""
    script = Path(__file__).resolve().parents[2] / "examples/search.py"
    command = [sys.executable, str(script), osd_url]
    environment = dict(os.environ, PYTHONPATH=str(script.parents[1]))
    done = subprocess.run(
        command, env=environment, capture_output=True, text=True, timeout=60, check=False
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.splitlines() == [
        "1850-1859: Moby-Dick, Walden",
        "in novels before 1860: Some years ago - never mind how long.",
    ]
