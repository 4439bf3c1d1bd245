# SPDX-License-Identifier: GPL-2.0-or-later
"""Reductionist's API over HTTP for the objects of one target.

    POST /v2/OPERATION    a reduction: its answer is CBOR, its refusals are JSON
    GET, HEAD /PATH       data of an object, also a range of bytes

A request is one call of the function reduce.py in the target.  The server holds no data of arrays.
"""

from __future__ import annotations

import asyncio
import base64
import binascii
import hashlib
import hmac
import ipaddress
import json
import logging
import ssl
import struct
import sys
from array import array
from collections.abc import Awaitable, Callable, Iterable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import urlsplit

from aiohttp import ClientConnectionError, web

from pyosd import aio
from pyosd.errors import (
    JobError,
    NotADirectory,
    NotFound,
    OSDError,
    PermissionDenied,
    SandboxLost,
    ScriptError,
    TargetBusy,
    Unreachable,
)
from pyosd.fronts.reductionist.checked import ArrayRefusal, ArrayRequest, checked
from pyosd.fs.paths import JOBS, PathInfo, split
from pyosd.functions.manifest import Access
from pyosd.iscsi.login import Chap
from pyosd.security.credentials import CredentialSource
from pyosd.serving.body import OF_STRANGERS, body_of
from pyosd.serving.crowd import Crowd

__all__ = ["ServerOptions", "serve"]

LOG = logging.getLogger("iosd.reductionist")
R = TypeVar("R")

FUNCTION = "iosd-reductionist"
CODE = Path(__file__).with_name("reduce.py")
BODY_MOST = 64 << 10
BODY_S = 10.0
PIECE = 1 << 20
SEND_S = 60.0
"""For a client to take a piece."""
PLAIN_MOST = (1 << 20) - 4096
"""Results that a call without a record can have, with room for the line before the values."""
PATIENCE_S = 30.0
LOST_MOST = 2
CONNECTIONS_MOST = 256
OF_ONE_MOST = 128  # address
FIRST_S = 10.0
IDLE_S = 60.0
WRONG_MOST, WRONG_S = 10, 60.0
"""Wrong passwords from one address in so many seconds."""
ADDRESSES_MOST = 1024
"""Addresses that have sent wrong passwords; the count of the oldest is forgotten."""
PAUSE_S = 0.1
PATH_SHOWN = 200
SAFE = {"X-Content-Type-Options": "nosniff", "Cross-Origin-Resource-Policy": "same-origin"}
"""Headers of all answers.  No page of another site can include data as a script or an image."""


@dataclass(frozen=True)
class ServerOptions:
    """Options of the server.

    pool: of the reductions.  user, password: of HTTP; "": nobody is asked.  context: for HTTPS.
    at_once: most reductions under way.
    """

    url: str
    host: str
    port: int
    chap: Chap | None = field(default=None, repr=False)
    credentials: CredentialSource | None = field(default=None, repr=False)
    pool: str = ""
    user: str = ""
    password: str = field(default="", repr=False)
    context: ssl.SSLContext | None = None
    at_once: int = 16


# ---- CBOR (RFC 8949) -----------------------------------------------------------------------------


def head(major: int, number: int) -> bytes:
    """The first bytes of an item: its kind, and its value or length."""
    if number < 24:
        return bytes([major << 5 | number])
    width, letter = next(
        (w, c) for w, c in ((0, "B"), (1, "H"), (2, "I"), (3, "Q")) if number < 1 << (8 << w)
    )
    return struct.pack(f">B{letter}", major << 5 | 24 + width, number)


def cbor(value: str | bytes | int | Iterable[int]) -> bytes:
    """Text, bytes, a number that is not negative, or numbers."""
    if isinstance(value, int):
        return head(0, value)
    if isinstance(value, bytes):
        return head(2, len(value)) + value
    if isinstance(value, str):
        return head(3, len(value.encode())) + value.encode()
    items = [*value]
    return head(4, len(items)) + b"".join(map(cbor, items))


