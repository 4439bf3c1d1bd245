# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager's HTTPS end: POST /v1/METHOD with a JSON object, GET /health.

A client certificate of our authority, or a token in Authorization: Bearer, identifies the caller.
Bodies, times, connections and rates have limits.  Nothing of bodies or headers is logged.
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import ipaddress
import json
import logging
import os
import ssl
from collections import Counter, defaultdict
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

from aiohttp import web

from iosd_secmgr.access.limits import Buckets
from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.methods.service import Service
from iosd_secmgr.methods.table import Requester
from iosd_secmgr.records.database import DatabaseFault
from pyosd.secmgr.errors import SecmgrError
from pyosd.serving.body import OF_STRANGERS, body_of
from pyosd.serving.crowd import Crowd

LOG = logging.getLogger("iosd.secmgr")

SCHEMA = "iosd.secmgr/1"
BODY_MOST = 65536
CONNECTIONS_MOST = 512
OF_ONE_MOST = 128  # address
FIRST_REQUEST_S = 10.0
BODY_S = 10.0
IDLE_S = 75.0
THREADS, LOGIN_THREADS = 64, 4
"""A request to a method holds one of the first, also while it waits for a target."""
OF_ONE_AT_WORK, OF_ONE_ASKED = 4, 128
"""Requests of one user: those that run at once, and all that are not answered yet."""
RATE, BURST = 100.0, 400.0
"""Credentials and other requests of one user, a second and at once."""
FAILURE_RATE, FAILURE_BURST = 0.5, 10.0
"""Wrong tokens from one address."""
CIPHERS = "ECDHE+AESGCM:ECDHE+CHACHA20"  # of TLS 1.2; those of 1.3 are all good
HEADERS = {"Cache-Control": "no-store", "X-Content-Type-Options": "nosniff", "Server": "iosd"}


