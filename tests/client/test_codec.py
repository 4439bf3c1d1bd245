# SPDX-License-Identifier: GPL-2.0-or-later
"""The codec against bytes worked out by hand (osd2-wire 2.10 and appendix A)."""

from __future__ import annotations

import pytest

from pyosd import requests
from pyosd.errors import (
    Conflict,
    Exists,
    NoSpace,
    NotEmpty,
    NotFound,
    OSDError,
    PermissionDenied,
    StorageError,
    TargetBusy,
)
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire import attributes as attr
from pyosd.wire.cdb import (
    AttributeLists,
    AttributePage,
    Options,
    SetOne,
    decode_data_in,
    decode_offset,
    encode,
    encode_offset,
)
from pyosd.wire.exec_params import ArgsEncoding, ExecParams, Limits, parse_duration, parse_size
from pyosd.wire.list_data import decode_list, decode_map
from pyosd.wire.sense import decode, error_for

OBJECT = ref(0x10000, 0x10001)


def at(data: bytes, offset: int, expected: str) -> None:
    raw = bytes.fromhex(expected)
    assert data[offset : offset + len(raw)].hex() == raw.hex(), f"at byte {offset}"


@pytest.mark.parametrize(
    ("wanted", "encoded", "real"),
    [
        (0, 0x00000000, 0),
        (1, 0xB0000001, 8),
        (8, 0xB0000001, 8),
        (256, 0xB0000020, 256),
        (4096, 0xB0000200, 4096),
        (4100, 0xB0000201, 4104),
        (0x10000, 0xB0002000, 0x10000),
        (0x7FFFFFF8, 0xBFFFFFFF, 0x7FFFFFF8),
        (0x7FFFFFF9, 0xC8000000, 0x80000000),
        (0x80000000, 0xC8000000, 0x80000000),
        (0x80000001, 0xC8000001, 0x80000010),
        (1 << 32, 0xD8000000, 1 << 32),
        (1 << 40, 0x58000000, 1 << 40),
        ((1 << 43) - (1 << 15), 0x7FFFFFFF, (1 << 43) - (1 << 15)),
        (0x0FFFFFFF << 7, 0x08000000, 1 << 35),  # FFFF_FFFFh would say "unused"
    ],
)
def test_offset(wanted: int, encoded: int, real: int) -> None:
    assert encode_offset(wanted) == (encoded, real)
    assert decode_offset(encoded) == real


@pytest.mark.parametrize(
    ("encoded", "real"), [(0x00000001, 256), (0x00000010, 4096), (0x70000001, 32768)]
)
def test_offset_any_spelling(encoded: int, real: int) -> None:
    assert decode_offset(encoded) == real


@pytest.mark.parametrize("encoded", [0xFFFFFFFF, 0x80000001, 0x90000001, 0xA0000001])
def test_offset_invalid(encoded: int) -> None:
    with pytest.raises(ValueError, match="unused or invalid"):
        decode_offset(encoded)


@pytest.mark.parametrize("wanted", [-1, 1 << 43])
def test_offset_out_of_range(wanted: int) -> None:
    with pytest.raises(ValueError, match="cannot be encoded"):
        encode_offset(wanted)


def test_get_attributes_a1() -> None:
    wanted = (AttributeId(0x90000001, 4), AttributeId(0x90000001, 0xC0))
    lists = AttributeLists(wanted, (), 56)
    request = requests.get_attributes(ROOT, attributes=lists)
    command, layout = encode(request)
    assert len(command.cdb) == 236
    at(command.cdb, 0, "7f")
    at(command.cdb, 7, "e4888e0030")
    at(command.cdb, 52, "00000018 00000000 00000038 00000000 00000000 ffffffff")
    data_out = "0100000000000010 9000000100000004 90000001000000c0"
    assert bytes(command.data_out) == bytes.fromhex(data_out)
    assert command.data_in_length == 56
    answer = bytes.fromhex(
        "0900000000000030 9000000100000004 0000000000000008 41434d4520202020"
        "90000001000000c0 0000000000000008 0000000000000001"
    )
    retrieved = decode_data_in(request, layout, memoryview(answer)).retrieved
    assert [each.id for each in retrieved.attributes] == list(wanted)
    assert retrieved.attributes[0].text == "ACME    "
    assert retrieved.attributes[1].uint == 1


def test_write_with_attribute_a2() -> None:
    lists = AttributeLists((), (AttributeValue(0x10000, 1, b"\1\2\3\4"),))
    command, _ = encode(requests.write(OBJECT, 100, b"hello", attributes=lists))
    at(command.cdb, 8, "88860030")
    at(command.cdb, 16, "0000000000010000 0000000000010001 0000000000000005 0000000000000064")
    at(command.cdb, 48, "00000000 00000000 ffffffff 00000000 ffffffff 00000020 b0000001 00000000")
    expected = (
        "68656c6c6f000000 0900000000000018 0001000000000001 0000000000000004 0102030400000000"
    )
    assert bytes(command.data_out) == bytes.fromhex(expected)


