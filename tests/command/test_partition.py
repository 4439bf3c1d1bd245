# SPDX-License-Identifier: GPL-2.0-or-later
"""CREATE PARTITION, REMOVE PARTITION and FORMAT OSD (osd2-wire 3.2)."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectType, PartitionId, ref
from pyosd.wire.attributes import CURRENT_PARTITION_ID, CURRENT_TYPE, Page
from pyosd.wire.cdb import AttributeLists, AttributePage
from tests.conftest import MakeHarness
from tests.expect import (
    CDB_FIELD,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    NOT_EMPTY,
    OK,
    PARTITION_TAKEN,
    check,
    mangled,
)

NAME = AttributeValue(Page.PARTITION_INFORMATION, 0x9, b"archive")


def test_target_picks_the_id(osd: Commands) -> None:
    first = osd.create_partition()
    second = osd.create_partition()
    assert first >= 0x10000
    assert second == first + 1
    for each in (first, second):
        osd.remove_partition(each)


def test_requested_id(osd: Commands) -> None:
    assert osd.create_partition(0x7123_4567_89AB) == 0x7123_4567_89AB
    assert osd.list_page(ROOT, 0x7123_4567_89AB, 1).ids == (0x7123_4567_89AB,)
    osd.remove_partition(PartitionId(0x7123_4567_89AB))


def test_ids_of_removed_partitions_are_not_given_again(osd: Commands) -> None:
    first = osd.create_partition()
    osd.remove_partition(first)
    second = osd.create_partition()
    assert second > first
    osd.remove_partition(second)


def test_duplicate_id(osd: Commands, pid: int) -> None:
    reply = check(osd.reply(rq.create_partition(pid)), PARTITION_TAKEN)
    assert reply.sense is not None
    assert reply.sense.named_object == ref(pid)


@pytest.mark.parametrize("requested", [1, 0x1000, 0xFFFF])
def test_function_partition(osd: Commands, requested: int) -> None:
    """These ids are requested, never chosen (docs/functions.md)."""
    assert osd.create_partition(requested) == requested
    check(osd.reply(rq.create_partition(requested)), PARTITION_TAKEN)
    chosen = osd.create_partition()
    assert chosen >= 0x10000
    osd.remove_partition(chosen)
    osd.remove_partition(PartitionId(requested))
    check(osd.reply(rq.remove_partition(requested)), NO_PARTITION)


def test_attributes_set_with_the_creation(osd: Commands) -> None:
    lists = AttributeLists((NAME.id, CURRENT_PARTITION_ID, CURRENT_TYPE), (NAME,))
    reply = check(osd.reply(rq.create_partition(attributes=lists)), OK)
    pid = reply.attribute(CURRENT_PARTITION_ID).uint
    assert reply.attribute(NAME.id) == NAME
    assert reply.attribute(CURRENT_TYPE).uint == ObjectType.PARTITION
    osd.remove_partition(PartitionId(pid))


def test_failed_attribute_leaves_no_partition(osd: Commands) -> None:
    before = osd.list_partitions()
    bad = AttributeValue(Page.PARTITION_INFORMATION, 0x1, bytes(8))
    reply = osd.reply(rq.create_partition(attributes=AttributeLists((), (NAME, bad))))
    check(reply, LIST_FIELD, bad.id)
    assert osd.list_partitions() == before


def test_page_format(osd: Commands) -> None:
    request = rq.create_partition(attributes=AttributePage(Page.CURRENT_COMMAND, 76, NAME))
    page = check(osd.reply(request), OK).page
    assert page is not None
    assert page.length == 0x44
    pid = int.from_bytes(page.body[36:44], "big")
    assert osd.get_attribute(ref(pid), NAME.page, NAME.number) == b"archive"
    osd.remove_partition(PartitionId(pid))


def test_remove_absent(osd: Commands) -> None:
    check(osd.reply(rq.remove_partition(0x7777_0000_0000)), NO_PARTITION)


@pytest.mark.parametrize("partition_id", [0, 1, 0xFFFF])
def test_remove_root_or_absent(osd: Commands, partition_id: int) -> None:
    check(osd.reply(rq.remove_partition(partition_id)), NO_PARTITION)


@pytest.mark.parametrize("what", ["user object", "collection"])
def test_remove_not_empty(osd: Commands, pid: PartitionId, what: str) -> None:
    inside = osd.create(pid) if what == "user object" else osd.create_collection(pid)
    check(osd.reply(rq.remove_partition(pid)), NOT_EMPTY)
    assert osd.get_attribute(inside, CURRENT_TYPE.page, CURRENT_TYPE.number)


def test_remove_with_contents(osd: Commands, pid: PartitionId) -> None:
    members = osd.create_many(pid, 20)
    osd.write(members[3], 0, b"x" * 100_000)
    osd.create_collection(pid)
    osd.remove_partition(pid, contents=True)
    assert pid not in osd.list_partitions()
    check(osd.reply(rq.read(members[3], 0, 1)), NO_PARTITION)
    check(osd.reply(rq.list_objects(pid)), NO_PARTITION)


def test_same_id_after_removal_is_another_partition(osd: Commands, pid: PartitionId) -> None:
    obj = osd.create(pid, 0x10000)
    osd.write(obj, 0, b"old")
    osd.set_attributes(obj, [AttributeValue(Page.APPLICATION, 1, b"old")])
    osd.remove_partition(pid, contents=True)
    assert osd.create_partition(pid) == pid
    check(osd.reply(rq.read(obj, 0, 1)), NO_OBJECT)
    osd.create(pid, 0x10000)
    assert bytes(osd.read(obj, 0, 10)) == b""
    assert osd.get_attribute(obj, Page.APPLICATION, 1) == b""


@pytest.mark.parametrize("scope", [2, 3, 7])
def test_remove_with_reserved_scope(osd: Commands, pid: int, scope: int) -> None:
    reply = mangled(osd, rq.remove_partition(pid), {11: bytes([0x30 | scope])})
    check(reply, CDB_FIELD.at(11))
    assert pid in osd.list_partitions()


def test_attributes_are_processed_before_the_removal(osd: Commands, pid: int) -> None:
    """Set, get, then the command (osd2-wire 3.7): the answer is the partition's last words."""
    lists = AttributeLists((NAME.id, AttributeId(Page.PARTITION_INFORMATION, 0xC1)), (NAME,))
    reply = check(osd.reply(rq.remove_partition(pid, attributes=lists)), OK)
    assert reply.attributes[0] == NAME
    assert reply.attributes[1].uint == 0
    assert pid not in osd.list_partitions()


