# SPDX-License-Identifier: GPL-2.0-or-later
"""The lost+found partition: what repair found and could not place, as ordinary user objects.

An object there is named "lost <pid>.<oid>.<generation>" after what it was, keeps the attributes
that clients can read on a user object, and says in page 2000_0010h where it comes from.  What has
no place on a user object is kept byte for byte in pages 2000_0011h (which record: table, key) and
2000_0012h (its value), under the same numbers.

A file is moved in three steps: a transaction makes the object, with the file's old path as an
attribute; the file is renamed; a transaction removes that attribute.  A later run that finds the
attribute renames the file, if necessary, and removes the attribute.
"""

from __future__ import annotations

import time
from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import count
from pathlib import Path

from iosd_host.common.whole_file import sync_folder
from iosd_host.store_tools.check.objects import Lost
from iosd_host.store_tools.check.problems import ProblemKind
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.pages import is_application_page
from iosd_host.store_tools.format.records import (
    ALL,
    FIRST_ID,
    IDS_COUNTED,
    LOST_PARTITION,
    AttributeKey,
    FormatError,
    MetaKind,
    ObjectRecord,
    PartitionRecord,
    Place,
    RecordFlag,
    RecordType,
    RootRecord,
    id_mark_key,
    partition_key,
)
from iosd_host.store_tools.opening.bdb import StoreTransaction, Table
from iosd_host.store_tools.opening.folders import Root
from iosd_host.store_tools.opening.store import Store, size_of
from iosd_host.store_tools.repair.methods import close

__all__ = ["LostAndFound", "now_ms"]

PAGE_ORIGIN, PAGE_KEYS, PAGE_VALUES = 0x2000_0010, 0x2000_0011, 0x2000_0012
PAGE_NAMES = {
    PAGE_ORIGIN: b"iosd lost and found",
    PAGE_KEYS: b"iosd lost records: keys",
    PAGE_VALUES: b"iosd lost records: values",
}
# numbers of PAGE_ORIGIN
LABEL, PARTITION, INCARNATION, OBJECT, GENERATION, PATH, NAME, FOUND, WHY, FIRST_BYTE = range(1, 11)
MOVE_HEAD, MOVE_TAIL = 0x20, 0x21
INFORMATION_PAGE, USERNAME = 1, 9
ATTRIBUTE_MAX = 0xFFFE

RawRecord = tuple[Table, bytes, bytes]
"""Table, key, value."""


def now_ms() -> int:
    """Milliseconds since 1970."""
    return time.time_ns() // 1_000_000


@dataclass
class FoundObject:
    """An object in the partition.  raw: records kept in it."""

    place: Place
    has_files: bool
    raw: int


