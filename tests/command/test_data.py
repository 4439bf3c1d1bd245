# SPDX-License-Identifier: GPL-2.0-or-later
"""READ, WRITE, APPEND, CLEAR, PUNCH and truncation by the logical length (osd2-wire 3.3)."""

from __future__ import annotations

from pathlib import Path

import pytest

from pyosd import _core
from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import (
    CURRENT_APPEND_START,
    CURRENT_CHECKSUM,
    CURRENT_OBJECT_ID,
    LOGICAL_LENGTH,
    Page,
)
from pyosd.wire.cdb import AttributeLists, AttributePage, Attributes, Options, SetOne
from tests.conftest import MakeHarness
from tests.expect import (
    BEYOND_END,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    OK,
    PAST_END,
    check,
    mangled,
)

DATA = bytes(range(256)) * 16
COLOUR = AttributeValue(Page.APPLICATION, 1, b"green")


def length_of(osd: Commands, obj: ObjectRef) -> int:
    return int.from_bytes(osd.get_attribute(obj, LOGICAL_LENGTH.page, LOGICAL_LENGTH.number), "big")


def content(osd: Commands, obj: ObjectRef) -> bytes:
    return bytes(osd.read(obj, 0, length_of(osd, obj) + 64))


# ---- READ ----


@pytest.mark.parametrize("size", [1, 511, 512, 4095, 4096, 4097, 65536, 65537, 1 << 20])
def test_write_then_read(osd: Commands, obj: ObjectRef, size: int) -> None:
    data = (DATA * (size // len(DATA) + 1))[:size]
    check(osd.reply(rq.write(obj, 0, data)), OK)
    assert bytes(check(osd.reply(rq.read(obj, 0, size)), OK).data) == data


def test_read_inside(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, DATA)
    assert bytes(osd.read(obj, 1000, 77)) == DATA[1000:1077]


def test_read_across_the_end(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, DATA)
    reply = check(osd.reply(rq.read(obj, 4090, 100)), PAST_END)
    assert bytes(reply.data) == DATA[4090:]
    assert reply.sense is not None
    assert reply.sense.command_information == 6


@pytest.mark.parametrize("start", [4096, 5000, 1 << 40])
def test_read_at_or_behind_the_end(osd: Commands, obj: ObjectRef, start: int) -> None:
    osd.write(obj, 0, DATA)
    reply = check(osd.reply(rq.read(obj, start, 16)), PAST_END)
    assert reply.sense is not None
    assert reply.sense.command_information == 0
    assert reply.data.nbytes == 0
    assert bytes(reply.response.data_in) == bytes(16)


@pytest.mark.parametrize("length", [1, 4096, 65_536, 65_537, 3 << 20])
def test_a_short_read_fills_data_in_with_zeros(osd: Commands, obj: ObjectRef, length: int) -> None:
    """An initiator that takes 3B/17 for success may use all of Data-In: zeros follow the data."""
    osd.write(obj, 0, DATA)
    start = 4096 - min(100, length // 2)
    reply = check(osd.reply(rq.read(obj, start, length)), PAST_END)
    there = DATA[start:]
    assert bytes(reply.data) == there[:length]
    assert bytes(reply.response.data_in) == there + bytes(length - len(there))


def test_a_read_of_what_never_was_written(osd: Commands, obj: ObjectRef) -> None:
    reply = check(osd.reply(rq.read(obj, 0, 70_000)), PAST_END)
    assert bytes(reply.response.data_in) == bytes(70_000)


def test_a_short_scattered_read_fills_every_slot(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    reply = check(osd.reply(rq.read_pieces(obj, [(3, 4), (100, 8), (0, 2)])), PAST_END)
    assert bytes(reply.response.data_in) == b"45" + bytes(2) + bytes(8) + b"12"
    assert reply.sense is not None and reply.sense.command_information == 4


def test_read_nothing(osd: Commands, obj: ObjectRef) -> None:
    reply = check(osd.reply(rq.read(obj, 0, 0)), OK)
    assert reply.response.data_in.nbytes == 0


def test_read_absent(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.read(ref(pid, 0x1_2345), 0, 1)), NO_OBJECT)
    check(osd.reply(rq.read(ref(0x7777_0000_0000, 0x1_2345), 0, 1)), NO_PARTITION)


def test_read_a_collection(osd: Commands, collection: ObjectRef) -> None:
    check(osd.reply(rq.read(collection, 0, 1)), NO_OBJECT)


def test_short_read_still_serves_attributes(osd: Commands, obj: ObjectRef) -> None:
    """3B/17 is a recovered error: set and get are done, at the place the CDB says."""
    osd.write(obj, 0, b"12345")
    lists = AttributeLists((COLOUR.id, LOGICAL_LENGTH), (COLOUR,))
    reply = check(osd.reply(rq.read(obj, 0, 64, attributes=lists)), PAST_END)
    assert bytes(reply.data) == b"12345"
    assert reply.attribute(COLOUR.id) == COLOUR
    assert reply.attribute(LOGICAL_LENGTH).uint == 5
    assert bytes(reply.response.data_in[5:64]) == bytes(59), "the gap is zeros"


# ---- WRITE ----


def test_write_overwrites_and_leaves_the_rest(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, DATA)
    osd.write(obj, 100, b"XYZ")
    assert content(osd, obj) == DATA[:100] + b"XYZ" + DATA[103:]


def test_write_behind_the_end_leaves_zeros(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"abc")
    osd.write(obj, 10_000, b"def")
    assert content(osd, obj) == b"abc" + bytes(9_997) + b"def"


def test_write_far_out_is_sparse(make_harness: MakeHarness, disk: Path) -> None:
    osd = make_harness(dir=disk / "store").osd
    obj = osd.create(osd.create_partition())
    osd.write(obj, 1 << 36, b"far")
    assert length_of(osd, obj) == (1 << 36) + 3
    assert bytes(osd.read(obj, (1 << 36) - 4, 7)) == bytes(4) + b"far"
    assert bytes(osd.read(obj, 1 << 35, 16)) == bytes(16)


def test_write_nothing(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.write(obj, 0, b"")), OK)
    assert length_of(osd, obj) == 0


def test_write_absent(osd: Commands, pid: PartitionId) -> None:
    check(osd.reply(rq.write(ref(pid, 0x1_2345), 0, b"x")), NO_OBJECT)
    check(osd.reply(rq.write(ref(0x7777_0000_0000, 0x1_2345), 0, b"x")), NO_PARTITION)
    assert osd.list_objects(pid) == []


def test_write_a_collection(osd: Commands, collection: ObjectRef) -> None:
    check(osd.reply(rq.write(collection, 0, b"x")), NO_OBJECT)


def test_write_and_set_as_in_the_appendix(osd: Commands, pid: PartitionId) -> None:
    """Appendix A.2: five bytes at 100 with one attribute."""
    obj = osd.create(pid, 0x1_0001)
    value = AttributeValue(0x1_0000, 1, bytes([1, 2, 3, 4]))
    osd.write(obj, 100, b"hello", attributes=[value])
    assert content(osd, obj) == bytes(100) + b"hello"
    assert osd.get_attribute(obj, 0x1_0000, 1) == bytes([1, 2, 3, 4])


@pytest.mark.parametrize("form", ["list", "page", "cdb"])
def test_write_and_set_in_every_format(osd: Commands, obj: ObjectRef, form: str) -> None:
    forms: dict[str, Attributes] = {
        "list": AttributeLists((), (COLOUR,)),
        "page": AttributePage(set=COLOUR),
        "cdb": SetOne(COLOUR),
    }
    check(osd.reply(rq.write(obj, 0, b"12345", attributes=forms[form])), OK)
    assert content(osd, obj) == b"12345"
    assert osd.get_attribute(obj, COLOUR.page, COLOUR.number) == COLOUR.value


def test_write_reports_the_length_after_itself(osd: Commands, obj: ObjectRef) -> None:
    lists = AttributeLists((LOGICAL_LENGTH, CURRENT_OBJECT_ID))
    reply = check(osd.reply(rq.write(obj, 0, b"12345", attributes=lists)), OK)
    assert reply.attribute(LOGICAL_LENGTH).uint == 5
    assert reply.attribute(CURRENT_OBJECT_ID).uint == obj.object_id


def test_timestamps_bypass(osd: Commands, obj: ObjectRef) -> None:
    modified = (Page.USER_TIMESTAMPS, 5)
    osd.write(obj, 0, b"1")
    before = osd.get_attribute(obj, *modified)
    osd.write(obj, 0, b"2", options=Options(no_timestamps=True))
    assert osd.get_attribute(obj, *modified) == before


# ---- pieces: scatter and gather ----


def test_write_pieces(osd: Commands, obj: ObjectRef) -> None:
    osd.write_pieces(obj, [(8, 2), (0, 3), (100, 1)], b"ABCDEF")
    assert content(osd, obj) == b"CDE" + bytes(5) + b"AB" + bytes(90) + b"F"


def test_read_pieces_as_in_the_appendix(osd: Commands, obj: ObjectRef) -> None:
    """Appendix A.3: (0, 4096) and (65536, 8192)."""
    osd.write(obj, 0, DATA)
    osd.write(obj, 65536, DATA * 2)
    assert bytes(osd.read_pieces(obj, [(0, 4096), (65536, 8192)])) == DATA * 3


def test_read_pieces_beyond_the_end_keep_their_slots(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345678")
    reply = check(osd.reply(rq.read_pieces(obj, [(6, 4), (0, 2)])), PAST_END)
    assert bytes(reply.response.data_in[:6]) == b"78\0\0" + b"12"


# ---- APPEND ----


def test_append_returns_where(osd: Commands, obj: ObjectRef) -> None:
    assert [osd.append(obj, piece) for piece in (b"one", b"", b"two", b"x" * 5000)] == [0, 3, 3, 6]
    assert content(osd, obj) == b"onetwo" + b"x" * 5000


def test_append_behind_a_hole(osd: Commands, obj: ObjectRef) -> None:
    osd.clear(obj, 0, 1000)
    assert osd.append(obj, b"end") == 1000


def test_append_start_is_0_for_other_commands(osd: Commands, obj: ObjectRef) -> None:
    osd.append(obj, b"12345")
    lists = AttributeLists((CURRENT_APPEND_START,))
    reply = check(osd.reply(rq.write(obj, 2, b"x", attributes=lists)), OK)
    assert reply.attribute(CURRENT_APPEND_START).uint == 0


def test_append_absent(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.append(ref(pid, 0x1_2345), b"x")), NO_OBJECT)


def test_appends_of_many_never_overlap(osd: Commands, obj: ObjectRef) -> None:
    lists = AttributeLists((CURRENT_APPEND_START,))
    pieces = [bytes([65 + each]) * (each + 1) for each in range(16)]
    pending = [osd.submit(rq.append(obj, piece, attributes=lists)) for piece in pieces]
    starts = [check(each.reply(), OK).attribute(CURRENT_APPEND_START).uint for each in pending]
    data = content(osd, obj)
    assert len(data) == sum(map(len, pieces))
    for start, piece in zip(starts, pieces, strict=True):
        assert data[start : start + len(piece)] == piece


# ---- CLEAR ----


def test_clear_inside(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, DATA)
    osd.clear(obj, 100, 1000)
    assert content(osd, obj) == DATA[:100] + bytes(1000) + DATA[1100:]


def test_clear_across_the_end_extends(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    osd.clear(obj, 3, 100)
    assert content(osd, obj) == b"123" + bytes(100)


def test_clear_behind_the_end_extends(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    osd.clear(obj, 10, 10)
    assert content(osd, obj) == b"12345" + bytes(15)


def test_clear_nothing(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    check(osd.reply(rq.clear(obj, 2, 0)), OK)
    assert content(osd, obj) == b"12345"


def test_clear_absent(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.clear(ref(pid, 0x1_2345), 0, 1)), NO_OBJECT)


# ---- PUNCH ----


@pytest.mark.parametrize(
    ("start", "length"), [(0, 10), (100, 1000), (5, 4091), (0, 4096), (4095, 1), (10, 0)]
)
def test_punch_moves_the_tail_down(osd: Commands, obj: ObjectRef, start: int, length: int) -> None:
    osd.write(obj, 0, DATA)
    osd.punch(obj, start, length)
    assert content(osd, obj) == DATA[:start] + DATA[start + length :]


def test_punch_a_large_object(osd: Commands, obj: ObjectRef) -> None:
    data = DATA * 512  # 2 MiB
    osd.write(obj, 0, data)
    osd.punch(obj, 4097, 1_000_001)
    expected = data[:4097] + data[4097 + 1_000_001 :]
    assert length_of(osd, obj) == len(expected)
    assert bytes(osd.read(obj, 0, len(expected))) == expected


@pytest.mark.parametrize("length", [97, 1000, 2**63])
def test_punch_past_the_end_cuts(osd: Commands, obj: ObjectRef, length: int) -> None:
    osd.write(obj, 0, DATA)
    osd.punch(obj, 4000, length)
    assert content(osd, obj) == DATA[:4000]


def test_punch_at_the_end(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    check(osd.reply(rq.punch(obj, 5, 1)), OK)
    assert content(osd, obj) == b"12345"


def test_punch_behind_the_end(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    check(osd.reply(rq.punch(obj, 6, 1)), BEYOND_END)
    assert content(osd, obj) == b"12345"


def test_punch_absent(osd: Commands, pid: int) -> None:
    check(osd.reply(rq.punch(ref(pid, 0x1_2345), 0, 1)), NO_OBJECT)


# ---- the logical length as an attribute ----


def set_length(osd: Commands, obj: ObjectRef, length: int) -> None:
    value = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, length.to_bytes(8, "big"))
    osd.set_attributes(obj, [value])


def test_truncate(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, DATA)
    set_length(osd, obj, 100)
    assert content(osd, obj) == DATA[:100]
    set_length(osd, obj, 0)
    assert content(osd, obj) == b""


def test_truncate_upwards_extends_with_zeros(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    set_length(osd, obj, 100)
    assert content(osd, obj) == b"12345" + bytes(95)


def test_what_was_cut_does_not_come_back(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"secret" * 100)
    set_length(osd, obj, 3)
    set_length(osd, obj, 600)
    assert content(osd, obj) == b"sec" + bytes(597)
    set_length(osd, obj, 3)
    osd.write(obj, 10, b"x")
    assert content(osd, obj) == b"sec" + bytes(7) + b"x"


@pytest.mark.parametrize("value", [b"", bytes(7), bytes(9)])
def test_length_of_a_wrong_size(osd: Commands, obj: ObjectRef, value: bytes) -> None:
    osd.write(obj, 0, b"12345")
    wrong = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, value)
    reply = osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), (wrong,))))
    check(reply, LIST_FIELD, LOGICAL_LENGTH)
    assert content(osd, obj) == b"12345"


# ---- FLUSH ----


@pytest.mark.parametrize("scope", [0, 1, 2])
def test_flush_family(osd: Commands, obj: ObjectRef, collection: ObjectRef, scope: int) -> None:
    osd.write(obj, 0, b"12345")
    for request in (
        rq.flush(obj, scope=scope),
        rq.flush_collection(collection, scope=scope),
        rq.flush_partition(obj.partition_id, scope=scope),
        rq.flush_osd(scope=scope),
    ):
        check(osd.reply(request), OK)


def test_flush_absent(osd: Commands, pid: int) -> None:
    absent = ref(pid, 0x1_2345)
    check(osd.reply(rq.flush(absent)), NO_OBJECT)
    check(osd.reply(rq.flush_collection(absent)), NO_OBJECT)
    check(osd.reply(rq.flush_partition(0x7777_0000_0000)), NO_PARTITION)


def test_flush_partition_ignores_the_object_id(osd: Commands, pid: int) -> None:
    """Linux's flush-collection call sends 889Bh with the collection's id (osd2-wire 9-25)."""
    check(mangled(osd, rq.flush_partition(pid), {24: (0x10000).to_bytes(8, "big")}), OK)


# ---- checksums ----

WITH_CHECKSUM = AttributeLists(get=(CURRENT_CHECKSUM,))


@pytest.mark.parametrize("size", [1, 4096, 65535, 65536, 200_001, 1 << 20])
def test_checksum_of_the_data(osd: Commands, obj: ObjectRef, size: int) -> None:
    """WRITE and READ return the CRC-32C of the data that they have brought or return."""
    data = (DATA * (size // len(DATA) + 1))[:size]
    expected = _core.crc32c(data).to_bytes(4)
    written = check(osd.reply(rq.write(obj, 7, data, attributes=WITH_CHECKSUM)), OK)
    assert written.attribute(CURRENT_CHECKSUM).value == expected
    there = check(osd.reply(rq.read(obj, 7, size, attributes=WITH_CHECKSUM)), OK)
    assert bytes(there.data) == data
    assert there.attribute(CURRENT_CHECKSUM).value == expected


def test_checksum_with_room_for_the_list(osd: Commands, obj: ObjectRef) -> None:
    """The list of attributes follows the data in the caller's buffer."""
    for size in (0, 1, 100, 4096):
        room = bytearray(4096 + 64)
        room[:size] = DATA[:size]
        piece = memoryview(room)[:size]
        request = rq.write(obj, 0, piece, room=room, attributes=WITH_CHECKSUM)
        reply = check(osd.reply(request), OK)
        value = _core.crc32c(DATA[:size]).to_bytes(4) if size else b""
        assert reply.attribute(CURRENT_CHECKSUM).value == value
        assert bytes(osd.read(obj, 0, size)) == DATA[:size]


def test_checksum_across_the_end(osd: Commands, obj: ObjectRef) -> None:
    """It is that of all of Data-In, which has zeros behind the end."""
    osd.write(obj, 0, DATA)
    reply = check(osd.reply(rq.read(obj, 0, 5000, attributes=WITH_CHECKSUM)), PAST_END)
    expected = _core.crc32c(DATA + bytes(5000 - len(DATA))).to_bytes(4)
    assert reply.attribute(CURRENT_CHECKSUM).value == expected


def test_checksum_of_pieces(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, DATA)
    pieces = [(3, 100), (1000, 50)]
    request = rq.read_pieces(obj, pieces, attributes=WITH_CHECKSUM)
    expected = DATA[3:103] + DATA[1000:1050]
    reply = check(osd.reply(request), OK)
    assert reply.attribute(CURRENT_CHECKSUM).value == _core.crc32c(expected).to_bytes(4)
    request = rq.write_pieces(obj, pieces, expected, attributes=WITH_CHECKSUM)
    reply = check(osd.reply(request), OK)
    assert reply.attribute(CURRENT_CHECKSUM).value == _core.crc32c(expected).to_bytes(4)


def test_no_checksum_without_data(osd: Commands, obj: ObjectRef) -> None:
    for request in (
        rq.get_attributes(obj, attributes=WITH_CHECKSUM),
        rq.clear(obj, 0, 10, attributes=WITH_CHECKSUM),
    ):
        assert check(osd.reply(request), OK).attribute(CURRENT_CHECKSUM).value == b""
    reply = osd.reply(rq.append(obj, DATA, attributes=WITH_CHECKSUM))
    value = reply.attribute(CURRENT_CHECKSUM).value
    assert value == _core.crc32c(DATA).to_bytes(4)


def test_crc32c() -> None:
    """The catalogue's check value; parts follow one another."""
    assert _core.crc32c(b"123456789") == 0xE3069283
    data = DATA * 50
    for cut in (0, 1, 4096, 70_000, len(data)):
        assert _core.crc32c(data[cut:], _core.crc32c(data[:cut])) == _core.crc32c(data)
