# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's ZeroMQ end: who may speak to it, and what it says to nonsense."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import zmq
import zmq.asyncio
import zmq.auth

from iosd_host.config.schema import Count, Key
from iosd_host.manager.keys import (
    ADMIN,
    LOCAL,
    ClientKeys,
    CurvePair,
    KeyHolder,
    KeysError,
    read_key,
    write_key,
)
from iosd_host.manager.requests import SCHEMA, AdminRequest, ManagerMethod, Requests
from iosd_host.manager.server import AT_ONCE, MESSAGE_MOST, Server, ServerError, make_pair
from iosd_host.manager.state_store import OURSELVES, PEOPLE, POLICY

DEADLINE_S = 60.0


async def echo(request: AdminRequest) -> Any:
    return dict(request.params) | {"who": request.who, "why": request.why}


NUMBER = Key("number", Count(0, 9), None, "")
ROWS = [
    ManagerMethod("look", echo, (NUMBER,)),
    ManagerMethod("set", echo, (NUMBER,), ("number",), changes=True),
]


class Caller:
    """A client with a key of its own."""

    def __init__(
        self,
        endpoint: str,
        server: str,
        pair: CurvePair,
        kind: int = zmq.DEALER,
        most_unread: int = 1000,
    ) -> None:
        self.context = zmq.asyncio.Context()
        self.socket = self.context.socket(kind)
        self.socket.rcvhwm = most_unread
        self.socket.linger = 0
        self.socket.curve_serverkey = server.encode()
        self.socket.curve_publickey = pair.public.encode()
        assert pair.secret
        self.socket.curve_secretkey = pair.secret.encode()
        self.socket.connect(endpoint)

    async def send(self, *frames: bytes) -> None:
        await self.socket.send_multipart(frames)

    async def receive(self, timeout: float = DEADLINE_S) -> dict[str, Any]:
        frames = await asyncio.wait_for(self.socket.recv_multipart(), timeout)
        return dict(json.loads(frames[-1]))

    async def ask(self, method: str, **params: Any) -> dict[str, Any]:
        fields = {"schema": SCHEMA, "id": 7, "method": method, "params": params, "user": "me"}
        await self.send(json.dumps(fields).encode())
        return await self.receive()

    def close(self) -> None:
        self.context.destroy(linger=0)


Dial = Callable[..., Caller]


@asynccontextmanager
async def served(folder: Path, answer: Any = None) -> AsyncIterator[tuple[Server, Dial]]:
    keys = ClientKeys(folder / "keys", make_pair)
    assert keys.reload() == []
    server = Server(keys, answer or Requests(ROWS).answer)
    [endpoint] = server.bind([f"ipc://{folder}/socket"])
    running = asyncio.create_task(server.run())
    callers: list[Caller] = []

    def dial(pair: CurvePair | None = None, **options: Any) -> Caller:
        callers.append(
            Caller(endpoint, keys.server.public, pair or read_key(keys.local), **options)
        )
        return callers[-1]

    try:
        yield server, dial
    finally:
        for caller in callers:
            caller.close()
        assert not running.done()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running
        server.close()
    assert not (folder / "socket").exists()


def in_loop(test: Callable[[Path], Coroutine[Any, Any, None]]) -> Callable[[Path], None]:
    def run(tmp_path: Path) -> None:
        asyncio.run(asyncio.wait_for(test(tmp_path), 60))

    run.__name__ = test.__name__
    return run


@in_loop
async def test_requests_and_answers(folder: Path) -> None:
    async with served(folder) as (_, dial):
        assert (folder / "socket").stat().st_mode & 0o777 == 0o600
        admin = dial()
        answer = await admin.ask("look", number=3)
        result = {"number": 3, "who": "me (local)", "why": ""}
        assert answer == {"schema": SCHEMA, "id": 7, "result": result}
        classic = dial(kind=zmq.REQ)
        assert (await classic.ask("look"))["result"]["number"] is None


@in_loop
async def test_errors_say_what_to_do(folder: Path) -> None:
    async with served(folder) as (_, dial):
        admin = dial()
        for method, params, code, words in (
            ("explode", {}, "unknown-method", "there are: look, set"),
            ("look", {"nunber": 1}, "bad-params", "did you mean 'number'"),
            ("look", {"number": 10}, "bad-params", "from 0 to 9"),
            ("set", {}, "bad-params", "lack 'number'"),
        ):
            error = (await admin.ask(method, **params))["error"]
            assert error["code"] == code
            assert words in error["message"] + error.get("remedy", "")


@in_loop
async def test_viewer_may_look(folder: Path) -> None:
    async with served(folder) as (server, dial):
        pair = make_pair()
        write_key(server.keys.authorized / "monitoring.key", CurvePair(pair.public))
        viewer = dial(pair)
        assert (await viewer.ask("look"))["result"]["who"] == "me (monitoring)"
        assert (await viewer.ask("set", number=1))["error"]["code"] == "not-permitted"
        # Promoted, and thrown out, without a new connection.
        (server.keys.authorized / "monitoring.key").unlink()
        write_key(server.keys.authorized / "monitoring.key", CurvePair(pair.public), ADMIN)
        server.keys.reload()
        assert "result" in await viewer.ask("set", number=1)
        (server.keys.authorized / "monitoring.key").unlink()
        server.keys.reload()
        assert (await viewer.ask("look"))["error"]["code"] == "not-permitted"


