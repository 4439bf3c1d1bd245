# SPDX-License-Identifier: GPL-2.0-or-later
"""Capabilities that are absent, forged, old or too small; for targets that check them.

A target whose root policy says NOSEC checks none of this.  Signing needs a working key, and what is
signed is not settled by any source (osd2-wire 6.5, appendix B): these tests follow 6.5's table.
"""

from __future__ import annotations

import hashlib
import hmac
import os

from tests.conformance.cells import each
from tests.conformance.commands import COLLECTIONS, PARTITIONS, ROOT, USER, Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.suite.instances import MAKE, pages, standard
from tests.conformance.wire import Request

KINDS = {ROOT: 0x01, PARTITIONS: 0x02, COLLECTIONS: 0x40, USER: 0x80}
EVERYTHING = bytes.fromhex("FFFC000000")
CMDRSP = 2
Fields = dict[int, bytes]


def capability(t: LogicalUnit, row: Row, request: Request) -> Fields:
    """CDB bytes 80-183 of a capability for everything the request may need."""
    descriptor = {0x01: 2, 0x02: 2, 0x40: 3, 0x80: 1}[KINDS[pages(row)]]
    return {
        80: b"\x02",
        81: b"\x00",
        82: bytes([t.security_method]),
        128: bytes([KINDS[pages(row)]]),
        129: EVERYTHING,
        135: bytes([descriptor << 4]),
        152: request.pid.to_bytes(8, "big"),
        160: request.oid.to_bytes(8, "big"),
        168: b"\xff" * 8,
    }


def with_fields(request: Request, fields: Fields) -> Request:
    for at, value in fields.items():
        request = request.patched(at, value)
    return request


def signed(t: LogicalUnit, request: Request, fields: Fields, nonce: bytes = b"") -> Request:
    """With a request integrity check value over the CDB (method CMDRSP)."""
    if t.working_key is None:
        t.skip("needs --working-key")
    clock = t.get(0, 0x9000_0001, 0x100, 0)
    request = with_fields(request, {**fields, 216: nonce or clock + os.urandom(6)})
    cdb = request.build().cdb
    system_id = t.get(0, 0x9000_0001, 3, 0)
    key = hmac.digest(t.working_key, cdb[80:184] + system_id, hashlib.sha1)
    plain = cdb[:184] + bytes(32) + cdb[216:]
    return request.patched(184, hmac.digest(key, plain, hashlib.sha1).ljust(32, b"\0"))


@each(standard(), "no capability", "osd2-wire 6.9 step 1")
def capability_format_0(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t), (80, 82))


@each(standard(), "forged", "osd2-wire 6.9 step 5")
def integrity_check_value_of_nobody(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    wrong = {**capability(t, row, request), 184: b"\x5a" * 20}
    t.bad_field(with_fields(request, wrong), 184)


@each(standard(), "expired", "osd2-wire 6.9 step 7")
def capability_past_its_time(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    fields = {**capability(t, row, request), 84: (1).to_bytes(6, "big")}
    t.bad_field(signed(t, request, fields), 84)


@each(standard(), "stale nonce", "osd2-wire 6.9 step 6")
def nonce_out_of_its_window_and_repeated(t: LogicalUnit, row: Row) -> None:
    if t.security_method < CMDRSP:
        t.skip("nonces are checked from CMDRSP on")
    request = MAKE[row.name](t)
    fields = capability(t, row, request)
    t.refused(signed(t, request, fields, (1).to_bytes(12, "big")), 0x2407)
    fresh = signed(t, request, fields)
    t.good(fresh)
    t.refused(fresh, 0x2406)


@each(standard(), "no permission", "osd2-wire 6.9 step 13")
def capability_without_permissions(t: LogicalUnit, row: Row) -> None:
    request = MAKE[row.name](t)
    fields = {**capability(t, row, request), 129: bytes(5)}
    t.bad_field(signed(t, request, fields), 129)
