# SPDX-License-Identifier: GPL-2.0-or-later
"""COPY USER OBJECTS (osd2-wire 3.13): data, holes, attributes, methods, refusals."""

from __future__ import annotations

import struct
from dataclasses import replace
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, Descriptor, Request
from tests.conftest import MakeHarness
from tests.expect import (
    CDB_FIELD,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    OBJECT_TAKEN,
    OK,
    QUOTA,
    check,
)

DATA = bytes(range(256)) * 4096
UNIT = 1 << 16
HEAD = 2 << 20
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")
NAME = AttributeValue(1, 9, b"paper")
READ_ONLY = AttributeValue(1, 0x81, bytes(8))
CAPACITY_CHANGE = AttributeId(Page.CURRENT_COMMAND, 6)
BAD_CONTINUATION = CDB_FIELD.at(48)
METHODS = {"default": 0x00, "byte by byte": 0x81, "faster": 0xFD, "don't care": 0xFF}


def attribute(osd: Commands, obj: ObjectRef, page: int, number: int) -> bytes:
    return osd.get_attribute(obj, page, number)


def length_of(osd: Commands, obj: ObjectRef) -> int:
    return int.from_bytes(attribute(osd, obj, LOGICAL_LENGTH.page, LOGICAL_LENGTH.number), "big")


def used(osd: Commands, pid: int) -> int:
    return int.from_bytes(attribute(osd, ref(pid), 0x3000_0001, 0x81), "big")


def copied(osd: Commands, request: Request) -> ObjectRef:
    """Send it with the new object's id asked for."""
    lists = AttributeLists((CURRENT_OBJECT_ID,))
    reply = check(osd.reply(replace(request, attributes=lists)), OK)
    return ref(request.partition_id, reply.attribute(CURRENT_OBJECT_ID).uint)


def extents(osd: Commands, obj: ObjectRef) -> bytes:
    return bytes(check(osd.reply(rq.read_map(obj, 0, 4096)), OK).data)


def with_source(request: Request, content: bytes) -> Request:
    return replace(request, descriptors=(Descriptor(0x0101, content),))


@pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
@pytest.mark.parametrize("size", [0, 1, 4096, 100_001, len(DATA)])
def test_copy(osd: Commands, obj: ObjectRef, method: int, size: int) -> None:
    osd.write(obj, 0, DATA[:size])
    made = copied(osd, rq.copy_user_object(obj, obj.partition_id, method=method))
    assert made != obj
    assert length_of(osd, made) == size
    if size:
        assert bytes(osd.read(made, 0, size)) == DATA[:size]
    assert used(osd, obj.partition_id) == 2 * size
    osd.write(made, 0, b"changed")
    osd.append(made, b"more")
    assert length_of(osd, obj) == size
    if size > 10:
        assert bytes(osd.read(obj, 0, 10)) == DATA[:10]
    osd.remove(obj)
    assert bytes(osd.read(made, 0, 7)) == b"changed"
    osd.remove(made)
    assert used(osd, obj.partition_id) == 0


@pytest.mark.parametrize("method", [0x00, 0x81])
def test_holes_stay_holes(osd: Commands, obj: ObjectRef, method: int) -> None:
    osd.write(obj, UNIT, b"x" * UNIT)
    osd.write(obj, 8 * UNIT, b"y" * 10)
    osd.clear(obj, 9 * UNIT, 5 * UNIT)
    made = copied(osd, rq.copy_user_object(obj, obj.partition_id, method=method))
    assert extents(osd, made) == extents(osd, obj)
    assert length_of(osd, made) == 14 * UNIT


def test_into_another_partition_under_an_id_of_choice(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"data")
    other = osd.create_partition()
    try:
        made = copied(osd, rq.copy_user_object(obj, other, 0x7_0000))
        assert made == ref(other, 0x7_0000)
        assert bytes(osd.read(made, 0, 4)) == b"data"
        check(osd.reply(rq.copy_user_object(obj, other, 0x7_0000)), OBJECT_TAKEN)
        assert osd.list_objects(other) == [made]
    finally:
        osd.remove_partition(other, contents=True)


