# SPDX-License-Identifier: GPL-2.0-or-later
"""Reads the kernel's requests in an event loop, and writes the replies."""

from __future__ import annotations

import asyncio
import errno
import logging
import os
from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import Any

from pyosd import _core
from pyosd.fronts.osdfs.errnos import number_of
from pyosd.fronts.osdfs.kernel import (
    BUFFER,
    INIT_IN,
    MAJOR,
    Feature,
    KernelRequest,
    Op,
    error_reply,
    init_out,
)
from pyosd.fronts.osdfs.loop import MountLoop
from pyosd.fronts.osdfs.nodes import Node
from pyosd.types import Buffer

__all__ = ["KernelHandler", "KernelServer"]

KernelHandler = Callable[[KernelRequest], Coroutine[Any, Any, Buffer]]
"""Carries out one operation.  Returns: the reply without its header."""

_OVER = (errno.ENODEV, errno.ECONNABORTED)
_log = logging.getLogger("osdfs")


class KernelServer:
    """Answers requests from a descriptor of /dev/fuse until the file system is unmounted."""

    def __init__(
        self,
        fd: int,
        handlers: Mapping[int, KernelHandler],
        forget: Callable[[KernelRequest], None],
        nodes: dict[int, Node],
        kept: float,
    ) -> None:
        """Runs in a MountLoop.

        Args:
            handlers: by operation.
            forget: takes FORGET and BATCH_FORGET, which have no reply.
            nodes: by their ids.
            kept: seconds that attributes are used for.
        """
        self._fd, self._handlers, self._forget = fd, handlers, forget
        loop = asyncio.get_running_loop()
        assert isinstance(loop, MountLoop)
        self._loop = loop
        self._under_way = 0
        self._idle: asyncio.Future[None] | None = None
        self._over = self._loop.create_future()
        operations = sum(1 << each for each in (*handlers, Op.FORGET, Op.BATCH_FORGET, Op.INIT))
        self._device = _core.KernelDevice(
            *(fd, loop.descriptor, BUFFER, operations, kept, nodes, KernelRequest)
        )
        loop.serve(self._device, self)

    async def serve(self) -> None:
        """Return when the file system has been unmounted and each request has its reply."""
        await self._over
        if self._under_way:
            self._idle = self._loop.create_future()
            await self._idle

    def stop(self) -> None:
        """Have serve() return although the file system is in use."""
        if not self._over.done():
            self._loop.serve_no_more()
            self._over.set_result(None)

    def notify(self, data: bytes) -> None:
        """Send what is no reply."""
        self._write(data)

    def end(self, error: OSError) -> None:
        """Of the loop: there are no more requests."""
        if error.errno in _OVER:
            self.stop()
            return
        self._loop.serve_no_more()
        self._over.set_exception(error)

    def take(self, request: KernelRequest) -> None:
        """Of the loop: begin to carry out a request."""
        handler = self._handlers.get(request.op)
        if handler:
            self._begin(self._answer(handler, request))
        elif request.op in (Op.FORGET, Op.BATCH_FORGET):
            self._forget(request)
        else:
            self._init(request)

    def _begin(self, answer: Coroutine[Any, Any, None]) -> None:
        """Run an answer as far as it goes at once; many need nothing from the target."""
        try:
            waits_for = answer.send(None)
        except StopIteration:
            return
        self._under_way += 1
        self._wait(answer, waits_for)

    def _wait(self, answer: Coroutine[Any, Any, None], future: asyncio.Future[Any] | None) -> None:
        """Go on when a future is done.  A task for each answer would cost more than most of them."""
        if future is None:  # of sleep(0)
            self._loop.call_soon(self._go_on, answer, None)
            return
        future._asyncio_future_blocking = False  # as a task says that it has taken the future
        future.add_done_callback(partial(self._go_on, answer))

    def _go_on(self, answer: Coroutine[Any, Any, None], _: object) -> None:
        try:
            waits_for = answer.send(None)
        except StopIteration:
            self._under_way -= 1
            if self._idle and not self._under_way:
                self._idle.set_result(None)
        else:
            self._wait(answer, waits_for)

    def _init(self, request: KernelRequest) -> None:
        major, _, _, features = INIT_IN.unpack_from(request.body)
        if major != MAJOR:
            self._write(error_reply(request.unique, errno.EPROTO))
            return
        if Op.READDIRPLUS not in self._handlers:
            features &= ~(Feature.DO_READDIRPLUS | Feature.READDIRPLUS_AUTO)
        self._reply(request, init_out(features))

    async def _answer(self, handler: KernelHandler, request: KernelRequest) -> None:
        try:
            data = await handler(request)
        except Exception as error:
            number = number_of(error)
            if number == errno.EIO:
                _log.error("%s: %s", Op(request.op).name, error or type(error).__name__)
            self._write(error_reply(request.unique, number))
            return
        self._reply(request, data)

    def _reply(self, request: KernelRequest, data: Buffer) -> None:
        try:
            self._device.reply(request.unique, data)
        except OSError as error:
            _ignore_old(error)

    def _write(self, data: bytes) -> None:
        try:
            os.write(self._fd, data)
        except OSError as error:
            _ignore_old(error)


def _ignore_old(error: OSError) -> None:
    """ENOENT: the caller was killed, or the node forgotten.  After an unmount nobody waits."""
    if error.errno not in (errno.ENOENT, *_OVER):
        _log.error("cannot answer the kernel: %s", error)
