# SPDX-License-Identifier: GPL-2.0-or-later
"""The asyncio API: the same core and dialogues, driven by the running event loop.

    async with aio.connect("iscsi://host/iqn.../1") as target:
        data = await target.read(obj, 0, 4096)
        job = await target.exec("import osd; osd.result(1)", zone=zone)
        value = await job

Lives here: AsyncConnection (what iscsi.connection.Connection is for threads), AsyncTarget.  Everything
runs in the loop that connect() was awaited in.  Names are resolved in the loop's executor.
Not here: jobs (jobs/aio_jobs.py).  There is no reconnecting: a lost session raises SessionLost, and
connect() makes a new one.
"""

from __future__ import annotations

import asyncio
import select
import socket
from collections.abc import AsyncIterator, Callable, Generator
from contextlib import asynccontextmanager
from dataclasses import astuple
from typing import TypeVar

from pyosd import _core, requests
from pyosd.commands.collections import queries_of, query_dialogue
from pyosd.errors import (
    CommandTimeout,
    OSDError,
    ProtocolError,
    SessionLost,
    Unreachable,
)
from pyosd.iscsi.connection import message_meaning, open_socket, scsi_response, submit
from pyosd.iscsi.login import (
    Chap,
    ChapAnswer,
    LoginParameters,
    Negotiated,
    PduRequest,
    login,
    logout_request,
)
from pyosd.iscsi.session import (
    CHUNK,
    DEFAULT_TIMEOUT,
    QUEUE_DEPTH,
    TargetAddress,
    default_initiator_name,
)
from pyosd.jobs import submission
from pyosd.jobs.aio_jobs import AsyncJob, AsyncJobArray, Poller, as_completed, wait
from pyosd.jobs.refusal import explain_at_once
from pyosd.jobs.submission import Prepared, prepare, takes_options
from pyosd.osd._query import Condition
from pyosd.security import local_credential
from pyosd.security.credentials import Credential, CredentialSource, source_of
from pyosd.security.signing import Aside, Signer, Step
from pyosd.types import Buffer, ObjectRef, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, CURRENT_PARTITION_ID
from pyosd.wire.cdb import AttributeLists, Request, encode
from pyosd.wire.reply import Reply, decode_exec, decode_reply
from pyosd.wire.sense import is_unit_attention
from pyosd.wire.transport import Command, Response

__all__ = [
    "AsyncConnection",
    "AsyncJob",
    "AsyncJobArray",
    "AsyncTarget",
    "as_completed",
    "connect",
    "wait",
]

T = TypeVar("T")
_LOGOUT_TIMEOUT = 2.0
CLOSED = "the session was closed"


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
        self._loop.add_reader(sock, self._service)

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
        self._core.start(*astuple(agreed))

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
        future.add_done_callback(lambda _: self._room.release())
        try:
            self._waiting[submit()] = future
        except BaseException:
            future.cancel()
            raise
        self._service()
        # A caller that gives up must not take the answer's place away: the core still expects it.
        answer = await asyncio.shield(future)
        if answer is None:
            raise self._error()
        return answer

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
            if not future.done():
                future.set_result(answer)

    def fail(self, kind: type[Unreachable], text: str) -> None:
        """End the session: whoever waits gets an error.  May be repeated."""
        if self._failure is None:
            self._failure = (kind, text)
            self._watch_writing(False)
            self._loop.remove_reader(self._sock)
            self._core.fail()
            self._harvest()
            self._sock.close()

    async def close(self) -> None:
        """Log out, at most 2 s, and close.  Never raises."""
        self._closing = True
        try:
            await asyncio.wait_for(self.request(logout_request()), _LOGOUT_TIMEOUT)
        except (Unreachable, TimeoutError):
            pass
        self.fail(SessionLost, CLOSED)


