# SPDX-License-Identifier: GPL-2.0-or-later
"""COMPARE AND SWAP, FETCH AND ADD and their kin: what they do, and that nobody comes in between."""

from __future__ import annotations

import struct
from concurrent.futures import ThreadPoolExecutor
from itertools import chain

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, AttributePage
from pyosd.wire.reply import Reply
from tests.expect import CDB_FIELD, LIST_FIELD, LIST_LENGTH, NO_OBJECT, OK, check, mangled

CAS, ADD, GEN_CAS, COND_SET = 0x8F84, 0x8F85, 0x8F86, 0x8F87
COUNTERS = 7
VALUE = AttributeId(Page.APPLICATION, 1)
OTHER = AttributeId(Page.APPLICATION, 2)
NAME = AttributeId(Page.USER_INFORMATION, 0x9)


def be(value: int, width: int = 8) -> bytes:
    return value.to_bytes(width, "big")


def counter(
    osd: Commands,
    obj: ObjectRef,
    action: int,
    *operands: int,
    at: int = 0,
    lists: AttributeLists | None = None,
    room: int | None = None,
) -> Reply:
    """COMPARE AND SWAP (compare, swap) or FETCH AND ADD (addend): the result as reply.data."""
    data = struct.pack(f">{len(operands)}Q", *operands)
    request = rq.write(obj, at, data, attributes=lists or AttributeLists())
    return mangled(
        osd, request, {8: be(action, 2)}, data_in_length=at + 8 if room is None else room
    )


def result(reply: Reply) -> int:
    """The value from before."""
    return int.from_bytes(check(reply, OK).response.data_in[-8:], "big")


def exchange(
    osd: Commands,
    obj: ObjectRef,
    action: int,
    *values: tuple[AttributeId, bytes],
    get: tuple[AttributeId, ...] = (),
) -> Reply:
    """GENERIC COMPARE AND SWAP or CONDITIONAL SET ATTRIBUTES with these entries."""
    sets = tuple(AttributeValue(name.page, name.number, value) for name, value in values)
    lists = AttributeLists(get or (NAME,), sets, allocation=512)
    changes = {8: be(action, 2)}
    if not get:
        changes[52] = bytes(4)  # no get list, but room for the answer
    return mangled(osd, rq.set_attributes(obj, attributes=lists), changes)


def values(osd: Commands, obj: ObjectRef) -> tuple[bytes, bytes]:
    return (
        osd.get_attribute(obj, VALUE.page, VALUE.number),
        osd.get_attribute(obj, OTHER.page, OTHER.number),
    )


# ---- counters ----


def test_compare_and_swap(osd: Commands, obj: ObjectRef) -> None:
    """A counter nobody has set is 0; a comparison that fails changes nothing."""
    assert result(counter(osd, obj, CAS, 0, 5)) == 0
    assert result(counter(osd, obj, CAS, 4, 9)) == 5
    assert result(counter(osd, obj, CAS, 5, 2**64 - 1)) == 5
    assert osd.get_attribute(obj, COUNTERS, 1) == b"\xff" * 8
    assert osd.get_attribute(obj, COUNTERS, 2) == b""


def test_fetch_and_add(osd: Commands, obj: ObjectRef) -> None:
    """Modulo 2^64, so that a subtraction is an addition too."""
    assert result(counter(osd, obj, ADD, 3)) == 0
    assert result(counter(osd, obj, ADD, 2**64 - 4)) == 3
    assert result(counter(osd, obj, ADD, 1)) == 2**64 - 1
    assert osd.get_attribute(obj, COUNTERS, 2) == bytes(8)
    assert osd.get_attribute(obj, COUNTERS, 1) == b""


def test_counters_are_attributes(osd: Commands, obj: ObjectRef) -> None:
    osd.set_attributes(obj, [AttributeValue(COUNTERS, 2, be(40))])
    assert result(counter(osd, obj, ADD, 2)) == 40
    osd.set_attributes(obj, [AttributeValue(COUNTERS, 2, b"")])
    assert result(counter(osd, obj, ADD, 2)) == 0
    osd.set_attributes(obj, [AttributeValue(COUNTERS, 2, b"text")])
    check(counter(osd, obj, ADD, 2), LIST_FIELD, AttributeId(COUNTERS, 2))
    assert osd.get_attribute(obj, COUNTERS, 2) == b"text"


