# SPDX-License-Identifier: GPL-2.0-or-later
"""Rights that end after a request was begun and before it is done: nothing is done, nothing is given."""

from __future__ import annotations

import socket
import ssl
import threading
from collections.abc import Callable
from typing import Any

import pytest

from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.http import web
from iosd_secmgr.keys.keystore import Level
from iosd_secmgr.methods.table import Requester
from tests.secmgr.conftest import PARTITION, TARGET, Served, World

READ = {"target": TARGET, "object": f"{PARTITION:#x}/0x10000", "permissions": ["READ"]}


def test_a_body_that_comes_after_the_end_of_its_token(
    served: Served, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator who expects to be shut out holds a request back that makes another token."""
    monkeypatch.setattr(web, "BODY_S", 3600.0)
    world, known = served.world, threading.Event()
    world.add_user("eve")
    world.ask("group.join", group="admin", user="eve")
    token = world.ask("token.add", user="eve")
    by_token: Callable[[str], Requester | None] = world.service.by_token

    def watched(text: str) -> Requester | None:
        found = by_token(text)
        known.set()
        return found

    monkeypatch.setattr(world.service, "by_token", watched)
    body = b'{"user": "root"}'
    head = (
        f"POST /v1/token.add HTTP/1.1\r\nHost: x\r\nAuthorization: Bearer {token['token']}\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\nConnection: close\r\n\r\n"
    )
    context = ssl.create_default_context(cafile=served.ca)
    port = int(served.url.rpartition(":")[2])
    with (
        socket.create_connection(("127.0.0.1", port), 30) as plain,
        context.wrap_socket(plain, server_hostname="localhost") as stream,
    ):
        stream.sendall(head.encode())
        assert known.wait(30)
        world.ask("token.rm", id=token["id"])
        before = world.ask("token.ls")
        stream.sendall(body)
        assert stream.recv(65536).startswith(b"HTTP/1.1 401 ")
    assert world.ask("token.ls") == before


@pytest.mark.parametrize("how", ["rule", "group", "disabled", "removed"])
@pytest.mark.parametrize("step", ["signer", "refused"])
def test_rights_that_end_while_a_request_waits_for_keys(
    world: World, monkeypatch: pytest.MonkeyPatch, how: str, step: str
) -> None:
    """Whoever freezes keys after that is sure that no new key has signed for them."""
    world.add_target()
    world.keys.rotate("root", TARGET, Level.ROOT)
    world.add_user("eve")
    world.ask("group.add", name="staff")
    world.ask("group.join", group="staff", user="eve")
    rule = world.ask("acl.add", group="staff", **READ)["id"]
    original = getattr(world.keys, step)

    def late(*values: Any) -> Any:
        monkeypatch.undo()
        match how:
            case "rule":
                world.ask("acl.rm", id=rule)
            case "group":
                world.ask("group.join", group="staff", user="eve", leave=True)
            case "disabled":
                world.ask("user.disable", name="eve")
            case "removed":
                world.ask("user.rm", name="eve")
        world.keys.freeze("root", TARGET, PARTITION)
        return original(*values)

    monkeypatch.setattr(world.keys, step, late)
    with pytest.raises(Refusal) as refused:
        world.service.call(
            world.service.caller("eve"), "credentials", {**READ, "refused": step == "refused"}
        )
    assert refused.value.code == "not-permitted"
