# SPDX-License-Identifier: GPL-2.0-or-later
"""Output of a program to a terminal."""

from __future__ import annotations

import os


def written_to(leader: int, follower: int) -> bytes:
    """Read a terminal until every program that has it has ended.

    Args: leader, follower: of pty.openpty(); both are closed.
    """
    os.close(follower)
    written = b""
    while True:
        try:
            written += os.read(leader, 65536)
        except OSError:  # EIO: closed
            break
    os.close(leader)
    return written
