# SPDX-License-Identifier: GPL-2.0-or-later
"""Writes the data of one file to the target.

Short writes that continue each other are joined to WRITEs of 1 MiB, of which several are under way.  A
WRITE waits for those under way that it overlaps, so the target has what was written last.  The first
failure is kept for fsync() or close(), or for the log if nobody calls them any more.
"""

from __future__ import annotations

import asyncio
from functools import partial

from pyosd.commands import data as object_data
from pyosd.commands.data import CHUNK, QUEUE_DEPTH
from pyosd.commands.dialogue import Dialogue
from pyosd.fronts.osdfs.line import PatientSession
from pyosd.types import Buffer, ObjectRef

__all__ = ["Writer"]

_IDLE_S = 1.0  # then what was not sent yet goes, although nobody waits for it


class Writer:
    """The writes of one object.  Its coroutines may run at the same time."""

    def __init__(self, line: PatientSession, obj: ObjectRef, depth: int = QUEUE_DEPTH) -> None:
        """Args: depth: WRITEs under way at a time."""
        self._line, self._object, self._depth = line, obj, depth
        self._pending, self._start = bytearray(), 0
        self._appends = False
        self._under_way = dict[asyncio.Task[None], tuple[int, int]]()
        self._error: Exception | None = None
        self._idle: asyncio.TimerHandle | None = None
        self._sending: asyncio.Task[None] | None = None  # held until it ends

    @property
    def clean(self) -> bool:
        """Whether all that was written is at the target."""
        return not self._pending and not self._under_way

    async def write(self, start: int, data: Buffer, *, waits: bool = True) -> None:
        """Take data.

        waits: a program waits for it.  It gets what an earlier write failed with; nobody gets that from
        a write of the kernel's cache.
        Raises: what an earlier write failed with.
        """
        if waits:
            self._raise()
        if len(data) >= CHUNK:  # it is not copied to join others
            await self._send()
            await self._start_write(start, data, appends=False)
            return
        while not self._continues(start):  # another coroutine may have come first
            await self._send()
        if not self._pending:
            self._start, self._appends = start, False
        at = start - self._start
        self._pending[at : at + len(data)] = data
        await self._send_if_full()

    async def append(self, data: Buffer) -> None:
        """Take data that belong behind the end, wherever that is then.  Raises: as write()."""
        self._raise()
        while self._pending and not self._appends:
            await self._send()
        self._appends = True
        self._pending += data
        await self._send_if_full()

    async def drain(self) -> None:
        """Return when all data taken so far have been sent and answered.  Failures are kept."""
        await self._send()
        while self._under_way:
            await asyncio.wait(self._under_way)

    async def settle(self) -> None:
        """drain().  Raises: the first failure since the last call."""
        await self.drain()
        self._raise()

    def _continues(self, start: int) -> bool:
        """Whether data from there on fit to what is pending."""
        if not self._pending:
            return True
        return not self._appends and 0 <= start - self._start <= len(self._pending)

    def _raise(self) -> None:
        if self._error:
            error, self._error = self._error, None
            raise error

    async def _send_if_full(self) -> None:
        if len(self._pending) >= CHUNK:
            await self._send()
        elif self._idle is None:
            loop = asyncio.get_running_loop()
            self._idle = loop.call_later(_IDLE_S, self._send_idle)

    def _send_idle(self) -> None:
        self._idle = None
        self._sending = asyncio.create_task(self._send())

    async def _send(self) -> None:
        """Begin to send what is pending."""
        if self._idle:
            self._idle.cancel()
            self._idle = None
        if not self._pending:
            return
        data, self._pending = self._pending, bytearray()
        appends, self._appends = self._appends, False
        await self._start_write(self._start, data, appends=appends)

    async def _start_write(self, start: int, data: Buffer, *, appends: bool) -> None:
        first = [*self._under_way] if appends else self._overlapping(start, start + len(data))
        task = asyncio.create_task(self._carry(first, start, data, appends=appends))
        self._under_way[task] = (0, 1 << 63) if appends else (start, start + len(data))
        task.add_done_callback(self._done)
        while len(self._under_way) >= self._depth:
            await asyncio.wait(self._under_way, return_when=asyncio.FIRST_COMPLETED)

    def _overlapping(self, start: int, end: int) -> list[asyncio.Task[None]]:
        return [each for each, (low, high) in self._under_way.items() if low < end and start < high]

    async def _carry(
        self, first: list[asyncio.Task[None]], start: int, data: Buffer, *, appends: bool
    ) -> None:
        if first:
            await asyncio.wait(first)
        try:
            for at in range(0, len(data), CHUNK):
                piece = memoryview(data)[at : at + CHUNK]
                await self._line.carry(
                    partial(self._command, start + at, piece, appends=appends),
                    again=not appends,
                )
        except Exception as error:
            self._error = self._error or error

    def _command(self, start: int, piece: memoryview, *, appends: bool) -> Dialogue[object]:
        if appends:
            return object_data.append(self._object, piece)
        return object_data.write(self._object, start, piece)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self._under_way[task]
