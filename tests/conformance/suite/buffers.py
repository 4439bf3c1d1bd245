# SPDX-License-Identifier: GPL-2.0-or-later
"""Places in Data-Out and Data-In: too short, too long, elsewhere, nowhere."""

from __future__ import annotations

from tests.conformance.cells import each
from tests.conformance.commands import Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import READ_PAST_END, RECOVERED
from tests.conformance.suite.attributes import VALUE, forget, number, read_back
from tests.conformance.suite.instances import (
    KEEPS,
    MAKE,
    RETURNING,
    application,
    known,
    listed,
    with_lists,
)
from tests.conformance.wire import CURRENT_COMMAND, PAGE

WITH_DATA = (
    *("WRITE", "APPEND", "CREATE AND WRITE", "EXEC", "EXECUTE FUNCTION"),
    *("READ NAMES", "CHANGE NAMES"),
)
IDENTITY = tuple((CURRENT_COMMAND, each) for each in (2, 3, 4))
LIST_BYTES = 8 + 3 * 24


@each(
    [row for row in known() if row.name in WITH_DATA],
    "short data",
    "osd2-wire 3.3 length larger than Data-Out",
)
def length_beyond_data_out(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    t.bad_field(request.but(cut_out=1), 32)
    t.bad_field(request.but(length=request.length + 1), 32)
    t.bad_field(request.but(length=1 << 40), 32)


@each(with_lists(), "short list", "osd2-wire 8.4 Data-Out too short for a list")
def lists_beyond_data_out(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    gets = request.but(gets=((page, 1), (page, 2)))
    t.bad_field(gets.but(cut_out=8), 52)
    sets = request.but(sets=((page, 1, VALUE),))
    t.bad_field(sets.but(cut_out=8), 68)
    t.bad_field(sets.patched(68, b"\x7f\xff\xff\xf8"), 68)
    value = request.but(form=PAGE, set_one=(page, 1, VALUE))
    t.bad_field(value.but(cut_out=1), 72)


@each(known(), "surplus", "osd2-wire 2.7, 8.4 surplus Data-Out")
def more_data_out_than_needed(t: LogicalUnit, row: Row) -> None:
    t.good(MAKE[row.name](t).but(surplus=b"\xee" * 24))


@each(with_lists(), "no offset", "osd2-wire 2.10 a length with offset FFFF_FFFFh")
def offset_missing(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    both = request.but(gets=((page, 1),), sets=((page, 1, VALUE),))
    unused = b"\xff" * 4
    t.bad_field(both.patched(56, unused), 56)
    t.bad_field(both.patched(64, unused), 64)
    t.bad_field(both.patched(72, unused), 72)


@each(listed(), "no offset", "osd2-wire 2.5, 2.10 page format")
def offset_missing_in_page_format(t: LogicalUnit, row: Row) -> None:
    unused = b"\xff" * 4
    request = MAKE[row.name](t).but(form=PAGE, page=CURRENT_COMMAND)
    t.bad_field(request.patched(60, unused), 60)
    value = MAKE[row.name](t).but(form=PAGE, set_one=(application(row), 1, VALUE))
    t.bad_field(value.patched(76, unused), 76)


@each(listed(), "no offset", "osd2-wire 2.10, 9-12 the length decides")
def offsets_of_absent_lists_may_be_anything(t: LogicalUnit, row: Row) -> None:
    for filler in (b"\0\0\0\0", b"\x8f\xff\xff\xff", b"\x7f\xff\xff\xff"):
        request = MAKE[row.name](t)
        t.good(request.patched(56, filler).patched(64, filler).patched(72, filler))


@each(with_lists(), "offset forms", "osd2-wire 2.10 exponents -8 to -6")
def invalid_exponents(t: LogicalUnit, row: Row) -> None:
    request, page = MAKE[row.name](t), application(row)
    both = request.but(gets=((page, 1),), sets=((page, 1, VALUE),))
    for exponent in (0x80, 0x90, 0xA0):
        for at in (56, 64, 72):
            t.bad_field(both.patched(at, bytes([exponent, 0, 0, 1])), at)


@each(listed(), "offset forms", "osd2-wire 2.10 any normalisation")
def the_same_offset_spelt_otherwise(t: LogicalUnit, row: Row) -> None:
    """Retrieved attributes at 4096 as 0000_0010h and as B000_0200h are the same place."""
    found = []
    for spelling in ("B0000200", "00000010", "40000001", "E0000040"):
        request = MAKE[row.name](t).but(gets=IDENTITY[:1], retrieved_at=4096)
        answer = t.good(request.patched(64, bytes.fromhex(spelling)))
        found.append(answer.data[4096:])
    t.check(len(set(found)) == 1 and len(found[0]) == 32, None, "32 bytes at 4096 each time", found)


@each(with_lists(), "segment order", "osd2-wire 2.11, 9-17 a target goes by the offsets")
def get_list_before_set_list_with_gaps(t: LogicalUnit, row: Row) -> None:
    request, page, name = MAKE[row.name](t), application(row), number(t)
    sets, gets = ((page, name, VALUE),), ((page, name),)
    answer = t.good(request.but(sets=sets, gets=gets, gets_first=True, gap=44, surplus=bytes(3)))
    t.check(len(answer.retrieved) >= 8, answer, "retrieved attributes")
    if row in listed() and row.name not in KEEPS:
        t.same(read_back(t, row, request, name), VALUE, "the attribute afterwards")
        forget(t, row, name)


@each(listed(), "allocation 0", "osd2-wire 2.5, 5.4 allocation length 0")
def nothing_retrieved(t: LogicalUnit, row: Row) -> None:
    answer = t.good(MAKE[row.name](t).but(gets=IDENTITY, allocation=0))
    plain = answer.built.data_in_length
    t.check(len(answer.data) <= plain, answer, f"at most {plain} bytes of Data-In")
    t.good(MAKE[row.name](t).but(form=PAGE, page=CURRENT_COMMAND, allocation=0))


@each(
    [row for row in listed() if row.name in RETURNING],
    "allocation 0",
    "osd2-wire 3.8, 3.9, 3.11 allocation length 0",
)
def no_data_wanted(t: LogicalUnit, row: Row) -> None:
    answer = t.good(MAKE[row.name](t).but(length=0, data_in=0))
    t.same(answer.data, b"", "Data-In", answer)


@each(listed(), "truncated", "osd2-wire 5.4 allocation too small")
def list_is_cut_not_refused(t: LogicalUnit, row: Row) -> None:
    """Entries that fit are returned whole; LIST LENGTH says what all would have needed."""
    whole = t.good(MAKE[row.name](t).but(gets=IDENTITY)).retrieved
    t.same(len(whole), LIST_BYTES, "bytes of the whole list")
    for room in (8 + 24, 8 + 24 + 4, 8):
        answer = t.good(MAKE[row.name](t).but(gets=IDENTITY, allocation=room))
        got = answer.retrieved
        t.check(len(got) <= room, answer, f"at most {room} bytes", len(got))
        t.same(got[:8], b"\x09\0\0\0" + (LIST_BYTES - 8).to_bytes(4, "big"), "list header", answer)
        if room >= 32:
            t.same(got[8:25], whole[8:25], "the first entry", answer)


@each(listed(), "truncated", "osd2-wire 2.5 page longer than its allocation")
def page_is_cut_not_refused(t: LogicalUnit, row: Row) -> None:
    answer = t.good(MAKE[row.name](t).but(form=PAGE, page=CURRENT_COMMAND, allocation=48))
    t.same(len(answer.retrieved), 48, "bytes of the page", answer)
    t.same(answer.retrieved[:8], bytes.fromhex("FFFFFFFE 00000044"), "number and length", answer)


@each(listed(), "residual", "osd2-wire 8.3 U and u residual")
def less_than_expected(t: LogicalUnit, row: Row) -> None:
    answer = t.good(MAKE[row.name](t).but(gets=IDENTITY, allocation=4096))
    t.same(len(answer.retrieved), LIST_BYTES, "bytes of the list", answer)
    left = answer.built.data_in_length - len(answer.data)
    t.same(answer.residual_in, left, "residual", answer)


@each(listed(), "Data-In short", "osd2-wire 8.4 Data-In expected < needed")
def transport_takes_less_than_the_cdb_asks_for(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t).but(gets=IDENTITY)
    answer = t.good(request.but(expect_in=8))
    t.check(len(answer.data) <= 8, answer, "at most 8 bytes", len(answer.data))
    if t.residuals:
        short = request.build().retrieved_at + LIST_BYTES - 8
        t.same(answer.residual_in, -short, "residual: bytes that found no room", answer)


@each(
    [row for row in listed() if row.name in RETURNING], "overlap", "osd2-wire 7.4 bad combination"
)
def attributes_inside_the_command_data(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    t.bad_field(request.but(gets=IDENTITY, retrieved_at=0), 64)
    t.bad_field(request.but(gets=IDENTITY, retrieved_at=8), 64)
    t.bad_field(request.but(form=PAGE, page=CURRENT_COMMAND, retrieved_at=8), 60)


@each(listed(), "gap", "osd2-wire 2.12 gap bytes are 0")
def zeros_before_retrieved_attributes(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    answer = t.good(request.but(gets=IDENTITY, retrieved_at=request.data_in + 256))
    t.same(len(answer.retrieved), LIST_BYTES, "bytes of the list", answer)
    gap = answer.data[request.data_in : answer.built.retrieved_at]
    t.same(gap, bytes(len(gap)), "the gap", answer)


@each(
    [row for row in listed() if row.name == "READ"],
    "gap",
    "osd2-wire 3.3, 8.3 short READ before retrieved attributes",
)
def zeros_after_a_short_read(t: LogicalUnit, row: Row) -> None:
    oid = t.object(b"hello")
    request = MAKE[row.name](t).but(oid=oid, length=64, data_in=64, gets=IDENTITY)
    answer = t.refused(request, READ_PAST_END, key=RECOVERED)
    t.same(answer.data[:64], b"hello".ljust(64, b"\0"), "data and zeros", answer)
    t.same(len(answer.retrieved), LIST_BYTES, "bytes of the list: attributes are executed", answer)
