# SPDX-License-Identifier: GPL-2.0-or-later
"""Sense data byte for byte, as Linux and OSC take it apart (osd2-wire 7 and appendix A.4)."""

from __future__ import annotations

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from tests.expect import (
    CDB_FIELD,
    LIST_FIELD,
    NO_OBJECT,
    NO_PARTITION,
    OPCODE,
    PAST_END,
    check,
    mangled,
)
from tests.expect import refusal as refusal_bytes

ABSENT = 0x1_2345


def test_missing_user_object_as_in_the_appendix(osd: Commands) -> None:
    """Appendix A.4, for object 1_0000h/1_2345h."""
    if 0x10000 not in osd.list_partitions():
        osd.create_partition(0x10000)
    reply = osd.reply(rq.read(ref(0x10000, ABSENT), 0, 16))
    sense = bytearray.fromhex(
        "7205 2400 000000 28 / 061E 000000000000 B0103030 00000000 0000000000010000"
        "0000000000012345 / 0206 0000 C0 0018 00".replace("/", "")
    )
    got = bytearray(reply.response.sense)
    # The target decides which functions had begun; all else is fixed.
    assert got[:16] == sense[:16]
    assert got[24:] == sense[24:]
    check(reply, NO_OBJECT)


@pytest.mark.parametrize(
    "make",
    [
        lambda missing: rq.read(missing, 0, 16),
        lambda missing: rq.write(missing, 0, b"x"),
        lambda missing: rq.append(missing, b"x"),
        lambda missing: rq.clear(missing, 0, 1),
        lambda missing: rq.punch(missing, 0, 1),
        rq.flush,
        rq.remove,
        rq.get_attributes,
        rq.set_attributes,
        rq.list_collection,
        rq.remove_collection,
        rq.flush_collection,
        rq.get_member_attributes,
        rq.set_member_attributes,
    ],
    ids=[
        "read",
        "write",
        "append",
        "clear",
        "punch",
        "flush",
        "remove",
        "get",
        "set",
        "list",
        "rmcoll",
        "flushcoll",
        "getm",
        "setm",
    ],
)
def test_every_command_names_the_missing_object(osd: Commands, pid: int, make: object) -> None:
    missing = ref(pid, ABSENT)
    reply = check(osd.reply(make(missing)), NO_OBJECT)  # type: ignore[operator]
    assert reply.sense is not None
    assert reply.sense.named_object == missing
    assert len(reply.response.sense) == 48
    assert reply.sense.not_initiated & 0x1000_0000 or not reply.sense.completed & 0x1000_0000
    no_partition = ref(0x7777_0000_0000, ABSENT)
    reply = check(osd.reply(make(no_partition)), NO_PARTITION)  # type: ignore[operator]
    assert reply.sense is not None
    assert reply.sense.named_object == no_partition


def test_refused_before_anything_was_initiated(osd: Commands, obj: ObjectRef) -> None:
    """A reserved value: nothing initiated, nothing completed, byte for byte."""
    reply = mangled(osd, rq.get_attributes(obj), {10: b"\3"})
    assert reply.response.sense == refusal_bytes(CDB_FIELD.at(10), obj)


def test_no_osd_command_at_all(osd: Commands, obj: ObjectRef) -> None:
    """Opcode and length errors come before any object is known."""
    reply = check(mangled(osd, rq.get_attributes(obj), {7: b"\xc0"}), OPCODE)
    assert reply.response.sense[:4] == bytes.fromhex("72052000")


def test_attribute_is_named_last(osd: Commands, obj: ObjectRef) -> None:
    bad = AttributeValue(Page.USER_INFORMATION, 0x1, bytes(8))
    lists = AttributeLists((), (AttributeValue(Page.APPLICATION, 1, b"x"), bad))
    reply = osd.reply(rq.set_attributes(obj, attributes=lists))
    check(reply, LIST_FIELD, AttributeId(Page.USER_INFORMATION, 0x1))
    assert osd.get_attribute(obj, Page.APPLICATION, 1) == b"", "all or nothing"


def test_short_read_says_how_many_bytes(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"hello")
    reply = check(osd.reply(rq.read(obj, 2, 100)), PAST_END)
    assert reply.sense is not None
    assert reply.sense.command_information == 3
    assert bytes(reply.data) == b"llo"
