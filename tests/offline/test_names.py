# SPDX-License-Identifier: GPL-2.0-or-later
"""Names offline: check finds each damage, repair repairs it, dump shows them, and the target agrees."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from iosd_host.store_tools.format.names import NameRecord
from iosd_host.store_tools.format.records import Place, RecordFlag, RecordType
from iosd_host.store_tools.opening.bdb import Table
from pyosd.commands import Commands
from pyosd.errors import NoSpace, NoSuchName, StorageError
from pyosd.types import ObjectRef, ref
from tests.offline.stores import FIRST, build

ROOT = ref(FIRST)
NAMES_MAX = 65_536


class Named:
    """A store with the directories d and d/e, and the object d/f, which is also g.  The partition has the
    name part."""

    def __init__(self, folder: Path) -> None:
        self.store = build(folder, two_roots=False)
        with self.store.serve() as osd:
            self.outer = osd.make_directory(ROOT, "d").object
            self.inner = osd.make_directory(ROOT, "d/e").object
            self.file = osd.create_name(ROOT, "d/f").object
            osd.link(ROOT, "g", "d/f")
            osd.link(ref(), "part", ROOT)

    def name(
        self, directory: ObjectRef, name: bytes, obj: ObjectRef, kind: RecordType
    ) -> NameRecord:
        return NameRecord(
            self.store.place(obj).sibling(directory.object_id), name, self.store.place(obj), kind
        )

    @property
    def of_partition(self) -> NameRecord:
        places = (Place.decode(key) for key, _ in self.store.records(Table.NAMES))
        root = next(each for each in places if each.partition_id == 0)
        return NameRecord(root, b"part", self.store.place(self.file).partition, None)

    @property
    def in_directory(self) -> NameRecord:
        return self.name(self.outer, b"f", self.file, RecordType.USER_OBJECT)


def no_object(named: Named) -> None:
    found = replace(
        named.in_directory, name=b"none", object=named.in_directory.directory.sibling(0x99_0000)
    )
    named.store.put(Table.NAMES, found.entry_key, found.entry_value)


def no_directory(named: Named) -> None:
    found = replace(named.in_directory, directory=named.in_directory.directory.sibling(0x99_0000))
    named.store.put(Table.NAMES, found.entry_key, found.entry_value)


def half_removed(named: Named) -> None:
    named.store.remove(Table.NAMED, named.in_directory.named_key)


def entry_removed(named: Named) -> None:
    named.store.remove(Table.NAMES, named.in_directory.entry_key)


def all_entries_removed(named: Named) -> None:
    for key, _ in named.store.records(Table.NAMES):
        named.store.remove(Table.NAMES, key)


def no_entry_and_no_directory(named: Named) -> None:
    found = replace(named.in_directory, directory=named.in_directory.directory.sibling(0x99_0000))
    named.store.put(Table.NAMED, found.named_key, b"")


def two_names_of_a_directory(named: Named) -> None:
    found = named.name(named.outer, b"e2", named.inner, RecordType.COLLECTION)
    named.store.put(Table.NAMED, found.named_key, b"")


def mark_removed(named: Named) -> None:
    record = named.store.record(named.file)
    value = replace(record, flags=record.flags & ~RecordFlag.NAMED).encode()
    named.store.put(Table.OBJECTS, named.store.place(named.file).encode(), value)


def cycle(named: Named) -> None:
    old = named.name(ROOT, b"d", named.outer, RecordType.COLLECTION)
    new = named.name(named.inner, b"d", named.outer, RecordType.COLLECTION)
    named.store.remove(Table.NAMES, old.entry_key)
    named.store.remove(Table.NAMED, old.named_key)
    named.store.put(Table.NAMES, new.entry_key, new.entry_value)
    named.store.put(Table.NAMED, new.named_key, b"")


def no_partition(named: Named) -> None:
    found = replace(named.of_partition, name=b"gone", object=Place(0x99_0000, 1))
    named.store.put(Table.NAMES, found.entry_key, found.entry_value)


def partition_half_removed(named: Named) -> None:
    named.store.remove(Table.NAMED, named.of_partition.named_key)


def partition_entry_removed(named: Named) -> None:
    named.store.remove(Table.NAMES, named.of_partition.entry_key)


def key_cut(named: Named) -> None:
    named.store.put(Table.NAMES, named.in_directory.directory.encode(), b"")


DAMAGES: dict[Callable[[Named], None], str] = {
    no_object: "name-stale",
    no_directory: "name-stale",
    half_removed: "name-one-way",
    entry_removed: "name-lost",
    all_entries_removed: "name-lost",
    no_entry_and_no_directory: "named-stale",
    two_names_of_a_directory: "named-stale",
    mark_removed: "name-mark",
    cycle: "name-cycle",
    key_cut: "key-damaged",
    no_partition: "name-stale",
    partition_half_removed: "name-one-way",
    partition_entry_removed: "name-lost",
}


def put_back(osd: Commands, named: Named) -> None:
    """One directory of the cycle has lost its name, and gets another one by its id."""
    both = (named.outer, named.inner)
    (lost,) = [each for each in both if osd.lookup(each, "").names == 0]
    with pytest.raises(NoSuchName):
        osd.lookup(ROOT, "d")
    osd.link(ROOT, "found", lost)
    if lost == named.inner:
        osd.rename(ROOT, "found/d", "d")
        osd.rename(ROOT, "found", "d/e")
    else:
        osd.rename(ROOT, "found", "d")


@pytest.mark.parametrize(("act", "kind"), DAMAGES.items(), ids=[e.__name__ for e in DAMAGES])
def test_damage(tmp_path: Path, act: Callable[[Named], None], kind: str) -> None:
    named = Named(tmp_path)
    store = named.store
    assert store.check() == []
    act(named)
    assert kind in store.kinds()
    assert all(each["done"] for each in store.repair())
    assert store.check() == []
    with store.serve() as osd:
        assert [each.name for each in osd.list_names(ref()).entries] == [b"part"]
        assert osd.lookup(ROOT, "").names == 1
        assert osd.lookup(ROOT, "g").object == named.file
        if act is cycle:
            put_back(osd, named)
        assert osd.lookup(ROOT, "d/e").object == named.inner
        osd.rename(ROOT, "g", "d/h")
        osd.unlink(ROOT, "d/f")
        assert osd.unlink(ROOT, "d/h").removed
        assert osd.remove_directory(ROOT, "d/e").removed
        assert osd.remove_directory(ROOT, "d").removed
    assert store.check() == []


def test_a_circle_of_directories_ends_a_rename(tmp_path: Path) -> None:
    """A target on the damaged store says so, and does not go round for ever."""
    named = Named(tmp_path)
    cycle(named)
    with named.store.serve() as osd:
        osd.make_directory(named.inner, "moved")
        osd.make_directory(named.inner, "to")
        with pytest.raises(StorageError):
            osd.rename(named.inner, "moved", "to/moved")
        assert osd.lookup(ROOT, "g").object == named.file


def test_an_object_has_so_many_names(tmp_path: Path) -> None:
    named = Named(tmp_path)
    store, at = named.store, named.name(ROOT, b"", named.file, RecordType.USER_OBJECT)
    with store.database() as database, database.transaction() as transaction:
        for number in range(NAMES_MAX - 3):
            each = replace(at, name=b"%05d" % number)
            transaction.put(Table.NAMES, each.entry_key, each.entry_value)
            transaction.put(Table.NAMED, each.named_key, b"")
    with store.serve() as osd:
        assert osd.link(ROOT, "last", "g").names == NAMES_MAX
        with pytest.raises(NoSpace):
            osd.link(ROOT, "one more", "g")
        assert osd.lookup(ROOT, "g").names == NAMES_MAX
        osd.rename(ROOT, "last", "g", replace=True)
        osd.remove(named.file)
        assert [each.name for each in osd.list_names(ROOT).entries] == [b"d"]
    assert store.check() == []


def test_a_store_of_an_earlier_release_gets_the_tables(tmp_path: Path) -> None:
    store = build(tmp_path, two_roots=False)
    for table in (Table.NAMES, Table.NAMED):
        (store.data / "db" / table.value).unlink()
    assert store.check() == []
    with store.serve() as osd:
        osd.create_name(ROOT, "first")
        assert osd.lookup(ROOT, "first").names == 1
    assert store.check() == []
