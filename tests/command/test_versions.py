# SPDX-License-Identifier: GPL-2.0-or-later
"""Versions of data and of members (docs/wire.md, docs/attributes.md): what changes them, what does not, and
commands that want one."""

from __future__ import annotations

import struct
from collections.abc import Callable
from dataclasses import replace

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.errors import VersionMismatch
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, DATA_VERSION, LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, Descriptor, Request
from tests.conftest import MakeHarness
from tests.expect import ANOTHER_VERSION, CDB_FIELD, LIST_FIELD, NO_OBJECT, OK, check
from tests.waiting import until

DATA = bytes(range(256)) * 16
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
BAD = CDB_FIELD.at(48)
OTHER = b"\0" * 12

Wanting = Callable[..., Request]
WANTING: dict[str, Wanting] = {
    "write": lambda obj, **more: rq.write(obj, 1, b"new", **more),
    "write nothing": lambda obj, **more: rq.write(obj, 0, b"", **more),
    "write beyond": lambda obj, **more: rq.write(obj, 3 << 20, b"new", **more),
    "append": lambda obj, **more: rq.append(obj, b"new", **more),
    "clear": lambda obj, **more: rq.clear(obj, 1, 5, **more),
    "punch": lambda obj, **more: rq.punch(obj, 1, 5, **more),
    "punch the end": lambda obj, **more: rq.punch(obj, 100, 1 << 20, **more),
}
CHANGES: dict[str, Wanting] = {
    **{name: each for name, each in WANTING.items() if name != "write nothing"},
    "pieces": lambda obj, **more: rq.write_pieces(obj, [(7, 1), (0, 2)], b"new", **more),
    "cut": lambda obj, **more: length_set(obj, 10, **more),
    "extend": lambda obj, **more: length_set(obj, 10_000, **more),
}


@pytest.fixture
def full(osd: Commands, obj: ObjectRef) -> ObjectRef:
    osd.write(obj, 0, DATA)
    return obj


def length_set(obj: ObjectRef, length: int, attributes: AttributeLists | None = None) -> Request:
    value = AttributeValue(*LOGICAL_LENGTH, length.to_bytes(8, "big"))
    get, others = (attributes.get, attributes.set) if attributes else ((), ())
    return rq.set_attributes(obj, attributes=AttributeLists(get, (value, *others)))


def content(osd: Commands, obj: ObjectRef) -> bytes:
    return bytes(osd.read(obj, 0, 4 << 20))


@pytest.mark.parametrize("sets", [False, True], ids=["", "with attributes"])
@pytest.mark.parametrize("kind", CHANGES)
def test_a_change(osd: Commands, full: ObjectRef, kind: str, sets: bool) -> None:
    """And the version that the same command shows is that of its change."""
    before = osd.data_version(full)
    assert len(before) == 12
    lists = AttributeLists((DATA_VERSION,), (COLOUR,) if sets else ())
    reply = check(osd.reply(CHANGES[kind](full, attributes=lists)), OK)
    after = osd.data_version(full)
    assert after != before
    assert reply.attribute(DATA_VERSION).value == after


def test_no_change(osd: Commands, full: ObjectRef) -> None:
    before = osd.data_version(full)
    osd.read(full, 0, 100)
    osd.set_attributes(full, [COLOUR])
    osd.write(full, 0, b"")
    osd.flush(full)
    osd.get_attributes(full, [LOGICAL_LENGTH])
    osd.read_map(full)
    assert osd.reply(rq.punch(full, 5000, 1)).error is not None
    lists = AttributeLists((), (AttributeValue(*DATA_VERSION, OTHER),))
    check(osd.reply(rq.set_attributes(full, attributes=lists)), LIST_FIELD)
    assert osd.data_version(full) == before