def answer(request: ArrayRequest, found: bytes) -> bytes:
    """The answer that the API describes, of what reduce.main() returned."""
    line, _, values = found.partition(b"\n")
    said = json.loads(line)
    shape, count, order = said["shape"], said["count"], said["byte_order"]

    def as_bytes(numbers: list[int]) -> bytes:
        made = array("q", numbers)
        if order != sys.byteorder:
            made.byteswap()
        return made.tobytes()

    counting = request.args["operation"] == "count"
    fields = {
        "bytes": values,
        "dtype": "int64" if counting else request.args["dtype"],
        "shape": [] if request.shape_as_bytes else shape,
        "shape_as_bytes": as_bytes(shape) if request.shape_as_bytes else b"",
        "count": [] if request.count_as_bytes else count,
        "count_as_bytes": as_bytes(count) if request.count_as_bytes else b"",
        "byte_order": order,
    }
    pairs = [cbor(name) + cbor(value) for name, value in fields.items()]
    return head(5, len(pairs)) + b"".join(pairs)


# ---- refusals ------------------------------------------------------------------------------------


def refusal_of(error: Exception) -> ArrayRefusal:
    """The answer to a client about an error."""
    if isinstance(error, ArrayRefusal):
        return error
    if isinstance(error, NotFound):
        return ArrayRefusal("error retrieving object from storage", str(error))
    if isinstance(error, PermissionDenied):
        return ArrayRefusal("error retrieving object from storage", str(error), status=403)
    if isinstance(error, MemoryError) or getattr(error, "type_name", "").endswith("MemoryError"):
        return ArrayRefusal("Insufficient memory to process request")
    if isinstance(error, TargetBusy | Unreachable):
        return ArrayRefusal("the target cannot answer now", str(error), status=503)
    if isinstance(error, TimeoutError) and not isinstance(error, JobError):
        return ArrayRefusal("the request took too long", status=408)
    if isinstance(error, web.HTTPException):
        return ArrayRefusal(error.reason, status=error.status)
    if isinstance(error, ScriptError):  # the traceback is for the log
        LOG.error("%s", error)
        return ArrayRefusal("the reduction failed", error.type_name, status=500)
    if isinstance(error, OSDError | JobError):
        return ArrayRefusal("the reduction failed", str(error), status=500)
    LOG.error("our fault", exc_info=error)
    return ArrayRefusal("internal error", status=500)


def refused(error: ArrayRefusal) -> web.Response:
    """The error form of the API."""
    body: dict[str, Any] = {"message": str(error)}
    if error.causes:
        body["caused_by"] = error.causes
    headers = {"WWW-Authenticate": 'Basic realm="iosd"'} if error.status == 401 else {}
    return web.json_response({"error": body}, status=error.status, headers=headers)


# ---- limits --------------------------------------------------------------------------------------


class WrongPasswords:
    """Counts wrong passwords by address; times are seconds of any clock."""

    def __init__(self) -> None:
        self._found: dict[str, tuple[float, int]] = {}

    def refuses(self, address: str, now: float) -> bool:
        """Whether there have been too many from here."""
        start, count = self._found.get(address, (now, 0))
        return count >= WRONG_MOST and now < start + WRONG_S

    def add(self, address: str, now: float) -> None:
        """Count one more; the count begins anew when its time is over."""
        start, count = self._found.pop(address, (now, 0))
        self._found[address] = (start, count + 1) if now < start + WRONG_S else (now, 1)
        if len(self._found) > ADDRESSES_MOST:
            del self._found[next(iter(self._found))]


# ---- the server ----------------------------------------------------------------------------------


