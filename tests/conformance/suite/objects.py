# SPDX-License-Identifier: GPL-2.0-or-later
"""How partitions and user objects come and go: CREATE*, REMOVE*, COPY, quotas of numbers."""

from __future__ import annotations

import struct

from tests.conformance import wire as w
from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import (
    DATA_PROTECT,
    INVALID_FIELD_IN_CDB,
    NOT_EMPTY,
    QUOTA_ERROR,
)
from tests.conformance.suite.instances import CONTENT, MAKE, copy, copy_source, user_object
from tests.conformance.wire import CURRENT_COMMAND, FIRST_ID, PAGE, Request

ID = ((CURRENT_COMMAND, 4),)
APPLICATION = 0x1_0000


def created(answer_values: list[bytes]) -> int:
    return int.from_bytes(answer_values[-1], "big")


# ---- CREATE ----


@cell("CREATE", "ok", "osd2-wire 3.2 requested id")
def object_with_the_requested_id(t: LogicalUnit) -> None:
    oid = t.free_oid()
    t.good(Request(0x8882, t.pid, oid))
    t.same((t.exists(oid), t.number(oid, 1, 0x82)), (True, 0), "exists, logical length")
    t.same(t.get(oid, 1, 1), struct.pack(">Q", t.pid), "partition id in the information page")
    t.same(t.get(oid, 1, 2), struct.pack(">Q", oid), "object id in the information page")


@each(
    [BY_NAME[name] for name in ("CREATE", "CREATE COLLECTION", "CREATE USER TRACKING COLLECTION")],
    "ok",
    "osd2-wire 1.1, 3.2 requested id 0",
)
def target_chooses_an_id(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t).but(oid=0, gets=ID)
    ids = [created(t.good(request).values) for _ in range(3)]
    t.check(len(set(ids)) == 3 and min(ids) >= FIRST_ID, None, "three ids from 1_0000h on", ids)
    for oid in ids:
        t.check(t.exists(oid), None, f"object {oid:X}h")


@cell("CREATE", "ok", "osd2-wire 3.2 NUMBER OF USER OBJECTS")
def many_at_once_with_consecutive_ids(t: LogicalUnit) -> None:
    answer = t.good(Request(0x8882, t.pid, length=5 << 48, form=PAGE, page=CURRENT_COMMAND))
    _, _, fields = w.page_fields(answer.retrieved)
    highest = int.from_bytes(fields[44:52], "big")
    for oid in range(highest - 4, highest + 1):
        t.check(t.exists(oid), answer, f"object {oid:X}h")
    t.check(not t.exists(highest + 1), answer, "no object beyond the highest")


@cell("CREATE", "multi-object", "osd2-wire 3.2, 5.5 list format")
def attributes_of_many(t: LogicalUnit) -> None:
    """Sets apply to all; what is retrieved comes as one group for each object."""
    sets = ((APPLICATION, 1, b"same"),)
    gets = ((APPLICATION, 1), (CURRENT_COMMAND, 4))
    request = Request(0x8882, t.pid, length=3 << 48, sets=sets, gets=gets, allocation=4096)
    answer = t.good(request)
    header, length = answer.retrieved[0], int.from_bytes(answer.retrieved[4:8], "big")
    t.same(header, w.MULTI_OBJECT_LIST, "list type", answer)
    blocks = w.object_blocks(answer.retrieved[8 : 8 + length])
    t.same(len(blocks), 3, "groups", answer)
    t.same({each.kind for each in blocks}, {w.USER_OBJECT}, "object types", answer)
    ids = [each.oid for each in blocks]
    t.same(ids, list(range(ids[0], ids[0] + 3)), "object ids", answer)
    for block in blocks:
        t.same(block.attributes[0], (APPLICATION, 1, b"same"), "first attribute", answer)
        t.same(t.get(block.oid, APPLICATION, 1), b"same", "the attribute afterwards")


@cell("CREATE", "own fields", "osd2-wire 3.2 number > 1")
def many_need_requested_id_0_and_no_page(t: LogicalUnit) -> None:
    t.bad_field(Request(0x8882, t.pid, t.free_oid(), length=2 << 48), (24, 32))
    wrong = Request(0x8882, t.pid, length=2 << 48, form=PAGE, page=1)
    t.bad_field(wrong, (32, 52))


@cell("CREATE", "zero length", "osd2-wire 3.2 number 0 means 1")
def number_0_and_1(t: LogicalUnit) -> None:
    pid = t.partition()
    t.good(Request(0x8882, pid, length=0))
    t.good(Request(0x8882, pid, length=1 << 48))
    t.same(len(t.user_objects(pid)), 2, "user objects")