def test_read_shows_its_version(osd: Commands, full: ObjectRef) -> None:
    data, version = osd.read_with_version(full, 0, 10)
    assert bytes(data) == DATA[:10] and version == osd.data_version(full)
    lists = AttributeLists((DATA_VERSION,))
    reply = check(osd.reply(rq.read_pieces(full, [(0, 1), (9, 1)], attributes=lists)), OK)
    assert reply.attribute(DATA_VERSION).value == version
    # A command that reads and then cuts the object shows the version after that.
    cut = AttributeValue(*LOGICAL_LENGTH, (5).to_bytes(8, "big"))
    lists = AttributeLists((DATA_VERSION,), (cut,))
    reply = check(osd.reply(rq.read(full, 0, 10, attributes=lists)), OK)
    assert bytes(reply.data) == DATA[:10]
    assert reply.attribute(DATA_VERSION).value == osd.data_version(full) != version


@pytest.mark.parametrize("kind", WANTING)
def test_wanted(osd: Commands, full: ObjectRef, kind: str) -> None:
    version = osd.data_version(full)
    osd.write(full, 50, b"somebody else's")
    before, now = content(osd, full), osd.data_version(full)
    lists = AttributeLists((), (COLOUR,))
    for attributes in ({}, {"attributes": lists}):
        for wrong in (version, OTHER, b"\xff" * 12):
            request = WANTING[kind](full, if_version=wrong, **attributes)
            check(osd.reply(request), ANOTHER_VERSION)
    assert content(osd, full) == before and osd.data_version(full) == now
    assert osd.get_attribute(full, COLOUR.page, COLOUR.number) == b""
    check(osd.reply(WANTING[kind](full, if_version=now, attributes=lists)), OK)
    assert osd.get_attribute(full, COLOUR.page, COLOUR.number) == COLOUR.value
    assert (content(osd, full) != before) == (kind != "write nothing")


def test_wanted_by_a_read(osd: Commands, full: ObjectRef) -> None:
    data, version = osd.read_with_version(full, 0, 10)
    assert bytes(osd.read(full, 10, 10, if_version=version)) == DATA[10:20]
    osd.write(full, 4000, b"x")
    with pytest.raises(VersionMismatch):
        osd.read(full, 10, 10, if_version=version)
    # With a scatter/gather list, in either order.
    for order in (1, -1):
        request = rq.read_pieces(full, [(0, 4)])
        wanting = rq.read(full, 0, 4, if_version=osd.data_version(full)).descriptors
        both = (*request.descriptors, *wanting)[::order]
        assert bytes(check(osd.reply(replace(request, descriptors=both)), OK).data) == data[:4]


@pytest.mark.parametrize(
    "entry",
    [
        struct.pack(">II6xH12s4x", 0x2000_0005, 2, 12, OTHER),
        struct.pack(">II6xH12s4x", 0x2000_0004, 1, 12, OTHER),
        struct.pack(">II6xH12s4x", 0x8000_0001, 1, 12, OTHER),
        struct.pack(">II6xH12s4x", 0x2000_0005, 1, 11, OTHER),
        struct.pack(">II6xH12s4x", 0x2000_0005, 1, 0, OTHER),
        struct.pack(">II6xH12s4x", 0x2000_0005, 1, 12, OTHER) + bytes(8),
        struct.pack(">II6xH8s", 0x2000_0005, 1, 8, OTHER),
        b"",
    ],
)
def test_wanted_badly(osd: Commands, full: ObjectRef, entry: bytes) -> None:
    wanting = (Descriptor(0xF082, entry),)
    version = osd.data_version(full)
    check(osd.reply(replace(rq.read(full, 0, 4), descriptors=wanting)), BAD)
    check(osd.reply(replace(rq.write(full, 0, b"data"), descriptors=wanting)), BAD)
    assert osd.data_version(full) == version


def test_commands_that_cannot_want(osd: Commands, full: ObjectRef) -> None:
    wanting = rq.read(full, 0, 4, if_version=OTHER).descriptors
    for request in (
        rq.create_and_write(full.partition_id, 0, 0, b"new"),
        rq.copy_user_object(full, full.partition_id),
    ):
        check(osd.reply(replace(request, descriptors=(*request.descriptors, *wanting))), BAD)


# ---- commands that compare in their transaction ----


