# SPDX-License-Identifier: GPL-2.0-or-later
"""The database of a store; the only file that imports Berkeley DB.

One private environment, as the target opens it (target/store/attr_bdb.c): nobody else may have the
directory open, which the caller's lock sees to.  No database file is opened outside one.

A walk holds no cursor between batches, so that what it shows may be changed meanwhile: Berkeley DB
locks pages, and a cursor left open would wait for the change of its own thread for ever.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
from collections.abc import Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from iosd_host.common.paths import find_program
from iosd_host.store_tools.opening.folders import data_of

try:
    import bsddb3.db as bdb  # type: ignore[import-untyped]
except ImportError:  # Pythons it does not build for have its successor
    import berkeleydb.db as bdb  # type: ignore[import-not-found]

__all__ = [
    "DatabaseError",
    "StoreDatabase",
    "StoreTransaction",
    "Table",
    "damaged_tables",
    "forget_log",
    "salvage",
    "text_of",
]

CACHE_MAX = 128 << 20
CACHE_MIN = 4 << 20
PAGE_BYTES = 8192
LOG_FILE_MAX = 64 << 20
LOG_FILE_MIN = 4 << 20
LOG_BUFFER_BYTES = 1 << 20
LOG_ZEROS_KEPT = 1 << 20
WALK_BATCH = 512

DatabaseError = bdb.DBError
"""Berkeley DB says no: a damaged page, a log that does not fit, a full disk."""


class Table(Enum):
    """The files in db/."""

    PARTITIONS = "partitions.db"
    OBJECTS = "objects.db"
    ATTRIBUTES = "attributes.db"
    MEMBERS = "members.db"
    MEMBERSHIPS = "memberships.db"
    JOBS = "jobs.db"
    JOB_KEYS = "job_keys.db"
    INDEX = "index.db"
    COMMANDS = "commands.db"
    NAMES = "names.db"
    NAMED = "named.db"
    KEYS = "keys.db"
    META = "meta.db"

    @property
    def may_be_absent(self) -> bool:
        """In a store of an earlier release; the target makes it."""
        return self in (
            Table.INDEX,
            Table.COMMANDS,
            Table.NAMES,
            Table.NAMED,
            Table.KEYS,
        )


class StoreTransaction:
    """Changes that come together.  Made by StoreDatabase.transaction."""

    def __init__(self, database: StoreDatabase, handle: Any) -> None:
        self._database = database
        self._handle = handle

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        """Set it."""
        self._database.handle(table).put(key, value, txn=self._handle)

    def remove(self, table: Table, key: bytes) -> None:
        """Remove it; absent is fine."""
        with contextlib.suppress(bdb.DBNotFoundError):
            self._database.handle(table).delete(key, txn=self._handle)


class StoreDatabase:
    """An open environment.

    Recovery is run first, as the target does.

    Args:
        folder: with the .db files and the log.
        create: tables that are absent are made.
        only: which to open.
    Raises: DatabaseError.
    """

    def __init__(
        self, folder: Path, *, create: bool = False, only: Iterable[Table] = tuple(Table)
    ) -> None:
        self.folder = folder
        self._handles: dict[Table, Any] = {}
        # What is read while a transaction is open is read in it: outside, its locks would be
        # waited for by the one thread there is.
        self._transaction: Any = None
        self._env = bdb.DBEnv()
        self._env.set_cachesize(0, cache_bytes(folder), 1)
        self._env.set_lg_max(log_file_bytes(folder))
        self._env.set_lg_bsize(LOG_BUFFER_BYTES)
        self._env.log_set_config(bdb.DB_LOG_AUTO_REMOVE, 1)
        flags = bdb.DB_CREATE | bdb.DB_PRIVATE | bdb.DB_RECOVER | bdb.DB_INIT_MPOOL
        flags |= bdb.DB_INIT_TXN | bdb.DB_INIT_LOG | bdb.DB_INIT_LOCK
        trim_log(folder)
        try:
            self._env.open(str(folder), flags, 0o600)
            for table in only:
                if create or (folder / table.value).exists():
                    self.open_table(table, table.value)
        except BaseException:
            self.close()
            raise

    def open_table(self, table: Table, name: str) -> None:
        """Open a file as this table, or make it.  Raises: DatabaseError."""
        handle = bdb.DB(self._env)
        handle.set_pagesize(PAGE_BYTES)
        try:
            handle.open(name, None, bdb.DB_BTREE, bdb.DB_CREATE | bdb.DB_AUTO_COMMIT, 0o600)
        except bdb.DBError:
            handle.close()
            raise
        if table in self._handles:
            self._handles[table].close()
        self._handles[table] = handle

    def handle(self, table: Table) -> Any:
        """The table.  Raises: DatabaseError: it is not there."""
        handle = self._handles.get(table)
        if handle is None:
            raise bdb.DBError(0, f"{table.value} is missing")
        return handle

    def close(self) -> None:
        """With a checkpoint, so that the log is not needed next time."""
        with contextlib.suppress(bdb.DBError):
            if self._handles:
                self._env.txn_checkpoint(0, 0, bdb.DB_FORCE)
        for handle in self._handles.values():
            with contextlib.suppress(bdb.DBError):
                handle.close(bdb.DB_NOSYNC)
        self._handles.clear()
        with contextlib.suppress(bdb.DBError):
            self._env.close()

    def __enter__(self) -> StoreDatabase:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def get(self, table: Table, key: bytes) -> bytes | None:
        """The value; None as well where the table is absent."""
        if table not in self._handles:
            return None
        value: bytes | None = self._handles[table].get(key, txn=self._transaction)
        return value

    def walk(
        self, table: Table, prefix: bytes = b"", *, start: bytes = b""
    ) -> Iterator[tuple[bytes, bytes]]:
        """Records in key order whose key begins with prefix, from start on."""
        if table not in self._handles:
            return
        at = max(prefix, start)
        while True:
            batch = self._batch(table, at)
            for key, value in batch:
                if not key.startswith(prefix):
                    return
                yield key, value
            if len(batch) < WALK_BATCH:
                return
            at = batch[-1][0] + b"\0"

    def _batch(self, table: Table, at: bytes) -> list[tuple[bytes, bytes]]:
        cursor = self._handles[table].cursor(txn=self._transaction)
        batch: list[tuple[bytes, bytes]] = []
        try:
            record = cursor.set_range(at)
            while record is not None and len(batch) < WALK_BATCH:
                batch.append(record)
                if len(batch) < WALK_BATCH:
                    record = cursor.next()
        finally:
            cursor.close()
        return batch

    def last_before(self, table: Table, key: bytes) -> bytes | None:
        """The greatest key below this one."""
        if table not in self._handles:
            return None
        cursor = self._handles[table].cursor(txn=self._transaction)
        try:
            found = cursor.prev() if cursor.set_range(key) is not None else cursor.last()
            return None if found is None else bytes(found[0])
        finally:
            cursor.close()

    def count(self, table: Table) -> int:
        """About how many records; cheap."""
        if table not in self._handles:
            return 0
        return int(self._handles[table].stat(bdb.DB_FAST_STAT).get("nkeys", 0))

    @contextlib.contextmanager
    def transaction(self) -> Iterator[StoreTransaction]:
        """Committed to stable media at the end, or not at all after an exception."""
        handle = self._transaction = self._env.txn_begin()
        try:
            yield StoreTransaction(self, handle)
        except BaseException:
            handle.abort()
            raise
        else:
            handle.commit(bdb.DB_TXN_SYNC)
        finally:
            self._transaction = None


def cache_bytes(folder: Path) -> int:
    """No more than the tables have: all of it is memory to be made."""
    size = sum(each.stat().st_size for each in folder.glob("*.db"))
    return max(CACHE_MIN, min(CACHE_MAX, size))


def text_of(error: BaseException) -> str:
    """Message of Berkeley DB without the number."""
    return str(error.args[-1]) if error.args else str(error)


def log_file_bytes(folder: Path) -> int:
    """As the target chooses it: recovery must find room for one on a small file system."""
    stat = os.statvfs(folder)
    return max(LOG_FILE_MIN, min(LOG_FILE_MAX, stat.f_blocks * stat.f_frsize // 32))


def trim_log(folder: Path) -> None:
    """Cut off the hole at the end of the newest log file, which recovery would fill with zeros.

    A record may end in zeros: some blocks of it stay (target/store/bdb_log.c).
    """
    newest = max(folder.glob("log." + "[0-9]" * 10), default=None)
    if newest is None:
        return
    with newest.open("rb+") as file:
        end = max((end for _, end in data_of(file.fileno())), default=0)
        if end and end + LOG_ZEROS_KEPT < os.fstat(file.fileno()).st_size:
            file.truncate(end + LOG_ZEROS_KEPT)


@contextlib.contextmanager
def _plain_environment(folder: Path) -> Iterator[Any]:
    """Without log and transactions: for what is done to files that nobody has open."""
    environment = bdb.DBEnv()
    environment.set_cachesize(0, cache_bytes(folder), 1)
    try:
        flags = bdb.DB_CREATE | bdb.DB_PRIVATE | bdb.DB_INIT_MPOOL
        environment.open(str(folder), flags, 0o600)
        yield environment
    finally:
        with contextlib.suppress(bdb.DBError):
            environment.close()


def _program(name: str) -> Path:
    """A program of Berkeley DB.  Raises: MissingComponent: it is not installed."""
    return find_program(name, "db5.3-util")


def _run(program: Path, *words: str | Path) -> subprocess.CompletedProcess[bytes]:
    """In a process of its own: its way through damaged pages cannot take us along."""
    nowhere = subprocess.DEVNULL
    return subprocess.run([program, *words], stdout=nowhere, stderr=subprocess.PIPE, check=False)


def damaged_tables(folder: Path) -> dict[Table, str]:
    """Findings of Berkeley DB's own verification, by table.

    Recovery has been done, and nobody has the folder open.
    """
    # Not by bsddb3, whose verify never says that it failed; nor many files by one program, which
    # finds all after the first in order.
    there = [table for table in Table if (folder / table.value).exists()]
    found, program = {}, _program("db5.3_verify")
    for table in there:
        done = _run(program, folder / table.value)
        lines = done.stderr.decode("utf-8", "replace").splitlines()
        if done.returncode:
            found[table] = lines[0].partition(": ")[2] if lines else "its verification died"
    return found


def salvage(folder: Path, table: Table, output: Path) -> Iterator[tuple[bytes, bytes]]:
    """Records that can still be read from a damaged table.

    Args: output: a file for the dump, made anew.
    """
    # It complains, after it has saved all it could.
    _run(_program("db5.3_dump"), "-r", "-f", output, folder / table.value)
    if not output.exists():
        return
    with output.open("rb") as lines:
        yield from _parse_dump(lines)


def forget_log(folder: Path) -> None:
    """Make the tables fit a new log; raises: DatabaseError: one is too damaged."""
    with _plain_environment(folder) as environment:
        for table in Table:
            if (folder / table.value).exists():
                environment.lsn_reset(table.value)


def _parse_dump(lines: Any) -> Iterator[tuple[bytes, bytes]]:
    """Keys and values of a dump of hexadecimal lines, each behind a space."""
    key: bytes | None = None
    for line in lines:
        if not line.startswith(b" "):
            key = None
            continue
        try:
            data = bytes.fromhex(line.strip().decode("ascii"))
        except ValueError:
            key = None
            continue
        if key is None:
            key = data
        else:
            yield key, data
            key = None
