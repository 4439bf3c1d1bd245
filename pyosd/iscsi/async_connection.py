# SPDX-License-Identifier: GPL-2.0-or-later
"""Drive one connection of the core from an event loop; connection.py is the same for threads.

Not here: reconnecting and repeating (async_session.py), the text of a login (login.py).
"""

from __future__ import annotations

import asyncio
import errno
import os
import select
import socket
from collections.abc import Callable, Coroutine, Generator
from typing import Any, TypeVar

from pyosd import _core
from pyosd.errors import CommandTimeout, ProtocolError, SessionLost, Unreachable
from pyosd.iscsi.connection import (
    CLOSED,
    cannot_connect,
    message_meaning,
    peer_name,
    ready_socket,
    scsi_response,
    submit,
)
from pyosd.iscsi.login import (
    ChapAnswer,
    LoginParameters,
    Negotiated,
    PduRequest,
    login,
    logout_request,
    task_management_request,
)
from pyosd.wire.transport import Command, Response

T = TypeVar("T")
_LOGOUT_TIMEOUT = 2.0
_NO_TASK = 0xFFFF_FFFF


async def open_socket(host: str, port: int) -> socket.socket:
    """Connect over TCP to the first address that answers.

    A thread resolves the name, and no thread waits for the answer: cancelling ends the attempt.
    Raises: OSError.
    """
    loop = asyncio.get_running_loop()
    failure = OSError("the name has no address")
    for family, kind, protocol, _, place in await loop.getaddrinfo(
        peer_name(host), port, type=socket.SOCK_STREAM
    ):
        sock = socket.socket(family, kind, protocol)
        try:
            sock.setblocking(False)
            await loop.sock_connect(sock, place)
            return ready_socket(sock)
        except OSError as error:
            sock.close()
            number = error.errno or errno.EIO  # the loop's own text repeats the address
            failure = OSError(number, os.strerror(number))
        except BaseException:
            sock.close()
            raise
    raise failure