def test_remove_wants(osd: Commands, full: ObjectRef) -> None:
    before = osd.data_version(full)
    osd.write(full, 50, b"somebody else's")
    for wrong in (before, OTHER):
        lists = AttributeLists((), (COLOUR,))
        check(osd.reply(rq.remove(full, if_version=wrong, attributes=lists)), ANOTHER_VERSION)
    with pytest.raises(VersionMismatch):
        osd.remove(full, if_version=before)
    assert osd.get_attribute(full, COLOUR.page, COLOUR.number) == b""
    osd.remove(full, if_version=osd.data_version(full))
    check(osd.reply(rq.remove(full, if_version=before)), NO_OBJECT)


def test_set_attributes_wants(osd: Commands, full: ObjectRef) -> None:
    before = osd.data_version(full)
    osd.set_attributes(full, [COLOUR], if_version=before)
    red = AttributeValue(COLOUR.page, COLOUR.number, b"red")
    osd.write(full, 0, b"x")
    with pytest.raises(VersionMismatch):
        osd.set_attributes(full, [red], if_version=before)
    assert osd.get_attribute(full, COLOUR.page, COLOUR.number) == COLOUR.value
    # A new logical length under a precondition, and the version that it makes.
    now = osd.data_version(full)
    cut = AttributeValue(*LOGICAL_LENGTH, (5).to_bytes(8, "big"))
    (shown,) = osd.set_attributes(full, [cut], [DATA_VERSION], if_version=now)
    assert shown.value == osd.data_version(full) != now
    with pytest.raises(VersionMismatch):
        osd.set_attributes(full, [cut], if_version=now)
    # Without anything to set it only compares.
    check(osd.reply(rq.set_attributes(full, if_version=now)), ANOTHER_VERSION)
    check(osd.reply(rq.set_attributes(full, if_version=shown.value)), OK)


def members(osd: Commands, pid: PartitionId, count: int) -> tuple[ObjectRef, list[ObjectRef]]:
    collection = osd.create_collection(pid)
    objects = [osd.create(pid) for _ in range(count)]
    for each in objects:
        osd.add_member(collection, each)
    return collection, objects


def test_commands_on_collections_want(osd: Commands, pid: PartitionId) -> None:
    collection, objects = members(osd, pid, 3)
    now, wrong = osd.members_version(collection), OTHER
    label = AttributeValue(0x6001_0000, 1, b"label")
    with pytest.raises(VersionMismatch):
        osd.set_attributes(collection, [label], if_members=wrong)
    with pytest.raises(VersionMismatch):
        osd.set_member_attributes(collection, [COLOUR], if_members=wrong)
    with pytest.raises(VersionMismatch):
        osd.remove_member_objects(collection, if_members=wrong)
    with pytest.raises(VersionMismatch):
        osd.remove_member_objects(collection, immediate=True, if_members=wrong)
    with pytest.raises(VersionMismatch):
        osd.remove_collection(collection, with_members=True, if_members=wrong)
    assert osd.members_version(collection) == now
    assert osd.get_attribute(collection, label.page, label.number) == b""
    assert osd.get_attribute(objects[0], COLOUR.page, COLOUR.number) == b""
    osd.set_attributes(collection, [label], if_members=now)
    osd.set_member_attributes(collection, [COLOUR], if_members=now)
    assert osd.get_attribute(objects[2], COLOUR.page, COLOUR.number) == COLOUR.value
    check(osd.reply(rq.set_member_attributes(collection, False, wrong)), ANOTHER_VERSION)
    check(osd.reply(rq.set_member_attributes(collection, False, now)), OK)
    osd.remove_member_objects(collection, if_members=now)
    with pytest.raises(VersionMismatch):
        osd.remove_collection(collection, if_members=now)
    osd.remove_collection(collection, if_members=osd.members_version(collection))


