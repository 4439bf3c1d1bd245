# SPDX-License-Identifier: GPL-2.0-or-later
"""GET and SET ATTRIBUTES on root, partition, collection and user object: the standard's pages."""

from __future__ import annotations

import struct

from tests.conformance import wire as w
from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, COLLECTIONS, PARTITIONS, ROOT, USER, Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import INVALID_FIELD_IN_CDB, INVALID_FIELD_IN_LIST
from tests.conformance.suite.instances import CONTENT, user_object
from tests.conformance.wire import PAGE, Request

Place = tuple[int, int]


def places(t: LogicalUnit) -> dict[int, Place]:
    """One object of each type, by the base of its pages."""
    found = {ROOT: (0, 0), PARTITIONS: (t.pid, 0), USER: (t.pid, user_object(t))}
    if "CREATE COLLECTION" in t.supported:
        found[COLLECTIONS] = (t.pid, t.collection())
    return found


def values(t: LogicalUnit, place: Place, *names: w.AttributeName) -> list[bytes]:
    request = Request(0x888E, *place, gets=names, allocation=4096)
    return t.good(request).values


@cell("GET ATTRIBUTES", "ok", "osd2-wire A.1 list of root attributes")
def root_list_byte_for_byte(t: LogicalUnit) -> None:
    gets = ((0x9000_0001, 4), (0x9000_0001, 0xC0))
    request = Request(0x888E, gets=gets, allocation=56)
    built = request.build()
    wanted = bytes.fromhex("01000000 00000000 90000001 00000004 90000001 000000C0")
    t.same(built.data_out, wanted, "Data-Out of the example")
    t.same(built.cdb[52:72].hex(), "00000018000000000000003800000000" + "00000000", "52-71")
    t.same(built.data_in_length, 56, "Data-In expected")
    answer = t.good(request)
    t.same(answer.data[:8], bytes.fromhex("09000000 00000030"), "list header", answer)
    t.same(answer.data[8:24], bytes.fromhex("90000001 00000004 0000000000000008"), "1st", answer)
    t.same(answer.data[32:48], bytes.fromhex("90000001 000000C0 0000000000000008"), "2nd", answer)
    count = int.from_bytes(answer.data[48:56], "big")
    t.check(count >= 1, answer, "number of partitions, of 1 at least", count)


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.8, 9-31 what Linux asks for when it attaches")
def root_information(t: LogicalUnit) -> None:
    wanted = {
        4: 8,
        5: 16,
        6: 32,
        7: 4,
        8: None,
        9: None,
        0x80: 8,
        0x81: 8,
        0xC0: 8,
        0x100: 6,
        3: 20,
    }
    found = values(t, (0, 0), *((0x9000_0001, number) for number in wanted))
    for (number, length), value in zip(wanted.items(), found, strict=True):
        if length is None:
            t.check(len(value) <= 64, None, f"root #{number:X}h of at most 64 bytes", len(value))
        else:
            t.same(len(value), length, f"length of root #{number:X}h")
    total, used = (int.from_bytes(found[at], "big") for at in (6, 7))
    t.check(used <= total, None, "used capacity within the total", (used, total))


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.8 isolation and atomicity")
def root_information_about_order(t: LogicalUnit) -> None:
    numbers = {0xA: 4, 0x110: 1, 0x111: 32, 0x120: 8, 0x121: 8, 0x122: 8, 0x123: 1}
    found = values(t, (0, 0), *((0x9000_0001, number) for number in numbers))
    for (number, length), value in zip(numbers.items(), found, strict=True):
        t.same(len(value), length, f"length of root #{number:X}h")


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.2, 5.7 page identification")
def pages_name_themselves(t: LogicalUnit) -> None:
    """Attribute 0 of a standard page: INCITS, then its name; the same in the directory."""
    known = {
        ROOT: {0: "Root Directory", 1: "Root Information"},
        PARTITIONS: {0: "Partition Directory", 1: "Partition Information"},
        COLLECTIONS: {1: "Collection Information"},
        USER: {1: "User Object Information"},
    }
    for base, place in places(t).items():
        for page, name in known[base].items():
            wanted = b"INCITS  T10 " + name.encode()
            own, listed = values(t, place, (base + page, 0), (base, base + page))
            for value in (own, listed) if page else (own,):
                t.same(len(value), 40, f"length of {base + page:X}h #0")
                t.same(value.rstrip(b"\0 "), wanted, f"identification of {base + page:X}h")


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.9, 5.10, 5.11 information pages")
def information_of_each_type(t: LogicalUnit) -> None:
    found = places(t)
    pid = struct.pack(">Q", t.pid)
    t.same(values(t, found[PARTITIONS], (0x3000_0001, 1)), [pid], "partition id")
    used, count = values(t, found[PARTITIONS], (0x3000_0001, 0x81), (0x3000_0001, 0xC1))
    t.same((len(used), len(count)), (8, 8), "lengths of used capacity, count")
    if COLLECTIONS in found:
        names = [(0x6000_0001, number) for number in (1, 2, 0xA)]
        cid = struct.pack(">Q", found[COLLECTIONS][1])
        t.same(values(t, found[COLLECTIONS], *names), [pid, cid, b"\0"], "collection")
    names = [(0x1, number) for number in (1, 2, 0x82)]
    oid = struct.pack(">Q", found[USER][1])
    t.same(values(t, found[USER], *names), [pid, oid, struct.pack(">Q", 64)], "user object")
    t.same(len(t.get(found[USER][1], 1, 0x81)), 8, "length of used capacity")


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.9 number of collections and user objects")
def partition_counts_its_objects(t: LogicalUnit) -> None:
    pid = t.partition()
    name = (0x3000_0001, 0xC1)
    t.same(t.number(0, *name, pid), 0, "count of an empty partition")
    oid = t.object(pid=pid)
    t.object(pid=pid)
    t.same(t.number(0, *name, pid), 2, "count after two CREATEs")
    if "CREATE COLLECTION" in t.supported:
        t.collection(pid=pid)
        t.same(t.number(0, *name, pid), 3, "count after CREATE COLLECTION")
    before = t.number(0, *name, pid)
    t.good(Request(0x888A, pid, oid))
    t.same(t.number(0, *name, pid), before - 1, "count after REMOVE")


