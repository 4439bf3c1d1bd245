# SPDX-License-Identifier: GPL-2.0-or-later
"""An event loop that serves one descriptor without a turn for each thing it brings.

A turn of asyncio's loop costs more than the answer to most requests of the kernel.
"""

from __future__ import annotations

import asyncio
import select
import selectors
import time
from collections.abc import Callable
from contextvars import Context
from typing import TypeVarTuple, Unpack

__all__ = ["MountLoop"]

Ts = TypeVarTuple("Ts")
_Events = list[tuple[selectors.SelectorKey, int]]


class _Selector(selectors.EpollSelector):
    """Serves one descriptor itself, the others as its parent.

    woken: something was scheduled, so the loop must have its turn.
    """

    def __init__(self) -> None:
        super().__init__()
        self._all = select.epoll()
        self._all.register(self.fileno(), select.EPOLLIN)
        self._fd, self._serve, self.woken = -1, _nothing, False

    def serve_first(self, fd: int, serve: Callable[[], None]) -> None:
        """As MountLoop.serve_first()."""
        self._fd, self._serve = fd, serve
        self._all.register(fd, select.EPOLLIN)

    def serve_no_more(self) -> None:
        """Leave the descriptor alone."""
        if self._fd >= 0:
            self._all.unregister(self._fd)
        self._fd, self.woken = -1, True

    def select(self, timeout: float | None = None) -> _Events:
        """Serve the descriptor until the loop has something to do.  Returns: events of others."""
        if self._fd < 0:
            return super().select(timeout)
        end = None if timeout is None else time.monotonic() + timeout
        while True:
            # Rounded up, so that a timer has run out.
            ready = [fd for fd, _ in self._all.poll(None if timeout is None else max(timeout, 0.0))]
            self.woken = False
            if self._fd in ready:
                self._serve()
                others = len(ready) > 1
            else:
                others = bool(ready)
            if others:
                return super().select(0)
            if self.woken or not ready:
                return []
            if end is not None:
                timeout = end - time.monotonic()
                if timeout <= 0:
                    return []

    def close(self) -> None:
        """As its parent."""
        self._all.close()
        super().close()


class MountLoop(asyncio.SelectorEventLoop):
    """asyncio's loop, with a descriptor that is served first."""

    def __init__(self) -> None:
        self._first = _Selector()
        super().__init__(self._first)

    def serve_first(self, fd: int, serve: Callable[[], None]) -> None:
        """Call a function whenever a descriptor can be read; only one at a time."""
        self._first.serve_first(fd, serve)

    def serve_no_more(self) -> None:
        """Leave the descriptor alone.  May be repeated."""
        self._first.serve_no_more()

    def call_soon(
        self,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.Handle:
        """As asyncio's."""
        self._first.woken = True
        return super().call_soon(callback, *args, context=context)

    def call_at(
        self,
        when: float,
        callback: Callable[[Unpack[Ts]], object],
        *args: *Ts,
        context: Context | None = None,
    ) -> asyncio.TimerHandle:
        """As asyncio's."""
        self._first.woken = True
        return super().call_at(when, callback, *args, context=context)


def _nothing() -> None:
    pass