def test_the_wanted_attribute_is_of_the_type(osd: Commands, full: ObjectRef) -> None:
    """That of the data for user objects, that of the members for collections; others have none."""
    pid = full.partition_id
    collection = osd.create_collection(pid)
    data, membership = osd.data_version(full), osd.members_version(collection)
    check(osd.reply(rq.set_attributes(full, if_members=membership)), BAD)
    check(osd.reply(rq.set_attributes(collection, if_version=data)), BAD)
    for obj in (ref(pid), ref(0)):
        check(osd.reply(rq.set_attributes(obj, if_version=data)), BAD)
        check(osd.reply(rq.set_attributes(obj, if_members=membership)), BAD)
    wanting = rq.set_attributes(full, if_version=data).descriptors
    for request in (rq.remove_collection(collection), rq.remove_member_objects(collection)):
        check(osd.reply(replace(request, descriptors=wanting)), BAD)
    objects = ref(pid, 0x1000)
    check(osd.reply(rq.set_attributes(objects, if_members=membership)), ANOTHER_VERSION)
    with pytest.raises(ValueError, match="for user objects"):
        rq.set_attributes(full, if_version=data, if_members=membership)


def test_made_again(osd: Commands, full: ObjectRef) -> None:
    seen = {osd.data_version(full)}
    osd.remove(full)
    for made in (
        rq.create(full.partition_id, full.object_id),
        rq.create_and_write(full.partition_id, full.object_id, 0, DATA),
    ):
        check(osd.reply(made), OK)
        assert osd.data_version(full) not in seen
        seen.add(osd.data_version(full))
        osd.remove(full)


def test_copy(osd: Commands, full: ObjectRef) -> None:
    before = osd.data_version(full)
    lists = AttributeLists((CURRENT_OBJECT_ID, DATA_VERSION))
    request = replace(rq.copy_user_object(full, full.partition_id), attributes=lists)
    reply = check(osd.reply(request), OK)
    copy = ref(full.partition_id, reply.attribute(CURRENT_OBJECT_ID).uint)
    assert osd.data_version(full) == before
    assert reply.attribute(DATA_VERSION).value == osd.data_version(copy) != before


def test_members(osd: Commands, pid: PartitionId) -> None:
    first = osd.create_collection(pid)
    second = osd.create_collection(pid)
    seen = [osd.members_version(first), osd.members_version(second)]

    def changed(collection: ObjectRef) -> None:
        assert osd.members_version(collection) not in seen
        seen.append(osd.members_version(collection))

    def joins(obj: ObjectRef, collection: ObjectRef) -> AttributeValue:
        value = int(collection.object_id).to_bytes(8, "big")
        return AttributeValue(Page.USER_COLLECTIONS, 1, value)

    obj = osd.create(pid)
    osd.set_attributes(obj, [joins(obj, first)])
    changed(first)
    assert osd.members_version(second) == seen[1]
    osd.set_attributes(obj, [joins(obj, second)])
    changed(first)
    changed(second)
    osd.write(obj, 0, DATA)
    osd.set_attributes(obj, [COLOUR])
    osd.list_members(second)
    assert osd.members_version(second) == seen[-1]
    lists = AttributeLists((), (joins(obj, second),))
    check(osd.reply(rq.create(pid, attributes=lists)), OK)
    changed(second)
    osd.remove(obj)
    changed(second)
    osd.remove_member_objects(second)
    changed(second)
    assert osd.members_version(ref(pid, 0x1000)) == b""


def test_restart(make_harness: MakeHarness) -> None:
    first = make_harness()
    osd = first.osd
    obj = osd.create(osd.create_partition())
    osd.write(obj, 0, DATA)
    version = osd.data_version(obj)
    first.finish()
    osd = make_harness().osd
    assert osd.data_version(obj) == version
    osd.write(obj, 0, DATA)
    assert osd.data_version(obj) != version


def test_killed_before_it_rests(make_harness: MakeHarness) -> None:
    """Data are there, and the version is another."""
    harness = make_harness()
    obj = harness.osd.create(harness.osd.create_partition())

    def is_another() -> bool:
        harness.osd.write(obj, 0, DATA)
        version = harness.osd.data_version(obj)
        harness.kill()
        harness.start()
        assert content(harness.osd, obj) == DATA
        return harness.osd.data_version(obj) != version

    until(is_another, "the version stays")  # a slow machine may give it the second to rest
