# SPDX-License-Identifier: GPL-2.0-or-later
"""A target's end of the control socket that does what a real one cannot be made to: other versions,
nonsense, silence.  Its correct behaviour is described in docs/control.md."""

from __future__ import annotations

import asyncio
import contextlib
import json
import socket
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

from iosd_host.control.messages import FRAME_MAX, SCHEMA, Frame, Type, decode, encode

Bend = Callable[[Frame, bytes], bytes | None]
"""Bytes instead of an answer; None: none."""


class Peer:
    """A connection."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.interval = 0.0

    async def send(self, packet: bytes) -> None:
        with contextlib.suppress(OSError):
            await asyncio.get_running_loop().sock_sendall(self.connection, packet)


class FakeTarget:
    """Attributes: changes: what it was told.  bend: spoils answers.  refuse: code and message by type.
    refused: how often it did.

    Its manager stays as long as it is connected: a test that is paused says nothing, either."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.boot = "b1"
        self.changes: list[tuple[Type, dict[str, str]]] = []
        self.bend: Bend = lambda frame, answer: answer
        self.refuse: dict[Type, tuple[str, str]] = {}
        self.refused = 0
        self.manager: Peer | None = None
        self.peers: list[Peer] = []
        self.tasks: set[asyncio.Task[None]] = set()
        self.listener: socket.socket | None = None
        self.at = 100.0
        self.workers = {"count": 2, "busy": 0, "queued": 0, "oldest": 0.0}
        self.pools = [pool("default")]
        self.slots = 64
        self.principals: list[dict[str, Any]] = []
        self.jobs: list[dict[str, Any]] = []
        self.jobs_asked = 0

    def start(self) -> None:
        """Listen; a new run if it was stopped."""
        self.path.unlink(missing_ok=True)
        kind = socket.SOCK_SEQPACKET | socket.SOCK_NONBLOCK
        self.listener = socket.socket(socket.AF_UNIX, kind)
        self.listener.bind(str(self.path))
        self.listener.listen(8)
        self._spawn(self._accept(self.listener))

    def _spawn(self, work: Any) -> None:
        task = asyncio.create_task(work)
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    async def stop(self) -> None:
        """Gone, with every connection."""
        tasks, self.tasks = self.tasks, set()
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for peer in self.peers:
            peer.connection.close()
        self.peers, self.manager = [], None
        if self.listener is not None:
            self.listener.close()
            self.path.unlink(missing_ok=True)

    async def _accept(self, listener: socket.socket) -> None:
        while True:
            connection, _ = await asyncio.get_running_loop().sock_accept(listener)
            peer = Peer(connection)
            self.peers.append(peer)
            self._spawn(self._serve(peer))
            self._spawn(self._push(peer))

    async def _push(self, peer: Peer) -> None:
        while True:
            await asyncio.sleep(peer.interval or 0.01)
            if peer.interval:
                self.at += peer.interval
                await self._show(peer)

    async def _show(self, peer: Peer) -> None:
        await self.answer(peer, Frame(Type.SNAPSHOT, 0), Type.SNAPSHOT_IS, **self.snapshot())

    async def _serve(self, peer: Peer) -> None:
        loop = asyncio.get_running_loop()
        with contextlib.suppress(ConnectionError):
            while packet := await loop.sock_recv(peer.connection, FRAME_MAX + 1):
                frame = decode(packet)
                lines = frame.payload.decode().splitlines()
                await self._do(peer, frame, dict(line.split("=", 1) for line in lines))
        self._leave(peer)

    def _leave(self, peer: Peer) -> None:
        peer.interval = 0.0
        if self.manager is peer:
            self.manager = None

    async def _do(self, peer: Peer, frame: Frame, keys: dict[str, str]) -> None:
        kind = Type(frame.type)
        if kind == Type.HELLO:
            self.manager = self.manager or peer
            role = "manager" if self.manager is peer else "standby"
            other = None if role == "manager" else "another one"
            fields = {"version": 1, "role": role, "boot": self.boot, "manager": other}
            await self.answer(peer, frame, Type.WELCOME, **fields)
        elif kind in self.refuse:
            code, message = self.refuse[kind]
            self.refused += 1
            await self.answer(peer, frame, Type.ERROR, code=code, message=message)
        elif kind == Type.WATCH:
            peer.interval = int(keys["interval_ms"]) / 1000
            await self.answer(peer, frame, Type.OK)
        elif kind == Type.SNAPSHOT:
            await self.answer(peer, frame, Type.SNAPSHOT_IS, **self.snapshot())
        elif kind == Type.JOBS:
            self.jobs_asked += 1
            await self.answer(peer, frame, Type.JOBS_ARE, jobs=self.jobs)
        elif kind == Type.USAGE:
            await self.answer(peer, frame, Type.USAGE_IS, **self.usage(keys.get("after", "")))
        elif kind == Type.POOL and self._slots(keys) > self.slots:
            words = {"code": "bad-value", "message": f"beyond {self.slots} slots"}
            await self.answer(peer, frame, Type.ERROR, **words)
        elif self.manager is not peer:
            words = {"code": "not-manager", "message": "another one is"}
            await self.answer(peer, frame, Type.ERROR, **words)
        else:
            self.changes.append((kind, keys))
            self._change(kind, keys)
            if peer.interval:  # the next snapshot may come before the answer
                await self._show(peer)
            await self.answer(peer, frame, Type.OK)

    def _slots(self, keys: dict[str, str]) -> int:
        """Of all pools, after that change."""
        other = [each["max"] for each in self.pools if each["name"] != keys["name"]]
        [mine] = [each["max"] for each in self.pools if each["name"] == keys["name"]] or [0]
        return int(sum(other) + int(keys.get("max", mine)))

    def _change(self, kind: Type, keys: dict[str, str]) -> None:
        if kind == Type.WORKERS:
            self.workers["count"] = int(keys["count"])
        for each in self.pools:
            if kind == Type.POOL and each["name"] == keys["name"]:
                words = {key: int(value) for key, value in keys.items() if value.isdigit()}
                each |= {key: value for key, value in words.items() if key in each}
                each["mode"] = keys.get("mode", each["mode"])

    def usage(self, after: str) -> dict[str, Any]:
        """Two principals a page."""
        rows = [each for each in self.principals if each["name"] > after]
        return {"principals": rows[:2], "more": len(rows) > 2}

    def snapshot(self) -> dict[str, Any]:
        target = {"boot": self.boot, "monotonic": round(self.at, 6)}
        return {
            "target": target,
            "workers": self.workers,
            "pools": self.pools,
            "shedding": False,
        }

    async def answer(self, peer: Peer, frame: Frame, kind: Type, **fields: Any) -> None:
        payload = json.dumps({"schema": SCHEMA, **fields}).encode()
        packet = self.bend(frame, encode(Frame(kind, frame.serial, payload)))
        if packet is not None:
            await peer.send(packet)


def pool(name: str, **values: Any) -> dict[str, Any]:
    """A pool at rest."""
    return {
        "name": name,
        "mode": "running",
        "serving": True,
        "min": 1,
        "max": 4,
        "active": 1,
        "busy": 0,
        "warm_spare": 2,
        "ready": 2,
        "warming": 0,
        "queued": 0,
        "places": 0,
        "jobs": 0,
        "oldest": 0.0,
        "arrived": 0,
        "started": 0,
        "ended": 0,
        "run_seconds": 0.0,
        "warm_seconds": 0.01,
        "memory_per_slot": 1 << 28,
        **values,
    }


@asynccontextmanager
async def faked(folder: Path) -> AsyncIterator[FakeTarget]:
    """One that listens, and is gone at the end."""
    target = FakeTarget(folder / "target")
    target.start()
    try:
        yield target
    finally:
        await target.stop()


async def until(condition: Callable[[], Any], timeout: float = 50.0) -> None:
    """Wait for it."""
    async with asyncio.timeout(timeout):
        while not condition():
            await asyncio.sleep(0.005)
