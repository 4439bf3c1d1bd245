# SPDX-License-Identifier: GPL-2.0-or-later
"""Collections: membership, member commands, tracking collections."""

from __future__ import annotations

import struct

from tests.conformance import wire as w
from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, Row
from tests.conformance.lu import ABSENT, Answer, LogicalUnit
from tests.conformance.sense import (
    INVALID_FIELD_IN_CDB,
    INVALID_FIELD_IN_LIST,
    NOT_EMPTY,
)
from tests.conformance.suite.instances import pair, tracking
from tests.conformance.wire import Request

APPLICATION = 0x1_0000
COLLECTIONS_PAGE = 0x4
TYPE = (0x6000_0001, 0xA)
TRACKING_PAGE = 0x6000_0004


# ---- collections ----


@cell("CREATE COLLECTION", "ok", "osd2-wire 3.2, 5.10 type LINKED")
def linked_collection(t: LogicalUnit) -> None:
    cid = t.free_oid()
    t.good(Request(0x8895, t.pid, cid))
    t.same(t.get(cid, *TYPE), b"\0", "collection type")
    t.same(t.get(cid, 0x6000_0001, 1), struct.pack(">Q", t.pid), "partition id")
    t.same(t.get(cid, 0x6000_0001, 2), struct.pack(">Q", cid), "collection id")
    t.same((t.members(cid), cid in t.members(0)), ([], True), "members, among the collections")


@cell("CREATE COLLECTION", "ok", "osd2-wire 3.8 collections are no user objects")
def collection_is_not_listed_with_user_objects(t: LogicalUnit) -> None:
    t.check(t.collection() not in t.user_objects(), None, "a LIST of user objects without it")


@cell("REMOVE COLLECTION", "ok", "osd2-wire 3.2 REMOVE COLLECTION")
def collection_is_gone(t: LogicalUnit) -> None:
    cid = t.collection()
    t.good(Request(0x8896, t.pid, cid))
    t.bad_field(Request(0x8896, t.pid, cid), 24)


@cell("REMOVE COLLECTION", "not empty", "osd2-wire 3.2 FCR 0")
def collection_with_members(t: LogicalUnit) -> None:
    cid = pair(t)
    t.refused(Request(0x8896, t.pid, cid), NOT_EMPTY)
    t.same(len(t.members(cid)), 2, "members")


@cell("REMOVE COLLECTION", "ok", "osd2-wire 3.2 FCR 1")
def members_stay_without_membership(t: LogicalUnit) -> None:
    oid, cid = t.object(), t.free_oid()
    t.good(Request(0x8895, t.pid, cid))
    t.set(oid, COLLECTIONS_PAGE, 7, struct.pack(">Q", cid))
    t.good(Request(0x8896, t.pid, cid, byte11=1))
    t.same((t.exists(oid), t.get(oid, COLLECTIONS_PAGE, 7)), (True, b""), "exists, membership")


# ---- the Collections page ----


@cell("SET ATTRIBUTES", "ok", "osd2-wire 5.14, 9.1 Collections page")
def joins_moves_and_leaves(t: LogicalUnit) -> None:
    oid, first, second = t.object(), t.collection(), t.collection()
    t.set(oid, COLLECTIONS_PAGE, 1, struct.pack(">Q", first))
    t.same((t.members(first), t.members(second)), ([oid], []), "members after joining")
    t.set(oid, COLLECTIONS_PAGE, 1, struct.pack(">Q", second))
    t.same((t.members(first), t.members(second)), ([], [oid]), "the same number, another id")
    t.set(oid, COLLECTIONS_PAGE, 1, b"")
    t.same((t.members(first), t.members(second)), ([], []), "members after length 0")


