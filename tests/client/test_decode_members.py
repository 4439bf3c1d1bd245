# SPDX-License-Identifier: GPL-2.0-or-later
"""The answers to polls, taken apart by the core: what is cut, what differs, what is said twice."""

from __future__ import annotations

import random
import struct

import pytest
from hypothesis import given, strategies

from pyosd import _core
from pyosd.types import AttributeValue, ObjectAttributes, ObjectId
from pyosd.wire.attributes import (
    LIST_MULTI_OBJECT,
    decode_entries,
    decode_members,
    decode_retrieved,
    encode_entry,
)
from pyosd.wire.job_status import JobPoll, decode_poll

Entries = tuple[AttributeValue, ...]


def group(object_id: int, entries: Entries, kind: int = 0x80) -> bytes:
    body = b"".join(map(encode_entry, entries))
    return struct.pack(">QB5xH", object_id, kind, len(body)) + body


def status(number: int, value: bytes) -> AttributeValue:
    return AttributeValue(0x2000_0001, number, value)


def polled(object_id: int) -> Entries:
    return (status(3, bytes([object_id & 0xFF])), status(0x10, object_id.to_bytes(4, "big")))


MEMBERS = [ObjectAttributes(ObjectId(each), 0x80, polled(each)) for each in range(1, 20)]
ALIKE = b"".join(group(each.object_id, each.attributes) for each in MEMBERS)


def test_alike() -> None:
    assert list(decode_members(ALIKE)) == MEMBERS
    answer = struct.pack(">BxxxI", LIST_MULTI_OBJECT, len(ALIKE)) + ALIKE
    assert list(decode_retrieved(memoryview(answer)).members) == MEMBERS


def test_no_members_and_no_attributes() -> None:
    assert list(decode_members(b"")) == []
    bare = b"".join(group(each, ()) for each in (1, 2, 3))
    assert [(each.object_id, each.attributes) for each in decode_members(bare)] == [
        *((1, ()), (2, ()), (3, ()))
    ]


def test_cut_anywhere() -> None:
    """Complete groups are returned, cut ones are not."""
    size = len(ALIKE) // len(MEMBERS)
    for length in range(3 * size):
        assert list(decode_members(memoryview(ALIKE)[:length])) == MEMBERS[: length // size]


@pytest.mark.parametrize(
    "odd",
    [
        group(7, (status(3, b"\1"), status(0x11, bytes(4)))),  # another number
        group(7, (AttributeValue(1, 3, b"\1"), status(0x10, bytes(4)))),  # another page
        group(7, (status(3, b"\1\2"), status(0x10, bytes(3)))),  # other lengths, as long
        group(7, (status(3, b""), status(0x10, bytes(4)))),  # undefined
        group(7, polled(7), kind=0x40),  # another type
        group(7, ()),
    ],
)
@pytest.mark.parametrize("place", [0, 1, len(MEMBERS)])
def test_one_that_differs(odd: bytes, place: int) -> None:
    size = len(ALIKE) // len(MEMBERS)
    found = list(decode_members(ALIKE[: place * size] + odd + ALIKE[place * size :]))
    assert found[:place] + found[place + 1 :] == MEMBERS
    assert found[place].object_id == 7
    assert group(7, found[place].attributes, found[place].object_type) == odd


def test_noise_never_raises() -> None:
    dice = random.Random(1)
    for _ in range(300):
        noise = bytearray(ALIKE)
        for _ in range(dice.randrange(1, 4)):
            noise[dice.randrange(len(noise))] ^= 1 << dice.randrange(8)
        for each in decode_members(memoryview(noise)):
            assert len(group(each.object_id, each.attributes)) <= len(noise)


def test_reserved_bytes_do_not_matter() -> None:
    """Those of the heads may be anything."""
    noise = bytearray(ALIKE)
    noise[9] = noise[16 + 9] = 0xFF
    assert list(decode_members(memoryview(noise))) == MEMBERS


def test_what_is_said_twice_is_one_object() -> None:
    alike = [group(each, (status(3, b"\x10"), status(4, b"\0\2"))) for each in (1, 2)]
    other = group(3, (status(3, b"\x10"), status(4, b"\0\3")))
    first, second, third = decode_members(b"".join([*alike, other]))
    assert second.attributes is first.attributes
    assert third.attributes[0] is first.attributes[0]
    assert third.attributes[1] == status(4, b"\0\3")


@given(strategies.binary(max_size=120))
def test_entries_as_the_standard_has_them(data: bytes) -> None:
    """Against entry after entry by hand."""
    found, at = [], 0
    while len(data) - at >= 16:
        page, number, length = struct.unpack_from(">II6xH", data, at)
        if length > len(data) - at - 16:
            break
        found.append(AttributeValue(page, number, data[at + 16 : at + 16 + length]))
        at += 16 + length + -length % 8
    assert decode_entries(data) == tuple(found)
    assert all(type(each) is AttributeValue for each in decode_entries(data))


def test_only_named_tuples() -> None:
    for call in (
        lambda: _core.decode_entries(ALIKE, int),  # type: ignore[arg-type]
        lambda: _core.decode_groups(ALIKE, ObjectAttributes, dict),  # type: ignore[arg-type]
        lambda: _core.decode_form(bytes(16), b"\1", list),  # type: ignore[type-var]
    ):
        with pytest.raises(TypeError):
            call()


POLL = struct.Struct(">IIHBBIQHHHIIQQ")
WIDTHS = (2, 1, 1, 4, 8, 2, 2, 2, 4, 4, 8, 8)


@given(
    strategies.tuples(*(strategies.integers(0, 256**width - 1) for width in WIDTHS)),
    strategies.integers(0, 60),
    strategies.integers(0, 2**32 - 1) | strategies.integers(40, 50),
)
def test_page_in_its_fixed_form(numbers: tuple[int, ...], arrived: int, length: int) -> None:
    """Against struct; None where the target sent, or says it has, less than all of it."""
    page = POLL.pack(0x2000_0001, length, *numbers) + bytes(6)
    found = decode_poll(memoryview(page)[:arrived])
    whole = arrived >= POLL.size and length >= POLL.size - 8
    assert found == (JobPoll(*numbers) if whole else None)
    assert found is None or type(found) is JobPoll


@pytest.mark.parametrize("widths", [b"\0", b"\1\t", b"\xff"])
def test_widths_of_numbers(widths: bytes) -> None:
    with pytest.raises(ValueError, match="1 to 8 bytes"):
        _core.decode_form(bytes(600), widths, tuple)
