# SPDX-License-Identifier: GPL-2.0-or-later
"""Data and attributes of one command change together, or neither does."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import CURRENT_APPEND_START, LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, Attributes, Request, SetOne
from tests.expect import CDB_FIELD, LIST_FIELD, NO_OBJECT, OK, QUOTA, check

OLD = bytes(range(256)) * 40
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
READ_ONLY = AttributeValue(1, 0x81, bytes(8))
FOREIGN = AttributeId(0x3000_0001, 0x81)
"""A partition's page: a user object has none of it."""
CAPACITY_CHANGE = AttributeId(Page.CURRENT_COMMAND, 6)
MAX_LENGTH = (2, 1)

Make = Callable[[ObjectRef, Attributes], Request]

CHANGES: dict[str, Make] = {
    "write": lambda obj, lists: rq.write(obj, 100, b"new" * 20_000, attributes=lists),
    "write inside": lambda obj, lists: rq.write(obj, 100, b"new", attributes=lists),
    "append": lambda obj, lists: rq.append(obj, b"new", attributes=lists),
    "clear": lambda obj, lists: rq.clear(obj, 100, 20_000, attributes=lists),
    "punch": lambda obj, lists: rq.punch(obj, 100, 5_000, attributes=lists),
    "punch to the end": lambda obj, lists: rq.punch(obj, 100, 1 << 40, attributes=lists),
    "pieces": lambda obj, lists: rq.write_pieces(
        obj, [(0, 3), (50_000, 3)], b"abcdef", attributes=lists
    ),
}
every_change = pytest.mark.parametrize("make", CHANGES.values(), ids=CHANGES)


def attribute(osd: Commands, obj: ObjectRef, which: AttributeId) -> bytes:
    return osd.get_attribute(obj, which.page, which.number)


def length_of(osd: Commands, obj: ObjectRef) -> int:
    return int.from_bytes(attribute(osd, obj, LOGICAL_LENGTH), "big")


def used(osd: Commands, pid: int) -> int:
    return int.from_bytes(osd.get_attribute(ref(pid), 0x3000_0001, 0x81), "big")


def unchanged(osd: Commands, obj: ObjectRef) -> None:
    """As `OLD` was written, with nothing set."""
    assert length_of(osd, obj) == len(OLD)
    assert bytes(osd.read(obj, 0, len(OLD))) == OLD
    assert attribute(osd, obj, COLOUR.id) == b""
    assert used(osd, obj.partition_id) == len(OLD)
    osd.write(obj, 60_000, b"x")
    assert bytes(osd.read(obj, len(OLD), 60_000 - len(OLD))) == bytes(60_000 - len(OLD))


@every_change
def test_refused_set_attribute(osd: Commands, obj: ObjectRef, make: Make) -> None:
    osd.write(obj, 0, OLD)
    lists = AttributeLists((), (COLOUR, READ_ONLY))
    check(osd.reply(make(obj, lists)), LIST_FIELD, attribute=READ_ONLY.id)
    unchanged(osd, obj)


@every_change
def test_refused_get_attribute(osd: Commands, obj: ObjectRef, make: Make) -> None:
    osd.write(obj, 0, OLD)
    check(osd.reply(make(obj, AttributeLists((FOREIGN,)))), LIST_FIELD, attribute=FOREIGN)
    check(osd.reply(make(obj, AttributeLists((FOREIGN,), (COLOUR,)))), LIST_FIELD)
    unchanged(osd, obj)


@every_change
def test_refused_in_the_cdb(osd: Commands, obj: ObjectRef, make: Make) -> None:
    osd.write(obj, 0, OLD)
    check(osd.reply(make(obj, SetOne(READ_ONLY))), CDB_FIELD.at(52))
    unchanged(osd, obj)


