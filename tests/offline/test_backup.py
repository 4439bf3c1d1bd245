# SPDX-License-Identifier: GPL-2.0-or-later
"""Backups of a store that no target serves: restored it is the same store; what is damaged, unfinished
or of another store is refused.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner, Result

from iosd_host.cli import backup as backup_commands
from iosd_host.common.whole_file import write_whole
from iosd_host.store_tools.backup import restore as restoring
from iosd_host.store_tools.backup.repository import Repository
from iosd_host.store_tools.backup.restore import OPENINGS
from iosd_host.store_tools.format.keys import KeyKind, KeyName, decode_spans
from iosd_host.store_tools.format.records import MetaKind, Place
from iosd_host.store_tools.format.superblock import Superblock
from iosd_host.store_tools.opening.bdb import StoreDatabase, Table
from iosd_host.store_tools.opening.folders import write_superblock
from pyosd.types import AttributeValue
from tests.harness import Harness, StartFailed, program
from tests.offline.stores import APPLICATION, SECOND, Snapshot, Store, look, started

EMPTY = hashlib.sha256(b"").hexdigest()


def run(command: Any, *words: str | Path) -> Result:
    result = CliRunner().invoke(command, [str(each) for each in words])
    if result.exception is not None and not isinstance(result.exception, SystemExit):
        raise result.exception
    return result


def roots(store: Store, folder: Path | None = None) -> list[str]:
    """Its folders as arguments; or those of another place of the same shape."""
    where = Store(folder, store.two_roots, store.names) if folder else store
    return ["--data", str(where.data), *(["--ssd", str(where.ssd)] if where.ssd else [])]


def make(store: Store, backups: Path, *words: str) -> dict[str, Any]:
    result = run(backup_commands.backup, "make", backups, *roots(store), "-o", "json", *words)
    assert result.exit_code == 0, result.output
    return dict(json.loads(result.stdout))


def restored(store: Store, backups: Path, folder: Path, *words: str) -> Store:
    result = run(backup_commands.restore, backups, *roots(store, folder), *words)
    assert result.exit_code == 0, result.output
    return Store(folder, store.two_roots, store.names)


def names(backups: Path) -> list[str]:
    result = run(backup_commands.backup, "ls", backups, "--json")
    assert result.exit_code == 0, result.output
    return [json.loads(line)["name"] for line in result.stdout.splitlines()]


def block_of(folder: Path) -> Superblock:
    return Superblock.decode((folder / "superblock").read_bytes())


@pytest.fixture
def backups(folder: Path) -> Path:
    return folder / "backups"


both = pytest.mark.parametrize("template", [False, True], ids=["one root", "two"], indirect=True)


@both
def test_restored_store_is_the_same(
    store: Store, before: Snapshot, backups: Path, folder: Path
) -> None:
    digest = store.digest()
    about = make(store, backups)
    assert store.digest() == digest
    assert not about["hot"] and about["pause_ms"] == 0
    other = restored(store, backups, folder / "other")
    assert other.check() == []
    assert block_of(other.data) == block_of(store.data)
    with other.serve() as osd:
        assert look(osd) == before
    modes = {path.stat().st_mode & 0o077 for path in other.data.rglob("*")}
    assert modes == {0}
    assert {path.stat().st_mode & 0o077 for path in backups.rglob("*")} == {0}


@both
def test_unchanged_files_are_shared(
    store: Store, before: Snapshot, backups: Path, folder: Path
) -> None:
    first = make(store, backups)
    for root in store.roots:
        old = 1_600_000_000
        for path in (root / "data").rglob("*"):
            if path.is_file():
                os.utime(path, (old, old))  # moves ctime
    settled(store)
    second = make(store, backups)
    with store.serve() as osd:
        osd.write(store.names.plain, 10, b"changed")
    third = make(store, backups)
    assert names(backups) == [first["name"], second["name"], third["name"]]
    shared = [
        path for path in (backups / third["name"]).rglob("data/*/*/*") if path.stat().st_nlink > 1
    ]
    files = [path for path in (backups / third["name"]).rglob("data/*/*/*") if path.is_file()]
    changed = [path for path in files if path not in shared]
    assert shared
    assert any(f"{store.names.plain.object_id:016x}" in path.name for path in changed)
    one = restored(store, backups, folder / "one", second["name"])
    with one.serve() as osd:
        assert look(osd) == before
    two = restored(store, backups, folder / "two")
    with two.serve() as osd:
        assert bytes(osd.read(store.names.plain, 10, 7)) == b"changed"
    for name in names(backups):
        assert run(backup_commands.backup, "verify", backups, name).exit_code == 0


def settled(store: Store) -> None:
    """The files' last changes are a second old, so that the next backup is sure of them."""
    newest = max(
        path.stat().st_ctime_ns for root in store.roots for path in (root / "data").rglob("*")
    )
    while time.time_ns() < newest + 1_100_000_000:
        time.sleep(0.05)


