# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's HTTP end: /metrics, /health and the console, on one address.

Every client that reaches it may read.  A change needs a session (sessions.py) and its CSRF word; it
goes through the same table of requests as ZeroMQ's.  A name in Host is accepted only if the
configuration lists it: else a page of another site could read from a manager on its reader's host
(DNS rebinding).
"""

from __future__ import annotations

import asyncio
import contextlib
import errno
import hmac
import inspect
import ipaddress
import json
import logging
import os
import time
from collections.abc import Awaitable, Callable, Mapping, Sequence
from importlib import resources
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from aiohttp import web

from iosd_host.common.rate_limited_log import Limited
from iosd_host.common.users import described
from iosd_host.http.console.curves import Curves
from iosd_host.http.console.live import Live
from iosd_host.http.console.sessions import Session, Sessions, TokenError
from iosd_host.http.console.state import pushed, reading_of, serial_of, unready
from iosd_host.http.exporter import content_type, exposition
from iosd_host.http.sockets import listener, peer_uid, process_of
from iosd_host.manager.keys import ADMIN, Answer, KeyHolder
from iosd_host.manager.requests import SCHEMA as ADMIN_SCHEMA
from iosd_host.manager.requests import RequestRefused
from pyosd.serving.body import OF_STRANGERS, body_of
from pyosd.serving.crowd import Crowd, Guest

if TYPE_CHECKING:
    from iosd_host.manager.manager import Manager
    from iosd_host.manager.target import ManagedTarget

__all__ = ["AddressTaken", "Console", "ConsoleError", "parse_address"]

LOG = logging.getLogger("iosd.console")

# An option of the runner; in aiohttp 3.8, which Debian 12 has, an option of each site.
SHUTDOWN: dict[str, Any] = {"shutdown_timeout": 1.0}
IN_RUNNER = "shutdown_timeout" in inspect.signature(web.BaseRunner.__init__).parameters
RUNNER_OPTIONS, SITE_OPTIONS = (SHUTDOWN, {}) if IN_RUNNER else ({}, SHUTDOWN)
BODY_MOST = 16384
MOST = 256  # connections
OF_ONE_MOST = 64  # address
IDLE_S = 20.0
REQUEST_S = 20.0  # for a whole request and its answer
EVENTS = "/api/events"
STREAMS_MOST = 32
STREAMS_OF_ONE_MOST = 8  # user of this host, or address
BEAT_S = 15.0
COOKIE = "iosd-session"
CLIENT = KeyHolder("console", ADMIN)
METHODS = frozenset(
    ("pool.pause", "pool.resume", "pool.drain", "pool.recycle", "pool.scale", "workers.set")
)
FILES = {
    "index.html": "text/html",
    "console.css": "text/css",
    "console.js": "text/javascript",
    "figures.js": "text/javascript",
    "charts.js": "text/javascript",
    "icon.svg": "image/svg+xml",
}
# Read with the modules: the process may become a user who cannot look at where they lie.
CONTENTS = {name: (resources.files(__package__) / "static" / name).read_bytes() for name in FILES}
SAFE = {
    "Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; "
    "img-src 'self'; connect-src 'self'; form-action 'self'; base-uri 'none'; "
    "frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cache-Control": "no-store",
    "Server": "iosd",
}
STATUS_OF = {"not-permitted": 403, "no-such-target": 404, "no-such-pool": 404, "internal": 500}


class ConsoleError(Exception):
    """It cannot be served as asked; the text says why."""


class AddressTaken(ConsoleError):
    """Somebody else listens there; the text says which user."""


class Factory:
    """aiohttp's server with a Crowd before its connections; else as it is."""

    def __init__(self, server: web.Server, crowd: Crowd) -> None:
        self.server = server
        self.crowd = crowd

    def __call__(self) -> Guest:
        return self.crowd.wrap(self.server())

    def __getattr__(self, name: str) -> Any:
        return getattr(self.server, name)


class Runner(web.AppRunner):
    """An AppRunner whose sites make connections with a Crowd."""

    def __init__(self, app: web.Application, crowd: Crowd, **options: Any) -> None:
        super().__init__(app, **options)
        self.crowd = crowd

    @property
    def server(self) -> Any:
        """The protocol factory that a site gives to asyncio."""
        found = super().server
        return None if found is None else Factory(found, self.crowd)