@every_change
def test_both(osd: Commands, obj: ObjectRef, make: Make) -> None:
    """The attributes got are those after the change, as without a set list."""
    other = osd.create(obj.partition_id)
    gets = (LOGICAL_LENGTH, CAPACITY_CHANGE, CURRENT_APPEND_START, COLOUR.id)
    for each in (obj, other):
        osd.write(each, 0, OLD)
    changed = check(osd.reply(make(obj, AttributeLists(gets, (COLOUR,)))), OK)
    alone = check(osd.reply(make(other, AttributeLists(gets[:3]))), OK)
    assert changed.attribute(COLOUR.id) == COLOUR
    for which in gets[:3]:
        assert changed.attribute(which).value == alone.attribute(which).value, which
    length = length_of(osd, obj)
    assert changed.attribute(LOGICAL_LENGTH).uint == length == length_of(osd, other)
    growth = int.from_bytes(changed.attribute(CAPACITY_CHANGE).value, "big", signed=True)
    assert growth == length - len(OLD)
    assert bytes(osd.read(obj, 0, length)) == bytes(osd.read(other, 0, length))
    assert attribute(osd, obj, COLOUR.id) == COLOUR.value
    assert used(osd, obj.partition_id) == 2 * length


@every_change
@pytest.mark.parametrize("wanted", [0, 50, 7_777, 70_000, 1 << 21])
def test_logical_length_in_the_same_command(
    osd: Commands, obj: ObjectRef, make: Make, wanted: int
) -> None:
    """The data changes first, then the length is set."""
    other = osd.create(obj.partition_id)
    for each in (obj, other):
        osd.write(each, 0, OLD)
    length = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, wanted.to_bytes(8, "big"))
    gets = (LOGICAL_LENGTH, CAPACITY_CHANGE)
    reply = check(osd.reply(make(obj, AttributeLists(gets, (length, COLOUR)))), OK)
    assert reply.attribute(LOGICAL_LENGTH).uint == wanted == length_of(osd, obj)
    growth = int.from_bytes(reply.attribute(CAPACITY_CHANGE).value, "big", signed=True)
    assert growth == wanted - len(OLD)
    check(osd.reply(make(other, AttributeLists())), OK)
    osd.set_attributes(other, [length])
    if wanted:
        assert bytes(osd.read(obj, 0, wanted)) == bytes(osd.read(other, 0, wanted))
    assert used(osd, obj.partition_id) == 2 * wanted
    osd.write(obj, wanted + 5_000, b"x")
    assert bytes(osd.read(obj, wanted, 5_000)) == bytes(5_000)


@pytest.mark.parametrize("name", ["write", "append", "clear", "pieces"])
def test_quota_refuses_both(osd: Commands, obj: ObjectRef, name: str) -> None:
    osd.write(obj, 0, OLD)
    limit = AttributeValue(*MAX_LENGTH, len(OLD).to_bytes(8, "big"))
    osd.set_attributes(obj, [limit])
    check(osd.reply(CHANGES[name](obj, AttributeLists((), (COLOUR,)))), QUOTA)
    osd.set_attributes(obj, [AttributeValue(*MAX_LENGTH, b"\xff" * 8)])
    unchanged(osd, obj)


def test_quota_of_the_same_command_comes_after_the_data(osd: Commands, obj: ObjectRef) -> None:
    limit = AttributeValue(*MAX_LENGTH, (10).to_bytes(8, "big"))
    check(osd.reply(rq.write(obj, 0, b"x" * 100, attributes=AttributeLists((), (limit,)))), OK)
    assert length_of(osd, obj) == 100
    check(osd.reply(rq.append(obj, b"x")), QUOTA)


def test_punch_beyond_the_end_sets_nothing(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, OLD)
    lists = AttributeLists((), (COLOUR,))
    check(osd.reply(rq.punch(obj, len(OLD) + 1, 1, attributes=lists)), CDB_FIELD.at(40))
    unchanged(osd, obj)


def test_nothing_written_but_attributes_set(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.write(obj, 5_000, b"", attributes=AttributeLists((), (COLOUR,)))), OK)
    assert length_of(osd, obj) == 0
    assert attribute(osd, obj, COLOUR.id) == COLOUR.value


# ---- CREATE AND WRITE ----


