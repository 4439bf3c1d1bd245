# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager's ZeroMQ end: a ROUTER socket with CURVE, and the check of clients' keys.

A connection is refused unless keys.py knows the client's key (ZAP, RFC 27).  The function given answers
requests.  Not here: the meaning of requests (requests.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import stat
from collections.abc import Sequence
from pathlib import Path

import zmq
import zmq.asyncio
from zmq.utils import z85

from iosd_host.common.rate_limited_log import Limited
from iosd_host.manager.keys import NOBODY, Answer, ClientKeys, CurvePair, KeyHolder

__all__ = ["MESSAGE_MOST", "Server", "ServerError", "make_pair"]

LOG = logging.getLogger("iosd.server")

MESSAGE_MOST = 65536  # of a request; a change of a pool is hundreds of bytes
QUEUED_MOST = 128  # requests of one connection
# Answers of one connection: ROUTER drops more.  ZeroMQ's own thread empties the queue, and does not run for
# a while on a busy host.
ANSWERS_MOST = 1024
AT_ONCE = 32  # requests; the rest waits in the sockets' queues
DOMAIN = b"iosd"
ZAP = "inproc://zeromq.zap.01"
HANDSHAKE_MS = 5000
STALE_MS = 30_000  # a connection that shows no life for so long is closed


class ServerError(Exception):
    """It cannot listen; the text says why."""


def make_pair() -> CurvePair:
    """A new pair of keys."""
    public, secret = zmq.curve_keypair()
    return CurvePair(public.decode("ascii"), secret.decode("ascii"))


class Server:
    """One socket on any number of endpoints.  One event loop, which is that of `run`."""

    def __init__(self, keys: ClientKeys, answer: Answer) -> None:
        self.keys = keys
        self.answer = answer
        self.bad = Limited(LOG)
        self.context = zmq.asyncio.Context()
        self.zap = self.context.socket(zmq.REP)
        self.zap.bind(ZAP)
        self.router = self.context.socket(zmq.ROUTER)
        assert keys.server.secret is not None
        for option, value in (
            (zmq.CURVE_SECRETKEY, keys.server.secret.encode()),
            (zmq.CURVE_SERVER, 1),
            (zmq.ZAP_DOMAIN, DOMAIN),
            (zmq.MAXMSGSIZE, MESSAGE_MOST),
            (zmq.RCVHWM, QUEUED_MOST),
            (zmq.SNDHWM, ANSWERS_MOST),
            (zmq.HANDSHAKE_IVL, HANDSHAKE_MS),
            (zmq.HEARTBEAT_IVL, STALE_MS // 3),
            (zmq.HEARTBEAT_TIMEOUT, STALE_MS),
            (zmq.LINGER, 500),
        ):
            self.router.setsockopt(option, value)
        self.reread = 0  # the folder of keys as it was
        self.free = asyncio.Semaphore(AT_ONCE)
        self.tasks: set[asyncio.Task[None]] = set()
        self.endpoints: list[str] = []

    def bind(self, endpoints: Sequence[str]) -> list[str]:
        """Listen; returns the endpoints with ports as they really are.

        Raises:
            ServerError: one is taken or no endpoint.
        """
        for endpoint in endpoints:
            try:
                self._bind(endpoint)
            except (zmq.ZMQError, OSError) as error:
                raise ServerError(f"cannot listen at {endpoint}: {error}") from None
            self.endpoints.append(self.router.getsockopt_string(zmq.LAST_ENDPOINT))
        return self.endpoints

    def _bind(self, endpoint: str) -> None:
        scheme, _, rest = endpoint.partition("://")
        if scheme not in ("ipc", "tcp"):
            raise OSError("an endpoint is ipc://PATH or tcp://ADDRESS:PORT")
        if scheme == "tcp":
            self.router.setsockopt(zmq.IPV6, int(rest.startswith("[")))
            self.router.bind(endpoint)
            return
        path = Path(rest)
        with contextlib.suppress(FileNotFoundError):
            if not stat.S_ISSOCK(path.stat().st_mode):
                raise OSError(f"{path} is there, and no socket")
        mask = os.umask(0o177)
        try:
            self.router.bind(endpoint)
        finally:
            os.umask(mask)

    async def run(self) -> None:
        """Serve until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self._authenticate())
            group.create_task(self._serve())

    def close(self) -> None:
        """Stop listening; answers that are under way are lost, clients ask again."""
        for task in self.tasks:
            task.cancel()
        for endpoint in self.endpoints:
            with contextlib.suppress(zmq.ZMQError):
                self.router.unbind(endpoint)
            if endpoint.startswith("ipc://"):
                Path(endpoint.removeprefix("ipc://")).unlink(missing_ok=True)
        self.router.close()
        self.zap.close(linger=0)
        self.context.term()

    # ---- who may connect ----

    async def _authenticate(self) -> None:
        while True:
            await self.zap.send_multipart(self._judge(await self.zap.recv_multipart()))

    def _judge(self, frames: Sequence[bytes]) -> list[bytes]:
        """ZAP's answer: the client's key becomes the User-Id of its messages.

        Not pyzmq's authenticator: its callback does not get the address, which the log line needs.
        """
        serial = frames[1] if len(frames) > 1 else b""
        if len(frames) == 7 and frames[0] == b"1.0" and frames[2] == DOMAIN:
            address, mechanism, key = frames[3], frames[5], frames[6]
            public = z85.encode(key) if mechanism == b"CURVE" and len(key) == 32 else b""
            if public and self.keys.who(public.decode("ascii")) is None:
                self._reread()
            client = self.keys.who(public.decode("ascii"))
            if client is not None:
                return [b"1.0", serial, b"200", b"OK", public, b""]
            self.bad.warning("refused a client at %s: its key is not authorized", address.decode())
        return [b"1.0", serial, b"400", b"not authorized", b"", b""]

    def _reread(self) -> None:
        """Somebody may have put a file there; strangers do not have us read the same ones again."""
        try:
            changed = self.keys.authorized.stat().st_mtime_ns
        except OSError:
            changed = 0
        if changed == self.reread:
            return
        self.reread = changed
        for wrong in self.keys.reload():
            self.bad.warning("%s", wrong)

    # ---- requests ----

    async def _serve(self) -> None:
        while True:
            await self.free.acquire()
            frames = await self.router.recv_multipart(copy=False)
            task = asyncio.create_task(self._one(frames))
            self.tasks.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        self.free.release()
        if not task.cancelled() and task.exception() is not None:
            LOG.error("a request was not answered", exc_info=task.exception())

    async def _one(self, frames: Sequence[zmq.Frame]) -> None:
        """A REQ client sends an empty frame before its request, a DEALER may."""
        *envelope, body = [frame.bytes for frame in frames]
        if envelope[1:] not in ([], [b""]):
            self.bad.warning("a message of %d frames is no request", len(frames))
            return
        answer = await self.answer(self._client(frames[-1]), body)
        # ROUTER drops the answer if the client has disconnected or does not read.
        with contextlib.suppress(zmq.Again):
            await self.router.send_multipart([*envelope, answer], flags=zmq.DONTWAIT)

    def _client(self, frame: zmq.Frame) -> KeyHolder:
        """The sender. A key that was removed since the connection belongs to nobody."""
        return self.keys.who(str(frame.get("User-Id"))) or NOBODY
