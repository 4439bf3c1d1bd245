# SPDX-License-Identifier: GPL-2.0-or-later
"""Fields of the CDB that are short, overlong, reserved or contradict each other (osd2-wire 2)."""

from __future__ import annotations

import struct

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, AttributePage, Isolation, Options, ServiceAction, SetOne
from tests.expect import (
    BEYOND_END,
    CDB_FIELD,
    LIST_LENGTH,
    NO_OBJECT,
    NO_PARTITION,
    OK,
    OPCODE,
    UNSUPPORTED,
    check,
    mangled,
)

NAME = AttributeId(Page.USER_INFORMATION, 0x9)
VALUE = AttributeValue(Page.APPLICATION, 1, b"\1\2\3\4")
GET_NAME = AttributeLists((NAME,))
SET_VALUE = AttributeLists((), (VALUE,))


def be(value: int, width: int) -> bytes:
    return value.to_bytes(width, "big")


@pytest.mark.core
@pytest.mark.parametrize("length", [1, 10, 200, 235, 237, 260])
def test_length_is_not_236(osd: Commands, obj: ObjectRef, length: int) -> None:
    check(mangled(osd, rq.get_attributes(obj), {}, cdb_length=length), OPCODE)


@pytest.mark.parametrize("additional", [0, 192, 227, 229, 255])
def test_additional_length_is_not_228(osd: Commands, obj: ObjectRef, additional: int) -> None:
    check(mangled(osd, rq.get_attributes(obj), {7: be(additional, 1)}), OPCODE)


@pytest.mark.core
def test_opcode_is_not_7f(osd: Commands, obj: ObjectRef) -> None:
    check(mangled(osd, rq.get_attributes(obj), {0: b"\x9e"}), OPCODE)


@pytest.mark.parametrize("action", [0x0000, 0x888D, 0x88A5, 0x88FF, 0x8F8F])
def test_unknown_service_action(osd: Commands, obj: ObjectRef, action: int) -> None:
    check(mangled(osd, rq.get_attributes(obj), {8: be(action, 2)}), UNSUPPORTED)


@pytest.mark.parametrize("action", [0x8801, 0x880E, 0x887F])
def test_osd_1(osd: Commands, obj: ObjectRef, action: int) -> None:
    """Linux tries these when OSD-2 fails; they may never look like success (osd2-wire 2.13)."""
    check(mangled(osd, rq.get_attributes(obj), {8: be(action, 2)}), OPCODE)


@pytest.mark.parametrize("action", [0x88A8, 0x88A9, 0x88AA, 0x88AB, 0x88AC, 0x88B2])
def test_clones_and_snapshots_are_not_supported(osd: Commands, obj: ObjectRef, action: int) -> None:
    check(mangled(osd, rq.get_attributes(obj), {8: be(action, 2)}), UNSUPPORTED)


def test_attribute_format_0_is_reserved(osd: Commands, obj: ObjectRef) -> None:
    check(mangled(osd, rq.get_attributes(obj), {11: b"\0"}), CDB_FIELD.at(11))


@pytest.mark.parametrize("isolation", [3, 6])
def test_reserved_isolation(osd: Commands, obj: ObjectRef, isolation: int) -> None:
    check(mangled(osd, rq.get_attributes(obj), {10: be(isolation, 1)}), CDB_FIELD.at(10))


@pytest.mark.parametrize("isolation", [Isolation.DEFAULT, Isolation.NONE, Isolation.STRICT])
def test_isolation_we_give(osd: Commands, obj: ObjectRef, isolation: Isolation) -> None:
    request = rq.write(obj, 0, b"x", options=Options(isolation=isolation))
    check(osd.reply(request), OK)


@pytest.mark.parametrize("control", [0x01, 0x7E, 0x80, 0xDF])
def test_reserved_timestamps_control(osd: Commands, obj: ObjectRef, control: int) -> None:
    check(mangled(osd, rq.get_attributes(obj), {12: be(control, 1)}), CDB_FIELD.at(12))


def test_reserved_bits_are_ignored(osd: Commands, obj: ObjectRef) -> None:
    check(mangled(osd, rq.get_attributes(obj), {2: b"\xff" * 5, 10: b"\xe0", 13: b"\xff"}), OK)


def test_security_area_is_ignored_without_security(osd: Commands, obj: ObjectRef) -> None:
    request = rq.get_attributes(obj)
    check(mangled(osd, request, {184: b"\xff" * 44, 228: b"\xff" * 8}), OK)


def test_dpo_and_fua_are_accepted(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.write(obj, 0, b"x", options=Options(dpo=True, fua=True))), OK)


