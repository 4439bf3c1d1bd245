# SPDX-License-Identifier: GPL-2.0-or-later
"""The database of a store; the only file that imports Berkeley DB.

One private environment, as the target opens it (target/store/attr_bdb.c): nobody else may have the
directory open, which the caller's lock sees to.  No database file is opened outside one.

A walk holds no cursor between batches, so that what it shows may be changed meanwhile: Berkeley DB
locks pages, and a cursor left open would wait for the change of its own thread for ever.
"""

from __future__ import annotations

import contextlib
import errno
import os
import shutil
import signal
import struct
import subprocess
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from pathlib import Path
from typing import Any

from iosd_host.common.acting import call_as_root, enclose, program_ids
from iosd_host.common.paths import DB_VERIFY, find_component, find_program
from iosd_host.store_tools.opening.log import trim_log

try:
    import bsddb3.db as bdb  # type: ignore[import-untyped]
except ImportError:  # Pythons it does not build for have its successor
    import berkeleydb.db as bdb  # type: ignore[import-not-found]

__all__ = [
    "DatabaseError",
    "StoreDatabase",
    "StoreTransaction",
    "Table",
    "apart",
    "damaged_tables",
    "forget_log",
    "log_lags",
    "raise_outside",
    "salvage",
    "text_of",
]

CACHE_MAX = 128 << 20
CACHE_MIN = 4 << 20
PAGE_BYTES = 8192
POSITION = struct.Struct("=II")
"""The first bytes of a page."""
FILE_ID = slice(52, 72)
"""In the first page."""
LOG_FILE_MAX = 64 << 20
LOG_FILE_MIN = 4 << 20
LOG_BUFFER_BYTES = 1 << 20
WALK_BATCH = 512

NO_FINDING = 2
"""Exit code of a child: an exception that is no error of Berkeley DB."""
FULL_BYTES = 1 << 20
"""Less than this is none."""
UNKNOWN_KEY = b"UNKNOWN\0"
"""Berkeley DB's word in a dump for a key that cannot be read."""
OUTSIDE = (
    *(errno.ENOSPC, errno.EDQUOT, errno.EROFS, errno.EACCES, errno.EPERM),
    *(errno.ENOMEM, errno.EMFILE, errno.ENFILE),
)

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
        # While a transaction is open, reads are part of it.  Outside it, the only thread would wait
        # for its own locks.
        self._transaction: Any = None
        self._env = bdb.DBEnv()
        self._env.set_cachesize(0, cache_bytes(folder), 1)
        self._env.set_tmp_dir(str(folder))  # else it needs one of the host's, which apart() has not
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
            batch = self._batch(table, at, prefix)
            for key, value in batch:
                if not key.startswith(prefix):
                    return
                yield key, value
            if len(batch) < WALK_BATCH:
                return
            at = batch[-1][0] + b"\0"

    def _batch(self, table: Table, at: bytes, prefix: bytes) -> list[tuple[bytes, bytes]]:
        """Records from a key on; of those without the prefix the first."""
        cursor = self._handles[table].cursor(txn=self._transaction)
        batch: list[tuple[bytes, bytes]] = []
        try:
            record = cursor.set_range(at)
            while record is not None and len(batch) < WALK_BATCH:
                batch.append(record)
                if not record[0].startswith(prefix):
                    break
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

    def log_end(self) -> tuple[int, int]:
        """Number of the file and offset after the last record of the log."""
        found = self._env.log_stat()
        return found["cur_file"], found["cur_offset"]

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


def cause_outside(error: BaseException, folder: Path) -> int:
    """The number of the system's error if the files may be whole: the disk is full, the user lacks a
    permission, memory is short.  0: they are damaged."""
    number, text = error.args[0] if error.args else 0, text_of(error)
    for each in OUTSIDE:  # an environment that stopped has another number, and the cause in words
        if number == each or os.strerror(each) in text:
            return each
    # A cache that cannot write its pages says EIO, whatever the cause.
    if shutil.disk_usage(folder).free < FULL_BYTES:
        return errno.ENOSPC
    return 0


def raise_outside(error: BaseException, folder: Path) -> None:
    """Raises: OSError: the error has a cause outside the files."""
    if number := cause_outside(error, folder):
        raise OSError(number, os.strerror(number), str(folder)) from None


