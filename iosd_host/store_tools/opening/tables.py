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
from itertools import islice
from pathlib import Path

from iosd_host.common.whole_file import sync_folder
from iosd_host.store_tools.opening.bdb import (
    DatabaseError,
    StoreDatabase,
    Table,
    damaged_tables,
    forget_log,
    salvage,
    text_of,
)

__all__ = ["Health", "prepare"]

BATCH = 512
REBUILT = ".rebuilt"


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
    """Recover the database and mend its files.

    Args: aside: a folder for what is replaced; made when needed.
    Raises: DatabaseError: not even so; OSError.
    """
    health = Health()
    for table in Table:
        with contextlib.suppress(FileNotFoundError):
            (folder / (table.value + REBUILT)).unlink()
    try:
        StoreDatabase(folder).close()
    except DatabaseError as error:
        health.damaged = damaged_tables(folder)
        if not health.damaged:
            health.log_damage = text_of(error)
        set_log_aside(folder, aside)
    health.damaged |= damaged_tables(folder)
    health.missing = [
        each for each in Table if not each.may_be_absent and not (folder / each.value).exists()
    ]
    for table in health.damaged:
        rebuild(folder, table, aside)
    return health


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
    with contextlib.suppress(DatabaseError):  # a table too damaged for it is rebuilt
        forget_log(folder)
    for log in sorted(folder.glob("log.*")):
        log.rename(place_in(aside, log.name))
    sync_folder(folder)


def rebuild(folder: Path, table: Table, aside: Path) -> None:
    """Put what can be read of a table into a new one, and that in its place."""
    dump = place_in(aside, f"{table.value}.dump")
    records = salvage(folder, table, dump)
    name = table.value + REBUILT
    with StoreDatabase(folder, only=()) as database:
        database.open_table(table, name)
        while batch := list(islice(records, BATCH)):
            with database.transaction() as transaction:
                for key, value in batch:
                    transaction.put(table, key, value)
    with contextlib.suppress(FileNotFoundError):
        dump.unlink()
    os.link(folder / table.value, place_in(aside, table.value))
    (folder / name).rename(folder / table.value)
    sync_folder(folder)
