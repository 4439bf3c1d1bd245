# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's HTTP end without a browser: figures, health, who may look and who may change."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import aiohttp
import pytest
from prometheus_client.parser import text_string_to_metric_families

from scheduler.admin.console import Console, ConsoleError, Sessions, TokenError, make_tokens
from scheduler.admin.console.app import may_be_named, parse_address
from scheduler.admin.console.sessions import IDLE_S, MOST_S, WRONG_S, read_tokens
from scheduler.messages import Type
from tests.manager.fake_target import FakeTarget, faked, until
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
        assert seen[-1]["target"]["role"] == "manager"
        assert seen[0]["changes"][-1]["what"] == "link"


@in_loop
async def test_history(folder: Path) -> None:
    async with serving(folder) as (_, _, browser):
        answer = await browser.json_of("api/history?span=3600")
        assert answer["step"] == 10
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
