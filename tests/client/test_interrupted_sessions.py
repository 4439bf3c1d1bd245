# SPDX-License-Identifier: GPL-2.0-or-later
"""Sessions whose commands, logins and ends are interrupted: nothing stays open, and what goes on works."""

from __future__ import annotations

import asyncio
import gc
import signal
import socket
import subprocess
import sys
import threading
import warnings
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from itertools import count
from math import inf, nan
from pathlib import Path
from types import FrameType
from typing import Any

import pytest

from pyosd import aio, connect, ref, requests
from pyosd.cluster.at_once import at_once
from pyosd.commands.async_unit import AsyncCommands
from pyosd.commands.dialogue import Dialogue, finish, start
from pyosd.errors import SessionLost, Unreachable
from pyosd.iscsi import connection
from pyosd.iscsi.connection import Connection
from pyosd.wire.transport import Command, Response
from tests.client.fake_target import FakeTarget, Peer, held_port

DEADLINE_S = 30
READ = b"\x88\x85"


class Ends:
    """A target whose connections do one after the other what the test says.  closed: one has ended."""

    def __init__(self, *scripts: Callable[[Peer], None]) -> None:
        self.scripts = iter(scripts)
        self.closed = threading.Event()

    def __call__(self, peer: Peer) -> None:
        next(self.scripts)(peer)
        with suppress(ConnectionError):
            while True:
                peer.receive()
        self.closed.set()


def silent(peer: Peer) -> None:
    """Answer nothing."""


def answer_once(peer: Peer) -> None:
    peer.status(peer.receive().tag)


def drop(peer: Peer) -> None:
    """Close the connection at the first command."""
    peer.receive()
    peer.sock.shutdown(2)


@pytest.fixture
def port() -> Iterator[int]:
    """Of a target that goes; nobody else comes there."""
    with held_port() as held:
        yield held


def test_a_close_that_is_cancelled_closes() -> None:
    ends = Ends(silent)

    async def main(url: str) -> None:
        target = await aio.connect(url)
        closing = asyncio.create_task(target.close())
        await asyncio.sleep(0)
        closing.cancel()
        with suppress(asyncio.CancelledError):
            await closing
        assert await asyncio.to_thread(ends.closed.wait, DEADLINE_S)

    with FakeTarget(ends) as fake:
        asyncio.run(main(fake.url))


def test_a_login_that_is_cancelled_leaves_no_thread_behind() -> None:
    """A target that TCP does not reach holds up neither the loop nor the end of the program."""

    async def main(url: str) -> None:
        connecting = asyncio.create_task(aio.connect(url, timeout=36_000)._connect())
        await asyncio.wait([connecting], timeout=0.2)
        connecting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await connecting

    with ExitStack() as stack:
        full = stack.enter_context(socket.create_server(("127.0.0.1", 0), backlog=0))
        place = full.getsockname()
        for _ in range(3):  # more than wait to be accepted: the kernel answers no others
            client = stack.enter_context(socket.socket())
            client.setblocking(False)
            client.connect_ex(place)
        url = f"iscsi://127.0.0.1:{place[1]}/iqn.2026-11.org.iosd:fake/1"
        program = threading.Thread(target=asyncio.run, args=(main(url),), daemon=True)
        program.start()
        program.join(DEADLINE_S)
        assert not program.is_alive()


@pytest.mark.parametrize("options", [{"timeout": 0}, {"timeout": nan}, {"reconnect_timeout": -1}])
def test_a_time_out_that_is_none(options: dict[str, float]) -> None:
    (name,) = options
    faces: list[Any] = [connect, aio.connect]
    for log_in in faces:
        with pytest.raises(ValueError, match=f"{name} is"):
            log_in("iscsi://127.0.0.1:1/iqn.2026-11.org.iosd:fake/1", **options)


def test_a_session_that_nobody_closes_keeps_no_descriptors() -> None:
    def log_in(url: str) -> None:
        connect(url).test_unit_ready()

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ResourceWarning)
        gc.collect()  # sessions of earlier tests would go meanwhile
        before = len([*Path("/dev/fd").iterdir()])
        with FakeTarget(answer_once) as fake:
            for _ in range(3):
                log_in(fake.url)
                gc.collect()
    assert len([*Path("/dev/fd").iterdir()]) == before


def test_a_wait_without_an_end() -> None:
    with FakeTarget(answer_once) as fake, connect(fake.url, timeout=inf) as target:
        target.test_unit_ready()


def test_a_session_serves_one_event_loop() -> None:
    """In another one, answers would not come; the session can be closed there."""
    ends = Ends(silent)

    async def ask(target: aio.AsyncTarget) -> None:
        for call in (target.test_unit_ready, target.ping):
            with pytest.raises(RuntimeError, match="belongs to another event loop"):
                await call()
        await target.close()

    async def log_in(url: str) -> aio.AsyncTarget:
        return await aio.connect(url)

    with FakeTarget(ends) as fake:
        asyncio.run(ask(asyncio.run(log_in(fake.url))))
        assert ends.closed.wait(DEADLINE_S)


