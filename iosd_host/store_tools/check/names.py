# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds names whose directory or object does not exist, and directories that lead nowhere."""

from __future__ import annotations

from collections.abc import Iterator

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.names import NameRecord
from iosd_host.store_tools.format.records import (
    FormatError,
    ObjectRecord,
    Place,
    RecordFlag,
    RecordType,
)
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life, Store, StoreProgress

__all__ = ["check_names", "read_entry"]

TELL_EVERY = 1024


def check_names(store: Store, progress: StoreProgress) -> Iterator[Problem]:
    """Entries, their other halves, marks in the records of objects, then cycles."""
    yield from check_entries(store, progress)
    yield from check_named(store)
    yield from check_marks(store)
    yield from check_cycles(store)


def read_entry(store: Store, key: bytes, value: bytes) -> NameRecord:
    """A record of names.db.  Raises: FormatError."""

    def incarnation(partition_id: int) -> int:
        partition = store.partition(partition_id)
        return partition.incarnation if partition is not None else 0

    return NameRecord.of_entry(key, value, incarnation)


def exists(store: Store, found: NameRecord) -> bool:
    """Whether the named object exists and is alive."""
    if found.type is None:
        return store.life(found.object) is Life.LIVE
    return store.intact(found.object, found.type) is not None


def is_directory(store: Store, place: Place) -> bool:
    """Of a live partition; object id 0 is the partition itself, or the root."""
    if place.object_id == 0:
        return store.life(place) is Life.LIVE
    record = store.intact(place, RecordType.COLLECTION)
    return record is not None and RecordFlag.DIRECTORY in record.flags


def check_entries(store: Store, progress: StoreProgress) -> Iterator[Problem]:
    """names.db: directory and object exist, and the object knows the name."""
    total = store.db.count(Table.NAMES)
    for number, (key, value) in enumerate(store.db.walk(Table.NAMES)):
        if number % TELL_EVERY == 0:
            progress("names", number, total)
        try:
            found = read_entry(store, key, value)
        except FormatError as error:
            where = f"names.db {key.hex()}"
            yield Problem(ProblemKind.KEY_DAMAGED, where, str(error), Table.NAMES, key)
            continue
        if store.life(found.directory) is Life.DEAD:
            continue
        where = f"{found.directory} {found.name!r}"
        if not is_directory(store, found.directory):
            detail = "no such directory"
        elif not exists(store, found):
            detail = "no such object"
        else:
            detail = ""
        if detail:
            yield Problem(ProblemKind.NAME_STALE, where, detail, Table.NAMES, key)
        elif store.db.get(Table.NAMED, found.named_key) is None:
            yield Problem(ProblemKind.NAME_ONE_WAY, where, "", Table.NAMED, found.named_key)


def check_named(store: Store) -> Iterator[Problem]:
    """named.db: the directory has an entry that says the same."""
    for key, _ in store.db.walk(Table.NAMED):
        try:
            place, directory, name = NameRecord.parse_named(key, store.epoch)
        except FormatError as error:
            where = f"named.db {key.hex()}"
            yield Problem(ProblemKind.KEY_DAMAGED, where, str(error), Table.NAMED, key)
            continue
        if store.life(place) is Life.DEAD:
            continue
        value = store.db.get(Table.NAMES, directory.encode() + name)
        wanted = place.object_id or place.partition_id
        if value is not None and value[1:] == wanted.to_bytes(8, "big"):
            continue
        where = f"{place} named {name!r}"
        lost = lost_entry(store, place, directory, name) if value is None else None
        if lost is not None:
            yield Problem(
                ProblemKind.NAME_LOST, where, "", Table.NAMES, lost.entry_key, lost.entry_value
            )
        else:
            yield Problem(ProblemKind.NAMED_STALE, where, "", Table.NAMED, key)


def lost_entry(store: Store, place: Place, directory: Place, name: bytes) -> NameRecord | None:
    """The entry that a directory should have; None: it cannot have it.

    A directory or partition has one name: of several, none is known to be the right one.
    """
    if not is_directory(store, directory):
        return None
    if store.intact(place, RecordType.USER_OBJECT) is not None:
        return NameRecord(directory, name, place, RecordType.USER_OBJECT)
    if not is_directory(store, place) or len([*store.db.walk(Table.NAMED, place.encode())]) > 1:
        return None
    return NameRecord(directory, name, place, RecordType.COLLECTION if place.object_id else None)


def check_marks(store: Store) -> Iterator[Problem]:
    """objects.db: an object has the mark of a name if, and only if, it has one."""
    for key, value in store.db.walk(Table.OBJECTS):
        try:
            place, record = Place.decode(key), ObjectRecord.decode(value)
        except FormatError:
            continue
        named = next(store.db.walk(Table.NAMED, key), None) is not None
        if store.life(place) is Life.LIVE and named != (RecordFlag.NAMED in record.flags):
            detail = "it has names" if named else "it has none"
            yield Problem(ProblemKind.NAME_MARK, str(place), detail, Table.OBJECTS, key, named)


def check_cycles(store: Store) -> Iterator[Problem]:
    """Directories that are below themselves, whose entries no path reaches."""
    parents = dict[Place, NameRecord]()
    for key, value in store.db.walk(Table.NAMES):
        try:
            found = read_entry(store, key, value)
        except FormatError:
            continue
        if found.type is RecordType.COLLECTION:
            parents[found.object] = found
    sound = set[Place]()
    for place in parents:
        path, at = dict[Place, None](), place
        while at in parents and at not in sound and at not in path:
            path[at] = None
            at = parents[at].directory
        if at in path:
            key, half = parents[at].entry_key, parents[at].named_key
            yield Problem(ProblemKind.NAME_CYCLE, str(at), "", Table.NAMES, key, half)
        sound.update(path)