@pytest.mark.parametrize("data", [b"", b"data" * 1000])
def test_create_and_write_refused(osd: Commands, pid: PartitionId, data: bytes) -> None:
    """No object, no space taken, and the id stays free."""
    before = osd.list_objects(pid)
    for lists, number in (
        (AttributeLists((), (COLOUR, READ_ONLY)), 0),
        (AttributeLists((FOREIGN,)), 1),
    ):
        wanted = rq.create_and_write(pid, 0x5_0000 + number, 10, data, attributes=lists)
        check(osd.reply(wanted), LIST_FIELD)
    assert osd.list_objects(pid) == before
    assert used(osd, pid) == 0
    check(osd.reply(rq.read(ref(pid, 0x5_0000), 0, 1)), NO_OBJECT)
    made = osd.create_and_write(pid, b"again", requested_id=0x5_0000)
    assert bytes(osd.read(made, 0, 5)) == b"again"
    assert used(osd, pid) == 5


def test_create_and_write_with_everything(osd: Commands, pid: PartitionId) -> None:
    gets = (LOGICAL_LENGTH, COLOUR.id, CAPACITY_CHANGE)
    wanted = rq.create_and_write(
        pid, 0, 4096, b"x" * 1000, attributes=AttributeLists(gets, (COLOUR,))
    )
    reply = check(osd.reply(wanted), OK)
    assert reply.attribute(LOGICAL_LENGTH).uint == 5096
    assert reply.attribute(CAPACITY_CHANGE).uint == 5096
    assert reply.attribute(COLOUR.id) == COLOUR
    made = osd.list_objects(pid)[-1]
    assert bytes(osd.read(made, 0, 5096)) == bytes(4096) + b"x" * 1000
    assert used(osd, pid) == 5096
    osd.append(made, b"more")
    assert length_of(osd, made) == 5100
    osd.remove(made)
    assert used(osd, pid) == 0


@pytest.mark.parametrize("wanted", [0, 3, 10, 100_000])
def test_create_and_write_with_a_length(osd: Commands, pid: PartitionId, wanted: int) -> None:
    length = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, wanted.to_bytes(8, "big"))
    lists = AttributeLists((LOGICAL_LENGTH,), (length,))
    reply = check(osd.reply(rq.create_and_write(pid, 0, 0, b"0123456789", attributes=lists)), OK)
    assert reply.attribute(LOGICAL_LENGTH).uint == wanted
    made = osd.list_objects(pid)[-1]
    assert length_of(osd, made) == wanted == used(osd, pid)
    if wanted:
        assert bytes(osd.read(made, 0, wanted)) == b"0123456789"[:wanted].ljust(wanted, b"\0")


def test_create_and_write_over_quota(osd: Commands, pid: PartitionId) -> None:
    osd.set_attributes(ref(pid), [AttributeValue(0x3000_0002, 0x1_0001, (99).to_bytes(8, "big"))])
    check(osd.reply(rq.create_and_write(pid, 0, 0, b"x" * 100)), QUOTA)
    assert osd.list_objects(pid) == []
    assert used(osd, pid) == 0
    check(osd.reply(rq.create_and_write(pid, 0, 0, b"x" * 99)), OK)


# ---- scatter/gather ----


def test_pieces_in_any_order_and_over_each_other(osd: Commands, obj: ObjectRef) -> None:
    osd.write_pieces(obj, [(70_000, 4), (0, 4), (2, 4), (10, 0)], b"tailABCDxyzw")
    assert bytes(osd.read(obj, 0, 7)) == b"ABxyzw\0"
    assert length_of(osd, obj) == 70_004
    found = osd.read_pieces(obj, [(70_000, 4), (0, 6), (70_002, 2)])
    assert bytes(found) == b"tailABxyzwil"


def test_one_bad_piece_writes_none(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, OLD)
    pieces = [(0, 3), ((1 << 63) - 1, 3)]
    check(osd.reply(rq.write_pieces(obj, pieces, b"abcdef")), CDB_FIELD.at(48))
    unchanged(osd, obj)
