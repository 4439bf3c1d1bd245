# SPDX-License-Identifier: GPL-2.0-or-later
"""The HTTPS end of the security manager: what is no request, and the limits of strangers and users."""

from __future__ import annotations

import contextlib
import gzip
import socket
import ssl

import pytest

from iosd_secmgr.access.limits import Buckets
from iosd_secmgr.http import web
from pyosd import errors
from pyosd.secmgr.client import Client, SecmgrRefused
from tests.secmgr.conftest import READ_X, Served, World
from tests.waiting import DEADLINE_S


def raw(served: Served, data: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """The answer to raw bytes."""
    context = context or ssl.create_default_context(cafile=served.ca)
    port = int(served.url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=DEADLINE_S) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as stream,
    ):
        stream.sendall(data)
        answer = b""
        while b"\r\n\r\n" not in answer and (piece := stream.recv(65536)):
            answer += piece
        return answer


def post(
    token: str, body: bytes, kind: str = "application/json", length: int | None = None
) -> bytes:
    length = len(body) if length is None else length
    return (
        f"POST /v1/whoami HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token}\r\n"
        f"Content-Type: {kind}\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n"
    ).encode() + body


def test_what_is_no_request(served: Served, caplog: pytest.LogCaptureFixture) -> None:
    token = served.world.token_file.read_text().strip()
    assert raw(served, post(token, b"{}")).startswith(b"HTTP/1.1 200 ")
    for body in (b"", b"[]", b"{", b"\xff", b"[" * 60_000, b'{"x": 1}', b'{"\\ud800": 1}'):
        assert raw(served, post(token, body)).startswith(b"HTTP/1.1 400 "), body[:10]
    packed = "application/json\r\nContent-Encoding: gzip"
    for body in (b"{}", gzip.compress(b"{}")):
        assert raw(served, post(token, body, packed)).startswith(b"HTTP/1.1 400 ")
    pieces = "application/json\r\nTransfer-Encoding: chunked"
    for body in (b"zz\r\n{}\r\n", b"2\r\n{}xx"):
        request = post(token, body, pieces).replace(
            f"Content-Length: {len(body)}\r\n".encode(), b""
        )
        assert b" 400 " in raw(served, request)[:16], body
    assert raw(served, post(token, b"{}", "text/plain")).startswith(b"HTTP/1.1 400 ")
    assert raw(served, post(token, b"x" * (web.BODY_MOST + 1))).startswith(b"HTTP/1.1 413 ")
    assert raw(served, post("", b"{}")).startswith(b"HTTP/1.1 401 ")
    assert raw(served, b"GET /v1/whoami HTTP/1.1\r\nHost: x\r\n\r\n").startswith(b"HTTP/1.1 405 ")
    assert b" 400 " in raw(served, b"\x16\x03\x01\r\n\r\n")[:16]
    assert [each.getMessage() for each in caplog.records if each.exc_info] == []


def test_half_a_character_is_no_text(alice: Client) -> None:
    with pytest.raises(SecmgrRefused, match="no text") as caught:
        alice.call("credentials", **{**READ_X, "target": "\ud800"})
    assert caught.value.code == "bad-request"


