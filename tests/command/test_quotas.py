# SPDX-License-Identifier: GPL-2.0-or-later
"""Quotas: what refuses which growth, who inherits them, what lowering one does (osd2-wire 5.12)."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from tests.conftest import MakeHarness
from tests.expect import OK, QUOTA, check

NO_LIMIT = (1 << 64) - 1
LENGTH, CAPACITY, COUNT, COLLECTIONS, PARTITIONS = 0x1, 0x1_0001, 0x1_0002, 0x1_0081, 0x2_0002


def quota(osd: Commands, where: ObjectRef, page: int, number: int, limit: int, width: int) -> None:
    osd.set_attributes(where, [AttributeValue(page, number, limit.to_bytes(width, "big"))])


def test_quota_pages_have_their_forms(osd: Commands, obj: ObjectRef) -> None:
    assert osd.get_page(ROOT, Page.ROOT_QUOTAS).length == 0x24
    assert osd.get_page(ref(obj.partition_id), Page.PARTITION_QUOTAS).length == 0x1C
    assert osd.get_page(obj, Page.USER_QUOTAS).length == 8


def test_object_length_quota(osd: Commands, obj: ObjectRef) -> None:
    quota(osd, obj, Page.USER_QUOTAS, 1, 1000, 8)
    osd.write(obj, 0, b"x" * 1000)
    for request in (
        rq.write(obj, 999, b"xy"),
        rq.append(obj, b"y"),
        rq.clear(obj, 1000, 1),
        rq.write(obj, 1 << 30, b"y"),
    ):
        check(osd.reply(request), QUOTA)
    assert bytes(osd.read(obj, 0, 2000)) == b"x" * 1000


def test_object_count_quota(osd: Commands, pid: PartitionId) -> None:
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, COUNT, 3, 8)
    osd.create_many(pid, 3)
    check(osd.reply(rq.create(pid)), QUOTA)
    check(osd.reply(rq.create_and_write(pid, 0, 0, b"x")), QUOTA)
    osd.remove(ref(pid, 0x10000))
    check(osd.reply(rq.create(pid, 0, 2)), QUOTA)
    osd.create(pid)


def test_partition_capacity_quota(osd: Commands, pid: PartitionId, obj: ObjectRef) -> None:
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, CAPACITY, 4 << 20, 8)
    osd.write(obj, 0, b"x" * (1 << 20))
    check(osd.reply(rq.write(obj, 1 << 20, b"x" * (8 << 20))), QUOTA)
    assert bytes(osd.read(obj, (1 << 20) - 1, 10)) == b"x"
    osd.remove(obj)
    osd.write(osd.create(pid), 0, b"x" * (2 << 20))


def charged(osd: Commands, pid: int) -> tuple[int, int, int]:
    """Used capacity, what is charged for attributes, and all charged bytes."""
    wanted = [AttributeId(Page.PARTITION_INFORMATION, 0x81)]
    wanted += [AttributeId(Page.CHARGED, number) for number in (2, 1)]
    used, attributes, total = (each.uint for each in osd.get_attributes(ref(pid), wanted))
    return used, attributes, total


def an_attribute(size: int, number: int = 1, page: int = Page.APPLICATION) -> AttributeValue:
    return AttributeValue(page, number, b"a" * size)


def attribute(
    where: ObjectRef, size: int, number: int = 1, page: int = Page.APPLICATION
) -> Request:
    lists = AttributeLists((), (an_attribute(size, number, page),))
    return rq.set_attributes(where, attributes=lists)


def test_attributes_count_against_the_capacity(osd: Commands, pid: int, obj: ObjectRef) -> None:
    """Each as its value and 64 bytes, in units of 16; the used capacity is still that of data."""
    before = charged(osd, pid)[1]
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, CAPACITY, before + 100_000, 8)
    osd.write(obj, 0, b"x" * 1000)
    check(osd.reply(attribute(obj, 60_000)), OK)
    assert charged(osd, pid) == (1000, before + 60_064, before + 61_064)
    for request in (
        attribute(obj, 60_000, 2),
        attribute(ref(pid), 60_000, 1, 0x3001_0000),
        rq.write(obj, 0, b"x" * 50_000),
        rq.create(pid, 0, attributes=AttributeLists((), (an_attribute(60_000),))),
    ):
        check(osd.reply(request), QUOTA)
        assert charged(osd, pid) == (1000, before + 60_064, before + 61_064)
    check(osd.reply(attribute(obj, 59_000)), OK)
    check(osd.reply(attribute(obj, 65_534)), OK)
    check(osd.reply(attribute(obj, 0)), OK)
    assert charged(osd, pid) == (1000, before, before + 1000)
    for number in range(10):
        check(osd.reply(attribute(obj, 1, number + 1)), OK)
    assert charged(osd, pid)[1] == before + 10 * 80
    osd.remove(obj)
    assert charged(osd, pid) == (0, before, before)


def test_one_list_may_replace_what_it_frees(osd: Commands, pid: int, obj: ObjectRef) -> None:
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, CAPACITY, 60_064, 8)
    check(osd.reply(attribute(obj, 60_000)), OK)
    both = (an_attribute(0, 1), an_attribute(60_000, 2))
    check(osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), both))), OK)
    check(osd.reply(attribute(obj, 60_000, 3)), QUOTA)
    refused = AttributeLists((), (an_attribute(0, 2), an_attribute(9, 1, 0x4000)))
    assert osd.reply(rq.set_attributes(obj, attributes=refused)).error
    assert charged(osd, pid)[1] == 60_064


def test_new_and_old_attributes_in_one_list(osd: Commands, pid: int, obj: ObjectRef) -> None:
    before = charged(osd, pid)[1]
    sizes = ((1, 10), (2, 20), (1, 1000), (3, 30), (2, 2000))
    both = AttributeLists((), tuple(an_attribute(size, number) for number, size in sizes))
    check(osd.reply(rq.set_attributes(obj, attributes=both)), OK)
    assert charged(osd, pid)[1] == before + 1072 + 2064 + 96
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, CAPACITY, 1072 + 2064 + 96, 8)
    one_too_many = AttributeLists((), (an_attribute(10, 3), an_attribute(1, 4)))
    check(osd.reply(rq.set_attributes(obj, attributes=one_too_many)), QUOTA)
    assert osd.get_attribute(obj, Page.APPLICATION, 3) == an_attribute(30).value
    assert not osd.get_attribute(obj, Page.APPLICATION, 4)
    assert charged(osd, pid)[1] == before + 1072 + 2064 + 96


def test_attributes_of_a_collection_and_of_a_copy_count(osd: Commands, pid: PartitionId) -> None:
    collection, obj = osd.create_collection(pid), osd.create(pid)
    before = charged(osd, pid)[1]
    check(osd.reply(attribute(collection, 1000, 1, 0x6001_0000)), OK)
    check(osd.reply(attribute(obj, 2000)), OK)
    assert charged(osd, pid)[1] == before + 1072 + 2064
    copy = osd.reply(rq.copy_user_object(obj, pid))
    check(copy, OK)
    assert charged(osd, pid)[1] == before + 1072 + 2 * 2064
    osd.remove_collection(collection)
    assert charged(osd, pid)[1] == before + 2 * 2064


def test_attributes_of_the_store_count(make_harness: MakeHarness) -> None:
    osd = make_harness().osd
    osd.format_osd(8 << 20)
    obj = osd.create(osd.create_partition())
    for number in range(1, 120):
        check(osd.reply(attribute(obj, 65_000, number)), OK)
    for number in range(120, 140):
        reply = osd.reply(attribute(obj, 65_000, number))
    check(reply, QUOTA)
    osd.format_osd(8 << 20)
    obj = osd.create(osd.create_partition())
    osd.write(obj, 0, b"x" * (6 << 20))


def test_new_objects_inherit_the_quota(osd: Commands, pid: PartitionId) -> None:
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, 1, 100, 8)
    obj = osd.create(pid)
    assert osd.get_attribute(obj, Page.USER_QUOTAS, 1) == (100).to_bytes(8, "big")
    check(osd.reply(rq.write(obj, 100, b"x")), QUOTA)


def test_collections_per_object_quota(osd: Commands, pid: PartitionId, obj: ObjectRef) -> None:
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, COLLECTIONS, 1, 4)
    one, two = osd.create_collection(pid), osd.create_collection(pid)
    osd.set_attributes(obj, [AttributeValue(4, 1, one.object_id.to_bytes(8, "big"))])
    second = AttributeValue(4, 2, two.object_id.to_bytes(8, "big"))
    reply = osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), (second,))))
    check(reply, QUOTA)
    assert osd.list_members(two) == []


def test_capacity_of_the_whole_store(make_harness: MakeHarness) -> None:
    osd = make_harness().osd
    osd.format_osd(8 << 20)
    obj = osd.create(osd.create_partition())
    check(osd.reply(rq.write(obj, 0, b"x" * (16 << 20))), QUOTA)
    osd.write(obj, 0, b"x" * (1 << 20))
    assert bytes(osd.read(obj, 0, 10)) == b"x" * 10


def length_of(osd: Commands, obj: ObjectRef) -> int:
    return int.from_bytes(osd.get_attribute(obj, Page.USER_INFORMATION, 0x82), "big")


def set_length(osd: Commands, obj: ObjectRef, length: int) -> Request:
    value = AttributeValue(Page.USER_INFORMATION, 0x82, length.to_bytes(8, "big"))
    return rq.set_attributes(obj, attributes=AttributeLists((), (value,)))


def test_lowered_below_the_length_refuses_growth_only(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"x" * 1000)
    quota(osd, obj, Page.USER_QUOTAS, LENGTH, 500, 8)
    osd.write(obj, 0, b"y" * 1000)
    osd.clear(obj, 900, 100)
    for request in (
        rq.write(obj, 999, b"xy"),
        rq.append(obj, b"z"),
        rq.clear(obj, 1000, 1),
        set_length(osd, obj, 1001),
    ):
        check(osd.reply(request), QUOTA)
        assert length_of(osd, obj) == 1000
    check(osd.reply(set_length(osd, obj, 900)), OK)
    osd.punch(obj, 0, 100)
    assert length_of(osd, obj) == 800
    check(osd.reply(set_length(osd, obj, 801)), QUOTA)


def test_capacity_lowered_below_what_is_used(
    osd: Commands, pid: PartitionId, obj: ObjectRef
) -> None:
    osd.write(obj, 0, b"x" * 1000)
    other = osd.create(pid)
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, CAPACITY, 10, 8)
    osd.write(obj, 0, b"y" * 1000)
    check(osd.reply(rq.append(obj, b"z")), QUOTA)
    check(osd.reply(rq.write(other, 0, b"z")), QUOTA)
    check(osd.reply(rq.clear(other, 0, 1)), QUOTA)
    check(osd.reply(set_length(osd, other, 1)), QUOTA)
    check(osd.reply(rq.create_and_write(pid, 0, 0, b"z")), QUOTA)
    assert osd.list_objects(pid) == [obj, other]
    osd.create(pid)
    check(osd.reply(set_length(osd, obj, 5)), OK)
    osd.write(other, 0, b"12345")
    check(osd.reply(rq.append(other, b"6")), QUOTA)


def test_count_lowered_below_what_is_there(osd: Commands, pid: PartitionId) -> None:
    made = osd.create_many(pid, 3)
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, COUNT, 1, 8)
    check(osd.reply(rq.create(pid)), QUOTA)
    check(osd.reply(rq.create_collection(pid)), QUOTA)
    osd.write(made[0], 0, b"x")
    osd.remove(made[0])
    osd.remove(made[1])
    check(osd.reply(rq.create(pid)), QUOTA)
    osd.remove(made[2])
    osd.create_collection(pid)
    check(osd.reply(rq.create(pid)), QUOTA)


def test_collections_lowered_below_what_is_joined(
    osd: Commands, pid: PartitionId, obj: ObjectRef
) -> None:
    cids = [osd.create_collection(pid) for _ in range(3)]

    def join(number: int, cid: ObjectRef | None) -> Request:
        value = cid.object_id.to_bytes(8, "big") if cid else b""
        lists = AttributeLists((), (AttributeValue(4, number, value),))
        return rq.set_attributes(obj, attributes=lists)

    check(osd.reply(join(1, cids[0])), OK)
    check(osd.reply(join(2, cids[1])), OK)
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, COLLECTIONS, 1, 4)
    check(osd.reply(join(3, cids[2])), QUOTA)
    check(osd.reply(join(2, cids[2])), OK)
    check(osd.reply(join(2, None)), OK)
    check(osd.reply(join(3, cids[1])), QUOTA)
    check(osd.reply(join(1, None)), OK)
    check(osd.reply(join(3, cids[1])), OK)


@pytest.mark.parametrize(
    ("number", "width"), [(LENGTH, 8), (CAPACITY, 8), (COUNT, 8), (COLLECTIONS, 4)]
)
def test_partitions_inherit_from_the_root(osd: Commands, number: int, width: int) -> None:
    """Later ones do; those that are there keep what they have."""
    before = osd.get_attribute(ROOT, Page.ROOT_QUOTAS, number)
    old = osd.create_partition()
    had = osd.get_attribute(ref(old), Page.PARTITION_QUOTAS, number)
    try:
        quota(osd, ROOT, Page.ROOT_QUOTAS, number, 77, width)
        new = osd.create_partition()
        assert osd.get_attribute(ref(old), Page.PARTITION_QUOTAS, number) == had
        inherited = osd.get_attribute(ref(new), Page.PARTITION_QUOTAS, number)
        assert inherited == (77).to_bytes(width, "big")
        osd.remove_partition(new)
    finally:
        osd.set_attributes(ROOT, [AttributeValue(Page.ROOT_QUOTAS, number, before)])
    osd.remove_partition(old)


def test_objects_keep_their_own(osd: Commands, pid: PartitionId) -> None:
    """Of a partition's changed default, the objects made before know nothing."""
    old = osd.create(pid)
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, LENGTH, 10, 8)
    osd.write(old, 0, b"x" * 100)
    check(osd.reply(rq.write(osd.create(pid), 0, b"x" * 11)), QUOTA)
    quota(osd, ref(pid), Page.PARTITION_QUOTAS, LENGTH, NO_LIMIT, 8)


