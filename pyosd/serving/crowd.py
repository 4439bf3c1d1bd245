# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of a server's connections, per address and in all: a factory of protocols for asyncio's server.

A connection that waits for its peer is idle.  When one address, or all together, have too many, the one
that is idle for longest is closed to make room: a program that opens thousands keeps nobody out.  A
connection that is idle for too long is closed, too.  With TLS a connection counts from its first byte
on: asyncio would not show it before the end of the handshake, which its peer need not end.  Nothing more
is read from a peer that sends a head without end, or many requests ahead: aiohttp 3.8 would keep it all.
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
PIECE = 16384
WAITING_MOST = 16  # whole requests of one connection that wait for their turn
AROUND_MOST = 32768  # bytes since the newest request came, but for those of its body


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
        self.newest: Any = None  # request, as the inner protocol queues it, and its body
        self.body = 0  # bytes of that body so far
        self.around = 0  # and other bytes since that request
        self.deaf = False  # what still comes is ignored
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
            self._hand_on(each)
        self.early.clear()

    def _hand_on(self, data: bytes) -> None:
        """In pieces, so that little has been read when it proves to be too much."""
        for at in range(0, len(data), PIECE):
            if self.deaf:
                return
            piece = data[at : at + PIECE]
            self.inner.data_received(piece)
            if self._is_too_much(len(piece)):
                self.deaf = True
                self._reading().pause_reading()

    def _reading(self) -> asyncio.Transport:
        transport = self.secure or self.transport
        assert transport is not None
        return transport

    def _is_too_much(self, length: int) -> bool:
        """Whether more requests wait, or more of a head was read, than anybody needs.

        The connection then ends when it has been idle for too long.
        """
        waiting = getattr(self.inner, "_messages", ())
        if waiting and waiting[-1] is not self.newest:
            self.newest, self.body, self.around = waiting[-1], 0, -length
        body = getattr(self.newest[1], "total_bytes", 0) if self.newest else 0
        # While the server has paused reading it has not looked at what came last.
        if self._reading().is_reading():
            self.around += length - (body - self.body)
        self.body = body
        return len(waiting) > WAITING_MOST or self.around > AROUND_MOST

    def connection_lost(self, exc: Exception | None) -> None:
        """It has gone."""
        self.crowd.leave(self)
        if self.served:
            self.inner.connection_lost(exc)

    def data_received(self, data: bytes) -> None:
        """For the server."""
        if self.served:
            self._hand_on(data)
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
