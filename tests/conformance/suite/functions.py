# SPDX-License-Identifier: GPL-2.0-or-later
"""A vendor extension: functions (docs/functions.md).  No function is run: calls are accepted held."""

from __future__ import annotations

from tests.conformance.cells import cell
from tests.conformance.lu import LogicalUnit
from tests.conformance.suite.instances import FUNCTIONS, MAKE, held_call

STATE = (0x2000_0006, 1)
DEACTIVATE = 1


@cell("ACTIVATE FUNCTION", "ok", "docs/functions.md Activation")
def active_and_stored_again(t: LogicalUnit) -> None:
    request = MAKE["ACTIVATE FUNCTION"](t)
    t.same(t.get(request.oid, *STATE, FUNCTIONS), b"\0", "state before")
    t.good(request)
    t.same(t.get(request.oid, *STATE, FUNCTIONS), b"\1", "state of an active function")
    t.good(request.but(byte11=DEACTIVATE))
    t.same(t.get(request.oid, *STATE, FUNCTIONS), b"\0", "state afterwards")


@cell("ACTIVATE FUNCTION", "own fields", "docs/functions.md Activation, byte 11")
def unknown_option(t: LogicalUnit) -> None:
    for bits in (3, 4):
        t.bad_field(MAKE["ACTIVATE FUNCTION"](t).but(byte11=bits), 11)


@cell("EXECUTE FUNCTION", "ok", "docs/functions.md Calls")
def call_is_accepted(t: LogicalUnit) -> None:
    t.good(held_call(t))


@cell("EXECUTE FUNCTION", "own fields", "docs/functions.md Calls, the parameter FUNCTION")
def no_function(t: LogicalUnit) -> None:
    t.bad_field(held_call(t).but(segment=b""), 48)


@cell("EXECUTE FUNCTION", "zero length", "docs/functions.md Calls, arguments")
def no_arguments(t: LogicalUnit) -> None:
    t.good(held_call(t).but(length=0, data=b""))
