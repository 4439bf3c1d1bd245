# SPDX-License-Identifier: GPL-2.0-or-later
"""PERFORM SCSI COMMAND and PERFORM TASK MANAGEMENT FUNCTION."""

from __future__ import annotations

from tests.conformance.cells import cell
from tests.conformance.lu import CHECK_CONDITION, LogicalUnit
from tests.conformance.sense import INVALID_OPCODE
from tests.conformance.suite.instances import MAKE
from tests.conformance.wire import Request

OSD_TYPE = 0x11
COMPLETE, SUCCEEDED, REJECTED = 0x00, 0x05, 0x08
QUERY_TASK, QUERY_TASK_SET, ABORT_TASK = 0x80, 0x81, 0x01


def embedded(cdb: bytes, data_in: int = 0) -> Request:
    filled = cdb.ljust(16, b"\0")
    first, second = filled[:8], filled[8:]
    return Request(
        0x8F7C,
        length=int.from_bytes(first, "big"),
        address=int.from_bytes(second, "big"),
        data_in=data_in,
    )


@cell("PERFORM SCSI COMMAND", "ok", "osd2-wire 3.17 TEST UNIT READY")
def test_unit_ready(t: LogicalUnit) -> None:
    t.same(t.good(embedded(bytes(6))).data, b"", "Data-In")


@cell("PERFORM SCSI COMMAND", "ok", "osd2-wire 3.17, 8.1 INQUIRY")
def inquiry(t: LogicalUnit) -> None:
    answer = t.good(embedded(bytes.fromhex("12 00 00 00 60 00"), 96))
    t.check(len(answer.data) >= 36, answer, "standard INQUIRY data of 36 bytes at least")
    t.same(answer.data[0], OSD_TYPE, "peripheral qualifier and device type", answer)
    vendor = t.get(0, 0x9000_0001, 4, 0)
    t.same(answer.data[8:16], vendor, "vendor identification, as in root information", answer)


@cell("PERFORM SCSI COMMAND", "truncated", "osd2-wire 3.17 data are the embedded command's")
def allocation_length_of_the_embedded_command(t: LogicalUnit) -> None:
    answer = t.good(embedded(bytes.fromhex("12 00 00 00 08 00"), 96))
    t.same(len(answer.data), 8, "bytes of INQUIRY data", answer)


@cell("PERFORM SCSI COMMAND", "own fields", "osd2-wire 3.17 sense is the embedded command's")
def command_an_osd_does_not_have(t: LogicalUnit) -> None:
    for code in (0x28, 0x2A, 0x7F, 0xFF):
        answer = t.send(embedded(bytes([code]), 64))
        t.same(answer.status, CHECK_CONDITION, "SAM status", answer)
        sense = answer.sense
        t.check(
            sense is not None and (sense.key, sense.code) in ((5, INVALID_OPCODE), (5, 0x2400)),
            answer,
            "5/20/00 (or 5/24/00 for a command that must not be embedded)",
        )


@cell("PERFORM TASK MANAGEMENT FUNCTION", "ok", "osd2-wire 3.18 QUERY TASK SET")
def query_task_set(t: LogicalUnit) -> None:
    answer = t.good(MAKE["PERFORM TASK MANAGEMENT FUNCTION"](t))
    t.same(len(answer.data), 8, "bytes of Data-In", answer)
    t.same(answer.data[:4], bytes.fromhex("0006 0000"), "additional length, reserved", answer)
    t.check(answer.data[4] in (COMPLETE, SUCCEEDED), answer, "service response 00h or 05h")


@cell("PERFORM TASK MANAGEMENT FUNCTION", "ok", "osd2-wire 3.18 a task that is not there")
def tasks_nobody_has(t: LogicalUnit) -> None:
    for function in (QUERY_TASK, ABORT_TASK):
        request = Request(0x8F7D, length=8 << 48 | function, address=0x7FFF_FFFE, data_in=8)
        answer = t.good(request)
        t.same(answer.data[4], COMPLETE, "service response: function complete", answer)


@cell("PERFORM TASK MANAGEMENT FUNCTION", "allocation 0", "osd2-wire 3.18 ALLOCATION LENGTH")
def no_service_response_wanted(t: LogicalUnit) -> None:
    answer = t.good(Request(0x8F7D, length=QUERY_TASK_SET))
    t.same(answer.data, b"", "Data-In", answer)


@cell("PERFORM TASK MANAGEMENT FUNCTION", "truncated", "osd2-wire 3.18 ALLOCATION LENGTH")
def service_response_cut(t: LogicalUnit) -> None:
    answer = t.good(Request(0x8F7D, length=5 << 48 | QUERY_TASK_SET, data_in=5))
    t.same(answer.data[:4], bytes.fromhex("0006 0000"), "additional length, reserved", answer)
    t.check(len(answer.data) <= 5, answer, "at most 5 bytes")


@cell("PERFORM TASK MANAGEMENT FUNCTION", "own fields", "osd2-wire 3.18 FUNCTION")
def reserved_functions(t: LogicalUnit) -> None:
    """Refused at byte 39, or answered with FUNCTION REJECTED."""
    for function in (0x00, 0x03, 0x7F, 0xFF):
        answer = t.send(Request(0x8F7D, length=8 << 48 | function, data_in=8))
        if answer.status:
            t.is_refused(answer, 0x2400, 39)
        else:
            t.same(answer.data[4], REJECTED, "service response: function rejected", answer)
