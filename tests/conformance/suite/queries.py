# SPDX-License-Identifier: GPL-2.0-or-later
"""QUERY: what matches, in which form the ids come back, what its CDB may not say."""

from __future__ import annotations

import struct

from tests.conformance import wire as w
from tests.conformance.cells import cell
from tests.conformance.lu import ABSENT, Answer, LogicalUnit
from tests.conformance.sense import INVALID_FIELD_IN_CDB
from tests.conformance.suite.instances import ROOM, pair, query, query_list, tracking

PAGE = 0x1_0000
EXTENSION = w.descriptor(0xFFEE, bytes(104))
ANY, EVERY = 0, 1


def numbered(t: LogicalUnit, *values: int) -> tuple[int, list[int]]:
    """A collection of objects with a 4-byte attribute each; the collection, the objects."""
    oids = []
    for value in values:
        oid = t.object()
        t.set(oid, PAGE, 1, struct.pack(">I", value))
        oids.append(oid)
    return t.collection(*oids), oids


def ids(t: LogicalUnit, answer: Answer) -> list[int]:
    """Object ids of the r05 result form: 12-byte header, ADDITIONAL LENGTH 4 + 8n."""
    (additional,) = struct.unpack_from(">Q", answer.data)
    t.check(additional % 8 == 4, answer, "ADDITIONAL LENGTH of 4 + 8n", additional)
    t.same(answer.data[8:12], bytes.fromhex("00000084"), "bytes 8-11: format 21h", answer)
    body = answer.data[12 : 8 + additional]
    return sorted(each for (each,) in struct.iter_unpack(">Q", body))


def matching(
    t: LogicalUnit, cid: int, *criteria: tuple[int, int, bytes, bytes], kind: int = 1
) -> list[int]:
    return ids(t, t.good(query(t, cid, query_list(*criteria, kind=kind))))


@cell("QUERY", "ok", "osd2-wire A.5, 3.9 inclusive range")
def range_of_the_example(t: LogicalUnit) -> None:
    """Minimum 4, maximum 80, both ends included."""
    cid, oids = numbered(t, 3, 4, 80, 81)
    built = query(t, cid, query_list((PAGE, 1, b"\0\0\0\4", b"\0\0\0\x50"))).build()
    wanted = bytes.fromhex(
        "01000000 0000 0014 00010000 00000001 0004 00000004 0004 00000050 00000000"
    )
    t.same(built.data_out[48:80], wanted, "the query list of the example")
    found = matching(t, cid, (PAGE, 1, b"\0\0\0\4", b"\0\0\0\x50"))
    t.same(found, sorted(oids[1:3]), "objects that match")


@cell("QUERY", "ok", "osd2-wire 3.9 no criteria")
def all_members_match_without_criteria(t: LogicalUnit) -> None:
    cid, oids = numbered(t, 1, 2)
    t.same(matching(t, cid), sorted(oids), "all members")


@cell("QUERY", "ok", "osd2-wire 3.9 no lower or upper bound")
def open_ranges(t: LogicalUnit) -> None:
    cid, oids = numbered(t, 1, 2, 3)
    two = struct.pack(">I", 2)
    t.same(matching(t, cid, (PAGE, 1, two, b"")), sorted(oids[1:]), "from 2 on")
    t.same(matching(t, cid, (PAGE, 1, b"", two)), sorted(oids[:2]), "up to 2")
    t.same(matching(t, cid, (PAGE, 1, b"", b"")), sorted(oids), "any value")


@cell("QUERY", "ok", "osd2-wire 3.9 match any, match all")
def union_and_intersection(t: LogicalUnit) -> None:
    cid, oids = numbered(t, 1, 2, 3)
    t.set(oids[2], PAGE, 2, b"x")
    one, three = struct.pack(">I", 1), struct.pack(">I", 3)
    criteria = ((PAGE, 1, one, one), (PAGE, 2, b"x", b"x"))
    t.same(matching(t, cid, *criteria, kind=ANY), sorted([oids[0], oids[2]]), "union")
    t.same(matching(t, cid, *criteria, kind=EVERY), [], "intersection of disjoint criteria")
    both = ((PAGE, 1, three, three), (PAGE, 2, b"x", b"x"))
    t.same(matching(t, cid, *both, kind=EVERY), [oids[2]], "intersection")