def test_attributes_go_over(osd: Commands, obj: ObjectRef, collection: ObjectRef) -> None:
    """The application's and the user name: no memberships, quotas or times."""
    many = [AttributeValue(0x2_0000, number, b"v" * number) for number in range(1, 200)]
    large = AttributeValue(Page.APPLICATION, 2, b"large" * 10_000)
    membership = AttributeValue(4, 1, collection.object_id.to_bytes(8, "big"))
    quota = AttributeValue(2, 1, (1 << 30).to_bytes(8, "big"))
    osd.set_attributes(obj, [COLOUR, NAME, membership, quota, *many])
    osd.set_attributes(obj, [large])
    made = copied(osd, rq.copy_user_object(obj, obj.partition_id))
    for each in (COLOUR, NAME, large, *many):
        assert attribute(osd, made, each.page, each.number) == each.value
    assert attribute(osd, made, 4, 1) == b""
    assert osd.list_members(collection) == [obj]
    assert attribute(osd, made, 2, 1) != quota.value


def test_counters_stay(osd: Commands, obj: ObjectRef) -> None:
    """The words of COMPARE AND SWAP and FETCH AND ADD are the source's state: a copy begins at 0."""
    osd.compare_and_swap(obj, 0, 1)
    osd.fetch_and_add(obj, 41)
    copied = osd.copy(obj, obj.partition_id)
    assert osd.compare_and_swap(copied, 0, 1) == 0
    assert osd.fetch_and_add(copied, 1) == 0
    assert osd.fetch_and_add(obj, 1) == 41


def test_attributes_stay(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [COLOUR, NAME])
    made = copied(osd, rq.copy_user_object(obj, obj.partition_id, with_attributes=False))
    assert attribute(osd, made, COLOUR.page, COLOUR.number) == b""
    assert attribute(osd, made, NAME.page, NAME.number) == b""


def test_attributes_of_the_command_are_the_new_objects(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"data")
    osd.set_attributes(obj, [COLOUR, NAME])
    blue = AttributeValue(COLOUR.page, COLOUR.number, b"blue")
    lists = AttributeLists(
        (CURRENT_OBJECT_ID, blue.id, NAME.id, LOGICAL_LENGTH, CAPACITY_CHANGE), (blue,)
    )
    reply = check(osd.reply(rq.copy_user_object(obj, obj.partition_id, attributes=lists)), OK)
    made = ref(obj.partition_id, reply.attribute(CURRENT_OBJECT_ID).uint)
    assert reply.attribute(blue.id) == blue
    assert reply.attribute(NAME.id) == NAME
    assert reply.attribute(LOGICAL_LENGTH).uint == reply.attribute(CAPACITY_CHANGE).uint == 4
    assert attribute(osd, made, blue.page, blue.number) == b"blue"
    assert attribute(osd, obj, COLOUR.page, COLOUR.number) == COLOUR.value


def test_refused_attribute_leaves_no_object(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, DATA)
    lists = AttributeLists((), (COLOUR, READ_ONLY))
    check(osd.reply(rq.copy_user_object(obj, obj.partition_id, attributes=lists)), LIST_FIELD)
    assert osd.list_objects(obj.partition_id) == [obj]
    assert used(osd, obj.partition_id) == len(DATA)


def test_quota(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, DATA)
    limit = (2 * len(DATA) - 1).to_bytes(8, "big")
    osd.set_attributes(ref(obj.partition_id), [AttributeValue(0x3000_0002, 0x1_0001, limit)])
    check(osd.reply(rq.copy_user_object(obj, obj.partition_id)), QUOTA)
    assert osd.list_objects(obj.partition_id) == [obj]
    assert used(osd, obj.partition_id) == len(DATA)


@pytest.mark.parametrize("method", [0x02, 0x41, 0x80, 0xFE])
def test_unsupported_method(osd: Commands, obj: ObjectRef, method: int) -> None:
    request = rq.copy_user_object(obj, obj.partition_id, method=method)
    check(osd.reply(request), CDB_FIELD.at(14))
    assert attribute(osd, ref(), 0x9000_0001, 0x200 + method) == b""


