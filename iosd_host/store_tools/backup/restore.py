# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a store from a backup (docs/backup.md).

Until it is whole no target serves it: its superblock says what it is (format/marked.py), and the store's
own gets its place last.  An interrupted restore begins again when it is run again.
"""

from __future__ import annotations

import contextlib
import dataclasses
import fcntl
import os
import shutil
import time
from collections.abc import Iterator
from pathlib import Path

from iosd_host.common.exit_codes import EXIT_CONFIG, EXIT_FAILED, EXIT_WRONG_STATE
from iosd_host.common.users import group_of
from iosd_host.common.whole_file import read_small, write_whole
from iosd_host.store_tools.backup.copying import READ, WRITE, UnreadableSource, copy_with_digest
from iosd_host.store_tools.backup.make import REAL
from iosd_host.store_tools.backup.repository import Backup, Damaged, ManifestRow
from iosd_host.store_tools.format.keys import KeyKind, KeyName, use_nonces
from iosd_host.store_tools.format.marked import is_marked, marked
from iosd_host.store_tools.format.records import FormatError, MetaKind
from iosd_host.store_tools.format.superblock import Superblock
from iosd_host.store_tools.opening.bdb import (
    DatabaseError,
    StoreDatabase,
    Table,
    apart,
    raise_outside,
    text_of,
)
from iosd_host.store_tools.opening.folders import (
    Refused,
    as_owner,
    sync_file_system,
    write_superblock,
)
from iosd_host.store_tools.opening.store import StoreProgress
from iosd_host.store_tools.opening.tables import recover

__all__ = ["restore"]

SYSTEM_ID_BYTES = 20
TOKEN, TOKEN_BYTES = "restore.unfinished", 16
BEGINNING = frozenset({TOKEN, TOKEN + ".new", "superblock.new"})
OPENINGS = 4096
"""Allowance for openings of the lost store since the backup. Numbers of openings, and values made
from them (generations of files, boot epochs of capabilities), are not used again."""


def restore(
    backup: Backup,
    data: Path,
    ssd: Path | None,
    tell: StoreProgress,
    *,
    new_identity: bool = False,
    new_keys: bool = False,
    accept_damage: bool = False,
) -> tuple[Superblock, list[str]]:
    """Make the store in empty folders.

    Args: new_keys: leave out secret keys: the first start makes a master key.
        accept_damage: data files that are damaged are restored as they are, what cannot be read of
        them as zeros; those that are missing are left out.
    Returns: its superblock, and a sentence about each of these files.
    Raises: Refused: the folders hold something, or the backup is damaged; OSError.
    """
    roots = folders_of(backup, data, ssd)
    rows = backup.rows()
    blocks = {label: real_superblock(backup, label) for label in roots}
    if new_identity:
        renew(blocks)
    uid, gid = owner_of(backup, data)
    token = token_of(data)
    with contextlib.ExitStack() as stack:
        for label, folder in roots.items():
            stack.enter_context(taken(folder, blocks[label], token, uid, gid))
        damaged = copy_files(backup, rows, roots, tell, accept_damage)
        with as_owner(data):
            begin_anew(data / "db", backup.about.moment_ms, new_keys)
        for folder in roots.values():
            sync_file_system(folder)
        for label in sorted(roots, reverse=True):  # main last: without it nothing is served
            with as_owner(roots[label]):
                write_superblock(roots[label], blocks[label])
        for folder in roots.values():
            with as_owner(folder):
                (folder / TOKEN).unlink()
    return blocks["main"], damaged


def folders_of(backup: Backup, data: Path, ssd: Path | None) -> dict[str, Path]:
    """Folder for each root.  Raises: Refused: there is one too many or too few."""
    if backup.about.ssd and ssd is None:
        raise Refused(EXIT_CONFIG, "the store has an SSD directory: give a folder for it as --ssd")
    if ssd is not None and not backup.about.ssd:
        raise Refused(EXIT_CONFIG, "the store has one directory: it takes no --ssd")
    if ssd is not None and ssd.resolve() == data.resolve():
        raise Refused(EXIT_CONFIG, "--data and --ssd are the same folder: give two")
    return {"main": data} | ({"ssd": ssd} if ssd is not None else {})


def real_superblock(backup: Backup, label: str) -> Superblock:
    """Of a root, as it was.  Raises: Refused."""
    path = backup.path / label / REAL
    try:
        return Superblock.decode(read_small(path, Superblock.READ))
    except OSError as error:
        raise Damaged(path, os.strerror(error.errno or 0)) from None
    except FormatError as error:
        raise Damaged(path, str(error)) from None


def renew(blocks: dict[str, Superblock]) -> None:
    """Another identity, the same for both roots."""
    store_id = os.urandom(len(blocks["main"].store_id))
    system_id = Superblock.DESIGNATOR + store_id[: SYSTEM_ID_BYTES - len(Superblock.DESIGNATOR)]
    for label, block in blocks.items():
        blocks[label] = dataclasses.replace(block, store_id=store_id, system_id=system_id)


def owner_of(backup: Backup, data: Path) -> tuple[int, int]:
    """Owner of the files: the folder's owner, else the owner of the original store."""
    if os.geteuid() != 0:
        return os.geteuid(), os.getegid()
    if data.exists():
        found = data.stat()
        return found.st_uid, found.st_gid
    return backup.about.uid, group_of(backup.about.uid)


