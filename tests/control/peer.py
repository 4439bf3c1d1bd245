# SPDX-License-Identifier: GPL-2.0-or-later
"""One end of a target's control socket, for tests: blocking, with a deadline on everything."""

from __future__ import annotations

import itertools
import socket
from pathlib import Path
from typing import Any

from iosd_host.control import messages
from iosd_host.control.messages import Frame, TargetError, Type

DEADLINE_S = 60.0


class Peer:
    """A connection; a context manager.  role: says HELLO first; None: does not."""

    def __init__(self, path: Path, role: str | None = "tool", who: str = "test") -> None:
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self.socket.settimeout(DEADLINE_S)
        self.serials = itertools.count(1)
        self.pushed: list[dict[str, Any]] = []
        try:
            self.socket.connect(str(path))
            self.welcome = self.hello(role, who) if role else None
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> Peer:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        self.socket.close()

    def hello(self, role: str, who: str = "test", versions: str = "1-1") -> dict[str, Any]:
        return self.ask(Type.HELLO, role=role, who=who, versions=versions)

    def send(self, packet: bytes) -> None:
        self.socket.send(packet)

    def receive(self) -> Frame:
        """The next frame.  Raises: EOFError: the target has closed the connection."""
        try:
            packet = self.socket.recv(messages.FRAME_MAX + 1)
        except ConnectionResetError:
            packet = b""
        if not packet:
            raise EOFError
        return messages.decode(packet)

    def ask(self, kind: Type, **keys: object) -> dict[str, Any]:
        """The answer's fields; what was pushed meanwhile is kept.  Raises: TargetError."""
        serial = next(self.serials)
        self.send(messages.encode(messages.request(kind, serial, keys)))
        while True:
            frame = self.receive()
            if frame.serial == serial:
                return messages.answer_fields(frame)
            assert (frame.serial, frame.type) == (0, Type.SNAPSHOT_IS)
            self.pushed.append(messages.answer_fields(frame))

    def code(self, kind: Type, **keys: object) -> str:
        """The code of the ERROR that is the answer."""
        try:
            answer = self.ask(kind, **keys)
        except TargetError as error:
            return str(error.code)
        raise AssertionError(f"{kind.name} {keys} is answered {answer}")

    def snapshot(self) -> dict[str, Any]:
        return self.ask(Type.SNAPSHOT)

    def push(self) -> dict[str, Any]:
        """The next reading that the target sends unasked."""
        if self.pushed:
            return self.pushed.pop(0)
        frame = self.receive()
        assert (frame.serial, frame.type) == (0, Type.SNAPSHOT_IS)
        return messages.answer_fields(frame)

    def is_closed(self) -> bool:
        """Whether the target closes it in time."""
        try:
            while True:
                self.receive()
        except EOFError:
            return True
        except TimeoutError:
            return False
