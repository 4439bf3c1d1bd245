# SPDX-License-Identifier: GPL-2.0-or-later
"""The log of the database: what is lost with a damaged one is told, and nothing else is lost."""

from __future__ import annotations

import errno
import fcntl
import os
import shutil
import signal
from pathlib import Path
from typing import Any

import pytest

from iosd_host.cli import store as commands
from iosd_host.store_tools.opening import tables
from iosd_host.store_tools.opening.bdb import DatabaseError, apart
from iosd_host.store_tools.opening.log import HEADER, LogWatch, content_end
from pyosd.types import PartitionId
from tests.offline.damage import head_file
from tests.offline.stores import FIRST, Snapshot, Store, look, started

MADE = 30
LOST = "the last changes before the stop are lost"


def log_of(store: Store) -> Path:
    return max((store.data / "db").glob("log.*"))


@pytest.fixture
def killed(store: Store) -> tuple[Store, Snapshot]:
    """A store as kill -9 leaves it, with changes that are in the log alone; and what was answered."""
    harness = started(store.folder, store.two_roots)
    for number in range(MADE):
        harness.osd.write(harness.osd.create(PartitionId(FIRST)), 0, b"answered %d" % number)
    seen = look(harness.osd)
    harness.kill()
    ignored = shutil.ignore_patterns("ballast")
    shutil.copytree(store.folder, store.folder / "killed", ignore=ignored)
    return Store(store.folder / "killed", store.two_roots, store.names), seen


def seen_in(store: Store) -> Snapshot:
    with store.serve() as osd:
        return look(osd)


def record_after(data: bytes, near: int) -> int:
    """Where a record of the log begins."""
    at = 0
    while at < near:
        at += HEADER.unpack_from(data, at)[1]
    return at


@pytest.mark.parametrize("inside", [4, 20], ids=["in a header", "in a record"])
def test_a_changed_byte_is_told(killed: tuple[Store, Snapshot], inside: int) -> None:
    """Recovery takes it for the end of the log, and drops all that follows."""
    store, seen = killed
    log = log_of(store)
    data = bytearray(log.read_bytes())
    data[record_after(bytes(data), len(data.rstrip(b"\0")) - 3000) + inside] ^= 1
    log.write_bytes(data)
    served = store.copy(store.folder / "served")
    seen_in(served)
    assert LOST in (served.folder / "log").read_text()
    (found,) = [each for each in store.check() if each["kind"] == "log-damaged"]
    assert f"{log.name} cannot be read from byte" in found["detail"]
    assert "log-damaged" in {each["kind"] for each in store.repair()}
    assert (store.data / "set-aside" / log.name).read_bytes() == data.rstrip(b"\0")
    assert store.check() == []
    assert seen_in(store).items() <= seen.items()


def test_the_end_of_a_new_log(tmp_path: Path) -> None:
    """Berkeley DB makes it long by a zero at its end: a hole is no record, and is not read."""
    path = tmp_path / "log.0000000001"
    with path.open("wb") as log:
        log.write(b"record" + bytes(70_000) + b"another" + bytes(9))
        os.truncate(path, 1 << 26)
        os.pwrite(log.fileno(), b"\0", (1 << 26) - 1)
    with path.open("rb") as log:
        assert content_end(log.fileno()) == 6 + 70_000 + 7
    assert len(LogWatch(tmp_path).data) == 6 + 70_000 + 7
    path.write_bytes(bytes(100))
    with path.open("rb") as log:
        assert content_end(log.fileno()) == 0


def test_a_record_that_a_kill_cut_is_no_damage(killed: tuple[Store, Snapshot]) -> None:
    store, _ = killed
    log = log_of(store)
    os.truncate(log, len(log.read_bytes().rstrip(b"\0")) - 5)
    assert "log-damaged" not in store.kinds()
    seen_in(store)
    assert LOST not in (store.folder / "log").read_text()


