# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's HTTP end without a browser: figures, health, who may look and who may change."""

from __future__ import annotations

import asyncio
import gzip
import json
import resource
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any
from unittest.mock import patch

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from iosd_host.control.messages import Type
from iosd_host.http.console import Console, ConsoleError, Sessions, TokenError, make_tokens
from iosd_host.http.console.app import may_be_named, parse_address
from iosd_host.http.console.sessions import IDLE_S, MOST_S, WRONG_S, read_tokens
from iosd_host.http.console.state import pushed
from iosd_host.http.readings import Reading
from iosd_host.manager import manager
from tests.manager.fake_target import FakeTarget, faked, until
from tests.manager.snapshot import snapshot
from tests.manager.test_manager import Desk, managing, ready, told
from tests.manager.test_server import in_loop

TOKEN = "a-token-of-more-than-sixteen"


def write_tokens(folder: Path) -> Path:
    path = folder / "console.tokens"
    path.touch(0o600)
    path.write_text(f"# who\nann {TOKEN}\nbob another-token-of-his-own\n")
    return path


@pytest.fixture
def tokens(tmp_path: Path) -> Path:
    return write_tokens(tmp_path)


class Browser:
    """Of a person: keeps cookies."""

    def __init__(self, url: str, client: aiohttp.ClientSession) -> None:
        self.url = url
        self.get, self.post = client.get, client.post

    async def json_of(self, path: str, status: int = 200, **more: Any) -> Any:
        async with self.get(self.url + path, **more) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()

    async def login(self, token: str = TOKEN, **headers: str) -> int:
        async with self.post(self.url + "login", data={"token": token}, headers=headers) as answer:
            return answer.status

    async def csrf(self) -> str:
        return str((await self.json_of("api/session"))["csrf"])

    async def change(self, method: str, status: int, csrf: str | None = None, **params: Any) -> Any:
        headers = {} if csrf is None else {"X-CSRF-Token": csrf}
        body = {"method": method, "params": params, "why": "a test"}
        async with self.post(self.url + "api/change", json=body, headers=headers) as answer:
            assert answer.status == status, await answer.text()
            return await answer.json()


@asynccontextmanager
async def browsing(url: str) -> AsyncIterator[Browser]:
    async with aiohttp.ClientSession(cookie_jar=aiohttp.CookieJar(unsafe=True)) as client:
        yield Browser(url, client)


@asynccontextmanager
async def serving(
    folder: Path, address: str = "127.0.0.1:0"
) -> AsyncIterator[tuple[FakeTarget, Desk, Browser]]:
    """A target, its manager, a browser."""
    async with faked(folder) as target, managing(folder, target.path) as desk:
        await ready(desk)
        sessions = Sessions(write_tokens(folder))
        console = Console(desk.manager, desk.requests.answer, sessions, ["proxy.example"])
        url = await console.start(address)
        try:
            async with browsing(url.replace("0.0.0.0", "127.0.0.1")) as browser:
                yield target, desk, browser
        finally:
            await console.close()


# ---- figures and health ----


@in_loop
async def test_metrics(folder: Path) -> None:
    async with serving(folder) as (target, desk, browser):
        target.pools[0]["queued"] = 5
        await until(lambda: desk.target.load is not None and desk.target.load.pools[0].queued == 5)
        async with browser.get(browser.url + "metrics") as answer:
            text = await answer.text()
            assert answer.headers["Content-Type"].startswith("text/plain")
            assert answer.headers["X-Iosd-Serial"].startswith("b1-1")
        found = {family.name: family.samples for family in text_string_to_metric_families(text)}
        assert found["iosd_queue_depth"][0].value == 5
        assert found["iosd_pool_target_size"][0].labels == {"pool": "default"}


async def is_up(browser: Browser) -> float:
    """The metric of the alert for a target that is down."""
    async with browser.get(browser.url + "metrics") as found:
        [family] = [
            family
            for family in text_string_to_metric_families(await found.text())
            if family.name == "iosd_target_up"
        ]
    return float(family.samples[0].value)


@in_loop
async def test_health(folder: Path) -> None:
    async with serving(folder) as (target, desk, browser):
        assert (await browser.json_of("health/ready")) == {"ready": True, "reasons": []}
        assert await is_up(browser) == 1
        await target.stop()
        await until(lambda: desk.target.link.role == "lost")
        answer = await browser.json_of("health/ready", 503)
        assert answer["reasons"][0]["target"] == "t"
        assert "no connection" in answer["reasons"][0]["reason"]
        assert await is_up(browser) == 0
        assert (await browser.json_of("health/live"))["live"]
        assert not (await browser.json_of("health", 503))["ready"]