@cell("SET ATTRIBUTES", "own fields", "osd2-wire 5.14 Collections page")
def memberships_that_cannot_be(t: LogicalUnit) -> None:
    oid, cid = t.object(), t.collection()
    t.set(oid, COLLECTIONS_PAGE, 1, struct.pack(">Q", cid))
    name = (COLLECTIONS_PAGE, 2)
    values = {
        "joined through another number": struct.pack(">Q", cid),
        "absent collection": struct.pack(">Q", ABSENT),
        "user object": struct.pack(">Q", oid),
        "length 4": bytes(4),
        "length 9": bytes(9),
    }
    for value in values.values():
        request = Request(0x888F, t.pid, oid, sets=((*name, value),))
        answer = t.send(request)
        t.check(answer.status != 0, answer, "a refusal (26/00 or 24/00) with descriptor 08h")
        code = answer.sense.code if answer.sense else 0
        allowed = (INVALID_FIELD_IN_LIST, INVALID_FIELD_IN_CDB)
        t.is_refused(answer, code if code in allowed else allowed[0], attribute=name)
    t.same(t.members(cid), [oid], "members")


@cell("CREATE", "ok", "osd2-wire 5.14 membership set in CREATE")
def created_as_a_member(t: LogicalUnit) -> None:
    oid, cid = t.free_oid(), t.collection()
    sets = ((COLLECTIONS_PAGE, 1, struct.pack(">Q", cid)),)
    t.good(Request(0x8882, t.pid, oid, sets=sets))
    t.same(t.members(cid), [oid], "members")


@cell("CREATE", "ok", "osd2-wire 3.2, 5.14 many created as members")
def many_created_as_members(t: LogicalUnit) -> None:
    cid = t.collection()
    sets = ((COLLECTIONS_PAGE, 1, struct.pack(">Q", cid)),)
    t.good(Request(0x8882, t.pid, length=4 << 48, sets=sets))
    t.same(len(t.members(cid)), 4, "members")


@cell("CREATE", "all or nothing", "osd2-wire 3.2, 5.14 membership that cannot be")
def no_object_without_its_membership(t: LogicalUnit) -> None:
    oid, name = t.free_oid(), (COLLECTIONS_PAGE, 1)
    answer = t.send(Request(0x8882, t.pid, oid, sets=((*name, struct.pack(">Q", ABSENT)),)))
    code = answer.sense.code if answer.sense else 0
    allowed = (INVALID_FIELD_IN_LIST, INVALID_FIELD_IN_CDB)
    t.is_refused(answer, code if code in allowed else allowed[0], attribute=name)
    t.check(not t.exists(oid), None, "no object of that id afterwards")


@cell("SET ATTRIBUTES", "quota", "osd2-wire 5.12, 5.14 collections per user object")
def more_collections_than_an_object_may_be_in(t: LogicalUnit) -> None:
    pid = t.partition()
    t.set(0, 0x3000_0002, 0x1_0081, struct.pack(">I", 1), pid)
    oid, first, second = t.object(pid=pid), t.collection(pid=pid), t.collection(pid=pid)
    t.set(oid, COLLECTIONS_PAGE, 1, struct.pack(">Q", first), pid)
    over = ((COLLECTIONS_PAGE, 2, struct.pack(">Q", second)),)
    t.refused(Request(0x888F, pid, oid, sets=over), 0x5507, key=7)
    t.same(t.members(second, pid), [], "members")


# ---- member commands ----

BOTH = [BY_NAME["GET MEMBER ATTRIBUTES"], BY_NAME["SET MEMBER ATTRIBUTES"]]


@cell("GET MEMBER ATTRIBUTES", "ok", "osd2-wire 3.10, 5.5 one group for each member")
def attributes_of_every_member(t: LogicalUnit) -> None:
    ids = sorted((t.object(), t.object()))
    cid = t.collection(*ids)
    t.set(ids[0], APPLICATION, 1, b"first")
    request = Request(0x88A2, t.pid, cid, gets=((APPLICATION, 1),), allocation=4096)
    _same_groups(t, t.good(request), {ids[0]: b"first", ids[1]: b""})


