# SPDX-License-Identifier: GPL-2.0-or-later
"""An event loop that serves requests without a turn for each.

A turn of asyncio's loop costs more than the answer to most requests of the kernel.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from contextvars import Context
from math import ceil
from typing import Any, Protocol, TypeVarTuple, Unpack

__all__ = ["MountLoop", "Requests", "Server"]

Ts = TypeVarTuple("Ts")
_Events = list[tuple[selectors.SelectorKey, int]]


class Requests(Protocol):
    """Where requests come from, as pyosd._core.KernelDevice."""

    @property
    def others_ready(self) -> bool:
        """Whether the loop had something to do when next() last waited."""
        ...

    def next(self, timeout: int, /) -> object | None:
        """Wait for a request, at most so many ms, negative: for ever.

        Returns: it; None: time is over, or the loop has something to do.  Raises: OSError.
        """
        ...


class Server(Protocol):
    """Who gets them."""

    def take(self, request: Any, /) -> None:
        """Begin to carry one out."""
        ...

    def end(self, error: OSError, /) -> None:
        """There are no more.  Calls MountLoop.serve_no_more()."""
        ...


class _Selector(selectors.EpollSelector):
    """Waits for requests, too.

    woken: something was scheduled, so the loop must have its turn.
    """

    def __init__(self) -> None:
        super().__init__()
        self.woken = False
        self.served: tuple[Requests, Server] | None = None

    def select(self, timeout: float | None = None) -> _Events:
        """Serve requests until the loop has something to do.  Returns: its events."""
        if not self.served:
            return super().select(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        # Rounded up, so that a timer has run out.
        left = -1 if timeout is None else ceil(max(timeout, 0.0) * 1e3)
        while self.served:
            requests, server = self.served
            self.woken = False
            try:
                request = requests.next(left)
            except OSError as error:
                server.end(error)
                break
            if request is not None:
                server.take(request)
            if requests.others_ready:
                break
            if request is None or self.woken:
                return []
            if end is not None:
                left = ceil((end - time.monotonic()) * 1e3)
                if left <= 0:
                    return []
        return super().select(0)


class MountLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, which serves requests between its turns.

    descriptor: can be read if the loop has something to do.
    """

    def __init__(self) -> None:
        self._own = _Selector()
        self.descriptor = self._own.fileno()
        super().__init__(self._own)

    def serve(self, requests: Requests, server: Server) -> None:
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
        """As asyncio's."""
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