@in_loop
async def test_two_targets_have_to_be_told_apart(folder: Path) -> None:
    paths = (folder / "target", folder / "other")
    async with managing(folder, *paths) as desk:
        console = Console(desk.manager, desk.requests.answer, Sessions(None))
        async with browsing(await console.start("127.0.0.1:0")) as browser:
            answer = await browser.json_of("metrics", 404)
            assert "there are: t, u" in answer["error"]["message"]
            async with browser.get(browser.url + "metrics?target=u") as found:
                assert found.status == 200
                lines = (await found.text()).splitlines()
                assert [each for each in lines if each[0] != "#"] == ["iosd_target_up 0.0"]
            for query, name in (("", "t"), ("?target=u", "u")):
                async with browser.get(browser.url + f"api/events{query}") as stream:
                    state = json.loads((await stream.content.readline()).removeprefix(b"data: "))
                    assert state["target"]["name"] == name
                    assert state["targets"] == [{"name": "t"}, {"name": "u"}]
                    assert state["stale"]
        await console.close()


# ---- who may look ----


@pytest.mark.parametrize(
    ("host", "good"),
    [
        ("localhost:8470", True),
        ("127.0.0.1", True),
        ("127.0.0.1:1", True),
        ("[::1]:8470", True),
        ("192.0.2.7:80", True),
        ("proxy.example:443", True),
        ("PROXY.example", True),
        ("evil.example:8470", False),
        ("localhost.evil.example", False),
        ("127.0.0.1.evil.example:8470", False),
        ("", False),
        ("[::1", False),
    ],
)
def test_names_are_not_believed(host: str, good: bool) -> None:
    assert may_be_named(host, ["proxy.example"]) is good


