# SPDX-License-Identifier: GPL-2.0-or-later
"""Bytes 10 and 12 of every CDB: isolation, FUA, DPO, timestamps left as they are; and concurrency."""

from __future__ import annotations

import struct

from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, COLLECTIONS, PARTITIONS, Row
from tests.conformance.lu import GOOD, LogicalUnit
from tests.conformance.sense import INVALID_FIELD_IN_CDB
from tests.conformance.suite.instances import (
    CONTENT,
    FLUSHES,
    KEEPS,
    MAKE,
    MEMBERS,
    copy,
    standard,
)
from tests.conformance.wire import CURRENT_COMMAND, DPO, FUA, Request

SUPPORTED_ISOLATION = (0x9000_0001, 0x111)
AT_ONCE = 12


@each(standard(*FLUSHES), "isolation", "osd2-wire 2.2, 5.8 #111h")
def announced_methods_are_taken(t: LogicalUnit, row: Row) -> None:
    bits = t.get(0, *SUPPORTED_ISOLATION, 0)
    t.same(len(bits), 32, "length of the bit map of isolation methods")
    for method in (1, 2, 4, 5, 7):
        request = MAKE[row.name](t).but(byte10=method)
        if bits[0] & 0x80 >> method:
            t.good(request)
        else:
            t.bad_field(request, 10)


@each(standard(), "FUA, DPO", "osd2-wire 2.2 b4, b3")
def caching_bits(t: LogicalUnit, row: Row) -> None:
    for bits in (FUA, DPO, FUA | DPO):
        t.good(MAKE[row.name](t).but(byte10=bits))


def watched(t: LogicalUnit, row: Row, request: Request) -> tuple[int, int]:
    """An object the command touches and leaves there, and the base of its pages."""
    if row.name in MEMBERS:
        return t.members(request.oid)[0], 0
    if row.addresses in ("object", "any") and row.name not in KEEPS:
        return request.oid, 0
    if row.addresses == "collection" and row.name not in KEEPS:
        return request.oid, COLLECTIONS
    return 0, PARTITIONS  # what is made or removed leaves its partition


@each(
    [
        row
        for row in standard("GET ATTRIBUTES", "REMOVE PARTITION")
        if row.addresses not in ("root", "new partition")
    ],
    "timestamps kept",
    "osd2-wire 2.4, 9-4 7Fh",
)
def no_timestamp_moves(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t).but(byte12=0x7F)
    oid, base = watched(t, row, request)

    def stamps() -> list[str]:
        return [t.get(oid, base + 3, number).hex() for number in (1, 2, 3, 4, 5)]

    before, start = stamps(), t.number(0, 0x9000_0001, 0x100, 0)
    t.until(lambda: t.number(0, 0x9000_0001, 0x100, 0) > start + 1, "a clock that moves on")
    t.good(request)
    t.same(stamps(), before, "timestamps 1 to 5")


@cell("GET ATTRIBUTES", "timestamps kept", "osd2-wire 2.4, 9-4 7Fh")
def reading_attributes_moves_nothing(t: LogicalUnit) -> None:
    oid = t.object()
    name = (3, 2)
    old, start = t.get(oid, *name), t.number(0, 0x9000_0001, 0x100, 0)
    t.until(lambda: t.number(0, 0x9000_0001, 0x100, 0) > start + 1, "a clock that moves on")
    t.good(Request(0x888E, t.pid, oid, byte12=0x7F, gets=((1, 0x82),)))
    t.same(t.get(oid, *name), old, "'attributes accessed' timestamp")


# ---- concurrency ----

READERS = ("READ", "GET ATTRIBUTES", "LIST", "LIST COLLECTION", "QUERY", "READ MAP")
REPEATABLE = (
    *READERS,
    *FLUSHES,
    *("CLEAR", "SET ATTRIBUTES", "OBJECT STRUCTURE CHECK", "GET MEMBER ATTRIBUTES"),
    *("SET MEMBER ATTRIBUTES", "REMOVE MEMBER OBJECTS"),
    *("PERFORM SCSI COMMAND", "PERFORM TASK MANAGEMENT FUNCTION"),
)


