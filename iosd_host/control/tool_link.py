# SPDX-License-Identifier: GPL-2.0-or-later
"""A tool's connection to a target's control socket: one request at a time (docs/control.md)."""

from __future__ import annotations

import socket
from pathlib import Path

from iosd_host.control.messages import FRAME_MAX, Type, answer_fields, decode, encode, request

__all__ = ["ToolLink"]


class ToolLink:
    """A connection as a tool.

    Args: who: is in the target's log.  answer_s: how long an answer may take.
    Raises: OSError; FrameError; TargetError.
    """

    def __init__(self, path: Path, who: str, answer_s: float) -> None:
        self.serial = 0
        self.socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self.socket.settimeout(answer_s)
            self.socket.connect(str(path))
            self.ask(Type.HELLO, role="tool", who=who, versions="1-1")
        except BaseException:
            self.close()
            raise

    def ask(self, kind: Type, **keys: str | int | None) -> dict[str, object]:
        """A request and its answer.  Raises: OSError; FrameError; TargetError."""
        self.serial += 1
        self.socket.send(encode(request(kind, self.serial, keys)))
        while True:
            data = self.socket.recv(FRAME_MAX + 1)
            if not data:
                raise ConnectionError("the target has closed the connection")
            answer = decode(data)
            if answer.serial == self.serial:
                return dict(answer_fields(answer))

    def close(self) -> None:
        """End it.  The target also thaws what this connection has frozen."""
        self.socket.close()
