# SPDX-License-Identifier: GPL-2.0-or-later
"""A file that reports how many bytes of it were read.  Not here: moving the bytes (pyosd.target)."""

from __future__ import annotations

import io
import os
import stat
from collections.abc import Callable
from typing import IO

__all__ = ["Watched", "size_of"]


def size_of(source: IO[bytes]) -> int | None:
    """Bytes in a regular file; None where one cannot know."""
    try:
        state = os.fstat(source.fileno())
    except io.UnsupportedOperation:  # a stream without a descriptor
        return None
    return state.st_size if stat.S_ISREG(state.st_mode) else None


class Watched:
    """The reading half of a binary file, and the bytes that were read.

    Args:
        source: what is read.
        progress: called with the number of bytes read since its last call.
    """

    def __init__(self, source: IO[bytes], progress: Callable[[int], None]) -> None:
        self.source = source
        self.progress = progress
        self.total = 0

    def read(self, size: int = -1) -> bytes:
        """Read up to `size` bytes."""
        piece = self.source.read(size)
        self.total += len(piece)
        self.progress(len(piece))
        return piece