def test_keep_removes_the_oldest(store: Store, backups: Path) -> None:
    made = [make(store, backups, "--keep", "2")["name"] for _ in range(4)]
    assert names(backups) == made[2:]
    assert sorted(each.name for each in backups.iterdir() if each.is_dir()) == made[2:]
    assert run(backup_commands.backup, "verify", backups, "--all").exit_code == 0


@pytest.mark.parametrize("how", ["renamed", "copied"])
def test_a_backup_that_has_got_a_name_is_as_old_as_before(
    store: Store, backups: Path, how: str
) -> None:
    """Names of people sort behind those of times.  One that got its name from a person is kept."""
    first, second = (make(store, backups)["name"] for _ in range(2))
    if how == "copied":
        subprocess.run(["cp", "-a", backups / first, backups / "before-upgrade"], check=True)
    else:
        (backups / first).rename(backups / "before-upgrade")
    others = [first] if how == "copied" else []
    assert sorted(names(backups)) == sorted(["before-upgrade", *others, second])
    assert names(backups)[-1] == second
    assert Repository(backups).find(None).path.name == second
    third = make(store, backups)["name"]
    assert names(backups)[-2:] == [second, third]
    make(store, backups, "--keep", "1")
    assert names(backups)[0] == "before-upgrade" and len(names(backups)) == 2
    newest = names(backups)[1]
    assert newest > third and Repository(backups).find(None).path.name == newest
    assert Repository(backups).find("before-upgrade").about.name == "before-upgrade"
    (backups / newest).rename(backups / "later")
    assert Repository(backups).find(None).path.name == "later"
    assert make(store, backups)["name"] > newest
    (backups / "later" / "backup.json").write_text("[]")
    assert Repository(backups).find(None).path.name > newest


def test_a_folder_is_for_one_store(store: Store, backups: Path, folder: Path) -> None:
    make(store, backups)
    other = restored(store, backups, folder / "other", "--new-identity")
    result = run(backup_commands.backup, "make", backups, *roots(other))
    assert result.exit_code == 78 and "another store" in result.output
    foreign = folder / "foreign"
    foreign.mkdir()
    (foreign / "letter").write_text("dear")
    result = run(backup_commands.backup, "make", foreign, *roots(store))
    assert result.exit_code == 78 and "not empty" in result.output
    assert [each.name for each in foreign.iterdir()] == ["letter"]


def test_a_folder_in_the_store_is_refused(store: Store) -> None:
    """It would be copied into itself."""
    for root in store.roots:
        inside = root / "backups"
        result = run(backup_commands.backup, "make", inside, *roots(store))
        assert result.exit_code == 78 and "give a folder outside it" in result.output
        assert not inside.exists()


def test_one_folder_is_not_two(store: Store, backups: Path, folder: Path) -> None:
    make(store, backups)
    words = ["--data", str(folder / "x"), "--ssd", str(folder / "x")]
    result = run(backup_commands.restore, backups, *words)
    assert result.exit_code == 78 and "--data and --ssd are the same folder" in result.output