def test_old_tls_is_not_spoken(served: Served) -> None:
    context = ssl.create_default_context(cafile=served.ca)
    for version in (ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3):
        context.minimum_version = context.maximum_version = version
        assert b"200" in raw(served, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", context)[:16]
    old = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    old.check_hostname, old.verify_mode = False, ssl.CERT_NONE
    with pytest.warns(DeprecationWarning):
        old.minimum_version = ssl.TLSVersion.TLSv1
        old.maximum_version = ssl.TLSVersion.TLSv1_1
    old.set_ciphers("ALL:@SECLEVEL=0")
    with pytest.raises((ssl.SSLError, ConnectionError)):
        raw(served, b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n", old)


@pytest.fixture
def no_refill(monkeypatch: pytest.MonkeyPatch) -> None:
    """Buckets stay as they are, however long a request takes here."""
    monkeypatch.setattr(web, "RATE", 1e-9)
    monkeypatch.setattr(web, "FAILURE_RATE", 1e-9)


@pytest.mark.usefixtures("no_refill")
def test_guessing_tokens_is_slow(served: Served) -> None:
    for _ in range(int(web.FAILURE_BURST)):
        with pytest.raises(errors.PermissionDenied):
            served.client("iosd-wrong").call("whoami")
    with pytest.raises(SecmgrRefused, match="wait"):
        served.client("iosd-wrong").call("whoami")
    assert served.admin.call("whoami")["user"] == "root"  # from the same address


@pytest.mark.usefixtures("no_refill")
def test_one_user_has_no_more_than_their_share(served: Served, alice: Client) -> None:
    requests = [{**READ_X, "permissions": ["WRITE"]}] * 64
    with pytest.raises(SecmgrRefused) as caught:
        for _ in range(20):
            alice.call("credentials", requests=requests)
    assert caught.value.code == "too-many"
    assert served.admin.call("whoami")["user"] == "root"  # others have theirs


def test_who_connects_and_says_nothing_is_sent_away(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "FIRST_REQUEST_S", 0.5)
    served = Served(world)
    try:
        # A slow host is sent away in the handshake, or when it writes.
        with contextlib.suppress(ConnectionError, ssl.SSLError):
            assert raw(served, b"POST /v1/whoami HTTP/1.1\r\nHost: x\r\n") == b""
    finally:
        served.stop()


def test_one_address_has_a_share_of_the_connections(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Connections that have asked once and stay open keep nobody out."""
    monkeypatch.setattr(web, "OF_ONE_MOST", 2)
    served = Served(world)
    context = ssl.create_default_context(cafile=served.ca)
    host, port = served.url.removeprefix("https://").split(":")
    try:
        with contextlib.ExitStack() as stack:
            held = []
            for _ in range(3):
                plain = stack.enter_context(socket.create_connection((host, int(port)), 20))
                held.append(stack.enter_context(context.wrap_socket(plain, server_hostname=host)))
                held[-1].sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                assert held[-1].recv(4096).startswith(b"HTTP/1.1 200 ")
            with contextlib.suppress(ConnectionError):
                while held[0].recv(4096):
                    pass
            held[1].sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
            assert b"200" in held[1].recv(4096)
    finally:
        served.stop()


def test_connections_count_before_the_handshake(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "OF_ONE_MOST", 2)
    monkeypatch.setattr(web, "FIRST_REQUEST_S", 3600.0)
    served = Served(world)
    context = ssl.create_default_context(cafile=served.ca)
    host, port = served.url.removeprefix("https://").split(":")
    try:
        with contextlib.ExitStack() as stack:
            silent, other, last = (
                stack.enter_context(socket.create_connection((host, int(port)), 20))
                for _ in range(3)
            )
            with contextlib.suppress(ConnectionError):
                assert silent.recv(4096) == b""
            for plain in (other, last):
                secure = stack.enter_context(context.wrap_socket(plain, server_hostname=host))
                secure.sendall(b"GET /health HTTP/1.1\r\nHost: x\r\n\r\n")
                assert secure.recv(4096).startswith(b"HTTP/1.1 200 ")
    finally:
        served.stop()


def test_a_bucket_refills() -> None:
    now = [0.0]
    buckets = Buckets(rate=2, burst=3, clock=lambda: now[0])
    assert [buckets.take("a") for _ in range(4)] == [True, True, True, False]
    assert buckets.take("b")
    now[0] = 0.5
    assert buckets.take("a") and not buckets.take("a") and buckets.empty("a")
    now[0] = 100.0
    assert buckets.take("a", 64)  # more than there ever is: the next waits for it
    assert buckets.empty("a")
