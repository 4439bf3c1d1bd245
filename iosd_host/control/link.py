# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's connection to one target's control socket (docs/control.md); it reconnects after
any failure.

Sends HELLO as manager every second.  That keeps the target, and takes it over when its former
manager has gone.  Not here: the use of readings, and requests (manager/target.py).
"""

from __future__ import annotations

import asyncio
import itertools
import logging
import os
import socket
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NoReturn

from iosd_host.control.messages import (
    FRAME_MAX,
    Frame,
    FrameError,
    TargetError,
    Type,
    VersionError,
    answer_fields,
    decode,
    encode,
    request,
)

__all__ = ["LOST", "MANAGER", "STANDBY", "Link", "LinkLost", "NoAnswer", "Timing"]

LOG = logging.getLogger("iosd.link")

MANAGER, STANDBY, LOST = "manager", "standby", "lost"


class LinkLost(Exception):
    """There is no connection: nothing was asked."""


class NoAnswer(Exception):
    """It was asked, and no answer came: it may have been done."""


@dataclass(frozen=True)
class Timing:
    """In seconds.

    Attributes:
        hello: between two HELLOs; well below the 3 s after which the target believes us gone.
        watch: between two readings.
        answer: that we wait for one.
        again: until the next try to connect; doubled with each, up to `again_most`.
    """

    hello: float = 1.0
    watch: float = 1.0
    answer: float = 5.0
    again: float = 0.1
    again_most: float = 5.0


class Link:
    """One event loop.

    Args:
        who: what the target shall call us in its log.
        hear: called with each reading (the fields of a SNAPSHOT), and where the role changes with
            None; raises FrameError where it is none.

    Attributes:
        role: MANAGER, STANDBY or LOST.
        boot: of the target's run; None: never connected.
        trouble: why the role is LOST; "" otherwise.
    """

    def __init__(
        self,
        path: Path,
        who: str,
        hear: Callable[[dict[str, Any] | None], None],
        timing: Timing,
    ) -> None:
        self.path = path
        self.who = who
        self.hear = hear
        self.timing = timing
        self.role = LOST
        self.boot: str | None = None
        self.trouble = "not connected yet"
        self._settled = asyncio.Event()
        self.socket: socket.socket | None = None
        self.serials = itertools.cycle(range(1, 1 << 32))
        self.waiting: dict[int, asyncio.Future[Frame]] = {}
        self.sending = asyncio.Lock()

    async def run(self) -> NoReturn:
        """Keep the link up until cancelled."""
        delay = self.timing.again / 2
        clock = asyncio.get_running_loop().time
        while True:
            began = clock()
            try:
                await self._connected()
            except* (OSError, FrameError, LinkLost, NoAnswer, TargetError) as errors:
                self._lose(reason(errors))
            # One that comes up and fails again and again gets no more of our time than one that is gone.
            steady = clock() - began > self.timing.again_most
            delay = self.timing.again if steady else min(2 * delay, self.timing.again_most)
            await asyncio.sleep(delay)

    async def settle(self) -> None:
        """Wait for the end of the first attempt, which gives a reading or trouble."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._settled.wait(), self.timing.answer)

    async def request(self, kind: Type, **keys: object) -> dict[str, Any]:
        """Ask, and return the answer's fields.

        Raises:
            LinkLost: nothing was asked.
            NoAnswer: none came in time, or the connection was lost meanwhile.
            TargetError: the target says no.
            FrameError: a value cannot be sent, or the answer is none.
        """
        serial = next(self.serials)
        packet = encode(request(kind, serial, keys))
        answer: asyncio.Future[Frame] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(self.timing.answer):
                await self._send(packet, serial, answer)
                return answer_fields(await answer)
        except TimeoutError:
            raise NoAnswer(f"no answer within {self.timing.answer:g} s") from None
        finally:
            self.waiting.pop(serial, None)

    async def _send(self, packet: bytes, serial: int, answer: asyncio.Future[Frame]) -> None:
        async with self.sending:
            if self.socket is None:
                raise LinkLost(self.trouble)
            self.waiting[serial] = answer
            try:
                await asyncio.get_running_loop().sock_sendall(self.socket, packet)
            except OSError as error:
                raise LinkLost(f"connection lost: {error.strerror}") from None

    # ---- one connection ----

    async def _connected(self) -> None:
        """From connecting to the end of the connection, which is always an error."""
        kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK | socket.SOCK_CLOEXEC
        with socket.socket(socket.AF_UNIX, kind) as connection:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 2 * FRAME_MAX)
            await asyncio.get_running_loop().sock_connect(connection, os.fspath(self.path))
            self.socket = connection
            try:
                async with asyncio.TaskGroup() as group:
                    group.create_task(self._receive(connection))
                    group.create_task(self._keep())
            finally:
                self.socket = None
                for answer in self.waiting.values():
                    if not answer.done():
                        answer.set_exception(NoAnswer("connection lost"))
                self.waiting.clear()

    async def _keep(self) -> None:
        """Say who we are, and watch; say it again and again."""
        watching = 0
        while True:
            await self._hello()
            interval = round(self.timing.watch * 1000)
            if interval != watching:
                await self.request(Type.WATCH, interval_ms=interval)
                watching = interval
                self.hear(await self.request(Type.SNAPSHOT))  # the first is worth not waiting for
                self._settled.set()
            await asyncio.sleep(self.timing.hello)

    async def _hello(self) -> None:
        fields = await self.request(Type.HELLO, role=MANAGER, who=self.who, versions="1-1")
        role, boot = fields.get("role"), fields.get("boot")
        if role not in (MANAGER, STANDBY) or not isinstance(boot, str) or not boot:
            raise FrameError(f"WELCOME with role {role!r:.40} and boot {boot!r:.40}")
        if (role, boot) == (self.role, self.boot):
            return
        other = fields.get("manager")
        held = f"; {other!s:.200} has it" if role == STANDBY and other else ""
        LOG.info("%s: %s of boot %s%s", self.path, role, boot, held)
        self.role, self.boot, self.trouble = role, boot, ""
        self.hear(None)

    async def _receive(self, connection: socket.socket) -> None:
        loop = asyncio.get_running_loop()
        while True:
            packet = await loop.sock_recv(connection, FRAME_MAX + 1)
            if not packet:
                raise LinkLost("the target has closed the connection")
            frame = decode(packet)
            answer = self.waiting.get(frame.serial)
            if frame.serial == 0 and frame.type == Type.SNAPSHOT_IS:
                self.hear(answer_fields(frame))
            elif frame.serial == 0 and frame.type == Type.ERROR:
                answer_fields(frame)  # raises it
            elif answer is not None and not answer.done():
                answer.set_result(frame)
            elif frame.type < Type.WELCOME:
                raise FrameError(f"frame of type {frame.type} is no answer")

    def _lose(self, why: str) -> None:
        """Told once; the same again is no news."""
        self._settled.set()
        if self.role == LOST and why == self.trouble:
            return
        LOG.warning("%s: %s", self.path, why)
        self.role, self.trouble = LOST, why
        self.hear(None)

    def demoted(self) -> None:
        """The target has said that we are not its manager; HELLO may change that."""
        if self.role == MANAGER:
            LOG.warning("%s: another manager has taken over", self.path)
            self.role = STANDBY
            self.hear(None)


def reason(errors: BaseExceptionGroup[BaseException]) -> str:
    """The first of what went wrong, in words."""
    first: BaseException = errors
    while isinstance(first, BaseExceptionGroup):
        first = first.exceptions[0]
    if isinstance(first, VersionError):
        return f"the target is of another release: {first}"
    if isinstance(first, FrameError):
        return f"the target sends nonsense: {first}"
    if isinstance(first, TargetError):
        return f"the target refuses us: {first}"
    if isinstance(first, OSError):
        return f"cannot connect: {first.strerror or first}"
    return str(first)
