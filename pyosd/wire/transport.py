# SPDX-License-Identifier: GPL-2.0-or-later
"""The Protocol of everything that carries SCSI commands to a logical unit: sessions, fakes, the harness."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from pyosd.types import Buffer, MutableBuffer


@dataclass(slots=True)  # not frozen, which would take as long as a third of a command
class Command:
    """A SCSI command: CDB (1-260 bytes), Data-Out, and how much Data-In to expect.

    data_in_buffer: where Data-In goes, at least data_in_length bytes; None: the transport
    allocates. It belongs to the transport until the answer is there.
    repeatable: it only reads, so it may be sent again when the session was lost.
    """

    cdb: bytes
    data_out: Buffer = b""
    data_in_length: int = 0
    data_in_buffer: MutableBuffer | None = None
    repeatable: bool = False


@dataclass(slots=True)
class Response:
    """The answer to a command.

    status: SAM status byte.  sense: sense data, b"" for none.  data_in: the bytes that came; a view
    of Command.data_in_buffer where one was given.  residual_in, residual_out: bytes expected less
    bytes transferred; negative: the target had (or wanted) that many more.
    """

    status: int
    sense: bytes = b""
    data_in: memoryview = field(default=memoryview(b""))
    residual_in: int = 0
    residual_out: int = 0


class Pending(Protocol):
    """A command under way."""

    def result(self, timeout: float | None = None) -> Response:
        """Wait for the answer; may be called again.

        timeout: seconds, None: the transport's own command time-out.
        Raises: pyosd.errors.Unreachable and its children: no answer will come; nothing else.
        """
        ...


class CommandTransport(Protocol):
    """Carries commands to one logical unit.  A SAM status other than GOOD is an answer, not an
    error.
    """

    def execute(self, command: Command, timeout: float | None = None) -> Response:
        """Send a command and wait for its answer; raises as Pending.result()."""
        ...

    def submit(self, command: Command) -> Pending:
        """Send a command without waiting; answers may come in any order.  Raises as result()."""
        ...

    def close(self) -> None:
        """End the session; commands under way fail.  Never raises; may be repeated."""
        ...


class AsyncTransport(Protocol):
    """As Transport, for coroutines."""

    async def execute(self, command: Command, timeout: float | None = None) -> Response:
        """Send a command and wait for its answer; raises as Pending.result()."""
        ...

    async def close(self) -> None:
        """End the session; commands under way fail.  Never raises; may be repeated."""
        ...
