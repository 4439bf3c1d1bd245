# SPDX-License-Identifier: GPL-2.0-or-later
"""The link to a target: it comes up again, keeps the target ours, and survives what it is sent."""

from __future__ import annotations

import asyncio
import logging
import os
import struct
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from iosd_host.control.link import LOST, MANAGER, STANDBY, Link, LinkLost, NoAnswer, Timing
from iosd_host.control.messages import Frame, FrameError, TargetError, Type, encode
from tests.manager.fake_target import FakeTarget, faked, until
from tests.manager.test_server import in_loop

QUICK = Timing(hello=0.02, watch=0.02, answer=30.0, again=0.01, again_most=0.05)
IMPATIENT = replace(QUICK, answer=0.3)
"""Where an answer does not come.  Elsewhere this host may pause the test for as long."""


@asynccontextmanager
async def linked(path: Path, timing: Timing = QUICK) -> AsyncIterator[tuple[Link, list[Any]]]:
    heard: list[Any] = []
    link = Link(path, "test", heard.append, timing)
    running = asyncio.create_task(link.run())
    try:
        yield link, heard
    finally:
        assert not running.done()
        running.cancel()
        with suppress(asyncio.CancelledError):
            await running


@in_loop
async def test_watches_and_asks(folder: Path) -> None:
    async with faked(folder) as target, linked(target.path) as (link, heard):
        await until(lambda: len(heard) > 3)
        assert (link.role, link.boot, link.trouble) == (MANAGER, "b1", "")
        assert heard[-1]["target"]["boot"] == "b1"
        await link.request(Type.POOL, name="default", active=3, by="me", why="a test")
        assert target.changes == [
            (Type.POOL, {"name": "default", "active": "3", "by": "me", "why": "a test"})
        ]
        target.refuse[Type.POOL] = ("bad-value", "no")
        with pytest.raises(TargetError, match="no"):
            await link.request(Type.POOL, name="default", active=99)
        with pytest.raises(FrameError):
            await link.request(Type.POOL, name="a\nactive=3")
        assert link.role == MANAGER


@in_loop
async def test_comes_up_again(folder: Path) -> None:
    async with faked(folder) as target, linked(target.path) as (link, heard):
        await until(lambda: link.role == MANAGER)
        await target.stop()
        await until(lambda: link.role == LOST)
        with pytest.raises(LinkLost, match=r"cannot connect|closed|lost"):
            await link.request(Type.WORKERS, count=2)
        target.boot = "b2"
        target.start()
        await until(lambda: link.role == MANAGER)
        assert link.boot == "b2"
        heard.clear()
        await until(lambda: any(heard))


@in_loop
async def test_stands_by_and_takes_over(folder: Path) -> None:
    async with faked(folder) as target, linked(target.path) as (one, _):
        await until(lambda: one.role == MANAGER)
        async with linked(target.path) as (two, heard):
            await until(lambda: two.role == STANDBY)
            await until(lambda: any(heard))  # it looks all the same
            with pytest.raises(TargetError, match="not-manager"):
                await two.request(Type.WORKERS, count=2)
            assert target.manager
            target._leave(target.manager)  # as if it had not been heard of
            two.demoted()
            await until(lambda: MANAGER in (one.role, two.role))
            assert target.changes == []


@in_loop
async def test_a_target_that_hangs(folder: Path) -> None:
    async with faked(folder) as target, linked(target.path, IMPATIENT) as (link, _):
        await until(lambda: link.role == MANAGER)
        target.bend = lambda frame, answer: None
        with pytest.raises(NoAnswer):
            await link.request(Type.WORKERS, count=2)
        await until(lambda: link.role == LOST)
        target.bend = lambda frame, answer: answer
        await until(lambda: link.role == MANAGER)


VERSION_2 = struct.pack(">4sHHII", b"OSDC", 2, 100, 1, 0)
NONSENSE = {
    "another version": (VERSION_2, "another release"),
    "random": (os.urandom(100), "nonsense"),
    "short": (b"OSDC", "nonsense"),
    "long": (b"x" * ((128 << 10) + 1), "nonsense"),
    "length": (encode(Frame(Type.OK, 1, b"{}")) + b"!", "nonsense"),
    "no JSON": (encode(Frame(Type.SNAPSHOT_IS, 0, b"[" * 50_000)), "nonsense"),
    "another schema": (encode(Frame(Type.SNAPSHOT_IS, 0, b'{"schema": "x"}')), "nonsense"),
    "a request": (encode(Frame(Type.HELLO, 77, b"")), "nonsense"),
    "an error": (
        encode(Frame(Type.ERROR, 0, b'{"schema":"iosd.control/1","code":"version","message":"3"}')),
        "refuses us",
    ),
}


@pytest.mark.parametrize("name", NONSENSE)
def test_nonsense_is_survived_and_told(
    name: str, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    packet, words = NONSENSE[name]
    tries: list[Frame] = []

    def bend(frame: Frame, answer: bytes) -> bytes | None:
        tries.append(frame)
        return packet

    async def run() -> None:
        async with faked(tmp_path) as target, linked(target.path) as (link, _):
            await until(lambda: link.role == MANAGER)
            target.bend = bend
            await until(lambda: link.role == LOST)
            assert words in link.trouble
            more = len(tries) + 3  # and no more words
            await until(lambda: len(tries) >= more)
            target.bend = lambda frame, answer: answer
            await until(lambda: link.role == MANAGER)

    with caplog.at_level(logging.INFO):
        asyncio.run(run())
    told = [each for each in caplog.records if each.levelname == "WARNING"]
    assert len(told) == 1


@in_loop
async def test_wrong_welcome(folder: Path) -> None:
    async with faked(folder) as target:
        target.boot = ""
        async with linked(target.path) as (link, _):
            await until(lambda: "WELCOME" in link.trouble)
            target.boot = "b1"
            await until(lambda: link.role == MANAGER)


@in_loop
async def test_late_answers_are_nobodys(folder: Path) -> None:
    async with faked(folder) as target, linked(target.path) as (link, _):
        await until(lambda: link.role == MANAGER)
        held: list[tuple[FakeTarget, bytes]] = []

        def hold(frame: Frame, answer: bytes) -> bytes | None:
            if frame.type != Type.WORKERS:
                return answer
            held.append((target, answer))
            return None

        target.bend = hold
        asked = asyncio.create_task(link.request(Type.WORKERS, count=2))
        await until(lambda: held)
        asked.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asked
        assert target.manager
        await target.manager.send(held[0][1])
        target.bend = lambda frame, answer: answer
        await link.request(Type.WORKERS, count=3)
        assert link.role == MANAGER