def test_result_where_it_is_wanted(osd: Commands, obj: ObjectRef) -> None:
    """Bytes 40-47 count from the start of Data-In; what lies before the result is zero."""
    osd.set_attributes(obj, [AttributeValue(COUNTERS, 1, be(7))])
    reply = check(counter(osd, obj, CAS, 7, 8, at=24), OK)
    assert bytes(reply.response.data_in) == bytes(24) + be(7)
    assert bytes(counter(osd, obj, CAS, 8, 9, at=4, room=6).response.data_in) == bytes(6)
    assert bytes(counter(osd, obj, CAS, 0, 0, at=4, room=0).response.data_in) == b""
    assert osd.get_attribute(obj, COUNTERS, 1) == be(9)
    check(counter(osd, obj, CAS, 9, 1, at=(64 << 20) - 7, room=8), CDB_FIELD.at(40))
    check(counter(osd, obj, CAS, 9, 1, at=2**64 - 8, room=8), CDB_FIELD.at(40))


@pytest.mark.parametrize(("action", "size"), [(CAS, 16), (ADD, 8)])
def test_operands_that_are_not_there(osd: Commands, obj: ObjectRef, action: int, size: int) -> None:
    request = rq.write(obj, 0, bytes(size))
    code = {8: be(action, 2)}
    check(mangled(osd, request, code | {32: be(7)}, data_in_length=8), CDB_FIELD.at(32))
    short = mangled(osd, request, code, data_out=bytes(size - 1), data_in_length=8)
    check(short, CDB_FIELD.at(32))
    assert osd.get_attribute(obj, COUNTERS, 1) == b""


def test_counters_and_attributes_in_one_command(osd: Commands, obj: ObjectRef) -> None:
    lists = AttributeLists((VALUE,), (AttributeValue(VALUE.page, VALUE.number, b"set"),))
    request = rq.write(obj, 0, be(0) + be(1), attributes=lists)
    reply = mangled(osd, request, {8: be(CAS, 2), 64: be(0xB000_0001, 4)}, data_in_length=128)
    check(reply, OK)
    assert values(osd, obj)[0] == b"set"
    assert b"set" in bytes(reply.response.data_in[8:])
    overlap = mangled(osd, request, {8: be(CAS, 2), 64: be(0, 4)}, data_in_length=128)
    check(overlap, CDB_FIELD.at(64))


@pytest.mark.parametrize("action", [CAS, ADD, GEN_CAS, COND_SET])
def test_atomics_name_what_is_missing(osd: Commands, pid: int, action: int) -> None:
    missing = ref(pid, 0x7777_7777)
    if action in (CAS, ADD):
        check(counter(osd, missing, action, 1, 2), NO_OBJECT)
        check(counter(osd, ref(pid), action, 1, 2), NO_OBJECT)
    else:
        check(exchange(osd, missing, action, (VALUE, b""), (VALUE, b"x")), NO_OBJECT)


# ---- any attribute ----


@pytest.mark.parametrize("action", [GEN_CAS, COND_SET])
def test_exchange(osd: Commands, obj: ObjectRef, action: int) -> None:
    """Compare length 0 agrees with undefined, swap length 0 makes undefined."""
    reply = check(exchange(osd, obj, action, (VALUE, b""), (VALUE, b"one")), OK)
    assert reply.retrieved is not None
    assert reply.retrieved.attributes == (AttributeValue(VALUE.page, VALUE.number, b""),)
    assert values(osd, obj)[0] == b"one"
    for no in (b"on", b"one\0", b"One", b""):
        reply = check(exchange(osd, obj, action, (VALUE, no), (VALUE, b"two")), OK)
        assert reply.attribute(VALUE).value == b"one"
    assert values(osd, obj)[0] == b"one"
    reply = check(exchange(osd, obj, action, (VALUE, b"one"), (VALUE, b""), get=(VALUE,)), OK)
    assert reply.retrieved is not None
    assert [each.value for each in reply.retrieved.attributes] == [b"one", b""]
    assert values(osd, obj)[0] == b""


