# SPDX-License-Identifier: GPL-2.0-or-later
"""The state of a resource manager: a SQLite file in its state folder.

    overrides   values that administrators have set, until they reset them
    changes     who changed what, when and why; the newest 100,000
    boots       the run of each target that has got the overrides
    usage       of each principal, summed over the runs of its target
    history     loads of the past, thinned: rows every 10 s for 6 h, every minute for 3 d, every
                quarter of an hour for 90 d (LEVELS), which is at most 15,120 rows a target

Each call is one transaction, which is stored completely or not at all, also if the process is killed.
Only one thread at a time may call, and calls can wait for the disk.
Not here: the meaning of the values (manager.py).
"""

from __future__ import annotations

import fcntl
import itertools
import json
import logging
import os
import sqlite3
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

__all__ = [
    "LEVELS",
    "OURSELVES",
    "PEOPLE",
    "POLICY",
    "Change",
    "FolderLock",
    "Override",
    "StateError",
    "StateStore",
    "merge",
]

LOG = logging.getLogger("iosd.state")

VERSION = 1
CHANGES_MOST = 100_000
PRUNE_EVERY = 1000
PRINCIPALS_MOST = 10_000  # of a target; those used least are summed up beyond that
OTHERS = "(others)"  # the name that a target sums up under, too
POLICY = "policy"  # who changes what the policy changes
PEOPLE = "people"  # a filter: all others
OURSELVES = "iosd-manager"  # its own doings: links to targets, settings restored after a restart
ANSWER_MOST = 10_000  # rows of one answer
# seconds between rows, and how long they are kept
LEVELS = ((10, 6 * 3600), (60, 3 * 86400), (900, 90 * 86400))

TABLES = """
CREATE TABLE overrides (target TEXT, kind TEXT, name TEXT, key TEXT, value TEXT NOT NULL,
    by TEXT NOT NULL, why TEXT NOT NULL, at REAL NOT NULL, PRIMARY KEY (target, kind, name, key));
CREATE TABLE changes (id INTEGER PRIMARY KEY AUTOINCREMENT, target TEXT NOT NULL, at REAL NOT NULL,
    pool TEXT, what TEXT NOT NULL, by TEXT NOT NULL, why TEXT NOT NULL, was TEXT, now TEXT);
CREATE TABLE boots (target TEXT PRIMARY KEY, boot TEXT NOT NULL);
CREATE INDEX changes_of ON changes (target, id);
CREATE TABLE usage (target TEXT, boot TEXT, principal TEXT, sums TEXT NOT NULL,
    PRIMARY KEY (target, boot, principal));
CREATE TABLE history (target TEXT, step INTEGER, at INTEGER, load TEXT NOT NULL,
    PRIMARY KEY (target, step, at)) WITHOUT ROWID;
"""


class StateError(Exception):
    """The folder cannot be used; the text says why."""


@dataclass(frozen=True)
class Override:
    """A value that an administrator has set.

    Attributes:
        kind: "pool", "principal" or "workers"; name: which of them, "" for workers.
        value: JSON.
    """

    kind: str
    name: str
    key: str
    value: Any
    by: str = ""
    why: str = ""
    at: float = 0.0


@dataclass(frozen=True)
class Change:
    """A line of the log of changes.

    Attributes:
        what: the method, or "policy"; "restored": set again after a restart of the target.
        by: the author.  why: the reason; "": none was given.
        was, now: the changed values, by key; None: not known.
        pool: None: the change is not about a pool.
        at: seconds since 1970.
    """

    target: str
    what: str
    by: str
    why: str = ""
    was: Mapping[str, Any] | None = None
    now: Mapping[str, Any] | None = None
    pool: str | None = None
    at: float = field(default_factory=time.time)
    id: int = 0

    def __str__(self) -> str:
        """A line for a log: "pool default: active 2 -> 1, by policy: none waits"."""
        where = f"{self.target}: {f'pool {self.pool}: ' if self.pool else ''}"
        was, now = self.was or {}, self.now or {}
        values = [f"{key} {was.get(key)} -> {now.get(key)}" for key in {**was, **now}]
        what = [self.what] if self.what != self.by else []
        why = f": {self.why}" if self.why else ""
        return f"{where}{', '.join([*what, *values])}, by {self.by}{why}"

    def fields(self) -> dict[str, Any]:
        """As it is answered."""
        found = dict(vars(self))
        return found | {"at": round(self.at * 1000), "is": found.pop("now")}


