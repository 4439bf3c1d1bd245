# SPDX-License-Identifier: GPL-2.0-or-later
"""Makes a database that Berkeley DB itself complains about openable again, in a folder it may change.

A log that cannot be recovered is set aside and the tables are used as they are; a table with
damaged pages is set aside, and what can be read of it is put into a new one.  Each step leaves a
database that the next run can begin with.
"""

from __future__ import annotations

import contextlib
import os
from dataclasses import dataclass, field
from functools import partial
from itertools import islice
from pathlib import Path

from iosd_host.common.whole_file import sync_folder
from iosd_host.store_tools.opening.bdb import (
    StoreDatabase,
    Table,
    apart,
    damaged_tables,
    forget_log,
    log_lags,
    salvage,
)
from iosd_host.store_tools.opening.log import LogWatch

__all__ = ["Health", "prepare", "recover"]

BATCH = 512
REBUILT = ".rebuilt"
LEFT_OUT = ".left-out"


@dataclass
class Health:
    """Faults of the database itself."""

    log_damage: str = ""
    missing: list[Table] = field(default_factory=list)
    damaged: dict[Table, str] = field(default_factory=dict)

    def clear(self) -> None:
        """All of it was repaired when the database was opened."""
        self.log_damage = ""
        self.missing.clear()
        self.damaged.clear()


def prepare(folder: Path, aside: Path) -> Health:
    """Recover the database and repair its files.

    Args: aside: a folder for what is replaced; made when needed.
    Raises: DatabaseError: not even so; OSError: the disk is full, a file is not ours.
    """
    health = Health()
    for table in Table:
        with contextlib.suppress(FileNotFoundError):
            (folder / (table.value + REBUILT)).unlink()
        put_back(folder, table)
    watch = LogWatch(folder)
    error = apart(recover, folder)
    if error and not recover_without(folder):
        health.log_damage = error
        health.damaged = damaged_tables(folder)
        set_log_aside(folder, aside)
    elif dropped := watch.dropped():
        health.log_damage = dropped
        place_in(aside, watch.name).write_bytes(watch.data)
    health.damaged |= damaged_tables(folder)
    health.missing = [
        each for each in Table if not each.may_be_absent and not (folder / each.value).exists()
    ]
    for table in health.damaged:
        rebuild(folder, table, aside)
    if lag := log_lags(folder):
        health.log_damage = health.log_damage or lag
        set_log_aside(folder, aside)
    return health


def recover(folder: Path) -> None:
    """As every opening does.  Raises: DatabaseError."""
    StoreDatabase(folder).close()


def recover_without(folder: Path) -> bool:
    """Recover all tables but those that are too damaged for it, which stay as they are.

    Recovery passes over a table that is not there.  Returns whether it went well.
    """
    suspects = list(damaged_tables(folder))
    each_alone = [[each] for each in suspects]
    for left_out in each_alone + ([suspects] if len(suspects) > 1 else []):
        for table in left_out:
            (folder / table.value).rename(folder / (table.value + LEFT_OUT))
        failed = apart(recover, folder)
        for table in left_out:
            put_back(folder, table)
        if not failed:
            return True
    return False


def put_back(folder: Path, table: Table) -> None:
    """A table that recovery has left out, also if a kill has come between."""
    path = folder / (table.value + LEFT_OUT)
    if not path.exists():
        return
    if not (folder / table.value).exists():
        path.rename(folder / table.value)
        sync_folder(folder)
        return
    # A target has been started since: what it has stored stays.
    apart(recover, folder)
    with StoreDatabase(folder) as database:
        for key, value in salvage(path):
            if database.get(table, key) is None:
                with database.transaction() as transaction:
                    transaction.put(table, key, value)
    path.unlink()


def place_in(aside: Path, name: str) -> Path:
    """A name that nothing has yet."""
    aside.mkdir(mode=0o700, exist_ok=True)
    sync_folder(aside.parent)
    path, number = aside / name, 1
    while path.exists():
        path, number = aside / f"{name}.{number}", number + 1
    return path


def set_log_aside(folder: Path, aside: Path) -> None:
    """The tables first: until the log is gone, the next run would do the same again."""
    for table in Table:  # one too damaged for it is rebuilt
        apart(partial(forget_log, table=table), folder)
    for log in sorted(folder.glob("log.*")):
        log.rename(place_in(aside, log.name))
    sync_folder(folder)


def rebuild(folder: Path, table: Table, aside: Path) -> None:
    """Put what can be read of a table into a new one, and that in its place."""
    records = salvage(folder / table.value)
    name = table.value + REBUILT
    with StoreDatabase(folder, only=()) as database:
        database.open_table(table, name)
        while batch := list(islice(records, BATCH)):
            with database.transaction() as transaction:
                for key, value in batch:
                    transaction.put(table, key, value)
    os.link(folder / table.value, place_in(aside, table.value))
    (folder / name).rename(folder / table.value)
    sync_folder(folder)
