# SPDX-License-Identifier: GPL-2.0-or-later
"""CDB continuation segments that are short, foreign, or contradict the CDB (osd2-wire 4)."""

from __future__ import annotations

import struct
from dataclasses import replace

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Descriptor, Request, encode_continuation
from pyosd.wire.reply import Reply
from tests.expect import CDB_FIELD, OK, check, mangled

WRITE = 0x8886
ONE_PIECE = Descriptor(1, struct.pack(">QQ", 0, 4))
BAD = CDB_FIELD.at(48)


def write(obj: ObjectRef, *descriptors: Descriptor, data: bytes = b"data") -> Request:
    return replace(rq.write(obj, 0, data), descriptors=descriptors)


def raw(osd: Commands, obj: ObjectRef, segment: bytes, length: int | None = None) -> Reply:
    """WRITE of four bytes behind a continuation segment of one's own bytes."""
    claimed = (len(segment) if length is None else length).to_bytes(4, "big")
    return mangled(osd, rq.write(obj, 0, b"data"), {48: claimed}, data_out=segment + b"data")


def test_one_piece(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(write(obj, ONE_PIECE)), OK)
    assert bytes(osd.read(obj, 0, 10)) == b"data"


def test_header_alone(osd: Commands, obj: ObjectRef) -> None:
    check(raw(osd, obj, encode_continuation(WRITE, (ONE_PIECE,))[:40]), OK)
    assert bytes(osd.read(obj, 0, 10)) == b"data"


@pytest.mark.parametrize("length", [1, 8, 39, 41, 44])
def test_length_short_or_no_multiple_of_8(osd: Commands, obj: ObjectRef, length: int) -> None:
    segment = encode_continuation(WRITE, (ONE_PIECE,))
    check(raw(osd, obj, segment, length), BAD)


@pytest.mark.parametrize("length", [4096, 1 << 21, 0xFFFF_FFF8])
def test_length_beyond_data_out(osd: Commands, obj: ObjectRef, length: int) -> None:
    check(raw(osd, obj, encode_continuation(WRITE, (ONE_PIECE,)), length), BAD)


@pytest.mark.parametrize("form", [0, 2, 0xFF])
def test_other_format(osd: Commands, obj: ObjectRef, form: int) -> None:
    segment = encode_continuation(WRITE, (ONE_PIECE,))
    check(raw(osd, obj, bytes([form]) + segment[1:]), BAD)


def test_service_action_of_another_command(osd: Commands, obj: ObjectRef) -> None:
    check(raw(osd, obj, encode_continuation(0x8885, (ONE_PIECE,))), BAD)


@pytest.mark.parametrize("kind", [0x0003, 0x0100, 0x0101, 0x0002, 0xF081, 0xFFFF])
def test_descriptor_the_command_does_not_take(osd: Commands, obj: ObjectRef, kind: int) -> None:
    check(osd.reply(write(obj, Descriptor(kind, bytes(16)))), BAD)


def test_descriptor_twice(osd: Commands, obj: ObjectRef) -> None:
    check(osd.reply(write(obj, ONE_PIECE, ONE_PIECE)), BAD)


@pytest.mark.parametrize("claimed", [8, 17, 24, 0xFFFF_FFF8])
def test_descriptor_length_lies(osd: Commands, obj: ObjectRef, claimed: int) -> None:
    segment = bytearray(encode_continuation(WRITE, (ONE_PIECE,)))
    segment[44:48] = claimed.to_bytes(4, "big")
    check(raw(osd, obj, bytes(segment)), BAD)


def test_pad_that_should_not_be(osd: Commands, obj: ObjectRef) -> None:
    segment = bytearray(encode_continuation(WRITE, (ONE_PIECE,)))
    segment[43] = 3
    check(raw(osd, obj, bytes(segment)), BAD)


def test_what_follows_the_terminator_is_ignored(osd: Commands, obj: ObjectRef) -> None:
    segment = encode_continuation(WRITE, (ONE_PIECE, Descriptor(0, b""))) + b"\xff" * 16
    check(raw(osd, obj, segment), OK)


@pytest.mark.parametrize("pieces", [[(0, 3)], [(0, 5)], [(0, 2), (8, 1)], []])
def test_pieces_do_not_add_up_to_length(
    osd: Commands, obj: ObjectRef, pieces: list[tuple[int, int]]
) -> None:
    content = b"".join(struct.pack(">QQ", *each) for each in pieces)
    check(osd.reply(write(obj, Descriptor(1, content))), CDB_FIELD)
    assert bytes(osd.read(obj, 0, 10)) == b""


def test_pieces_beyond_64_bits(osd: Commands, obj: ObjectRef) -> None:
    wrap = Descriptor(1, struct.pack(">QQQQ", 0, 2**64 - 1, 0, 5))
    check(osd.reply(write(obj, wrap)), CDB_FIELD)
    far = Descriptor(1, struct.pack(">QQ", 2**64 - 2, 4))
    check(osd.reply(write(obj, far)), CDB_FIELD)


def test_starting_address_is_added_to_every_piece(osd: Commands, obj: ObjectRef) -> None:
    two = Descriptor(1, struct.pack(">QQQQ", 0, 2, 4, 2))
    check(osd.reply(replace(write(obj, two), address=100)), OK)
    assert bytes(osd.read(obj, 100, 6)) == b"da\0\0ta"