@cell("GET ATTRIBUTES", "quota", "osd2-wire 5.12 quotas pages and their lengths")
def quotas_have_lengths_and_are_inherited(t: LogicalUnit) -> None:
    pid = t.partition()
    t.set(0, 0x3000_0002, 1, struct.pack(">Q", 12345), pid)
    oid = t.object(pid=pid)
    t.same(t.get(oid, 0x2, 1, pid), struct.pack(">Q", 12345), "inherited by a new object")
    lengths = {1: 8, 0x1_0001: 8, 0x1_0002: 8, 0x1_0081: 4}
    found = values(t, (pid, 0), *((0x3000_0002, number) for number in lengths))
    t.same([len(value) for value in found], list(lengths.values()), "partition quotas")
    root = {**lengths, 0x2_0002: 8}
    found = values(t, (0, 0), *((0x9000_0002, number) for number in root))
    t.same([len(value) for value in found], list(root.values()), "root quotas")


FORMS = {
    (ROOT, 2): 0x24,
    (PARTITIONS, 2): 0x1C,
    (USER, 2): 8,
    (ROOT, 3): 0x0D,
    (PARTITIONS, 3): 0x1F,
    (COLLECTIONS, 3): 0x1E,
    (USER, 3): 0x1E,
}


@cell("GET ATTRIBUTES", "page format", "osd2-wire 5.12, 5.13 quotas and timestamps pages")
def lengths_of_pages(t: LogicalUnit) -> None:
    found = places(t)
    for (base, page), length in FORMS.items():
        if base in found:
            answer = t.good(Request(0x888E, *found[base], form=PAGE, page=base + page))
            got = w.page_fields(answer.retrieved)
            t.same(got[:2], (base + page, length), "page number and length", answer)
            t.same(len(got[2]), length, "bytes of the page", answer)


