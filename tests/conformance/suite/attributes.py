# SPDX-License-Identifier: GPL-2.0-or-later
"""Attribute parameters of every command: three formats, order, what lists may not hold."""

from __future__ import annotations

from tests.conformance import wire as w
from tests.conformance.cells import each
from tests.conformance.commands import ROOT, Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import (
    INVALID_FIELD_IN_CDB,
    INVALID_FIELD_IN_LIST,
    LIST_LENGTH_ERROR,
)
from tests.conformance.suite.instances import (
    KEEPS,
    MAKE,
    application,
    foreign,
    kind_and_ids,
    listed,
    pages,
    with_lists,
)
from tests.conformance.wire import CURRENT_COMMAND, PAGE, SET_ONE, Request

VALUE = b"conform!"
GET_FIRST = ("GET ATTRIBUTES",)
COMMAND = 0x1000_0000
"""Function bit of descriptor 06h."""


def number(t: LogicalUnit) -> int:
    """An attribute number nobody used: root and partition are shared by all tests."""
    return t.free_oid() & 0x7FFF_FFFF


def forget(t: LogicalUnit, row: Row, *numbers: int) -> None:
    """Take back what a test set on the root."""
    if pages(row) == ROOT:
        sets = tuple((application(row), each, b"") for each in numbers)
        t.good(Request(0x888F, sets=sets))


def read_back(t: LogicalUnit, row: Row, request: Request, name: int) -> bytes:
    """The attribute afterwards."""
    oid = 0 if row.addresses in ("partition", "new partition", "root") else request.oid
    return t.get(oid, application(row), name, 0 if row.addresses == "root" else request.pid)


# ---- what is done ----


@each(listed(), "list format", "osd2-wire 2.6, 5.3, 5.4")
def sets_and_gets_in_the_order_asked_for(t: LogicalUnit, row: Row) -> None:
    request, page, first = MAKE[row.name](t), application(row), number(t)
    names = ((page, first + 1), (page, first), (CURRENT_COMMAND, 3))
    sets = ((page, first, VALUE), (page, first + 1, b"x"))
    answer = t.good(request.but(sets=sets, gets=names))
    found = w.ValueList.read(answer.retrieved)
    t.same(found.kind, w.VALUE_LIST, "list type", answer)
    t.same(tuple(each[:2] for each in found.attributes), names, "attributes in order", answer)
    before = row.name in GET_FIRST
    t.same(found.values()[:2], [b"", b""] if before else [b"x", VALUE], "values", answer)
    t.same(answer.retrieved[1:4], bytes(3), "reserved bytes of the list header", answer)
    forget(t, row, first, first + 1)


@each(listed(), "list format", "osd2-wire 9-16 LIST LENGTH on input")
def list_length_of_the_header_is_ignored(t: LogicalUnit, row: Row) -> None:
    request, page, name = MAKE[row.name](t), application(row), number(t)
    sets = w.set_list((page, name, VALUE))
    wrong = sets[:4] + b"\0\0\xff\xff" + sets[8:]
    t.good(request.but(raw_sets=wrong))
    if row.name not in KEEPS:
        t.same(read_back(t, row, request, name), VALUE, "the attribute afterwards")
    forget(t, row, name)


@each(listed(), "set/get order", "osd2-wire 3.7 order of work")
def order_of_set_and_get(t: LogicalUnit, row: Row) -> None:
    """GET ATTRIBUTES gets first; everything else sets first."""
    request, page, name = MAKE[row.name](t), application(row), number(t)
    if row.addresses in ("object", "collection", "any"):
        t.set(request.oid, page, name, b"old", request.pid)
    sets, gets = ((page, name, b"new"),), ((page, name),)
    answer = t.good(request.but(sets=sets, gets=gets))
    expected = b"new" if row.name not in GET_FIRST else b"old"
    t.same(answer.values, [expected], "value retrieved with the set of 'new'", answer)
    if row.name not in KEEPS:
        t.same(read_back(t, row, request, name), b"new", "value afterwards")
    forget(t, row, name)


