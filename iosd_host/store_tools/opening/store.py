# SPDX-License-Identifier: GPL-2.0-or-later
"""One opened store: what is live in it, and where its data files are.

Lives here: look-ups that check, repair and dump share.  Everything is read from the database
when it is asked for; memory does not grow with the store.
Not here: directories and locks (folders.py), the database itself (bdb.py).
"""

from __future__ import annotations

import stat
from collections import OrderedDict
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from enum import Enum
from pathlib import Path

from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.records import (
    ALL,
    IDS_COUNTED,
    FormatError,
    MetaKind,
    ObjectRecord,
    PartitionRecord,
    Place,
    RecordType,
    RootRecord,
    dead_epoch_key,
    dead_files_key,
    dead_partition_key,
    parse_partition_key,
    partition_key,
)
from iosd_host.store_tools.opening.bdb import StoreDatabase, Table
from iosd_host.store_tools.opening.folders import Root, Roots
from iosd_host.store_tools.opening.tables import Health

__all__ = ["Files", "Life", "Store", "StoreProgress"]

PARTITIONS_KEPT = 4096

StoreProgress = Callable[[str, int, int], None]
"""Called now and then with a section's name, how far it is, and about how far it goes (0: unknown).
"""


class Life(Enum):
    """Whether the partition of a record is in use."""

    LIVE = 1
    DEAD = 2
    """It waits to be freed; what belongs to it is no problem."""
    UNKNOWN = 3


@dataclass(frozen=True)
class Files:
    """The data files of one generation of an object.  Sizes: None where there is no file.

    elsewhere: of a head in the root that the record does not name.
    """

    head: int | None
    tail: int | None
    elsewhere: int | None = None

    def length(self, head_bytes: int) -> int:
        """The target's view of them; without a head it sees nothing."""
        if self.head is None:
            return 0
        return max(self.head, head_bytes + self.tail if self.tail is not None else 0)


