# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of a server's connections, per address and in all: a factory of protocols for asyncio's server.

A connection that waits for its peer is idle.  When one address, or all together, have too many, the one
that is idle for longest is closed to make room: a program that opens thousands keeps nobody out.  A
connection that is idle for too long is closed, too.  With TLS a connection counts from its first byte
on: asyncio would not show it before the end of the handshake, which its peer need not end.
"""

from __future__ import annotations

import asyncio
import ssl
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

__all__ = ["Crowd"]

SWEEP_S = 5.0


class Guest(asyncio.Protocol):
    """One connection, in front of the protocol that serves it.

    transport: as it was accepted; secure: within it, after the handshake of TLS.
    """

    def __init__(self, crowd: Crowd, inner: Any, context: ssl.SSLContext | None) -> None:
        self.crowd = crowd
        self.inner = inner
        self.context = context
        self.transport: asyncio.Transport | None = None
        self.secure: asyncio.Transport | None = None
        self.address = ""
        self.at_work = 0  # requests that are answered now
        self.asked = False
        self.idle_since = 0.0  # by the clock of the crowd
        self.served = False  # the inner protocol has the connection
        self.early = list[bytes]()  # arrived with the end of the handshake
        self.handshake: asyncio.Task[None] | None = None

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """It is closed at once where there is no room."""
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        peer = transport.get_extra_info("peername")
        self.address = str(peer[0]) if peer else ""
        if not self.crowd.enter(self):
            transport.abort()
        elif self.context is None:
            self._serve(transport)
        else:
            transport.pause_reading()
            self.handshake = asyncio.create_task(self._shake_hands(transport, self.context))

    async def _shake_hands(self, transport: asyncio.Transport, context: ssl.SSLContext) -> None:
        if transport.is_closing():
            return
        try:
            secure = await asyncio.get_running_loop().start_tls(
                transport,
                self,
                context,
                server_side=True,
                ssl_handshake_timeout=self.crowd.first_s,
            )
        except OSError:  # of TLS, too; this protocol then hears nothing of the end
            self.close()
            return
        if transport.is_closing():
            self.close()
            return
        assert isinstance(secure, asyncio.Transport)
        self.secure = secure
        self.crowd.of_transport[id(secure)] = self
        self._serve(secure)

    def _serve(self, transport: asyncio.Transport) -> None:
        self.served = True
        self.inner.connection_made(transport)
        for each in self.early:
            self.inner.data_received(each)
        self.early.clear()

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self.crowd.leave(self)
        if self.served:
            self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """For the server."""
        if self.served:
            self.inner.data_received(data)
        else:
            self.early.append(data)

    def eof_received(self) -> bool | None:
        """For the server."""
        return self.inner.eof_received() if self.served else None

    def pause_writing(self) -> None:
        """For the server."""
        if self.served:
            self.inner.pause_writing()

    def resume_writing(self) -> None:
        """For the server."""
        if self.served:
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

    def wrap(self, inner: Any, context: ssl.SSLContext | None = None) -> Guest:
        """The protocol of a connection that is being made.

        context: of TLS; the handshake may take first_s.  The server that accepts it knows no TLS.
        """
        return Guest(self, inner, context)

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
        self.of_transport.pop(id(guest.secure), None)

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
        """No more sweeps, and no more handshakes."""
        if self.sweeper is not None:
            self.sweeper.cancel()
            self.sweeper = None
        for guest in [*self.guests.values()]:
            if not guest.served:
                guest.close()