class ReductionServer:
    """Answers requests by calls of one function of the target."""

    def __init__(self, target: aio.AsyncTarget, options: ServerOptions) -> None:
        self._target = target
        self._options = options
        self._code = CODE.read_text()
        self._sha256 = hashlib.sha256(self._code.encode()).hexdigest()
        self._running = asyncio.Semaphore(options.at_once)
        self._wrong = WrongPasswords()
        self.crowd = Crowd(CONNECTIONS_MOST, OF_ONE_MOST, FIRST_S, IDLE_S)

    def application(self) -> web.Application:
        """The routes."""
        app = web.Application(client_max_size=BODY_MOST, middlewares=[self._guard])
        app.add_routes(
            [
                web.post("/v2/{operation}", self._reduce),
                web.post("/v2/{operation}/", self._reduce),
                web.get("/{path:.*}", self._read),
            ]
        )
        app.on_response_prepare.append(_make_safe)
        return app

    async def store_function(self) -> None:
        """Store the function in the target, if this version is not active there.

        Raises: OSDError: it cannot be stored.
        """
        with suppress(NotFound):
            if (await self._target.functions.show(self._sha256)).active:
                return
        await self._target.functions.put(
            self._code,
            name=FUNCTION,
            access=Access.READ,
            description="Reductions of arrays for osd reductionist",
        )

    @web.middleware
    async def _guard(
        self,
        request: web.Request,
        handler: Callable[[web.Request], Awaitable[web.StreamResponse]],
    ) -> web.StreamResponse:
        """Ask for the password, and give errors the form of the API."""
        try:
            if not self._options.password and not names_this_machine(request.host):
                # The page of another site can have a name of its own lead here.
                raise ArrayRefusal(
                    "without a password, name this machine by its address", status=403
                )
            if request.headers.get("Sec-Fetch-Site") in ("cross-site", "same-site"):
                # A browser knows the password, and sends what a page of another site asks for.
                raise ArrayRefusal("pages of other sites may not ask", status=403)
            if self._options.password:
                self._check_password(request)
            with self.crowd.working(request.transport):
                return await handler(request)
        except ConnectionResetError:
            raise
        except Exception as error:
            return refused(refusal_of(error))

    def _check_password(self, request: web.Request) -> None:
        """Raises: ArrayRefusal: it is wrong, or too many were."""
        address, now = place_of(request.remote or ""), asyncio.get_running_loop().time()
        if self._wrong.refuses(address, now):
            raise ArrayRefusal("too many wrong passwords from this address", status=429)
        if not self._knows(request):
            if "Authorization" in request.headers:  # clients send their first request without
                self._wrong.add(address, now)
            raise ArrayRefusal("wrong user or password", status=401)

    def _knows(self, request: web.Request) -> bool:
        scheme, _, text = request.headers.get("Authorization", "").partition(" ")
        try:
            given = base64.b64decode(text, validate=True)
        except (binascii.Error, ValueError):
            return False
        wanted = f"{self._options.user}:{self._options.password}".encode()
        return scheme.lower() == "basic" and hmac.compare_digest(given, wanted)

    async def _reduce(self, request: web.Request) -> web.Response:
        async with asyncio.timeout(BODY_S):
            body = await body_of(request)
        wanted = checked(request.match_info["operation"], body)
        async with self._running:
            place = await self._patiently(lambda: self._file(wanted.path))
            found = await self._patiently(lambda: self._computed(wanted, place))
        if isinstance(found, dict):
            raise ArrayRefusal(*map(str, found["error"]))
        return web.Response(body=answer(wanted, found), content_type="application/cbor")

    async def _computed(self, wanted: ArrayRequest, place: PathInfo) -> Any:
        """The result of the function, which is stored again if somebody has removed it."""
        try:
            return await self._call(wanted, place)
        except NotFound:
            await self.store_function()
            return await self._call(wanted, place)

    async def _call(self, wanted: ArrayRequest, place: PathInfo) -> Any:
        functions = self._target.functions
        how: dict[str, Any] = {"zone": place.object, "pool": self._options.pool}
        if wanted.result_most is None or wanted.result_most <= PLAIN_MOST:
            return await functions.call(self._sha256, wanted.args, **how)
        job = await functions.submit(self._sha256, wanted.args, job_name=FUNCTION, **how)
        try:
            return await job
        finally:
            with suppress(OSDError):
                await job.kill()
                await job.remove()

    async def _patiently(self, ask: Callable[[], Awaitable[R]]) -> R:
        """Ask again while the target is busy or away, and after a sandbox is lost: nothing is changed."""
        loop = asyncio.get_running_loop()
        end, lost = loop.time() + PATIENCE_S, 0
        while True:
            pause = PAUSE_S
            try:
                return await ask()
            except TargetBusy as busy:
                pause = busy.retry_after
                if loop.time() + pause >= end:
                    raise
            except Unreachable:
                if loop.time() + pause >= end:
                    raise
            except SandboxLost:
                lost += 1
                if lost > LOST_MOST:
                    raise
            await asyncio.sleep(pause)

    async def _file(self, path: str) -> PathInfo:
        """The object that a path names.  Paths of jobs name none: their data are made by the client."""
        try:
            found = None if split(path)[:1] == [JOBS] else await self._target.fs.info(path)
        except (NotADirectory, ValueError):  # no path can be that long
            found = None
        if found is None:
            raise NotFound(0, 0, 0, f"'{path[:PATH_SHOWN]}' is no path of an object")
        if found.is_directory:
            raise ArrayRefusal("error retrieving object from storage", f"'{path}' is a directory")
        return found

    async def _read(self, request: web.Request) -> web.StreamResponse:
        """Data of an object, for clients that read the description of the arrays in it."""
        try:
            place = await self._patiently(lambda: self._file(f"/{request.match_info['path']}"))
        except NotFound as error:
            raise ArrayRefusal("no such object", str(error), status=404) from None
        tag = f'"{place.version.hex()}"'
        headers = {"Accept-Ranges": "bytes", "ETag": tag}
        start, end, status = 0, place.length, 200
        # A client that continues a download of another version gets all of this one.
        if "Range" in request.headers and request.headers.get("If-Range", tag) == tag:
            start, end = range_of(request, place.length)
            status = 206
            headers["Content-Range"] = f"bytes {start}-{end - 1}/{place.length}"
        response = web.StreamResponse(status=status, headers=headers)
        response.content_type = "application/octet-stream"
        response.content_length = end - start
        await response.prepare(request)
        if request.method == "HEAD":
            return response
        try:
            while start < end:
                length = min(PIECE, end - start)
                data = await self._target.read_range(place.object, start, length)
                if len(data) != length:
                    raise NotFound(0, 0, 0, f"{place.object} has become shorter")
                async with asyncio.timeout(SEND_S):
                    await response.write(bytes(data))
                start += length
            return response
        except OSDError as error:
            LOG.warning("%s: %s", place.path, error)
        except (ClientConnectionError, ConnectionError, TimeoutError):
            pass  # the client has gone, or takes nothing
        if request.transport is not None:
            request.transport.abort()  # the client sees that bytes are missing
        return response