@cell("GET ATTRIBUTES", "page format", "osd2-wire 5.12 fields in order")
def fields_of_the_quotas_page(t: LogicalUnit) -> None:
    pid = t.partition()
    quotas = ((1, 8), (0x1_0001, 8), (0x1_0002, 8), (0x1_0081, 4))
    names = [(0x3000_0002, number) for number, _ in quotas]
    answer = t.good(Request(0x888E, pid, form=PAGE, page=0x3000_0002))
    t.same(w.page_fields(answer.retrieved)[2], b"".join(values(t, (pid, 0), *names)), "fields")


@cell("GET ATTRIBUTES", "page format", "osd2-wire 5.13 fields in order")
def fields_of_the_timestamps_page(t: LogicalUnit) -> None:
    oid = user_object(t)
    request = Request(0x888E, t.pid, oid, byte12=0x7F, form=PAGE, page=0x3)
    fields = w.page_fields(t.good(request).retrieved)[2]
    t.same(fields, b"".join(t.get(oid, 3, number) for number in (1, 2, 3, 4, 5)), "fields")


@cell("GET ATTRIBUTES", "page format", "osd2-wire 5.14 Collections page")
def collections_page_in_page_format(t: LogicalUnit) -> None:
    oid, first, second = t.object(), t.collection(), t.collection()
    t.set(oid, 0x4, 1, struct.pack(">Q", first))
    t.set(oid, 0x4, 5, struct.pack(">Q", second))
    answer = t.good(Request(0x888E, t.pid, oid, form=PAGE, page=0x4))
    found = w.page_fields(answer.retrieved)
    t.same(found, (0x4, 16, struct.pack(">QQ", first, second)), "number, length, values", answer)


@cell("GET ATTRIBUTES", "page format", "osd2-wire 5.6, 9-16 pages without a page form")
def information_pages_have_no_page_form(t: LogicalUnit) -> None:
    for page in (0x1, 0x0001_0000):
        answer = t.send(Request(0x888E, t.pid, user_object(t), form=PAGE, page=page))
        if answer.status:  # refused, or a null page
            t.is_refused(answer, INVALID_FIELD_IN_CDB, 52)
        else:
            t.same(answer.retrieved[:8], struct.pack(">II", page, 0), "a null page", answer)


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.17 policy/security pages")
def policy_pages_and_their_lengths(t: LogicalUnit) -> None:
    lengths: dict[int, dict[int, set[int]]] = {
        ROOT: {1: {1}, 2: {6}, 3: {6}, 6: {1}, 7: {2}, 9: {6}, 0x7FFD: {0, 7}, 0x7FFE: {0, 7}},
        PARTITIONS: {1: {1}, 2: {6}, 3: {6}, 4: {2}, 5: {2}, 0x7FFF: {0, 7}, 0x4000_0001: {4}},
        COLLECTIONS: {0x4000_0001: {4}},
        USER: {0x4000_0001: {4}},
    }
    for base, place in places(t).items():
        names = [(base + 5, number) for number in lengths[base]]
        for name, value in zip(names, values(t, place, *names), strict=True):
            allowed = lengths[base][name[1]]
            t.check(len(value) in allowed, None, f"{name[0]:X}h #{name[1]:X}h of {allowed}", value)


@cell("SET ATTRIBUTES", "ok", "osd2-wire 5.13 timestamp bypass")
def timestamp_bypass_of_a_partition(t: LogicalUnit) -> None:
    pid, name = t.partition(), (0x3000_0003, 0xFFFF_FFFE)
    t.good(Request(0x888F, pid, sets=((*name, b"\x7f"),)))
    t.same(t.get(0, *name, pid), b"\x7f", "the attribute")
    wrong = Request(0x888F, pid, sets=((*name, b"\x01"),))
    t.refused(wrong, INVALID_FIELD_IN_LIST, attribute=name)


@cell("APPEND", "current command", "osd2-wire 5.19 #6 change in used capacity")
def used_capacity_changes_as_said(t: LogicalUnit) -> None:
    oid, used = t.object(), (0x1, 0x81)
    before = t.number(oid, *used)
    data = bytes(range(256)) * 512
    gets = ((w.CURRENT_COMMAND, 6),)
    answer = t.good(Request(0x8887, t.pid, oid, len(data), data=data, gets=gets))
    said = int.from_bytes(answer.values[0], "big", signed=True)
    t.same(said, t.number(oid, *used) - before, "change in used capacity", answer)
    t.check(said > 0, answer, "an increase", said)


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.13 timestamps of a new object")
def timestamps_are_milliseconds(t: LogicalUnit) -> None:
    before = t.number(0, 0x9000_0001, 0x100, 0)
    oid = t.object()
    after = t.number(0, 0x9000_0001, 0x100, 0)
    created = t.number(oid, 3, 1)
    t.check(before <= created <= after, None, f"{before} <= created <= {after}", created)