@in_loop
async def test_strangers_get_no_answer(folder: Path) -> None:
    async with served(folder) as (server, dial):
        stranger = dial(make_pair())
        with pytest.raises(TimeoutError):
            await stranger.send(b"{}")
            await stranger.receive(0.3)
        wrong = Caller(server.endpoints[0], make_pair().public, read_key(server.keys.local))
        plain = zmq.asyncio.Context()
        naked = plain.socket(zmq.DEALER)
        naked.connect(server.endpoints[0])
        try:
            await wrong.send(b"{}")
            with pytest.raises(TimeoutError):  # of the first, if it was refused before
                await asyncio.wait_for(naked.send(b"{}"), 0.1)
                await asyncio.wait_for(naked.recv(), 0.1)
            with pytest.raises(TimeoutError):
                await wrong.receive(0.3)
        finally:
            wrong.close()
            plain.destroy(linger=0)
        assert "result" in await dial().ask("look")


@in_loop
async def test_too_long_and_too_many_frames(folder: Path) -> None:
    async with served(folder) as (_, dial):
        long, many = dial(), dial()
        await long.send(b"x" * (MESSAGE_MOST + 1))  # its connection is closed, and comes up again
        await many.send(b"a", b"b", b"c")
        assert "result" in await many.ask("look")
        assert "result" in await dial().ask("look")


@in_loop
async def test_many_requests_at_once(folder: Path) -> None:
    running = most = 0
    full = asyncio.Event()

    async def slow(client: KeyHolder, body: bytes) -> bytes:
        nonlocal running, most
        running += 1
        most = max(most, running)
        if running == AT_ONCE:
            full.set()
        await full.wait()
        await asyncio.sleep(0.01)
        running -= 1
        return body

    async with served(folder, slow) as (_, dial):
        caller = dial()
        for n in range(200):
            await caller.send(json.dumps(n).encode())
        frames = [await asyncio.wait_for(caller.socket.recv(), DEADLINE_S) for _ in range(200)]
        assert sorted(map(int, frames)) == list(range(200))
        assert most == AT_ONCE


@in_loop
async def test_answers_wait_for_a_client_that_reads_late(folder: Path) -> None:
    """More than the sockets' buffers hold."""
    answered = 0

    async def same(client: KeyHolder, body: bytes) -> bytes:
        nonlocal answered
        answered += 1
        return body

    async with served(folder, same) as (server, dial):
        caller = dial(most_unread=1)
        for _ in range(400):
            await caller.send(bytes(20_000))
        while answered < 400 or server.tasks:
            await asyncio.sleep(0.001)
        for _ in range(400):
            assert len(await asyncio.wait_for(caller.socket.recv(), DEADLINE_S)) == 20_000


def test_keys_are_made_once(tmp_path: Path) -> None:
    first = ClientKeys(tmp_path / "k", make_pair)
    (first.authorized / f"{LOCAL}.key").unlink()
    again = ClientKeys(tmp_path / "k", make_pair)
    assert again.server == first.server
    assert again.reload() == []
    assert again.clients == {}  # who takes the local key away has meant it
    for path in (tmp_path / "k").glob("*.key_secret"):
        assert path.stat().st_mode & 0o777 == 0o600
    (tmp_path / "k/server.key_secret").chmod(0o640)
    with pytest.raises(KeysError, match="chmod 600"):
        ClientKeys(tmp_path / "k", make_pair)


def test_wrong_key_files_are_told(tmp_path: Path) -> None:
    keys = ClientKeys(tmp_path, make_pair)
    pair = CurvePair(make_pair().public)
    write_key(keys.authorized / "one.key", pair, ADMIN)
    write_key(keys.authorized / "two.key", pair)
    write_key(keys.authorized / "root.key", make_pair(), "god")
    (keys.authorized / "three.key").write_text("nonsense\x00")
    (keys.authorized / "four.key").write_bytes(b"\xff\xfe")
    write_key(keys.authorized / "open.key", CurvePair(make_pair().public))
    (keys.authorized / "open.key").chmod(0o666)
    for name in (POLICY, PEOPLE, OURSELVES):  # whose changes the log shows apart
        write_key(keys.authorized / f"{name}.key", CurvePair(make_pair().public), ADMIN)
    wrong = "\n".join(keys.reload())
    for words in ("the same key", "role must be", "no key of 40", "four.key", "others can write"):
        assert words in wrong
    assert wrong.count("stands for others in the log") == 3
    assert {each.name for each in keys.clients.values()} == {LOCAL, "one"}


def test_pyzmq_reads_and_writes_the_same_files(tmp_path: Path) -> None:
    zmq.auth.create_certificates(tmp_path, "theirs", {"role": "admin"})
    (tmp_path / "theirs.key_secret").chmod(0o600)
    theirs = read_key(tmp_path / "theirs.key_secret")
    keys = ClientKeys(tmp_path / "keys", make_pair)
    (tmp_path / "theirs.key_secret").rename(keys.authorized / "theirs.key")
    assert keys.reload() == []
    assert keys.who(theirs.public) == KeyHolder("theirs", ADMIN)
    public, secret = zmq.auth.load_certificate(keys.local)
    assert (public.decode(), secret and secret.decode()) == tuple(
        vars(read_key(keys.local)).values()
    )


def test_endpoints_that_cannot_be(tmp_path: Path) -> None:
    async def run() -> None:
        server = Server(ClientKeys(tmp_path / "k", make_pair), Requests(ROWS).answer)
        (tmp_path / "file").write_text("mine")
        for endpoint in (
            f"ipc://{tmp_path}/file",
            "inproc://x",
            "tcp://127.0.0.1:x",
            "ipc:///no/x",
        ):
            with pytest.raises(ServerError, match="cannot listen"):
                server.bind([endpoint])
        assert (tmp_path / "file").read_text() == "mine"
        server.close()

    asyncio.run(run())
