# SPDX-License-Identifier: GPL-2.0-or-later
"""Damaged backups, and backups of damaged stores: each is found, and costs no more than what is damaged."""

from __future__ import annotations

import errno
import json
import os
import struct
import time
from pathlib import Path
from typing import Any

import pytest

from iosd_host.cli import backup as backup_commands
from iosd_host.store_tools.backup import copying, repository
from iosd_host.store_tools.backup import restore as restoring
from iosd_host.store_tools.format.keys import KeyKind, KeyName, decode_spans
from iosd_host.store_tools.format.records import Place
from iosd_host.store_tools.opening.bdb import DatabaseError, Table
from iosd_host.store_tools.opening.folders import PIECE
from tests.offline.stores import Snapshot, Store, look
from tests.offline.test_backup import make, names, restored, roots, run


@pytest.fixture
def backups(folder: Path) -> Path:
    return folder / "backups"


def spoil(path: Path) -> None:
    """A changed byte: neither size nor times say so."""
    info = path.stat()
    path.write_bytes(bytes([path.read_bytes()[0] ^ 1]) + path.read_bytes()[1:])
    os.utime(path, ns=(info.st_atime_ns, info.st_mtime_ns))


def data_file(backup: Path) -> Path:
    """The largest, so that it is one with data."""
    found = (path for path in (backup / "main" / "data").rglob("*") if path.is_file())
    return max(found, key=lambda path: path.stat().st_size)


def test_a_new_backup_links_to_no_damaged_file(
    store: Store, backups: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "SLACK_NS", 0)
    made = make(store, backups)["name"]
    file = data_file(backups / made)
    again = make(store, backups)["name"]
    shared = backups / again / file.relative_to(backups / made)
    assert shared.samefile(file)
    spoil(file)
    checked = run(backup_commands.backup, "verify", backups, made, "-o", "json")
    assert checked.exit_code == 65
    assert json.loads(checked.stdout)["schema"] == "iosd.backup-check/1"
    after = make(store, backups)["name"]
    assert run(backup_commands.backup, "verify", backups, after).exit_code == 0
    assert run(backup_commands.backup, "verify", backups, again).exit_code == 65
    last = make(store, backups)
    assert last["copied_files"] < last["files"] / 2
    restored(store, backups, folder / "other")


def test_a_shared_file_is_read_once(
    store: Store, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "SLACK_NS", 0)
    made = [backups / make(store, backups)["name"] for _ in range(3)]
    read: list[int] = []

    def digest_of(descriptor: int) -> tuple[str, int]:
        read.append(os.fstat(descriptor).st_ino)
        return copying.digest_of(descriptor)

    monkeypatch.setattr(repository, "digest_of", digest_of)
    spoil(data_file(made[0]))
    result = run(backup_commands.backup, "verify", backups, "--all")
    assert result.exit_code == 65
    assert [result.output.count(f"{each.name}: damaged files: 1\n") for each in made] == [1, 1, 1]
    assert len(read) == len(set(read))
    assert data_file(made[0]).stat().st_ino in read


