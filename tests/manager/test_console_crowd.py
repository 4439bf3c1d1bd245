# SPDX-License-Identifier: GPL-2.0-or-later
"""The console among strangers: who guesses tokens, who holds connections, who has its port first."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import json
import os
import pwd
import socket
import subprocess
import sys
import urllib.request
from pathlib import Path
from unittest.mock import AsyncMock, Mock, patch

import pytest

from iosd_host.cli import iosd_manager as service
from iosd_host.common import users
from iosd_host.http import sockets
from iosd_host.http.console import AddressTaken, Console, Sessions, TokenError, app
from iosd_host.http.console.sessions import CROWD_MOST, WRONG_MOST, WRONG_S, WRONG_WHO_MOST
from iosd_host.http.exporter import exposition
from tests.manager.fake_target import until as soon
from tests.manager.test_console import TOKEN, serving, write_tokens
from tests.manager.test_process import Start, start
from tests.manager.test_server import in_loop
from tests.waiting import until

__all__ = ["start"]

NOBODY = 65534
FREE_UID = 0x70FFFFF0
GUESS = f"""
import os, sys, urllib.error, urllib.request
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
said = []
for count in range({WRONG_MOST + 1}):
    try:
        urllib.request.urlopen(sys.argv[1] + "login", b"token=a-guess-of-sixteen-letters")
    except urllib.error.HTTPError as error:
        said.append(error.read().decode())
