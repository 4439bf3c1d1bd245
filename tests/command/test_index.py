# SPDX-License-Identifier: GPL-2.0-or-later
"""Partition page 5000_0001h: which pages the value index covers (docs/attributes.md)."""

from __future__ import annotations

from random import Random

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.reply import Reply
from tests.expect import LIST_FIELD, OK, check
from tests.waiting import until

INDEX = Page.INDEX
BUILDING, READY = b"\1", b"\2"
PAGE = Page.APPLICATION
SECONDS = 20.0


def declare(osd: Commands, pid: PartitionId, page: int, value: bytes = BUILDING) -> Reply:
    lists = AttributeLists((), (AttributeValue(INDEX, page, value),))
    return osd.reply(rq.set_attributes(ref(pid), attributes=lists))


def state(osd: Commands, pid: PartitionId, page: int) -> bytes:
    return osd.get_attribute(ref(pid), INDEX, page)


def wait_until_ready(osd: Commands, pid: PartitionId, page: int) -> None:
    """Poll as a client does."""
    until(lambda: state(osd, pid, page) != BUILDING, "the index never became ready", pause=0.002)
    assert state(osd, pid, page) == READY


def test_nothing_is_declared_at_first(osd: Commands, pid: PartitionId) -> None:
    assert state(osd, pid, PAGE) == b""


def test_declare_and_drop(osd: Commands, pid: PartitionId, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [AttributeValue(PAGE, 1, b"green")])
    check(declare(osd, pid, PAGE), OK)
    wait_until_ready(osd, pid, PAGE)
    check(declare(osd, pid, PAGE), OK)
    assert state(osd, pid, PAGE) == READY, "declaring again changes nothing"
    check(declare(osd, pid, PAGE, b""), OK)
    assert state(osd, pid, PAGE) == b""


def test_user_names_can_be_indexed(osd: Commands, pid: PartitionId) -> None:
    check(declare(osd, pid, Page.USER_INFORMATION), OK)
    wait_until_ready(osd, pid, Page.USER_INFORMATION)


@pytest.mark.parametrize("page", [Page.USER_TIMESTAMPS, 0x80, 0x7FFF, 0x2000_0001, 0x3000_0000])
def test_pages_without_stored_values(osd: Commands, pid: PartitionId, page: int) -> None:
    check(declare(osd, pid, page), LIST_FIELD, AttributeValue(INDEX, page, b"").id)


@pytest.mark.parametrize("value", [b"\0", b"\2", b"\3", b"\1\1"])
def test_other_values(osd: Commands, pid: PartitionId, value: bytes) -> None:
    check(declare(osd, pid, PAGE, value), LIST_FIELD)


def test_pages_of_two_partitions_differ(osd: Commands, pid: PartitionId) -> None:
    other = osd.create_partition()
    check(declare(osd, pid, PAGE), OK)
    assert state(osd, other, PAGE) == b""
    osd.remove_partition(other)


def test_the_page_is_listed(osd: Commands, pid: PartitionId) -> None:
    check(declare(osd, pid, PAGE), OK)
    name = osd.get_attribute(ref(pid), Page.PARTITION_DIRECTORY, INDEX)
    assert name[8:].rstrip(b"\0") == b"Attribute Value Index"
    values = osd.get_attributes(ref(pid), [AttributeValue(INDEX, 0xFFFF_FFFF, b"").id])
    assert [each.number for each in values] == [PAGE]


# ---- what QUERY answers ----

NUMBERS = (1, 2)


def value(random: Random) -> bytes:
    """Few different bytes, and lengths about the 64 that the index keeps."""
    length = random.choice([1, 2, 3, 63, 64, 65, 100])
    tail = bytes(random.choices(b"\0\1\xff", k=min(length, 3)))
    return (b"\0" if random.random() < 0.5 else b"a") * (length - len(tail)) + tail


Objects = dict[ObjectRef, dict[int, bytes]]


def matches(values: dict[int, bytes], criteria: list[rq.Criterion], match_all: bool) -> bool:
    """The rule of osd2-wire 3.9."""
    fits = [
        bool(values.get(each.number))
        and (not each.minimum or values[each.number] >= each.minimum)
        and (not each.maximum or values[each.number] <= each.maximum)
        for each in criteria
    ]
    return all(fits) if match_all else any(fits)


