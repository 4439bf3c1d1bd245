# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of Reductionist's server: connections, and wrong passwords."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from types import SimpleNamespace
from typing import Any, Self, cast
from unittest.mock import AsyncMock

import pytest
from aiohttp import web

from pyosd.fronts.reductionist import server
from pyosd.fronts.reductionist.server import (
    ADDRESSES_MOST,
    WRONG_MOST,
    WRONG_S,
    ServerOptions,
    WrongPasswords,
)
from pyosd.fs.paths import PathInfo
from pyosd.serving.crowd import AROUND_MOST, PIECE, Crowd
from pyosd.types import ref

Pair = tuple[asyncio.StreamReader, asyncio.StreamWriter]
WAIT_S = 20.0
REQUEST = b"GET / HTTP/1.1\r\nHost: localhost\r\n\r\n"


def test_an_address_with_many_wrong_passwords_waits() -> None:
    wrong = WrongPasswords()
    for at in range(WRONG_MOST):
        assert not wrong.refuses("a", float(at))
        wrong.add("a", float(at))
    assert wrong.refuses("a", WRONG_S - 1)
    assert not wrong.refuses("b", WRONG_S - 1)
    assert not wrong.refuses("a", WRONG_S)
    wrong.add("a", WRONG_S)
    assert not wrong.refuses("a", WRONG_S + 1)


def test_few_addresses_are_kept() -> None:
    wrong = WrongPasswords()
    for number in range(ADDRESSES_MOST + 1):
        for _ in range(WRONG_MOST):
            wrong.add(str(number), 0.0)
    assert not wrong.refuses("0", 1.0)
    assert all(wrong.refuses(str(number), 1.0) for number in range(1, ADDRESSES_MOST + 1))


@pytest.mark.parametrize(
    ("address", "place"),
    [
        ("10.0.0.7", "10.0.0.7"),
        ("::1", "::1"),
        ("::ffff:10.0.0.7", "10.0.0.7"),
        ("2001:db8::1:2:3:4", "2001:db8::/64"),
        ("fe80::1%eth0", "fe80::/64"),
        ("", ""),
    ],
)
def test_all_addresses_that_one_host_can_have_share_a_count(address: str, place: str) -> None:
    assert server.place_of(address) == place


class Place:
    """A server with a Crowd that answers /, and /wait when it is told to."""

    def __init__(self, crowd: Crowd) -> None:
        self.crowd = crowd
        self.free = asyncio.Event()
        self.at_work = asyncio.Semaphore(0)
        self.writers: list[asyncio.StreamWriter] = []
        app = web.Application()
        app.router.add_get("/", self._answer)
        app.router.add_get("/wait", self._wait)
        self.runner = web.AppRunner(app)

    async def _answer(self, request: web.Request) -> web.Response:
        with self.crowd.working(request.transport):
            return web.Response(text="yes")

    async def _wait(self, request: web.Request) -> web.Response:
        with self.crowd.working(request.transport):
            self.at_work.release()
            await self.free.wait()
            return web.Response(text="yes")

    async def __aenter__(self) -> Self:
        await self.runner.setup()
        serve = self.runner.server
        assert serve is not None
        loop = asyncio.get_running_loop()
        self.listener = await loop.create_server(lambda: self.crowd.wrap(serve()), "127.0.0.1", 0)
        return self

    async def __aexit__(self, *_: object) -> None:
        for writer in self.writers:
            writer.close()
            with suppress(ConnectionError):
                await writer.wait_closed()
        self.crowd.stop()
        self.listener.close()
        await self.runner.cleanup()

    async def connect(self, address: str = "127.0.0.1") -> Pair:
        """From this address of the host."""
        place = self.listener.sockets[0].getsockname()
        pair = await asyncio.open_connection(*place, local_addr=(address, 0))
        self.writers.append(pair[1])
        return pair


async def ask(pair: Pair) -> None:
    """Send a request, and await the answer."""
    pair[1].write(REQUEST)
    await answered(pair)


async def answered(pair: Pair) -> None:
    assert (await asyncio.wait_for(pair[0].readuntil(b"yes"), WAIT_S)).startswith(b"HTTP/1.1 200")


async def ended(pair: Pair) -> None:
    with suppress(ConnectionError):
        assert await asyncio.wait_for(pair[0].read(), WAIT_S) == b""


def test_connections_are_bounded() -> None:
    """A third replaces the one that is idle for longest; one that asks nothing ends."""
    now = 0.0

    async def main() -> None:
        nonlocal now
        crowd = Crowd(most=2, of_one_most=2, first_s=0.2, idle_s=60.0, clock=lambda: now)
        async with Place(crowd) as place, asyncio.timeout(WAIT_S):
            first, silent = [await place.connect() for _ in range(2)]
            while len(crowd.guests) < 2:
                await asyncio.sleep(0.01)
            now = 0.1
            await ask(first)
            third = await place.connect()
            await ended(silent)
            now = 1.0
            await ended(third)
            await ask(first)
            await ask(await place.connect())

    asyncio.run(main())


