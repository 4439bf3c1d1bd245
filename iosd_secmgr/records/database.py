# SPDX-License-Identifier: GPL-2.0-or-later
"""The database: SQLite in a file, or PostgreSQL by URL, behind one small interface.

Statements are written with ? for values, in the SQL that both understand; ids of 64 bits are text of 16
hexadecimal digits, because neither has such numbers.
"""

from __future__ import annotations

import contextlib
import os
import sqlite3
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

from pyosd.secmgr.errors import SecmgrError

Row = tuple[Any, ...]
OF_THE_HOST = frozenset(
    {
        sqlite3.SQLITE_FULL,
        sqlite3.SQLITE_IOERR,
        sqlite3.SQLITE_READONLY,
        sqlite3.SQLITE_CANTOPEN,
        sqlite3.SQLITE_BUSY,
        sqlite3.SQLITE_NOMEM,
    }
)
"""Codes of SQLite for what the host lacks; others are faults of ours."""
CLAIM = 0x696F7364  # PostgreSQL's advisory lock of who serves
KEEPALIVES = {"idle": 30, "interval": 10, "count": 3}  # of the server's end, in seconds
CLAIM_MS = 5000  # that a lost connection may take to give it up

SERVED = "another security manager serves from this database"

SCHEMA = """
CREATE TABLE IF NOT EXISTS meta (name TEXT PRIMARY KEY, value {bytes} NOT NULL);
CREATE TABLE IF NOT EXISTS users (name TEXT PRIMARY KEY, disabled INTEGER NOT NULL DEFAULT 0,
    made_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS groups (name TEXT PRIMARY KEY, made_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS members (group_name TEXT NOT NULL REFERENCES groups(name) ON DELETE CASCADE,
    user_name TEXT NOT NULL REFERENCES users(name) ON DELETE CASCADE,
    PRIMARY KEY (group_name, user_name));
CREATE TABLE IF NOT EXISTS tokens (id TEXT PRIMARY KEY, hash {bytes} NOT NULL UNIQUE,
    user_name TEXT NOT NULL REFERENCES users(name) ON DELETE CASCADE, label TEXT NOT NULL,
    until_ms BIGINT NOT NULL, made_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS certificates (serial TEXT PRIMARY KEY,
    user_name TEXT NOT NULL REFERENCES users(name) ON DELETE CASCADE,
    until_ms BIGINT NOT NULL, made_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS rules (id {serial}, subject TEXT NOT NULL, is_group INTEGER NOT NULL,
    target TEXT NOT NULL, kind TEXT NOT NULL, partition_id TEXT NOT NULL, object_id TEXT NOT NULL,
    permissions INTEGER NOT NULL, tag BIGINT NOT NULL, until_ms BIGINT NOT NULL,
    lifetime_s INTEGER NOT NULL, method INTEGER NOT NULL, made_ms BIGINT NOT NULL,
    made_by TEXT NOT NULL, note TEXT NOT NULL);
CREATE INDEX IF NOT EXISTS rules_of ON rules (subject, is_group);
CREATE TABLE IF NOT EXISTS targets (name TEXT PRIMARY KEY, url TEXT NOT NULL, system_id {bytes} NOT NULL,
    algorithm INTEGER NOT NULL, method INTEGER NOT NULL, rotate_s INTEGER NOT NULL,
    login {bytes} NOT NULL, made_ms BIGINT NOT NULL);
CREATE TABLE IF NOT EXISTS keys (target TEXT NOT NULL REFERENCES targets(name) ON DELETE CASCADE,
    level INTEGER NOT NULL, partition_id TEXT NOT NULL, version INTEGER NOT NULL,
    identifier {bytes} NOT NULL, sealed {bytes} NOT NULL, is_current INTEGER NOT NULL,
    made_ms BIGINT NOT NULL, retired_ms BIGINT NOT NULL,
    PRIMARY KEY (target, level, partition_id, version));
CREATE TABLE IF NOT EXISTS intents (target TEXT NOT NULL REFERENCES targets(name) ON DELETE CASCADE,
    level INTEGER NOT NULL, partition_id TEXT NOT NULL, version INTEGER NOT NULL,
    identifier {bytes} NOT NULL, sealed {bytes} NOT NULL, made_ms BIGINT NOT NULL,
    PRIMARY KEY (target, level, partition_id, version));
CREATE TABLE IF NOT EXISTS tags (target TEXT NOT NULL REFERENCES targets(name) ON DELETE CASCADE,
    partition_id TEXT NOT NULL, object_id TEXT NOT NULL, tag BIGINT NOT NULL,
    highest BIGINT NOT NULL, PRIMARY KEY (target, partition_id, object_id));
CREATE TABLE IF NOT EXISTS audit (seq BIGINT PRIMARY KEY, at_ms BIGINT NOT NULL, who TEXT NOT NULL,
    what TEXT NOT NULL, detail TEXT NOT NULL, hash {bytes} NOT NULL);
CREATE INDEX IF NOT EXISTS audit_of ON audit (who, what, seq);
"""


class DatabaseFault(SecmgrError):
    """The database cannot be read or written now, as on a full disk; the text says why."""


class Transaction(Protocol):
    """Statements that happen together or not at all."""

    def run(self, sql: str, *values: object) -> list[Row]:
        """Run one; the rows it gives."""
        ...


class Database:
    """Common parts of store, keystore and audit log.  Any thread; one transaction at a time."""

    words: dict[str, str]

    def __init__(self) -> None:
        self._lock = threading.RLock()

    @contextlib.contextmanager
    def transaction(self) -> Iterator[Transaction]:
        """Commit at the end, or undo all of it when something raises.  Raises: DatabaseFault."""
        with self._lock, self._begin() as inner:
            yield inner

    @contextlib.contextmanager
    def _begin(self) -> Iterator[Transaction]:
        raise NotImplementedError
        yield

    def create(self) -> None:
        """Make the tables that are not there."""
        with self.transaction() as tx:
            for statement in SCHEMA.format(**self.words).split(";"):
                if statement.strip():
                    tx.run(statement)

    def claim(self) -> None:
        """Be the only one that serves from it.  Raises: DatabaseFault: another does."""

    def close(self) -> None:
        """Let it go."""


