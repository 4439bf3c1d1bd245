# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of a server's connections, per address and in all: a factory of protocols for asyncio's server.

A connection that waits for its peer is idle.  When one address, or all together, have too many, the one
that is idle for longest is closed to make room: a program that opens thousands keeps nobody out.  A
connection that is idle for too long is closed, too.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Crowd"]

SWEEP_S = 5.0


class Guest(asyncio.Protocol):
    """One connection, in front of the protocol that serves it."""

    def __init__(self, crowd: Crowd, inner: Any) -> None:
        self.crowd = crowd
        self.inner = inner
        self.transport: asyncio.Transport | None = None
        self.address = ""
        self.at_work = 0  # requests that are answered now
        self.asked = False
        self.idle_since = time.monotonic()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is closed at once where there is no room."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        if not self.crowd.enter(self):
            transport.abort()
            self.inner = None
            return
        self.inner.connection_made(transport)

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self.crowd.leave(self)
        if self.inner is not None:
            self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """For the server."""
        if self.inner is not None:
            self.inner.data_received(data)

    def eof_received(self) -> bool | None:
        """For the server."""
        return None if self.inner is None else self.inner.eof_received()

    def pause_writing(self) -> None:
        """For the server."""
        if self.inner is not None:
            self.inner.pause_writing()

    def resume_writing(self) -> None:
        """For the server."""
        if self.inner is not None:
            self.inner.resume_writing()

    def close(self) -> None:
        """End it, whatever it has still to send."""
        self.crowd.leave(self)
        if self.transport is not None:
            self.transport.abort()


class Crowd:
    """All connections.  One event loop.

    Args:
        most, of_one_most: connections, in all and of one address.
        first_s, idle_s: seconds until the first request, and between an answer and the next one.
        clock: in seconds.
    """

    def __init__(
        self,
        most: int,
        of_one_most: int,
        first_s: float,
        idle_s: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.most, self.of_one_most = most, of_one_most
        self.first_s, self.idle_s = first_s, idle_s
        self.clock = clock
        self.guests: dict[int, Guest] = {}
        self.of_transport: dict[int, Guest] = {}
        self.sweeper: asyncio.TimerHandle | None = None

    def wrap(self, inner: Any) -> Guest:
        """The protocol of a connection that is being made."""
        return Guest(self, inner)

    def enter(self, guest: Guest) -> bool:
        """Whether there is room, made if need be."""
        same = [each for each in self.guests.values() if each.address == guest.address]
        if len(same) >= self.of_one_most and not self._make_room(same):
            return False
        if len(self.guests) >= self.most and not self._make_room([*self.guests.values()]):
            return False
        guest.idle_since = self.clock()
        self.guests[id(guest)] = guest
        self.of_transport[id(guest.transport)] = guest
        if self.sweeper is None:
            self._sweep_later()
        return True

    def leave(self, guest: Guest) -> None:
        """It counts no more."""
        self.guests.pop(id(guest), None)
        self.of_transport.pop(id(guest.transport), None)

    @staticmethod
    def _make_room(guests: list[Guest]) -> bool:
        idle = [each for each in guests if not each.at_work]
        if not idle:
            return False
        min(idle, key=lambda each: each.idle_since).close()
        return True

    def _sweep(self) -> None:
        self.sweeper = None
        now = self.clock()
        for guest in [*self.guests.values()]:
            limit = self.idle_s if guest.asked else self.first_s
            if not guest.at_work and guest.idle_since < now - limit:
                guest.close()
        if self.guests:
            self._sweep_later()

    def _sweep_later(self) -> None:
        seconds = min(SWEEP_S, self.first_s)
        self.sweeper = asyncio.get_running_loop().call_later(seconds, self._sweep)

    @contextmanager
    def working(self, transport: asyncio.BaseTransport | None) -> Iterator[None]:
        """While a request is answered its connection is not idle."""
        guest = self.of_transport.get(id(transport))
        if guest is None:
            yield
            return
        guest.at_work += 1
        guest.asked = True
        try:
            yield
        finally:
            guest.at_work -= 1
            guest.idle_since = self.clock()

    def stop(self) -> None:
        """No more sweeps."""
        if self.sweeper is not None:
            self.sweeper.cancel()
            self.sweeper = None
