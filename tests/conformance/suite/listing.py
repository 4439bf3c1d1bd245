# SPDX-License-Identifier: GPL-2.0-or-later
"""LIST and LIST COLLECTION: ids, pages, attributes beside them."""

from __future__ import annotations

import struct

from tests.conformance import wire as w
from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, Row
from tests.conformance.lu import Answer, LogicalUnit
from tests.conformance.suite.instances import MAKE
from tests.conformance.wire import Request

APPLICATION = 0x1_0000


def listing(t: LogicalUnit, row: Row, count: int = 5) -> tuple[Request, list[int]]:
    """A request that lists `count` ids, and the ids."""
    pid = t.partition()
    ids = sorted(t.object(pid=pid) for _ in range(count))
    if row.name == "LIST":
        return Request(0x8883, pid, 0, 4096, data_in=4096), ids
    cid = t.collection(*ids, pid=pid)
    return Request(0x8897, pid, cid, 4096, data_in=4096), ids


LISTS = [BY_NAME["LIST"], BY_NAME["LIST COLLECTION"]]


def blocks_of(answer: Answer) -> list[w.ObjectBlock]:
    return w.object_blocks(read_list(answer).body)


def read_list(answer: Answer) -> w.ObjectList:
    return w.ObjectList.read(answer.data)


@each(LISTS, "ok", "osd2-wire 3.8 user objects, ascending")
def ids_in_ascending_order(t: LogicalUnit, row: Row) -> None:
    request, ids = listing(t, row)
    answer = t.good(request)
    found = read_list(answer)
    t.same(found.ids(), ids, "object ids", answer)
    t.same(found.additional, 16 + 8 * len(ids), "ADDITIONAL LENGTH", answer)
    t.same((found.continuation, found.identifier), (0, 0), "continuation id, identifier", answer)
    t.same(answer.data[20:24], bytes.fromhex("00000084"), "bytes 20-23: format 21h", answer)


@cell("LIST", "ok", "osd2-wire 3.8 partitions")
def partition_ids(t: LogicalUnit) -> None:
    pid = t.partition()
    answer = t.good(Request(0x8883, 0, 0, 4096, pid, data_in=4096))
    found = read_list(answer)
    t.check(pid in found.ids(), answer, f"partition {pid:X}h", found.ids())
    t.same(found.ids(), sorted(found.ids()), "ascending order", answer)
    t.check(min(found.ids()) >= pid, answer, "none below the initial id", found.ids())
    t.same(answer.data[23] & 0xFD, 0x04, "byte 23: format 01h", answer)


@cell("LIST COLLECTION", "ok", "osd2-wire 3.8 collections of a partition")
def collection_ids(t: LogicalUnit) -> None:
    pid = t.partition()
    ids = sorted(t.collection(pid=pid) for _ in range(3))
    t.object(pid=pid)
    request = Request(0x8897, pid, 0, 4096, 0x1_0000, data_in=4096)
    answer = t.good(request)
    t.same(read_list(answer).ids(), ids, "collection ids", answer)
    t.same(answer.data[23] & 0xFD, 0x44, "byte 23: format 11h", answer)


@each(LISTS, "zero length", "osd2-wire 3.8 nothing to list")
def nothing_to_list(t: LogicalUnit, row: Row) -> None:
    request, _ = listing(t, row, 0)
    answer = t.good(request)
    t.same(answer.data, struct.pack(">QQIHBB", 16, 0, 0, 0, 0, 0x84), "the header alone", answer)


@each(LISTS, "ok", "osd2-wire 3.8 INITIAL OBJECT_ID")
def from_an_id_on(t: LogicalUnit, row: Row) -> None:
    request, ids = listing(t, row)
    answer = t.good(request.but(address=ids[2]))
    t.same(read_list(answer).ids(), ids[2:], "ids from the third on", answer)
    answer = t.good(request.but(address=ids[2] + 1))
    t.same(read_list(answer).ids(), ids[3:], "ids after the third", answer)
    answer = t.good(request.but(address=2**64 - 1))
    t.same(read_list(answer).ids(), [], "no ids", answer)