class LostAndFound:
    """Puts things there; one for the run of a repair."""

    def __init__(self, store: Store) -> None:
        self.store = store
        self._partition: Place | None = None
        self._found: dict[str, FoundObject] = {}
        self._names: set[bytes] = set()
        self._next_id = FIRST_ID
        self._boots: int | None = None
        self._counter = 0
        self._load()

    # ---- the partition

    def _load(self) -> None:
        """Objects of earlier runs."""
        record = self.store.partition(LOST_PARTITION)
        if record is None:
            return
        self._partition = Place(LOST_PARTITION, record.incarnation)
        mark = self.store.db.get(Table.META, id_mark_key(self._partition)) or b""
        known = [
            self.store.greatest_id(self._partition, table) + 1
            for table in (Table.OBJECTS, Table.ATTRIBUTES)
        ]
        marked = int.from_bytes(mark, "big") if len(mark) == 8 else 0
        if marked > IDS_COUNTED:  # of an earlier version, which let any id move it
            marked = 0
        self._next_id = max(FIRST_ID, marked, *known)
        for place, value in self.store.objects_of(self._partition):
            label = self.attribute(place, PAGE_ORIGIN, LABEL)
            try:
                has_files = bool(ObjectRecord.decode(value).flags & RecordFlag.HAS_FILES)
            except FormatError:
                continue
            self._names.add(self.attribute(place, INFORMATION_PAGE, USERNAME) or b"")
            if label is not None:
                prefix = AttributeKey(place, PAGE_KEYS, 0).encode()[:-4]
                raw = sum(1 for _ in self.store.db.walk(Table.ATTRIBUTES, prefix))
                self._found[label.decode("utf-8", "replace")] = FoundObject(place, has_files, raw)

    def partition(self, transaction: StoreTransaction) -> Place:
        """Made when something is first put there."""
        if self._partition is not None and self.store.partition(LOST_PARTITION) is not None:
            return self._partition
        root = self.store.root or RootRecord(self.store.epoch, 1, FIRST_ID)
        record = PartitionRecord(root.next_incarnation, 0, (now_ms(),) * 5)
        root = replace(root, next_incarnation=root.next_incarnation + 1)
        transaction.put(Table.META, MetaKind.ROOT.key, root.encode())
        key = partition_key(self.store.epoch, LOST_PARTITION)
        transaction.put(Table.PARTITIONS, key, record.encode())
        self.store.forget()
        self._partition = Place(LOST_PARTITION, record.incarnation)
        close(self.store, transaction, self._partition)
        self._found.clear()
        self._names.clear()
        self._next_id = FIRST_ID
        return self._partition

    def generation(self, transaction: StoreTransaction) -> int:
        """A number for files that was never used; this run counts as an opening."""
        if self._boots is None:
            value = self.store.db.get(Table.META, MetaKind.BOOT.key) or b""
            self._boots = (int.from_bytes(value, "big") if len(value) == 4 else 0) + 1
            raised = self._boots.to_bytes(4, "big")
            transaction.put(Table.META, MetaKind.BOOT.key, raised)
            # Only by a release without value indexes would this opening not be counted there.
            if self.store.db.get(Table.META, MetaKind.INDEX_BOOT.key) == value:
                transaction.put(Table.META, MetaKind.INDEX_BOOT.key, raised)
        self._counter += 1
        return self._boots << 32 | self._counter

    def attribute(self, place: Place, page: int, number: int) -> bytes | None:
        """Of any object."""
        return self.store.db.get(Table.ATTRIBUTES, AttributeKey(place, page, number).encode())

    # ---- what is put there

    def keep(
        self,
        label: str,
        why: ProblemKind,
        *,
        origin: Place | None = None,
        records: Iterable[RawRecord] = (),
        adopt: Place | None = None,
        files: Iterable[Lost] = (),
    ) -> str:
        """Put things into the object of this label, and away from where they are.

        Args:
            label: what they were; things of one label come together.
            origin: ids it had.
            records: to be kept byte for byte.
            adopt: an object whose attributes move here.
            files: head, tail or both of one generation.
        Returns: where they are now, for people.
        """
        files = list(files)
        found = self._found.get(label)
        with self.store.db.transaction() as transaction:
            if found is None or (files and found.has_files):
                found = self._make(transaction, label, why, origin, files)
            attributes = [(table, key, value) for table, key, value in records]
            if adopt is not None:
                attributes += self._adopt(transaction, found, adopt)
            for table, key, value in attributes:
                self._keep_record(transaction, found, table, key, value)
                transaction.remove(table, key)
            if files:
                self._begin_move(transaction, found, files)
            self._count(transaction, found.place)
        self._found[label] = found
        if files:
            self._finish_move(found.place)
        return f"{found.place}"

    def _make(
        self,
        transaction: StoreTransaction,
        label: str,
        why: ProblemKind,
        origin: Place | None,
        files: list[Lost],
    ) -> FoundObject:
        partition = self.partition(transaction)
        place = partition.sibling(self._next_id)
        self._next_id += 1
        record = ObjectRecord(
            RecordType.USER_OBJECT,
            times=(now_ms(),) * 5,
            head_bytes=self.store.roots.head_bytes,
            generation=self.generation(transaction),
        )
        transaction.put(Table.OBJECTS, place.encode(), record.encode())
        values = {LABEL: label.encode(), WHY: why.slug.encode(), FOUND: now_ms().to_bytes(6, "big")}
        name = label
        if origin is not None:
            values[PARTITION] = origin.partition_id.to_bytes(8, "big")
            values[INCARNATION] = origin.incarnation.to_bytes(4, "big")
            values[OBJECT] = origin.object_id.to_bytes(8, "big")
            name = f"{origin.partition_id:x}.{origin.object_id:x}.0"
            for each in files:
                if each.name is not None:
                    values[GENERATION] = each.name.generation.to_bytes(8, "big")
                    name = name[:-1] + f"{each.name.generation:x}"
        for number, value in values.items():
            self._set(transaction, place, PAGE_ORIGIN, number, value)
        self._set(transaction, place, INFORMATION_PAGE, USERNAME, self._name(name))
        return FoundObject(place, bool(files), 0)

    def _name(self, wanted: str) -> bytes:
        """A name that nothing has yet: partitions of one id can have lost objects of one id."""
        name, others = f"lost {wanted}".encode(), count(2)
        while name in self._names:
            name = f"lost {wanted}.{next(others)}".encode()
        self._names.add(name)
        return name

    def _set(
        self, transaction: StoreTransaction, place: Place, page: int, number: int, value: bytes
    ) -> None:
        """An attribute; the page's name with the first of it."""
        key = AttributeKey(place, page, number)
        transaction.put(Table.ATTRIBUTES, key.encode(), value)
        if page in PAGE_NAMES:
            name = b"IOSD    " + PAGE_NAMES[page].ljust(32, b"\0")
            transaction.put(Table.ATTRIBUTES, replace(key, number=0).encode(), name)

    def _keep_record(
        self,
        transaction: StoreTransaction,
        found: FoundObject,
        table: Table,
        key: bytes,
        value: bytes,
    ) -> None:
        """A long value in pieces, each with its table, number and key."""
        for piece in range(max(1, -(-len(value) // ATTRIBUTE_MAX))):
            found.raw += 1
            name = table.value.encode() + b"\0" + piece.to_bytes(4, "big") + key
            part = value[piece * ATTRIBUTE_MAX : (piece + 1) * ATTRIBUTE_MAX]
            number = max(found.raw, 1)
            self._set(transaction, found.place, PAGE_KEYS, number, name[:ATTRIBUTE_MAX])
            if part:
                self._set(transaction, found.place, PAGE_VALUES, number, part)

    def _adopt(
        self, transaction: StoreTransaction, found: FoundObject, place: Place
    ) -> list[RawRecord]:
        """Attributes that a user object may have move as they are; the others are returned."""
        others = []
        for key, value in self.store.db.walk(Table.ATTRIBUTES, place.encode()):
            try:
                parsed = AttributeKey.decode(key)
            except FormatError:
                continue
            page, number = parsed.page, parsed.number
            if (page, number) == (INFORMATION_PAGE, USERNAME):
                page, number = PAGE_ORIGIN, NAME
            own = is_application_page(page, number)
            taken = self.attribute(found.place, page, number) is not None
            if not own or taken or (page in PAGE_NAMES and number != NAME) or len(value) == 0:
                others.append((Table.ATTRIBUTES, key, value))
                continue
            self._set(transaction, found.place, page, number, value)
            transaction.remove(Table.ATTRIBUTES, key)
        return others

    def _count(self, transaction: StoreTransaction, place: Place) -> None:
        """Bring the record's number of attributes up to date."""
        record = self.store.object(place)
        assert record is not None
        count = sum(1 for _ in self.store.db.walk(Table.ATTRIBUTES, place.encode()))
        record = replace(record, attribute_count=count, attribute_units=None)
        transaction.put(Table.OBJECTS, place.encode(), record.encode())

    # ---- files

    def _begin_move(
        self, transaction: StoreTransaction, found: FoundObject, files: list[Lost]
    ) -> None:
        """The record as it will be, and what is to be renamed."""
        record = self.store.object(found.place)
        assert record is not None
        head = next((each for each in files if each.name is None or not each.name.tail), None)
        tail = next((each for each in files if each.name is not None and each.name.tail), None)
        if head is None:  # a tail alone becomes a head: nothing is known of what was before it
            head, tail = tail, None
            first = self.store.roots.head_bytes
            self._set(
                transaction, found.place, PAGE_ORIGIN, FIRST_BYTE, (first & ALL).to_bytes(8, "big")
            )
        assert head is not None
        size = size_of(head.root.data / head.path) or 0
        tail_size = None if tail is None else size_of(tail.root.data / tail.path)
        in_tail_store = self.store.roots.heads is not None and head.root is self.store.roots.main
        head_bytes = self.store.roots.head_bytes if not in_tail_store else ALL
        if tail_size is not None:
            head_bytes = size
        elif size > head_bytes:
            head_bytes = ALL
        length = size + (tail_size or 0)
        record = replace(
            record,
            head_on=1 if in_tail_store else 0,
            head_bytes=head_bytes,
            length=length,
            reserved_bytes=length,
            flags=RecordFlag.HAS_FILES,
        )
        transaction.put(Table.OBJECTS, found.place.encode(), record.encode())
        found.has_files = True
        self._set(transaction, found.place, PAGE_ORIGIN, PATH, head.path.encode()[:ATTRIBUTE_MAX])
        for number, each in ((MOVE_HEAD, head), (MOVE_TAIL, tail)):
            if each is not None:
                text = f"{each.root.role.name}:{each.path}".encode("utf-8", "surrogateescape")
                self._set(transaction, found.place, PAGE_ORIGIN, number, text)

    def _finish_move(self, place: Place) -> bool:
        """Rename what is to be renamed.  Returns whether there was something."""
        record = self.store.object(place)
        moves = [
            (number, self.attribute(place, PAGE_ORIGIN, number))
            for number in (MOVE_HEAD, MOVE_TAIL)
        ]
        if record is None or not any(value for _, value in moves):
            return False
        for number, value in moves:
            if value is None:
                continue
            role, _, path = value.decode("utf-8", "surrogateescape").partition(":")
            root = self._root(role)
            name = FileName(place, record.generation, number == MOVE_TAIL)
            if root is not None:
                rename(root.data / path, root.data / name.path)
        with self.store.db.transaction() as transaction:
            for number, _ in moves:
                key = AttributeKey(place, PAGE_ORIGIN, number)
                transaction.remove(Table.ATTRIBUTES, key.encode())
            self._count(transaction, place)
        return True

    def _root(self, role: str) -> Root | None:
        return next((each for each in self.store.roots if each.role.name == role), None)

    def finish_moves(self) -> int:
        """Work of an interrupted run.  Returns how many objects had something left."""
        if self._partition is None:
            return 0
        places = [place for place, _ in self.store.objects_of(self._partition)]
        return sum(self._finish_move(place) for place in places if self._decodes(place))

    def _decodes(self, place: Place) -> bool:
        return self.store.intact(place, RecordType.USER_OBJECT) is not None


def rename(source: Path, target: Path) -> None:
    """Durably; a source that is gone was renamed before.  Never onto something."""
    if not source.exists() or target.exists():
        return
    for folder in (target.parent.parent, target.parent):
        if not folder.exists():
            folder.mkdir(mode=0o700)
            sync_folder(folder.parent)
    source.rename(target)
    sync_folder(target.parent)
    sync_folder(source.parent)