def test_space_efficient_where_it_says_so(osd: Commands, obj: ObjectRef) -> None:
    """It needs a file system with reflinks; root information 201h tells."""
    osd.write(obj, 0, DATA)
    request = rq.copy_user_object(obj, obj.partition_id, method=0x01)
    if attribute(osd, ref(), 0x9000_0001, 0x201):
        made = copied(osd, request)
        assert bytes(osd.read(made, 0, len(DATA))) == DATA
    else:
        check(osd.reply(request), CDB_FIELD.at(14))


def test_absent(osd: Commands, obj: ObjectRef, collection: ObjectRef) -> None:
    pid = obj.partition_id
    check(osd.reply(rq.copy_user_object(obj, 0x7777_0000_0000)), NO_PARTITION)
    for source in (ref(pid, 0x1_2345), ref(0x7777_0000_0000, 0x1_0000), collection, ref(pid, 0)):
        check(osd.reply(rq.copy_user_object(source, pid)), BAD_CONTINUATION)
    assert osd.list_objects(pid) == [obj]


def test_refusals_use_up_no_id(osd: Commands, obj: ObjectRef) -> None:
    pid = obj.partition_id
    osd.write(obj, 0, b"data")
    lists = AttributeLists((), (READ_ONLY,))
    check(osd.reply(rq.copy_user_object(ref(pid, 0x1_2345), pid)), BAD_CONTINUATION)
    check(osd.reply(rq.copy_user_object(obj, pid, attributes=lists)), LIST_FIELD)
    check(osd.reply(rq.create_and_write(pid, 0, 0, b"data", attributes=lists)), LIST_FIELD)
    assert osd.create(pid).object_id == obj.object_id + 1


def test_descriptors(osd: Commands, obj: ObjectRef) -> None:
    pid = obj.partition_id
    request = rq.copy_user_object(obj, pid)
    source = request.descriptors[0]
    capabilities = Descriptor(0xFFEE, bytes(104))
    check(osd.reply(replace(request, descriptors=(source, capabilities))), OK)
    check(osd.reply(replace(request, descriptors=(capabilities, source))), OK)
    check(osd.reply(with_source(request, source.content[:18])), OK)
    for bad in ((), (capabilities,), (source, source), (Descriptor(1, bytes(16)), source)):
        check(osd.reply(replace(request, descriptors=bad)), BAD_CONTINUATION)
    for length in (0, 8, 16, 17, 19, 21, 24, 40):
        check(osd.reply(with_source(request, source.content.ljust(64)[:length])), BAD_CONTINUATION)


@pytest.mark.parametrize("options", [0x80, 0x01, 0x0F])
def test_freeze_and_another_time(osd: Commands, obj: ObjectRef, options: int) -> None:
    content = struct.pack(">QQBB2x", obj.partition_id, obj.object_id, 1, options)
    request = with_source(rq.copy_user_object(obj, obj.partition_id), content)
    check(osd.reply(request), BAD_CONTINUATION)


def test_of_a_collection_id(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.copy_user_object(obj, obj.partition_id, 0x1000)), OBJECT_TAKEN)
    check(osd.reply(rq.read(ref(obj.partition_id, 0x1000), 0, 1)), NO_OBJECT.at(24))


def test_across_the_border_of_two_devices(make_harness: MakeHarness, tmp_path: Path) -> None:
    (tmp_path / "heads").mkdir()
    harness = make_harness(ssd=tmp_path / "heads")
    osd = harness.osd
    pid = osd.create_partition()
    source = osd.create(pid)
    osd.write(source, HEAD - UNIT, DATA)
    osd.clear(source, HEAD + 8 * UNIT, 4 * UNIT)
    wanted = bytes(osd.read(source, 0, HEAD - UNIT + len(DATA)))
    made = [copied(osd, rq.copy_user_object(source, pid, method=how)) for how in METHODS.values()]
    osd.flush(made[0])
    harness.restart()
    osd = harness.osd
    for each in made:
        assert extents(osd, each) == extents(osd, source)
        assert bytes(osd.read(each, 0, len(wanted))) == wanted
    assert used(osd, pid) == 5 * len(wanted)