@each([BY_NAME[name] for name in REPEATABLE], "concurrency", "osd2-wire 2.2 isolation by default")
def the_same_many_times_at_once(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for answer in t.together([request] * AT_ONCE):
        t.is_good(answer)


@each(
    [
        BY_NAME[name]
        for name in (
            *("CREATE", "CREATE AND WRITE", "CREATE COLLECTION", "COPY USER OBJECTS"),
            *("CREATE USER TRACKING COLLECTION", "CREATE PARTITION"),
        )
    ],
    "concurrency",
    "osd2-wire 7.4 requested id taken",
)
def one_of_many_gets_the_id(t: LogicalUnit, row: Row) -> None:
    answers = t.together([MAKE[row.name](t)] * AT_ONCE)
    lucky = [each for each in answers if each.status == GOOD]
    t.same(len(lucky), 1, "commands that end GOOD")
    place = 16 if row.name == "CREATE PARTITION" else 24
    for answer in answers:
        if answer.status != GOOD:
            t.is_refused(answer, INVALID_FIELD_IN_CDB, place)


@each(
    [BY_NAME[name] for name in ("CREATE", "CREATE AND WRITE", "CREATE COLLECTION")],
    "concurrency",
    "osd2-wire 1.1, 3.2 requested id 0",
)
def each_gets_an_id_of_its_own(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t).but(oid=0, gets=((CURRENT_COMMAND, 4),))
    ids = [t.is_good(answer).values[0] for answer in t.together([request] * AT_ONCE)]
    t.same(len(set(ids)), AT_ONCE, "different ids")


@each(
    [BY_NAME[name] for name in ("REMOVE", "REMOVE COLLECTION", "REMOVE PARTITION")],
    "concurrency",
    "osd2-wire 7.4 object does not exist",
)
def one_of_many_removes_it(t: LogicalUnit, row: Row) -> None:
    answers = t.together([MAKE[row.name](t)] * AT_ONCE)
    t.same(len([each for each in answers if each.status == GOOD]), 1, "commands that end GOOD")
    place = 16 if row.name == "REMOVE PARTITION" else 24
    for answer in answers:
        if answer.status != GOOD:
            t.is_refused(answer, INVALID_FIELD_IN_CDB, place)


@cell("APPEND", "concurrency", "osd2-wire 5.19 #5")
def appends_do_not_overlap(t: LogicalUnit) -> None:
    oid = t.object()
    requests = [
        Request(0x8887, t.pid, oid, 8, data=b"%08d" % n, gets=((CURRENT_COMMAND, 5),))
        for n in range(AT_ONCE)
    ]
    starts = [int.from_bytes(t.is_good(each).values[0], "big") for each in t.together(requests)]
    t.same(sorted(starts), list(range(0, 8 * AT_ONCE, 8)), "starting bytes")
    whole = t.read(oid)
    for number, start in enumerate(starts):
        t.same(whole[start : start + 8], b"%08d" % number, f"bytes at {start}")


@cell("WRITE", "concurrency", "osd2-wire 2.2, 5.8 #120h data atomicity")
def readers_see_no_half_of_a_write(t: LogicalUnit) -> None:
    """Within the data atomicity guarantee the root announces."""
    guarantee = t.number(0, 0x9000_0001, 0x120, 0)
    length = min(guarantee, 64 << 10)
    if length < 2:
        t.skip("the root announces no data atomicity guarantee")
    oid = t.object(bytes(length))
    requests = []
    for number in range(AT_ONCE):
        data = bytes([number + 1]) * length
        requests.append(Request(0x8886, t.pid, oid, length, data=data))
        requests.append(Request(0x8885, t.pid, oid, length, data_in=length))
    for answer in t.together(requests):
        t.is_good(answer)
        if answer.data:
            seen = set(answer.data)
            t.check(len(seen) == 1, None, "bytes of one WRITE in each READ", sorted(seen))


@cell("CREATE AND WRITE", "concurrency", "osd2-wire 3.2 CREATE AND WRITE")
def nobody_sees_the_object_without_its_data(t: LogicalUnit) -> None:
    oid = t.free_oid()
    read = Request(0x8885, t.pid, oid, 64, data_in=64)
    create = Request(0x8892, t.pid, oid, 64, data=CONTENT)
    for answer in t.together([read, read, create, read, read, read]):
        if answer.data:
            t.is_good(answer)
            t.same(answer.data, CONTENT, "the data, whole", answer)
        elif answer.status != GOOD:
            t.is_refused(answer, INVALID_FIELD_IN_CDB, 24)


@cell("SET ATTRIBUTES", "concurrency", "osd2-wire 3.7, 5.8 #122h one list at a time")
def a_list_is_set_as_a_whole(t: LogicalUnit) -> None:
    oid = t.object()
    names = ((0x1_0000, 1), (0x1_0000, 2))
    requests = []
    for number in range(AT_ONCE):
        value = struct.pack(">I", number)
        sets = tuple((*name, value) for name in names)
        requests.append(Request(0x888F, t.pid, oid, sets=sets))
        requests.append(Request(0x888E, t.pid, oid, gets=names))
    for answer in t.together(requests):
        t.is_good(answer)
        if answer.data:
            found = answer.values
            t.check(found[0] == found[1], answer, "two attributes of the same list", found)


@cell("PUNCH", "concurrency", "osd2-wire 3.3 PUNCH")
def each_punch_takes_its_bytes(t: LogicalUnit) -> None:
    oid = t.object(b"x" * 64)
    request = Request(0x8884, t.pid, oid, 2, 0)
    for answer in t.together([request] * AT_ONCE):
        t.is_good(answer)
    t.same(t.number(oid, 1, 0x82), 64 - 2 * AT_ONCE, "logical length")


@cell("COPY USER OBJECTS", "concurrency", "osd2-wire 3.13")
def copies_beside_writes_are_whole(t: LogicalUnit) -> None:
    length = 32 << 10
    source = t.object(bytes(length))
    requests, copies = [], []
    for number in range(6):
        data = bytes([number + 1]) * length
        requests.append(Request(0x8886, t.pid, source, length, data=data))
        copies.append(t.free_oid())
        requests.append(copy(t, source, copies[-1]))
    for answer in t.together(requests):
        t.is_good(answer)
    for oid in copies:
        seen = set(t.read(oid, 0, length))
        t.check(len(seen) == 1, None, "bytes of one WRITE in the copy", sorted(seen))