@each(
    [BY_NAME[name] for name in ("WRITE", "APPEND", "CLEAR", "PUNCH")],
    "ok",
    "osd2-wire 5.13 data modified",
)
def data_modified_moves_on(t: LogicalUnit, row: Row) -> None:
    oid = t.object(CONTENT)
    old = t.number(oid, 3, 5)
    data = b"x" if row.name in ("WRITE", "APPEND") else b""
    request = Request(row.code, t.pid, oid, 1, data=data)

    def later() -> bool:
        if row.name == "PUNCH":
            t.write(oid, 0, CONTENT)
        t.good(request)
        return t.number(oid, 3, 5) > old

    t.until(later, "a later 'data modified' timestamp")


@cell("SET ATTRIBUTES", "ok", "osd2-wire 5.13 attributes modified")
def attributes_modified_moves_on(t: LogicalUnit) -> None:
    oid = t.object()
    old = t.number(oid, 3, 3)

    def later() -> bool:
        t.set(oid, 0x1_0000, 1, b"x")
        return t.number(oid, 3, 3) > old

    t.until(later, "a later 'attributes modified' timestamp")


@cell("READ", "ok", "osd2-wire 5.13 data accessed")
def data_accessed_moves_on(t: LogicalUnit) -> None:
    oid = t.object(CONTENT)
    old = t.number(oid, 3, 4)

    def later() -> bool:
        t.read(oid)
        return t.number(oid, 3, 4) > old

    t.until(later, "a later 'data accessed' timestamp")


# ---- SET ATTRIBUTES ----


@cell("SET ATTRIBUTES", "ok", "osd2-wire 5.2 lengths")
def values_of_any_length(t: LogicalUnit) -> None:
    oid = t.object()
    for length in (1, 7, 8, 9, 40, 4096, 0xFFFE):
        value = bytes(each * 7 & 0xFF for each in range(length))
        t.set(oid, 0x1_0000, 1, value)
        request = Request(0x888E, t.pid, oid, gets=((0x1_0000, 1),), allocation=0x1_0020)
        t.check(t.good(request).values == [value], t.last[-1], f"the {length} bytes set")
    t.set(oid, 0x1_0000, 1, b"")
    t.same(t.get(oid, 0x1_0000, 1), b"", "the attribute after length 0")


@cell("SET ATTRIBUTES", "ok", "osd2-wire 5.1 application pages of each type")
def each_type_keeps_its_own(t: LogicalUnit) -> None:
    found = places(t)
    for base, (pid, oid) in found.items():
        value = struct.pack(">I", base)
        t.good(Request(0x888F, pid, oid, sets=((base + 0x1_FFFF, 0x77, value),)))
    for base, (pid, oid) in found.items():
        t.same(t.get(oid, base + 0x1_FFFF, 0x77, pid), struct.pack(">I", base), f"{base:X}h")
    t.good(Request(0x888F, sets=((ROOT + 0x1_FFFF, 0x77, b""),)))


@cell("SET ATTRIBUTES", "ok", "osd2-wire 5.9, 5.10, 5.11 username")
def names_can_be_set(t: LogicalUnit) -> None:
    for base, (pid, oid) in places(t).items():
        if base == ROOT:
            continue
        t.good(Request(0x888F, pid, oid, sets=((base + 1, 9, b"a name"),)))
        t.same(t.get(oid, base + 1, 9, pid), b"a name", f"{base + 1:X}h #9")