@pytest.mark.parametrize("partition_id", [1, 0xFFFF])
def test_partition_id_in_reserved_range(osd: Commands, partition_id: int) -> None:
    check(osd.reply(rq.get_attributes(ref(partition_id))), NO_PARTITION)
    check(osd.reply(rq.read(ref(partition_id, 0x10000), 0, 1)), NO_PARTITION)


@pytest.mark.parametrize("object_id", [1, 0xFFF, 0xFFFF])
def test_object_id_in_reserved_range(osd: Commands, pid: int, object_id: int) -> None:
    check(osd.reply(rq.read(ref(pid, object_id), 0, 1)), NO_OBJECT)


def test_object_id_without_partition(osd: Commands) -> None:
    reply = mangled(osd, rq.get_attributes(ROOT), {24: be(0x10000, 8)})
    assert reply.sense is not None
    check(reply, CDB_FIELD)
    assert reply.sense.field_pointer in (16, 24)


@pytest.mark.parametrize("make", [rq.read, rq.clear])
def test_range_beyond_64_bits(osd: Commands, obj: ObjectRef, make: object) -> None:
    request = make(obj, 2**64 - 1, 2)  # type: ignore[operator]
    reply = check(mangled(osd, request, {}, data_in_length=2), CDB_FIELD)
    assert reply.sense is not None
    assert reply.sense.field_pointer in (32, 40)


def test_write_range_beyond_64_bits(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(rq.write(obj, 2**64 - 1, b"xy")), CDB_FIELD)


@pytest.mark.parametrize("start", [2**63 - 1, 2**63, 2**64 - 2])
def test_offsets_no_file_can_have(osd: Commands, obj: ObjectRef, start: int) -> None:
    """Such a WRITE is refused somehow, does nothing, and the next command works."""
    reply = osd.reply(rq.write(obj, start, b"x"))
    assert reply.error is not None
    assert reply.sense is not None
    assert reply.sense.sense_key in (0x5, 0x7)
    assert osd.list_objects(obj.partition_id) == [obj]
    check(osd.reply(rq.punch(obj, start, 1)), BEYOND_END)


# ---- what the CDB says against what Data-Out holds ----


def test_data_out_shorter_than_length(osd: Commands, obj: ObjectRef) -> None:
    request = rq.write(obj, 0, b"12345678")
    reply = check(mangled(osd, request, {}, data_out=b"1234"), CDB_FIELD.at(32))
    assert reply.response.data_in.nbytes == 0
    check(osd.reply(rq.read(obj, 0, 0)), OK)
    assert osd.get_attribute(obj, Page.USER_INFORMATION, 0x82) == bytes(8)


@pytest.mark.parametrize("length", [2**32, 2**63, 2**64 - 1])
def test_length_nothing_can_hold(osd: Commands, obj: ObjectRef, length: int) -> None:
    reply = mangled(osd, rq.write(obj, 0, b"1234"), {32: be(length, 8)})
    check(reply, CDB_FIELD)


def test_data_out_longer_than_needed(osd: Commands, obj: ObjectRef) -> None:
    check(mangled(osd, rq.write(obj, 0, b"1234"), {}, data_out=b"1234and more"), OK)
    assert bytes(osd.read(obj, 0, 100)) == b"1234"


def test_data_out_absent(osd: Commands, obj: ObjectRef) -> None:
    for request in (rq.write(obj, 0, b"1"), rq.append(obj, b"1")):
        check(mangled(osd, request, {}, data_out=b""), CDB_FIELD.at(32))
    request = rq.create_and_write(obj.partition_id, 0, 0, b"1")
    check(mangled(osd, request, {}, data_out=b""), CDB_FIELD.at(32))
    assert osd.list_objects(obj.partition_id) == [obj]


@pytest.mark.parametrize("length", [1, 7])
@pytest.mark.parametrize("field", [52, 68])
def test_list_shorter_than_its_header(
    osd: Commands, obj: ObjectRef, field: int, length: int
) -> None:
    request = rq.get_attributes(obj, attributes=AttributeLists((NAME,), (VALUE,)))
    check(mangled(osd, request, {field: be(length, 4)}), LIST_LENGTH)


@pytest.mark.parametrize("field", [52, 68])
def test_list_longer_than_data_out(osd: Commands, obj: ObjectRef, field: int) -> None:
    request = rq.get_attributes(obj, attributes=AttributeLists((NAME,), (VALUE,)))
    check(mangled(osd, request, {field: be(4096, 4)}), CDB_FIELD.at(field))
    check(mangled(osd, request, {field: be(0xFFFF_FFF8, 4)}), CDB_FIELD.at(field))