def test_a_close_that_is_interrupted_closes(monkeypatch: pytest.MonkeyPatch) -> None:
    ends = Ends(silent)

    def interrupted(*_: object) -> object:
        raise KeyboardInterrupt

    with FakeTarget(ends) as fake:
        target = connect(fake.url)
        monkeypatch.setattr(Connection, "plain_answer", interrupted)
        with pytest.raises(KeyboardInterrupt):
            target.close()
        assert ends.closed.wait(DEADLINE_S)


def test_a_session_that_comes_back_after_the_close_ends() -> None:
    coming, go_on = threading.Event(), threading.Event()

    def late(peer: Peer) -> None:
        coming.set()
        assert go_on.wait(DEADLINE_S)
        peer.login()

    def first(peer: Peer) -> None:
        peer.login()
        drop(peer)

    ends = Ends(first, late)

    async def main(url: str) -> None:
        target = await aio.connect(url)
        asking = asyncio.create_task(target.test_unit_ready())
        assert await asyncio.to_thread(coming.wait, DEADLINE_S)
        ends.closed.clear()
        await target.close()
        go_on.set()
        with pytest.raises(SessionLost, match="closed"):
            await asking
        assert await asyncio.to_thread(ends.closed.wait, DEADLINE_S)

    with FakeTarget(ends, honest_login=False) as fake:
        asyncio.run(main(fake.url))


def test_a_close_ends_the_wait_for_a_session(port: int) -> None:
    """A thread that would connect for hours gives up, and close() returns."""
    fake = FakeTarget(drop, port=port)
    target = connect(fake.url, reconnect_timeout=36_000)
    fake.cut()
    fake.close()
    failure = list[BaseException]()

    def ask() -> None:
        try:
            target.test_unit_ready()
        except SessionLost as error:
            failure.append(error)

    asking = threading.Thread(target=ask, daemon=True)
    asking.start()
    while not target._iscsi._connection.failed:
        asking.join(0.01)
    closing = threading.Thread(target=target.close, daemon=True)
    closing.start()
    for thread in (closing, asking):
        thread.join(DEADLINE_S)
        assert not thread.is_alive()
    assert "closed" in str(failure[0])


class Crowd:
    """A lock that says how many have come.  full: all of them."""

    def __init__(self, size: int) -> None:
        self.lock, self.full = threading.Lock(), threading.Event()
        self.size, self.came = size, list[None]()

    def __enter__(self) -> None:
        self.came.append(None)
        if len(self.came) >= self.size:
            self.full.set()
        self.lock.acquire()

    def __exit__(self, *_: object) -> None:
        self.lock.release()


