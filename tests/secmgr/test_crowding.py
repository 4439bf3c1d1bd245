# SPDX-License-Identifier: GPL-2.0-or-later
"""A target that does not answer, and a user who asks for keys of it again and again."""

from __future__ import annotations

import contextlib
import threading
from collections.abc import Iterator

import pytest

from iosd_secmgr.access.refusal import Refusal
from iosd_secmgr.http import web
from iosd_secmgr.keys.device import Device
from iosd_secmgr.keys.keystore import Level
from iosd_secmgr.methods import service
from iosd_secmgr.records.database import SqliteDatabase
from pyosd import errors
from pyosd.secmgr.client import SecmgrRefused
from tests.secmgr.conftest import PARTITION, TARGET, Served
from tests.waiting import until

READ = {"target": TARGET, "object": f"{PARTITION:#x}/0x10000", "permissions": ["READ"]}
OF_SILENT = {**READ, "object": "0x10099/0x10000"}


class Silence:
    """A target that does not answer.  asked: how many sessions were begun."""

    def __init__(self) -> None:
        self.asked = 0
        self.over = threading.Event()

    def connect(self, record: object, login: str) -> Device:
        self.asked += 1
        self.over.wait(60)
        raise errors.Unreachable("it says nothing")


@pytest.fixture
def silence(served: Served, monkeypatch: pytest.MonkeyPatch) -> Silence:
    """Alice can have a credential without the target, mallory cannot."""
    world, made = served.world, Silence()
    world.add_target()
    world.keys.rotate("root", TARGET, Level.ROOT)
    for name, wanted in (("alice", READ), ("mallory", OF_SILENT)):
        world.add_user(name)
        world.ask("acl.add", user=name, **wanted)
    monkeypatch.setattr(world.keys, "_connect", made.connect)
    return made


@contextlib.contextmanager
def asking(served: Served, silence: Silence, count: int) -> Iterator[list[str]]:
    """Mallory asks for so many credentials at once.  Yields: codes of refusals so far."""
    token = served.world.ask("token.add", user="mallory")["token"]
    refused = list[str]()

    def ask() -> None:
        try:
            served.client(token).call("credentials", **OF_SILENT)
        except SecmgrRefused as error:
            refused.append(error.code)
        except errors.Unreachable:
            pass

    threads = [threading.Thread(target=ask) for _ in range(count)]
    for each in threads:
        each.start()
    try:
        until(lambda: silence.asked > 0)
        yield refused
    finally:
        silence.over.set()
        for each in threads:
            each.join()


def test_a_user_who_waits_for_a_target_stops_nobody_else(served: Served, silence: Silence) -> None:
    token = served.world.ask("token.add", user="alice")["token"]
    with asking(served, silence, web.THREADS + 1):
        assert served.client(token, timeout=30).call("credentials", **READ)["key"]


def test_requests_that_wait_have_a_limit(
    served: Served, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(web, "OF_ONE_AT_WORK", 1)
    monkeypatch.setattr(web, "OF_ONE_ASKED", 3)
    with asking(served, silence, 5) as refused:
        until(lambda: refused == ["too-many"] * 2)
        assert silence.asked == 1


def test_a_user_finds_credentials_without_reading_the_log_of_others(
    served: Served, silence: Silence
) -> None:
    world = served.world
    database = world.opened.database
    assert isinstance(database, SqliteDatabase)
    alice, looked = world.service.caller("alice"), list[str]()
    given = world.service.call(alice, "credentials", READ)["discriminator"]
    database._db.set_trace_callback(looked.append)
    for fields in ({}, {"discriminator": given}):
        [found] = world.service.call(alice, "credentials.issued", fields)["credentials"]
        assert found["id"] == given
    database._db.set_trace_callback(None)
    wide = [sql for sql in looked if "FROM audit" in sql and "LIMIT 1" not in sql]
    with database.transaction() as tx:
        plans = [str(tx.run(f"EXPLAIN QUERY PLAN {sql}")) for sql in wide]
    assert plans and all("audit_of (who=? AND what=?" in each for each in plans)


def test_others_get_credentials_while_the_log_is_searched(
    served: Served, silence: Silence, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An administrator asks whose a credential was: the whole log of years is read."""
    world = served.world
    database = world.opened.database
    assert isinstance(database, SqliteDatabase)
    given = [
        world.service.call(world.service.caller("alice"), "credentials", READ)["discriminator"]
        for _ in range(6)
    ]
    monkeypatch.setattr(service, "SEARCHED", 2)
    looked = list[str]()
    database._db.set_trace_callback(looked.append)
    for each in given:
        [found] = world.ask("credentials.issued", discriminator=each)["credentials"]
        assert found["id"] == each
    database._db.set_trace_callback(None)
    searches = [sql for sql in looked if "LIKE" in sql]
    assert len(searches) >= len(given) * 3
    assert sum(sql.startswith("BEGIN") for sql in looked) > len(searches)


def test_the_log_takes_no_long_names(served: Served, silence: Silence) -> None:
    world = served.world
    before = world.opened.audit.head()
    with pytest.raises(Refusal, match="no name of a target"):
        world.service.call(
            world.service.caller("mallory"), "credentials", {**READ, "target": "x" * 8000}
        )
    assert world.opened.audit.head() == before