def test_refused_removal_undoes_its_attributes(osd: Commands, pid: PartitionId) -> None:
    osd.create(pid)
    lists = AttributeLists((), (NAME,))
    check(osd.reply(rq.remove_partition(pid, attributes=lists)), NOT_EMPTY)
    assert osd.get_attribute(ref(pid), NAME.page, NAME.number) == b""


@pytest.mark.parametrize("memory", [0, 1])
def test_format_destroys_everything(make_harness: MakeHarness, memory: int) -> None:
    harness = make_harness(memory=1) if memory else make_harness()
    osd = harness.osd
    pids = [osd.create_partition() for _ in range(3)]
    for pid in pids:
        osd.write(osd.create(pid), 0, b"gone" * 1000)
    osd.format_osd(name="fresh")
    assert osd.list_partitions() == []
    assert osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0x9).rstrip(b"\0") == b"fresh"
    check(osd.reply(rq.list_objects(pids[0])), NO_PARTITION)
    pid = osd.create_partition(pids[0])
    assert osd.list_objects(pid) == []
    if not memory:
        harness.restart()
        assert harness.osd.list_partitions() == [pid]


def test_format_to_a_capacity(make_harness: MakeHarness) -> None:
    osd = make_harness(memory=1).osd
    osd.format_osd(64 << 20)
    capacity = osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0x80)
    assert int.from_bytes(capacity, "big") == 64 << 20


def test_format_with_more_than_there_is(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.format_osd((1 << 64) - 1)), CDB_FIELD.at(32))
    assert pid in osd.list_partitions()


@pytest.mark.parametrize("get", [False, True])
def test_a_refused_attribute_stops_format_before_it_begins(
    osd: Commands, pid: int, get: bool
) -> None:
    """A read-only attribute among those to set, or one of another object among those to get."""
    capacity = AttributeValue(Page.ROOT_INFORMATION, 0x80, bytes(8))
    lists = AttributeLists((), (AttributeValue(Page.ROOT_INFORMATION, 0x9, b"x"), capacity))
    bad = capacity.id
    if get:
        bad = AttributeId(Page.PARTITION_INFORMATION, 1)
        lists = AttributeLists((bad,), (), 64)
    name = osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0x9)
    check(osd.reply(rq.format_osd(attributes=lists)), LIST_FIELD, bad)
    assert pid in osd.list_partitions()
    assert osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0x9) == name


def test_format_forgets_what_the_root_was_set_to(make_harness: MakeHarness) -> None:
    osd = make_harness(memory=1).osd
    isolation = AttributeValue(Page.ROOT_INFORMATION, 0x110, b"\x01")
    osd.set_attributes(
        ROOT,
        [
            AttributeValue(Page.ROOT_INFORMATION, 0x9, b"old name"),
            isolation,
            AttributeValue(Page.ROOT_TIMESTAMPS, 0xFFFF_FFFE, b"\x7f"),
        ],
    )
    lists = AttributeLists((isolation.id,), (AttributeValue(0x9001_0000, 1, b"new"),), 256)
    reply = check(osd.reply(rq.format_osd(attributes=lists)), OK)
    assert reply.attribute(isolation.id).value == b"\x04"
    assert osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0x9) == b""
    assert osd.get_attribute(ROOT, Page.ROOT_TIMESTAMPS, 0xFFFF_FFFE) == b"\0"
    assert osd.get_attribute(ROOT, 0x9001_0000, 1) == b"new"
