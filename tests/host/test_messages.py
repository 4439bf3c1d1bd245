# SPDX-License-Identifier: GPL-2.0-or-later
"""The Python codec of the control socket against the golden frames, and nonsense."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from iosd_host.control import messages
from iosd_host.control.messages import ErrorCode, Frame, FrameError, TargetError, Type, VersionError
from tests.fuzz.run import golden_frames

FRAMES = golden_frames()
HELLO = {"role": "manager", "who": "m", "versions": "1-1"}
WORKERS = {"count": 6, "by": "ann", "why": "queue of 40"}
ERROR = '{"schema":"iosd.control/1","code":"frame","message":"é"}'.encode()


@pytest.mark.parametrize(
    ("name", "frame"),
    [
        ("control.hello", messages.request(Type.HELLO, 1, HELLO)),
        ("control.snapshot", messages.request(Type.SNAPSHOT, 0xFFFFFFFE)),
        ("control.workers", messages.request(Type.WORKERS, 0x01020304, WORKERS)),
        ("control.error", Frame(Type.ERROR, 0x01020304, ERROR)),
    ],
)
def test_golden(name: str, frame: Frame) -> None:
    assert messages.encode(frame).hex() == FRAMES[name].hex()
    assert messages.decode(FRAMES[name]) == frame
    for cut in range(len(FRAMES[name])):
        with pytest.raises(FrameError):
            messages.decode(FRAMES[name][:cut])


def test_other_version() -> None:
    with pytest.raises(VersionError, match="version 2"):
        messages.decode(FRAMES["control.version_2"])


def test_longest() -> None:
    longest = Frame(Type.OK, 1, bytes(messages.FRAME_MAX - 16))
    assert messages.decode(messages.encode(longest)) == longest
    with pytest.raises(FrameError):
        messages.encode(Frame(Type.OK, 1, bytes(messages.FRAME_MAX - 15)))
    with pytest.raises(FrameError):
        messages.encode(Frame(Type.OK, 1 << 32))


@pytest.mark.parametrize(
    "pair", [("Count", 1), ("", 1), ("x" * 33, 1), ("a", "b\nc"), ("a", "\x85")]
)
def test_bad_keys_and_values(pair: tuple[str, object]) -> None:
    with pytest.raises(FrameError):
        messages.request(Type.POOL, 1, dict([pair]))
    with pytest.raises(FrameError):
        messages.request(Type.POOL, 1, {"a": "\ud800"})


def test_values() -> None:
    frame = messages.request(Type.SHED, 1, {"on": True, "by": None, "why": "é"})
    assert frame.payload == "on=1\nwhy=é\n".encode()


def test_answers() -> None:
    fields = messages.answer_fields(Frame(Type.OK, 1, b'{"schema": "iosd.control/1", "new": 1}'))
    assert fields["new"] == 1
    with pytest.raises(TargetError, match="é") as caught:
        messages.answer_fields(Frame(Type.ERROR, 1, ERROR))
    assert caught.value.code is ErrorCode.FRAME
    later = b'{"schema": "iosd.control/1", "code": "later", "message": "?"}'
    with pytest.raises(TargetError) as caught:
        messages.answer_fields(Frame(Type.ERROR, 1, later))
    assert caught.value.code == "later"
    for bad in (b"", b"[]", b"{}", b'{"schema": "iosd.control/2"}', b"[" * 100_000, b"\xff"):
        with pytest.raises(FrameError):
            messages.answer_fields(Frame(Type.OK, 1, bad))


@given(st.one_of(st.binary(max_size=64), st.binary(max_size=32).map(lambda b: b"OSDC\0\1" + b)))
def test_nonsense(packet: bytes) -> None:
    """Bytes that are no frame raise only FrameError. A frame has these bytes."""
    try:
        frame = messages.decode(packet)
    except FrameError:
        return
    assert messages.encode(frame) == packet
