# SPDX-License-Identifier: GPL-2.0-or-later
"""Root's tools on a store whose owner has put other things than files into it."""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import socket
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli.backup import verify
from iosd_host.common.exit_codes import EXIT_NOT_PERMITTED, EXIT_PROBLEMS
from iosd_host.common.whole_file import open_file, read_small
from iosd_host.store_tools.backup import repository as repository_module
from iosd_host.store_tools.backup.make import BackupSettings, back_up
from iosd_host.store_tools.backup.repository import Repository
from iosd_host.store_tools.backup.restore import begin_anew
from iosd_host.store_tools.format.superblock import RootRole
from iosd_host.store_tools.opening import bdb, tables
from iosd_host.store_tools.opening.bdb import StoreDatabase, Table
from iosd_host.store_tools.opening.folders import Refused, as_owner, read_root
from iosd_host.store_tools.session import looking, repairing
from tests.offline.stores import Store

NOBODY = 65534
Make = Callable[[Path], object]


def bind(path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as made:
        made.bind(str(path))


def endless(path: Path) -> None:
    with path.open("wb") as file:
        file.truncate(1 << 42)


STRANGE: dict[str, Make] = {
    "a FIFO": os.mkfifo,
    "a device": lambda path: path.symlink_to("/dev/zero"),
    "a link": lambda path: path.symlink_to("/etc/shadow"),
    "a loop": lambda path: path.symlink_to(path.name),
    "a folder": os.mkdir,
    "a socket": bind,
}


@pytest.mark.parametrize("make", [*STRANGE.values(), endless], ids=[*STRANGE, "endless"])
def test_no_strange_superblock_is_read(folder: Path, make: Make) -> None:
    make(folder / "superblock")
    root = read_root(folder, RootRole.MAIN)
    assert root.superblock is None and "bytes instead of" in root.damage


@pytest.mark.parametrize("make", STRANGE.values(), ids=STRANGE)
def test_only_files_are_opened(folder: Path, make: Make) -> None:
    path = folder / "x"
    make(path)
    assert read_small(path, 10) == b""
    with pytest.raises(OSError):
        open_file(path)
    with pytest.raises(FileNotFoundError):
        read_small(folder / "absent", 10)


def test_a_backup_by_root_reads_no_device(store: Store, folder: Path) -> None:
    for root in store.roots:
        (root / "superblock").unlink()
        (root / "superblock").symlink_to("/dev/zero")
    with pytest.raises(Refused, match="superblock"):
        back_up(
            store.data, store.ssd, Repository(folder / "backups"), BackupSettings(), lambda *_: None
        )


def test_a_terminal_obeys_no_name_in_a_backup(store: Store, folder: Path) -> None:
    name = "data/\x1b]0;title\x07\n"
    for root in store.roots:
        (root / name).write_bytes(b"x")
    repository = Repository(folder / "backups")
    made, _ = back_up(store.data, store.ssd, repository, BackupSettings(), lambda *_: None)
    (made.path / "main" / name).write_bytes(b"y")
    done = CliRunner().invoke(verify, [str(repository.path)])
    assert (done.exit_code, done.output.count("\x1b")) == (EXIT_PROBLEMS, 0)
    assert "data/^[]0;title^G^J: " in done.output


def test_backups_of_another_user_are_refused_with_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def denied(_: Path) -> dict[str, object]:
        raise PermissionError(errno.EACCES, "Permission denied")

    monkeypatch.setattr(repository_module, "json_object", denied)
    with pytest.raises(Refused, match="as the owner of the backups or as root") as refused:
        Repository(tmp_path).check()
    assert refused.value.code == EXIT_NOT_PERMITTED


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_root_has_no_group_of_its_own_as_the_owner(folder: Path) -> None:
    secret = folder / "secret"
    secret.write_text("of root's group")
    secret.chmod(0o040)
    inside = os.open(folder, os.O_RDONLY)  # those above it are root's alone
    os.chown(folder, NOBODY, NOBODY)
    before = os.getgroups()
    os.setgroups([0])
    try:
        with as_owner(folder), pytest.raises(PermissionError):
            os.open("secret", os.O_RDONLY, dir_fd=inside)
        assert os.getgroups() == [0]
    finally:
        os.setgroups(before)
        os.close(inside)


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
def test_what_reads_a_database_cannot_become_root_again(
    folder: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Its owner may have made one that Berkeley DB does not survive, and cannot reach root's programs."""
    for above in (folder, folder.parent):
        above.chmod(0o755)
    os.chown(folder, NOBODY, NOBODY)
    said = folder / "said"
    hidden = tmp_path / "hidden"
    hidden.mkdir(mode=0o700)
    program = hidden / "program"
    program.write_text(f"#!/bin/sh\ngrep -E '^(Uid|Gid)' /proc/self/status >>{said}\n")
    program.chmod(0o755)
    (folder / Table.META.value).write_bytes(b"x")
    monkeypatch.setattr(bdb, "find_component", lambda _: program)
    salvages = folder / "salvages"
    shutil.copy(program, salvages)
    monkeypatch.setattr(bdb, "_program", lambda _: salvages)

    def act(folder: Path) -> None:
        (folder / "said").write_text(f"{os.getresuid()} {os.getresgid()}\n")

    with as_owner(folder):
        assert bdb.apart(act, folder) == ""
        bdb.damaged_tables(folder)
        assert [*bdb.salvage(folder / Table.META.value)] == []
    ids = "\t".join(4 * [str(NOBODY)])
    three = str((NOBODY,) * 3)
    assert said.read_text().splitlines() == [
        f"{three} {three}",
        *2 * [f"Uid:\t{ids}", f"Gid:\t{ids}"],
    ]


def hostile_log(folder: Path, outside: Path) -> None:
    """A database whose log says that a file elsewhere was made and written."""
    made = folder.with_name("made")
    made.mkdir()
    with StoreDatabase(made, create=True) as database:
        database.open_table(Table.NAMES, str(outside))
        with database.transaction() as transaction:
            transaction.put(Table.NAMES, b"key", b"\n* * * * * root evil\n")
        shutil.copytree(made, folder, dirs_exist_ok=True)
    outside.unlink()


@pytest.mark.parametrize("user", [os.geteuid(), NOBODY])
def test_recovery_writes_no_file_that_a_log_names_elsewhere(user: int) -> None:
    """Of a backup, or of a store, that somebody else has made."""
    if user != os.geteuid() and os.geteuid() != 0:
        pytest.skip("needs root to be somebody else")
    with tempfile.TemporaryDirectory() as name:
        folder, outside = Path(name) / "db", Path(name) / "outside"
        folder.parent.chmod(0o777)
        hostile_log(folder, outside)
        for path in (folder, *folder.iterdir()):
            os.chown(path, user, user)
        child = os.fork()
        if child == 0:
            os.setresgid(user, user, user)
            os.setresuid(user, user, user)
            with contextlib.suppress(BaseException):
                tables.prepare(folder, Path(name) / "aside")
                begin_anew(folder, 0)
            os._exit(0)
        os.waitpid(child, 0)
        assert not outside.exists()


def test_no_settings_of_berkeley_db_are_obeyed(store: Store, folder: Path) -> None:
    (folder / "elsewhere").mkdir()
    (store.data / "db" / "DB_CONFIG").write_text(f"set_lg_dir {folder}/elsewhere\n")
    with looking(store.data, store.ssd, folder) as opened:
        assert opened.root is not None
    with pytest.raises(Refused, match="DB_CONFIG"), repairing(store.data, store.ssd):
        pass
    assert [*(folder / "elsewhere").iterdir()] == []
