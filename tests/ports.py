# SPDX-License-Identifier: GPL-2.0-or-later
"""Ports that tests name themselves: of a target that comes back at the same place, of one in a script."""

from __future__ import annotations

import contextlib
import random
import socket
from pathlib import Path

GIVEN = Path("/proc/sys/net/ipv4/ip_local_port_range")
"""Ports from which the kernel chooses for who names none."""


def own_port() -> int:
    """A free port of 127.0.0.1, of those that the kernel gives nobody: one that it gives could be another
    worker's before it is used, and between two uses.
    """
    first = int(GIVEN.read_text().split()[0])
    choose = random.SystemRandom()
    while True:
        port = choose.randrange(first // 2, first)
        with contextlib.suppress(OSError), socket.socket() as probe:
            probe.bind(("127.0.0.1", port))
            return port
