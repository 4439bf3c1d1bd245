# SPDX-License-Identifier: GPL-2.0-or-later
"""What a program writes to a pipe, write by write."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from select import PIPE_BUF

from tests import warm

OSD = "from pyosd.cli import main; main(prog_name='osd')"


def pieces(program: str, *words: object, codes: Sequence[int] = (0,)) -> list[bytes]:
    """Run a Python program; what each of its writes to stdout has written."""
    readable, writable = os.pipe2(os.O_DIRECT)  # a read takes what one write has written
    with os.fdopen(readable, "rb", buffering=0) as pipe:
        process = warm.Python([sys.executable, "-c", program, *map(str, words)], stdout=writable)
        os.close(writable)
        found = [b""]
        for packet in iter(lambda: pipe.read(PIPE_BUF), b""):
            found[-1] += packet
            if len(packet) < PIPE_BUF:  # a long write is many packets, all but its last full
                found.append(b"")
    assert process.wait() in codes
    return [each for each in found if each]