def test_threads_that_wait_for_a_lost_session_fail_with_it(
    port: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one that tries to connect waits, and the others do not begin to wait when it gives up."""
    fake = FakeTarget(drop, port=port)
    target = connect(fake.url, reconnect_timeout=0)
    fake.cut()
    fake.close()
    with pytest.raises(Unreachable):
        target.test_unit_ready()
    crowd, attempts = Crowd(3), list[int]()
    reconnect = target._iscsi._reconnect

    def counted(since: float) -> Connection:
        assert crowd.full.wait(DEADLINE_S)
        attempts.append(1)
        return reconnect(since)

    monkeypatch.setattr(target._iscsi, "_lock", crowd)
    monkeypatch.setattr(target._iscsi, "_reconnect", counted)
    ends = at_once(lambda _: target.test_unit_ready(), "abc")
    assert all(isinstance(each.exception(), Unreachable) for each in ends.values())
    assert len(attempts) == 1
    with pytest.raises(Unreachable):  # a later command tries again
        target.test_unit_ready()
    assert len(attempts) == 2
    target.close()


def test_an_interrupt_between_sending_and_noting_a_command(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The answer of nobody's command is dropped, and the session goes on."""
    register = Connection._register

    def interrupted(*_: Any) -> None:
        monkeypatch.setattr(Connection, "_register", register)
        raise KeyboardInterrupt

    def both(peer: Peer) -> None:
        answer_once(peer)
        answer_once(peer)
        answer_once(peer)

    with FakeTarget(both) as fake, connect(fake.url) as target:
        monkeypatch.setattr(Connection, "_register", interrupted)
        with pytest.raises(KeyboardInterrupt):
            target.test_unit_ready()
        target.test_unit_ready()
        target.test_unit_ready()


class Interrupts:
    """Profiles this thread, and interrupts it in connection.py at the call with this number.

    There, at the beginning of a function and when one of C returns, Python handles signals.  The end of an
    earlier test's session may come at any time, and does not count.
    """

    def __init__(self, number: int) -> None:
        self.left = number

    def __call__(self, frame: FrameType, event: str, _: object) -> None:
        code = frame.f_code
        if code is Connection.__del__.__code__ or code.co_filename != connection.__file__:
            return
        if event in ("call", "c_return"):
            self.left -= 1
            if not self.left:
                sys.setprofile(None)
                raise KeyboardInterrupt

    def interrupt(self, call: Callable[[], object]) -> bool:
        """Call it.  Returns: whether it was interrupted."""
        sys.setprofile(self)
        try:
            call()
        except KeyboardInterrupt:
            return True
        finally:
            sys.setprofile(None)
        return False


@pytest.mark.parametrize("leads", [True, False])
def test_an_interrupt_anywhere_leaves_others_their_answers(leads: bool) -> None:
    """The thread that is interrupted polls, or waits for the one that does."""
    came = threading.Semaphore(0)

    def answer(peer: Peer) -> None:
        """A READ is answered when the next other command comes."""
        peer.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        held = list[int]()
        while (pdu := peer.receive()).opcode == 1:
            if pdu.bhs[40:42] == READ:
                held.append(pdu.tag)
                came.release()
                continue
            while held:
                peer.data_in(held.pop(), b"x")
            peer.status(pdu.tag)
        peer.send(peer.header(0x26, 0x80, pdu.tag))  # of a logout

    with FakeTarget(answer) as fake, connect(fake.url, timeout=DEADLINE_S) as target:
        own = target._iscsi._connection
        for number in count(1):
            reading = target.submit(requests.read(ref(0x10000, 0x10000), 0, 1))
            assert came.acquire(timeout=DEADLINE_S)
            with ThreadPoolExecutor(1) as pool:
                read = pool.submit(reading.reply) if not leads else None
                while not leads and not own._leader:
                    pass
                interrupted = Interrupts(number).interrupt(target.test_unit_ready)
                target.test_unit_ready()
                reply = read.result(DEADLINE_S) if read else reading.reply()
            assert bytes(reply.data) == b"x"
            assert not own._lock.locked() and not own._leader
            if not interrupted:
                break
    assert number > 10


def test_what_was_started_can_be_finished_after_a_cancellation() -> None:
    """A dialogue that is cancelled while it waits learns how its commands ended, and puts things right."""
    heard = list[bool]()

    class Slow:
        def __init__(self) -> None:
            self.gate = asyncio.Event()

        async def execute(self, command: Command, timeout: float | None = None) -> Response:
            await self.gate.wait()
            return Response(0)

        async def close(self) -> None:
            """Nothing is open."""

    def dialogue() -> Dialogue[None]:
        started = yield from start(requests.flush(ref(0x10000, 0x10000)))
        try:
            yield from finish(started)
        except asyncio.CancelledError:
            reply = yield from finish(started)
            heard.append(reply.error is None)
            raise

    async def main() -> None:
        slow = Slow()
        task = asyncio.create_task(AsyncCommands(slow).carry(dialogue()))
        for _ in range(3):
            await asyncio.sleep(0)
        task.cancel()
        await asyncio.sleep(0)
        slow.gate.set()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    assert heard == [True]


FORKED = """
import os, sys, threading, pyosd
target, obj = pyosd.connect(sys.argv[1]), pyosd.ref(0x10000, 0x10000)
# A thread waits for an answer that does not come, and polls the socket.
threading.Thread(target=target.read, args=(obj, 0, 1), daemon=True).start()
while not target._iscsi._connection._leader:
    pass
child = os.fork()
if child:
    os.waitpid(child, 0)
read = "".join(bytes(target.read(obj, 0, 1)).decode() for _ in range(3))
print("parent" if child else "child", read, flush=True)
if not child:
    target.close()
os._exit(0)
"""


def test_a_forked_child_has_a_session_of_its_own() -> None:
    """On the parent's, each of the two would take answers of the other."""

    def answer_reads(peer: Peer, data: bytes) -> None:
        for _ in range(3):
            peer.data_in(peer.receive().tag, data)

    def parent_and_child(peer: Peer) -> None:
        peer.receive()
        sock, _ = fake._listener.accept()
        with sock:
            child = Peer(sock)
            child.login()
            answer_reads(child, b"c")
            logout = child.receive()
            child.send(child.header(0x26, 0x80, logout.tag))
        answer_reads(peer, b"p")

    with FakeTarget(parent_and_child) as fake:
        command = [sys.executable, "-c", FORKED, fake.url]
        done = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, check=False)
    assert done.stderr == b""
    assert done.stdout.splitlines() == [b"child ccc", b"parent ppp"]


def test_an_interrupt_waits_for_no_target() -> None:
    """One of several targets that does not answer keeps its thread, and not the program."""
    go_on, here = threading.Event(), threading.main_thread().ident
    assert here is not None

    def work(name: str) -> None:
        signal.pthread_kill(here, signal.SIGINT)
        assert go_on.wait(DEADLINE_S)

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        with pytest.raises(KeyboardInterrupt):
            at_once(work, ["silent"])
    finally:
        signal.signal(signal.SIGINT, before)
    waiting = [each for each in threading.enumerate() if each.name == "pyosd-silent"]
    assert waiting
    go_on.set()
    for each in waiting:
        each.join()
