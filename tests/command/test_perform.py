# SPDX-License-Identifier: GPL-2.0-or-later
"""PERFORM SCSI COMMAND and PERFORM TASK MANAGEMENT FUNCTION (osd2-wire 3.17, 3.18)."""

from __future__ import annotations

import struct

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, ObjectRef, TaskManagement, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.reply import Reply
from pyosd.wire.sense import decode
from pyosd.wire.transport import Command
from tests.expect import CDB_FIELD, OK, OPCODE, Outcome, check, mangled
from tests.serving import Serving
from tests.waiting import until

TEST_UNIT_READY = bytes(6)
REQUEST_SENSE = b"\x03\0\0\0\xff\0"
COMPLETE, SUCCEEDED, REJECTED = 0x00, 0x05, 0x08


def inquiry(page: int | None = None, allocation: int = 255) -> bytes:
    return struct.pack(">BBBHB", 0x12, page is not None, page or 0, allocation, 0)


def report_luns(select: int = 0, allocation: int = 64) -> bytes:
    return struct.pack(">BBB3xIxx", 0xA0, 0, select, allocation)


def report_opcodes(allocation: int = 4096) -> bytes:
    return struct.pack(">BBB3xIxx", 0xA3, 0x0C, 0, allocation)


def perform(osd: Commands, cdb: bytes, room: int = 4096) -> Reply:
    return osd.reply(rq.perform_scsi_command(cdb, data_in_length=room))


def answer(osd: Commands, cdb: bytes) -> bytes:
    return bytes(check(perform(osd, cdb), OK).response.data_in)


def check_embedded(reply: Reply, outcome: Outcome) -> None:
    """Refused as the embedded command: its bytes, no object, and nothing transferred."""
    check(reply, outcome)
    assert reply.response.sense[8:9] != b"\x06", "the sense data are the embedded command's"
    assert reply.response.data_in.nbytes == 0


# ---- PERFORM SCSI COMMAND ----


def test_unit_ready(osd: Commands) -> None:
    assert answer(osd, TEST_UNIT_READY) == b""


def test_standard_inquiry(osd: Commands) -> None:
    data = answer(osd, inquiry())
    assert len(data) == 66
    assert data[0] == 0x11
    assert data[4] == 61
    assert data[8:36] == b"IOSD    OBJECT STORE    0001"
    assert data[58:60] == b"\x04\x40"


def test_vital_product_data(osd: Commands) -> None:
    """Page 00h names the others; each has its own code and length."""
    pages = answer(osd, inquiry(0))
    assert pages[:4] == bytes([0x11, 0, 0, len(pages) - 4])
    assert list(pages[4:]) == sorted(pages[4:])
    assert {0x00, 0x80, 0x83, 0xB0} <= set(pages[4:])
    for page in pages[5:]:
        data = answer(osd, inquiry(page))
        assert data[:2] == bytes([0x11, page])
        assert int.from_bytes(data[2:4], "big") == len(data) - 4
    assert answer(osd, inquiry(0xB0))[4:6] == b"\0\x0f", "all four security methods"
    check_embedded(perform(osd, inquiry(0x99)), CDB_FIELD.at(2))
    check_embedded(perform(osd, b"\x12\0\x80\0\xff\0"), CDB_FIELD.at(2))


@pytest.mark.tgtd
def test_inquiry_is_what_tgtd_answers(serving: Serving) -> None:
    """Whether asked by INQUIRY or inside an OSD command, the unit says the same."""
    with serving.connect() as target:
        assert answer(target, inquiry()) == target.inquiry()
        pages = target.inquiry(0)
        assert answer(target, inquiry(0)) == pages
        for page in pages[4 : 4 + pages[3]]:
            assert answer(target, inquiry(page)) == target.inquiry(page)


