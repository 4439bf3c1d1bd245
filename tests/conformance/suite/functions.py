# SPDX-License-Identifier: GPL-2.0-or-later
"""A vendor extension: functions (docs/functions.md).  No function is run: calls are accepted held."""

from __future__ import annotations

import struct

from tests.conformance.cells import cell
from tests.conformance.lu import LogicalUnit
from tests.conformance.sense import INVALID_FIELD_IN_LIST
from tests.conformance.suite.instances import FUNCTIONS, MAKE, held_call, user_object
from tests.conformance.wire import Request

HOOKS = 0x2000_0021
STACK, COLLECTION_STACK, PARTITION_STACK = 0x2000_0020, 0x8000_0020, 0x5000_0020
SOURCE, COUNT = 17, 18
NO_FUNCTION = bytes((0, 1)) + bytes(22)
CONTRACT = 0x802C
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


# ---- functions that data pass through (docs/views.md) ----


@cell("SET ATTRIBUTES", "ok", "docs/views.md Stages")
def stages_of_a_collection(t: LogicalUnit) -> None:
    cid = t.collection()
    t.set(cid, COLLECTION_STACK, 1, NO_FUNCTION)
    t.same(t.get(cid, COLLECTION_STACK, 1), NO_FUNCTION, "the first stage")
    for number in (SOURCE, COUNT):
        sets = ((COLLECTION_STACK, number, bytes(8)),)
        t.refused(Request(0x888F, t.pid, cid, sets=sets), INVALID_FIELD_IN_LIST)


@cell("CREATE", "own fields", "docs/views.md Views")
def made_in_a_view(t: LogicalUnit) -> None:
    pid, base = t.partition(), struct.pack(">Q", t.pid)
    t.set(0, PARTITION_STACK, SOURCE, base, pid)
    t.refused(Request(0x8882, pid, t.free_oid()), CONTRACT)
    oid = t.object()
    source = base + struct.pack(">Q", oid)
    t.same(t.get(oid, STACK, SOURCE, pid)[: len(source)], source, "the source of the view's object")
    sets = ((STACK, SOURCE, source),)
    t.refused(Request(0x8882, pid, t.free_oid(), sets=sets), INVALID_FIELD_IN_LIST)


@cell("SET ATTRIBUTES", "all or nothing", "docs/hooks.md Hooks")
def value_that_is_no_hook(t: LogicalUnit) -> None:
    oid = user_object(t)
    for value in (b"\1", bytes(28), b"\1\x10" + bytes(26), b"\2\0" + bytes(26)):
        sets = ((0x1_0000, 1, b"kept"), (HOOKS, 1, value))
        request = Request(0x888F, t.pid, oid, sets=sets)
        t.refused(request, INVALID_FIELD_IN_LIST)
        t.same(t.get(oid, 0x1_0000, 1), b"", "the attribute before it")
        t.same(t.get(oid, HOOKS, 1), b"", "the hook")