@each(LISTS, "truncated", "osd2-wire 3.8 CONTINUATION OBJECT_ID")
def continued_where_it_was_cut(t: LogicalUnit, row: Row) -> None:
    request, ids = listing(t, row, 7)
    found: list[int] = []
    start = identifier = 0
    for _ in range(4):
        cut = request.but(length=24 + 16 + 7, data_in=47, address=start, word48=identifier)
        answer = t.good(cut)
        part = read_list(answer)
        t.check(len(part.ids()) <= 2, answer, "whole descriptors only", part.ids())
        found += part.ids()
        if not part.continuation:
            t.same(part.identifier, 0, "LIST IDENTIFIER of a complete list", answer)
            break
        t.check(part.identifier != 0, answer, "a LIST IDENTIFIER other than 0")
        left = [each for each in ids if each >= (start or 0)]
        t.same(part.continuation, left[len(part.ids())], "first id that did not fit", answer)
        t.same(part.additional, 16 + 8 * len(left), "ADDITIONAL LENGTH, untruncated", answer)
        start, identifier = part.continuation, part.identifier
    t.same(found, ids, "all ids, once")


@each(LISTS, "truncated", "osd2-wire 3.8 LSTCHG")
def change_between_two_parts_of_a_list(t: LogicalUnit, row: Row) -> None:
    """LSTCHG must be told of a change; a target may think that more has changed than has."""
    request, ids = listing(t, row, 5)
    first = t.good(request.but(length=40, data_in=40))
    part = read_list(first)
    t.check(not part.changed, first, "LSTCHG 0 in the first part")
    again = request.but(address=part.continuation, word48=part.identifier)
    same = t.good(again)
    t.same(read_list(same).ids(), ids[2:], "the rest of the ids", same)
    t.good(Request(0x888A, request.pid, ids[4]))
    changed = t.good(again)
    t.same(read_list(changed).ids(), ids[2:4], "ids after a REMOVE", changed)
    t.check(read_list(changed).changed, changed, "LSTCHG 1 after a REMOVE")


