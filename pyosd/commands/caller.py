# SPDX-License-Identifier: GPL-2.0-or-later
"""Sends requests over any Transport for threads, and carries dialogues there.

Not here: the same for coroutines (async_unit.py), the commands (unit.py).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Any, TypeVar

from pyosd.commands.dialogue import (
    Ask,
    Block,
    Blocking,
    Dialogue,
    Finish,
    Own,
    Sleep,
    Start,
    Step,
    Stream,
    StreamItem,
)
from pyosd.errors import OSDError
from pyosd.security.credentials import Credential, CredentialSource
from pyosd.types import Buffer
from pyosd.wire.cdb import NO_LAYOUT, Encoded, Request, encode
from pyosd.wire.reply import PendingReply, Reply, decode_reply
from pyosd.wire.transport import Command, CommandTransport, Pending, Response

if TYPE_CHECKING:
    from pyosd.security.signing import Exchange, Signer

__all__ = ["Caller"]

R = TypeVar("R")


class Signing:
    """The signer of a caller of either face.

    Not all targets require credentials: the files that sign are imported when they are needed.
    """

    def __init__(self, credentials: CredentialSource | None) -> None:
        self._signer: Signer | None = None
        if credentials is not None:
            from pyosd.security.signing import Signer

            self._signer = Signer(credentials)

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError(
            "a session with a target cannot be pickled or copied: connect in each process"
        )

    @property
    def signer(self) -> Signer:
        """Signs requests; without a source it signs those that come with a credential."""
        if self._signer is None:
            from pyosd.security.signing import Signer

            self._signer = Signer()
        return self._signer

    @signer.setter
    def signer(self, signer: Signer) -> None:
        self._signer = signer

    @property
    def signs(self) -> bool:
        """Whether requests are signed."""
        return self._signer is not None and self._signer.source is not None


class Caller(Signing, Blocking):
    """Requests to one logical unit, for threads."""

    def __init__(
        self, transport: CommandTransport, credentials: CredentialSource | None = None
    ) -> None:
        """Args: credentials: source of a credential for each command; None: the target requires none."""
        self._transport = transport
        super().__init__(credentials)

    @property
    def transport(self) -> CommandTransport:
        """The transport of the commands."""
        return self._transport

    # ---- dialogues ------------------------------------------------------------------------------

    def carry(self, dialogue: Dialogue[R]) -> R:
        """Carry a dialogue to its end.  Returns: its value."""
        answer: object = None
        go_on: Callable[[Any], Step] = dialogue.send
        while True:
            try:
                step = go_on(answer)
            except StopIteration as stop:
                value: R = stop.value
                return value
            try:
                answer, go_on = self._take(step), dialogue.send
            except BaseException as error:
                answer, go_on = error, dialogue.throw

    def carry_stream(self, stream: Stream[R]) -> Iterator[R]:
        """Carry a stream: yield its items."""
        answer: object = None
        go_on: Callable[[Any], Step | StreamItem[R]] = stream.send
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
                    answer = self._take(step)
                except BaseException as error:
                    answer, go_on = error, stream.throw
        finally:
            stream.close()

    def _take(self, step: Step) -> object:
        """Take one step of a dialogue.  Returns: what it brings."""
        if isinstance(step, Request):
            reply = self.reply(step)
            if reply.error:
                raise reply.error
            return reply
        if isinstance(step, Ask):
            reply = self.reply(step.request, step.timeout, step.credential)
            if reply.error and step.refusals:
                raise reply.error
            return reply
        match step:
            case Encoded():
                return self.call_again(step)
            case Command():
                return self._transport.execute(step)
            case Start(request):
                return self.submit(request)
            case Finish(started):
                return started.reply()
            case Sleep(seconds):
                time.sleep(seconds)
                return None
            case Block(function) | Own(function):
                return function()

    # ---- the general way in ---------------------------------------------------------------------

    def execute(
        self,
        cdb: bytes,
        data_out: Buffer = b"",
        data_in_length: int = 0,
        timeout: float | None = None,
    ) -> Response:
        """Send any CDB of 1 to 260 bytes, with Data-Out; nothing is interpreted.

        Returns: SAM status, sense and Data-In.  CHECK CONDITION does not raise.
        """
        return self._transport.execute(Command(cdb, data_out, data_in_length), timeout)

    def submit(self, request: Request, credential: Credential | None = None) -> PendingReply:
        """Send a request without waiting.  Many can be under way; answers come in any order.

        Args:
            credential: use this one instead of one of the session's source.
        """
        if self.signs or credential:
            return _SignedReply(request, self.signer.exchange(request, credential), self._transport)
        command, layout = encode(request)
        return PendingReply(request, layout, self._transport.submit(command))

    def call(
        self,
        request: Request,
        timeout: float | None = None,
        credential: Credential | None = None,
    ) -> Reply:
        """Send a request, made by pyosd.requests, and wait.  credential: as for submit().

        Returns: the answer with its data and attributes.
        Raises: as pyosd.commands.unit says.
        """
        reply = self.reply(request, timeout, credential)
        if reply.error:
            raise reply.error
        return reply

    def call_again(self, encoded: Encoded) -> Reply:
        """call() of a request that was encoded before; where requests are signed, each is anew."""
        if self.signs:
            return self.call(encoded.request)
        request, command, layout = encoded
        reply = decode_reply(request, layout, self._transport.execute(command))
        if reply.error:
            raise reply.error
        return reply

    def reply(
        self,
        request: Request,
        timeout: float | None = None,
        credential: Credential | None = None,
    ) -> Reply:
        """As call(), but a refusal is returned in Reply.error instead of raised."""
        if credential:
            return self._converse(self.signer.exchange(request, credential), timeout)
        if self.signs:
            return self._signed_reply(request, timeout)
        command, layout = encode(request)
        return decode_reply(request, layout, self._transport.execute(command, timeout))

    def _signed_reply(self, request: Request, timeout: float | None) -> Reply:
        """reply() with the source's credentials. It runs the dialogue only if a credential must be
        requested or replaced.
        """
        signer = self.signer
        sealed = signer.seal_at_once(request)
        if sealed is None:
            return self._converse(signer.exchange(request), timeout)
        sent = time.monotonic()
        response = self._transport.execute(sealed.command, timeout)
        reply = signer.open(request, sealed, response)
        if reply.error is None:
            return reply
        return self._converse(signer.go_on(request, sealed, sent, reply), timeout)

    def _converse(self, exchange: Exchange, timeout: float | None) -> Reply:
        """Carry a dialogue to its end."""
        result: object = None
        while True:
            try:
                step = exchange.send(result)
            except StopIteration as stop:
                reply: Reply = stop.value
                return reply
            if isinstance(step, Command):
                result = self._transport.execute(step, timeout)
            elif callable(step):
                result = step()
            else:
                result = self._transport.execute(step.command)


class _SignedReply(PendingReply):
    """A request under way under a credential: carries the dialogue of signing.py."""

    def __init__(self, request: Request, exchange: Exchange, transport: CommandTransport) -> None:
        self._exchange = exchange
        self._transport = transport
        self._reply: Reply | None = None
        self._failure: OSDError | None = None
        super().__init__(request, NO_LAYOUT, self._send(None))

    def _send(self, answer: Response | None) -> Pending:
        """Go on to the next command."""
        step = self._exchange.send(answer)
        while not isinstance(step, Command):
            result = step() if callable(step) else self._transport.execute(step.command)
            step = self._exchange.send(result)
        return self._transport.submit(step)

    def reply(self, timeout: float | None = None) -> Reply:
        if self._failure:
            raise self._failure
        while self._reply is None:
            response = self.pending.result(timeout)
            try:
                self.pending = self._send(response)
            except StopIteration as stop:
                self._reply = stop.value
            except OSDError as error:
                self._failure = error
                raise
        return self._reply