@in_loop
async def test_rebound_names_get_nothing(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        for path in ("", "metrics", "api/session", "api/events", "health"):
            answer = await browser.json_of(path, 421, headers={"Host": "evil.example"})
            assert "not ours" in answer["error"]["message"]


@in_loop
async def test_pages_are_locked_down(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        for path in ("", "static/console.js", "metrics", "nothing", "api/session"):
            async with browser.get(browser.url + path) as answer:
                policy = answer.headers["Content-Security-Policy"]
                assert "default-src 'none'" in policy
                assert "unsafe" not in policy
                assert answer.headers["X-Content-Type-Options"] == "nosniff"
        for path in ("static/../app.py", "static/%2e%2e%2fapp.py", "static/app.py"):
            async with browser.get(browser.url + path) as answer:
                assert answer.status == 404


NONSENSE = [
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 9\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\n\r\ntoken=\xff\xfe\xfd",
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
    b"Content-Type: multipart/form-data\r\n\r\nabc",
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
    b"Content-Type: application/x-www-form-urlencoded; charset=zip\r\n\r\na=b",
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 20\r\n"
    b"Content-Type: multipart/form-data; boundary=x\r\n\r\n--x\r\nbad\r\n\r\nq\r\n--x--",
    b"POST /login HTTP/1.1\r\nHost: localhost\r\nContent-Length: 3\r\n"
    b"Content-Type: application/x-www-form-urlencoded\r\nContent-Encoding: gzip\r\n\r\na=b",
    b"POST /api/change HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nX-CSRF-Token: CSRF\r\n"
    b"Content-Type: application/json; charset=zip\r\nContent-Length: 2\r\n\r\n{}",
    b"POST /logout HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nX-CSRF-Token: \xff\xfe\r\n\r\n",
    b"POST /api/change HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nX-CSRF-Token: CSRF\r\n"
    b"Content-Length: 16000\r\n\r\n" + b"[" * 16000,
    b"POST /api/change HTTP/1.1\r\nHost: localhost\r\nCookie: COOKIE\r\nX-CSRF-Token: CSRF\r\n"
    b'Content-Length: 23\r\n\r\n{"method":["pool.set"]}',
    b"GET /api/session HTTP/1.1\r\nHost: localhost\r\nCookie: iosd-session=\xff\xfe\r\n\r\n",
    b"GET /api/history?span=" + b"9" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics?target=%ff%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nAccept: \xff;;q=x,,application/openmetrics-text;\r\n\r\n",
    b"GET /static/%00 HTTP/1.1\r\nHost: localhost\r\n\r\n",
    b"GET / HTTP/1.1\r\nHost: \xff\xfe\r\n\r\n",
    b"GET / HTTP/1.1\r\n\r\n",
    b"\x16\x03\x01\x02\x00",
]


@in_loop
async def test_nonsense_is_refused(folder: Path) -> None:
    """Never our fault (5xx), and the next request is answered."""
    async with serving(folder) as (_, _, browser):
        async with browser.post(browser.url + "login", data={"token": TOKEN}) as answer:
            cookie = answer.headers["Set-Cookie"].partition(";")[0].encode()
        words = {b"COOKIE": cookie, b"CSRF": (await browser.csrf()).encode()}
        host, port = browser.url.removeprefix("http://").rstrip("/").split(":")
        for request in NONSENSE:
            for word, value in words.items():
                request = request.replace(b": " + word + b"\r", b": " + value + b"\r")
            reader, writer = await asyncio.open_connection(host, int(port))
            writer.write(request)
            status = (await asyncio.wait_for(reader.readline(), 50)).split()[1]
            assert status in (b"200", b"400", b"403", b"404", b"413", b"421"), (request, status)
            writer.close()
        assert (await browser.json_of("health/live"))["live"]


@pytest.mark.parametrize("text", ["", "8470", "127.0.0.1", "host:1", "127.0.0.1:x", "[::1]:70000"])
def test_addresses(text: str) -> None:
    with pytest.raises(ConsoleError):
        parse_address(text)
    assert parse_address("[::1]:8470") == ("::1", 8470)


@in_loop
async def test_a_taken_address(folder: Path) -> None:
    async with serving(folder) as (_, desk, browser):
        other = Console(desk.manager, desk.requests.answer, Sessions(None))
        with pytest.raises(ConsoleError, match="cannot listen"):
            await other.start(browser.url.removeprefix("http://").rstrip("/"))


# ---- who may change ----


@in_loop
async def test_a_change_is_made_in_its_user_s_name(folder: Path) -> None:
    async with serving(folder) as (target, desk, browser):
        assert (await browser.json_of("api/session"))["user"] is None
        assert await browser.login() == 204
        assert (await browser.json_of("api/session"))["user"] == "ann"
        answer = await browser.change("pool.pause", 200, await browser.csrf(), pool="default")
        assert answer["result"]["is"] == {"mode": "paused"}
        assert {"name": "default", "mode": "paused"} in told(target)
        by = [keys["by"] for kind, keys in target.changes if kind == Type.POOL]
        assert by == ["ann (console)"]
        row = (await desk.log("pool.pause", least=1))[0]
        assert (row["by"], row["why"]) == ("ann (console)", "a test")
        answer = await browser.change("pool.scale", 409, await browser.csrf(), pool="default")
        assert answer["error"]["code"]
        answer = await browser.change("pool.pause", 404, await browser.csrf(), pool="nix")
        assert answer["error"]["code"] == "no-such-pool"


@in_loop
@patch.object(manager, "JOBS_S", 1000.0)
async def test_jobs_are_for_sessions(folder: Path) -> None:
    """Their names and users are nobody's else; however many look, the target is asked now and then."""
    async with serving(folder) as (target, desk, browser):
        target.jobs = [{"id": "0x10000/0x10001", "name": "secret", "principal": "alice"}]
        await browser.json_of("api/jobs", 401)
        assert target.jobs_asked == 0
        assert await browser.login() == 204
        for _ in range(5):
            found = await browser.json_of("api/jobs")
            assert (found["jobs"], found["pushed"]) == (target.jobs, [])
        assert target.jobs_asked == 1
        await target.stop()
        await until(lambda: desk.target.link.role == "lost")
        desk.manager.jobs_known.clear()
        answer = await browser.json_of("api/jobs", 409)
        assert answer["error"]["code"] == "no-target"


def test_jobs_that_were_given_back() -> None:
    """A target is not trusted: what it says is cut, and is a number where one is due."""
    (job,) = pushed(Reading(snapshot(), {}, up=True))
    assert (job["name"], job["stage"], job["near"], job["client"]) == (
        "count.py",
        "dispatch",
        2.5,
        1.25,
    )
    rows: list[object] = [{"name": "x" * 999, "near": "1", "at_ms": 1e18, "wait": -1}, 7, None]
    found = pushed(Reading({"offload": {"recent": rows * 9}}, {}, up=True))
    assert len(found) == 16
    assert found[0] == {
        "name": "x" * 64,
        "principal": "",
        "pool": "",
        "stage": "",
        "reason": "",
        "at_ms": 8.64e15,
        "near": 0,
        "wait": 0,
        "client": 0,
    }
    nothing: tuple[object, ...] = (None, 7, {"recent": {}}, [])
    for nonsense in nothing:
        assert pushed(Reading({"offload": nonsense}, {}, up=True)) == []


@in_loop
async def test_changes_that_are_refused(folder: Path) -> None:
    async with serving(folder) as (target, _, browser):
        await browser.change("pool.pause", 401, "", pool="default")
        await browser.login()
        csrf = await browser.csrf()
        await browser.change("pool.pause", 403, None, pool="default")
        await browser.change("pool.pause", 403, csrf + "x", pool="default")
        await browser.change("keys.add", 400, csrf, name="me", role="admin", public="x")
        for headers in ({"Origin": "http://evil.example"}, {"Origin": "null"}):
            async with browser.post(
                browser.url + "api/change",
                json={"method": "pool.pause", "params": {"pool": "default"}},
                headers={"X-CSRF-Token": csrf, **headers},
            ) as answer:
                assert answer.status == 403
        for body in (b"", b"[]", b"{", b'"x"', b"x" * 20000):
            async with browser.post(
                browser.url + "api/change", data=body, headers={"X-CSRF-Token": csrf}
            ) as answer:
                assert answer.status in (400, 413)
        async with browser.post(browser.url + "logout", headers={"X-CSRF-Token": csrf}) as answer:
            assert answer.status == 204
        await browser.change("pool.pause", 401, csrf, pool="default")
        assert told(target) == []


@in_loop
async def test_a_session_that_ends_while_its_change_comes(folder: Path) -> None:
    """A user without the token any more cannot keep a request half sent for later."""
    async with serving(folder) as (target, _, browser):
        assert await browser.login() == 204
        headers = {"X-CSRF-Token": await browser.csrf()}
        begun, go_on = asyncio.Event(), asyncio.Event()

        async def body() -> AsyncIterator[bytes]:
            yield b'{"method": "pool.pause", '
            begun.set()
            await go_on.wait()
            yield b'"params": {"pool": "default"}}'

        async def change() -> int:
            url = browser.url + "api/change"
            # The body begins when the server has accepted the headers.
            async with browser.post(url, data=body(), headers=headers, expect100=True) as answer:
                return answer.status

        asked = asyncio.create_task(change())
        await begun.wait()
        (folder / "console.tokens").write_text("bob another-token-of-his-own\n")
        go_on.set()
        assert await asked == 401
        assert told(target) == []


@in_loop
async def test_login(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        assert await browser.login(Origin="http://evil.example") == 403
        assert await browser.login("nobody's") == 403
        async with browser.post(browser.url + "login", data={"token": TOKEN}) as answer:
            cookie = answer.headers["Set-Cookie"]
            assert {"HttpOnly", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        for _ in range(5):
            await browser.login("nobody's")
        async with browser.post(browser.url + "login", data={"token": TOKEN}) as answer:
            assert answer.status == 403
            assert "wait ten seconds" in await answer.text()


@in_loop
async def test_no_body_is_decompressed(folder: Path) -> None:
    """A few bytes would become many."""
    async with serving(folder) as (_, _, browser):
        body = gzip.compress(f"token={TOKEN}".encode())
        headers = {"Content-Encoding": "gzip"}
        async with browser.post(browser.url + "login", data=body, headers=headers) as answer:
            assert (answer.status, "compressed" in await answer.text()) == (400, True)


@in_loop
async def test_no_token_goes_over_a_network(folder: Path) -> None:
    async with serving(folder, "0.0.0.0:0") as (_, _, browser):
        assert (await browser.json_of("api/session"))["login"] is False
        assert await browser.login() == 403


# ---- states as they come ----


@in_loop
async def test_states_come_as_they_are_read(folder: Path) -> None:
    async with serving(folder) as (target, _, browser):
        async with browser.get(browser.url + "api/events") as stream:
            assert stream.headers["Content-Type"] == "text/event-stream"
            seen: list[dict[str, Any]] = []
            depth = {"labels": ["pool"], "rows": [["default", 7.0]]}
            async with asyncio.timeout(50):
                while not seen or seen[-1]["figures"]["iosd_queue_depth"] != depth:
                    line = await stream.content.readline()
                    if line.startswith(b"data: "):
                        seen.append(json.loads(line.removeprefix(b"data: ")))
                        target.pools[0]["queued"] = 7
        assert len({state["serial"] for state in seen}) == len(seen) > 1
        assert seen[-1]["target"]["role"] == "manager"
        assert seen[0]["changes"] == [], "the manager's own doings are not people's"


@in_loop
async def test_history(folder: Path) -> None:
    async with serving(folder) as (_, desk, browser):
        answer = await browser.json_of("api/history?span=3600")
        assert answer["step"] == 10
        now = round(time.time())

        async def minutes(name: str, since: float, step: int, most: int) -> list[dict[str, Any]]:
            """As the store has three days."""
            assert (name, step) == ("t", 720)
            rows = [
                {"at": 1000 * at, "pools": {"default": {"queued": at // 60 % 60, "busy": 1.0}}}
                for at in range(round(since), now, 60)
            ]
            return rows[-most:]

        desk.manager.history = minutes  # type: ignore[method-assign, assignment]
        answer = await browser.json_of("api/history?span=259200")
        assert answer["step"] == 720
        assert 360 <= len(answer["loads"]) <= 362
        assert answer["loads"][0]["at"] / 1000 < now - 258_000
        queued = [row["pools"]["default"]["queued"] for row in answer["loads"]]
        assert max(queued) == 59
        assert (await browser.json_of("api/history?span=x", 400))["error"]


# ---- tokens and sessions ----


def test_tokens_are_kept_from_others(tmp_path: Path, tokens: Path) -> None:
    made = tmp_path / "made"
    make_tokens(made)
    assert made.stat().st_mode & 0o777 == 0o600
    before = made.read_text()
    make_tokens(made)
    assert made.read_text() == before
    assert list(read_tokens(made)) == ["admin"]
    tokens.chmod(0o640)
    with pytest.raises(TokenError, match="chmod 600"):
        read_tokens(tokens)


def test_tokens_that_find_no_room(tmp_path: Path) -> None:
    """A file without a token would be kept by every later start, and nobody could log in."""
    made = tmp_path / "made"
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, limits[1]))
    try:
        with pytest.raises(TokenError, match=f"cannot make {made}: File too large"):
            make_tokens(made)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    make_tokens(made)
    assert list(read_tokens(made)) == ["admin"]


@pytest.mark.parametrize("text", ["", "ann\n", "ann short\n", "a/b " + "x" * 20, "\n# only\n"])
def test_files_that_are_wrong(text: str, tokens: Path) -> None:
    tokens.write_text(text)
    with pytest.raises(TokenError):
        read_tokens(tokens)


def test_sessions_end(tokens: Path) -> None:
    sessions = Sessions(tokens)
    found = sessions.login(f" {TOKEN}\n", 100.0)
    assert found
    cookie = found[0]
    assert sessions.find(cookie, 100.0 + IDLE_S - 1) is not None
    assert sessions.find(cookie, 100.0 + 2 * IDLE_S + 1) is None
    assert sessions.find(cookie, 101.0) is None
    found = sessions.login(TOKEN, 0.0)
    assert found
    for at in range(0, int(MOST_S) + 1, int(IDLE_S)):
        assert sessions.find(found[0], float(at))
    assert sessions.find(found[0], MOST_S + 1) is None
    for cookie in ("", "x", "\udc80"):
        assert sessions.find(cookie, 0.0) is None


def test_a_session_ends_with_its_token(tokens: Path) -> None:
    sessions = Sessions(tokens)
    found = sessions.login(TOKEN, 0.0)
    assert found and sessions.find(found[0], 1.0)
    tokens.write_text(tokens.read_text().replace(TOKEN, f"{TOKEN}-changed"))
    assert sessions.find(found[0], 2.0) is None


def test_there_is_room_for_so_many_sessions(tokens: Path) -> None:
    sessions = Sessions(tokens)
    first = sessions.login(TOKEN, 0.0)
    for at in range(64):
        assert sessions.login(TOKEN, float(at))
    assert first
    assert sessions.find(first[0], 64.0) is None
    assert len(sessions.sessions) == 64


def test_guessing_is_slow(tokens: Path) -> None:
    sessions = Sessions(tokens)
    for at in range(5):
        assert sessions.login("wrong", float(at)) is None
    with pytest.raises(TokenError):
        sessions.login(TOKEN, 5.0)
    assert sessions.login(TOKEN, WRONG_S + 1)