@pytest.mark.parametrize("field", [56, 64, 72])
@pytest.mark.parametrize("offset", [0xFFFF_FFFF, 0x8000_0001, 0xA000_0001])
def test_offset_unused_or_invalid_though_length_counts(
    osd: Commands, obj: ObjectRef, field: int, offset: int
) -> None:
    request = rq.get_attributes(obj, attributes=AttributeLists((NAME,), (VALUE,)))
    check(mangled(osd, request, {field: be(offset, 4)}), CDB_FIELD.at(field))


@pytest.mark.parametrize("field", [56, 72])
def test_offset_beyond_data_out(osd: Commands, obj: ObjectRef, field: int) -> None:
    request = rq.get_attributes(obj, attributes=AttributeLists((NAME,), (VALUE,)))
    check(mangled(osd, request, {field: be(0x7FFF_FFFF, 4)}), CDB_FIELD)


def test_offsets_are_ignored_without_length(osd: Commands, obj: ObjectRef) -> None:
    for offset in (0, 1, 0xFFFF_FFFF, 0x8000_0001):
        changes = {at: be(offset, 4) for at in (56, 64, 72)}
        check(mangled(osd, rq.get_attributes(obj), changes), OK)


@pytest.mark.parametrize(
    ("code", "shift"), [(0xB000_0002, 3), (0xC000_0001, 4)], ids=["exponent-5", "exponent-4"]
)
def test_every_spelling_of_an_offset(osd: Commands, obj: ObjectRef, code: int, shift: int) -> None:
    """The get list at offset 16, however the offset is written."""
    assert (code & 0xFFF) << shift == 16
    get_list = struct.pack(">BxxxIII", 1, 8, NAME.page, NAME.number)
    request = rq.get_attributes(obj, attributes=GET_NAME)
    reply = mangled(osd, request, {56: be(code, 4)}, data_out=bytes(16) + get_list)
    check(reply, OK)
    assert reply.attribute(NAME).value == b""


def test_retrieved_attributes_on_top_of_the_data(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"x" * 64)
    request = rq.read(obj, 0, 64, attributes=GET_NAME)
    check(mangled(osd, request, {64: be(0, 4)}), CDB_FIELD)


def test_page_format_with_page_0_does_nothing(osd: Commands, obj: ObjectRef) -> None:
    reply = check(osd.reply(rq.get_attributes(obj, attributes=AttributePage())), OK)
    assert reply.response.data_in.nbytes == 0


def test_set_one_with_page_0_does_nothing(osd: Commands, obj: ObjectRef) -> None:
    one = SetOne(AttributeValue(0, 1, b"x"))
    check(osd.reply(rq.set_attributes(obj, attributes=one)), OK)


def test_set_one_longer_than_the_cdb_holds(osd: Commands, obj: ObjectRef) -> None:
    request = rq.set_attributes(obj, attributes=SetOne(VALUE))
    check(mangled(osd, request, {60: be(19, 2)}), CDB_FIELD.at(60))


@pytest.mark.parametrize(("field", "name"), [(52, "page"), (56, "number")])
def test_set_one_of_all(osd: Commands, obj: ObjectRef, field: int, name: str) -> None:
    request = rq.set_attributes(obj, attributes=SetOne(VALUE))
    check(mangled(osd, request, {field: b"\xff" * 4}), CDB_FIELD.at(field))


@pytest.mark.parametrize("field", [64, 68])
def test_page_format_set_of_all(osd: Commands, obj: ObjectRef, field: int) -> None:
    request = rq.set_attributes(obj, attributes=AttributePage(set=VALUE))
    check(mangled(osd, request, {field: b"\xff" * 4}), CDB_FIELD.at(field))


@pytest.mark.parametrize("length", [0xFFFF, 0x1_0000, 0xFFFF_FFFF])
def test_page_format_set_longer_than_an_attribute(
    osd: Commands, obj: ObjectRef, length: int
) -> None:
    request = rq.set_attributes(obj, attributes=AttributePage(set=VALUE))
    check(mangled(osd, request, {72: be(length, 4)}), CDB_FIELD.at(72))


def test_all_ones_are_refused_by_every_command(osd: Commands, pid: int) -> None:
    """A CDB of ones from byte 10 on: refused, whatever it means; the next command works."""
    request, taken = rq.get_attributes(ref(pid)), list[str]()
    for action in ServiceAction:
        reply = mangled(osd, request, {8: be(action, 2), 10: b"\xff" * 226})
        if reply.error is None or reply.sense is None or reply.sense.sense_key != 5:
            taken.append(action.name)
        assert pid in osd.list_partitions(), action.name
    assert taken == []
