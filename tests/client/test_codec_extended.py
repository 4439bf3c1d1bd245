# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands beyond everyday use, their bytes typed from osd2-wire 3.2, 3.9-3.19 and 5.16; and answers
of targets that lie."""

from __future__ import annotations

import re
import struct
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyosd import requests
from pyosd.commands import Commands
from pyosd.errors import OSDError, ProtocolError
from pyosd.osd._errors import Invalid
from pyosd.osd._query import TERMS_MAX, Condition, Criterion, Query, attr, encode_query_list
from pyosd.types import ROOT, AttributeId, AttributeValue, PartitionId, TaskManagement, ref
from pyosd.wire.cdb import Duplication, Request, ServiceAction, decode_data_in, encode
from pyosd.wire.list_data import Extent, MapType, decode_map, decode_query_result
from pyosd.wire.tracking import CommandTracking, TaskManagementReply
from pyosd.wire.transport import Command, Pending, Response

COLLECTION = ref(0x10000, 0x10002)
OBJECT = ref(0x10000, 0x10001)
CAPABILITY = "ffee0000 00000068" + "00" * 104
OSD2_H = Path(__file__).resolve().parents[2] / "target/wire/osd2.h"


def cdb_of(request: Request) -> bytes:
    return encode(request)[0].cdb


def data_out(request: Request) -> bytes:
    return bytes(encode(request)[0].data_out)


def at(data: bytes, offset: int, expected: str) -> None:
    raw = bytes.fromhex(expected)
    assert data[offset : offset + len(raw)].hex() == raw.hex(), f"at byte {offset}"


def test_service_actions_are_the_target_s() -> None:
    text = OSD2_H.read_text().partition("OSD_SERVICE_ACTIONS(X)")[2].partition("\n\n")[0]
    rows = re.findall(r"X\((0x8[0-9a-f]{3}), +(\w+), ", text)
    found = {name: int(code, 16) for code, name in rows}
    common = {each.name for each in ServiceAction} & found.keys()
    assert len(common) >= 35
    assert {name: ServiceAction[name].value for name in common} == {n: found[n] for n in common}


# ---- collections --------------------------------------------------------------------------------


def test_create_tracking_collection() -> None:
    empty = requests.create_user_tracking_collection(0x10000, 0x10009)
    at(cdb_of(empty), 8, "8894 00 30")
    at(cdb_of(empty), 16, "0000000000010000 0000000000010009" + "00" * 16 + "00000000")
    assert data_out(empty) == b""
    filled = requests.create_user_tracking_collection(0x10000, 0, 0x10002)
    at(cdb_of(filled), 24, "00" * 16 + "0000000000010002 00000098")
    at(data_out(filled), 0, "01 00 8894" + "00" * 36 + CAPABILITY)


def test_remove_collection() -> None:
    at(cdb_of(requests.remove_collection(COLLECTION)), 8, "8896 00 30")
    fcr = cdb_of(requests.remove_collection(COLLECTION, True))
    at(fcr, 8, "8896 00 31 00000000 0000000000010000 0000000000010002")


def test_member_commands() -> None:
    value = AttributeValue(0x10000, 1, b"v")
    lists = requests.set_attributes(OBJECT).attributes
    at(cdb_of(requests.remove_member_objects(COLLECTION)), 8, "88a1 00 30")
    at(cdb_of(requests.remove_member_objects(COLLECTION, immediate=True)), 8, "88a1 00 b0")
    at(cdb_of(requests.get_member_attributes(COLLECTION, attributes=lists)), 8, "88a2 00 30")
    at(cdb_of(requests.set_member_attributes(COLLECTION, attributes=lists)), 8, "88a3 00 30")
    at(cdb_of(requests.set_member_attributes(COLLECTION, True)), 8, "88a3 00 b0")
    assert value.uint == ord("v")


QUERY_LIST = (
    "01 000000"
    "0000 0014 00010000 00000001 0004 00000004 0004 00000050"
    "0000 000f 00010000 00000002 0003 726564 0000"
    "00"
)
CRITERIA = [
    Criterion(0x10000, 1, b"\0\0\0\4", b"\0\0\0\x50"),
    Criterion(0x10000, 2, b"red"),
]


def test_query_list() -> None:
    assert encode_query_list(CRITERIA, True).hex() == bytes.fromhex(QUERY_LIST).hex()
    assert encode_query_list([], False) == bytes(8)
    with pytest.raises(ValueError, match="no criterion"):
        Criterion(1, 1, bytes(40000), bytes(40000)).encode()
    with pytest.raises(ValueError, match="no criterion"):
        Criterion(1 << 32, 1).encode()


def test_query() -> None:
    request = requests.query(COLLECTION, CRITERIA, 1024)
    cdb = cdb_of(request)
    at(cdb, 8, "88a0 00 30")
    at(cdb, 16, "0000000000010000 0000000000010002 0000000000000400 0000000000000000 00000060")
    at(data_out(request), 0, "01 00 88a0" + "00" * 36 + "0002 00 00 00000030" + QUERY_LIST)
    assert encode(request)[0].data_in_length == 1024
    at(data_out(requests.query(COLLECTION, CRITERIA, 8, match_all=False)), 48, "00 000000")


def test_query_of_the_older_drafts() -> None:
    request = requests.query(COLLECTION, CRITERIA, 1024, plain=True)
    at(cdb_of(request), 48, "00000030")
    assert data_out(request) == bytes.fromhex(QUERY_LIST)


def test_query_into_a_collection() -> None:
    request = requests.query_into(COLLECTION, CRITERIA, 0x10007, immediate=True)
    cdb = cdb_of(request)
    at(cdb, 8, "88a0 00 b0")
    at(cdb, 16, "0000000000010000 0000000000010002 0000000000000000 0000000000010007 000000d0")
    expected = "0002 00 00 00000030" + QUERY_LIST + CAPABILITY
    assert data_out(request)[40:] == bytes.fromhex(expected)
    assert encode(request)[0].data_in_length == 0


def test_query_answers() -> None:
    ids = bytes.fromhex("0000000000010000 0000000000010003")
    r05 = decode_query_result(bytes.fromhex("0000000000000014 000000 84") + ids)
    assert r05.ids == (0x10000, 0x10003) and r05.total_count == 2
    older = decode_query_result(bytes.fromhex("0000000000000015 00000000 84") + ids)
    assert older == r05
    cut = decode_query_result(bytes.fromhex("0000000000000404 000000 84") + ids[:11])
    assert cut.ids == (0x10000,) and cut.total_count == 128


# ---- copy, map, check ---------------------------------------------------------------------------


def test_copy() -> None:
    source = ref(0x10005, 0x10006)
    request = requests.copy_user_object(source, 0x10000, 0x10009, method=Duplication.BYTE_BY_BYTE)
    cdb = cdb_of(request)
    at(cdb, 8, "8893 00 30 00 00 81 00 0000000000010000 0000000000010009")
    at(cdb, 48, "00000048")
    content = "0000000000010005 0000000000010006 01 00 0000" + "00000000"
    at(data_out(request), 40, "0101 00 04 00000014" + content)
    bare = requests.copy_user_object(source, 0x10000, with_attributes=False)
    at(data_out(bare), 48 + 16, "00 00 0000")


def test_read_map() -> None:
    request = requests.read_map(OBJECT, 0x2000, 0x100, MapType.HOLE)
    at(cdb_of(request), 8, "88b1 00 30")
    at(cdb_of(request), 32, "0000000000000100 0000000000002000 0002 0000")
    answer = (
        "0000000000000030 0000 0001 00001000 0000000000002000 0000 0002 00000800 0000000000003000"
    )
    found = decode_map(bytes.fromhex(answer))
    assert found.extents == (Extent(1, 0x2000, 0x1000), Extent(2, 0x3000, 0x800)) and found.more
    with pytest.raises(ValueError, match="out of order"):
        decode_map(bytes.fromhex("0000000000000010 0000 0001 00000000 0000000000002000"))


def test_object_structure_check() -> None:
    at(cdb_of(requests.object_structure_check(0x10000)), 8, "8880 00 30 00000000 0000000000010000")


# ---- atomics ------------------------------------------------------------------------------------


def test_words() -> None:
    request = requests.compare_and_swap(OBJECT, 5, 7)
    at(cdb_of(request), 8, "8f84")
    at(cdb_of(request), 32, "0000000000000010 0000000000000000 00000000")
    assert data_out(request) == bytes.fromhex("0000000000000005 0000000000000007")
    assert encode(request)[0].data_in_length == 8
    request = requests.fetch_and_add(OBJECT, (1 << 64) - 1)
    at(cdb_of(request), 8, "8f85")
    assert data_out(request) == b"\xff" * 8
    with pytest.raises(ValueError, match="64 bits"):
        requests.fetch_and_add(OBJECT, -1)


@pytest.mark.parametrize(
    ("build", "action"),
    [
        (requests.generic_compare_and_swap, "8f86"),
        (requests.conditional_set_attributes, "8f87"),
    ],
)
def test_conditional_sets(build: type[object], action: str) -> None:
    compare = AttributeValue(0x10000, 1, b"old")
    others = [AttributeValue(0x10000, 2, b"x")]
    request = build(OBJECT, compare, b"", others, [AttributeId(0x10000, 3)])  # type: ignore[call-arg]
    assert isinstance(request, Request)
    cdb = cdb_of(request)
    at(cdb, 8, action + "00 30")
    at(cdb, 68, "00000048 00000000")  # length and place of the set list
    expected = (
        "09000000 00000040"
        "00010000 00000001 000000000000 0003 6f6c640000000000"
        "00010000 00000001 000000000000 0000"
        "00010000 00000002 000000000000 0001 7800000000000000"
        "01000000 00000008 00010000 00000003"
    )
    assert data_out(request) == bytes.fromhex(expected)
    before = bytes.fromhex("09000000 00000018 00010000 00000001 000000000000 0003 6f6c640000000000")
    command, layout = encode(request)
    assert command.data_in_length >= len(before)
    retrieved = decode_data_in(request, layout, memoryview(before)).retrieved
    assert retrieved.attributes == (compare,)


def test_room_for_the_value_before_without_a_get_list() -> None:
    compare = AttributeValue(0x10000, 1, bytes(60000))
    request = requests.conditional_set_attributes(OBJECT, compare, b"")
    assert encode(request)[0].data_in_length >= 60000 + 24


# ---- PERFORM ------------------------------------------------------------------------------------


def test_perform_scsi_command() -> None:
    inquiry = bytes.fromhex("12 00 00 00 ff 00")
    request = requests.perform_scsi_command(inquiry, data_in_length=255)
    at(cdb_of(request), 8, "8f7c 00 30")
    at(cdb_of(request), 16, "00" * 16 + "12000000ff00" + "00" * 10 + "00000000")
    for bad in (b"", bytes(17)):
        with pytest.raises(ValueError, match="1-16 bytes"):
            requests.perform_scsi_command(bad)


def test_perform_task_management() -> None:
    request = requests.perform_task_management(TaskManagement.QUERY_TASK, 0x1234, ROOT)
    at(cdb_of(request), 8, "8f7d 00 30")
    at(cdb_of(request), 32, "0008 0000000000 80 0000000000001234 00000000")
    reply = TaskManagementReply.decode(bytes.fromhex("0006 0000 05 16 29 00"))
    assert reply == TaskManagementReply(5, 1, 6, 0x29, 0)
    with pytest.raises(ValueError, match="cut"):
        TaskManagementReply.decode(bytes(7))


def test_command_tracking() -> None:
    def value(number: int, data: str) -> AttributeValue:
        return AttributeValue(0x6000_0004, number, bytes.fromhex(data))

    running = CommandTracking.of(
        [value(1, "32"), value(2, "88a1"), value(3, "ffff"), value(0x10, "0000000000000064")]
    )
    assert (running.percent, running.active, running.members) == (50, 0x88A1, 100)
    assert not running.ended_well and running.sense is None and running.done is None
    failed = CommandTracking.of([value(2, "0000"), value(3, "0002"), value(4, "720b0006 00000000")])
    assert failed.sense and failed.sense.sense_key == 0xB and not failed.ended_well
    assert CommandTracking.of([]).ended_well


# ---- conditions ---------------------------------------------------------------------------------

age, tint = attr(0x10000, 1), attr(0x10000, 2)


def be(number: int) -> bytes:
    return number.to_bytes(8, "big")


@pytest.mark.parametrize(
    ("condition", "low", "high"),
    [
        (age >= 5, be(5), b""),
        (age > 5, be(5) + b"\0", b""),
        (age <= 5, b"", be(5)),
        (age < 5, b"", be(4)),
        (age == 5, be(5), be(5)),
        (age == "é", "é".encode(), "é".encode()),
        (age == memoryview(b"x"), b"x", b"x"),
        (age > b"x", b"x\0", b""),
        (age < b"x\0", b"", b"x"),
        (age.defined(), b"", b""),
        ((age >= 3) & (age <= 9) & (age >= 4), be(4), be(9)),
        (5 <= age, be(5), b""),  # noqa: SIM300 -- the reflected operators
    ],
)
def test_comparisons(condition: Condition, low: bytes, high: bytes) -> None:
    assert condition.queries() == [Query((Criterion(0x10000, 1, low, high),))]


def test_what_one_query_can_say() -> None:
    assert ((age >= 1) & (tint == "red")).queries() == [
        Query((Criterion(0x10000, 1, be(1)), Criterion(0x10000, 2, b"red", b"red")))
    ]
    (either,) = ((age == 1) | (age == 2) | (tint == 3)).queries()
    assert len(either.criteria) == 3 and not either.match_all
    assert len((((age == 1) & (tint == 2)) | (age == 3)).queries()) == 2
    assert len((((age == 1) | (age == 2)) & (tint == 2)).queries()) == 2
    assert (age != 5).queries()[0].match_all is False
    for nothing in ((age >= 5) & (age <= 4), age < 0, age < b"\0"):
        assert nothing.queries() == []
    assert ((age < 0) | (age == 3)).queries() == (age == 3).queries()


def test_what_no_query_can_say() -> None:
    for mistake in (
        lambda: age < "text",
        lambda: age != "text",
        lambda: age == "",
        lambda: age >= -1,
        lambda: age == 1 << 64,
        lambda: age == None,  # noqa: E711
        lambda: age == 1.5,
        lambda: attr(0x3000_0000, 1),
        lambda: attr(1, 1 << 32),
    ):
        with pytest.raises(Invalid):
            mistake()
    with pytest.raises(TypeError, match="joined by"):
        1 <= age <= 5  # noqa: B015
    with pytest.raises(TypeError):
        (age == 1) & 5  # type: ignore[operator]
    many = age == 0
    for number in range(1, TERMS_MAX):
        many |= age == number
    with pytest.raises(Invalid, match="above"):
        many | (age == TERMS_MAX)


values = st.one_of(st.integers(0, 2**64 - 1), st.binary(min_size=1, max_size=12))


@given(values, values, st.binary(min_size=1, max_size=12))
def test_conditions_mean_what_python_means(
    low: int | bytes, high: int | bytes, held: bytes
) -> None:
    """age criterion, read as the target reads it, agrees with comparing the bytes."""

    def bytes_of(value: int | bytes) -> bytes:
        return be(value) if isinstance(value, int) else value

    def matches(condition: Condition) -> bool:
        return any(
            (all if query.match_all else any)(
                each.minimum <= held and (not each.maximum or held <= each.maximum)
                for each in query.criteria
            )
            for query in condition.queries()
        )

    assert matches(age >= low) == (held >= bytes_of(low))
    assert matches(age > low) == (held > bytes_of(low))
    assert matches(age <= high) == (held <= bytes_of(high))
    assert matches(age == low) == (held == bytes_of(low))
    between = bytes_of(low) <= held <= bytes_of(high)
    assert matches((age >= low) & (age <= high)) == between
    outside = held < bytes_of(low) or held > bytes_of(high)
    if isinstance(low, int) and len(held) == 8:
        assert matches((age < low) | (age > high)) == outside
        assert matches(age != low) == (held != bytes_of(low))


# ---- round trips, and answers that lie ---------------------------------------------------------


def parse_query_list(content: bytes) -> tuple[bool, list[Criterion]]:
    """As a target reads it (osd2-wire 3.9)."""
    found, where = [], 4
    while where + 4 <= len(content):
        (length,) = struct.unpack_from(">H", content, where + 2)
        if not length:
            break
        page, number, low = struct.unpack_from(">IIH", content, where + 4)
        minimum = content[where + 14 : where + 14 + low]
        (high,) = struct.unpack_from(">H", content, where + 14 + low)
        maximum = content[where + 16 + low : where + 16 + low + high]
        assert length == 12 + low + high
        found.append(Criterion(page, number, minimum, maximum))
        where += 4 + length
    assert not any(content[where:])
    return content[0] == 1, found


criteria = st.lists(
    st.builds(
        Criterion,
        st.integers(0, 2**32 - 1),
        st.integers(0, 2**32 - 1),
        st.binary(max_size=40),
        st.binary(max_size=40),
    ),
    max_size=8,
)


@given(criteria, st.booleans())
def test_query_list_round_trip(wanted: list[Criterion], match_all: bool) -> None:
    content = encode_query_list(wanted, match_all)
    assert len(content) % 8 == 0
    assert parse_query_list(content) == (match_all, wanted)


@given(st.binary(max_size=200))
def test_answers_of_any_bytes(data: bytes) -> None:
    for decode in (decode_query_result, decode_map, TaskManagementReply.decode):
        try:
            decode(data)
        except ValueError:
            pass


@given(st.lists(st.integers(0, 2**64 - 1), max_size=20), st.integers(0, 200))
def test_query_answers_cut_anywhere(ids: list[int], cut: int) -> None:
    whole = struct.pack(f">QxxxB{len(ids)}Q", 4 + 8 * len(ids), 0x84, *ids)
    try:
        found = decode_query_result(whole[:cut])
    except ValueError:
        assert cut < 12
        return
    assert found.total_count == len(ids)
    assert list(found.ids) == ids[: max(0, min(cut, len(whole)) - 12) // 8]


@given(
    st.lists(
        st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**16 - 1), st.binary(max_size=9)),
        max_size=20,
    )
)
def test_tracking_pages_of_any_bytes(pages: list[tuple[int, int, bytes]]) -> None:
    values_ = [AttributeValue(0x6000_0004, number % 0x20, data) for _, number, data in pages]
    CommandTracking.of(values_)


@given(criteria, st.booleans())
def test_query_lists_are_read_again(wanted: list[Criterion], match_all: bool) -> None:
    query = Query(tuple(wanted), match_all)
    assert Query.decode(query.encode()) == query


@given(st.binary(max_size=100))
def test_query_lists_of_any_bytes(data: bytes) -> None:
    try:
        Query.decode(data)
    except Invalid:
        pass


class Lying:
    """A transport whose target gives the same answer to whatever it is asked."""

    def __init__(self, answer: bytes, status: int = 0, sense: bytes = b"") -> None:
        self.response = (status, sense, answer)
        self.asked = 0

    def submit(self, command: Command) -> Pending:
        raise AssertionError("nothing here is submitted")

    def execute(self, command: Command, timeout: float | None = None) -> Response:
        self.asked += 1
        assert self.asked < 100, "it is asked for ever"
        status, sense, answer = self.response
        return Response(status, sense, memoryview(answer)[: command.data_in_length])

    def close(self) -> None:
        """Nothing to close."""


def entry(page: int, number: int, length: int) -> bytes:
    return struct.pack(">II6xH", page, number, length)


ENDLESS_MAP = struct.pack(">QHHIQ", 1 << 40, 0, 1, 4096, 0)
LISTED = b"\x09\0\0\0" + (24).to_bytes(4, "big")


@pytest.mark.parametrize(
    ("answer", "ask"),
    [
        (ENDLESS_MAP, lambda osd: osd.read_map(OBJECT)),
        (bytes(7), lambda osd: osd.read_map(OBJECT)),
        (struct.pack(">QxxxB", 4 + 800, 0x84), lambda osd: osd.query(OBJECT)),
        (struct.pack(">QxxxB", 4 + (8 << 40), 0x84), lambda osd: osd.query(OBJECT)),
        (b"", lambda osd: osd.query(OBJECT, age == 1)),
        (b"", lambda osd: osd.fetch_and_add(OBJECT, 1)),
        (bytes(7), lambda osd: osd.compare_and_swap(OBJECT, 1, 2)),
        (b"", lambda osd: osd.swap_attribute(OBJECT, AttributeId(9, 9), b"", b"x")),
        (
            LISTED + entry(8, 8, 0),
            lambda osd: osd.swap_attribute(OBJECT, AttributeId(9, 9), b"", b"x"),
        ),
        (b"", lambda osd: osd.perform_task_management(1)),
        (b"", lambda osd: osd.create_tracking_collection(0x10000)),
        (b"", lambda osd: osd.copy(OBJECT, 0x10000)),
        (
            b"\x0e\0\0\0" + (1 << 17).to_bytes(4, "big"),
            lambda osd: osd.get_member_attributes(OBJECT, [AttributeId(9, 9)]),
        ),
    ],
)
def test_answers_that_lie(answer: bytes, ask: Callable[[Commands], object]) -> None:
    with pytest.raises(ProtocolError):
        ask(Commands(Lying(answer)))


def test_tracking_of_a_target_that_says_nothing() -> None:
    assert Commands(Lying(b"")).tracking(COLLECTION).ended_well


def test_damage_is_counted() -> None:
    sense = bytes.fromhex("72 04 44 00 00 00 00 0c 01 0a 80 00 0000000000000003")
    assert Commands(Lying(b"", 2, sense)).object_structure_check() == 3
    with pytest.raises(OSDError):
        Commands(Lying(b"", 2, sense[:8])).object_structure_check()
    assert Commands(Lying(b"")).object_structure_check(PartitionId(0x10000)) == 0