@pytest.mark.parametrize("template", [False, True], indirect=True, ids=["one root", "two roots"])
def test_a_log_that_has_lost_its_end(store: Store, before: Snapshot) -> None:
    """The target cannot write to pages that are younger than the log."""
    log = log_of(store)
    os.truncate(log, len(log.read_bytes().rstrip(b"\0")) * 3 // 4)
    assert store.kinds() == {"log-damaged"}
    store.repair()
    assert store.check() == []
    with store.serve() as osd:
        assert look(osd) == before
        osd.create(PartitionId(FIRST))


def test_a_damaged_table_costs_the_others_nothing(killed: tuple[Store, Snapshot]) -> None:
    store, seen = killed
    os.truncate(store.data / "db" / "commands.db", 1033)
    assert store.kinds() == {"table-damaged"}
    store.repair()
    assert store.check() == []
    assert seen_in(store) == seen


@pytest.mark.parametrize("served", [False, True], ids=["at once", "a target made it again"])
def test_killed_while_a_table_is_left_out(store: Store, before: Snapshot, served: bool) -> None:
    table = store.data / "db" / "memberships.db"
    table.rename(table.with_name(table.name + tables.LEFT_OUT))
    if served:
        seen_in(store)
    assert store.check() == []
    assert store.repair() == []
    assert seen_in(store) == before


def test_a_full_disk_is_no_damage(
    killed: tuple[Store, Snapshot], monkeypatch: pytest.MonkeyPatch
) -> None:
    store, seen = killed

    def full(*_: Any, **__: Any) -> None:
        raise DatabaseError(errno.ENOSPC, "No space left on device -- BDB0137 write: 0x1, 95")

    untouched = store.digest()
    with monkeypatch.context() as patched:
        patched.setattr(tables, "StoreDatabase", full)
        result = store.run(commands.repair, "--yes", here=True)
    assert result.exit_code == 1
    assert "No space left on device" in result.stderr and "backup" not in result.stderr
    assert store.digest() == untouched
    assert store.repair() == []
    assert seen_in(store) == seen


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_files_of_another_user(store: Store) -> None:
    for path in (store.folder, *store.folder.rglob("*")):
        os.chown(path, 12345, 12345)
    for path in store.folder.parents:
        if path.stat().st_uid == 0 and not path.stat().st_mode & 1:
            path.chmod(path.stat().st_mode | 0o111)
    table = store.data / "db" / "objects.db"
    os.chown(table, 0, 0)
    untouched = store.digest()
    for words in (["--yes"], ["--dry-run"]):
        result = store.run(commands.repair, *words)
        assert result.exit_code == 77, result.output
        assert "objects.db': Permission denied" in result.stderr and "chown" in result.stderr
    assert store.digest() == untouched
    os.chown(table, 12345, 12345)
    assert store.repair() == []
    data = head_file(store, store.names.plain)
    os.chown(data, 0, 0)
    (found,) = store.check()
    assert found["kind"] == "unreadable" and "chown" in found["detail"]
    os.chown(data, 12345, 12345)
    data.chmod(0o400)
    (found,) = store.check()
    assert found["kind"] == "unreadable" and "chmod" in found["detail"]


def test_copies_of_killed_checks_are_removed(store: Store) -> None:
    """Of the database, as large as it is; not the copy of a check that still runs."""
    dead, held, young = (store.folder / f"iosd-store.{name}" for name in ("dead", "held", "young"))
    for path in (dead, held, young):
        path.mkdir()
        (path / "objects.db").write_bytes(b"copy")
    for path in (dead, held):
        os.utime(path, (0, 0))
    descriptor = os.open(held, os.O_RDONLY)
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX)
        assert store.check() == []
    finally:
        os.close(descriptor)
    assert sorted(store.folder.glob("iosd-store.*")) == [held, young]


def test_a_crash_of_berkeley_db_is_a_finding(tmp_path: Path) -> None:
    died = apart(lambda folder: os.kill(os.getpid(), signal.SIGUSR1), tmp_path)
    assert died == "Berkeley DB crashed"
    assert apart(lambda folder: None, tmp_path) == ""
    with pytest.raises(DatabaseError, match="was killed"):
        apart(lambda folder: os.kill(os.getpid(), signal.SIGKILL), tmp_path)


@pytest.mark.parametrize(
    ("error", "kind", "text"),
    [
        (MemoryError(), OSError, "Cannot allocate memory"),
        (OSError(errno.ENOSPC, "full"), OSError, "No space left"),
        (ValueError("a mistake"), RuntimeError, "ValueError.*a mistake"),
    ],
    ids=["memory", "disk", "a mistake of ours"],
)
def test_what_is_no_finding_about_the_files(
    tmp_path: Path, error: Exception, kind: type[Exception], text: str
) -> None:
    """After a finding, the log is set aside: its changes are lost."""

    def act(_: Path) -> None:
        raise error

    with pytest.raises(kind, match=text):
        apart(act, tmp_path)
