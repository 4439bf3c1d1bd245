# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions with a target for coroutines: connect, reconnect, send again what is safe to repeat.

session.py is the same for threads, and has what both share.
"""

from __future__ import annotations

import asyncio
import time
from typing import Unpack

from pyosd.errors import CommandTimeout, SessionLost, Unreachable
from pyosd.iscsi.async_connection import AsyncConnection
from pyosd.iscsi.connection import CLOSED
from pyosd.iscsi.login import ping_request
from pyosd.iscsi.session import (
    ATTENTIONS_MAX,
    REPEATS_MAX,
    Reconnecting,
    SessionOptions,
    TargetAddress,
    TaskFunction,
)
from pyosd.wire.sense import is_unit_attention
from pyosd.wire.transport import Command, Response

__all__ = ["AsyncIscsiTransport"]


class AsyncIscsiTransport(Reconnecting):
    """Commands to one logical unit over iSCSI; connects anew when the session was lost.

    Everything runs in the loop that called connect().  Names are resolved in the loop's executor.
    """

    def __init__(self, address: TargetAddress, **options: Unpack[SessionOptions]) -> None:
        """Args: as Reconnecting.  Nothing is sent before connect()."""
        super().__init__(address, **options)
        self._lock = asyncio.Lock()
        self._connection: AsyncConnection | None = None

    async def connect(self) -> None:
        """Connect and log in.  Raises: Unreachable, LoginRejected."""
        self._connection = await self._connect()

    @property
    def bytes_sent(self) -> int:
        """Bytes put on sockets since this transport was made, iSCSI headers included."""
        now = self._connection.bytes_sent if self._connection else 0
        return self._sent_before + now

    @property
    def bytes_received(self) -> int:
        """Bytes taken from sockets since this transport was made, iSCSI headers included."""
        now = self._connection.bytes_received if self._connection else 0
        return self._received_before + now

    async def _connect(self) -> AsyncConnection:
        place = (self.address.host, self.address.port)
        return await AsyncConnection.connect(place, self._parameters, self.timeout)

    async def _live(self) -> AsyncConnection:
        """The connection, a new one if need be.  Raises: RuntimeError: it is another event loop's."""
        connection = self._connection
        if connection is not None and not connection.failed and not self._closed:
            if not connection.at_home:
                raise RuntimeError(
                    "the session belongs to another event loop: connect anew in each asyncio.run()"
                )
            return connection
        seen, since = self._in_vain, time.monotonic()
        async with self._lock:
            if self._closed or self._connection is None:
                raise SessionLost(CLOSED)
            if self._connection.failed:
                self._share(seen, since)
                old = self._connection
                # The code that waits here may run in no task, and asyncio.timeout() needs one.
                try:
                    self._connection = await asyncio.create_task(self._reconnect(since))
                except Unreachable as error:
                    self._in_vain = [error]
                    raise
                self._sent_before += old.bytes_sent
                self._received_before += old.bytes_received
            if self._closed:  # meanwhile
                self._connection.fail(SessionLost, CLOSED)
                raise SessionLost(CLOSED)
            return self._connection

    async def _reconnect(self, since: float) -> AsyncConnection:
        """Connect again with patience.  Raises: as Patience.pause()."""
        patience = self._begin_anew(since)
        while True:
            try:
                return await self._connect()
            except Unreachable as error:
                pause = patience.pause(error)
            await asyncio.sleep(pause)

    async def execute(self, command: Command, timeout: float | None = None) -> Response:
        """Send a command and wait for its answer; repeats it where that is safe.

        Args: timeout: seconds, None: the transport's.
        Raises: CommandTimeout: and the session is over; SessionLost: it is not known whether the
            command was carried out.
        """
        deadline = time.monotonic() + (self.timeout if timeout is None else timeout)
        attentions = repeats = 0
        while True:
            connection = await self._live()
            try:
                answer = connection.execute(command, self.address.lun)
                response = await connection.in_time(answer, deadline)
            except CommandTimeout:
                raise
            except SessionLost:
                repeats += 1
                late = time.monotonic() >= deadline
                if late or repeats > REPEATS_MAX or not command.repeatable:
                    raise
                continue
            if attentions == ATTENTIONS_MAX or not is_unit_attention(
                response.status, response.sense
            ):
                return response
            attentions += 1  # The command was not executed; each condition is reported once (SAM).

    async def ping(self) -> float:
        """NOP-Out and back.  Returns: seconds it took."""
        connection, start = await self._live(), time.monotonic()
        await connection.in_time(connection.request(ping_request()), start + self.timeout)
        return time.monotonic() - start

    async def manage_tasks(self, function: TaskFunction) -> int:
        """A task management function on the logical unit, not ABORT TASK.

        Returns: the response code (TaskResponse), 0: done.
        """
        if function is TaskFunction.ABORT_TASK:
            raise ValueError("ABORT TASK needs the task, and coroutines have no name for it")
        connection, deadline = await self._live(), time.monotonic() + self.timeout
        function_done = connection.task_management(function, self.address.lun)
        return await connection.in_time(function_done, deadline)

    def drop(self) -> None:
        """Cut the connection without logging out; the next command connects anew."""
        if self._connection:
            self._connection.fail(SessionLost, "the connection was dropped")

    async def close(self) -> None:
        """Log out and close (AsyncTransport.close)."""
        self._closed = True
        if self._connection:
            await self._connection.close()
