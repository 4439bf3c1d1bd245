# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager over TLS: what users get, and what they may change."""

from __future__ import annotations

import hashlib
import json
import subprocess
import sys
import time

import pytest

from iosd_secmgr.records.database import SqliteDatabase
from pyosd import errors
from pyosd.secmgr.capabilities import from_json
from pyosd.secmgr.client import Client, SecmgrRefused
from pyosd.wire.capability import Permission, SecurityMethod
from tests.secmgr.conftest import OBJECT, PARTITION, READ_X, TARGET, USER, Served
from tests.waiting import DEADLINE_S


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