class Store:
    """Database and directories together."""

    def __init__(self, roots: Roots, database: StoreDatabase, health: Health) -> None:
        self.roots = roots
        self.db = database
        self.health = health
        self._partitions: OrderedDict[int, PartitionRecord | None] = OrderedDict()
        self._root: RootRecord | None = None
        self._retired: set[tuple[int, int]] | None = None
        self.forget()

    def forget(self) -> None:
        """Read again what was kept in memory: the database was changed."""
        self._partitions.clear()
        self._retired = None
        try:
            self._root = RootRecord.decode(self.db.get(Table.META, MetaKind.ROOT.key) or b"")
        except FormatError:
            self._root = None

    # ---- partitions

    @property
    def root(self) -> RootRecord | None:
        """The root record; None: missing or damaged."""
        return self._root

    @property
    def epoch(self) -> int:
        """Of the store; where the root record is damaged, that of its youngest partition."""
        if self._root is not None:
            return self._root.epoch
        return max((epoch for epoch, _, _ in self.partition_keys()), default=1)

    def partition_keys(self) -> Iterator[tuple[int, int, bytes]]:
        """Epoch, partition id and value of every partition record whose key is in order."""
        for key, value in self.db.walk(Table.PARTITIONS):
            try:
                epoch, partition_id = parse_partition_key(key)
            except FormatError:
                continue
            yield epoch, partition_id, value

    def partition(self, partition_id: int) -> PartitionRecord | None:
        """The record of a partition in use; None: there is none that decodes."""
        if partition_id in self._partitions:
            self._partitions.move_to_end(partition_id)
            return self._partitions[partition_id]
        value = self.db.get(Table.PARTITIONS, partition_key(self.epoch, partition_id))
        try:
            record = PartitionRecord.decode(value) if value is not None else None
        except FormatError:
            record = None
        self._partitions[partition_id] = record
        if len(self._partitions) > PARTITIONS_KEPT:
            self._partitions.popitem(last=False)
        return record

    def live_partitions(self) -> Iterator[Place]:
        """Those in use, ascending."""
        for key, value in self.db.walk(Table.PARTITIONS, self.epoch.to_bytes(4, "big")):
            try:
                record = PartitionRecord.decode(value)
                yield Place(parse_partition_key(key)[1], record.incarnation)
            except FormatError:
                continue

    def life(self, place: Place) -> Life:
        """Whether the partition of a place is in use; partition 0 is the root, by epoch."""
        if place.partition_id == 0:
            if place.incarnation == self.epoch and place.object_id == 0:
                return Life.LIVE
            queued = self.db.get(Table.META, dead_epoch_key(place.incarnation)) is not None
            return Life.DEAD if queued else Life.UNKNOWN
        record = self.partition(place.partition_id)
        if record is not None and record.incarnation == place.incarnation:
            return Life.LIVE
        if self.db.get(Table.META, dead_partition_key(place)) is not None:
            return Life.DEAD
        retired = (place.partition_id, place.incarnation) in self.retired()
        return Life.DEAD if retired else Life.UNKNOWN

    def retired(self) -> set[tuple[int, int]]:
        """Partitions that belong to an epoch which waits to be freed."""
        if self._retired is None:
            self._retired = set()
            for epoch, partition_id, value in self.partition_keys():
                queued = self.db.get(Table.META, dead_epoch_key(epoch)) is not None
                if epoch == self.epoch or not queued:
                    continue
                try:
                    record = PartitionRecord.decode(value)
                except FormatError:
                    continue
                self._retired.add((partition_id, record.incarnation))
        return self._retired

    # ---- objects

    def object(self, place: Place) -> ObjectRecord | None:
        """An object's record.  Raises: FormatError: it does not decode."""
        value = self.db.get(Table.OBJECTS, place.encode())
        return None if value is None else ObjectRecord.decode(value)

    def intact(self, place: Place, kind: RecordType) -> ObjectRecord | None:
        """The record of a live object of this type; None: there is none."""
        try:
            record = self.object(place)
        except FormatError:
            return None
        return record if record is not None and record.type is kind else None

    def objects_of(self, partition: Place) -> Iterator[tuple[Place, bytes]]:
        """Keys and records of one incarnation of a partition."""
        for key, value in self.db.walk(Table.OBJECTS, partition.encode()[:12]):
            try:
                yield Place.of_object_key(key), value
            except FormatError:
                continue

    def greatest_id(self, partition: Place, table: Table = Table.OBJECTS) -> int:
        """Greatest id that counts, of a partition's objects that a table knows; 0: there are none."""
        after = replace(partition, object_id=IDS_COUNTED).encode()
        key = self.db.last_before(table, after)
        if key is None or key[:12] != partition.encode()[:12] or len(key) < Place.BYTES:
            return 0
        return Place.decode(key).object_id

    def are_queued(self, place: Place, generation: int) -> bool:
        """Whether files wait to be removed: of an object that is gone, or that was being made."""
        key = dead_files_key(place, generation)
        keys = (key, MetaKind.DRAFT_FILES.key + key[1:])
        return any(self.db.get(Table.META, each) is not None for each in keys)

    # ---- data files

    def head_root(self, head_on: int) -> Root:
        """The root that holds a head."""
        heads = self.roots.heads
        return self.roots.main if heads is None or head_on == 1 else heads

    def root_of(self, tail: bool, head_on: int) -> Root:
        """The root that holds a head or a tail."""
        return self.roots.main if tail else self.head_root(head_on)

    def path(self, name: FileName, head_on: int) -> Path:
        """Of a data file."""
        return self.root_of(name.tail, head_on).data / name.path

    def files(self, place: Place, record: ObjectRecord, generation: int | None = None) -> Files:
        """Existing files of an object.  Raises: OSError."""
        name = FileName(place, record.generation if generation is None else generation, False)
        tail = replace(name, tail=True)
        two = self.roots.heads is not None
        return Files(
            size_of(self.path(name, record.head_in)),
            size_of(self.path(tail, 0)) if two or record.head_bytes != ALL else None,
            size_of(self.path(name, 1 - record.head_in)) if two and record.head_in < 2 else None,
        )

    def generations(self, place: Place) -> set[int]:
        """All of which there are files under the object's name."""
        found = set()
        wanted = FileName(place, 0, False)
        folder = Path(wanted.path).parent
        for root in self.roots:
            try:
                paths = list((root.data / folder).iterdir())
            except OSError:
                continue
            for path in paths:
                try:
                    name = FileName.parse(f"{folder}/{path.name}")
                except FormatError:
                    continue
                if name.place == place:
                    found.add(name.generation)
        return found


def size_of(path: Path) -> int | None:
    """Of a regular file; None: there is none.  Raises: OSError: it cannot be inspected."""
    try:
        found = path.lstat()
    except (FileNotFoundError, NotADirectoryError):
        return None
    return found.st_size if stat.S_ISREG(found.st_mode) else None
