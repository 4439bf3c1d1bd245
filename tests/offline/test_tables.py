# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables with records of another one, or of none: what salvage of a damaged file may bring."""

from __future__ import annotations

import shutil
import subprocess
import time

from iosd_host.cli import store as commands
from iosd_host.store_tools.format.keys import KeyKind, KeyName, decode_spans
from iosd_host.store_tools.format.records import Place
from iosd_host.store_tools.opening.bdb import PAGE_BYTES, Table, damaged_tables
from tests.offline.stores import Snapshot, Store, look

ODD = (b"", b"\0", b"W", b"We are none", b"\1" * 17, b"\xff" * 3000)


def assert_mended(store: Store) -> None:
    """check and dump show all there is, repair mends it, and a target serves what is left."""
    assert store.kinds()
    assert store.run(commands.dump, "-o", "json").exit_code == 0
    store.repair()
    assert store.check() == []
    with store.serve() as osd:
        look(osd)
    assert store.check() == []


def test_keys_of_no_table(store: Store) -> None:
    for table in Table:
        for key in ODD:
            store.put(table, key, b"\xee" * 3000)
    assert_mended(store)


def test_records_of_other_tables(store: Store) -> None:
    records = {table: store.records(table)[:20] for table in Table}
    with store.database() as database, database.transaction() as transaction:
        for table in Table:
            for other, found in records.items():
                for key, value in found if other is not table else []:
                    transaction.put(table, b"\0" + key, value)
    assert_mended(store)


def test_damaged_times_of_nonces(store: Store) -> None:
    """Without them, commands that somebody has recorded could be sent again."""
    nonces = KeyName(Place(0, 0), KeyKind.NONCES, 0).encode()
    store.put(Table.KEYS, nonces, b"nonsense")
    assert store.kinds() == {"key-record-damaged"}
    store.repair()
    assert store.check() == []
    ((first, last),) = decode_spans(dict(store.records(Table.KEYS))[nonces])
    assert first == 0 and last > time.time() * 1000


def test_damaged_tables_are_those_of_db_verify(store: Store) -> None:
    """Its findings of each table, whatever is damaged beside it."""
    folder, damaged = store.data / "db", (Table.PARTITIONS, Table.JOBS, Table.META)
    store.records(Table.META)  # opens and closes it: the log is empty
    for table in damaged:
        with (folder / table.value).open("r+b") as file:
            file.seek(PAGE_BYTES + 26)
            file.write(b"\xa5" * 100)
    found = damaged_tables(folder)
    assert tuple(found) == damaged
    for table, text in found.items():
        done = subprocess.run(
            ["db5.3_verify", folder / table.value], capture_output=True, text=True, check=False
        )
        assert done.returncode == 1 and done.stderr.startswith(f"db5.3_verify: {text}\n")
    (folder / Table.JOBS.value).write_bytes(b"")
    assert damaged_tables(folder)[Table.JOBS] == "the file is empty"


def test_a_copy_of_another_table(store: Store, before: Snapshot) -> None:
    """Berkeley DB takes both for one file."""
    folder = store.data / "db"
    shutil.copy(folder / "memberships.db", folder / "commands.db")
    assert "table-damaged" in store.kinds()
    store.repair()
    assert store.check() == []
    with store.serve() as osd:
        assert look(osd) == before
