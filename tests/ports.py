# SPDX-License-Identifier: GPL-2.0-or-later
"""A TCP port of this host that stays free for one server, also while that server is away."""

from __future__ import annotations

import socket

HOST = "127.0.0.1"


def hold_port() -> tuple[socket.socket, int]:
    """The port, and what holds it until it is closed: the kernel gives it to nobody who asks for any.

    A server with SO_REUSEADDR can listen there all the same, for this socket does not.
    """
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    held.bind((HOST, 0))
    return held, held.getsockname()[1]
