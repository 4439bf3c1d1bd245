# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests without a capability, and with a forged one; for targets that check them.

A target whose root policy says NOSEC checks none of this.  Tests that need the target's keys are in
tests/conformance/test_guarded.py, which makes them itself. The cells of those columns refer to it.
"""

from __future__ import annotations

from tests.conformance.cells import each
from tests.conformance.commands import COLLECTIONS, PARTITIONS, ROOT, USER, Row
from tests.conformance.lu import LogicalUnit
from tests.conformance.suite.instances import MAKE, pages, standard
from tests.conformance.wire import Request

KINDS = {ROOT: 0x01, PARTITIONS: 0x02, COLLECTIONS: 0x40, USER: 0x80}
EVERYTHING = bytes.fromhex("FFFE000000")
KEYS = "needs the target's keys: tests/conformance/test_guarded.py"


def with_capability(t: LogicalUnit, row: Row, request: Request) -> Request:
    """CDB bytes 80-183 of a capability for everything the request may need, which nobody has signed."""
    descriptor = {0x01: 2, 0x02: 2, 0x40: 3, 0x80: 1}[KINDS[pages(row)]]
    fields = {
        80: b"\x02",
        82: bytes([t.security_method]),
        128: bytes([KINDS[pages(row)]]),
        129: EVERYTHING,
        135: bytes([descriptor << 4]),
        152: request.pid.to_bytes(8, "big"),
        160: request.oid.to_bytes(8, "big"),
    }
    for at, value in fields.items():
        request = request.patched(at, value)
    return request


@each(standard(), "no capability", "osd2-wire 6.9 step 1")
def capability_format_0(t: LogicalUnit, row: Row) -> None:
    t.bad_field(MAKE[row.name](t), 80)


@each(standard(), "forged", "osd2-wire 6.9 step 5")
def integrity_check_value_of_nobody(t: LogicalUnit, row: Row) -> None:
    request = with_capability(t, row, MAKE[row.name](t))
    t.bad_field(request.patched(184, b"\x5a" * 32), 80)


@each(standard(), "expired", "osd2-wire 6.9 step 7")
def capability_past_its_time(t: LogicalUnit, row: Row) -> None:
    t.skip(KEYS)


@each(standard(), "stale nonce", "osd2-wire 6.9 step 6")
def nonce_out_of_its_window_and_repeated(t: LogicalUnit, row: Row) -> None:
    t.skip(KEYS)


@each(standard(), "no permission", "osd2-wire 6.9 step 13")
def capability_without_permissions(t: LogicalUnit, row: Row) -> None:
    t.skip(KEYS)
