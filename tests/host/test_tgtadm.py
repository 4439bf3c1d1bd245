# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to a tgtd that answers late, wrongly or never: an error in time, and the event loop runs on."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Awaitable, Callable
from contextlib import ExitStack
from pathlib import Path

import pytest

from iosd_host.serve.tgtadm import ANSWER, NO_ANSWER, NO_TARGET, REQUEST, TgtAdm, TgtError
from tests.waiting import DEADLINE_S

Answer = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


async def asked(place: Path, answer: Answer) -> str:
    """The answer to `show target` of a tgtd that does `answer` with each connection."""
    server = await asyncio.start_unix_server(answer, f"{place}.1")
    async with server:
        return await TgtAdm(str(place), answer_s=DEADLINE_S).ask("show", "target")


def test_an_answer_in_pieces(tmp_path: Path) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        request = await reader.readexactly(REQUEST.size)
        assert REQUEST.unpack(request)[3] == len(request)
        writer.write(ANSWER.pack(0, ANSWER.size + 6)[:5])
        await writer.drain()
        writer.write(ANSWER.pack(0, ANSWER.size + 6)[5:] + b"one")
        await writer.drain()
        writer.write(b"two")
        writer.close()

    assert asyncio.run(asked(tmp_path / "s", answer)) == "onetwo"


@pytest.mark.parametrize(
    ("error", "length", "number", "why"),
    [
        (NO_TARGET, 0, NO_TARGET, "can't find the target"),
        (999, 0, 999, "error 999"),
        (0, 100, NO_ANSWER, "no answer"),
        (0, 1 << 31, NO_ANSWER, r".*an answer of 2147483656 bytes"),
    ],
    ids=["refused", "an unknown error", "an answer that is cut", "one that fills the memory"],
)
def test_errors(tmp_path: Path, error: int, length: int, number: int, why: str) -> None:
    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readexactly(REQUEST.size)
        writer.write(ANSWER.pack(error, ANSWER.size + length))
        writer.close()

    with pytest.raises(TgtError, match=f"'show target' to tgtd: {why}") as caught:
        asyncio.run(asked(tmp_path / "s", answer))
    assert caught.value.number == number


def test_no_answer_is_an_error_in_time(tmp_path: Path) -> None:
    tgtd = TgtAdm(str(tmp_path / "s"), answer_s=0.1)
    with pytest.raises(TgtError, match="No such file"):
        asyncio.run(tgtd.ask("show", "target"))
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(f"{tmp_path / 's'}.1")
        listener.listen()
        with pytest.raises(TgtError, match=r"no answer within 0\.1 s") as caught:
            asyncio.run(tgtd.ask("show", "target"))
    assert caught.value.number == NO_ANSWER


def test_a_full_queue_does_not_stop_the_event_loop(tmp_path: Path) -> None:
    """Connections wait until tgtd takes some of them; the loop runs on."""

    async def ask() -> str:
        with ExitStack() as stack:
            listener = stack.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(f"{tmp_path / 's'}.1")
            listener.listen(0)
            first = stack.enter_context(socket.socket(socket.AF_UNIX))
            first.connect(listener.getsockname())
            request = asyncio.create_task(
                TgtAdm(str(tmp_path / "s"), answer_s=DEADLINE_S).ask("show", "target")
            )
            await asyncio.sleep(0)  # it has tried once
            assert not request.done()
            stack.enter_context(listener.accept()[0])
            listener.setblocking(False)
            accepted, _ = await asyncio.get_running_loop().sock_accept(listener)
            stack.enter_context(accepted).sendall(ANSWER.pack(0, ANSWER.size + 2) + b"ok")
            return await request

    assert asyncio.run(ask()) == "ok"


def test_a_start_asks_until_tgtd_answers(tmp_path: Path) -> None:
    """An error of one of these requests ended the watcher of tgtd, which was not started again."""
    text, failures = b"Portal: 127.0.0.1:3260,1\n", 2

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        nonlocal failures
        await reader.readexactly(REQUEST.size)
        if failures:
            failures -= 1
        else:
            writer.write(ANSWER.pack(0, ANSWER.size + len(text)) + text)
        writer.close()

    async def start() -> list[tuple[str, int]]:
        async with await asyncio.start_unix_server(answer, f"{tmp_path / 's'}.1"):
            tgtd = TgtAdm(str(tmp_path / "s"), answer_s=DEADLINE_S)
            return await asyncio.wait_for(tgtd.first_portals(), DEADLINE_S)

    assert asyncio.run(start()) == [("127.0.0.1", 3260)]
    assert failures == 0