def parse_address(text: str) -> tuple[str, int]:
    """ADDRESS:PORT.  Raises: ConsoleError."""
    host, colon, port = text.rpartition(":")
    host = host.strip("[]")
    try:
        ipaddress.ip_address(host)
        good = bool(colon) and port.isascii() and port.isdigit() and int(port) < 65536
    except ValueError:
        good = False
    if not good:
        raise ConsoleError(f"'{text}' is not ADDRESS:PORT, such as 127.0.0.1:8470")
    return host, int(port)


def is_loopback(host: str) -> bool:
    """Whether nobody else can reach or overhear it."""
    return ipaddress.ip_address(host).is_loopback


def may_be_named(host: str, names: Sequence[str]) -> bool:
    """Whether this Host cannot be a name that somebody else's DNS gave us."""
    host = host.lower()
    bare = host.rpartition(":")[0] if not host.endswith("]") and ":" in host else host
    if bare == "localhost" or bare in names:
        return True
    with contextlib.suppress(ValueError):
        ipaddress.ip_address(bare.strip("[]"))
        return True
    return False


class Console:
    """The HTTP server.  One event loop, the manager's.

    Args:
        answer: of iosd_host.manager.requests, for changes.
        sessions: who may log in.
        names: that Host may have beside addresses and localhost.
    """

    def __init__(
        self, manager: Manager, answer: Answer, sessions: Sessions, names: Sequence[str] = ()
    ) -> None:
        self.manager = manager
        self.answer = answer
        self.sessions = sessions
        self.names = [name.lower() for name in names]
        self.live = Live(manager)
        self.bad = Limited(LOG)
        self.streams: dict[int, str] = {}  # of whom each is
        self.texts: dict[tuple[str, str], tuple[object, bytes]] = {}  # by target and content type
        self.curves = Curves(manager)
        self.crowd = Crowd(MOST, OF_ONE_MOST, IDLE_S, IDLE_S)
        self.runner: web.AppRunner | None = None

    async def start(self, address: str) -> str:
        """Listen; returns the URL.

        Raises:
            ConsoleError: the address is none, or taken.
        """
        host, port = parse_address(address)
        if not is_loopback(host):
            self.sessions.path = None  # a token would be sent for all to read
            LOG.warning("the console at %s is read-only: it is not on loopback", address)
        app = web.Application(client_max_size=BODY_MOST, middlewares=[self._guard])
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/health", self._health),
                web.get("/health/live", self._health_live),
                web.get("/health/ready", self._health_ready),
                web.get("/", self._page),
                web.get("/static/{name}", self._file),
                web.get("/api/session", self._session),
                web.get(EVENTS, self._events),
                web.get("/api/history", self._history),
                web.get("/api/jobs", self._jobs),
                web.post("/login", self._login),
                web.post("/logout", self._logout),
                web.post("/api/change", self._change),
            ]
        )
        self.runner = Runner(app, self.crowd, access_log=None, **OF_STRANGERS, **RUNNER_OPTIONS)
        await self.runner.setup()
        try:
            await web.TCPSite(self.runner, host, port, **SITE_OPTIONS).start()
        except OSError as error:
            await self.runner.cleanup()
            self.runner = None
            if error.errno == errno.EADDRINUSE:
                raise AddressTaken(f"cannot listen at {address}: {holder_of(host, port)}") from None
            raise ConsoleError(f"cannot listen at {address}: {error.strerror}") from None
        self.live.start()
        port = self.runner.addresses[0][1]
        return f"http://{f'[{host}]' if ':' in host else host}:{port}/"

    async def close(self) -> None:
        """Stop listening and end all streams."""
        await self.live.stop()
        self.crowd.stop()
        if self.runner is not None:
            await self.runner.cleanup()

    # ---- what all requests go through ----

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        if not may_be_named(request.headers.get("Host", ""), self.names):
            return self._safe(
                refusal(421, "this name is not ours: use the address, or --http-name")
            )
        # A stream of events ends by itself where its reader reads nothing.
        limit = None if request.path == EVENTS else REQUEST_S
        try:
            with self.crowd.working(request.transport):
                async with asyncio.timeout(limit):
                    response = await handler(request)
        except web.HTTPException as error:
            response = refusal(error.status, error.reason)
        except TimeoutError:
            response = refusal(408, "the request did not come to its end in time")
        return self._safe(response)

    @staticmethod
    def _safe(response: web.StreamResponse) -> web.StreamResponse:
        if not response.prepared:
            response.headers.update(SAFE)
        return response

    def _target(self, request: web.Request, first: bool = False) -> ManagedTarget:
        """The one named, or the only one; or the first of several."""
        name = request.query.get("target")
        targets = self.manager.targets
        if name is None and (len(targets) == 1 or (first and targets)):
            return next(iter(targets.values()))
        if name not in targets:
            there = ", ".join(targets) or "none"
            raise web.HTTPNotFound(reason=f"say ?target=NAME; there are: {there}")
        return targets[name]

    # ---- for machines ----

    async def _metrics(self, request: web.Request) -> web.Response:
        target = self._target(request)
        body, kind = self._exposition(target, request.headers.get("Accept", ""))
        headers = {"Content-Type": kind, "X-Iosd-Serial": serial_of(target)}
        return web.Response(body=body, headers=headers)

    def _exposition(self, target: ManagedTarget, accept: str) -> tuple[bytes, str]:
        """Metrics of the last reading, made once: anybody may ask, and they take the manager's time."""
        reading = reading_of(target)
        of = serial_of(target), reading.up, dict(reading.decisions)
        kind = content_type(accept)
        known = self.texts.get((target.name, kind))
        if known is None or known[0] != of:
            known = of, exposition(reading, accept)[0]
            self.texts[target.name, kind] = known
        return known[1], kind

    def _reasons(self) -> list[dict[str, str]]:
        targets = self.manager.targets.values()
        if not targets:
            return [{"target": "", "reason": "there is no target to manage"}]
        return unready(targets, time.time())

    async def _health(self, request: web.Request) -> web.Response:
        reasons = self._reasons()
        found = {"live": True, "ready": not reasons, "reasons": reasons, "pid": os.getpid()}
        return web.json_response(found, status=503 if reasons else 200)

    async def _health_live(self, request: web.Request) -> web.Response:
        return web.json_response({"live": True, "pid": os.getpid()})

    async def _health_ready(self, request: web.Request) -> web.Response:
        reasons = self._reasons()
        status = 503 if reasons else 200
        return web.json_response({"ready": not reasons, "reasons": reasons}, status=status)

    # ---- the page ----

    async def _page(self, request: web.Request) -> web.Response:
        return self._static("index.html")

    async def _file(self, request: web.Request) -> web.Response:
        return self._static(request.match_info["name"])

    def _static(self, name: str) -> web.Response:
        if name not in FILES:
            raise web.HTTPNotFound
        return web.Response(body=CONTENTS[name], content_type=FILES[name], charset="utf-8")

    async def _events(self, request: web.Request) -> web.StreamResponse:
        """State after state, as server-sent events."""
        target = self._target(request, first=True)
        who = origin_of(request)
        own = sum(each == who for each in self.streams.values())
        if len(self.streams) >= STREAMS_MOST or own >= STREAMS_OF_ONE_MOST:
            raise web.HTTPServiceUnavailable(reason=f"too many consoles are open ({own} by {who})")
        self.streams[id(request)] = who
        try:
            response = web.StreamResponse(headers={**SAFE, "Content-Type": "text/event-stream"})
            await response.prepare(request)
            await self._send_states(response, target.name)
        except (ConnectionError, TimeoutError, asyncio.CancelledError):
            pass  # the reader has gone, or reads nothing, or we go
        finally:
            del self.streams[id(request)]
        return response

    async def _send_states(self, response: web.StreamResponse, name: str) -> None:
        last = 0
        while not self.live.ended:
            try:
                async with asyncio.timeout(BEAT_S):
                    last, state = await self.live.after(name, last)
                words = b"data: " + state + b"\n\n"
            except TimeoutError:
                words = b": still here\n\n"
            async with asyncio.timeout(BEAT_S):
                await response.write(words)

    async def _history(self, request: web.Request) -> web.Response:
        target = self._target(request)
        try:
            span = int(request.query.get("span", "3600"))
        except ValueError:
            raise web.HTTPBadRequest(reason="span is seconds") from None
        text = await self.curves.text(target.name, span)
        return web.Response(body=text, content_type="application/json", charset="utf-8")

    async def _jobs(self, request: web.Request) -> web.Response:
        """Names of jobs and users are not for everybody who reaches the address."""
        if self._who(request) is None:
            raise web.HTTPUnauthorized(reason="log in to see jobs")
        target = self._target(request)
        try:
            jobs = await self.manager.jobs(target.name)
        except RequestRefused as error:
            found = {"error": error.fields()}
            return web.json_response(found, status=STATUS_OF.get(error.code, 409))
        given_back = pushed(reading_of(target))
        now = round(time.time() * 1000)
        return web.json_response({"jobs": jobs, "pushed": given_back, "now": now})

    # ---- who, and changes ----

    def _who(self, request: web.Request) -> Session | None:
        cookie = request.cookies.get(COOKIE)
        return self.sessions.find(cookie, time.monotonic(), origin_of(request)) if cookie else None

    async def _session(self, request: web.Request) -> web.Response:
        session = self._who(request)
        return web.json_response(
            {
                "user": session and session.user,
                "csrf": session and session.csrf,
                "login": self.sessions.path is not None,
            }
        )

    async def _login(self, request: web.Request) -> web.Response:
        check_origin(request)
        try:
            form = parse_qs((await body_of(request)).decode())
        except ValueError:  # no text
            raise web.HTTPBadRequest(reason="not a login") from None
        [token, *_] = form.get("token", [""])
        await asyncio.sleep(self.sessions.delay(time.monotonic()))
        who = origin_of(request)
        try:
            found = self.sessions.login(token, time.monotonic(), who)
        except TokenError as error:
            self.bad.warning("login of %s refused: %s", who, error)
            return refusal(403, str(error))
        if found is None:
            self.bad.warning("login refused: a wrong token from %s", who)
            return refusal(403, "this token is unknown")
        LOG.info("%s has logged in from %s", found[1].user, who)
        response = web.Response(status=204)
        response.set_cookie(COOKIE, found[0], httponly=True, samesite="Strict", path="/")
        return response

    async def _logout(self, request: web.Request) -> web.Response:
        self._allowed(request)
        self.sessions.end(request.cookies.get(COOKIE))
        response = web.Response(status=204)
        # Not del_cookie, which lacks these in aiohttp 3.8.
        response.set_cookie(COOKIE, "", max_age=0, httponly=True, samesite="Strict", path="/")
        return response

    def _allowed(self, request: web.Request) -> Session:
        """The session of a request that changes something."""
        check_origin(request)
        session = self._who(request)
        if session is None:
            raise web.HTTPUnauthorized(reason="log in first")
        given = request.headers.get("X-CSRF-Token", "")
        if not hmac.compare_digest(given.encode(errors="replace"), session.csrf.encode()):
            raise web.HTTPForbidden(reason="this change did not come from our page: load it again")
        return session

    async def _change(self, request: web.Request) -> web.Response:
        self._allowed(request)
        body = await body_of(request)
        session = self._allowed(request)  # it may have ended while the body came
        try:
            asked = json.loads(body)
        except (ValueError, RecursionError):
            asked = None
        if not isinstance(asked, dict) or str(asked.get("method")) not in METHODS:
            raise web.HTTPBadRequest(reason="not a change of the console's")
        fields: Mapping[str, Any] = {
            "schema": ADMIN_SCHEMA,
            "id": 1,
            "method": asked["method"],
            "params": asked.get("params", {}),
            "user": session.user,
            "why": asked.get("why", ""),
        }
        answer = json.loads(await self.answer(CLIENT, json.dumps(fields).encode()))
        error = answer.get("error")
        status = STATUS_OF.get(error["code"], 409) if error else 200
        return web.json_response(answer, status=status)