@pytest.mark.parametrize("allocation", [0, 1, 5, 36, 66, 96])
def test_allocation_length(osd: Commands, allocation: int) -> None:
    """Cut without an error; Data-In that is shorter still is the transport's matter."""
    whole = answer(osd, inquiry())
    assert answer(osd, inquiry(allocation=allocation)) == whole[:allocation]
    assert bytes(perform(osd, inquiry(), room=7).response.data_in) == whole[:7]
    assert (
        answer(osd, b"\x03\0\0\0" + bytes([min(allocation, 255)]) + b"\0")
        == (answer(osd, REQUEST_SENSE)[:allocation])
    )


def test_request_sense(osd: Commands) -> None:
    """NO SENSE, in fixed or descriptor format as asked for."""
    fixed = answer(osd, REQUEST_SENSE)
    assert fixed == b"\x70\0\0\0\0\0\0\x0a" + bytes(10)
    described = answer(osd, b"\x03\1\0\0\xff\0")
    assert described == b"\x72" + bytes(7)


def test_report_luns(osd: Commands) -> None:
    """This unit; no well known ones."""
    for select in (0, 2):
        data = answer(osd, report_luns(select))
        assert data[:8] == b"\0\0\0\x08" + bytes(4)
        assert len(data) == 16
        assert data[8] == 0 and data[10:] == bytes(6)
    assert answer(osd, report_luns(1)) == bytes(8)
    check_embedded(perform(osd, report_luns(3)), CDB_FIELD.at(2))
    check_embedded(perform(osd, report_luns(0, 15)), CDB_FIELD.at(6))


def test_report_supported_operation_codes(osd: Commands) -> None:
    data = answer(osd, report_opcodes())
    assert int.from_bytes(data[:4], "big") == len(data) - 4
    rows = list(struct.iter_unpack(">BxHxBH", data[4:]))
    assert {(0x00, 0, 0, 6), (0x12, 0, 0, 6), (0xA0, 0, 0, 12), (0xA3, 0x0C, 1, 12)} <= set(rows)
    actions = {action for opcode, action, valid, length in rows if opcode == 0x7F}
    assert {0x8881, 0x8885, 0x8886, 0x8F7C, 0x8F81} <= actions
    assert 0x88A8 not in actions
    assert all(length == 236 for opcode, _, _, length in rows if opcode == 0x7F)
    assert answer(osd, report_opcodes(19)) == data[:19]
    for options in (b"\1", b"\2", b"\x80"):
        check_embedded(perform(osd, b"\xa3\x0c" + options + bytes(9)), CDB_FIELD.at(2))
    check_embedded(perform(osd, b"\xa3\x0d" + bytes(10)), CDB_FIELD.at(1))


@pytest.mark.parametrize("opcode", [0x01, 0x15, 0x1A, 0x28, 0x4D, 0x5A, 0x5E, 0x7F, 0x9E, 0xFF])
def test_commands_the_unit_does_not_have(osd: Commands, opcode: int) -> None:
    """Among them MODE SENSE, LOG SENSE and READ; and an OSD command is not to be embedded."""
    reply = perform(osd, bytes([opcode, 0x08, 0, 0, 255, 0, 0, 0xE4, 255, 0]))
    check_embedded(reply, OPCODE)
    assert reply.response.sense == b"\x72\x05\x20" + bytes(5)


@pytest.mark.tgtd
@pytest.mark.parametrize("cdb", [b"\x1a\x08\x3f\0\xff\0", b"\x5a\x08\x3f" + bytes(7)])
def test_refused_as_tgtd_refuses(serving: Serving, cdb: bytes) -> None:
    """Commands that tgtd does not have for this unit do not exist inside an OSD command either."""
    with serving.connect() as target:
        alone = target.transport.execute(Command(cdb, b"", 255))
        sense = decode(alone.sense)
        assert sense is not None
        assert (sense.sense_key, sense.asc, sense.ascq) == (5, 0x20, 0)
        assert perform(target, cdb).response.sense == alone.sense