def _same_groups(t: LogicalUnit, answer: Answer, wanted: dict[int, bytes]) -> None:
    t.same(answer.retrieved[0], w.MULTI_OBJECT_LIST, "list type", answer)
    length = int.from_bytes(answer.retrieved[4:8], "big")
    blocks = w.object_blocks(answer.retrieved[8 : 8 + length])
    t.same({each.kind for each in blocks}, {w.USER_OBJECT}, "object types", answer)
    found = {each.oid: each.attributes for each in blocks}
    expected = {oid: [(APPLICATION, 1, value)] for oid, value in wanted.items()}
    t.same(found, expected, "attributes by object", answer)


@cell("SET MEMBER ATTRIBUTES", "ok", "osd2-wire 3.10 set on each member")
def set_on_every_member(t: LogicalUnit) -> None:
    ids = (t.object(), t.object())
    cid, other = t.collection(*ids), t.object()
    t.good(Request(0x88A3, t.pid, cid, sets=((APPLICATION, 1, b"all"),)))
    values = [t.get(oid, APPLICATION, 1) for oid in (*ids, other)]
    t.same(values, [b"all", b"all", b""], "two members, and another object")


@cell("SET MEMBER ATTRIBUTES", "set-one format", "osd2-wire 3.10 CDBFMT 1, with the list sent too")
def one_set_from_the_cdb(t: LogicalUnit) -> None:
    oid = t.object()
    cid = t.collection(oid)
    surplus = w.set_list((APPLICATION, 1, b"x"))
    request = Request(0x88A3, t.pid, cid, form=1, set_one=(APPLICATION, 1, b"one"))
    t.good(request.but(surplus=surplus))
    t.same(t.get(oid, APPLICATION, 1), b"one", "the member's attribute")


@cell("SET MEMBER ATTRIBUTES", "set/get order", "osd2-wire 3.10 set, then get")
def set_then_get_of_members(t: LogicalUnit) -> None:
    oid = t.object()
    cid = t.collection(oid)
    t.set(oid, APPLICATION, 1, b"old")
    sets, gets = ((APPLICATION, 1, b"new"),), ((APPLICATION, 1),)
    answer = t.good(Request(0x88A3, t.pid, cid, sets=sets, gets=gets, allocation=4096))
    _same_groups(t, answer, {oid: b"new"})


@each(
    BOTH,
    "zero length",
    "osd2-wire 3.10 a collection without members",
)
def no_members(t: LogicalUnit, row: Row) -> None:
    cid = t.collection()
    sets = ((APPLICATION, 1, b"x"),) if row.code == 0x88A3 else ()
    t.good(Request(row.code, t.pid, cid, sets=sets, gets=((APPLICATION, 1),)))


@each(
    BOTH,
    "bad page",
    "osd2-wire 3.10 user object pages only",
)
def pages_of_other_types_for_members(t: LogicalUnit, row: Row) -> None:
    cid = pair(t)
    for page in (0x6001_0000, 0x3001_0000, 0xC000_0001):
        name = (page, 1)
        if row.code == 0x88A2:
            request = Request(row.code, t.pid, cid, gets=(name,))
        else:
            request = Request(row.code, t.pid, cid, sets=((*name, b"x"),))
        t.refused(request, INVALID_FIELD_IN_LIST, attribute=name)


@cell("SET MEMBER ATTRIBUTES", "read-only", "osd2-wire 5.2 setting a read-only attribute")
def read_only_attributes_of_members(t: LogicalUnit) -> None:
    cid, name = pair(t), (0x1, 0x81)
    request = Request(0x88A3, t.pid, cid, sets=((*name, bytes(8)),))
    t.refused(request, INVALID_FIELD_IN_LIST, attribute=name)


@cell("SET MEMBER ATTRIBUTES", "all or nothing", "osd2-wire 5.2 a refused list")
def no_member_is_changed(t: LogicalUnit) -> None:
    ids = (t.object(), t.object())
    sets = ((APPLICATION, 1, b"x"), (0x1, 0x81, bytes(8)))
    request = Request(0x88A3, t.pid, t.collection(*ids), sets=sets)
    t.refused(request, INVALID_FIELD_IN_LIST, attribute=(0x1, 0x81))
    t.same([t.get(oid, APPLICATION, 1) for oid in ids], [b"", b""], "the members' attribute")