def test_read_pieces_a3() -> None:
    command, _ = encode(requests.read_pieces(OBJECT, [(0, 4096), (65536, 8192)]))
    at(command.cdb, 32, "0000000000003000 0000000000000000 00000050")
    expected = (
        "0100888500000000" + "00" * 32 + "0001000000000020"
        "0000000000000000 0000000000001000 0000000000010000 0000000000002000"
    )
    assert bytes(command.data_out) == bytes.fromhex(expected)
    assert command.data_in_length == 12288


A4 = (
    "720524000000002806 1e000000000000 b0103030 00000000 0000000000010000 0000000000012345"
    "02060000c0001800"
)


def test_sense_a4() -> None:
    sense = decode(bytes.fromhex(A4))
    assert sense is not None
    assert (sense.sense_key, sense.asc, sense.ascq) == (5, 0x24, 0)
    assert sense.field_pointer == 24 and not sense.field_in_data_out
    assert sense.named_object == ref(0x10000, 0x12345)
    assert sense.not_initiated == 0xB0103030
    error = error_for(2, sense, 0x8885)
    assert isinstance(error, NotFound) and isinstance(error, KeyError)
    assert str(error).startswith("0x10000/0x12345 does not exist")
    assert isinstance(error_for(2, sense, 0x8882), Conflict)


def test_sense_attributes_and_information() -> None:
    sense = decode(
        bytes.fromhex(
            "72052600000000 24 000a8000 0000000000000007 010a0000 0000000000000009"
            "080a0000 0000000100000081"
        )
    )
    assert sense is not None
    assert sense.information == 7 and sense.command_information == 9
    assert sense.attributes == (AttributeId(1, 0x81),)


def test_sense_cut_anywhere() -> None:
    """It never raises; what is there whole is decoded."""
    whole = bytes.fromhex(A4)
    for length in range(len(whole)):
        found = decode(whole[:length])
        assert (found is None) == (length < 8), length


def sense_bytes(key: int, code: int, pointer: int | None = None) -> bytes:
    tail = (
        b"" if pointer is None else bytes.fromhex("02060000c0") + pointer.to_bytes(2, "big") + b"\0"
    )
    return bytes([0x72, key]) + code.to_bytes(2, "big") + bytes([0, 0, 0, len(tail)]) + tail


@pytest.mark.parametrize(
    ("status", "raw", "action", "kind"),
    [
        (0x02, sense_bytes(5, 0x2400, 129), 0x8885, PermissionDenied),
        (0x02, sense_bytes(5, 0x2405), 0x8885, PermissionDenied),
        (0x02, sense_bytes(5, 0x2400, 16), 0x8882, NotFound),
        (0x02, sense_bytes(5, 0x2400, 16), 0x888B, Exists),
        (0x02, sense_bytes(5, 0x2C0A), 0x888C, NotEmpty),
        (0x02, sense_bytes(5, 0x8011), 0x888A, Conflict),
        (0x02, sense_bytes(7, 0x5507), 0x8886, NoSpace),
        (0x02, sense_bytes(4, 0x4400), 0x8886, StorageError),
        (0x08, b"", 0x8F81, TargetBusy),
    ],
)
def test_errors(status: int, raw: bytes, action: int, kind: type[OSDError]) -> None:
    assert type(error_for(status, decode(raw), action)) is kind


def test_recovered_error_is_success() -> None:
    assert error_for(2, decode(sense_bytes(1, 0x3B17)), 0x8885) is None


def test_query_list_a5() -> None:
    criterion = requests.Criterion(0x10000, 1, b"\0\0\0\4", b"\0\0\0\x50")
    command, _ = encode(requests.query(ref(0x10000, 0x10002), [criterion], 1024))
    expected = "01000000 0000 0014 00010000 00000001 0004 00000004 0004 00000050 00000000"
    assert bytes(command.data_out)[48:] == bytes.fromhex(expected)
    assert bytes(command.data_out)[40:48] == bytes.fromhex("0002000000000020")


def test_create_count() -> None:
    command, _ = encode(requests.create(0x10000, 0, 300))
    at(command.cdb, 32, "012c 000000000000")


def test_page_format() -> None:
    page = AttributePage(0xFFFFFFFE, 76, AttributeValue(0x10000, 2, b"abc"))
    request = requests.append(OBJECT, b"x" * 9, attributes=page)
    command, layout = encode(request)
    at(command.cdb, 11, "20")
    at(command.cdb, 52, "fffffffe 0000004c 00000000 00010000 00000002 00000003 b0000002")
    assert bytes(command.data_out) == b"x" * 9 + bytes(7) + b"abc"
    form = decode_data_in(
        request, layout, memoryview(b"\xff\xff\xff\xfe\0\0\0\x44" + bytes(68))
    ).page
    assert form is not None and form.length == 68 and len(form.body) == 68


