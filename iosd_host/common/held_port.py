# SPDX-License-Identifier: GPL-2.0-or-later
"""Holds the port of a portal, so that tgtd finds it free when it is started again."""

from __future__ import annotations

import contextlib
import socket

__all__ = ["HeldPort"]


class HeldPort:
    """A port that the kernel gives to nobody who asks for any, until `close`.

    A server with SO_REUSEADDR, as tgtd is, can listen there all the same: our socket does not listen.
    A port that cannot be held is not: whoever then cannot listen there says why.

    Args: host: an IP address.  port: 0: one of the kernel's choice.

    Attributes: port: the one that is held, or the one given.
    """

    def __init__(self, host: str, port: int) -> None:
        self.port = port
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        self._socket = socket.socket(family, socket.SOCK_STREAM)
        with contextlib.suppress(OSError):
            self._socket.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            if family == socket.AF_INET6:
                self._socket.setsockopt(socket.IPPROTO_IPV6, socket.IPV6_V6ONLY, 1)
            self._socket.bind((host, port))
            self.port = self._socket.getsockname()[1]

    def close(self) -> None:
        """Hold it no longer."""
        self._socket.close()
