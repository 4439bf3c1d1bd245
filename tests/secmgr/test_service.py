# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager over TLS: who it is, what they get, what they may change, limits."""

from __future__ import annotations

import contextlib
import gzip
import hashlib
import json
import socket
import ssl
import stat
import subprocess
import sys
import threading
import time
from datetime import timedelta
from pathlib import Path

import pytest

from iosd_secmgr.access.limits import Buckets
from iosd_secmgr.http import web
from iosd_secmgr.keys import pki
from iosd_secmgr.keys.keystore import Level
from iosd_secmgr.records.database import SqliteDatabase
from pyosd import errors
from pyosd.secmgr.capabilities import from_json
from pyosd.secmgr.certificate_request import new_request
from pyosd.secmgr.client import Client, SecmgrRefused, SecurityManagerSource
from pyosd.secmgr.errors import SecmgrError
from pyosd.secmgr.files import write_private
from pyosd.types import ObjectType, ref
from pyosd.wire.capability import Permission, SecurityMethod
from tests.secmgr.conftest import PARTITION, TARGET, Served, World
from tests.secmgr.process import Process
from tests.waiting import DEADLINE_S, until

ENDED = -1 / 1440  # days from now; certificates begin some minutes before
OBJECT = ref(PARTITION, 0x10000)
USER = ObjectType.USER_OBJECT
READ_X = {"target": TARGET, "object": str(OBJECT), "permissions": ["READ"]}


@pytest.fixture
def alice(served: Served) -> Client:
    """May read one object; the target's keys are set."""
    world = served.world
    world.add_target()
    world.keys.rotate("root", TARGET, Level.ROOT)
    world.add_user("alice")
    world.ask("acl.add", user="alice", **READ_X)
    return served.client(world.ask("token.add", user="alice")["token"])


def test_a_credential_is_what_was_asked_for_and_no_more(served: Served, alice: Client) -> None:
    found = from_json(alice.call("credentials", **READ_X, range=[4096, 512], lifetime_s=60))
    capability = found.capability
    assert served.world.model.takes(found, PARTITION)
    assert (capability.obj, capability.object_type) == (OBJECT, USER)
    assert capability.permissions == Permission.READ
    assert capability.method is SecurityMethod.CAPKEY
    assert (capability.range_start, capability.range_length) == (4096, 512)
    assert capability.audit == hashlib.sha256(b"alice").digest()[:20]
    assert 0 < capability.expires_ms - time.time() * 1000 < 60_001
    other = from_json(alice.call("credentials", **READ_X))
    assert other.capability.discriminator != capability.discriminator
    assert 500_000 < other.capability.expires_ms - time.time() * 1000 < 600_001


@pytest.mark.parametrize(
    "changed",
    [
        {"permissions": ["READ", "WRITE"]},
        {"permissions": ["GET_ATTR"]},
        {"object": f"{PARTITION:#x}/0x10001"},
        {"object": f"{PARTITION:#x}", "type": "user"},
        {"object": f"{PARTITION:#x}"},
        {"object": "0x10001/0x10000"},
        {"object": "root"},
        {"type": "collection"},
        {"target": "iqn.2026-11.iosd:other"},
    ],
)
def test_anything_else_is_refused_and_in_the_log(
    served: Served, alice: Client, changed: dict[str, object]
) -> None:
    with pytest.raises(errors.PermissionDenied):
        alice.call("credentials", **{**READ_X, **changed})
    last = served.world.opened.audit.entries(newest=True, most=1)[0]
    assert (last.who, last.what) == ("alice", "credential.refused")


def test_many_at_once(served: Served, alice: Client) -> None:
    requests = [READ_X, {**READ_X, "permissions": ["WRITE"]}, READ_X]
    first, second, third = alice.call("credentials", requests=requests)["credentials"]
    assert from_json(first).capability.obj == from_json(third).capability.obj == OBJECT
    assert second["error"]["code"] == "not-permitted"
    with pytest.raises(SecmgrRefused, match="1 to 64"):
        alice.call("credentials", requests=[READ_X] * 65)