@pytest.mark.parametrize("action", [0x8F7C, 0x8F7D])
def test_about_the_root_only(osd: Commands, pid: int, obj: ObjectRef, action: int) -> None:
    """The outer command's refusal names the object and points into the outer CDB."""
    request = rq.perform_scsi_command(inquiry(), data_in_length=96)
    if action == 0x8F7D:
        request = rq.perform_task_management(TaskManagement.QUERY_TASK, 7)
    for at, value, named in ((16, pid, ref(pid)), (16, 1, ref(1)), (24, 5, ref(0, 5))):
        reply = mangled(osd, request, {at: value.to_bytes(8, "big")})
        check(reply, CDB_FIELD.at(at))
        assert reply.sense is not None
        assert reply.sense.named_object == named


def test_attributes_go_with_it(osd: Commands) -> None:
    """They lie behind what ALLOCATION LENGTH reserves, and are refused inside it."""
    name = AttributeId(Page.ROOT_INFORMATION, 0x4)
    lists = AttributeLists((name,))
    request = rq.perform_scsi_command(inquiry(), data_in_length=256, attributes=lists)
    reply = check(osd.reply(request), OK)
    assert reply.attribute(name).value == b"IOSD    "
    assert bytes(reply.response.data_in[:66]) == answer(osd, inquiry())
    assert bytes(reply.response.data_in[66:256]) == bytes(190)
    check(mangled(osd, request, {64: bytes(4)}), CDB_FIELD.at(64))
    # An embedded command that fails is all that happens.
    failed = rq.perform_scsi_command(b"\x7f", data_in_length=8, attributes=lists)
    check(osd.reply(failed), OPCODE)


# ---- PERFORM TASK MANAGEMENT FUNCTION ----


def manage(osd: Commands, function: int, tag: int = 0) -> int:
    """The service response; the rest of the answer is fixed."""
    reply = check(osd.reply(rq.perform_task_management(function, tag)), OK)
    data = bytes(reply.response.data_in)
    assert data[:4] + data[5:] == bytes([0, 6]) + bytes(5)
    return data[4]


@pytest.mark.parametrize(
    ("function", "response"),
    [
        (TaskManagement.ABORT_TASK, COMPLETE),
        (TaskManagement.ABORT_TASK_SET, COMPLETE),
        (TaskManagement.CLEAR_TASK_SET, COMPLETE),
        (TaskManagement.LOGICAL_UNIT_RESET, COMPLETE),
        (TaskManagement.I_T_NEXUS_RESET, REJECTED),
        (TaskManagement.CLEAR_ACA, REJECTED),
        (TaskManagement.QUERY_TASK, COMPLETE),
        (TaskManagement.QUERY_TASK_SET, COMPLETE),
        (TaskManagement.QUERY_UNIT_ATTENTION, REJECTED),
    ],
)
def test_functions_with_nothing_to_do(osd: Commands, function: int, response: int) -> None:
    """No command but the asker is there, which is never covered.  One that has just been answered may be
    for a moment."""
    until(lambda: manage(osd, function, 0x7777) == response)


@pytest.mark.parametrize("function", [0x00, 0x03, 0x20, 0x7F, 0x83, 0xFF])
def test_no_such_function(osd: Commands, function: int) -> None:
    check(osd.reply(rq.perform_task_management(function)), CDB_FIELD.at(39))


@pytest.mark.parametrize("allocation", [0, 1, 5, 8, 100])
def test_answer_is_cut(osd: Commands, allocation: int) -> None:
    request = rq.perform_task_management(TaskManagement.QUERY_TASK)
    changes = {32: allocation.to_bytes(2, "big")}
    reply = check(mangled(osd, request, changes, data_in_length=16), OK)
    assert bytes(reply.response.data_in) == bytes([0, 6, 0, 0, 0, 0, 0, 0])[:allocation]


def test_root_attributes_with_it(osd: Commands) -> None:
    name = AttributeId(Page.ROOT_INFORMATION, 0x4)
    request = rq.perform_task_management(
        TaskManagement.QUERY_TASK, attributes=AttributeLists((name,))
    )
    reply = check(osd.reply(request), OK)
    assert reply.attribute(name).value == b"IOSD    "
