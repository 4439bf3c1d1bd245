# SPDX-License-Identifier: GPL-2.0-or-later
"""Frames of a target's control socket (docs/control.md): encode and decode, no sockets.

target/wire/control_frame.c is the same in C; both are tested on the bytes in tests/fuzz/golden.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Mapping
from dataclasses import dataclass
from enum import IntEnum, StrEnum
from typing import Any

__all__ = [
    "FRAME_MAX",
    "SCHEMA",
    "VERSION",
    "ErrorCode",
    "Frame",
    "FrameError",
    "TargetError",
    "Type",
    "VersionError",
    "answer_fields",
    "decode",
    "encode",
    "request",
]

VERSION = 1
FRAME_MAX = 128 << 10
SCHEMA = "iosd.control/1"
_MAGIC = b"OSDC"
_HEADER = struct.Struct(">4sHHII")
_KEY_MAX = 32
_KEY_LETTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789_")


class Type(IntEnum):
    """Of a frame; answers are above 99."""

    HELLO = 1
    SNAPSHOT = 2
    WATCH = 3
    WORKERS = 4
    POOL = 5
    RECYCLE = 6
    PRINCIPAL = 7
    USAGE = 8
    SHED = 9
    RELOAD = 10
    FREEZE = 11
    THAW = 12
    JOBS = 13
    WELCOME = 100
    OK = 101
    ERROR = 102
    SNAPSHOT_IS = 103
    USAGE_IS = 104
    JOBS_ARE = 105


class ErrorCode(StrEnum):
    """Of an ERROR answer."""

    VERSION = "version"
    FRAME = "frame"
    HELLO = "hello"
    NOT_MANAGER = "not-manager"
    MANAGED = "managed"
    NO_SUCH_POOL = "no-such-pool"
    BAD_VALUE = "bad-value"
    FAILED = "failed"


_TYPES = frozenset(Type)
_CODES = frozenset(ErrorCode)


class FrameError(ValueError):
    """Received bytes are no frame, or a message to send cannot be one."""


class VersionError(FrameError):
    """A frame of another version: the peer is of another release.

    Attributes:
        version: its version.
    """

    def __init__(self, version: int) -> None:
        super().__init__(f"frame of version {version}, where {VERSION} is spoken")
        self.version = version


class TargetError(Exception):
    """A target answered ERROR.

    Attributes:
        code: why; plain text when it is of a later release.
        message: the same for people.
    """

    def __init__(self, code: ErrorCode | str, message: str) -> None:
        super().__init__(f"{message} ({code})")
        self.code = code
        self.message = message


@dataclass(frozen=True)
class Frame:
    """One packet.

    Attributes:
        type: a Type, or a plain number of a later release's.
        serial: a request's, repeated by its answer; 0 in what was not asked for.
        payload: text of a request, JSON of an answer; at most FRAME_MAX - 16 bytes.
    """

    type: int
    serial: int
    payload: bytes = b""


def encode(frame: Frame) -> bytes:
    """The bytes of a frame.

    Raises:
        FrameError: type, serial or length are out of range.
    """
    if len(frame.payload) > FRAME_MAX - _HEADER.size:
        raise FrameError(f"payload of {len(frame.payload)} bytes is too long")
    try:
        head = _HEADER.pack(_MAGIC, VERSION, frame.type, frame.serial, len(frame.payload))
    except struct.error as error:
        raise FrameError(f"type {frame.type} or serial {frame.serial}: {error}") from None
    return head + frame.payload


def decode(packet: bytes) -> Frame:
    """The frame that a packet is.

    Raises:
        VersionError: it is of another version.
        FrameError: it is none.
    """
    if not _HEADER.size <= len(packet) <= FRAME_MAX:
        raise FrameError(f"packet of {len(packet)} bytes is no frame")
    magic, version, kind, serial, length = _HEADER.unpack_from(packet)
    if magic != _MAGIC:
        raise FrameError("packet does not begin as a frame")
    if version != VERSION:
        raise VersionError(version)
    if length != len(packet) - _HEADER.size:
        raise FrameError(f"frame says {length} bytes and has {len(packet) - _HEADER.size}")
    if kind in _TYPES:
        kind = Type(kind)
    return Frame(kind, serial, packet[_HEADER.size :])


def request(kind: Type, serial: int, keys: Mapping[str, object] | None = None) -> Frame:
    """A request; booleans go as 0 and 1, keys whose value is None are left out.

    Raises:
        FrameError: a key or value cannot be a line of it.
    """
    lines = []
    for key, value in (keys or {}).items():
        if value is None:
            continue
        text = str(int(value)) if isinstance(value, bool) else str(value)
        if not 0 < len(key) <= _KEY_MAX or not _KEY_LETTERS.issuperset(key):
            raise FrameError(f"bad key {key!r}")
        if any(ord(letter) < 0x20 or 0x7F <= ord(letter) < 0xA0 for letter in text):
            raise FrameError(f"value of {key} has control characters")
        lines.append(f"{key}={text}\n")
    try:
        return Frame(kind, serial, "".join(lines).encode())
    except UnicodeEncodeError:
        raise FrameError("a value is not Unicode text") from None


def answer_fields(frame: Frame) -> dict[str, Any]:
    """The fields of an answer.

    Raises:
        TargetError: it is an ERROR.
        FrameError: its payload is not what an answer has.
    """
    try:
        fields = json.loads(frame.payload)
    except (ValueError, RecursionError) as error:
        raise FrameError(f"answer is not JSON: {error}") from None
    if not isinstance(fields, dict) or fields.get("schema") != SCHEMA:
        raise FrameError(f"answer is not of {SCHEMA}")
    if frame.type != Type.ERROR:
        return fields
    code, message = str(fields.get("code", "")), str(fields.get("message", ""))
    raise TargetError(ErrorCode(code) if code in _CODES else code, message)
