# SPDX-License-Identifier: GPL-2.0-or-later
"""A target's answers under CMDRSP and ALLDATA, proved from docs/security-protocol.md alone, one after the
other as a test says; what was sent is kept.
"""

from __future__ import annotations

import hashlib
import hmac
import struct
from collections.abc import Callable
from dataclasses import dataclass, field

from pyosd.errors import SessionLost
from pyosd.wire.transport import Command, Response

CHECK = slice(184, 216)
NONCE = slice(216, 228)
PAGE = struct.pack(">II32sB3xQQQQ", 0xFFFF_FFFE, 0x44, bytes(32), 0x80, 0x10000, 0x10001, 0, 0)


def mac(key: bytes, *parts: bytes) -> bytes:
    return hmac.new(key, b"".join(parts), hashlib.sha256).digest()


def request_check(key: bytes, cdb: bytes) -> bytes:
    return mac(key, cdb[:184], bytes(32), cdb[216:])


def be(data: bytes, at: int, length: int) -> int:
    return int.from_bytes(data[at : at + length], "big")


def offset(field_: int) -> int:
    """Of a field of the CDB (osd2-wire 2.10), as far as tests need it."""
    assert field_ != 0xFFFF_FFFF
    exponent = (field_ >> 28) - 16 if field_ >> 31 else field_ >> 28
    return (field_ & 0x0FFF_FFFF) << exponent + 8


@dataclass(frozen=True)
class Good:
    """GOOD with command data; in page format the Current Command page is what is retrieved."""

    data: bytes = b""

    def __call__(self, key: bytes, command: Command) -> Response:
        cdb, nonce = command.cdb, command.cdb[NONCE]
        assert cdb[11] & 0x30 == 0x20, "page format"
        check = mac(key, nonce, b"\0", PAGE)
        page = PAGE[:8] + check + PAGE[40:]
        buffer = bytearray(command.data_in_length)
        buffer[: len(self.data)] = self.data
        at = offset(be(cdb, 60, 4))
        buffer[at : at + len(page)] = page
        if cdb[82] == 3:
            counts = struct.pack(">QQ", len(self.data), len(page))
            info = counts + mac(key, nonce, self.data, page, counts)
            at = offset(be(cdb, 228, 4))
            buffer[at : at + len(info)] = info
        return Response(0, b"", memoryview(buffer))


@dataclass(frozen=True)
class Refused:
    """CHECK CONDITION, ILLEGAL REQUEST.  field: pointer.  clock: in an INFORMATION descriptor."""

    asc: int
    ascq: int
    field: int | None = None
    clock: int | None = None
    proved: bool = True

    def __call__(self, key: bytes, command: Command) -> Response:
        tail = b""
        if self.field is not None:
            tail += struct.pack(">BBxxBHx", 2, 6, 0xC0, self.field)
        if self.clock is not None:
            tail += struct.pack(">BBBxQ", 0, 10, 0x80, self.clock)
        proof = bytes((7, 32)) + bytes(32) if self.proved else b""
        head = bytes((0x72, 5, self.asc, self.ascq, 0, 0, 0, len(proof + tail)))
        sense = head + proof + tail
        if self.proved:
            check = mac(key, command.cdb[NONCE], b"\2", sense)
            sense = head + proof[:2] + check + tail
        return Response(2, sense)


Answer = Callable[[bytes, Command], Response]


@dataclass
class Scripted:
    """A transport: gives the answers in turn.  key: of a command, by its capability."""

    key: Callable[[bytes], bytes]
    answers: list[Answer] = field(default_factory=list)
    sent: list[Command] = field(default_factory=list)

    def execute(self, command: Command, timeout: float | None = None) -> Response:
        self.sent.append(command)
        if not self.answers:
            raise SessionLost("no answer is left")
        return self.answers.pop(0)(self.key(command.cdb[80:184]), command)

    def submit(self, command: Command) -> _Ready:
        return _Ready(self.execute(command))

    def close(self) -> None:
        """Nothing is held."""


@dataclass
class _Ready:
    response: Response

    def result(self, timeout: float | None = None) -> Response:
        return self.response