@each(listed(), "page format", "osd2-wire 2.5, 5.6, 5.19 Current Command page")
def current_command_page(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    answer = t.good(request.but(form=PAGE, page=CURRENT_COMMAND))
    page, length, fields = w.page_fields(answer.retrieved)
    t.same((page, length), (CURRENT_COMMAND, 0x44), "page number and length", answer)
    t.same(len(fields), 0x44, "bytes of the page", answer)
    kind, pid, oid = kind_and_ids(row, request)
    t.same(fields[:32], bytes(32), "response integrity check value under NOSEC", answer)
    t.same(fields[32:36], kind + bytes(3), "object type and reserved bytes", answer)
    t.same((fields[36:44], fields[44:52]), (pid, oid), "partition and object id", answer)


@each(listed(), "page format", "osd2-wire 2.5 SET ATTRIBUTES PAGE")
def sets_a_value_in_page_format(t: LogicalUnit, row: Row) -> None:
    request, page, name = MAKE[row.name](t), application(row), number(t)
    t.good(request.but(form=PAGE, set_one=(page, name, VALUE * 4)))
    if row.name not in KEEPS:
        t.same(read_back(t, row, request, name), VALUE * 4, "the attribute afterwards")
    forget(t, row, name)


@each(listed(), "set-one format", "osd2-wire 2.7")
def sets_one_from_the_cdb(t: LogicalUnit, row: Row) -> None:
    request, page, name = MAKE[row.name](t), application(row), number(t)
    full = bytes(range(1, 19))
    t.good(request.but(form=SET_ONE, set_one=(page, name, full)))
    if row.name not in KEEPS:
        t.same(read_back(t, row, request, name), full, "18 bytes from the CDB")
    forget(t, row, name)


@each(
    [row for row in listed() if row.addresses in ("object", "collection", "any")],
    "set-one format",
    "osd2-wire 2.7, 9.1 length 0",
)
def length_0_makes_it_undefined(t: LogicalUnit, row: Row) -> None:
    request, page, name = MAKE[row.name](t), application(row), number(t)
    t.set(request.oid, page, name, VALUE, request.pid)
    t.good(request.but(form=SET_ONE, set_one=(page, name, b"")))
    if row.name not in KEEPS:
        t.same(read_back(t, row, request, name), b"", "the attribute afterwards")


@each(listed(), "page 0", "osd2-wire 9-13, 9-14, 5.6")
def page_0_sets_and_gets_nothing(t: LogicalUnit, row: Row) -> None:
    make = MAKE[row.name]
    t.good(make(t).but(form=SET_ONE, set_one=(0, 5, b"x")))
    t.good(make(t).but(form=PAGE, set_one=(0, 5, b"x")))
    answer = t.good(make(t).but(form=PAGE).patched(56, b"\0\0\1\0"))
    t.same(answer.data[answer.built.data_in_length :], b"", "nothing retrieved", answer)


@each(listed(), "all attributes", "osd2-wire 5.2 number FFFF_FFFFh")
def all_attributes_of_a_page_and_of_all_pages(t: LogicalUnit, row: Row) -> None:
    request, page, name = MAKE[row.name](t), application(row), number(t)
    if row.name in GET_FIRST:
        t.set(request.oid, page, name, VALUE, request.pid)
    sets = ((page, name, VALUE),)
    gets = ((page, w.ALL), (w.ALL, w.ALL))
    answer = t.good(request.but(sets=sets, gets=gets, allocation=64 << 10))
    found = w.ValueList.read(answer.retrieved)
    wanted = (page, name, VALUE)
    t.check(found.attributes.count(wanted) == 2, answer, "the attribute set, twice in the list")
    first = found.attributes.index(wanted)
    before = {each[0] for each in found.attributes[:first]}
    t.check(before <= {page}, answer, "attributes of the page alone first", before)
    t.check(
        any(each[0] == pages(row) + 1 for each in found.attributes),
        answer,
        "the information page among all pages",
    )
    forget(t, row, name)


@each(listed(), "undefined", "osd2-wire 5.4, 9-9, 9-10 undefined attributes")
def undefined_attributes_have_length_0(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    names = ((page, number(t)), (pages(row) + 1, 0x7E), (pages(row) + 0x1_0777, 1))
    answer = t.good(request.but(gets=names))
    found = w.ValueList.read(answer.retrieved)
    t.same(found.attributes, [(*name, b"") for name in names], "entries of length 0", answer)
    t.same(found.length, 48, "LIST LENGTH", answer)


@each(listed(), "current command", "osd2-wire 5.19 in list form")
def current_command_attributes(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    numbers = (2, 3, 4, 1, 6, 0, 5)
    answer = t.good(request.but(gets=tuple((CURRENT_COMMAND, each) for each in numbers)))
    values = answer.values
    t.same(values[:3], list(kind_and_ids(row, request)), "type, partition, object", answer)
    t.same(len(values[3]), 32, "length of the response integrity check value", answer)
    t.same(len(values[4]), 8, "length of the change in used capacity", answer)
    name = b"INCITS  T10 Current Command"
    t.same(values[5].rstrip(b"\0 "), name, "page identification", answer)
    t.same(len(values[5]), 40, "length of the page identification", answer)
    if row.name != "APPEND":
        t.same(values[6], bytes(8), "starting byte address of other commands than APPEND", answer)


# ---- what is refused ----


@each(listed(), "CDBFMT limits", "osd2-wire 2.7 CDBFMT 1")
def limits_of_set_one(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t).but(form=SET_ONE, set_one=(application(row), 1, b"x"))
    t.bad_field(request.patched(60, b"\0\x13"), 60)
    t.bad_field(request.patched(52, b"\xff" * 4), 52)
    t.bad_field(request.patched(56, b"\xff" * 4), 56)


@each(listed(), "CDBFMT limits", "osd2-wire 2.5 SET ATTRIBUTE LENGTH")
def limits_of_page_format(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t).but(form=PAGE, set_one=(application(row), 1, bytes(65535)))
    t.bad_field(request, 72)


@each(listed(), "bad page", "osd2-wire 5.1 page of another object type")
def page_of_another_type(t: LogicalUnit, row: Row) -> None:
    request, wrong = MAKE[row.name](t), (foreign(row), 1)
    fine = (application(row), 1)
    t.refused(request.but(gets=(fine, wrong)), INVALID_FIELD_IN_LIST, attribute=wrong)
    sets = ((foreign(row) + 0x1_0000, 1, VALUE),)
    t.refused(request.but(sets=sets), INVALID_FIELD_IN_LIST, attribute=sets[0][:2])


@each(listed(), "bad page", "osd2-wire 5.1 reserved pages")
def reserved_pages(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for wrong in (0xC000_0001, 0xEFFF_FFFF, pages(row) + 0x80, pages(row) + 0x7FFF):
        name = (wrong, 1)
        t.refused(request.but(gets=(name,)), INVALID_FIELD_IN_LIST, attribute=name)
        t.refused(request.but(sets=((*name, VALUE),)), INVALID_FIELD_IN_LIST, attribute=name)


@each(listed(), "bad page", "osd2-wire 5.1 page of another object type, CDBFMT 1")
def page_of_another_type_in_the_cdb(t: LogicalUnit, row: Row) -> None:
    wrong = (foreign(row), 9, VALUE)
    request = MAKE[row.name](t).but(form=SET_ONE, set_one=wrong)
    t.refused(request, INVALID_FIELD_IN_CDB, attribute=wrong[:2])


def read_only(row: Row) -> list[w.AttributeName]:
    """Used capacity, page identification, the directory, Current Command: not for clients to set."""
    base = pages(row)
    return [(base + 1, 0x81), (base + 1, 0), (base, 1), (CURRENT_COMMAND, 3)]


@each(listed(), "read-only", "osd2-wire 5.2 setting a read-only attribute")
def read_only_attributes(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for name in read_only(row):
        sets = ((*name, bytes(8)),)
        t.refused(request.but(sets=sets), INVALID_FIELD_IN_LIST, attribute=name)
        if name[0]:  # page 0, the directory of user objects, is no page in CDBFMT 1
            one = request.but(form=SET_ONE, set_one=sets[0])
            t.refused(one, INVALID_FIELD_IN_CDB, attribute=name)


@each(listed(), "read-only", "osd2-wire 5.2 set of number FFFF_FFFFh")
def all_attributes_cannot_be_set(t: LogicalUnit, row: Row) -> None:
    name = (application(row), w.ALL)
    request = MAKE[row.name](t).but(sets=((*name, VALUE),))
    t.refused(request, INVALID_FIELD_IN_LIST, attribute=name)


@each(with_lists(), "list length", "osd2-wire 2.6 list lengths 1 to 7")
def lengths_below_a_header(t: LogicalUnit, row: Row) -> None:
    page = application(row)
    request = MAKE[row.name](t).but(gets=((page, 1),), sets=((page, 1, VALUE),))
    for length in (1, 7):
        t.refused(request.patched(52, bytes([0, 0, 0, length])), LIST_LENGTH_ERROR)
        t.refused(request.patched(68, bytes([0, 0, 0, length])), LIST_LENGTH_ERROR)


@each(with_lists(), "list length", "osd2-wire 5.3 no multiple of 8")
def get_list_no_multiple_of_8(t: LogicalUnit, row: Row) -> None:
    gets = w.get_list((application(row), 1)) + bytes(4)
    t.refused(MAKE[row.name](t).but(raw_gets=gets), LIST_LENGTH_ERROR)


@each(with_lists(), "entry overrun", "osd2-wire 5.3 entry past the list")
def entry_longer_than_its_list(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for length in (9, 0x100, 0xFFFE):
        sets = w.set_list() + w.value_entry(application(row), 1, VALUE, length)
        t.refused(request.but(raw_sets=sets), LIST_LENGTH_ERROR)
    sets = w.set_list((application(row), 1, VALUE)) + bytes(8)
    t.refused(request.but(raw_sets=sets), LIST_LENGTH_ERROR)


@each(with_lists(), "list type", "osd2-wire 5.3 wrong list type")
def lists_of_other_types(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    for kind in (0x0, 0x9, 0xE, 0xF):
        gets = w.get_list((page, 1), kind=kind)
        t.refused(request.but(raw_gets=gets), INVALID_FIELD_IN_LIST)
    for kind in (0x0, 0x1, 0xE, 0xF):
        sets = w.set_list((page, 1, VALUE), kind=kind)
        t.refused(request.but(raw_sets=sets), INVALID_FIELD_IN_LIST)


# ---- all or nothing ----


@each(
    [row for row in listed() if row.addresses == "new object"],
    "all or nothing",
    "osd2-wire 3.2 failed attribute step after CREATE",
)
def nothing_is_created(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    bad = ((page, 1, VALUE), (pages(row) + 1, 0x81, bytes(8)))
    t.refused(request.but(sets=bad), INVALID_FIELD_IN_LIST, attribute=bad[1][:2])
    t.check(not t.exists(request.oid), None, "no object of that id afterwards")
    t.refused(request.but(gets=((foreign(row), 1),)), INVALID_FIELD_IN_LIST)
    t.check(not t.exists(request.oid), None, "no object of that id afterwards")


@each(
    [row for row in listed() if row.name in ("REMOVE", "REMOVE COLLECTION")],
    "all or nothing",
    "osd2-wire 3.7 attributes before the removal",
)
def nothing_is_removed(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    bad = ((page, 1, VALUE), (pages(row) + 1, 0x81, bytes(8)))
    t.refused(request.but(sets=bad), INVALID_FIELD_IN_LIST, attribute=bad[1][:2])
    t.check(t.exists(request.oid), None, "the object still there")
    t.same(t.get(request.oid, page, 1), b"", "the attribute before the bad one")


@each(
    [row for row in listed() if "PARTITION" in row.name and row.name != "FLUSH PARTITION"],
    "all or nothing",
    "osd2-wire 3.2, 3.7 failed attribute step",
)
def partitions_stay_as_they_were(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    bad = ((page, 1, VALUE), (pages(row) + 1, 0x81, bytes(8)))
    t.refused(request.but(sets=bad), INVALID_FIELD_IN_LIST, attribute=bad[1][:2])
    answer = t.send(Request(0x888E, request.pid))
    if row.name == "REMOVE PARTITION":
        t.is_good(answer)
    else:
        t.is_refused(answer, INVALID_FIELD_IN_CDB, 16)


@each(
    [row for row in listed() if row.name in ("GET ATTRIBUTES", "SET ATTRIBUTES")],
    "all or nothing",
    "osd2-wire 5.2 a refused list",
)
def no_attribute_of_a_refused_list_is_set(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    bad = ((page, 1, VALUE), (pages(row) + 1, 0x81, bytes(8)))
    t.refused(request.but(sets=bad), INVALID_FIELD_IN_LIST, attribute=bad[1][:2])
    t.same(t.get(request.oid, page, 1), b"", "the attribute before the bad one")


@each(
    [row for row in listed() if row.name in ("WRITE", "APPEND", "CLEAR", "PUNCH")],
    "all or nothing",
    "osd2-wire 7.3 COMPLETED FUNCTIONS",
)
def sense_data_say_whether_data_changed(t: LogicalUnit, row: Row) -> None:
    """An attribute is refused: COMMAND is among the completed functions, or nothing was done."""
    request = MAKE[row.name](t)
    before = t.read(request.oid)
    name = (pages(row) + 1, 0x81)
    refused = request.but(sets=((*name, bytes(8)),))
    answer = t.refused(refused, INVALID_FIELD_IN_LIST, attribute=name)
    assert answer.sense is not None
    said, done = bool(answer.sense.completed & COMMAND), t.read(request.oid) != before
    t.same(said, done, f"COMMAND among the completed functions, data changed {done}", answer)
