# SPDX-License-Identifier: GPL-2.0-or-later
"""Answers the kernel's requests, between turns of an event loop.

A turn of asyncio's loop costs more than the answer to most of them.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import selectors
import time
from collections import deque
from collections.abc import Callable, Coroutine, Mapping
from contextvars import Context, copy_context
from math import ceil
from typing import Any, NamedTuple, Protocol, TypeVarTuple, Unpack

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
from pyosd.fronts.osdfs.nodes import Node
from pyosd.types import Buffer
from pyosd.wire.names import DATA_MAX

__all__ = ["KernelHandler", "KernelRequests", "KernelServer", "MountLoop", "RequestTaker"]

Ts = TypeVarTuple("Ts")
KernelHandler = Callable[[KernelRequest], Coroutine[Any, Any, Buffer]]
"""Carries out one operation.  Returns: the reply without its header."""

_Answer = Coroutine[Any, Any, None]
_Events = list[tuple[selectors.SelectorKey, int]]
_OVER = (errno.ENODEV, errno.ECONNABORTED)
_log = logging.getLogger("osdfs")


# ---- the loop ----------------------------------------------------------------------------------------


class KernelRequests(Protocol):
    """The source of requests, such as pyosd._core.KernelDevice."""

    @property
    def others_ready(self) -> bool:
        """Whether the loop had something to do when next() last waited."""
        ...

    def next(self, timeout: int, /) -> object | None:
        """Wait for a request, at most so many ms, negative: for ever.

        Returns: it; None: time is over, or the loop has something to do.  Raises: OSError.
        """
        ...


class RequestTaker(Protocol):
    """Carries requests out."""

    def take(self, request: Any, /) -> None:
        """Begin to carry one out."""
        ...

    def end(self, error: OSError, /) -> None:
        """There are no more.  Calls MountLoop.serve_no_more()."""
        ...


class _Callback(NamedTuple):
    """A call that the loop makes between its turns."""

    function: Callable[..., object]
    args: tuple[object, ...]
    context: Context

    def run(self) -> None:
        """Call.  An exception goes to the loop's handler, as those of its own callbacks do."""
        try:
            self.context.run(self.function, *self.args)
        except (SystemExit, KeyboardInterrupt):
            raise
        except BaseException as error:
            failed = {"message": f"exception in {self.function!r}", "exception": error}
            asyncio.get_running_loop().call_exception_handler(failed)


class _Resumption:
    """Continues an answer whose future is done, without waiting for a turn of the loop."""

    __slots__ = ("_answer", "_go_on")

    def __init__(self, go_on: Callable[[_Answer], None], answer: _Answer) -> None:
        self._go_on, self._answer = go_on, answer

    def __call__(self, _: object) -> None:
        self._go_on(self._answer)


class _Selector(selectors.EpollSelector):
    """Waits for requests, too.

    woken: something was scheduled, so the loop must have its turn.  resumed: answers to continue.
    readers: by descriptor, the call for data to read.
    """

    def __init__(self) -> None:
        super().__init__()
        self.woken = False
        self.resumed = deque[_Callback]()
        self.readers = dict[int, _Callback]()
        self.served: tuple[KernelRequests, RequestTaker] | None = None

    def select(self, timeout: float | None = None) -> _Events:
        """Serve requests until the loop has something to do.  Returns: its events."""
        self.woken = False
        self._resume()
        end = None if timeout is None else time.monotonic() + timeout
        # Rounded up, so that a timer has run out.
        left = -1 if timeout is None else ceil(max(timeout, 0.0) * 1e3)
        while self.served and not self.woken:
            requests, server = self.served
            try:
                request = requests.next(left)
            except OSError as error:
                server.end(error)
                break
            if request is not None:
                server.take(request)
            if requests.others_ready and (events := self._read()):
                return events
            self._resume()
            if not requests.others_ready and (request is None or self.woken):
                return []
            if end is not None:
                left = ceil((end - time.monotonic()) * 1e3)
                if left <= 0:
                    return []
        return super().select(0 if self.woken else timeout)

    def _read(self) -> _Events:
        """Call the readers that have data.  Returns: the other events, which the loop must see."""
        others: _Events = []
        for key, mask in super().select(0):
            reader = self.readers.get(key.fd)
            if reader and mask == selectors.EVENT_READ:
                reader.run()
            else:
                others.append((key, mask))
        return others

    def _resume(self) -> None:
        while self.resumed:
            self.resumed.popleft().run()


class MountLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, which serves requests between its turns.

    descriptor: can be read if the loop has something to do.
    """

    def __init__(self) -> None:
        self._own = _Selector()
        self.descriptor = self._own.fileno()
        super().__init__(self._own)
        self._no_handle = asyncio.Handle(lambda: None, (), self)

    def serve(self, requests: KernelRequests, server: RequestTaker) -> None:
        """Have a server take requests from now on; only one at a time."""
        self._own.served = requests, server

    def serve_no_more(self) -> None:
        """Take no more requests.  May be repeated."""
        self._own.served, self._own.woken = None, True

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """As asyncio's.  An answer to continue does not wait for the loop's next turn."""
        if type(callback) is _Resumption:
            context = copy_context() if context is None else context  # an empty one is false
            self._own.resumed.append(_Callback(callback, args, context))
            return self._no_handle  # a future does not use it
        self._own.woken = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As asyncio's."""
        self._own.woken = True
        return super().call_at(when, callback, *args, context=context)

    def add_reader(self, fd: Any, callback: Callable[[Unpack[Ts]], Any], *args: *Ts) -> None:
        """As asyncio's; between turns, too."""
        super().add_reader(fd, callback, *args)
        self._own.readers[_number(fd)] = _Callback(callback, args, copy_context())

    def remove_reader(self, fd: Any) -> bool:
        """As asyncio's."""
        self._own.readers.pop(_number(fd), None)
        return super().remove_reader(fd)


def _number(fd: Any) -> int:
    return fd if isinstance(fd, int) else int(fd.fileno())


# ---- the server --------------------------------------------------------------------------------------


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
            *(fd, loop.descriptor, BUFFER, DATA_MAX, operations, kept, nodes, KernelRequest)
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

    def _begin(self, answer: _Answer) -> None:
        """Run an answer as far as it goes at once; many need nothing from the target."""
        try:
            waits_for = answer.send(None)
        except StopIteration:
            return
        self._under_way += 1
        self._wait(answer, waits_for)

    def _wait(self, answer: _Answer, future: asyncio.Future[Any] | None) -> None:
        """Go on when a future is done.  A task for each answer would cost more than most of them."""
        if future is None:  # of sleep(0)
            self._loop.call_soon(self._go_on, answer)
            return
        future._asyncio_future_blocking = False  # as a task says that it has taken the future
        future.add_done_callback(_Resumption(self._go_on, answer))

    def _go_on(self, answer: _Answer) -> None:
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
        except (Exception, asyncio.CancelledError) as error:
            number = number_of(error)
            if number == errno.EIO:
                _log.error("%s: %s", Op(request.op).name, str(error) or type(error).__name__)
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