@each(
    [BY_NAME[name] for name in ("CREATE", "CREATE AND WRITE", "COPY USER OBJECTS")],
    "quota",
    "osd2-wire 5.12 object count",
)
def more_objects_than_the_partition_allows(t: LogicalUnit, row: Row) -> None:
    pid = t.partition()
    t.set(0, 0x3000_0002, 0x1_0002, struct.pack(">Q", 2), pid)
    request = MAKE[row.name](t).but(pid=pid, oid=0)
    t.good(request)
    t.good(request)
    t.refused(request, QUOTA_ERROR, key=DATA_PROTECT)
    t.same(len(t.user_objects(pid)), 2, "user objects")


@each(
    [BY_NAME[name] for name in ("CREATE COLLECTION", "CREATE USER TRACKING COLLECTION")],
    "quota",
    "osd2-wire 5.9, 5.12 object count counts collections",
)
def more_collections_than_the_partition_allows(t: LogicalUnit, row: Row) -> None:
    pid = t.partition()
    t.set(0, 0x3000_0002, 0x1_0002, struct.pack(">Q", 1), pid)
    request = MAKE[row.name](t).but(pid=pid, oid=0)
    t.good(request)
    t.refused(request, QUOTA_ERROR, key=DATA_PROTECT)


@cell("CREATE", "quota", "osd2-wire 5.12 object count, number > 1")
def many_beyond_the_quota_leave_none(t: LogicalUnit) -> None:
    pid = t.partition()
    t.set(0, 0x3000_0002, 0x1_0002, struct.pack(">Q", 3), pid)
    t.refused(Request(0x8882, pid, length=4 << 48), QUOTA_ERROR, key=DATA_PROTECT)
    t.same(t.user_objects(pid), [], "user objects")


@each(
    [BY_NAME[name] for name in ("WRITE", "APPEND", "CREATE AND WRITE")],
    "quota",
    "osd2-wire 5.12 capacity quota",
)
def more_bytes_than_the_partition_allows(t: LogicalUnit, row: Row) -> None:
    pid = t.partition()
    oid = t.object(pid=pid)
    t.set(0, 0x3000_0002, 0x1_0001, struct.pack(">Q", 1 << 20), pid)
    chosen = t.free_oid() if row.name == "CREATE AND WRITE" else oid
    request = Request(row.code, pid, chosen, 2 << 20, data=bytes(range(256)) * (8 << 10))
    t.refused(request, QUOTA_ERROR, key=DATA_PROTECT)
    t.same(t.number(oid, 1, 0x82, pid), 0, "logical length")


# ---- CREATE AND WRITE ----


@cell("CREATE AND WRITE", "ok", "osd2-wire 3.2 CREATE AND WRITE")
def object_with_its_data(t: LogicalUnit) -> None:
    oid = t.free_oid()
    t.good(Request(0x8892, t.pid, oid, 64, 10, data=CONTENT))
    t.same(t.read(oid), bytes(10) + CONTENT, "the object")


@cell("CREATE AND WRITE", "ok", "osd2-wire 3.2, 9-42 requested id 0, attributes")
def chosen_id_data_and_attributes(t: LogicalUnit) -> None:
    request = MAKE["CREATE AND WRITE"](t).but(oid=0, sets=((APPLICATION, 1, b"v"),), gets=ID)
    oid = created(t.good(request).values)
    t.same((t.read(oid), t.get(oid, APPLICATION, 1)), (b"hello", b"v"), "data, attribute")


@cell("CREATE AND WRITE", "beyond end", "osd2-wire 3.3 gap before the data")
def gap_reads_as_zeros(t: LogicalUnit) -> None:
    oid = t.free_oid()
    t.good(Request(0x8892, t.pid, oid, 3, 100, data=b"end"))
    t.same(t.read(oid), bytes(100) + b"end", "the object")


# ---- REMOVE ----


