# SPDX-License-Identifier: GPL-2.0-or-later
"""The audit log: what is changed, removed, cut off or added is noticed."""

from __future__ import annotations

import errno
import os
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from iosd_secmgr.records.audit import HEAD_EVERY, HEAD_FILE, Audit, Head, chained
from iosd_secmgr.records.database import Database, DatabaseFault, SqliteDatabase
from iosd_secmgr.records.sealing import Sealer
from tests.waiting import DEADLINE_S

SEALER = Sealer(bytes(32))
LENGTH = 10


@pytest.fixture
def log(tmp_path: Path) -> Audit:
    database = SqliteDatabase(tmp_path / "db")
    database.create()
    made = Audit(database, SEALER, tmp_path / HEAD_FILE)
    for number in range(LENGTH):
        made.add("alice", "test", number=number, text="§")
    return made


def run(log: Audit, sql: str, *values: object) -> None:
    with log._database.transaction() as tx:
        tx.run(sql, *values)


def test_a_whole_log(log: Audit) -> None:
    assert list(log.verify()) == []
    assert [each.detail["number"] for each in log.entries(after=7)] == [7, 8, 9]
    assert [each.seq for each in log.entries(most=2, newest=True)] == [9, 10]
    kept = log.keep_head()
    assert Head.parse(str(kept)) == kept
    log.add("bob", "more")
    assert list(log.verify(kept)) == []


@pytest.mark.parametrize("column", ["at_ms", "who", "what", "detail"])
@pytest.mark.parametrize("seq", [1, 5, LENGTH])
def test_a_changed_record(log: Audit, column: str, seq: int) -> None:
    run(log, f"UPDATE audit SET {column} = ? WHERE seq = ?", 7 if column == "at_ms" else "{}", seq)
    assert f"record {seq} was changed" in list(log.verify())


@pytest.mark.parametrize("seq", [1, 5])
def test_a_removed_record(log: Audit, seq: int) -> None:
    run(log, "DELETE FROM audit WHERE seq = ?", seq)
    assert list(log.verify()) == [f"record {seq} was removed"]


def test_a_cut_log(log: Audit) -> None:
    run(log, "DELETE FROM audit WHERE seq > 6")
    assert list(log.verify()) == ["the log was cut: it ends at 6, and its head says 10"]


def test_a_log_that_is_gone(log: Audit) -> None:
    run(log, "DELETE FROM audit")
    assert list(log.verify()) == ["the log was cut: it ends at 0, and its head says 10"]


def rewrite(log: Audit, first: int) -> None:
    """As somebody does who has the database: with hashes that fit."""
    before = bytes(32)
    for each in log.entries():
        text = '{"number": 99}' if each.seq == first else None
        with log._database.transaction() as tx:
            row = tx.run("SELECT detail FROM audit WHERE seq = ?", each.seq)[0][0]
            detail = text or row
            before = chained(before, each.seq, each.at_ms, each.who, each.what, detail)
            tx.run("UPDATE audit SET detail = ?, hash = ? WHERE seq = ?", detail, before, each.seq)


def test_a_log_that_was_written_anew(log: Audit) -> None:
    rewrite(log, 3)
    assert list(log.verify()) == ["record 10 is another one than the database's head says"]


def test_an_added_record(log: Audit) -> None:
    last = log.entries(newest=True, most=1)[0]
    hash_ = chained(last.hash, 11, 1, "eve", "test", "{}")
    run(log, "INSERT INTO audit VALUES (11, 1, 'eve', 'test', '{}', ?)", hash_)
    assert list(log.verify()) == ["records 11 to 11 were added by somebody else"]


def drop_head(database: Database) -> None:
    with database.transaction() as tx:
        tx.run("DELETE FROM meta")


def forge_head(database: Database) -> None:
    with database.transaction() as tx:
        head = Head(6, bytes(32)).signed(Sealer(b"\1" * 32))
        tx.run("UPDATE meta SET value = ?", head)


@pytest.mark.parametrize(
    ("tamper", "said"),
    [
        (drop_head, "the head of the log, the database's, was removed"),
        (forge_head, "the head of the log, the database's, was changed"),
    ],
)
def test_the_head(log: Audit, tamper: Callable[[Database], None], said: str) -> None:
    tamper(log._database)
    assert said in list(log.verify())


def test_an_older_database_is_noticed_by_the_file_beside_it(log: Audit) -> None:
    with log._database.transaction() as tx:
        (old,) = tx.run("SELECT value FROM meta")[0]
    log.add("alice", "to be forgotten")
    log.keep_head()
    run(log, "DELETE FROM audit WHERE seq = 11")
    run(log, "UPDATE meta SET value = ?", old)
    assert list(log.verify()) == ["the log was cut: it ends at 10, and its head says 11"]


def test_a_request_and_the_minute_write_the_head_in_turn(
    log: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both write the same new file before it gets its name: one found it gone, so a request failed."""
    failed: list[BaseException] = []
    sync = os.fsync

    def request() -> None:
        try:
            for _ in range(HEAD_EVERY):
                log.add("alice", "test")
        except OSError as error:
            failed.append(error)

    def meanwhile(descriptor: int) -> None:
        monkeypatch.setattr(os, "fsync", sync)
        other.start()
        other.join(0.2)  # it waits for us, unless both write
        sync(descriptor)

    other = threading.Thread(target=request)
    monkeypatch.setattr(os, "fsync", meanwhile)
    log.keep_head()
    other.join()
    assert not failed and list(log.verify()) == []


def test_requests_go_on_while_the_log_is_verified(
    log: Audit, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log of years takes minutes: nobody got a credential meanwhile."""
    from iosd_secmgr.records import audit

    def meanwhile(*record: Any) -> bytes:
        monkeypatch.setattr(audit, "chained", chained)
        request.start()
        request.join(DEADLINE_S)
        assert not request.is_alive()
        return chained(*record)

    request = threading.Thread(target=lambda: log.add("alice", "test"))
    monkeypatch.setattr(audit, "chained", meanwhile)
    assert list(log.verify()) == []
    assert log.head().seq == LENGTH + 1 and list(log.verify()) == []


def test_a_head_that_finds_no_room(log: Audit, monkeypatch: pytest.MonkeyPatch) -> None:
    """The disk is full, not we are at fault; and the record of the request is undone."""
    while log.head().seq < HEAD_EVERY - 1:
        log.add("alice", "test")
    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", lambda _: (_ for _ in ()).throw(OSError(errno.ENOSPC, "full")))
        with pytest.raises(DatabaseFault, match=f"cannot write .*{HEAD_FILE}: full"):
            log.add("alice", "test")
    assert log.head().seq == HEAD_EVERY - 1
    log.add("alice", "test")
    assert list(log.verify()) == []


def test_an_older_everything_is_noticed_by_a_head_kept_elsewhere(log: Audit) -> None:
    kept = Head(LENGTH + 1, bytes(32))
    assert list(log.verify(kept)) == ["the log was cut: it ends at 10, and its head says 11"]
    other = Head(3, b"\1" * 32)
    assert list(log.verify(other)) == ["record 3 is another one than the one you kept head says"]