def test_set_one() -> None:
    request = requests.set_attributes(OBJECT, attributes=SetOne(AttributeValue(1, 9, b"name")))
    command, _ = encode(request)
    at(command.cdb, 11, "10")
    at(command.cdb, 52, "00000001 00000009 0004 6e616d65" + "00" * 14)
    assert not command.data_out and not command.data_in_length
    with pytest.raises(ValueError, match="18 bytes"):
        encode(requests.set_attributes(OBJECT, attributes=SetOne(AttributeValue(1, 9, b"n" * 19))))


def test_options() -> None:
    options = Options(fua=True, dpo=True, no_timestamps=True)
    command, _ = encode(requests.write(OBJECT, 0, b"", options=options))
    at(command.cdb, 10, "18 30 7f")


def test_write_keeps_the_callers_buffer() -> None:
    data = bytearray(4096)
    assert encode(requests.write(OBJECT, 0, data))[0].data_out is data


def test_fields_that_do_not_fit() -> None:
    with pytest.raises(ValueError, match="does not fit 64 bits"):
        encode(requests.read(OBJECT, 1 << 64, 1))
    with pytest.raises(ValueError, match="64 bits"):
        ref(1 << 64)


def test_list_with_and_without_attributes() -> None:
    plain = bytes.fromhex("0000000000000028 0000000000010009 00000000 000000 84") + b"".join(
        each.to_bytes(8, "big") for each in (0x10000, 0x10001)
    )
    result = decode_list(plain)
    assert result.ids == (0x10000, 0x10001)
    assert result.total_count == 3 and result.continuation_id == 0x10009
    entry = attr.encode_entry(AttributeValue(1, 0x82, (5).to_bytes(8, "big")))
    block = (
        (0x10000).to_bytes(8, "big") + b"\x80" + bytes(5) + len(entry).to_bytes(2, "big") + entry
    )
    head = (16 + len(block)).to_bytes(8, "big") + bytes(15) + b"\x88"
    result = decode_list(head + block)
    assert result.members[0].attributes[0].uint == 5
    with pytest.raises(ValueError, match="no whole header"):
        decode_list(plain[:23])


def test_map() -> None:
    data = bytes.fromhex("0000000000000010 0000 0001 00001000 0000000000002000")
    (extent,) = decode_map(data).extents
    assert (extent.type, extent.start, extent.length) == (1, 0x2000, 0x1000)


def test_retrieved_cut_anywhere() -> None:
    values = [AttributeValue(1, 9, b"name"), AttributeValue(3, 1, bytes(6))]
    whole = attr.encode_set_list(values)
    for length in range(len(whole)):
        cut = attr.decode_retrieved(whole[:length])
        assert not cut.complete or length < 8
        assert list(cut.attributes) == values[: len(cut.attributes)]
    assert attr.decode_retrieved(whole).complete


def test_exec_params() -> None:
    params = ExecParams(
        args=b"[1]",
        args_encoding=ArgsEncoding.JSON,
        limits=Limits(wall="30s", mem="256MiB"),
        priority=-5,
        tags={"a": "b"},
    )
    descriptor = params.descriptor()
    assert descriptor is not None and descriptor.type == 0xF081
    expected = (
        "0001 0005"
        "0002 0001 00000005 0002 5b315d 000000"
        "0003 0001 00000008 0000000001c9c380"
        "0005 0001 00000008 0000000010000000"
        "000a 0001 00000002 fffb 000000000000"
        "000c 0001 00000003 613d62 0000000000"
    )
    assert descriptor.content == bytes.fromhex(expected)
    assert ExecParams().descriptor() is None


def test_bare_exec() -> None:
    command, _ = encode(requests.execute(ref(0x10000), b"pass"))
    at(command.cdb, 8, "8f81 00 b0")
    at(command.cdb, 32, "0000000000000004 0000000000000000 00000000")
    assert command.data_out == b"pass"


@pytest.mark.parametrize(
    ("text", "size"), [("256MiB", 256 << 20), (7, 7), ("1.5k", 1536), ("2GB", 2 * 10**9)]
)
def test_sizes(text: str | int, size: int) -> None:
    assert parse_size(text) == size


def test_durations() -> None:
    assert parse_duration("500ms") == 0.5
    assert parse_duration(3) == 3.0
    for bad in ("", "3 lightyears", "-1s"):
        with pytest.raises(ValueError, match="cannot read duration"):
            parse_duration(bad)


def test_addresses() -> None:
    assert ObjectRef.parse("root") == ROOT
    assert str(ObjectRef.parse("65536/0x10001")) == "0x10000/0x10001"
    assert str(ref(0x10000)) == "0x10000"
    with pytest.raises(ValueError, match="is not root, PID or PID/OID"):
        ObjectRef.parse("x/1")