@cell("SET ATTRIBUTES", "ok", "osd2-wire 5.11 logical length")
def logical_length_cuts_and_extends(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.set(oid, 0x1, 0x82, struct.pack(">Q", 10))
    t.same(t.read(oid), CONTENT[:10], "the object cut to 10")
    t.set(oid, 0x1, 0x82, struct.pack(">Q", 20))
    t.same(t.read(oid), CONTENT[:10] + bytes(10), "the object extended to 20")


@cell("SET ATTRIBUTES", "ok", "osd2-wire 5.2 number 0 names an application page")
def application_page_is_named(t: LogicalUnit) -> None:
    oid, name = t.object(), b"ACME    My Page".ljust(40, b"\0")
    t.set(oid, 0x1_0000, 0, name)
    t.same(t.get(oid, 0x1_0000, 0), name, "page identification")
    request = Request(0x888F, t.pid, oid, sets=((0x1_0000, 0, bytes(41)),))
    t.refused(request, INVALID_FIELD_IN_LIST, attribute=(0x1_0000, 0))


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.2 undefined page name")
def page_without_a_name(t: LogicalUnit) -> None:
    oid, page = t.object(), 0x1_0000
    t.set(oid, page, 1, b"x")
    name = t.get(oid, page, 0)
    t.same(name.rstrip(b"\0 "), b" " * 8 + b"unidentified attributes page", "page identification")
    t.same(len(name), 40, "its length")


@cell("GET ATTRIBUTES", "ok", "osd2-wire 5.7 directory")
def named_pages_are_in_the_directory(t: LogicalUnit) -> None:
    oid, page = t.object(), 0x1_2345
    name = b"ACME    Somewhere".ljust(40, b"\0")
    t.set(oid, page, 0, name)
    t.same(t.get(oid, 0, page), name, f"directory #{page:X}h")


@cell("SET ATTRIBUTES", "own fields", "osd2-wire 5.2 maximum length FFFEh")
def value_longer_than_an_attribute(t: LogicalUnit) -> None:
    oid, name = t.object(), (0x1_0000, 1)
    answer = t.send(Request(0x888F, t.pid, oid, sets=((*name, bytes(0xFFFF)),)))
    t.is_refused(answer, INVALID_FIELD_IN_LIST, attribute=name)
    t.same(t.get(oid, *name), b"", "the attribute")


@cell("SET ATTRIBUTES", "read-only", "osd2-wire 5.11-5.13 what clients cannot set")
def standard_attributes_clients_cannot_set(t: LogicalUnit) -> None:
    found = places(t)
    fixed = {
        ROOT: [(1, 3), (1, 4), (1, 0x80), (1, 0x81), (1, 0xC0), (1, 0x111)],
        PARTITIONS: [(1, 1), (1, 0x81), (1, 0xC1), (3, 1)],
        COLLECTIONS: [(1, 1), (1, 2), (1, 0xA), (3, 1)],
        USER: [(1, 1), (1, 2), (1, 0x81), (3, 1), (3, 5)],
    }
    for base, place in found.items():
        for page, number in fixed[base]:
            name = (base + page, number)
            request = Request(0x888F, *place, sets=((*name, b"\1" * 8),))
            t.refused(request, INVALID_FIELD_IN_LIST, attribute=name)


@cell("SET ATTRIBUTES", "own fields", "osd2-wire 7.4 bad value")
def standard_attributes_of_a_wrong_length(t: LogicalUnit) -> None:
    oid = user_object(t)
    for name, value in (((0x1, 0x82), bytes(4)), ((0x1, 0x82), bytes(9)), ((0x2, 1), bytes(7))):
        request = Request(0x888F, t.pid, oid, sets=((*name, value),))
        t.refused(request, INVALID_FIELD_IN_LIST, attribute=name)
    t.same(t.number(oid, 1, 0x82), 64, "logical length")


@cell("GET ATTRIBUTES", "sense data", "osd2-wire 7.2 descriptor 08h")
def attribute_is_named_last(t: LogicalUnit) -> None:
    request = Request(0x888E, t.pid, user_object(t), gets=((0x3000_0001, 0x1234),))
    answer = t.refused(request, INVALID_FIELD_IN_LIST)
    wanted = bytes.fromhex("080A 0000 30000001 00001234")
    t.check(answer.sense_data.endswith(wanted), answer, "descriptor 08h: " + wanted.hex(" ", 4))