@each(
    BOTH,
    "undefined",
    "osd2-wire 5.4, 5.5 undefined attributes of members",
)
def members_without_the_attribute(t: LogicalUnit, row: Row) -> None:
    oid = t.object()
    request = Request(row.code, t.pid, t.collection(oid), gets=((APPLICATION, 1),))
    _same_groups(t, t.good(request), {oid: b""})


@each(
    BOTH,
    "truncated",
    "osd2-wire 5.4, 5.5 allocation too small",
)
def groups_are_cut_not_refused(t: LogicalUnit, row: Row) -> None:
    request = Request(row.code, t.pid, pair(t), gets=((APPLICATION, 1),), allocation=40)
    answer = t.good(request)
    t.check(len(answer.retrieved) <= 40, answer, "at most 40 bytes")
    t.same(answer.retrieved[4:8], (64).to_bytes(4, "big"), "LIST LENGTH of everything", answer)


GROUPS_BYTES = 8 + 2 * (16 + 16)


def of_a_pair(t: LogicalUnit, row: Row) -> Request:
    """A request that retrieves an undefined attribute of two members."""
    return Request(row.code, t.pid, pair(t), gets=((APPLICATION, 1),))


@each(BOTH, "allocation 0", "osd2-wire 5.4 allocation length 0")
def no_groups_wanted(t: LogicalUnit, row: Row) -> None:
    answer = t.good(of_a_pair(t, row).but(allocation=0))
    t.same(answer.data, b"", "Data-In", answer)


@each(BOTH, "gap", "osd2-wire 2.12 gap bytes are 0")
def zeros_before_the_groups(t: LogicalUnit, row: Row) -> None:
    answer = t.good(of_a_pair(t, row).but(retrieved_at=256))
    t.same(answer.data[:256], bytes(256), "the gap", answer)
    t.same(len(answer.retrieved), GROUPS_BYTES, "bytes of the list", answer)


@each(BOTH, "residual", "osd2-wire 8.3 U and u residual")
def fewer_groups_than_room(t: LogicalUnit, row: Row) -> None:
    answer = t.good(of_a_pair(t, row).but(allocation=4096))
    t.same(
        (len(answer.data), answer.residual_in), (GROUPS_BYTES, 4096 - GROUPS_BYTES), "bytes", answer
    )


@each(BOTH, "Data-In short", "osd2-wire 8.4 Data-In expected < needed")
def transport_takes_less_than_the_groups(t: LogicalUnit, row: Row) -> None:
    answer = t.good(of_a_pair(t, row).but(expect_in=8))
    t.check(len(answer.data) <= 8, answer, "at most 8 bytes", len(answer.data))
    if t.residuals:
        t.same(answer.residual_in, 8 - GROUPS_BYTES, "residual", answer)


@each(BOTH, "list format", "osd2-wire 3.10, 5.4 attributes in the order asked for")
def attributes_of_members_in_order(t: LogicalUnit, row: Row) -> None:
    oid = t.object()
    names = ((APPLICATION, 2), (0x1, 2), (APPLICATION, 1))
    sets = ((APPLICATION, 1, b"one"), (APPLICATION, 2, b"two"))
    request = Request(row.code, t.pid, t.collection(oid), gets=names)
    if row.code == 0x88A2:
        t.good(Request(0x888F, t.pid, oid, sets=sets))
    else:
        request = request.but(sets=sets)
    answer = t.good(request)
    length = int.from_bytes(answer.retrieved[4:8], "big")
    (block,) = w.object_blocks(answer.retrieved[8 : 8 + length])
    values = (b"two", struct.pack(">Q", oid), b"one")
    wanted = [(*name, value) for name, value in zip(names, values, strict=True)]
    t.same(block.attributes, wanted, "attributes of the member", answer)