def test_partition_count(make_harness: MakeHarness) -> None:
    osd = make_harness(memory=1).osd
    pids = [osd.create_partition() for _ in range(2)]
    quota(osd, ROOT, Page.ROOT_QUOTAS, PARTITIONS, 2, 8)
    check(osd.reply(rq.create_partition()), QUOTA)
    check(osd.reply(rq.create_partition(0x7777_0000)), QUOTA)
    osd.remove_partition(pids[0])
    osd.create_partition()
    check(osd.reply(rq.create_partition()), QUOTA)
    count = osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0xC0)
    assert count == (2).to_bytes(8, "big")
    quota(osd, ROOT, Page.ROOT_QUOTAS, PARTITIONS, 1, 8)
    check(osd.reply(rq.create_partition()), QUOTA)
    osd.format_osd()
    assert osd.get_attribute(ROOT, Page.ROOT_QUOTAS, PARTITIONS) == NO_LIMIT.to_bytes(8, "big")


def test_partitions_requested_twice_do_not_count_twice(make_harness: MakeHarness) -> None:
    osd = make_harness(memory=1).osd
    osd.create_partition(0x10000)
    for _ in range(3):
        assert osd.reply(rq.create_partition(0x10000)).error
    assert osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0xC0) == (1).to_bytes(8, "big")


def test_quota_set_with_the_creation(osd: Commands, pid: PartitionId) -> None:
    """A list in order: the quota first, then a length it does not allow, and nothing is made."""

    def lists(limit: int, length: int) -> AttributeLists:
        values = (
            AttributeValue(Page.USER_QUOTAS, LENGTH, limit.to_bytes(8, "big")),
            AttributeValue(Page.USER_INFORMATION, 0x82, length.to_bytes(8, "big")),
        )
        return AttributeLists((), values)

    check(osd.reply(rq.create(pid, attributes=lists(10, 11))), QUOTA)
    assert osd.list_objects(pid) == []
    check(osd.reply(rq.create(pid, attributes=lists(10, 10))), OK)
    [obj] = osd.list_objects(pid)
    assert length_of(osd, obj) == 10


def test_exofs_reads_the_capacity_of_an_unlimited_partition(osd: Commands, pid: int) -> None:
    """osd2-wire 5.11: statfs divides by it."""
    total = osd.get_attribute(ROOT, Page.ROOT_INFORMATION, 0x80)
    assert osd.get_attribute(ref(pid), Page.PARTITION_QUOTAS, CAPACITY) == total