@cell("QUERY", "ok", "osd2-wire 3.9 objects lacking the attribute")
def without_the_attribute_is_no_match(t: LogicalUnit) -> None:
    cid, oids = numbered(t, 1, 2)
    t.set(oids[0], PAGE, 1, b"")
    t.same(matching(t, cid, (PAGE, 1, b"", b"")), [oids[1]], "the one that has it")


@cell("QUERY", "ok", "osd2-wire 3.9 byte-wise comparison")
def values_compare_byte_by_byte(t: LogicalUnit) -> None:
    """Unsigned, the first byte decides: FFh is above 01h, and no number is seen in it."""
    oids = [t.object() for _ in range(3)]
    for oid, value in zip(oids, (b"\xff", b"\x01", b"abc"), strict=True):
        t.set(oid, PAGE, 1, value)
    cid = t.collection(*oids)
    t.same(matching(t, cid, (PAGE, 1, b"\x80", b"\xff")), [oids[0]], "80h to FFh")
    t.same(matching(t, cid, (PAGE, 1, b"abc", b"abc")), [oids[2]], "equality")


@cell("QUERY", "ok", "osd2-wire 3.9 standard attributes")
def standard_attributes_can_be_asked_for(t: LogicalUnit) -> None:
    short, long = t.object(b"x" * 10), t.object(b"x" * 100)
    cid = t.collection(short, long)
    bound = struct.pack(">Q", 50)
    t.same(matching(t, cid, (0x1, 0x82, bound, b"")), [long], "logical length from 50 on")


@cell("QUERY", "ok", "osd2-wire 3.9 only members match")
def objects_outside_the_collection_do_not_match(t: LogicalUnit) -> None:
    cid, oids = numbered(t, 5)
    outside = t.object()
    t.set(outside, PAGE, 1, struct.pack(">I", 5))
    five = struct.pack(">I", 5)
    t.same(matching(t, cid, (PAGE, 1, five, five)), oids, "members")


@cell("QUERY", "ok", "osd2-wire 3.9 MATCHES COLLECTION_OBJECT_ID")
def matches_become_members(t: LogicalUnit) -> None:
    cid, oids = numbered(t, 1, 2, 3)
    matches = tracking(t, t.collection(t.object()))
    two = struct.pack(">I", 2)
    listed = query_list((PAGE, 1, two, b""))
    for order in ((listed, EXTENSION), (EXTENSION, listed)):
        t.good(query(t, cid, *order, matches=matches))
        t.same(t.members(matches), sorted(oids[1:]), "members; older ones are dropped")
    t.same(t.members(cid), sorted(oids), "members of the collection searched")


@cell("QUERY", "ok", "osd2-wire 3.9, 5.16 IMMED_TR")
def runs_on_in_the_tracking_collection(t: LogicalUnit) -> None:
    cid, oids = numbered(t, 1, 2, 3)
    matches = tracking(t)
    request = query(t, cid, query_list(), EXTENSION, matches=matches)
    t.good(request.but(byte11=0x80))
    page = 0x6000_0004
    t.until(lambda: t.get(matches, page, 2) == b"\0\0", "active command status 0")
    t.same(t.get(matches, page, 3), b"\0\0", "ended command status")
    t.same(t.members(matches), sorted(oids), "members")
    t.same(t.number(matches, page, 0x10), 3, "number of members")


@cell("QUERY", "ok", "osd2-wire 5.16 Command Tracking page after a QUERY")
def tracking_page_says_how_it_ended(t: LogicalUnit) -> None:
    cid, _ = numbered(t, 1, 2)
    matches = tracking(t)
    t.good(query(t, cid, query_list(), EXTENSION, matches=matches))
    found = [t.get(matches, 0x6000_0004, number) for number in (1, 2, 3)]
    t.same(found, [b"\x64", b"\0\0", b"\0\0"], "percent, active and ended command status")


@cell("QUERY", "zero length", "osd2-wire 3.9 an empty collection")
def nothing_to_search(t: LogicalUnit) -> None:
    t.same(matching(t, t.collection()), [], "no matches")


@cell("QUERY", "truncated", "osd2-wire 3.9 ALLOCATION LENGTH")
def additional_length_counts_the_whole_list(t: LogicalUnit) -> None:
    request = query(t, pair(t))
    whole = t.good(request).data
    t.same(whole[:8], struct.pack(">Q", 4 + 16), "ADDITIONAL LENGTH")
    for room in (4, 12, 20, 27):
        answer = t.good(request.but(length=room, data_in=room))
        t.check(len(answer.data) <= room, answer, f"at most {room} bytes")
        whole_ids = min(len(whole), room - (room - 12) % 8 if room > 12 else room)
        t.same(answer.data[:whole_ids], whole[:whole_ids], "the bytes that fit", answer)


