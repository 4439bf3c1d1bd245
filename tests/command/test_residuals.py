# SPDX-License-Identifier: GPL-2.0-or-later
"""Data-In that is shorter or longer than the command has to give (osd2-wire 8.3, 8.4)."""

from __future__ import annotations

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists
from tests.expect import OK, PAST_END, check, mangled

GREEN = AttributeValue(Page.APPLICATION, 1, b"green")


def test_no_data_in(osd: Commands, obj: ObjectRef) -> None:
    reply = check(osd.reply(rq.write(obj, 0, b"12345")), OK)
    assert reply.response.data_in.nbytes == 0
    assert reply.response.residual_in == 0


def test_more_room_than_needed(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345")
    reply = check(mangled(osd, rq.read(obj, 0, 5), {}, data_in_length=100), OK)
    assert reply.response.residual_in == 95
    assert bytes(reply.data) == b"12345"


def test_less_room_than_the_command_has(osd: Commands, obj: ObjectRef) -> None:
    """Executed and cut, never refused."""
    osd.write(obj, 0, b"12345678")
    reply = check(mangled(osd, rq.read(obj, 0, 8), {}, data_in_length=5), OK)
    assert bytes(reply.response.data_in) == b"12345"


def test_no_room_at_all(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345678")
    reply = check(mangled(osd, rq.read(obj, 0, 8), {}, data_in_length=0), OK)
    assert reply.response.data_in.nbytes == 0


def test_room_that_ends_inside_the_attributes(osd: Commands, obj: ObjectRef) -> None:
    osd.write(obj, 0, b"12345678", attributes=[GREEN])
    request = rq.read(obj, 0, 8, attributes=AttributeLists((GREEN.id, LOGICAL_LENGTH)))
    whole = check(osd.reply(request), OK)
    cut = check(mangled(osd, request, {}, data_in_length=8 + 8 + 16 + 3), OK)
    assert bytes(cut.response.data_in) == bytes(whole.response.data_in[: 8 + 8 + 16 + 3])


def test_short_read_with_attributes_is_no_underflow_in_the_middle(
    osd: Commands, obj: ObjectRef
) -> None:
    osd.write(obj, 0, b"123", attributes=[GREEN])
    lists = AttributeLists((GREEN.id,), (), 8 + 24)
    reply = check(osd.reply(rq.read(obj, 0, 16, attributes=lists)), PAST_END)
    data = bytes(reply.response.data_in)
    assert data[:16] == b"123" + bytes(13)
    assert len(data) == 16 + 32
    assert reply.response.residual_in == 0


def test_answers_never_carry_what_was_in_memory(osd: Commands, obj: ObjectRef) -> None:
    """Gaps and pads are zeros, whatever earlier answers left in the buffers."""
    osd.write(obj, 0, b"\xee" * 65536)
    for _ in range(20):
        osd.read(obj, 0, 65536)
    empty = osd.create(obj.partition_id, attributes=[GREEN])
    request = rq.read(empty, 0, 4096, attributes=AttributeLists((GREEN.id,)))
    data = bytes(check(osd.reply(request), PAST_END).response.data_in)
    assert b"\xee" not in data