def origin_of(request: web.Request) -> str:
    """ "user 1000" of this host if the kernel names the user, else the address.

    All users of a host have one address on loopback, and one must not lock out the others.
    """
    transport = request.transport
    peer = transport.get_extra_info("peername") if transport else None
    own = transport.get_extra_info("sockname") if transport else None
    if not peer or not own:
        return "nobody"
    uid = peer_uid(own[:2], peer[:2]) if is_loopback(peer[0]) else None
    if uid is not None:
        return f"user {uid}"
    address = ipaddress.ip_address(peer[0].partition("%")[0])
    if address.version == 6 and not address.is_loopback:  # one host has a whole /64
        return str(ipaddress.ip_network((address, 64), strict=False))
    return str(address)


def holder_of(host: str, port: int) -> str:
    """The listener of the address, as text."""
    found = listener((host, port))
    if found is None:
        return "the address is in use"
    process = process_of(found[1])
    return f"{described(found[0])} listens there" + (f", {process}" if process else "")


def check_origin(request: web.Request) -> None:
    """Requests that change something must come from our own page, or from no page."""
    origin = request.headers.get("Origin")
    if origin is not None and origin.partition("://")[2] != request.headers.get("Host"):
        raise web.HTTPForbidden(reason="this came from a page of another site")


def refusal(status: int, text: str | None) -> web.Response:
    """A sentence for people and machines."""
    return web.json_response({"error": {"message": text or ""}}, status=status)