assert "unknown" in said[0] and "too many" in said[-1], said
"""
STEAL = f"""
import os, sys, urllib.request
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
wanted = urllib.request.Request(sys.argv[1] + "api/session", headers={{"Cookie": sys.argv[2]}})
print(urllib.request.urlopen(wanted).read().decode())
"""
SQUAT = f"""
import os, socket, sys
os.setgroups([]); os.setgid({NOBODY}); os.setuid({NOBODY})
server = socket.create_server(("127.0.0.1", 0))
print(server.getsockname()[1], flush=True)
sys.stdin.read()
"""
root = pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")


@root
@in_loop
async def test_a_user_who_guesses_locks_out_nobody_else(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        guess = await asyncio.create_subprocess_exec(sys.executable, "-c", GUESS, browser.url)
        assert await asyncio.wait_for(guess.wait(), 60) == 0
        assert await browser.login() == 204


@root
@in_loop
async def test_a_session_is_worth_nothing_to_another_user(folder: Path) -> None:
    """A browser sends a cookie to all ports of a host, so also to a server of another user."""
    async with serving(folder) as (_, _, browser):
        async with browser.post(browser.url + "login", data={"token": TOKEN}) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0]
        assert await browser.csrf()
        command = [sys.executable, "-c", STEAL, browser.url, cookie]
        thief = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        said, _ = await asyncio.wait_for(thief.communicate(), 60)
        assert json.loads(said) == {"user": None, "csrf": None, "login": True}


@in_loop
async def test_metrics_of_a_reading_are_made_once(folder: Path) -> None:
    """Anybody may ask for them again and again."""
    async with serving(folder) as (_, _, browser):
        made = Mock(wraps=exposition)
        with (
            patch.object(app, "serial_of", lambda _: "same"),
            patch.object(app, "exposition", made),
        ):
            for kind in (*["text/plain"] * 3, "application/openmetrics-text;version=1.0.0"):
                async with browser.get(browser.url + "metrics", headers={"Accept": kind}) as found:
                    assert b"iosd_target_up 1" in await found.read()
                    assert found.headers["Content-Type"].startswith(kind.partition(";")[0])
        assert made.call_count == 2


@in_loop
async def test_history_is_read_once_for_many(folder: Path) -> None:
    """Administrators wait for the same thread of the store."""
    async with serving(folder) as (_, desk, browser):
        reading = AsyncMock(wraps=desk.manager.history)
        with patch.object(desk.manager, "history", reading):
            days = 3 * 86400  # an answer is the same for half a minute
            asked = [browser.json_of(f"api/history?span={days - count}") for count in range(20)]
            assert {answer["span"] for answer in await asyncio.gather(*asked)} == {days}
        assert reading.call_count == 1


@in_loop
async def test_versions_that_a_client_invents_are_no_formats(folder: Path) -> None:
    """Each format is kept, and a version that is no number is no fault of ours."""
    async with serving(folder) as (_, _, browser):
        kinds = set()
        for version in ("1.0.0", "1.0.1", "7", "x", "1.x", ""):
            for name in ("application/openmetrics-text", "text/plain"):
                headers = {"Accept": f"{name};version={version};escaping=values"}
                async with browser.get(browser.url + "metrics", headers=headers) as found:
                    assert found.status == 200
                    kinds.add(found.headers["Content-Type"])
        assert len(kinds) == 2


def test_wrong_tokens_are_counted_for_each(tmp_path: Path) -> None:
    sessions = Sessions(write_tokens(tmp_path))
    for _ in range(WRONG_MOST):
        assert sessions.login("wrong", 0.0, "user 7") is None
    with pytest.raises(TokenError, match="too many"):
        sessions.login(TOKEN, 1.0, "user 7")
    assert sessions.login(TOKEN, 1.0, "user 8")
    assert sessions.login(TOKEN, WRONG_S + 1, "user 7")


def test_a_crowd_of_guessers_delays_and_locks_out_nobody(tmp_path: Path) -> None:
    sessions = Sessions(write_tokens(tmp_path))
    assert not sessions.delay(0.0)
    for count in range(10 * WRONG_WHO_MOST):
        assert sessions.login("wrong", 0.0, f"10.0.{count >> 8}.{count & 255}") is None
    assert len(sessions.wrong) == WRONG_WHO_MOST >= CROWD_MOST
    assert 0 < sessions.delay(1.0) <= 1.0
    assert sessions.login(TOKEN, 1.0, "user 0")
    assert not sessions.delay(WRONG_S + 1)


@pytest.mark.parametrize("host", ["127.0.0.1", "::ffff:127.0.0.1", "::1"])
def test_the_user_of_a_connection_costs_the_same_however_many_there_are(
    host: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else a user with thousands of sockets stops the manager by asking for a session again and again."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listens = ("127.0.0.1", 0) if "127" in host else ("::1", 0)
    with (
        socket.create_server(listens, family=family if host == "::1" else socket.AF_INET) as server,
        socket.socket(family) as client,
    ):
        client.connect((host, server.getsockname()[1]))
        ends = server.accept()[0], client
        ours, theirs = (each.getsockname()[:2] for each in ends)
        with monkeypatch.context() as patched:
            patched.setattr(sockets, "_rows", Mock(side_effect=AssertionError))
            assert sockets.peer_uid(ours, theirs) == os.geteuid()
            assert sockets.peer_uid(ours, (theirs[0], 1)) is None
        refuses = Mock(side_effect=OSError(errno.EPROTONOSUPPORT, "no such protocol"))
        monkeypatch.setattr(sockets, "_ask", refuses)
        assert sockets.peer_uid(ours, theirs) == os.geteuid()
        ends[0].close()


@root
@in_loop
async def test_connections_are_bounded_and_a_newcomer_gets_in(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        port = int(browser.url.rstrip("/").rpartition(":")[2])
        held = []
        for count in range(4 * app.MOST):
            one = socket.socket()
            one.bind((f"127.0.{count % 8}.{2 + count % 50}", 0))
            one.setblocking(False)
            with contextlib.suppress(BlockingIOError):
                one.connect(("127.0.0.1", port))
            held.append(one)
            if count % 64 == 0:
                await browser.json_of("health/live")
        assert (await browser.json_of("health/live"))["live"]
        await soon(lambda: len(ends_at(port)) <= app.MOST + 1)
        for one in held:
            one.close()


def ends_at(port: int) -> list[str]:
    """Connections that this end holds."""
    rows = Path("/proc/net/tcp").read_text().splitlines()[1:]
    ours = [line.split() for line in rows]
    return [words[9] for words in ours if words[1] == f"0100007F:{port:04X}" and words[3] == "01"]


@in_loop
async def test_one_address_has_a_share(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        port = int(browser.url.rstrip("/").rpartition(":")[2])
        pairs = [
            await asyncio.open_connection("127.0.0.1", port) for _ in range(app.OF_ONE_MOST + 8)
        ]
        for reader, _ in pairs[:8]:  # those that are idle for longest
            with contextlib.suppress(ConnectionError):
                assert await asyncio.wait_for(reader.read(), 30) == b""
        await soon(lambda: len(ends_at(port)) <= app.OF_ONE_MOST)
        for _, writer in pairs:
            writer.close()


@in_loop
@patch.object(app, "IDLE_S", 0.2)
@patch.object(app, "REQUEST_S", 0.3)
async def test_idle_connections_end(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        port = int(browser.url.rstrip("/").rpartition(":")[2])
        for words in (b"", b"GET / HTTP/1.1\r\nHost: 127.0.0.1\r\nX: "):
            reader, writer = await asyncio.open_connection("127.0.0.1", port)
            writer.write(words)
            with contextlib.suppress(ConnectionError):
                assert b"200" not in await asyncio.wait_for(reader.read(), 30)
            writer.close()
        async with browser.get(browser.url + "api/events") as stream:  # it lives longer than that
            for _ in range(3):
                await asyncio.wait_for(stream.content.readuntil(b"\n\n"), 30)


@in_loop
@patch.object(app, "REQUEST_S", 0.3)
async def test_slow_requests_end(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        port = int(browser.url.rstrip("/").rpartition(":")[2])
        reader, writer = await asyncio.open_connection("127.0.0.1", port)
        head = "POST /login HTTP/1.1\r\nHost: 127.0.0.1\r\nContent-Length: 20\r\n"
        writer.write(f"{head}Content-Type: application/x-www-form-urlencoded\r\n\r\nto".encode())
        assert b" 408 " in await asyncio.wait_for(reader.readline(), 30)
        writer.close()


@root
def test_a_port_that_a_stranger_has_is_noticed(start: Start) -> None:
    with subprocess.Popen(
        [sys.executable, "-c", SQUAT], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as squatter:
        try:
            assert squatter.stdout is not None
            port = int(squatter.stdout.readline())
            found = sockets.listener(("127.0.0.1", port))
            assert found is not None and found[0] == NOBODY
            assert f"process {squatter.pid}" in sockets.process_of(found[1])
            asked = start("--http", f"127.0.0.1:{port}")
            assert asked.process.wait(60) == 1
            words = asked.log.read_text()
            assert f"user {pwd.getpwuid(NOBODY).pw_name} listens there" in words
            assert f"process {squatter.pid}" in words
        finally:
            squatter.kill()


@in_loop
async def test_a_taken_port_names_its_user(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        taken = f"127.0.0.1:{server.getsockname()[1]}"
        async with serving(folder) as (_, desk, _):
            console = Console(desk.manager, desk.requests.answer, Sessions(None))
            user = pwd.getpwuid(os.geteuid()).pw_name
            with pytest.raises(AddressTaken, match=f"user {user} listens there"):
                await console.start(taken)
            await console.close()


def test_the_user_of_a_target_has_no_name() -> None:
    assert users.described(users.FIRST) == f"uid {users.FIRST} (a target or manager of iosd)"
    assert users.described(FREE_UID) == f"uid {FREE_UID}"


def test_the_usual_port_is_taken(start: Start) -> None:
    """Without an explicit port another one is taken, and the file below /run/iosd names it."""
    usual = int(service.HTTP.rpartition(":")[2])
    with contextlib.ExitStack() as stack:
        while True:
            ours = False
            with contextlib.suppress(OSError):  # somebody has it already
                stack.enter_context(socket.create_server(("127.0.0.1", usual)))
                ours = True
            running = start("--http", "")
            running.ready()
            if ours or "listens there" in running.log.read_text():
                break
            assert running.stop() == 0  # whoever had it has ended meanwhile
        url = json.loads((running.folder / "place").read_bytes())["http"]
        with urllib.request.urlopen(f"{url}health/live") as answer:
            assert json.load(answer)["pid"] == running.process.pid
        until(lambda: "listens there" in running.log.read_text())
        assert running.stop() == 0