def test_a_given_credential_can_be_traced(served: Served, alice: Client) -> None:
    found = from_json(alice.call("credentials", **READ_X))
    traced = served.admin.call(
        "credentials.issued", discriminator=found.capability.discriminator.hex()
    )["credentials"]
    assert [(each["user"], each["object"]) for each in traced] == [("alice", str(OBJECT))]
    assert "key" not in traced[0]
    with pytest.raises(errors.PermissionDenied):
        alice.call("credentials.issued", user="root")


def test_the_least_methods_of_rule_target_and_request(served: Served, alice: Client) -> None:
    def method(**more: str) -> SecurityMethod:
        return from_json(alice.call("credentials", **READ_X, **more)).capability.method

    assert method() is SecurityMethod.CAPKEY
    assert method(method="ALLDATA") is SecurityMethod.ALLDATA
    with served.world.opened.database.transaction() as tx:
        tx.run("UPDATE targets SET method = 2")
    served.world.keys._forget_signers(TARGET)
    assert method() is SecurityMethod.CMDRSP


def test_rules_end_and_go(served: Served, alice: Client) -> None:
    admin = served.admin
    soon = int(served.world.clock() * 1000) + 30_000
    made = admin.call(
        "acl.add", user="alice", **{**READ_X, "permissions": ["WRITE"]}, until_ms=soon
    )
    write = {**READ_X, "permissions": ["WRITE"]}
    assert from_json(alice.call("credentials", **write)).capability.expires_ms == soon
    served.world.clock.ahead = 31
    with pytest.raises(errors.PermissionDenied):
        alice.call("credentials", **write)
    served.world.clock.ahead = 0
    admin.call("acl.rm", id=made["id"])
    with pytest.raises(errors.PermissionDenied):
        alice.call("credentials", **write)
    with pytest.raises(errors.NotFound):
        admin.call("acl.rm", id=made["id"])


def test_groups_and_disabled_users(served: Served, alice: Client) -> None:
    admin = served.admin
    admin.call("group.add", name="writers")
    admin.call("acl.add", group="writers", **{**READ_X, "permissions": ["WRITE"]})
    write = {**READ_X, "permissions": ["WRITE"]}
    with pytest.raises(errors.PermissionDenied):
        alice.call("credentials", **write)
    admin.call("group.join", group="writers", user="alice")
    assert alice.call("acl.check", **write)["permitted"]
    alice.call("credentials", **write)
    assert alice.call("whoami")["groups"] == ["writers"]
    admin.call("user.disable", name="alice")
    with pytest.raises(errors.PermissionDenied, match=r"user 'alice' is disabled.*acl user enable"):
        alice.call("whoami")
    wrong = Client(served.url, token="0" * 64, ca=served.ca)
    with pytest.raises(errors.PermissionDenied, match="neither a good token") as refused:
        wrong.call("whoami")
    assert "alice" not in str(refused.value)
    wrong.close()
    assert not admin.call("acl.check", user="alice", **write)["permitted"]


FORKED = """
import os, sys, threading
from pathlib import Path
from pyosd.secmgr.client import Client
client = Client(sys.argv[1], token=sys.argv[2], ca=Path(sys.argv[3]))
client.call("whoami")
held, go_on = threading.Event(), threading.Event()

def another_thread_is_inside():
    with client._lock:
        held.set()
        go_on.wait()

threading.Thread(target=another_thread_is_inside, daemon=True).start()
held.wait()
child = os.fork()
go_on.set()
found = [client.call("whoami")["user"] for _ in range(3)]
if child:
    os.waitpid(child, 0)
    found += [client.call("whoami")["user"] for _ in range(3)]
print("parent" if child else "child", *found, flush=True)
os._exit(0)
"""


def test_a_forked_child_has_a_connection_of_its_own(served: Served) -> None:
    """On the parent's, TLS would break for both."""
    served.world.add_user("alice")
    token = served.world.ask("token.add", user="alice")["token"]
    command = [sys.executable, "-c", FORKED, served.url, token, str(served.ca)]
    done = subprocess.run(command, capture_output=True, timeout=DEADLINE_S, text=True, check=False)
    assert done.stderr == ""
    assert done.stdout.splitlines() == ["child" + 3 * " alice", "parent" + 6 * " alice"]