@cell("REMOVE", "ok", "osd2-wire 3.2 REMOVE")
def object_is_gone(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.good(Request(0x888A, t.pid, oid))
    t.bad_field(Request(0x888A, t.pid, oid), 24)
    t.check(oid not in t.user_objects(), None, "not in LIST")


@cell("REMOVE", "ok", "osd2-wire 3.2 REMOVE drops memberships")
def memberships_are_gone_too(t: LogicalUnit) -> None:
    gone, stays = t.object(), t.object()
    cid = t.collection(gone, stays)
    t.good(Request(0x888A, t.pid, gone))
    t.same(t.members(cid), [stays], "members")


@cell("REMOVE", "ok", "osd2-wire 1.1 an id can be used again")
def id_is_free_again_and_empty(t: LogicalUnit) -> None:
    oid = t.object(CONTENT)
    t.set(oid, APPLICATION, 1, b"old")
    t.good(Request(0x888A, t.pid, oid))
    t.good(Request(0x8882, t.pid, oid))
    t.same((t.number(oid, 1, 0x82), t.get(oid, APPLICATION, 1)), (0, b""), "length, attribute")


# ---- partitions ----


@cell("CREATE PARTITION", "ok", "osd2-wire 3.2 requested id")
def partition_with_the_requested_id(t: LogicalUnit) -> None:
    pid = t.free_pid()
    t.good(Request(0x888B, pid))
    t.same(t.get(0, 0x3000_0001, 1, pid), struct.pack(">Q", pid), "partition id attribute")
    t.same(t.user_objects(pid), [], "user objects")


@cell("CREATE PARTITION", "ok", "osd2-wire 1.1 requested id 0")
def target_chooses_a_partition_id(t: LogicalUnit) -> None:
    answer = t.good(Request(0x888B, gets=((CURRENT_COMMAND, 3),)))
    pid = created(answer.values)
    t.partitions.add(pid)
    t.check(pid >= FIRST_ID, answer, "an id from 1_0000h on", hex(pid))
    t.good(Request(0x888E, pid))


@cell("CREATE PARTITION", "duplicate id", "osd2-wire 7.4 requested id taken")
def partition_id_in_use(t: LogicalUnit) -> None:
    t.bad_field(Request(0x888B, t.pid), 16)


@cell("CREATE PARTITION", "own fields", "osd2-wire 3.2 bytes 24-47 are reserved")
def reserved_fields_of_create_partition(t: LogicalUnit) -> None:
    """Reserved, so a target may ignore or refuse them, but must not take them for something."""
    pid = t.free_pid()
    answer = t.send(Request(0x888B, pid, 1))
    if answer.status:
        t.is_refused(answer, INVALID_FIELD_IN_CDB, 24)
    else:
        t.good(Request(0x888E, pid))


@cell("CREATE PARTITION", "quota", "osd2-wire 5.12 partition count")
def more_partitions_than_the_root_allows(t: LogicalUnit) -> None:
    quota = (0x9000_0002, 0x2_0002)
    before = t.get(0, *quota, 0)
    count = t.number(0, 0x9000_0001, 0xC0, 0)
    t.good(Request(0x888F, sets=((*quota, struct.pack(">Q", count)),)))
    try:
        t.refused(Request(0x888B, t.free_pid()), QUOTA_ERROR, key=DATA_PROTECT)
    finally:
        t.good(Request(0x888F, sets=((*quota, before),)))
    t.same(t.number(0, 0x9000_0001, 0xC0, 0), count, "number of partitions")


@cell("REMOVE PARTITION", "ok", "osd2-wire 3.2 REMOVE PARTITION")
def partition_is_gone(t: LogicalUnit) -> None:
    pid = t.partition()
    t.good(Request(0x888C, pid))
    t.bad_field(Request(0x888E, pid), 16)


@cell("REMOVE PARTITION", "ok", "osd2-wire 3.2, 9-30 scope 1")
def contents_go_with_it(t: LogicalUnit) -> None:
    pid = t.partition()
    oid = t.object(CONTENT, pid)
    t.collection(oid, pid=pid)
    t.good(Request(0x888C, pid, byte11=1))
    t.bad_field(Request(0x888E, pid), 16)
    t.good(Request(0x888B, pid))
    t.same((t.user_objects(pid), t.members(0, pid)), ([], []), "objects, collections")


@cell("REMOVE PARTITION", "not empty", "osd2-wire 3.2 scope 0")
def partition_with_something_in_it(t: LogicalUnit) -> None:
    pid = t.partition()
    oid = t.object(pid=pid)
    t.refused(Request(0x888C, pid), NOT_EMPTY)
    t.good(Request(0x888A, pid, oid))
    cid = t.collection(pid=pid)
    t.refused(Request(0x888C, pid), NOT_EMPTY)
    t.good(Request(0x8896, pid, cid))
    t.good(Request(0x888C, pid))


@cell("REMOVE PARTITION", "own fields", "osd2-wire 3.2 scope")
def reserved_scopes(t: LogicalUnit) -> None:
    pid = t.partition()
    for scope in (2, 7):
        t.bad_field(Request(0x888C, pid, byte11=scope), 11)


# ---- COPY USER OBJECTS ----


@cell("COPY USER OBJECTS", "ok", "osd2-wire 3.13")
def data_are_copied_and_apart(t: LogicalUnit) -> None:
    source, oid = user_object(t), t.free_oid()
    t.set(source, APPLICATION, 1, b"mine")
    t.good(copy(t, source, oid))
    t.same((t.read(oid), t.get(oid, APPLICATION, 1)), (CONTENT, b""), "data, attribute")
    t.write(source, 0, b"changed")
    t.same(t.read(oid), CONTENT, "the copy after a write to the source")
    t.write(oid, 0, b"other")
    t.same(t.read(source, 0, 7), b"changed", "the source after a write to the copy")


@cell("COPY USER OBJECTS", "ok", "osd2-wire 3.13 CPY_ATTR")
def attributes_are_copied_where_asked_for(t: LogicalUnit) -> None:
    source, oid = user_object(t), t.free_oid()
    t.set(source, APPLICATION, 1, b"mine")
    t.set(source, APPLICATION, 2, b"theirs")
    request = copy(t, source, oid, True)
    t.good(request.but(sets=((APPLICATION, 2, b"own"),)))
    values = [t.get(oid, APPLICATION, number) for number in (1, 2)]
    t.same(values, [b"mine", b"own"], "copied attribute, attribute set with the copy")
    t.same(t.get(oid, 1, 2), struct.pack(">Q", oid), "object id in the information page")


@cell("COPY USER OBJECTS", "ok", "osd2-wire 3.13 requested oid 0, other partition")
def to_another_partition(t: LogicalUnit) -> None:
    source, pid = user_object(t), t.partition()
    part = w.segment(0x8893, copy_source(t.pid, source))
    answer = t.good(Request(0x8893, pid, segment=part, gets=ID))
    t.same(t.read(created(answer.values), pid=pid), CONTENT, "the copy")


@cell("COPY USER OBJECTS", "ok", "osd2-wire 3.13 sparse source")
def holes_are_copied(t: LogicalUnit) -> None:
    source, oid, far = t.object(b"head"), t.free_oid(), 3 << 20
    t.write(source, far, b"tail")
    t.good(copy(t, source, oid))
    t.same(t.number(oid, 1, 0x82), far + 4, "logical length")
    t.same((t.read(oid, 0, 6), t.read(oid, far - 2, 6)), (b"head\0\0", b"\0\0tail"), "both ends")


@cell("COPY USER OBJECTS", "zero length", "osd2-wire 3.13 an empty source")
def empty_object_is_copied(t: LogicalUnit) -> None:
    oid = t.free_oid()
    t.good(copy(t, t.object(), oid))
    t.same((t.exists(oid), t.number(oid, 1, 0x82)), (True, 0), "exists, logical length")


@cell("COPY USER OBJECTS", "own fields", "osd2-wire 3.13 DUPLICATION METHOD")
def duplication_methods(t: LogicalUnit) -> None:
    """Methods the root announces (200h + method) are taken, reserved ones refused at 14."""
    source = user_object(t)
    for method in (0x00, 0x01, 0x41, 0x81, 0xFD, 0xFE, 0xFF):
        announced = t.number(0, 0x9000_0001, 0x200 + method, 0) != 0
        request = copy(t, source, t.free_oid()).patched(14, bytes([method]))
        if announced or method in (0x00, 0xFF):
            t.good(request)
    for method in (0x02, 0x7F):
        t.bad_field(copy(t, source, t.free_oid()).patched(14, bytes([method])), 14)


@cell("COPY USER OBJECTS", "wrong type", "osd2-wire 3.13 source is a user object")
def collection_cannot_be_a_source(t: LogicalUnit) -> None:
    t.bad_field(copy(t, t.collection(), t.free_oid()))


@cell("COPY USER OBJECTS", "quota", "osd2-wire 5.12 maximum user object length")
def copy_longer_than_the_partition_allows(t: LogicalUnit) -> None:
    source, pid = user_object(t), t.partition()
    t.set(0, 0x3000_0002, 0x1, struct.pack(">Q", 63), pid)
    oid = t.free_oid()
    part = w.segment(0x8893, copy_source(t.pid, source))
    t.refused(Request(0x8893, pid, oid, segment=part), QUOTA_ERROR, key=DATA_PROTECT)
    t.check(not t.exists(oid, pid), None, "no object left behind")


# ---- OBJECT STRUCTURE CHECK ----


@cell("OBJECT STRUCTURE CHECK", "ok", "osd2-wire 3.2 one partition, the whole OSD")
def sound_structures_are_good(t: LogicalUnit) -> None:
    t.collection(t.object(CONTENT), t.object())
    t.good(Request(0x8880, t.pid))
    t.good(Request(0x8880))
