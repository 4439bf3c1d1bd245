# SPDX-License-Identifier: GPL-2.0-or-later
"""Refusals of every command before it does anything: CDB fields, ids, sense data."""

from __future__ import annotations

import struct

from tests.conformance.cells import each, rows_but
from tests.conformance.commands import Row
from tests.conformance.lu import ABSENT, GOOD, Answer, LogicalUnit
from tests.conformance.sense import INVALID_OPCODE
from tests.conformance.suite.instances import (
    FLUSHES,
    MAKE,
    PRIVATES,
    harmless,
    known,
    said_unsupported,
    standard,
)
from tests.conformance.wire import Request

NAMES_PARTITION = ("partition", "new object", "object", "collection", "any")


def in_partition(row: Row) -> bool:
    return row.addresses in NAMES_PARTITION


@each(rows_but(), "known", "osd2-wire 3.1 unsupported service action")
def is_executed_or_said_to_be_unsupported(t: LogicalUnit, row: Row) -> None:
    if row.name == "FORMAT OSD" and not t.destructive:
        t.skip("FORMAT OSD is not even hinted at without --destructive")
    answer = t.send(harmless(t, row))
    if answer.status != GOOD:
        t.check(answer.sense is not None, answer, "sense data that say why")
    again = t.send(harmless(t, row))
    same = said_unsupported(again) == (row.name not in t.supported)
    t.check(same, again, "the same answer as the first time")


@each(rows_but(*PRIVATES, "EXEC"), "not OSD-2", "osd2-wire 2.13 OSD-1 CDB")
def additional_length_of_another_version(t: LogicalUnit, row: Row) -> None:
    for length in (0xC0, 0xD8, 0x08):
        request = Request(row.code, t.pid, ABSENT, byte10=3, form=0)
        t.refused(request.patched(7, bytes([length])), INVALID_OPCODE)


@each(rows_but(*PRIVATES, "EXEC"), "not OSD-2", "osd2-wire 9-39 a CDB of 200 bytes")
def shorter_than_byte_7_says(t: LogicalUnit, row: Row) -> None:
    request = Request(row.code, t.pid, ABSENT, byte10=3, form=0)
    t.refused(request.but(cdb_length=200), INVALID_OPCODE)


@each(
    rows_but(*PRIVATES, "EXEC", "FORMAT OSD", having=lambda row: row.code & 0xFF00 == 0x8800),
    "not OSD-2",
    "osd2-wire 2.13 service actions of OSD-1",
)
def action_of_OSD_1(t: LogicalUnit, row: Row) -> None:  # noqa: N802
    request = Request(row.code & ~0x0080, t.pid, ABSENT, byte10=3, form=0)
    t.refused(request.patched(7, b"\xc0"), INVALID_OPCODE)


@each(known(*FLUSHES), "bad isolation", "osd2-wire 2.2 ISOLATION 3 and 6")
def reserved_isolation(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for method in (3, 6):
        t.bad_field(request.but(byte10=method), 10)


@each(known(*PRIVATES), "timestamps byte", "osd2-wire 2.4 TIMESTAMPS CONTROL")
def reserved_timestamps_control(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for value in (0x01, 0x7E, 0x80, 0xDF):
        t.bad_field(request.but(byte12=value), 12)


@each(known(), "CDBFMT 0", "osd2-wire 2.3 CDBFMT 0")
def reserved_format(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t).but(form=0), 11)


@each(known(having=in_partition), "bad partition", "osd2-wire 7.4 partition does not exist")
def absent_partition(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t).but(pid=t.absent_pid()), 16)


@each(
    known(having=lambda row: in_partition(row) or row.name == "CREATE PARTITION"),
    "reserved partition",
    "osd2-wire 1.1 reserved partition ids",
)
def reserved_partition(t: LogicalUnit, row: Row) -> None:
    if row.name == "CREATE PARTITION" and t.send(Request(0x888B, 2)).status == GOOD:
        t.good(Request(0x888C, 2))
        t.skip("a vendor's extension: partitions with these ids hold functions")
    request = MAKE[row.name](t)
    for pid in (2, 0xFFFF):
        t.bad_field(request.but(pid=pid), 16)


@each(
    known(
        "EXEC",
        having=lambda row: (
            row.addresses in ("new object", "object", "collection")
            or row.name in ("REMOVE PARTITION", "FLUSH PARTITION")
        ),
    ),
    "reserved partition",
    "osd2-wire 1.1 partition id 0",
)
def root_where_a_partition_is_wanted(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t).but(pid=0), 16)


def names_object(row: Row) -> bool:
    return row.addresses in ("object", "collection", "any")