@pytest.mark.parametrize("killed", [False, True])
def test_a_disk_that_is_full_at_once(
    store: Store, backups: Path, monkeypatch: pytest.MonkeyPatch, killed: bool
) -> None:
    """Or a kill there: the folder is still an empty one for the next backup."""

    def full(descriptor: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(os, "write", full)
    result = run(backup_commands.backup, "make", backups, *roots(store))
    assert result.exit_code == 1 and f"no space left in '{backups}'" in result.output
    monkeypatch.undo()
    if killed:
        (backups / "iosd-backups.new").write_bytes(b"")
    made = make(store, backups)["name"]
    assert names(backups) == [made]


def test_a_file_is_written_whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where the system takes a part of it; on failure nothing is left, and the old one stays."""
    path, write, data = tmp_path / "file", os.write, os.urandom(10_000)
    monkeypatch.setattr(os, "write", lambda descriptor, rest: write(descriptor, rest[:4096]))
    write_whole(path, data)
    assert path.read_bytes() == data

    def partly(descriptor: int, rest: bytes) -> int:
        if len(rest) < len(data):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return write(descriptor, rest[:4096])

    monkeypatch.setattr(os, "write", partly)
    with pytest.raises(OSError, match="No space left"):
        write_whole(path, bytes(len(data)))
    assert list(tmp_path.iterdir()) == [path] and path.read_bytes() == data


def test_a_new_identity(store: Store, before: Snapshot, backups: Path, folder: Path) -> None:
    make(store, backups)
    other = restored(store, backups, folder / "other", "--new-identity")
    old, new = block_of(store.data), block_of(other.data)
    assert new.store_id != old.store_id
    assert new.system_id == Superblock.DESIGNATOR + new.store_id[:8]
    assert other.ssd and block_of(other.ssd).store_id == new.store_id
    assert other.check() == []
    with other.serve() as osd:
        assert look(osd) == before


@pytest.mark.parametrize(
    "what", ["byte", "length", "missing", "manifest", "about", "not an object", "superblock"]
)
def test_a_damaged_backup_is_refused(store: Store, backups: Path, folder: Path, what: str) -> None:
    made = backups / make(store, backups)["name"]
    victim = max(made.rglob("data/*/*/*"), key=lambda path: path.stat().st_size)
    with victim.open("r+b") as file:
        if what == "byte":
            file.seek(1000)
            file.write(b"\xff")
        elif what == "length":
            file.truncate(1000)
    if what == "missing":
        victim.unlink()
    if what == "manifest":
        (made / "manifest").write_bytes((made / "manifest").read_bytes()[:-1])
    if what == "about":
        (made / "backup.json").write_text("{")
    if what == "not an object":
        (made / "backup.json").write_text("[]")
    if what == "superblock":
        (made / "main" / "superblock.real").write_bytes(b"none")
    verified = run(backup_commands.backup, "verify", backups)
    assert verified.exit_code == 65 and "damaged files: 1" in verified.output
    other = Store(folder / "other", store.two_roots, store.names)
    result = run(backup_commands.restore, backups, *roots(other))
    assert result.exit_code == 1 and "use another backup" in result.output
    if what in ("byte", "length", "missing"):
        refused(other)


@pytest.mark.parametrize(
    "name",
    ["main/{away}", "main/../../away", "main/data/link/away", "main/db/DB_CONFIG", "main", 1],
)
def test_a_foreign_backup_names_nothing_outside(
    store: Store, backups: Path, folder: Path, tmp_path: Path, name: Any
) -> None:
    """Nothing outside is written or read, and Berkeley DB gets no configuration."""
    made = backups / make(store, backups)["name"]
    away = tmp_path / "outside" / "away"
    away.parent.mkdir()
    (made / "main" / "data" / "link").symlink_to(away.parent)
    if isinstance(name, str):
        name = name.format(away=away)
        if "link" in name:
            away.write_bytes(b"")
        elif name != "main":
            (made / name).parent.mkdir(parents=True, exist_ok=True)
            (made / name).write_bytes(b"")
    row = json.loads((made / "manifest").read_bytes().splitlines()[0])
    with (made / "manifest").open("a") as file:
        file.write(json.dumps({**row, "name": name, "size": 0, "sha256": EMPTY}) + "\n")
    about = json.loads((made / "backup.json").read_bytes())
    about["manifest"] = hashlib.sha256((made / "manifest").read_bytes()).hexdigest()
    (made / "backup.json").write_text(json.dumps(about))
    other = Store(folder / "other", store.two_roots, store.names)
    result = run(backup_commands.restore, backups, *roots(other))
    assert result.exit_code == 1 and "use another backup" in result.output
    assert "link" in str(name) or not away.exists()
    assert not [*other.folder.rglob("away")] and not [*other.folder.rglob("DB_CONFIG")]


@pytest.mark.parametrize("file", ["backup.json", "manifest"])
def test_a_damaged_backup_hides_no_other(store: Store, backups: Path, file: str) -> None:
    made = [make(store, backups)["name"] for _ in range(3)]
    (backups / made[0] / file).write_text("[]")
    (backups / made[2] / file).write_text("[]")
    verified = run(backup_commands.backup, "verify", backups, "--all")
    assert verified.exit_code == 65
    assert [line.split(": ")[0] for line in verified.stdout.splitlines()] == [
        str(backups / made[0] / file),
        made[0],
        made[1],
        str(backups / made[2] / file),
        made[2],
    ]
    listed = run(backup_commands.backup, "ls", backups)
    if file == "backup.json":
        assert listed.exit_code == 65 and f"{made[2]}/backup.json' is damaged" in listed.stderr
        assert [line.split()[0] for line in listed.stdout.splitlines()] == [made[1]]
    else:
        assert listed.exit_code == 0
    assert run(backup_commands.backup, "make", backups, *roots(store)).exit_code == 0


def refused(store: Store) -> None:
    """No target serves it, and no tool touches it."""
    with pytest.raises(StartFailed, match="a backup, or a restore that did not end"):
        started(store.folder, store.two_roots)


def test_a_backup_is_not_served(store: Store, backups: Path) -> None:
    made = backups / make(store, backups)["name"]
    options = {"dir": made / "main", "ssd": made / "ssd"}
    with pytest.raises(StartFailed, match="'osd target restore' restores it"):
        Harness(program(), options, backups.parent / "log")


def test_a_restore_changes_nothing_that_is_there(store: Store, backups: Path) -> None:
    make(store, backups)
    digest = store.digest()
    result = run(backup_commands.restore, backups, *roots(store))
    assert result.exit_code == 78 and "not empty" in result.output
    assert store.digest() == digest


def test_numbers_and_nonces_are_not_used_again(store: Store, backups: Path, folder: Path) -> None:
    """The lost store has given out generations, boot epochs and taken nonces since the backup."""
    key = KeyName(Place(0, 0), KeyKind.MASTER, 0).encode()
    spans = KeyName(Place(0, 0), KeyKind.NONCES, 0).encode()
    store.put(Table.KEYS, key, bytes((1,)) + bytes(99))
    later = 1 << 46
    store.put(
        Table.KEYS,
        spans,
        bytes((1,)) + b"".join(n.to_bytes(8, "big") for n in (5, 9, later, later + 1)),
    )
    with store.database() as database:
        boots = int.from_bytes(database.get(Table.META, MetaKind.BOOT.key) or b"", "big")
    make(store, backups)
    other = restored(store, backups, folder / "other")
    with StoreDatabase(other.data / "db") as database:
        found = int.from_bytes(database.get(Table.META, MetaKind.BOOT.key) or b"", "big")
        first, second = decode_spans(database.get(Table.KEYS, spans) or b"")
    assert found == boots + OPENINGS
    assert first[0] == 0 and first[1] > 1_600_000_000_000
    assert second == (later, later + 1)


KILLED = """
import os, signal, sys
from iosd_host.store_tools.backup import copying, make, repository, restore
from iosd_host.store_tools.opening import folders
left = int(sys.argv[1])
def stepped(call):
    def step(*args, **options):
        global left
        left -= 1
        if left == 0:
            os.kill(os.getpid(), signal.SIGKILL)
        return call(*args, **options)
    return step
os.fsync, os.sync, os.link = stepped(os.fsync), stepped(os.sync), stepped(os.link)
os.open, os.rename, os.replace = stepped(os.open), stepped(os.rename), stepped(os.replace)
from pathlib import Path
Path.rename, Path.unlink, Path.mkdir = map(stepped, (Path.rename, Path.unlink, Path.mkdir))
from iosd_host.cli import backup as backup_commands
command = {"backup": backup_commands.backup, "restore": backup_commands.restore}[sys.argv[2]]
command(sys.argv[3:])
"""


def killed_at(step: int, *words: str | Path) -> bool:
    """Run a command that is killed at a step.  False: it came to its end before."""
    command = [sys.executable, "-c", KILLED, str(step), *map(str, words)]
    done = subprocess.run(command, check=False, capture_output=True, text=True, timeout=120)
    if done.returncode == -signal.SIGKILL:
        return True
    assert done.returncode == 0, done.stderr
    return False


def steps(seed: int) -> list[int]:
    """Steps to be killed at: early ones each, then some by chance, and one that never comes."""
    chosen = random.Random(seed)
    return [1, 2, 5, *sorted(chosen.randrange(6, 250) for _ in range(8)), 100_000]


RESTORE_STEPS = 90
"""About how many a restore of the test's store has; its last are those that make it whole."""


def restore_steps(seed: int) -> list[int]:
    """Some by chance."""
    chosen = random.Random(seed)
    return [1, 3, *(chosen.randrange(4, RESTORE_STEPS) for _ in range(8)), 100_000]


def test_a_killed_backup_is_none(
    store: Store, before: Snapshot, backups: Path, folder: Path, seed: int
) -> None:
    first = make(store, backups)["name"]
    for step in steps(seed):
        whole = names(backups)
        killed = killed_at(step, "backup", "make", backups, "--keep", "3", *roots(store))
        assert names(backups)[0] in (*whole, names(backups)[-1])
        assert run(backup_commands.backup, "verify", backups, "--all").exit_code == 0
        if not killed:
            break
    assert first
    other = restored(store, backups, folder / "other")
    with other.serve() as osd:
        assert look(osd) == before


def test_a_killed_restore_is_not_served(
    store: Store, before: Snapshot, backups: Path, folder: Path, seed: int
) -> None:
    make(store, backups)
    other = Store(folder / "other", store.two_roots, store.names)
    other.folder.mkdir()
    for step in restore_steps(seed):
        killed = killed_at(step, "restore", backups, *roots(other))
        if not killed:
            break
        try:
            harness = started(other.folder, other.two_roots)
        except StartFailed:
            continue
        # Before anything had been written, or after all had been.
        found = look(harness.osd)
        harness.finish()
        assert found in ({}, before)
        if found:
            return
        for root in other.roots:
            for path in sorted(root.rglob("*"), reverse=True):
                path.rmdir() if path.is_dir() else path.unlink()
    assert other.check() == []
    with other.serve() as osd:
        assert look(osd) == before


def test_an_attribute_set_later_is_not_there(store: Store, backups: Path, folder: Path) -> None:
    make(store, backups)
    with store.serve() as osd:
        osd.set_attributes(store.names.plain, [AttributeValue(APPLICATION, 1, b"later")])
        osd.create(SECOND)
    other = restored(store, backups, folder / "other")
    with other.serve() as osd:
        assert osd.get_attribute(store.names.plain, APPLICATION, 1) != b"later"


@pytest.mark.parametrize("fail_at", [1, 3, 8])
def test_a_full_disk_takes_nothing(
    store: Store, backups: Path, folder: Path, monkeypatch: pytest.MonkeyPatch, fail_at: int
) -> None:
    """Of a backup, and of a restore, which begins again when there is room."""
    pwrite, left = os.pwrite, fail_at

    def full(descriptor: int, data: bytes, offset: int) -> int:
        nonlocal left
        left -= 1
        if left == 0:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return pwrite(descriptor, data, offset)

    monkeypatch.setattr(os, "pwrite", full)
    result = run(backup_commands.backup, "make", backups, *roots(store))
    assert result.exit_code == 1 and f"no space left in '{backups}'" in result.output
    assert names(backups) == [] and not list(backups.glob("*.partial"))
    make(store, backups)
    other = Store(folder / "other", store.two_roots, store.names)
    left = fail_at
    result = run(backup_commands.restore, backups, *roots(other))
    assert result.exit_code == 1 and f"no space left in '{folder / 'other'}" in result.output
    refused(other)
    assert restored(store, backups, folder / "other").check() == []


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_root_restores_for_the_owner_of_the_folder(
    store: Store, backups: Path, folder: Path
) -> None:
    make(store, backups)
    other = Store(folder / "other", store.two_roots, store.names)
    for path in (folder, *folder.parents):
        if (
            path.stat().st_uid == 0
            and path.is_relative_to("/dev/shm/")
            and path != Path("/dev/shm")
        ):
            path.chmod(0o711)
    for path in (other.folder, *other.roots):
        path.mkdir()
        path.chmod(0o711)
    for path in other.roots:
        os.chown(path, 54321, 54321)
    restored(store, backups, other.folder)
    owners = {each.stat().st_uid for root in other.roots for each in (root, *root.rglob("*"))}
    assert owners == {54321}


@pytest.mark.skipif(os.geteuid() != 0, reason="gives files to another user")
def test_root_makes_folders_that_the_owner_reaches(
    store: Store, backups: Path, folder: Path
) -> None:
    """The store's owner comes from the backup, as nothing of the path exists."""
    for root in store.roots:
        for path in (root, *root.rglob("*")):
            os.chown(path, 54321, 54321, follow_symlinks=False)
    for path in (folder, *folder.parents):
        if path.is_relative_to("/dev/shm/"):
            path.chmod(path.stat().st_mode | 0o111)
    make(store, backups)
    other = restored(store, backups, folder / "new" / "deep" / "other")
    owners = {each.stat().st_uid for root in other.roots for each in (root, *root.rglob("*"))}
    assert owners == {54321}


def test_files_of_others_are_not_backed_up(store: Store, backups: Path, folder: Path) -> None:
    """Root reads no file for a target that has put a link to it among its own."""
    if os.geteuid() != 0:
        pytest.skip("gives files to another user")
    secret = folder / "secret"
    secret.write_text("secret")
    os.chown(secret, 12345, 12345)
    os.link(secret, store.data / "data" / "link")
    result = run(backup_commands.backup, "make", backups, *roots(store))
    assert result.exit_code == 1 and "is not a file of the store's owner" in result.output
    (store.data / "data" / "link").unlink()
    (store.data / "data" / "link").symlink_to(secret)
    name = make(store, backups)["name"]
    assert not list((backups / name).rglob("link"))


def test_a_restore_interrupted_between_its_folders_begins_again(
    store: Store, before: Snapshot, backups: Path, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The SSD directory has its superblock, the data directory has not."""
    make(store, backups)
    other = Store(folder / "other", store.two_roots, store.names)
    write = write_superblock

    def once(path: Path, superblock: Superblock) -> None:
        if path == other.data:
            raise OSError(errno.EIO, "interrupted")
        write(path, superblock)

    monkeypatch.setattr(restoring, "write_superblock", once)
    assert run(backup_commands.restore, backups, *roots(other)).exit_code == 1
    refused(other)
    monkeypatch.undo()
    # A store's own SSD directory is not taken for a part of that restore.
    wrong = ["--data", str(other.data), "--ssd", str(store.ssd)]
    digest = store.digest()
    assert run(backup_commands.restore, backups, *wrong).exit_code == 78
    assert store.digest() == digest
    again = restored(store, backups, folder / "other")
    assert again.check() == []
    with again.serve() as osd:
        assert look(osd) == before
