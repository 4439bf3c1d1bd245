# SPDX-License-Identifier: GPL-2.0-or-later
"""Open files for coroutines: binary, without a buffer of their own."""

from __future__ import annotations

import os
from collections.abc import AsyncIterator
from typing import Any, TypeVar

from pyosd.commands.dialogue import Awaiting, Dialogue
from pyosd.fs.opening import OpenedFile, OpenFileTable, check_whole
from pyosd.types import Buffer

__all__ = ["AsyncFile"]

PIECE = 1 << 20
R = TypeVar("R")


class AsyncFile(OpenFileTable, Awaiting):
    """An open file of AsyncFileSystem.open().  One coroutine uses it at a time.

    If an `async with` block ends with an exception, a new file is given up.
    """

    def __init__(self, fs: Any, opened: OpenedFile) -> None:
        self.fs, self.opened = fs, opened
        self.closed = False
        self._at = opened.length if opened.mode.kind == "a" else 0

    async def carry(self, dialogue: Dialogue[R]) -> R:
        value: R = await self.fs.carry(dialogue)
        return value

    async def __aenter__(self) -> AsyncFile:
        return self

    async def __aexit__(self, kind: object, *_: object) -> None:
        await (self.close() if kind is None else self.discard())

    async def __aiter__(self) -> AsyncIterator[bytes]:
        """Pieces of at most 1 MiB."""
        while piece := await self.read(PIECE):
            yield piece

    def tell(self) -> int:
        """The position of the next read() or write()."""
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Set the position.  Returns: it, from the start."""
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self.opened.length}[whence]
        if base + offset < 0:
            raise ValueError(f"negative seek position {base + offset}")
        self._at = base + offset
        return self._at

    async def read(self, size: int = -1) -> bytes:
        """Read at most so many bytes; -1: to the end as it was at the opening."""
        self._check(self.opened.mode.reads, "read")
        left = max(self.opened.length - self._at, 0)
        buffer = bytearray(left if size < 0 else min(size, left))
        count = await self._read_into(self._at, buffer)
        self._at += count
        return bytes(memoryview(buffer)[:count])

    async def write(self, data: Buffer) -> int:
        """Write all bytes."""
        self._check(self.opened.mode.writes, "written")
        self._at = await self._write_at(self._at, data)
        return memoryview(data).nbytes

    async def close(self) -> None:
        """Give a new file its name."""
        if not self.closed:
            self.closed = True
            await self._finish()
            check_whole(self.opened)

    async def discard(self) -> None:
        """Close it without effect, if it is a new file."""
        if not self.closed:
            self.closed = True
            await self._discard()

    def _check(self, permitted: bool, what: str) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if not permitted:
            raise ValueError(f"the file is not open to be {what}")