@cell("QUERY", "own fields", "osd2-wire 3.9 checks")
def combinations_that_cannot_be(t: LogicalUnit) -> None:
    cid = pair(t)
    request = query(t, cid)
    t.bad_field(request.but(byte11=0x80), (11, 32, 40))
    t.bad_field(request.but(address=cid), (24, 32, 40))
    t.bad_field(query(t, cid, query_list(), EXTENSION, matches=cid), 40)
    t.bad_field(query(t, cid, query_list(), EXTENSION, matches=ABSENT), 40)
    if "CREATE USER TRACKING COLLECTION" in t.supported:
        matches = tracking(t)
        both = query(t, cid, query_list(), EXTENSION, matches=matches)
        t.bad_field(both.but(length=ROOM), (32, 40))
        t.bad_field(query(t, cid, query_list(), matches=matches))
        t.bad_field(query(t, cid, EXTENSION, matches=matches))
    t.bad_field(query(t, cid, query_list(), EXTENSION))


@cell("QUERY", "own fields", "osd2-wire 3.9 matches must be a tracking collection")
def matches_in_a_linked_collection(t: LogicalUnit) -> None:
    other = t.collection()
    t.bad_field(query(t, pair(t), query_list(), EXTENSION, matches=other), 40)


@cell("QUERY", "bad page", "osd2-wire 3.9 user object pages only")
def criteria_on_other_pages(t: LogicalUnit) -> None:
    cid = pair(t)
    for page in (0x3000_0001, 0x6000_0001, 0x9000_0001, 0xFFFF_FFFE):
        t.bad_field(query(t, cid, query_list((page, 1, b"", b""))))


@cell("QUERY", "entry overrun", "osd2-wire 3.9 QUERY ENTRY LENGTH")
def criteria_that_contradict_themselves(t: LogicalUnit) -> None:
    cid = pair(t)
    good = bytearray(query_list((PAGE, 1, b"\0\0\0\4", b"\0\0\0\x50")))
    entry = 8 + 4
    for at, value in ((entry + 2, 0x100), (entry + 2, 11), (entry + 12, 0x100), (entry + 18, 5)):
        wrong = bytearray(good)
        wrong[at : at + 2] = value.to_bytes(2, "big")
        t.bad_field(query(t, cid, bytes(wrong)))
    kind = bytearray(good)
    kind[8] = 2
    t.bad_field(query(t, cid, bytes(kind)))


@cell("QUERY", "segment type", "osd2-wire 3.9 the list must be there")
def no_query_list(t: LogicalUnit) -> None:
    request = query(t, pair(t))
    t.bad_field(request.but(segment=b""))
    t.bad_field(request.but(segment=w.segment(0x88A0)))
    t.bad_field(request.but(segment=w.segment(0x88A0, EXTENSION)))


@cell("QUERY", "segment pad", "osd2-wire 3.9, 4.3 a QUERY LIST has no pad")
def list_padded_outside(t: LogicalUnit) -> None:
    """28 bytes of list: zeros to a multiple of 8 belong into the list, not behind it."""
    entry = struct.pack(">2xHIIHIHI", 20, PAGE, 1, 4, 4, 4, 80)
    content = struct.pack(">B3x", 1) + entry
    cid = pair(t)
    t.good(query(t, cid, w.descriptor(0x0002, content.ljust(32, b"\0"))))
    t.bad_field(query(t, cid, w.descriptor(0x0002, content)))


@cell("QUERY", "wrong type", "osd2-wire 3.9 the collection searched")
def partition_is_no_collection(t: LogicalUnit) -> None:
    answer = t.send(query(t, pair(t)).but(oid=0))
    t.is_refused(answer, INVALID_FIELD_IN_CDB, 24)


@cell("QUERY", "ok", "osd2-wire 9-45 a tracking collection as the one searched")
def tracking_collections_are_searched_too(t: LogicalUnit) -> None:
    cid, oids = numbered(t, 1, 2)
    t.same(matching(t, tracking(t, cid)), sorted(oids), "members")