@cell("REMOVE MEMBER OBJECTS", "ok", "osd2-wire 3.10 members are removed")
def members_are_removed_and_nothing_else(t: LogicalUnit) -> None:
    ids = (t.object(), t.object())
    cid, other = t.collection(*ids), t.object()
    t.good(Request(0x88A1, t.pid, cid))
    alive = [t.exists(oid) for oid in (*ids, other, cid)]
    t.same(alive, [False, False, True, True], "two members, another object, the collection")
    t.same(t.members(cid), [], "members")


@cell("REMOVE MEMBER OBJECTS", "zero length", "osd2-wire 3.10 a collection without members")
def nothing_to_remove(t: LogicalUnit) -> None:
    cid = t.collection()
    t.good(Request(0x88A1, t.pid, cid))
    t.check(t.exists(cid), None, "the collection still there")


# ---- tracking collections ----


@cell("CREATE USER TRACKING COLLECTION", "ok", "osd2-wire 1.3, 3.2 type TRACKING")
def tracking_collection_starts_empty(t: LogicalUnit) -> None:
    cid = tracking(t)
    t.same((t.get(cid, *TYPE), t.members(cid)), (b"\x01", []), "type, members")
    t.check(cid in t.members(0), None, "among the collections of the partition")


@cell("CREATE USER TRACKING COLLECTION", "ok", "osd2-wire 3.2 SOURCE COLLECTION")
def tracking_collection_of_anothers_members(t: LogicalUnit) -> None:
    ids = sorted((t.object(), t.object()))
    source = t.collection(*ids)
    cid = tracking(t, source)
    t.same((t.members(cid), t.members(source)), (ids, ids), "members of both")


@cell("CREATE USER TRACKING COLLECTION", "ok", "osd2-wire 5.16 Command Tracking page")
def tracking_page_of_a_new_collection(t: LogicalUnit) -> None:
    cid = tracking(t, pair(t))
    active, ended = t.get(cid, TRACKING_PAGE, 2), t.get(cid, TRACKING_PAGE, 3)
    t.same((active, ended), (b"\0\0", b"\0\0"), "active and ended command status")
    t.same(t.number(cid, TRACKING_PAGE, 0x10), 2, "number of members")


@cell("CREATE USER TRACKING COLLECTION", "own fields", "osd2-wire 3.2 SOURCE COLLECTION")
def source_collection_that_is_none(t: LogicalUnit) -> None:
    for source in (ABSENT, t.object()):
        t.bad_field(Request(0x8894, t.pid, t.free_oid(), address=source), 40)


@cell("CREATE USER TRACKING COLLECTION", "read-only", "osd2-wire 5.14, 5.16")
def tracking_collections_are_not_joined_by_attribute(t: LogicalUnit) -> None:
    cid, oid = tracking(t), t.object()
    name = (COLLECTIONS_PAGE, 1)
    request = Request(0x888F, t.pid, oid, sets=((*name, struct.pack(">Q", cid)),))
    t.refused(request, INVALID_FIELD_IN_LIST, attribute=name)
    number = (TRACKING_PAGE, 0x10)
    page = Request(0x888F, t.pid, cid, sets=((*number, bytes(8)),))
    t.refused(page, INVALID_FIELD_IN_LIST, attribute=number)


@cell("CREATE USER TRACKING COLLECTION", "ok", "osd2-wire 3.2 REMOVE drops memberships")
def removed_objects_leave_tracking_collections(t: LogicalUnit) -> None:
    gone, stays = t.object(), t.object()
    cid = tracking(t, t.collection(gone, stays))
    t.good(Request(0x888A, t.pid, gone))
    t.same(t.members(cid), [stays], "members")
    t.same(t.number(cid, TRACKING_PAGE, 0x10), 1, "number of members")


@cell("REMOVE COLLECTION", "not empty", "osd2-wire 3.2 FCR on a tracking collection")
def tracking_collection_with_members(t: LogicalUnit) -> None:
    cid = tracking(t, pair(t))
    t.refused(Request(0x8896, t.pid, cid), NOT_EMPTY)
    t.good(Request(0x8896, t.pid, cid, byte11=1))
    t.check(not t.exists(cid), None, "no collection afterwards")