@each(LISTS, "own fields", "osd2-wire 3.8 sort order")
def reserved_sort_orders(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for order in (1, 15):
        t.bad_field(request.but(byte11=order), 11)


@each(LISTS, "own fields", "osd2-wire 3.8 ALLOCATION LENGTH 1 to 23")
def allocation_below_a_header(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for room in (1, 23):
        t.bad_field(request.but(length=room, data_in=room), 32)
    t.good(request.but(length=24, data_in=24))


@each(LISTS, "multi-object", "osd2-wire 3.8 LIST_ATTR")
def attributes_of_each_object(t: LogicalUnit, row: Row) -> None:
    request, ids = listing(t, row, 3)
    for oid in ids:
        t.set(oid, APPLICATION, 1, b"of %d" % (oid & 7), request.pid)
    gets = ((APPLICATION, 1), (APPLICATION, 2))
    answer = t.good(request.but(byte11=0x40, gets=gets))
    found = read_list(answer)
    t.same(answer.data[23] & 0xFD, 0x88, "byte 23: format 22h", answer)
    blocks = w.object_blocks(found.body)
    t.same([each.oid for each in blocks], ids, "object ids", answer)
    for block in blocks:
        t.same(block.kind, w.USER_OBJECT, "object type", answer)
        wanted = [(APPLICATION, 1, b"of %d" % (block.oid & 7)), (APPLICATION, 2, b"")]
        t.same(block.attributes, wanted, f"attributes of {block.oid:X}h", answer)


@each(LISTS, "multi-object", "osd2-wire 3.8 attributes of the containing object")
def attributes_of_the_container_beside_them(t: LogicalUnit, row: Row) -> None:
    request, _ = listing(t, row, 2)
    page = 0x3001_0000 if row.name == "LIST" else 0x6001_0000
    t.set(request.oid, page, 1, b"whole", request.pid)
    gets = ((page, 1), (APPLICATION, 1))
    answer = t.good(request.but(byte11=0x40, gets=gets))
    blocks = w.object_blocks(read_list(answer).body)
    t.same([each.attributes for each in blocks], [[(APPLICATION, 1, b"")]] * 2, "each", answer)
    t.same(answer.values, [b"whole"], "retrieved attributes", answer)


@cell("LIST", "multi-object", "osd2-wire 3.8 partitions, beside attributes of the root")
def attributes_of_the_root_beside_partitions(t: LogicalUnit) -> None:
    pid, count, name = t.partition(), (0x9000_0001, 0xC0), (0x3000_0001, 1)
    gets = (count, name)
    answer = t.good(Request(0x8883, 0, 0, 4096, pid, byte11=0x40, gets=gets, data_in=4096))
    found = {each.oid: each.attributes for each in blocks_of(answer)}
    t.same(found.get(pid), [(*name, struct.pack(">Q", pid))], "the partition's", answer)
    t.same([len(value) for value in answer.values], [8], "lengths of the root's", answer)


@cell("LIST COLLECTION", "multi-object", "osd2-wire 3.8 collections, beside the partition's")
def attributes_of_the_partition_beside_collections(t: LogicalUnit) -> None:
    pid, own, name = t.partition(), (0x3000_0001, 1), (0x6000_0001, 2)
    cid = t.collection(pid=pid)
    request = Request(0x8897, pid, 0, 4096, 0x1_0000, byte11=0x40, data_in=4096)
    answer = t.good(request.but(gets=(name, own)))
    found = [(each.oid, each.attributes) for each in blocks_of(answer)]
    t.same(found, [(cid, [(*name, struct.pack(">Q", cid))])], "the collection's", answer)
    t.same(answer.values, [struct.pack(">Q", pid)], "the partition's", answer)


@cell("LIST COLLECTION", "multi-object", "osd2-wire 3.8 collections with attributes")
def attributes_of_collections(t: LogicalUnit) -> None:
    pid, name = t.partition(), (0x6000_0001, 9)
    cid = t.collection(pid=pid)
    t.set(cid, *name, b"name", pid)
    request = Request(0x8897, pid, 0, 4096, 0x1_0000, byte11=0x40, gets=(name,), data_in=4096)
    answer = t.good(request)
    t.same(answer.data[23] & 0xFD, 0x48, "byte 23: format 12h", answer)
    found = [(each.oid, each.kind, each.attributes) for each in blocks_of(answer)]
    t.same(found, [(cid, w.COLLECTION, [(*name, b"name")])], "blocks", answer)


@each(LISTS, "own fields", "osd2-wire 3.8 LIST_ATTR needs list format")
def attributes_in_page_format(t: LogicalUnit, row: Row) -> None:
    request, _ = listing(t, row, 1)
    t.bad_field(request.but(byte11=0x40, form=2, page=w.CURRENT_COMMAND), (11, 52))


@each(LISTS, "Data-In short", "osd2-wire 8.4, 3.8 ALLOCATION LENGTH")
def allocation_beyond_any_transport(t: LogicalUnit, row: Row) -> None:
    request, ids = listing(t, row, 3)
    answer = t.good(request.but(length=2**64 - 1))
    t.same(read_list(answer).ids(), ids, "object ids", answer)


@cell("LIST", "multi-object", "osd2-wire 3.8 partitions with attributes")
def attributes_of_partitions(t: LogicalUnit) -> None:
    pid = t.partition()
    t.set(0, 0x3000_0001, 9, b"name", pid)
    gets = ((0x3000_0001, 9),)
    answer = t.good(Request(0x8883, 0, 0, 4096, pid, byte11=0x40, gets=gets, data_in=4096))
    t.same(answer.data[23] & 0xFD, 0x08, "byte 23: format 02h", answer)
    blocks = {each.oid: each for each in w.object_blocks(read_list(answer).body)}
    t.check(pid in blocks, answer, f"partition {pid:X}h", list(blocks))
    t.same((blocks[pid].kind, blocks[pid].attributes), (2, [(*gets[0], b"name")]), "block", answer)