# ---- the folders -------------------------------------------------------------------------------


def is_unfinished(folder: Path) -> bool:
    """A restore into it did not end."""
    try:
        return is_marked(read_small(folder / "superblock", Superblock.READ))
    except FileNotFoundError:
        return False


def token_of(data: Path) -> bytes:
    """Mark of both folders until the restore is complete. The SSD directory gets its superblock
    first. The mark shows that the restore of its data directory is not finished."""
    with contextlib.suppress(FileNotFoundError):
        if is_unfinished(data):
            return read_small(data / TOKEN, TOKEN_BYTES)
    return os.urandom(TOKEN_BYTES)


@contextlib.contextmanager
def taken(folder: Path, block: Superblock, token: bytes, uid: int, gid: int) -> Iterator[None]:
    """Take an empty folder and mark it as one that no target serves.

    Raises: Refused: something is in it.
    """
    if not folder.exists():
        make_folder(folder, uid, gid)
    with as_owner(folder):
        names_in(folder, token)
        lock = os.open(folder / "lock", os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        try:
            fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise Refused(EXIT_WRONG_STATE, f"'{folder}' is in use") from None
        with as_owner(folder):
            names = names_in(folder, token)  # again: another restore may have ended since
            write_whole(folder / TOKEN, token)
            write_whole(folder / "superblock", marked(block))
            for name in names - BEGINNING - {"superblock"}:
                remove(folder / name)
        yield
    finally:
        os.close(lock)


def make_folder(folder: Path, uid: int, gid: int) -> None:
    """Give it to this owner, who can reach it: also where root makes the folders above it."""
    above = [each for each in folder.absolute().parents if not each.exists()]
    for each in reversed(above):
        each.mkdir()
        each.chmod(0o755)
    folder.mkdir(mode=0o700)
    os.chown(folder, uid, gid)


def names_in(folder: Path, token: bytes) -> set[str]:
    """Files of an interrupted run of this restore.

    Raises: Refused: something else is.
    """
    names = {each.name for each in folder.iterdir()} - {"lost+found", "lock"}
    unfinished = is_unfinished(folder) or (
        TOKEN in names and read_small(folder / TOKEN, TOKEN_BYTES) == token
    )
    if names - BEGINNING and not unfinished:
        text = "is not empty: give an empty folder, or one that does not exist"
        raise Refused(EXIT_CONFIG, f"'{folder}' {text}")
    return names


def remove(path: Path) -> None:
    """A file, or a folder with what is in it."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink()


def copy_files(
    backup: Backup,
    rows: list[ManifestRow],
    roots: dict[str, Path],
    tell: StoreProgress,
    accept_damage: bool,
) -> list[str]:
    """All of the manifest, each compared with its digest on the way.

    Returns: sentences about data files that are damaged and accepted.
    Raises: Refused; OSError.
    """
    damaged = []
    for label, folder in roots.items():
        with as_owner(folder):
            for name in ("data", *(("db",) if label == "main" else ())):
                (folder / name).mkdir(mode=0o700)
    for done, row in enumerate(rows):
        if done % 64 == 0:
            tell("restore", done, len(rows))
        label, _, name = row.name.partition("/")
        source = backup.path.resolve() / row.name
        if label not in roots or source.resolve() != source:  # a link leads out of the backup
            raise Refused(EXIT_FAILED, f"the manifest names '{row.name}': use another backup")
        if name == REAL:
            continue
        wrong = copy_file(source, roots[label], name, row)
        text = f"'{backup.path / row.name}' {wrong}"
        if wrong and accept_damage and name.startswith("data/"):
            damaged.append(text)
        elif wrong:
            text = f"{text}: use another backup; '{roots['main']}' is not served until you do"
            raise Refused(EXIT_FAILED, text)
    return damaged


def copy_file(source: Path, root: Path, name: str, row: ManifestRow) -> str:
    """One file, with the time of change of its data.  Returns what is wrong with it; "": nothing.

    The copy is made as the store's owner: root follows no name in a folder that another user can change.
    """
    failures: list[OSError] = []
    try:
        old = os.open(source, READ)
    except FileNotFoundError:
        return "is missing"
    except OSError as error:
        return unreadable(error)
    try:
        with as_owner(root):
            (root / name).parent.mkdir(mode=0o700, parents=True, exist_ok=True)
            new = os.open(root / name, WRITE, 0o600)
            try:
                digest = copy_with_digest(old, new, failures)
                modified = row.taken.state.modified_ns
                os.utime(new, ns=(modified, modified))
            finally:
                os.close(new)
    except UnreadableSource as error:
        return unreadable(error)
    finally:
        os.close(old)
    if failures:
        return unreadable(failures[0])
    return "" if digest == row.digest else "is damaged"


def unreadable(error: OSError) -> str:
    """What is wrong with a file that cannot be read."""
    return f"cannot be read ({error.strerror})"


# ---- what must not be used again ---------------------------------------------------------------


def begin_anew(folder: Path, moment_ms: int, new_keys: bool = False) -> None:
    """Recover the database; see that the restored store gives out and takes nothing that the lost one
    may have given out or taken since the backup.

    Args: moment_ms: of the backup, in ms since 1970: the clock may be behind.
    Raises: Refused: the database cannot be opened; OSError: the disk is full.
    """
    try:
        if why := apart(recover, folder):
            raise Refused(EXIT_FAILED, damaged_database(why))
        with StoreDatabase(folder, create=True) as database:
            count_openings(database)
            refuse_nonces(database, max(moment_ms, time.time_ns() // 1_000_000))
            if new_keys:
                remove_keys(database)
    except DatabaseError as error:
        raise_outside(error, folder)
        raise Refused(EXIT_FAILED, damaged_database(text_of(error))) from None


def damaged_database(why: str) -> str:
    """The sentence about a database that Berkeley DB refuses."""
    return f"the database in the backup cannot be opened: {why}; use another backup"


def count_openings(database: StoreDatabase) -> None:
    """As if the store had been opened many times since."""
    for kind in (MetaKind.BOOT, MetaKind.INDEX_BOOT):
        value = database.get(Table.META, kind.key)
        if value is None:
            continue
        number = min(int.from_bytes(value, "big") + OPENINGS, 0xFFFF_FFFF - OPENINGS)
        with database.transaction() as transaction:
            transaction.put(Table.META, kind.key, number.to_bytes(4, "big"))


def names_of_keys(database: StoreDatabase) -> list[KeyName]:
    """Names of the records of keys and nonces that decode."""
    found = []
    for key, _ in database.walk(Table.KEYS):
        with contextlib.suppress(FormatError):
            found.append(KeyName.decode(key))
    return found


def remove_keys(database: StoreDatabase) -> None:
    """Remove all secret keys, and keep the times of nonces."""
    for name in names_of_keys(database):
        if name.kind is not KeyKind.NONCES:
            with database.transaction() as transaction:
                transaction.remove(Table.KEYS, name.encode())


def refuse_nonces(database: StoreDatabase, now_ms: int) -> None:
    """Every nonce with a time until now counts as used, for every key there is.

    Damaged records stay as they are for `repair`, but for the nonces' own.
    """
    for place in {name.place for name in names_of_keys(database)}:
        key = KeyName(place, KeyKind.NONCES, 0).encode()
        record = use_nonces(database.get(Table.KEYS, key), now_ms)
        with database.transaction() as transaction:
            transaction.put(Table.KEYS, key, record)