class Keeper(asyncio.Protocol):
    """Keeps what it gets, as aiohttp 3.8 does: the end of a line is the end of a request's head."""

    def __init__(self) -> None:
        self.got = 0
        self._messages: list[tuple[str, Any]] = []
        self.body = SimpleNamespace(total_bytes=0)

    def data_received(self, data: bytes) -> None:
        """A request's body is all that follows its head."""
        self.got += len(data)
        if data.startswith(b"BODY"):
            self._messages = [("a request", self.body)]
        self._messages += [("a request", SimpleNamespace()) for _ in range(data.count(b"\n"))]
        self.body.total_bytes += data.count(b"b")


def test_the_server_keeps_requests_where_the_crowd_counts_them() -> None:
    """The name is none of aiohttp's interface: without it no request would count."""
    assert "_messages" in web.RequestHandler.__slots__


@pytest.mark.parametrize(
    ("words", "most"),
    [(b"x: y", AROUND_MOST), (b"GET\n", 0), (b"BODY", None), (b"BODYbx", 2 * AROUND_MOST)],
)
def test_what_nobody_needs_is_not_read(words: bytes, most: int | None) -> None:
    """A head without end, many requests ahead, a long body, and as much around the body."""
    start, fill = words[:4], words[4:] or (b"b" if words == b"BODY" else words)
    sent = start + fill * ((1 << 20) // len(fill))

    async def main() -> None:
        crowd, kept = Crowd(2, 2, first_s=60.0, idle_s=60.0), Keeper()
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(lambda: crowd.wrap(kept), "127.0.0.1", 0)
        _, writer = await asyncio.open_connection(*listener.sockets[0].getsockname())
        writer.write(sent)
        async with asyncio.timeout(WAIT_S):
            while kept.got < len(sent) and not any(each.deaf for each in crowd.guests.values()):
                await asyncio.sleep(0.01)
        assert kept.got == len(sent) if most is None else kept.got <= most + 2 * PIECE
        crowd.stop()
        for each in [*crowd.guests.values()]:
            each.close()
        writer.close()
        listener.close()

    asyncio.run(main())


class Endless:
    """A target with one long object."""

    fs = functions = None

    async def read_range(self, obj: Any, start: int, length: int) -> bytes:
        return bytes(length)


@pytest.mark.parametrize("leaves", [True, False])
def test_who_takes_no_data_is_sent_away(
    leaves: bool, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    """Whether the client waits or leaves; neither is a fault of ours."""
    monkeypatch.setattr(server, "SEND_S", 60.0 if leaves else 0.2)
    place = PathInfo("/0x10000/x", ref(0x10000, 0x10000), False, 1 << 40)

    async def main() -> None:
        served = server.ReductionServer(cast(Any, Endless()), ServerOptions("", "", 0))
        monkeypatch.setattr(served, "_file", AsyncMock(return_value=place))
        closed = asyncio.get_running_loop().create_future()

        @contextmanager
        def working(transport: asyncio.Transport) -> Iterator[None]:
            try:
                yield
            finally:
                closed.set_result(transport.is_closing())

        monkeypatch.setattr(served.crowd, "working", working)
        runner = web.AppRunner(served.application())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0], limit=1024)
        writer.write(REQUEST)
        await reader.readuntil(b"\r\n\r\n")
        if leaves:
            writer.transport.abort()
        assert await closed
        writer.close()
        with suppress(ConnectionError):
            await writer.wait_closed()
        await runner.cleanup()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))
    assert not [each for each in caplog.records if each.levelname == "ERROR"]


def test_a_body_that_is_not_compressed_as_it_says_is_refused() -> None:
    async def main() -> None:
        served = server.ReductionServer(cast(Any, Endless()), ServerOptions("", "", 0))
        runner = web.AppRunner(served.application())
        await runner.setup()
        await web.TCPSite(runner, "127.0.0.1", 0).start()
        reader, writer = await asyncio.open_connection(*runner.addresses[0])
        head = b"POST /v2/sum HTTP/1.1\r\nHost: localhost\r\nContent-Encoding: gzip\r\n"
        writer.write(head + b"Content-Length: 2\r\n\r\n{}")
        assert (await reader.readline()).startswith(b"HTTP/1.1 400 ")
        writer.close()
        await writer.wait_closed()
        await runner.cleanup()

    asyncio.run(asyncio.wait_for(main(), WAIT_S))


def test_one_address_leaves_room_for_others() -> None:
    """Even if it keeps the server at work on each of its connections."""

    async def main() -> None:
        async with Place(Crowd(most=3, of_one_most=2, first_s=60.0, idle_s=60.0)) as place:
            busy = [await place.connect() for _ in range(2)]
            for _, writer in busy:
                writer.write(REQUEST.replace(b"GET /", b"GET /wait"))
                await asyncio.wait_for(place.at_work.acquire(), WAIT_S)
            await ended(await place.connect())
            await ask(await place.connect("127.0.0.2"))
            place.free.set()
            for pair in busy:
                await answered(pair)

    asyncio.run(main())