class SqliteDatabase(Database):
    """One file of mode 0600."""

    words = {"bytes": "BLOB", "serial": "INTEGER PRIMARY KEY AUTOINCREMENT"}  # noqa: RUF012

    def __init__(self, path: Path) -> None:
        super().__init__()
        self._path = path
        try:
            os.close(os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600))
            self._db = sqlite3.connect(path, check_same_thread=False, isolation_level=None)
            # A credential is recorded in the log before it is issued, also across a power loss.
            for pragma in ("journal_mode=WAL", "synchronous=FULL", "foreign_keys=ON"):
                self._db.execute(f"PRAGMA {pragma}")
        except (OSError, sqlite3.Error) as error:
            code = getattr(error, "sqlite_errorcode", 0)
            kind = DatabaseFault if code & 0xFF in OF_THE_HOST else SecmgrError
            raise kind(f"cannot open {path}: {error}") from None

    def run(self, sql: str, *values: object) -> list[Row]:
        """Inside a transaction."""
        try:
            return self._db.execute(sql, values).fetchall()
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode & 0xFF not in OF_THE_HOST:  # the rest has details
                raise
            raise DatabaseFault(f"cannot use {self._path}: {error}") from error

    @contextlib.contextmanager
    def _begin(self) -> Iterator[Transaction]:
        if self._db.in_transaction:  # ours, as the lock is
            yield self
            return
        self.run("BEGIN IMMEDIATE")
        try:
            yield self
            self.run("COMMIT")
        except BaseException:
            if self._db.in_transaction:  # SQLite ends it itself after some errors
                self._db.execute("ROLLBACK")
            raise

    def close(self) -> None:
        """Let the file go."""
        with self._lock:
            self._db.close()


class PostgresDatabase(Database):
    """A database of a PostgreSQL server; a lost connection is made again by the next transaction."""

    words = {  # noqa: RUF012
        "bytes": "BYTEA",
        "serial": "BIGINT GENERATED ALWAYS AS IDENTITY PRIMARY KEY",
    }

    def __init__(self, url: str) -> None:
        super().__init__()
        try:
            import psycopg
        except ImportError:
            raise SecmgrError("PostgreSQL needs the package psycopg: pip install psycopg") from None
        self._psycopg = psycopg
        self._url = url
        self._claimed: Row = ()  # the server's process that has the claim, and its start
        self._depth = 0
        self._db = self._connect()

    def _connect(self) -> Any:
        try:
            return self._psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        except self._psycopg.Error as error:
            # The URL may hold a password; libpq's words do not.
            raise DatabaseFault(f"PostgreSQL: {str(error).strip()}") from None

    def run(self, sql: str, *values: object) -> list[Row]:
        """Inside a transaction."""
        cursor = self._db.execute(sql.replace("?", "%s"), values)
        return cursor.fetchall() if cursor.description else []

    @contextlib.contextmanager
    def _begin(self) -> Iterator[Transaction]:
        if self._depth == 0 and (self._db.closed or self._db.broken):
            self._db = self._connect()
            if self._claimed:
                self._claim_again()
        self._depth += 1
        try:
            if self._depth > 1:
                yield self
            else:
                with self._db.transaction():
                    yield self
        except self._psycopg.OperationalError as error:
            raise DatabaseFault(f"PostgreSQL: {str(error).strip()}") from error
        finally:
            self._depth -= 1

    def claim(self) -> None:
        """By a lock that ends with the connection."""
        [(mine,)] = self.run("SELECT pg_try_advisory_lock(?)", CLAIM)
        if not mine:  # or one that did serve, whose end the server has not noticed yet
            raise DatabaseFault(SERVED)
        self._note_claim()

    def _note_claim(self) -> None:
        # If this host loses its power, the server ends the session, and with it the claim, in a minute.
        for name, value in KEEPALIVES.items():
            self.run(f"SET tcp_keepalives_{name} = {value}")
        sql = "SELECT pid, backend_start FROM pg_stat_activity WHERE pid = pg_backend_pid()"
        [self._claimed] = self.run(sql)

    def _claim_again(self) -> None:
        """By a new connection.  The server may not know that the former one was lost, whose process has
        the claim then: it is ended.

        Raises: DatabaseFault: another security manager has the claim.  The connection is closed.
        """
        try:
            self.run(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity "
                "WHERE pid = ? AND backend_start = ?",
                *self._claimed,
            )
            self.run(f"SET lock_timeout = {CLAIM_MS}")
            self.run("SELECT pg_advisory_lock(?)", CLAIM)
            self.run("SET lock_timeout = 0")
            self._note_claim()
        except self._psycopg.Error as error:
            self._db.close()
            late = isinstance(error, self._psycopg.errors.LockNotAvailable)
            why = SERVED if late else f"PostgreSQL: {str(error).strip()}"
            raise DatabaseFault(why) from None

    def close(self) -> None:
        """Disconnect."""
        with self._lock:
            self._db.close()


def open_database(place: str | Path) -> Database:
    """By URL (postgresql://…) or path.  Raises: SecmgrError."""
    if isinstance(place, str) and place.startswith(("postgresql://", "postgres://")):
        return PostgresDatabase(place)
    return SqliteDatabase(Path(place))


def hex_id(number: int) -> str:
    """An id as the tables have it."""
    return f"{number:016x}"