class AsyncTarget:
    """A logical unit, for coroutines.  Requests come from pyosd.requests; many may be under way."""

    def __init__(
        self,
        connection: AsyncConnection,
        address: TargetAddress,
        timeout: float,
        credentials: CredentialSource | None = None,
    ) -> None:
        self._connection = connection
        self._address = address
        self._timeout = timeout
        self._signer = Signer(credentials)
        self.poller = Poller(self)

    @property
    def connection(self) -> AsyncConnection:
        """The connection, for its byte counters."""
        return self._connection

    async def execute(self, command: Command, timeout: float | None = None) -> Response:
        """Send a CDB of one's own.

        Args: timeout: seconds, None: the session's.
        Raises: CommandTimeout: and the session is over; SessionLost.
        """
        lun, left = self._address.lun, self._timeout if timeout is None else timeout
        try:
            async with asyncio.timeout(left):
                response = await self._connection.execute(command, lun)
                if is_unit_attention(response.status, response.sense):
                    response = await self._connection.execute(command, lun)
        except TimeoutError:
            self._connection.fail(SessionLost, "the session was dropped: a command got no answer")
            raise CommandTimeout("no answer from the target in time") from None
        return response

    async def call(self, request: Request, timeout: float | None = None) -> Reply:
        """Send a request and decode its answer.  Raises: as pyosd.commands.unit says."""
        reply = await self.reply(request, timeout)
        if reply.error:
            raise reply.error
        return reply

    async def reply(self, request: Request, timeout: float | None = None) -> Reply:
        """As call(), but a refusal is returned in Reply.error instead of raised."""
        if self._signer.source is None:
            command, layout = encode(request)
            return decode_reply(request, layout, await self.execute(command, timeout))
        exchange, loop = self._signer.exchange(request), asyncio.get_running_loop()
        result: object = None
        try:
            while True:
                step: Step = exchange.send(result)
                if isinstance(step, Aside):
                    result = await self.execute(step.command)
                elif isinstance(step, Command):
                    result = await self.execute(step, timeout)
                else:
                    result = await loop.run_in_executor(None, step)
        except StopIteration as stop:
            reply: Reply = stop.value
            return reply

    async def read(self, obj: ObjectRef, start: int, length: int) -> bytearray:
        """Read a range, with READs of 1 MiB under way side by side.

        Returns: 0..length bytes; less only where the object ends.
        """
        buffer = bytearray(length)
        view, room = memoryview(buffer), asyncio.Semaphore(QUEUE_DEPTH)

        async def piece(at: int) -> int:
            part = view[at : at + CHUNK]
            async with room:
                request = requests.read(obj, start + at, len(part), buffer=part)
                return len((await self.call(request)).data)

        got = sum(await asyncio.gather(*(piece(at) for at in range(0, length, CHUNK))))
        view.release()
        return buffer if got == length else buffer[:got]

    async def write(self, obj: ObjectRef, start: int, data: Buffer) -> None:
        """Write any amount of data, with WRITEs of 1 MiB under way side by side."""
        view, room = memoryview(data).cast("B"), asyncio.Semaphore(QUEUE_DEPTH)

        async def piece(at: int) -> None:
            async with room:
                await self.call(requests.write(obj, start + at, view[at : at + CHUNK]))

        await asyncio.gather(*(piece(at) for at in range(0, len(view), CHUNK)))

    async def query(self, where: ObjectRef, condition: Condition | None = None) -> list[ObjectRef]:
        """User objects of a partition or collection whose attributes match, ascending; see
        pyosd.commands.
        """
        found: set[int] = set()
        for each in queries_of(condition):
            dialogue = query_dialogue(where, each)
            try:
                request = next(dialogue)
                while True:
                    request = dialogue.send(await self.call(request))
            except StopIteration as stop:
                found.update(stop.value)
        return [ref(where.partition_id, each) for each in sorted(found)]

    @takes_options(prepare)
    async def exec(self, prepared: Prepared) -> AsyncJob:
        """Run code near the data.

        Returns: the AsyncJob, accepted for good.  With array the code runs once for each index,
            and the result is an AsyncJobArray.
        Raises: as pyosd.Target.exec(), but a lost session is always SessionLost.
        """
        params = prepared.params
        request = requests.execute(
            prepared.zone,
            prepared.code,
            params,
            synchronous=params.wait is not None,
            attributes=AttributeLists((CURRENT_PARTITION_ID, CURRENT_OBJECT_ID)),
        )
        try:
            reply = decode_exec(await self.reply(request, submission.exec_timeout(params)))
        except OSDError as error:
            if why := explain_at_once(params, error):
                error.text = f"{why} ({error.text})"
            raise
        if reply.job is None:
            raise ProtocolError("the target accepted a job without naming it")
        if params.array is None:
            return AsyncJob(self, reply.job)
        return AsyncJobArray(self, submission.place_of(reply.job, params))

    def job(self, job: ObjectRef) -> AsyncJob:
        """A job known by its surrogate; nothing is sent."""
        return AsyncJob(self, job)


@asynccontextmanager
async def connect(
    url: str,
    *,
    chap: Chap | None = None,
    credentials: CredentialSource | Credential | None = None,
    initiator: str = "",
    header_digest: bool = False,
    timeout: float = DEFAULT_TIMEOUT,
    local: bool = True,
) -> AsyncIterator[AsyncTarget]:
    """Log in to a target, and out at the end of the block; arguments as pyosd.connect().

    Raises: ValueError: not such a URL; Unreachable; LoginRejected.
    """
    address = TargetAddress.parse(url)
    parameters = LoginParameters(
        initiator or default_initiator_name(), address.target, chap or address.chap, header_digest
    )
    loop = asyncio.get_running_loop()
    sock = await loop.run_in_executor(None, open_socket, address.host, address.port, timeout)
    connection = AsyncConnection(sock, parameters.max_segment)
    try:
        async with asyncio.timeout(timeout):
            connection.start(await connection.converse(login(parameters)))
    except TimeoutError:
        connection.fail(Unreachable, "the login timed out")
        raise Unreachable("the target did not answer the login in time") from None
    except BaseException:
        connection.fail(Unreachable, "the login did not succeed")
        raise
    source = source_of(credentials)
    if source is None and local:
        source = local_credential.find(url)
    try:
        yield AsyncTarget(connection, address, timeout, source)
    finally:
        await connection.close()
