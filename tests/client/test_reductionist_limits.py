# SPDX-License-Identifier: GPL-2.0-or-later
"""Limits of Reductionist's server: connections, and wrong passwords."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web

from pyosd.fronts.reductionist import server
from pyosd.fronts.reductionist.server import ADDRESSES_MOST, WRONG_MOST, WRONG_S, WrongPasswords

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


def test_connections_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    """The third is closed at once, the silent one later, and the one that asked stays."""
    monkeypatch.setattr(server, "BODY_S", 0.2)

    async def ask(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        writer.write(REQUEST)
        assert (await reader.readuntil(b"yes")).startswith(b"HTTP/1.1 200")

    async def main() -> None:
        async def handle(request: web.Request) -> web.Response:
            connections.used(request.protocol)
            return web.Response(text="yes")

        app = web.Application()
        app.router.add_get("/", handle)
        runner = web.AppRunner(app)
        await runner.setup()
        assert runner.server is not None
        connections = server.Connections(runner.server, most=2)
        loop = asyncio.get_running_loop()
        listener = await loop.create_server(connections, "127.0.0.1", 0)
        place = listener.sockets[0].getsockname()
        first, silent = [await asyncio.open_connection(*place) for _ in range(2)]
        await ask(*first)
        third = await asyncio.open_connection(*place)
        for reader, _ in (third, silent):
            assert await asyncio.wait_for(reader.read(), WAIT_S) == b""
        await ask(*first)
        fourth = await asyncio.open_connection(*place)
        await ask(*fourth)
        for _, writer in (first, silent, third, fourth):
            writer.close()
            await writer.wait_closed()
        listener.close()
        await runner.cleanup()

    asyncio.run(main())