class FolderLock:
    """Locks a state folder for this process, until the process ends.

    Args: folder: made when absent.

    Raises:
        StateError: the folder cannot be made or written.
    """

    def __init__(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            flags = os.O_RDWR | os.O_CREAT | os.O_CLOEXEC
            self.descriptor = os.open(folder / "lock", flags, 0o600)
        except OSError as error:
            raise StateError(f"cannot use {folder}: {error.strerror}") from None

    def take(self) -> bool:
        """Take it if it is free; tells whether it is ours now."""
        try:
            fcntl.flock(self.descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        os.ftruncate(self.descriptor, 0)
        os.pwrite(self.descriptor, f"{os.getpid()}\n".encode(), 0)
        return True

    def holder(self) -> str:
        """Process id of the owner."""
        return os.pread(self.descriptor, 32, 0).decode(errors="replace").strip() or "?"

    def close(self) -> None:
        """Give it up."""
        os.close(self.descriptor)


class StateStore:
    """The file, opened; its opener holds the folder's lock.

    A damaged file is put aside, and a new one begun: a manager without its past is better than none.

    Raises:
        StateError: it is a later release's, or the folder cannot be written.
    """

    def __init__(self, folder: Path) -> None:
        self.path = folder / "state.sqlite"
        try:
            self.database = self._open()
        except sqlite3.DatabaseError as error:
            if isinstance(error, sqlite3.OperationalError):
                raise StateError(f"cannot open {self.path}: {error}") from None
            aside = self.path.with_suffix(f".damaged-{int(time.time())}")
            LOG.error("%s is damaged (%s): put aside as %s", self.path, error, aside)
            self.path.rename(aside)
            for suffix in ("-wal", "-shm"):
                Path(f"{self.path}{suffix}").unlink(missing_ok=True)
            self.database = self._open()
        self.written = PRUNE_EVERY  # each run before may have written fewer

    def _open(self) -> sqlite3.Connection:
        database = sqlite3.connect(
            self.path, isolation_level=None, check_same_thread=False, timeout=1.0
        )
        try:
            database.execute("PRAGMA journal_mode = WAL")
            database.execute("PRAGMA synchronous = FULL")
            [(found,)] = database.execute("PRAGMA quick_check(1)").fetchall()
            if found != "ok":
                raise sqlite3.DatabaseError(str(found))
            [(version,)] = database.execute("PRAGMA user_version")
            if version > VERSION:
                raise StateError(
                    f"{self.path} is of a later release (version {version}, we know {VERSION}): "
                    "use that one, or another --state"
                )
            if version == 0:
                database.executescript(f"BEGIN; {TABLES} PRAGMA user_version = {VERSION}; COMMIT")
        except BaseException:
            database.close()
            raise
        self.path.chmod(0o600)
        return database

    def close(self) -> None:
        """All of it is on the disk already."""
        self.database.close()

    @contextmanager
    def _transaction(self) -> Iterator[sqlite3.Connection]:
        self.database.execute("BEGIN IMMEDIATE")
        try:
            yield self.database
        except BaseException:
            self.database.execute("ROLLBACK")
            raise
        self.database.execute("COMMIT")

    # ---- overrides and changes ----

    def overrides(self, target: str) -> list[Override]:
        """All of a target."""
        rows = self.database.execute(
            "SELECT kind, name, key, value, by, why, at FROM overrides WHERE target = ? "
            "ORDER BY kind, name, key",
            (target,),
        )
        return [
            Override(kind, name, key, json.loads(value), by, why, at)
            for kind, name, key, value, by, why, at in rows
        ]

    def change(
        self,
        changes: Sequence[Change],
        put: Sequence[Override] = (),
        drop: Sequence[Override] = (),
    ) -> None:
        """Log changes, and keep or forget the overrides of the first one's target with them."""
        with self._transaction() as database:
            for each in drop:
                database.execute(
                    "DELETE FROM overrides WHERE target = ? AND kind = ? AND name = ? AND key = ?",
                    (changes[0].target, each.kind, each.name, each.key),
                )
            for each in put:
                key = (changes[0].target, each.kind, each.name, each.key)
                database.execute(
                    "INSERT OR REPLACE INTO overrides VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    (*key, json.dumps(each.value), each.by, each.why, each.at),
                )
            for line in changes:
                parts = line.was, line.now
                was, now = (None if part is None else json.dumps(part) for part in parts)
                row = (line.target, line.at, line.pool, line.what, line.by, line.why, was, now)
                database.execute(
                    "INSERT INTO changes (target, at, pool, what, by, why, was, now) "
                    "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                    row,
                )
            self._prune(database, len(changes))

    def _prune(self, database: sqlite3.Connection, count: int) -> None:
        self.written += count
        if self.written < PRUNE_EVERY:
            return
        self.written = 0
        database.execute(
            "DELETE FROM changes WHERE id <= (SELECT max(id) FROM changes) - ?", (CHANGES_MOST,)
        )

    def changes(
        self,
        target: str | None = None,
        since: int = 0,
        most: int = 100,
        who: str | None = None,
        pool: str | None = None,
    ) -> list[Change]:
        """The newest `most` lines of the log with an id above `since`, oldest first.

        Args: target: None: of all.  who: a name, with or without what stands in brackets behind it, or
            PEOPLE: all but the policy and the manager itself; None: all.  pool: None: of all, and of none.
        """
        rows = self.database.execute(
            "SELECT target, what, by, why, was, now, pool, at, id FROM changes "
            "WHERE id > ?1 AND (?2 IS NULL OR target = ?2) AND (?4 IS NULL OR pool = ?4) "
            "AND (?5 IS NULL OR by = ?5 OR substr(by, 1, length(?5) + 2) = ?5 || ' (' "
            "OR (?5 = ?6 AND by NOT IN (?7, ?8))) ORDER BY id DESC LIMIT ?3",
            (since, target, min(most, ANSWER_MOST), pool, who, PEOPLE, POLICY, OURSELVES),
        )
        found = []
        for name, what, by, why, was, now, pool, at, serial in rows:
            one, other = (part and json.loads(part) for part in (was, now))
            found.append(Change(name, what, by, why, one, other, pool, at, serial))
        return found[::-1]

    # ---- runs of targets, and usage ----

    def boot(self, target: str) -> str | None:
        """The run of the target in which everything was set that administrators have set."""
        found = self.database.execute("SELECT boot FROM boots WHERE target = ?", (target,))
        row = found.fetchone()
        return None if row is None else str(row[0])

    def put_boot(self, target: str, boot: str) -> None:
        """All is set in that run."""
        self.database.execute("INSERT OR REPLACE INTO boots VALUES (?, ?)", (target, boot))

    def put_usage(self, target: str, boot: str, usage: Mapping[str, Mapping[str, int]]) -> None:
        """Usage of principals since the target started. It replaces the earlier figures of this
        boot.

        Figures of earlier boots are added up under the boot "", because they no longer change.
        """
        with self._transaction() as database:
            [(others,)] = database.execute(
                "SELECT count(*) FROM usage WHERE target = ? AND boot NOT IN ('', ?)",
                (target, boot),
            )
            if others:
                self._settle(database, target, boot)
            database.execute("DELETE FROM usage WHERE target = ? AND boot = ?", (target, boot))
            rows = [(target, boot, name, json.dumps(sums)) for name, sums in usage.items()]
            database.executemany("INSERT INTO usage VALUES (?, ?, ?, ?)", rows)

    def _settle(self, database: sqlite3.Connection, target: str, boot: str) -> None:
        sums = self._sums(target, boot)
        if len(sums) > PRINCIPALS_MOST:
            least = sorted(sums, key=lambda name: sums[name].get("finished", 0))
            for name in least[: len(sums) - PRINCIPALS_MOST]:
                if name != OTHERS:
                    sums[OTHERS] = added(sums.get(OTHERS, {}), sums.pop(name))
        database.execute("DELETE FROM usage WHERE target = ? AND boot != ?", (target, boot))
        rows = [(target, "", name, json.dumps(each)) for name, each in sums.items()]
        database.executemany("INSERT INTO usage VALUES (?, ?, ?, ?)", rows)

    def _sums(self, target: str, but: str | None = None) -> dict[str, dict[str, int]]:
        sums: dict[str, dict[str, int]] = {}
        rows = self.database.execute(
            "SELECT principal, sums FROM usage WHERE target = ? AND boot IS NOT ?", (target, but)
        )
        for name, each in rows:
            sums[name] = added(sums.get(name, {}), json.loads(each))
        return sums

    def usage(self, target: str) -> dict[str, dict[str, int]]:
        """Sums over all runs of the target, by principal."""
        return self._sums(target)

    # ---- history ----

    def put_load(self, target: str, at: float, load: Mapping[str, Any]) -> None:
        """Keep a row of the finest level, and those of the coarser ones that it completes."""
        step, _ = LEVELS[0]
        moment = int(at) // step * step
        with self._transaction() as database:
            self._put_row(database, target, step, moment, load)
            for (fine, _), (coarse, _) in itertools.pairwise(LEVELS):
                start = moment // coarse * coarse
                [(before,)] = database.execute(
                    "SELECT max(at) FROM history WHERE target = ? AND step = ? AND at < ?",
                    (target, fine, start),
                )
                if before is None:
                    break
                self._complete(database, target, (fine, coarse), before // coarse * coarse)
            for step, kept in LEVELS:
                database.execute(
                    "DELETE FROM history WHERE target = ? AND step = ? AND (at < ? OR at > ?)",
                    (target, step, moment - kept, moment + kept),  # the clock may have been set
                )

    def _complete(
        self, database: sqlite3.Connection, target: str, steps: tuple[int, int], start: int
    ) -> None:
        """Make the coarse row at `start` of its fine ones, once."""
        fine, coarse = steps
        [(there,)] = database.execute(
            "SELECT count(*) FROM history WHERE target = ? AND step = ? AND at = ?",
            (target, coarse, start),
        )
        if not there:
            rows = database.execute(
                "SELECT load FROM history WHERE target = ? AND step = ? AND at >= ? AND at < ?",
                (target, fine, start, start + coarse),
            )
            load = merge([json.loads(each) for (each,) in rows])
            self._put_row(database, target, coarse, start, load)

    @staticmethod
    def _put_row(
        database: sqlite3.Connection, target: str, step: int, at: int, load: Mapping[str, Any]
    ) -> None:
        row = (target, step, at, json.dumps(load, separators=(",", ":")))
        database.execute("INSERT OR REPLACE INTO history VALUES (?, ?, ?, ?)", row)

    def history(
        self, target: str, since: float, step: int, most: int = 1000
    ) -> list[dict[str, Any]]:
        """The newest rows of the coarsest level that is as fine as `step`, oldest first."""
        level = max((each for each, _ in LEVELS if each <= step), default=LEVELS[0][0])
        rows = self.database.execute(
            "SELECT at, load FROM history WHERE target = ? AND step = ? AND at >= ? "
            "ORDER BY at DESC LIMIT ?",
            (target, level, since, min(most, ANSWER_MOST)),
        )
        found = [{"at": at * 1000, "step": level, **json.loads(load)} for at, load in rows]
        return found[::-1]


def added(one: Mapping[str, int], other: Mapping[str, int]) -> dict[str, int]:
    """Key by key."""
    return {key: one.get(key, 0) + other.get(key, 0) for key in {**one, **other}}


def mean(values: Sequence[float]) -> float:
    """To four digits."""
    return round(sum(values) / len(values), 4)


# key -> what of several values stands for all; others: the last
KEEP: dict[str, Callable[[Sequence[Any]], Any]] = {
    **dict.fromkeys(("busy", "cpu", "memory", "io"), mean),
    **dict.fromkeys(("queued", "oldest"), max),
}


def merge(loads: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    """One row of several, key by key, tables within tables."""
    merged: dict[str, Any] = {}
    for name in dict.fromkeys(name for load in loads for name in load):
        values = [load[name] for load in loads if load.get(name) is not None]
        tables = [each for each in values if isinstance(each, dict)]
        if not values:
            merged[name] = None
        elif tables:
            merged[name] = merge(tables)
        else:
            merged[name] = KEEP[name](values) if name in KEEP else values[-1]
    return merged