async def _make_safe(_: web.Request, response: web.StreamResponse) -> None:
    response.headers.update(SAFE)


def place_of(address: str) -> str:
    """An address, or of IPv6 its /64: one host can have all addresses of that."""
    try:
        found = ipaddress.ip_address(address.partition("%")[0])
    except ValueError:
        return address
    if found.version == 4 or found.is_loopback:
        return str(found)
    if found.ipv4_mapped:
        return str(found.ipv4_mapped)
    return str(ipaddress.ip_network((found, 64), strict=False))


def names_this_machine(host: str) -> bool:
    """Whether a header Host has an address of this machine alone, or localhost."""
    try:
        name = urlsplit(f"//{host}").hostname or ""
        return name == "localhost" or ipaddress.ip_address(name).is_loopback
    except ValueError:
        return False


def range_of(request: web.Request, length: int) -> tuple[int, int]:
    """Begin and end of the bytes that a request has in its header Range.  Raises: ArrayRefusal."""
    try:
        found = request.http_range
    except ValueError:
        raise ArrayRefusal("Range must name one range of bytes", status=416) from None
    start, end, _ = found.indices(length)
    if start >= end:
        raise ArrayRefusal(f"the object has {length} bytes", status=416)
    return start, end


async def serve(options: ServerOptions, ready: Callable[[str], None], stop: asyncio.Event) -> None:
    """Serve until stop.  ready: called with the URL.

    Raises: OSDError: the target refuses the function; OSError: the address cannot be used.
    """
    async with aio.connect(
        options.url, chap=options.chap, credentials=options.credentials
    ) as target:
        server = ReductionServer(target, options)
        await server.store_function()
        runner = web.AppRunner(
            server.application(), access_log=None, keepalive_timeout=IDLE_S, **OF_STRANGERS
        )
        await runner.setup()
        answering = runner.server
        assert answering is not None
        listener: asyncio.Server | None = None
        try:
            listener = await asyncio.get_running_loop().create_server(
                lambda: server.crowd.wrap(answering(), options.context),
                options.host,
                options.port,
            )
            host, port = listener.sockets[0].getsockname()[:2]
            scheme = "https" if options.context else "http"
            ready(f"{scheme}://{f'[{host}]' if ':' in host else host}:{port}")
            await stop.wait()
        finally:
            if listener is not None:
                listener.close()
            server.crowd.stop()
            await runner.cleanup()