def test_a_file_of_another_length_is_not_linked(
    store: Store, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(copying, "SLACK_NS", 0)
    made = make(store, backups)["name"]
    os.truncate(data_file(backups / made), 100)
    make(store, backups)
    assert run(backup_commands.backup, "verify", backups).exit_code == 0


def test_a_backup_without_its_description_is_told(store: Store, backups: Path) -> None:
    made = [make(store, backups)["name"] for _ in range(2)]
    (backups / made[0] / "backup.json").unlink()
    listed = run(backup_commands.backup, "ls", backups)
    assert listed.exit_code == 65 and f"{made[0]}/backup.json" in listed.stderr
    assert made[1] in listed.stdout
    assert run(backup_commands.backup, "verify", backups, "--all").exit_code == 65
    make(store, backups, "--keep", "1")
    assert len(names(backups)) == 1 and not (backups / made[0]).exists()


def test_the_rest_of_a_damaged_backup(
    store: Store, before: Snapshot, backups: Path, folder: Path
) -> None:
    made = backups / make(store, backups)["name"]
    spoilt = data_file(made)
    spoil(spoilt)
    other = Store(folder / "other", store.two_roots, store.names)
    words: list[str | Path] = [backups, *roots(store, other.folder)]
    refused = run(backup_commands.restore, *words)
    assert refused.exit_code == 1 and "is damaged" in refused.stderr
    result = run(backup_commands.restore, *words, "--accept-damage")
    assert result.exit_code == 65 and f"'{spoilt}' is damaged" in result.stderr
    assert other.check() == []
    with other.serve() as osd:
        after = look(osd)
    assert [obj for obj in before if after[obj] != before[obj]] == [store.names.long]
    (made / "main" / "db" / "objects.db").unlink()
    for path in other.roots:
        path.rename(path.with_name(path.name + " old"))
    refused = run(backup_commands.restore, *words, "--accept-damage")
    assert refused.exit_code == 1 and "objects.db' is missing" in refused.stderr


def bad_sector(monkeypatch: pytest.MonkeyPatch, path: Path, sector: int) -> None:
    """Reads up to a sector end before it, and those from there fail, as the kernel's do."""
    inode, pread, end = path.stat().st_ino, os.pread, sector + 4096

    def read(descriptor: int, count: int, offset: int) -> bytes:
        if os.fstat(descriptor).st_ino == inode and offset < end and offset + count > sector:
            if offset >= sector:
                raise OSError(errno.EIO, os.strerror(errno.EIO))
            count = sector - offset
        return pread(descriptor, count, offset)

    monkeypatch.setattr(os, "pread", read)


@pytest.mark.parametrize("what", ["sector", "open"])
def test_the_rest_of_a_backup_with_a_file_that_cannot_be_read(
    store: Store,
    before: Snapshot,
    backups: Path,
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    what: str,
) -> None:
    made = backups / make(store, backups)["name"]
    bad, opened = data_file(made), os.open

    def refuse(path: Any, *words: Any, **keys: Any) -> int:
        if Path(path) == bad:
            raise OSError(errno.EIO, os.strerror(errno.EIO), str(path))
        return opened(path, *words, **keys)

    if what == "open":
        monkeypatch.setattr(os, "open", refuse)
    else:
        bad_sector(monkeypatch, bad, 8192)
    other = Store(folder / "other", store.two_roots, store.names)
    words: list[str | Path] = [backups, *roots(store, other.folder)]
    sentence = f"'{bad}' cannot be read (Input/output error)"
    refused = run(backup_commands.restore, *words)
    assert refused.exit_code == 1 and sentence in refused.stderr
    result = run(backup_commands.restore, *words, "--accept-damage")
    assert result.exit_code == 65 and result.stderr.count("cannot be read") == 1
    assert sentence in result.stderr
    monkeypatch.undo()
    if what == "open":
        assert other.check()  # it is left out
        return
    assert other.check() == []
    with other.serve() as osd:
        after = look(osd)
    assert [obj for obj in before if after[obj] != before[obj]] == [store.names.long]


def test_pieces_behind_a_bad_sector_are_copied(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = os.urandom(3 * PIECE)
    (tmp_path / "a").write_bytes(data)
    bad_sector(monkeypatch, tmp_path / "a", PIECE + 4096)
    failures: list[OSError] = []
    with (tmp_path / "a").open("rb") as old, (tmp_path / "b").open("wb") as new:
        copying.copy_with_digest(old.fileno(), new.fileno(), failures)
    assert [each.errno for each in failures] == [errno.EIO]
    at = PIECE
    assert (tmp_path / "b").read_bytes() == data[:at] + bytes(at) + data[2 * at :]


def test_a_file_of_the_store_with_a_bad_sector(
    store: Store, backups: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is named, and its bytes are not taken for zeros."""
    files = (path for path in (store.data / "data").rglob("*") if path.is_file())
    bad = max(files, key=lambda path: path.stat().st_size)
    bad_sector(monkeypatch, bad, 8192)
    result = run(backup_commands.backup, "make", backups, *roots(store))
    assert result.exit_code == 1 and f"'{bad}': Input/output error" in result.stderr
    assert names(backups) == [] and not list(backups.glob("*.partial"))


def test_damaged_records_of_keys_are_restored(store: Store, backups: Path, folder: Path) -> None:
    """`check` finds them in the restored store.  No nonce from before is taken."""
    nonces = KeyName(Place(0, 0), KeyKind.NONCES, 0).encode()
    store.put(Table.KEYS, nonces, b"nonsense")
    store.put(Table.KEYS, b"odd", b"key")
    make(store, backups)
    other = restored(store, backups, folder / "other")
    with other.database() as database:
        ((first, last),) = decode_spans(database.get(Table.KEYS, nonces) or b"")
    assert first == 0 and last > 0
    assert other.kinds() == {"key-record-damaged"}


def test_a_restore_while_the_clock_is_behind(
    store: Store, backups: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A host without a battery: no nonce of the backup's time is taken again."""
    nonces = KeyName(Place(0, 0), KeyKind.NONCES, 0).encode()
    late = time.time_ns() // 1_000_000 + 1_000_000
    spans = b"".join(struct.pack(">QQ", late + 9 * n, late + 9 * n + 1) for n in range(8))
    store.put(Table.KEYS, nonces, b"\1" + spans)
    moment = make(store, backups)["moment_ms"]
    monkeypatch.setattr(time, "time_ns", lambda: 0)
    other = restored(store, backups, folder / "other")
    with other.database() as database:
        found = decode_spans(database.get(Table.KEYS, nonces) or b"")
    assert found[0][0] == 0 and found[0][1] > moment
    assert found[-1][1] == late + 64 and len(found) == 8
    assert other.check() == []


def test_a_full_disk_is_no_damaged_backup(
    store: Store, backups: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any, **__: Any) -> None:
        raise DatabaseError(errno.ENOSPC, "No space left on device")

    make(store, backups)
    with monkeypatch.context() as patched:
        patched.setattr(restoring, "StoreDatabase", full)
        result = run(backup_commands.restore, backups, *roots(store, folder / "other"))
    assert result.exit_code == 1
    assert "no space left in" in result.stderr and "another backup" not in result.stderr
    restored(store, backups, folder / "other")


@pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")
def test_the_lock_belongs_to_the_stores_owner(store: Store, backups: Path) -> None:
    """A target that runs as the owner must be able to open it."""
    for path in (store.folder, *store.folder.rglob("*")):
        os.chown(path, 12345, 12345)
    for path in store.folder.parents:
        if path.stat().st_uid == 0 and not path.stat().st_mode & 1:
            path.chmod(path.stat().st_mode | 0o111)
    for root in store.roots:
        (root / "lock").unlink()
    make(store, backups)
    assert {(root / "lock").stat().st_uid for root in store.roots} == {12345}


def test_the_earlier_spelling_of_json(store: Store, backups: Path) -> None:
    made = make(store, backups)["name"]
    result = run(backup_commands.backup, "ls", backups, "--json")
    assert json.loads(result.stdout)["name"] == made
    assert "--json" not in run(backup_commands.backup, "ls", "--help").stdout