def test_a_tag_narrows_and_a_bump_revokes(served: Served, alice: Client) -> None:
    admin = served.admin
    tag = admin.call("acl.revoke", target=TARGET, object=str(OBJECT))["tag"]
    assert served.world.model.tags[OBJECT] == tag == 1
    assert from_json(alice.call("credentials", **READ_X)).capability.policy_access_tag == 1
    assert admin.call("acl.revoke", target=TARGET, object=str(OBJECT))["tag"] == 2
    assert from_json(alice.call("credentials", **READ_X)).capability.policy_access_tag == 2
    served.world.model.tags.clear()  # removed, and made again
    again = from_json(alice.call("credentials", **READ_X, refused=True))
    assert again.capability.policy_access_tag == 0
    assert admin.call("acl.revoke", target=TARGET, object=str(OBJECT))["tag"] == 3
    every = {"target": TARGET, "object": f"{PARTITION:#x}/*", "permissions": ["WRITE"]}
    admin.call("acl.add", user="alice", **every, tag=7)
    write = {"target": TARGET, "object": f"{PARTITION:#x}/0x10007", "permissions": ["WRITE"]}
    assert from_json(alice.call("credentials", **write)).capability.policy_access_tag == 7


def test_what_only_administrators_may(served: Served, alice: Client) -> None:
    methods = served.world.service.methods
    for name, method in methods.items():
        if method.admin:
            with pytest.raises(errors.PermissionDenied, match="group 'admin'"):
                alice.call(name)
    assert not served.world.opened.audit.entries(what="acl.rm")
    assert sum(method.admin for method in methods.values()) > 20


def test_there_is_always_an_administrator(served: Served) -> None:
    admin = served.admin
    leave = {"group": "admin", "user": "root", "leave": True}
    for method, params in (
        ("user.rm", {"name": "root"}),
        ("user.disable", {"name": "root"}),
        ("group.join", leave),
        ("group.rm", {"name": "admin"}),
    ):
        with pytest.raises(SecmgrRefused):
            admin.call(method, **params)
    assert admin.call("whoami")["admin"]


def test_tokens_end(served: Served) -> None:
    world, admin = served.world, served.admin
    world.add_user("bob")
    soon = int(world.clock() * 1000) + 30_000
    made = admin.call("token.add", user="bob", label="laptop", until_ms=soon)
    bob = served.client(made["token"])
    assert bob.call("whoami")["user"] == "bob"
    assert made["token"] not in json.dumps(admin.call("token.ls"))
    world.clock.ahead = 31
    with pytest.raises(errors.PermissionDenied):
        bob.call("whoami")
    world.clock.ahead = 0
    admin.call("token.rm", id=made["id"])
    with pytest.raises(errors.PermissionDenied):
        bob.call("whoami")


def test_certificates(served: Served, tmp_path: Path) -> None:
    world, admin = served.world, served.admin
    world.add_user("bob")
    key, request = new_request("mallory")  # the name in the request is nobody's concern
    made = admin.call("certificate.sign", user="bob", request=request.decode())
    write_private(tmp_path / "key", key)
    (tmp_path / "pem").write_text(made["certificate"])

    def bob() -> Client:
        return served.client(certificate=tmp_path / "pem", key=tmp_path / "key")

    assert bob().call("whoami")["user"] == "bob"
    assert [each["user"] for each in admin.call("certificate.ls")["certificates"]] == ["bob"]
    admin.call("user.disable", name="bob")
    with pytest.raises(errors.PermissionDenied, match="user 'bob' is disabled"):
        bob().call("whoami")
    admin.call("user.disable", name="bob", enable=True)
    world.clock.ahead = (pki.USER_DAYS + 1) * 86400  # a connection outlasts its handshake
    with pytest.raises(errors.PermissionDenied):
        bob().call("whoami")
    world.clock.ahead = 0
    admin.call("certificate.rm", id=made["id"])
    with pytest.raises(errors.PermissionDenied):
        bob().call("whoami")
    with pytest.raises(SecmgrRefused, match="no certificate request"):
        admin.call("certificate.sign", user="bob", request="-----BEGIN")


def test_a_stranger_authority(served: Served, tmp_path: Path) -> None:
    """A certificate of somebody else's, by the name of an administrator."""
    (tmp_path / "other").mkdir()
    other = pki.Authority.make(tmp_path / "other", served.world.opened.sealer)
    key, request = new_request("root")
    _, certificate, _ = other.sign_user("root", request, 1)
    write_private(tmp_path / "key", key)
    (tmp_path / "pem").write_bytes(certificate)
    client = served.client(certificate=tmp_path / "pem", key=tmp_path / "key")
    with pytest.raises(errors.Unreachable):
        client.call("whoami")