def log_file_bytes(folder: Path) -> int:
    """As the target chooses it: recovery must find room for one on a small file system."""
    stat = os.statvfs(folder)
    return max(LOG_FILE_MIN, min(LOG_FILE_MAX, stat.f_blocks * stat.f_frsize // 32))


@contextlib.contextmanager
def _plain_environment(folder: Path) -> Iterator[Any]:
    """Without log and transactions: for what is done to files that nobody has open."""
    environment = bdb.DBEnv()
    environment.set_cachesize(0, cache_bytes(folder), 1)
    environment.set_tmp_dir(str(folder))
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


def _not_killed(code: int, name: str) -> None:
    """Raises: DatabaseError: it was killed, so it says nothing about the file."""
    if code in (-signal.SIGKILL, -signal.SIGTERM, -signal.SIGINT):
        raise bdb.DBError(errno.ENOMEM, f"{name} was killed, perhaps because memory is short")


def apart(act: Callable[[Path], object], folder: Path) -> str:
    """Call a function with a database that may be damaged, in a child process: Berkeley DB can crash.

    Returns the error of Berkeley DB; "": none.
    Raises: DatabaseError, OSError: for a cause outside the files.  RuntimeError: another exception of
        `act`, which is no finding about the files.
    """
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            folder = enclose(folder)  # the log names files, and recovery writes them
            act(folder)
            code = 0
        except (DatabaseError, OSError) as error:
            os.write(writer, f"{cause_outside(error, folder)} {text_of(error)}"[:4000].encode())
        except MemoryError:
            os.write(writer, f"{errno.ENOMEM} ".encode())
        except BaseException as error:
            code = NO_FINDING
            os.write(writer, f"0 {error!r}"[:4000].encode())
        finally:
            os._exit(code)
    os.close(writer)
    with os.fdopen(reader, "rb") as answer:
        number, _, text = answer.read().decode().partition(" ")
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    _not_killed(code, "recovery")
    if code == NO_FINDING:
        raise RuntimeError(text)
    if number not in ("", "0"):
        raise OSError(int(number), os.strerror(int(number)), str(folder))
    return "" if code == 0 else text or "Berkeley DB crashed"


def log_lags(folder: Path) -> str:
    """Proof that the log, which was recovered, has lost its end; "": there is none.

    A page has the position of its last change in the log.  The log reaches a disk before the page.
    """
    greatest = max(
        map(greatest_position, map(folder.joinpath, table_names(folder))), default=(0, 0)
    )
    with StoreDatabase(folder, only=()) as database:
        end = database.log_end()
    if greatest <= end:
        return ""
    return f"it ends at {end[0]}/{end[1]}, and a table has a change at {greatest[0]}/{greatest[1]}"


def table_names(folder: Path) -> list[str]:
    """Of the tables that are there."""
    return [each.value for each in Table if (folder / each.value).exists()]


def greatest_position(path: Path) -> tuple[int, int]:
    """The greatest position in the log, number of the file and offset, that a page of a table has."""
    greatest = 0, 0
    with path.open("rb") as table:
        while piece := table.read(PAGE_BYTES << 7):
            for at in range(0, len(piece) - 7, PAGE_BYTES):
                greatest = max(greatest, POSITION.unpack_from(piece, at))
    return greatest


def damaged_tables(folder: Path) -> dict[Table, str]:
    """Findings of Berkeley DB's own verification, by table.

    Recovery has been done, and nobody has the folder open.
    Raises: DatabaseError: a table cannot be verified.
    """
    # Not by bsddb3, whose verify never says that it failed.
    there = [table for table in Table if (folder / table.value).exists()]
    found, left = dict[Table, str](), list(there)
    while left:
        done = _verified([folder / table.value for table in left])
        lines = done.stdout.decode("utf-8", "replace").splitlines()
        good = lines.count("ok")
        if good == len(left):
            break
        # It has ended with the first damaged table, by a line about it or without a word.
        if not lines[good:] and done.returncode > 0:
            raise bdb.DBError(0, f"{DB_VERIFY.name} ended with {done.returncode}")
        words = "".join(lines[good:]) or "its verification died"
        empty = not (folder / left[good].value).stat().st_size
        found[left[good]] = "the file is empty" if empty else words
        del left[: good + 1]
    return found | copied_tables(folder, there)


def _verified(tables: list[Path]) -> subprocess.CompletedProcess[bytes]:
    """Run iosd-db-verify.  In another process: its way through damaged pages cannot take us along.

    Raises: DatabaseError: somebody killed it.
    """

    def open_program() -> int:
        return os.open(find_component(DB_VERIFY), os.O_PATH | os.O_CLOEXEC)

    program = call_as_root(open_program)  # below /root the owner of the store could not reach it
    try:
        done = subprocess.run(
            [DB_VERIFY.name, *tables],
            executable=f"/proc/self/fd/{program}",
            pass_fds=[program],
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            check=False,
            **program_ids(),
        )
    finally:
        os.close(program)
    _not_killed(done.returncode, DB_VERIFY.name)
    return done


def copied_tables(folder: Path, there: Iterable[Table]) -> dict[Table, str]:
    """Tables that are one file twice.  Berkeley DB tells its files apart by an id in them, and would
    write changes of one into the other."""
    owners = dict[bytes, list[Table]]()
    for table in there:
        with (folder / table.value).open("rb") as file:
            owners.setdefault(file.read(FILE_ID.stop)[FILE_ID], []).append(table)
    return {
        table: f"it has the file id of {' and '.join(each.value for each in same if each != table)}"
        for same in owners.values()
        if len(same) > 1
        for table in same
    }


def salvage(table: Path) -> Iterator[tuple[bytes, bytes]]:
    """Records that can still be read from a damaged table.

    Raises: DatabaseError: somebody killed the program that reads them.
    """
    program, unknown = _program("db5.3_dump"), 0
    command: list[str | Path] = [program, "-r", table]
    with subprocess.Popen(
        command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, **program_ids()
    ) as process:
        assert process.stdout is not None
        for key, value in _parse_dump(process.stdout):
            if key != UNKNOWN_KEY:
                yield key, value
                continue
            unknown += 1  # each value stays
            yield key + unknown.to_bytes(4, "big"), value
    # It complains, after it has written all it could.
    _not_killed(process.returncode, program.name)


def forget_log(folder: Path, table: Table) -> None:
    """Make a table fit a new log; raises: DatabaseError: it is too damaged."""
    if (folder / table.value).exists():
        with _plain_environment(folder) as environment:
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
