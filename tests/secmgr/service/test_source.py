# SPDX-License-Identifier: GPL-2.0-or-later
"""The source of credentials that the initiator uses: it keeps, renews and asks once."""

from __future__ import annotations

import threading
import time

import pytest

from iosd_secmgr.keys.keystore import Level
from pyosd import errors
from pyosd.secmgr.client import Client, SecurityManagerSource
from pyosd.security.credentials import Credential
from pyosd.wire.capability import Permission
from tests.secmgr.conftest import OBJECT, PARTITION, TARGET, USER, Served, World
from tests.waiting import until


@pytest.fixture
def source(served: Served, alice: Client) -> SecurityManagerSource:
    world = served.world
    token = world.ask("token.add", user="alice")["token"]
    made = SecurityManagerSource(served.url, TARGET, token=token, ca=served.ca)
    served.clients.append(made.client)
    return made


def given(world: World) -> int:
    return len(world.opened.audit.entries(what="credential"))


def given_at(credential: Credential) -> float:
    """When it was given: it lasts ten minutes."""
    return credential.capability.expires_ms / 1000 - 600


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
    start = given_at(first)
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
    start = given_at(first)
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
