# SPDX-License-Identifier: GPL-2.0-or-later
from collections.abc import Callable
from typing import Any, TypeVar

from pyosd.types import AttributeValue, Buffer, MutableBuffer, ObjectAttributes

T = TypeVar("T", bound=tuple[Any, ...])

TASKS_MAX: int
"""Requests one session can have under way; submit() raises BlockingIOError beyond."""

class ProtocolViolation(ConnectionError): ...

def crc32c(data: Buffer, crc: int = 0, /) -> int: ...
def decode_entries(
    data: Buffer, value_type: type[AttributeValue], /
) -> tuple[AttributeValue, ...]: ...
def decode_groups(
    data: Buffer, member_type: type[ObjectAttributes], value_type: type[AttributeValue], /
) -> tuple[ObjectAttributes, ...]: ...
def decode_form(data: Buffer, widths: bytes, tuple_type: type[T], /) -> T | None: ...

class KernelDevice:
    def __new__(
        cls,
        fd: int,
        others: int,
        length: int,
        new_most: int,
        handled: int,
        kept: float,
        nodes: dict[int, Any],
        request: Callable[..., object],
        /,
    ) -> KernelDevice: ...
    @property
    def others_ready(self) -> bool: ...
    def next(self, timeout: int, /) -> object | None: ...
    def reply(self, unique: int, data: Buffer, /) -> None: ...

class Session:
    def __new__(cls, fd: int, max_recv_segment: int, /) -> Session: ...
    @property
    def bytes_sent(self) -> int: ...
    @property
    def bytes_received(self) -> int: ...
    @property
    def outstanding(self) -> int: ...
    def fileno(self) -> int: ...
    def events(self) -> int: ...
    def service(self) -> None: ...
    def start(
        self,
        max_send_segment: int,
        max_burst: int,
        first_burst: int,
        immediate_data: bool,
        initial_r2t: bool,
        header_digest: bool,
        /,
    ) -> None: ...
    def submit(
        self,
        lun: int,
        cdb: Buffer,
        data_out: Buffer,
        data_in: MutableBuffer | None,
        data_in_length: int,
        /,
    ) -> int: ...
    def request(self, opcode: int, header: Buffer, data: Buffer, immediate: bool, /) -> int: ...
    def command_number(self, tag: int, /) -> int | None: ...
    def done(
        self,
    ) -> list[
        tuple[
            int,
            tuple[int, bytes, Buffer, int, int, int] | tuple[bytes, bytes] | None,
        ]
    ]: ...
    def messages(self) -> list[tuple[bytes, bytes]]: ...
    def fail(self) -> None: ...
