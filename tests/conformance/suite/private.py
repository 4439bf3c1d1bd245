# SPDX-License-Identifier: GPL-2.0-or-later
"""The atomic commands one implementation put into gaps of the standard's codes (osd2-wire 3.19)."""

from __future__ import annotations

import struct

from tests.conformance import wire as w
from tests.conformance.cells import cell, each
from tests.conformance.commands import BY_NAME, Row
from tests.conformance.lu import Answer, LogicalUnit
from tests.conformance.suite.instances import user_object
from tests.conformance.wire import Request

ATOMICS = 0x7
APPLICATION = 0x1_0000


def swap(t: LogicalUnit, oid: int, compare: int, value: int) -> int:
    data = struct.pack(">QQ", compare, value)
    answer = t.good(Request(0x888D, t.pid, oid, 8, data=data, data_in=8))
    return int.from_bytes(answer.data[:8], "big")


def add(t: LogicalUnit, oid: int, value: int) -> int:
    data = struct.pack(">Q", value)
    answer = t.good(Request(0x8890, t.pid, oid, 8, data=data, data_in=8))
    return int.from_bytes(answer.data[:8], "big")


@cell("CAS", "ok", "osd2-wire 3.19 CAS")
def swaps_only_what_compares_equal(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.same([swap(t, oid, 0, 5), swap(t, oid, 0, 9), swap(t, oid, 5, 7)], [0, 5, 5], "originals")
    t.same(t.number(oid, ATOMICS, 1), 7, "page 7h #1")


@cell("CAS", "concurrency", "osd2-wire 3.19 CAS")
def one_swap_wins(t: LogicalUnit) -> None:
    oid = user_object(t)
    requests = [
        Request(0x888D, t.pid, oid, 8, data=struct.pack(">QQ", 0, n + 1), data_in=8)
        for n in range(8)
    ]
    seen = [int.from_bytes(t.is_good(each).data[:8], "big") for each in t.together(requests)]
    t.same(seen.count(0), 1, "swaps that found 0")


@cell("FA", "ok", "osd2-wire 3.19 FA")
def returns_the_value_before_adding(t: LogicalUnit) -> None:
    oid = user_object(t)
    t.same([add(t, oid, 3), add(t, oid, 4), add(t, oid, 2**64 - 1)], [0, 3, 7], "values before")
    t.same(t.number(oid, ATOMICS, 2), 6, "page 7h #2")


@cell("FA", "concurrency", "osd2-wire 3.19 FA")
def every_addition_counts(t: LogicalUnit) -> None:
    oid = user_object(t)
    one = Request(0x8890, t.pid, oid, 8, data=struct.pack(">Q", 1), data_in=8)
    seen = [int.from_bytes(t.is_good(each).data[:8], "big") for each in t.together([one] * 8)]
    t.same(sorted(seen), list(range(8)), "values before")


@each([BY_NAME["CAS"], BY_NAME["FA"]], "own fields", "osd2-wire 3.19 LENGTH >= 8")
def length_below_8(t: LogicalUnit, row: Row) -> None:
    data = bytes(16)
    t.bad_field(Request(row.code, t.pid, user_object(t), 7, data=data, data_in=8), 32)


@each([BY_NAME["CAS"], BY_NAME["FA"]], "short data", "osd2-wire 3.19 operands in Data-Out")
def operands_missing(t: LogicalUnit, row: Row) -> None:
    t.bad_field(Request(row.code, t.pid, user_object(t), 8, data=bytes(4), data_in=8))


def conditional(t: LogicalUnit, row: Row, oid: int, compare: bytes, value: bytes) -> Answer:
    name, extra = (APPLICATION, 1), (APPLICATION, 2, b"extra")
    sets = ((*name, compare), (*name, value), extra)
    return t.good(Request(row.code, t.pid, oid, sets=sets, gets=(extra[:2],)))


@each([BY_NAME["GEN CAS"], BY_NAME["COND SETATTR"]], "ok", "osd2-wire 3.19 named attribute")
def attribute_is_swapped_where_it_compares_equal(t: LogicalUnit, row: Row) -> None:
    oid = user_object(t)
    first = conditional(t, row, oid, b"", b"one")
    t.same(first.retrieved[0], w.VALUE_LIST, "list type", first)
    t.same(first.values, [b"", b"extra"], "original, then the get list", first)
    t.set(oid, APPLICATION, 2, b"")
    missed = conditional(t, row, oid, b"two", b"three")
    applied = b"extra" if row.name == "GEN CAS" else b""
    t.same(missed.values, [b"one", applied], "original; extra sets where none compared", missed)
    gone = conditional(t, row, oid, b"one", b"")
    t.same(gone.values, [b"one", b"extra"], "original; swap of length 0", gone)
    t.same(t.get(oid, APPLICATION, 1), b"", "the attribute deleted")