def test_the_servers_certificate_is_renewed(
    world: World, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Clients keep their ca.pem.  No command of the administrator could make another one."""
    authority = pki.Authority.load(world.folder, world.opened.sealer)
    assert authority is not None and not authority.renew_server(world.folder)
    path = world.folder / pki.SERVER
    for change in ("ended", "ends soon", "made while the clock was ahead"):
        with monkeypatch.context() as patch:
            days = {"ended": ENDED, "ends soon": 89}.get(change, pki.SERVER_DAYS)
            patch.setattr(pki, "SERVER_DAYS", days)
            if change == "made while the clock was ahead":
                patch.setattr(pki, "SKEW", -timedelta(days=1))
            authority.make_server(world.folder, world.opened.sealer, ["localhost", "127.0.0.1"])
        before = path.read_bytes()
        assert authority.renew_server(world.folder) and path.read_bytes() != before, change
        assert not authority.renew_server(world.folder)
        assert stat.S_IMODE(path.stat().st_mode) == 0o600
    served = Served(world)
    try:
        assert served.admin.call("whoami")["user"] == "root"
    finally:
        served.stop()
    (tmp_path / "other").mkdir()
    other = pki.Authority.make(tmp_path / "other", world.opened.sealer)
    with monkeypatch.context() as patch:
        patch.setattr(pki, "SERVER_DAYS", 1)
        other.make_server(tmp_path / "other", world.opened.sealer, ["localhost"])
    (tmp_path / "other" / pki.SERVER).rename(path)
    assert authority.renew_server(world.folder)
    path.unlink()
    with pytest.raises(SecmgrError, match=f"cannot read {path}"):
        authority.renew_server(world.folder)


def test_a_start_renews_the_servers_certificate(
    world: World, monkeypatch: pytest.MonkeyPatch
) -> None:
    authority = pki.Authority.load(world.folder, world.opened.sealer)
    assert authority is not None
    with monkeypatch.context() as patch:
        patch.setattr(pki, "SERVER_DAYS", ENDED)
        authority.make_server(world.folder, world.opened.sealer, ["localhost", "127.0.0.1"])
    served = Served(world)
    try:
        with pytest.raises(errors.Unreachable, match="certificate has expired"):
            served.admin.call("whoami")
    finally:
        served.stop()
    world.opened.database.close()
    process = Process(world.folder)
    try:
        client = Client(process.url, token_file=world.token_file, ca=world.folder / pki.CA)
        with contextlib.closing(client):
            assert client.call("whoami")["user"] == "root"
    finally:
        assert "the server's certificate is renewed for 825 days" in process.stop()


def test_a_full_disk_is_reported_as_such(
    served: Served, alice: Client, caplog: pytest.LogCaptureFixture
) -> None:
    """Nobody's fault; everything is as before when there is room again."""
    database = served.world.opened.database
    assert isinstance(database, SqliteDatabase)
    [(pages,)] = database.run("PRAGMA page_count")
    database.run(f"PRAGMA max_page_count={pages}")
    with pytest.raises(errors.Unreachable, match="cannot use its database now; its log says why"):
        for _ in range(1000):
            alice.call("credentials", **READ_X)
    assert "secmgr.db: database or disk is full" in caplog.text and "Traceback" not in caplog.text
    database.run("PRAGMA max_page_count=1000000")
    assert served.world.model.takes(from_json(alice.call("credentials", **READ_X)), PARTITION)
    assert not [*served.world.opened.audit.verify(None)]


def test_an_impostor_is_not_believed(served: Served) -> None:
    with pytest.raises(errors.Unreachable, match="CERTIFICATE_VERIFY_FAILED"):
        Client(served.url, token="iosd-x").call("whoami")


def raw(served: Served, data: bytes, context: ssl.SSLContext | None = None) -> bytes:
    """The answer to raw bytes."""
    context = context or ssl.create_default_context(cafile=served.ca)
    port = int(served.url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), timeout=10) as plain,
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


