# SPDX-License-Identifier: GPL-2.0-or-later
"""The OSD-2 commands to one logical unit, as methods for coroutines: AsyncCommands.

Lives here too: AsyncCaller, which sends requests over any AsyncTransport and carries dialogues.  It
stands apart from unit.py because programs without coroutines do not load asyncio.
Not here: the same for threads (caller.py), the table of methods (unit.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from typing import Any, TypeVar

from pyosd.commands.caller import Signing
from pyosd.commands.dialogue import (
    Ask,
    Awaiting,
    Block,
    Dialogue,
    Finish,
    Own,
    Sleep,
    Start,
    Step,
    Stream,
    StreamItem,
)
from pyosd.commands.unit import CommandTable
from pyosd.security.credentials import Credential, CredentialSource
from pyosd.security.signing import Aside, Exchange
from pyosd.types import Buffer
from pyosd.wire.cdb import Encoded, Request, encode
from pyosd.wire.reply import Reply, decode_reply
from pyosd.wire.transport import AsyncTransport, Command, Response

__all__ = ["AsyncCaller", "AsyncCommands"]

R = TypeVar("R")
Tasks = set[asyncio.Task[Reply]]


class AsyncCaller(Signing, Awaiting):
    """Requests to one logical unit, for coroutines.  Many may be under way."""

    def __init__(
        self, transport: AsyncTransport, credentials: CredentialSource | None = None
    ) -> None:
        """Args: credentials: source of a credential for each command; None: the target requires none."""
        self._transport = transport
        super().__init__(credentials)

    @property
    def transport(self) -> AsyncTransport:
        """The transport of the commands."""
        return self._transport

    # ---- dialogues ------------------------------------------------------------------------------

    async def carry(self, dialogue: Dialogue[R]) -> R:
        """Carry a dialogue to its end.  Returns: its value."""
        answer: object = None
        go_on: Callable[[Any], Step] = dialogue.send
        under_way: Tasks = set()
        try:
            while True:
                try:
                    step = go_on(answer)
                except StopIteration as stop:
                    value: R = stop.value
                    return value
                try:
                    answer, go_on = await self._take(step, under_way), dialogue.send
                except BaseException as error:
                    answer, go_on = error, dialogue.throw
        finally:
            if under_way:
                await _give_up(under_way)

    async def carry_stream(self, stream: Stream[R]) -> AsyncIterator[R]:
        """Carry a stream: yield its items."""
        answer: object = None
        go_on: Callable[[Any], Step | StreamItem[R]] = stream.send
        under_way: Tasks = set()
        try:
            while True:
                try:
                    step = go_on(answer)
                except StopIteration:
                    return
                answer, go_on = None, stream.send
                if isinstance(step, StreamItem):
                    yield step.value
                    continue
                try:
                    answer = await self._take(step, under_way)
                except BaseException as error:
                    answer, go_on = error, stream.throw
        finally:
            stream.close()
            if under_way:
                await _give_up(under_way)

    async def _take(self, step: Step, under_way: Tasks) -> object:
        """Take one step of a dialogue.  Returns: what it brings."""
        if isinstance(step, Request):
            return await self.call(step)
        match step:
            case Ask(request, timeout, credential, refusals):
                reply = await self.reply(request, timeout, credential)
                if reply.error and refusals:
                    raise reply.error
                return reply
            case Encoded():
                return await self.call_again(step)
            case Command():
                return await self._transport.execute(step)
            case Start(request):
                task = asyncio.create_task(self.reply(request))
                under_way.add(task)
                return task
            case Finish(started):
                # A dialogue that is cancelled here may wait for the answer once more.
                answer = await (started if started.done() else asyncio.shield(started))
                under_way.discard(started)
                return answer
            case Sleep(seconds):
                await asyncio.sleep(seconds)
                return None
            case Block(function):
                return await asyncio.get_running_loop().run_in_executor(None, function)
            case Own(function):
                return await function()

    # ---- the general way in ---------------------------------------------------------------------

    async def execute(
        self,
        cdb: bytes,
        data_out: Buffer = b"",
        data_in_length: int = 0,
        timeout: float | None = None,
    ) -> Response:
        """Send any CDB of 1 to 260 bytes, with Data-Out; nothing is interpreted.

        Returns: SAM status, sense and Data-In.  CHECK CONDITION does not raise.
        """
        return await self._transport.execute(Command(cdb, data_out, data_in_length), timeout)

    async def call(
        self,
        request: Request,
        timeout: float | None = None,
        credential: Credential | None = None,
    ) -> Reply:
        """Send a request (requests/ builds them) and wait.

        Args:
            credential: to use for it instead of what the session's source has.

        Returns: everything that came back, retrieved attributes included.
        Raises: as pyosd.commands.unit says.
        """
        reply = await self.reply(request, timeout, credential)
        if reply.error:
            raise reply.error
        return reply

    async def call_again(self, encoded: Encoded) -> Reply:
        """call() of a request that was encoded before; where requests are signed, each is anew."""
        if self.signs:
            return await self.call(encoded.request)
        request, command, layout = encoded
        reply = decode_reply(request, layout, await self._transport.execute(command))
        if reply.error:
            raise reply.error
        return reply

    async def reply(
        self,
        request: Request,
        timeout: float | None = None,
        credential: Credential | None = None,
    ) -> Reply:
        """As call(), but a refusal is returned in Reply.error instead of raised."""
        if credential or self.signs:
            return await self._converse(self.signer.exchange(request, credential), timeout)
        command, layout = encode(request)
        return decode_reply(request, layout, await self._transport.execute(command, timeout))

    async def _converse(self, exchange: Exchange, timeout: float | None) -> Reply:
        """Carry a dialogue of signing.py to its end."""
        result: object = None
        while True:
            try:
                step = exchange.send(result)
            except StopIteration as stop:
                reply: Reply = stop.value
                return reply
            if isinstance(step, Command):
                result = await self._transport.execute(step, timeout)
            elif isinstance(step, Aside):
                result = await self._transport.execute(step.command)
            else:
                result = await asyncio.get_running_loop().run_in_executor(None, step)


class AsyncCommands(CommandTable, AsyncCaller):
    """OSD-2 commands to one logical unit, for coroutines."""


async def _give_up(tasks: Tasks) -> None:
    """End the requests that a dialogue has started and no longer waits for."""
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