@pytest.mark.parametrize(("action", "always"), [(GEN_CAS, True), (COND_SET, False)])
def test_further_entries(osd: Commands, obj: ObjectRef, action: int, always: bool) -> None:
    check(exchange(osd, obj, action, (VALUE, b"no"), (VALUE, b"x"), (OTHER, b"extra")), OK)
    assert values(osd, obj) == (b"", b"extra" if always else b"")
    check(exchange(osd, obj, action, (VALUE, b""), (VALUE, b"x"), (OTHER, b"more")), OK)
    assert values(osd, obj) == (b"x", b"more")


@pytest.mark.parametrize("action", [GEN_CAS, COND_SET])
def test_exchange_refused_changes_nothing(osd: Commands, obj: ObjectRef, action: int) -> None:
    length = AttributeId(Page.USER_INFORMATION, 0x81)  # read-only
    swap = ((VALUE, b""), (VALUE, b"x"))
    check(exchange(osd, obj, action, *swap, (length, bytes(8))), LIST_FIELD, length)
    check(exchange(osd, obj, action, (VALUE, b""), (OTHER, b"x")), LIST_FIELD, OTHER)
    check(exchange(osd, obj, action, (length, bytes(8)), (length, be(1))), LIST_FIELD, length)
    check(exchange(osd, obj, action, (VALUE, b"")), LIST_LENGTH)
    bad = AttributeId(Page.ROOT_INFORMATION, 4)
    check(exchange(osd, obj, action, (bad, b""), (bad, b"x")), LIST_FIELD, bad)
    check(exchange(osd, obj, action, *swap, get=(bad,)), LIST_FIELD, bad)
    page = rq.set_attributes(obj, attributes=AttributePage(set=AttributeValue(VALUE.page, 1, b"x")))
    check(mangled(osd, page, {8: be(action, 2)}), CDB_FIELD.at(11))
    check(mangled(osd, rq.set_attributes(obj), {8: be(action, 2)}), CDB_FIELD.at(68))
    assert values(osd, obj) == (b"", b"")


# ---- many clients ----

CLIENTS, ROUNDS = 6, 25


def test_additions_by_many_clients(osd: Commands, obj: ObjectRef) -> None:
    """Each sees a value of its own, and none is lost."""

    def add(_: int) -> list[int]:
        return [result(counter(osd, obj, ADD, 1)) for _ in range(ROUNDS)]

    with ThreadPoolExecutor(CLIENTS) as pool:
        seen = list(pool.map(add, range(CLIENTS)))
    assert sorted(chain(*seen)) == list(range(CLIENTS * ROUNDS))
    assert all(each == sorted(each) for each in seen)


def test_one_winner_of_each_swap(osd: Commands, obj: ObjectRef) -> None:
    """Clients race from each value to the next: one of them gets there."""

    def race(client: int) -> int:
        return sum(result(counter(osd, obj, CAS, step, step + 1)) == step for step in range(ROUNDS))

    with ThreadPoolExecutor(CLIENTS) as pool:
        wins = list(pool.map(race, range(CLIENTS)))
    assert sum(wins) == ROUNDS
    assert osd.get_attribute(obj, COUNTERS, 1) == be(ROUNDS)


def test_one_winner_of_each_exchange(osd: Commands, obj: ObjectRef) -> None:
    """Only the winner's further entry is set, in the same step."""

    def race(client: int) -> list[int]:
        won = []
        for step in range(ROUNDS):
            old, new = (be(each, 2) if each else b"" for each in (step, step + 1))
            mine = (OTHER, bytes([client, step]))
            reply = exchange(osd, obj, COND_SET, (VALUE, old), (VALUE, new), mine, get=(OTHER,))
            check(reply, OK)
            assert reply.retrieved is not None
            before, after = reply.retrieved.attributes
            if before.value == old:
                assert after.value == bytes([client, step])
                won.append(step)
        return won

    with ThreadPoolExecutor(CLIENTS) as pool:
        wins = list(pool.map(race, range(CLIENTS)))
    assert sorted(chain(*wins)) == list(range(ROUNDS))