def check_queries(osd: Commands, pid: PartitionId, objects: Objects, random: Random) -> None:
    everything = ref(pid)
    for _ in range(12):
        criteria = [
            rq.Criterion(PAGE, random.choice(NUMBERS), value(random), random.choice([b"", b"b"]))
            for _ in range(random.choice([1, 1, 2, 3]))
        ]
        for match_all in (True, False):
            expected = [
                each
                for each in sorted(objects, key=lambda obj: obj.object_id)
                if matches(objects[each], criteria, match_all)
            ]
            assert osd.query(everything, criteria, match_all) == expected


def fill(osd: Commands, pid: PartitionId, random: Random) -> Objects:
    objects: Objects = {}
    for each in osd.create_many(pid, 40):
        objects[each] = {number: value(random) for number in NUMBERS}
        osd.set_attributes(each, [AttributeValue(PAGE, n, v) for n, v in objects[each].items()])
    return objects


def test_queries_answer_the_same_at_every_stage(osd: Commands, pid: PartitionId, seed: int) -> None:
    random = Random(seed)
    objects = fill(osd, pid, random)
    check_queries(osd, pid, objects, random)
    check(declare(osd, pid, PAGE), OK)
    check_queries(osd, pid, objects, random)
    wait_until_ready(osd, pid, PAGE)
    check_queries(osd, pid, objects, random)
    for each in list(objects)[::3]:
        objects[each][1] = value(random)
        osd.set_attributes(each, [AttributeValue(PAGE, 1, objects[each][1])])
    for each in list(objects)[::5]:
        osd.remove(each)
        del objects[each]
    for each in list(objects)[::7]:
        objects[each].pop(2)
        osd.set_attributes(each, [AttributeValue(PAGE, 2, b"")])
    check_queries(osd, pid, objects, random)
    check(declare(osd, pid, PAGE, b""), OK)
    check_queries(osd, pid, objects, random)


def green(minimum: bytes = b"green", maximum: bytes = b"green") -> list[rq.Criterion]:
    return [rq.Criterion(PAGE, 1, minimum, maximum)]


@pytest.fixture
def indexed(osd: Commands, pid: PartitionId) -> int:
    """A partition with an index of PAGE."""
    check(declare(osd, pid, PAGE), OK)
    wait_until_ready(osd, pid, PAGE)
    return pid


COLOUR = AttributeValue(PAGE, 1, b"green")


def test_attributes_set_with_other_commands(osd: Commands, indexed: PartitionId) -> None:
    made = osd.create_many(indexed, 3, attributes=[COLOUR])
    made.append(osd.create_and_write(indexed, b"data", attributes=[COLOUR]))
    made.append(osd.copy(made[0], indexed))
    assert osd.query(ref(indexed), green()) == made
    collection = osd.create_collection(indexed)
    everything = ref(indexed, 0x1000)
    osd.set_member_attributes(everything, [AttributeValue(PAGE, 1, b"grey")])
    assert osd.query(everything, green()) == []
    assert osd.query(everything, green(b"grey", b"grey")) == made
    assert osd.query(collection, green(b"grey", b"grey")) == []


def test_members_of_a_collection(osd: Commands, indexed: PartitionId) -> None:
    collection = osd.create_collection(indexed)
    join = AttributeValue(Page.USER_COLLECTIONS, 1, collection.object_id.to_bytes(8, "big"))
    members = osd.create_many(indexed, 3, attributes=[join, COLOUR])
    others = osd.create_many(indexed, 3, attributes=[COLOUR])
    assert osd.query(collection, green()) == members
    assert osd.query(ref(indexed), green()) == members + others


def test_failed_command_leaves_no_entry(osd: Commands, indexed: PartitionId) -> None:
    obj = osd.create(indexed)
    bad = AttributeValue(Page.USER_INFORMATION, 1, bytes(8))
    reply = osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), (COLOUR, bad))))
    check(reply, LIST_FIELD)
    assert osd.query(ref(indexed), green()) == []


def test_removed_partition_takes_its_index_along(osd: Commands) -> None:
    pid = osd.create_partition()
    check(declare(osd, pid, PAGE), OK)
    osd.create(pid, attributes=[COLOUR])
    osd.remove_partition(pid, contents=True)
    assert osd.create_partition(pid) == pid
    assert state(osd, pid, PAGE) == b""
    assert osd.query(ref(pid), green()) == []
    osd.remove_partition(pid)