class AsyncConnection:
    """One logged-in connection, used from one event loop."""

    def __init__(self, sock: socket.socket, max_segment: int) -> None:
        self._sock = sock
        self._loop = asyncio.get_running_loop()
        self._core = _core.Session(sock.fileno(), max_segment)
        self._waiting: dict[int, asyncio.Future[object]] = {}
        self._failure: tuple[type[Unreachable], str] | None = None
        self._writing = False
        self._closing = False
        self._room = asyncio.Semaphore(_core.TASKS_MAX)
        # One timer for all: making and cancelling one for each command costs more than the command.
        self._deadlines = dict[int, float]()
        self._last_deadline = 0
        self._alarm: asyncio.TimerHandle | None = None
        self._loop.add_reader(sock, self._service)

    @classmethod
    async def connect(
        cls, address: tuple[str, int], parameters: LoginParameters, timeout: float
    ) -> AsyncConnection:
        """Connect and log in within timeout seconds.  Raises: Unreachable and its children."""
        try:
            async with asyncio.timeout(timeout):
                sock = await open_socket(*address)
        except TimeoutError:
            raise cannot_connect(*address, TimeoutError("timed out")) from None
        except OSError as error:
            raise cannot_connect(*address, error) from None
        connection = cls(sock, parameters.max_segment)
        try:
            async with asyncio.timeout(timeout):
                connection.start(await connection.converse(login(parameters)))
        except TimeoutError:
            connection.fail(Unreachable, "the login timed out")
            raise Unreachable("the target did not answer the login in time") from None
        except BaseException:
            connection.fail(Unreachable, "the login did not succeed")
            raise
        return connection

    @property
    def failed(self) -> bool:
        """Whether the session is over."""
        return self._failure is not None

    @property
    def at_home(self) -> bool:
        """Whether the running event loop is the connection's, which alone gets its answers."""
        return asyncio.get_running_loop() is self._loop

    @property
    def bytes_sent(self) -> int:
        """Bytes put on the socket."""
        return self._core.bytes_sent

    @property
    def bytes_received(self) -> int:
        """Bytes taken from the socket."""
        return self._core.bytes_received

    def start(self, agreed: Negotiated) -> None:
        """Login is over."""
        self._core.start(*agreed)

    async def execute(self, command: Command, lun: int) -> Response:
        """Send a SCSI command and wait.  Raises: SessionLost."""
        answer = await self._send(lambda: submit(self._core, command, lun))
        return scsi_response(answer)

    async def request(self, request: PduRequest) -> ChapAnswer:
        """Send a PDU that is no SCSI command and wait.  Raises: SessionLost."""
        answer = await self._send(
            lambda: self._core.request(
                request.opcode, request.header, request.data, request.immediate
            )
        )
        assert isinstance(answer, tuple) and len(answer) == 2
        return answer

    async def task_management(self, function: int, lun: int) -> int:
        """Send a task management function and wait.  Returns: its response code (0: complete)."""
        header, _ = await self.request(task_management_request(function, lun, _NO_TASK, 0))
        return header[2]

    async def converse(self, dialogue: Generator[PduRequest, ChapAnswer, T]) -> T:
        """Carry a dialogue of login.py to its end."""
        try:
            request = next(dialogue)
            while True:
                request = dialogue.send(await self.request(request))
        except StopIteration as stop:
            result: T = stop.value
            return result

    async def _send(self, submit: Callable[[], int]) -> object:
        await self._room.acquire()
        if self._failure:
            self._room.release()
            raise self._error()
        future: asyncio.Future[object] = self._loop.create_future()
        try:
            self._waiting[submit()] = future
        except BaseException:
            self._room.release()
            raise
        self._service()
        # If the caller gives up, the core still expects the answer, which keeps its room until then.
        answer = await future
        if answer is None:
            raise self._error()
        return answer

    async def in_time(self, answer: Coroutine[Any, Any, T], deadline: float) -> T:
        """Wait for an answer until a monotonic time.  Raises: CommandTimeout: the session was dropped."""
        self._last_deadline += 1
        number = self._last_deadline
        self._deadlines[number] = deadline
        if self._alarm is None or deadline < self._alarm.when():
            self._set_alarm(deadline)
        try:
            return await answer
        except SessionLost:
            if number not in self._deadlines:
                raise CommandTimeout("no answer from the target in time") from None
            raise
        finally:
            self._deadlines.pop(number, None)

    def _set_alarm(self, when: float) -> None:
        if self._alarm:
            self._alarm.cancel()
        self._alarm = self._loop.call_at(when, self._ring)

    def _ring(self) -> None:
        """Drop the session if a command is late; its deadline is forgotten then."""
        self._alarm = None
        now = self._loop.time()
        late = [number for number, deadline in self._deadlines.items() if deadline <= now]
        for number in late:
            del self._deadlines[number]
        if late:
            self.fail(SessionLost, "the session was dropped: a command got no answer")
        elif self._deadlines:
            self._set_alarm(min(self._deadlines.values()))

    def _error(self) -> Unreachable:
        kind, text = self._failure or (SessionLost, "the session was lost")
        return kind(text)

    def _service(self) -> None:
        if self._failure:
            return
        try:
            self._core.service()
        except _core.ProtocolViolation as error:
            self.fail(ProtocolError, f"the target broke the protocol: {error}")
            return
        except ConnectionError as error:
            self.fail(SessionLost, CLOSED if self._closing else str(error))
            return
        self._harvest()
        for header, _ in self._core.messages():
            meaning = message_meaning(header)
            if meaning:
                self.fail(SessionLost, meaning)
                return
        self._watch_writing(bool(self._core.events() & select.POLLOUT))

    def _watch_writing(self, wanted: bool) -> None:
        if wanted and not self._writing:
            self._loop.add_writer(self._sock, self._service)
        elif self._writing and not wanted:
            self._loop.remove_writer(self._sock)
        self._writing = wanted

    def _harvest(self) -> None:
        for tag, answer in self._core.done():
            future = self._waiting.pop(tag)
            self._room.release()
            if not future.done():
                future.set_result(answer)

    def fail(self, kind: type[Unreachable], text: str) -> None:
        """End the session: all waiting commands get an error.  May be repeated."""
        if self._failure is None:
            self._failure = (kind, text)
            if self._alarm:
                self._alarm.cancel()
            self._watch_writing(False)
            self._loop.remove_reader(self._sock)
            self._core.fail()
            self._harvest()
            self._sock.close()

    async def close(self) -> None:
        """Log out, at most 2 s, and close.  Never raises."""
        self._closing = True
        try:
            if self.at_home:
                await asyncio.wait_for(self.request(logout_request()), _LOGOUT_TIMEOUT)
        except (Unreachable, TimeoutError):
            pass
        finally:  # also if this is cancelled
            self.fail(SessionLost, CLOSED)