def test_guessing_tokens_is_slow(served: Served) -> None:
    for _ in range(int(web.FAILURE_BURST)):
        with pytest.raises(errors.PermissionDenied):
            served.client("iosd-wrong").call("whoami")
    with pytest.raises(SecmgrRefused, match="wait"):
        served.client("iosd-wrong").call("whoami")
    assert served.admin.call("whoami")["user"] == "root"  # from the same address


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
    monkeypatch.setattr(web, "FIRST_REQUEST_S", 0.05)
    served = Served(world)
    try:
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


# ---- the source that the initiator uses ----


@pytest.fixture
def source(served: Served, alice: Client) -> SecurityManagerSource:
    world = served.world
    token = world.ask("token.add", user="alice")["token"]
    made = SecurityManagerSource(served.url, TARGET, token=token, ca=served.ca)
    served.clients.append(made.client)
    return made


def given(world: World) -> int:
    return len(world.opened.audit.entries(what="credential"))


def test_a_source_keeps_what_it_got(served: Served, source: SecurityManagerSource) -> None:
    first = source.credential(OBJECT, USER, Permission.READ)
    assert source.credential(OBJECT, USER, Permission.READ) is first
    assert given(served.world) == 1
    with pytest.raises(errors.PermissionDenied):
        source.credential(OBJECT, USER, Permission.WRITE)
    source.close()


def test_a_source_renews_ahead_of_the_end(
    served: Served, source: SecurityManagerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = source.credential(OBJECT, USER, Permission.READ)
    start = time.time()
    monkeypatch.setattr(time, "time", lambda: start + 560)
    assert source.credential(OBJECT, USER, Permission.READ) is first
    monkeypatch.setattr(time, "time", lambda: start + 575)
    served.world.clock.ahead = 0
    second = source.credential(OBJECT, USER, Permission.READ)
    assert second.capability.expires_ms > first.capability.expires_ms


def test_a_source_lives_on_what_it_has(
    served: Served, source: SecurityManagerSource, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = source.credential(OBJECT, USER, Permission.READ)
    served.stop()
    start = time.time()
    monkeypatch.setattr(time, "time", lambda: start + 580)
    assert source.credential(OBJECT, USER, Permission.READ) is first
    monkeypatch.setattr(time, "time", lambda: start + 601)
    with pytest.raises(errors.Unreachable):
        source.credential(OBJECT, USER, Permission.READ)


def test_threads_ask_once(served: Served, source: SecurityManagerSource) -> None:
    barrier = threading.Barrier(8)
    found = []

    def ask() -> None:
        barrier.wait()
        found.append(source.credential(OBJECT, USER, Permission.READ))

    threads = [threading.Thread(target=ask) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(found) == 8 and len(set(map(id, found))) == 1
    assert given(served.world) == 1


def test_a_refused_credential_is_asked_for_anew(
    served: Served, source: SecurityManagerSource
) -> None:
    world = served.world
    first = source.credential(OBJECT, USER, Permission.READ)
    world.model.format()
    world.model.ids.append(PARTITION)
    assert not world.model.takes(first, PARTITION)
    source.refused(first)
    second = source.credential(OBJECT, USER, Permission.READ)
    assert world.model.takes(second, PARTITION)


def test_no_command_fails_while_keys_change(served: Served, source: SecurityManagerSource) -> None:
    """Clients do as the initiator does: refused, they ask once more."""
    world = served.world
    stop = threading.Event()
    failed: list[str] = []
    done = [0, 0, 0]

    def work(who: int) -> None:
        while not stop.is_set():
            found = source.credential(OBJECT, USER, Permission.READ)
            if not world.model.takes(found, PARTITION):
                source.refused(found)
                found = source.credential(OBJECT, USER, Permission.READ)
                if not world.model.takes(found, PARTITION):
                    failed.append("refused twice")
            done[who] += 1

    def all_go_on() -> None:
        """Nobody is in the command of before: a second revocation within one may refuse it twice."""
        before = list(done)
        until(lambda: all(now >= then + 2 for now, then in zip(done, before, strict=True)))

    threads = [threading.Thread(target=work, args=(who,)) for who in range(len(done))]
    for thread in threads:
        thread.start()
    for _ in range(5):
        world.keys.rotate("root", TARGET, Level.WORKING)
        all_go_on()
    for _ in range(3):
        world.keys.freeze("root", TARGET, PARTITION)
        all_go_on()
    stop.set()
    for thread in threads:
        thread.join()
    assert not failed