@each(known(having=names_object), "bad object", "osd2-wire 7.4 object does not exist")
def absent_object(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t).but(oid=ABSENT), 24)


@each(
    known(having=lambda row: row.addresses in ("object", "collection")),
    "bad object",
    "osd2-wire 1.1 two partitions",
)
def object_of_another_partition(t: LogicalUnit, row: Row) -> None:
    """The same id in two partitions is two objects."""
    t.bad_field(MAKE[row.name](t).but(pid=t.second_partition()), 24)


@each(known(having=names_object), "reserved object", "osd2-wire 1.1 reserved ids")
def reserved_object(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for oid in (0xFFFF, 0x0FFF):
        t.bad_field(request.but(oid=oid), 24)


@each(
    known("LIST COLLECTION", having=lambda row: row.addresses in ("object", "collection")),
    "reserved object",
    "osd2-wire 1.1 object id 0",
)
def object_id_0(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t).but(oid=0), 24)


@each(
    known(having=lambda row: row.addresses == "new object"),
    "reserved object",
    "osd2-wire 1.1 requested id reserved",
)
def reserved_requested_id(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    for oid in (1, 0x1000, 0xFFFF):
        t.bad_field(request.but(oid=oid), 24)


@each(known(having=lambda row: row.addresses == "object"), "wrong type", "osd2-wire 7.4")
def collection_where_a_user_object_is_wanted(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t).but(oid=t.collection()), 24)


@each(known(having=lambda row: row.addresses == "collection"), "wrong type", "osd2-wire 7.4")
def user_object_where_a_collection_is_wanted(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t).but(oid=t.object()), 24)


@each(
    known(having=lambda row: row.addresses == "new object"),
    "duplicate id",
    "osd2-wire 7.4 requested id taken",
)
def id_of_a_user_object_or_collection(t: LogicalUnit, row: Row) -> None:
    """Both share one name space."""
    request = MAKE[row.name](t)
    for taken in (t.object(), t.collection()):
        t.bad_field(request.but(oid=taken), 24)


@each(
    known(having=lambda row: row.addresses in ("object", "collection")),
    "sense data",
    "osd2-wire A.4 sense for a missing object",
)
def missing_object_byte_for_byte(t: LogicalUnit, row: Row) -> None:
    """Header, 06h, 02h: 48 bytes.  The target decides which functions were initiated."""
    request = MAKE[row.name](t).but(oid=ABSENT)
    answer = t.bad_field(request, 24)
    wanted = bytes.fromhex("72052400000000 28 061E 000000000000")
    wanted += bytes(8) + struct.pack(">QQ", request.pid, ABSENT)
    wanted += bytes.fromhex("0206 0000 C0 0018 00")
    got = bytearray(answer.sense_data)
    got[16:24] = bytes(8)
    t.same(bytes(got), wanted, "sense data but for bytes 16-23", answer)
    _functions(t, answer)


@each(
    standard(having=lambda row: row.addresses in ("partition", "new object", "any")),
    "sense data",
    "osd2-wire A.4 and 7.4 sense for a missing partition",
)
def missing_partition_byte_for_byte(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t).but(pid=t.absent_pid())
    answer = t.bad_field(request, 16)
    got = bytearray(answer.sense_data)
    got[16:24] = bytes(8)
    wanted = bytes.fromhex("72052400000000 28 061E 000000000000") + bytes(8)
    wanted += struct.pack(">QQ", request.pid, request.oid if row.addresses != "partition" else 0)
    wanted += bytes.fromhex("0206 0000 C0 0010 00")
    t.same(bytes(got), wanted, "sense data but for bytes 16-23", answer)
    _functions(t, answer)


@each(
    standard(having=lambda row: row.addresses in ("root", "new partition")),
    "sense data",
    "osd2-wire 7.2 sense-key specific descriptor",
)
def refused_field_is_pointed_at(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t).but(byte12=1)
    answer = t.bad_field(request, 12)
    t.same(answer.sense_data[:4], bytes.fromhex("72052400"), "the header", answer)
    t.check(
        bytes.fromhex("0206 0000 C0 000C 00") in answer.sense_data,
        answer,
        "descriptor 02h: 0206 0000 C0 000C 00",
    )
    _functions(t, answer)


def _functions(t: LogicalUnit, answer: Answer) -> None:
    """COMMAND and the attribute functions were not completed (osd2-wire 7.3)."""
    assert answer.sense is not None
    done = answer.sense.completed & (0x1000_0000 | 0x1000 | 0x10)
    t.check(done == 0, answer, "COMMAND, SET_ATT and GET_ATT not among the completed functions")