def server_context(
    certificate: Path, key: Path, client_ca: Path, password: bytes | None = None
) -> ssl.SSLContext:
    """TLS 1.2 or 1.3, with certificates of clients where they have one.

    Raises: SecmgrError: a file cannot be used.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_COMPRESSION
    context.set_ciphers(CIPHERS)
    try:
        # An empty password, so that OpenSSL does not ask a terminal for one.
        context.load_cert_chain(certificate, key, password=password or b"")
        context.load_verify_locations(client_ca)
    except (OSError, ssl.SSLError) as error:
        raise SecmgrError(f"cannot use {certificate}, {key} and {client_ca}: {error}") from None
    context.verify_mode = ssl.CERT_OPTIONAL
    return context


def parse_address(text: str) -> tuple[str, int]:
    """ADDRESS:PORT.  Raises: SecmgrError."""
    host, _, port = text.rpartition(":")
    try:
        ipaddress.ip_address(host.strip("[]"))
        number = int(port)
        if not 0 <= number < 65536:
            raise ValueError
    except ValueError:
        raise SecmgrError(f"'{text}' is not ADDRESS:PORT, such as 127.0.0.1:8471") from None
    return host.strip("[]"), number


def cannot_listen(error: OSError) -> str:
    """The cause, in the system's words, and the remedy.  asyncio's text repeats the address."""
    known = {
        errno.EADDRINUSE: "another program does: choose another port with --listen",
        errno.EADDRNOTAVAIL: "this host does not have the address: 'ip address' lists those it has",
    }
    number = error.errno or 0
    return known.get(number, os.strerror(number))


class Web:
    """The server.  One event loop; what may take time runs in threads."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._users = Buckets(RATE, BURST)
        self._failures = Buckets(FAILURE_RATE, FAILURE_BURST)
        self._threads = ThreadPoolExecutor(THREADS, "iosd-secmgr")
        self._logins = ThreadPoolExecutor(LOGIN_THREADS, "iosd-secmgr-login")
        self._asked = Counter[str]()  # by user
        self._turns = defaultdict[str, asyncio.Semaphore](lambda: asyncio.Semaphore(OF_ONE_AT_WORK))
        self._crowd = Crowd(CONNECTIONS_MOST, OF_ONE_MOST, FIRST_REQUEST_S, IDLE_S)
        self._runner: web.AppRunner | None = None
        self._server: asyncio.Server | None = None

    async def start(self, address: str, context: ssl.SSLContext) -> str:
        """Listen; returns the URL.  Raises: SecmgrError."""
        host, port = parse_address(address)
        app = web.Application(client_max_size=BODY_MOST)
        app.add_routes([web.post("/v1/{method}", self._method), web.get("/health", self._health)])
        self._runner = web.AppRunner(app, access_log=None, keepalive_timeout=IDLE_S, **OF_STRANGERS)
        await self._runner.setup()
        serve = self._runner.server
        assert serve is not None
        loop = asyncio.get_running_loop()
        try:
            self._server = await loop.create_server(
                lambda: self._crowd.wrap(serve(), context), *(host, port)
            )
        except OSError as error:
            await self._runner.cleanup()
            raise SecmgrError(f"cannot listen at {address}: {cannot_listen(error)}") from None
        port = self._server.sockets[0].getsockname()[1]
        return f"https://{f'[{host}]' if ':' in host else host}:{port}"

    async def close(self) -> None:
        """Stop listening; requests under way end first."""
        if self._server is not None:
            self._server.close()
        self._crowd.stop()
        if self._runner is not None:
            assert self._runner.server is not None
            found = [each.transport for each in self._runner.server.connections]
            transports = [each for each in found if each is not None]
            await self._runner.cleanup()
            for transport in transports:
                # Not everybody ends TLS in order; asyncio raises for what is closed already.
                with contextlib.suppress(AttributeError):
                    transport.abort()
            await asyncio.sleep(0)
        self._logins.shutdown()
        self._threads.shutdown()

    async def _health(self, request: web.Request) -> web.Response:
        with self._crowd.working(request.transport):
            return web.json_response({"live": True}, headers=HEADERS)

    async def _method(self, request: web.Request) -> web.Response:
        try:
            with self._crowd.working(request.transport):
                answer = await self._answer(request)
            status = 200
        except Refusal as refusal:
            answer, status = error_json(refusal.code, str(refusal)), refusal.status
        except web.HTTPException as error:
            answer, status = error_json("bad-request", error.reason), error.status
        except TimeoutError:
            answer, status = error_json("bad-request", "the request took too long"), 408
        except ConnectionError:
            answer, status = error_json("bad-request", "the request is not whole"), 400
        except DatabaseFault as error:
            LOG.error("%s: %s", request.path, error)
            text = "the security manager cannot use its database now; its log says why"
            answer, status = error_json("not-ready", text), 503
        except Exception:
            LOG.exception("our fault: %s", request.path)
            text = "a fault of the security manager; its log says more"
            answer, status = error_json("internal", text), 500
        return web.json_response({"schema": SCHEMA, **answer}, status=status, headers=HEADERS)

    async def _answer(self, request: web.Request) -> dict[str, Any]:
        loop = asyncio.get_running_loop()
        address = request.remote or ""
        caller = await loop.run_in_executor(self._logins, self._who, request)
        if caller is None:
            # A good token is accepted at any time: the address may be shared, and tokens cannot be guessed.
            if not self._failures.take(address):
                raise Refusal("too-many", "too many wrong tokens from this address: wait")
            LOG.warning("refused: unknown user, from %s", address)
            raise Refusal("unauthenticated", "neither a good token nor a certificate of ours")
        fields = await self._fields(request)
        requests = fields.get("requests")
        count = len(requests) if isinstance(requests, list) else 1
        if not self._users.take(caller.user, max(1, count)):
            raise Refusal("too-many", f"{caller.user} asks for too much: wait a second")
        method = request.match_info["method"]
        async with self._turn(caller.user):
            return await loop.run_in_executor(self._threads, self._call, request, method, fields)

    def _call(self, request: web.Request, method: str, fields: dict[str, Any]) -> dict[str, Any]:
        """Do what is asked.  Any thread.

        Raises: Refusal: also if the caller's rights ended while the body came or the request waited.
        """
        caller = self._who(request)
        if caller is None:
            raise Refusal("unauthenticated", "the token or certificate is no longer valid")
        return self._service.call(caller, method, fields)

    @contextlib.asynccontextmanager
    async def _turn(self, user: str) -> AsyncIterator[None]:
        """Wait until a thread may work for this user: a target that does not answer holds it for long.

        Raises: Refusal: too many of this user's requests wait already.
        """
        if self._asked[user] >= OF_ONE_ASKED:
            raise Refusal(
                "too-many", f"{OF_ONE_ASKED} requests of {user} are not answered yet: wait"
            )
        self._asked[user] += 1
        try:
            async with self._turns[user]:
                yield
        finally:
            self._asked[user] -= 1

    async def _fields(self, request: web.Request) -> dict[str, Any]:
        # A page of another site cannot make a browser send this type.
        if request.content_type != "application/json":
            raise Refusal("bad-request", "the body must be application/json")
        async with asyncio.timeout(BODY_S):
            body = await body_of(request)
        try:
            fields = json.loads(body)
        except (ValueError, RecursionError):
            fields = None
        if not isinstance(fields, dict):
            raise Refusal("bad-request", "the body is no JSON object")
        return fields

    def _who(self, request: web.Request) -> Requester | None:
        """By token where there is one, else by certificate.  Any thread."""
        header = request.headers.get("Authorization", "")
        if header:
            scheme, _, token = header.partition(" ")
            return self._service.by_token(token) if scheme.lower() == "bearer" else None
        transport = request.transport
        found = transport.get_extra_info("peercert") if transport is not None else None
        # TLS checks the end of a certificate in the handshake only, and a connection can last longer.
        ends = ssl.cert_time_to_seconds(found["notAfter"]) if found else 0.0
        if not found or ends <= self._service.clock():
            return None
        names = [value for part in found["subject"] for key, value in part if key == "commonName"]
        serial = found["serialNumber"].lstrip("0").lower()
        return self._service.by_certificate(names[0], serial) if len(names) == 1 else None


def error_json(code: str, text: str) -> dict[str, Any]:
    """A refusal for programs and people."""
    return {"error": {"code": code, "message": text}}


async def run(
    service: Service,
    address: str,
    context: ssl.SSLContext,
    ready: Callable[[str], None],
    stop: asyncio.Event,
) -> None:
    """Serve until `stop`."""
    server = Web(service)
    url = await server.start(address, context)
    try:
        ready(url)
        await stop.wait()
    finally:
        with contextlib.suppress(asyncio.CancelledError):
            await server.close()
