# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what is wrong with objects: their records, attributes and data files.

Records and attributes are walked side by side, both in key order; the files of each object are
checked with them.  Then the folders are walked, and each file's object is looked up.
"""

from __future__ import annotations

import os
import stat
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

from iosd_host.store_tools.check.charges import attribute_units
from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.pages import Owner, owner_of, owners
from iosd_host.store_tools.format.records import (
    ALL,
    ALL_OBJECTS,
    FIRST_ID,
    AttributeKey,
    FormatError,
    ObjectRecord,
    Place,
    RecordFlag,
    RecordType,
)
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.folders import Root
from iosd_host.store_tools.opening.store import Files, Life, Store, StoreProgress, size_of

__all__ = ["Lost", "Seen", "check_files", "check_objects", "file_problem"]

TELL_EVERY = 1024
INCARNATION_MAX = 0xF000_0000
"""Beyond it, damage."""
PREFIX = Place.BYTES


@dataclass
class Seen:
    """The greatest numbers met on the way."""

    boots: int = 0
    incarnation: int = 0
    lost: Place | None = None
    """The partition last found to have no record: told once, not with each of its objects."""

    def generation(self, generation: int) -> None:
        """Its upper half is the opening that gave it out."""
        self.boots = max(self.boots, generation >> 32)


@dataclass(frozen=True)
class Lost:
    """A file that no record names.  name: None where its name is none of the target's."""

    root: Root
    path: str
    name: FileName | None


@dataclass
class AttributeCount:
    """Of one object: how many there are, not which.  owners: who can have each of them."""

    prefix: bytes
    count: int = 0
    units: int = 0
    owners: Owner = Owner.ANY


class AttributeGroups:
    """The attributes of one object after another."""

    def __init__(self, store: Store) -> None:
        self._records = store.db.walk(Table.ATTRIBUTES)
        self._next: tuple[bytes, bytes] | None = None
        self.damaged: list[tuple[bytes, bytes]] = []
        self.now: AttributeCount | None = None
        self.advance()

    def advance(self) -> None:
        """To the next object; None at the end."""
        self.now = None
        while True:
            record = self._next or next(self._records, None)
            self._next = None
            if record is None:
                return
            if len(record[0]) != AttributeKey.BYTES:
                self.damaged.append(record)
                continue
            if self.now is None:
                self.now = AttributeCount(record[0][:PREFIX])
            elif not record[0].startswith(self.now.prefix):
                self._next = record
                return
            key = AttributeKey.decode(record[0])
            self.now.count += 1
            self.now.units += attribute_units(key.page, len(record[1]))
            self.now.owners &= owners(key.page, key.number)


def check_objects(store: Store, seen: Seen, progress: StoreProgress) -> Iterator[Problem]:
    """Object records, with their attributes and the state of their files."""
    total = store.db.count(Table.OBJECTS)
    groups = AttributeGroups(store)
    for number, (key, value) in enumerate(store.db.walk(Table.OBJECTS)):
        if number % TELL_EVERY == 0:
            progress("objects", number, total)
        yield from orphan_groups(store, groups, key)
        if len(key) != PREFIX:
            where, text = f"objects.db {key.hex()}", f"a key of {len(key)} bytes"
            yield Problem(ProblemKind.KEY_DAMAGED, where, text, Table.OBJECTS, key, value)
            continue
        attributes = AttributeCount(key)
        if groups.now is not None and groups.now.prefix == key:
            attributes = groups.now
            groups.advance()
        yield from check_object(store, Place.decode(key), value, attributes, seen)
    yield from orphan_groups(store, groups, None)


def orphan_groups(store: Store, groups: AttributeGroups, key: bytes | None) -> Iterator[Problem]:
    """Attributes before the object with this key; None: all that are left."""
    while (now := groups.now) is not None and (key is None or now.prefix < key):
        groups.advance()
        yield from orphan_group(store, now)
    while groups.damaged:
        bad, value = groups.damaged.pop()
        where, text = f"attributes.db {bad.hex()}", f"a key of {len(bad)} bytes"
        yield Problem(ProblemKind.KEY_DAMAGED, where, text, Table.ATTRIBUTES, bad, value)


def orphan_group(store: Store, attributes: AttributeCount) -> Iterator[Problem]:
    """AttributeCount without an object record: of a partition, of the root, or of nothing."""
    place = Place.decode(attributes.prefix)
    life = store.life(place)
    if life is Life.LIVE and place.object_id in (0, ALL_OBJECTS):
        yield from strange_attributes(store, attributes, owner_of(place, None))
        return
    if life is Life.DEAD:
        return
    if life is Life.UNKNOWN and place.partition_id and place.object_id == 0:
        yield from lost_partition(store, place)
        return
    detail = f"{attributes.count} attributes of an object that does not exist"
    yield Problem(
        ProblemKind.ORPHAN_ATTRIBUTES, str(place), detail, Table.ATTRIBUTES, subject=place
    )


def strange_attributes(store: Store, attributes: AttributeCount, owner: Owner) -> Iterator[Problem]:
    """Those that an object of its kind cannot have."""
    if attributes.owners & owner:
        return
    for key, _ in store.db.walk(Table.ATTRIBUTES, attributes.prefix):
        if len(key) != AttributeKey.BYTES:
            continue
        attribute = AttributeKey.decode(key)
        if not owners(attribute.page, attribute.number) & owner:
            where = f"{attribute.place} {attribute.page:#x}/{attribute.number:#x}"
            yield Problem(ProblemKind.ATTRIBUTE_STRANGE, where, "", Table.ATTRIBUTES, key)


def lost_partition(store: Store, place: Place) -> Iterator[Problem]:
    """Something of a partition that has no record in use."""
    if place.partition_id >= FIRST_ID and store.partition(place.partition_id) is None:
        detail = f"incarnation {place.incarnation} has no record"
        kind = ProblemKind.PARTITION_MISSING
        yield Problem(kind, str(place.partition), detail, subject=place)
    elif place.object_id:
        detail = f"of incarnation {place.incarnation}, which is not in use and not queued"
        key = place.encode()
        yield Problem(ProblemKind.OBJECT_STALE, str(place), detail, Table.OBJECTS, key, place)
    else:
        kind = ProblemKind.ORPHAN_ATTRIBUTES
        detail = f"of the partition's incarnation {place.incarnation}"
        yield Problem(kind, str(place), detail, Table.ATTRIBUTES, subject=place)


def check_object(
    store: Store, place: Place, value: bytes, attributes: AttributeCount, seen: Seen
) -> Iterator[Problem]:
    """One record."""
    life = store.life(place)
    if life is Life.DEAD:
        return
    if place.incarnation < INCARNATION_MAX:
        seen.incarnation = max(seen.incarnation, place.incarnation)
    key, where = place.encode(), str(place)
    if life is Life.UNKNOWN:
        for lost in lost_partition(store, place):
            if lost.kind is not ProblemKind.PARTITION_MISSING or seen.lost != place.partition:
                yield lost
        seen.lost = place.partition
        if store.life(place) is not Life.LIVE:  # unless that was repaired
            return
    try:
        record = ObjectRecord.decode(value)
    except FormatError as error:
        yield Problem(ProblemKind.OBJECT_DAMAGED, where, str(error), Table.OBJECTS, key, place)
        return
    seen.boots = max(seen.boots, record.version_opening)
    yield from strange_attributes(store, attributes, owner_of(place, record.type))
    if record.attribute_count != attributes.count:
        detail = f"the record says {record.attribute_count}, there are {attributes.count}"
        yield Problem(ProblemKind.ATTRIBUTE_COUNT, where, detail, Table.OBJECTS, key, place)
    elif record.attribute_units not in (None, attributes.units):
        detail = f"the record says {record.attribute_units} units, there are {attributes.units}"
        yield Problem(ProblemKind.ATTRIBUTE_COUNT, where, detail, Table.OBJECTS, key, place)
    if record.type is RecordType.COLLECTION:
        mark = key + bytes(8)
        if store.db.get(Table.MEMBERS, mark) is None:
            yield Problem(ProblemKind.MARK_MISSING, where, "", Table.MEMBERS, mark, place)
        return
    try:
        problem = file_problem(store, place, record, seen)
    except OSError as error:
        yield Problem(ProblemKind.UNREADABLE, where, str(error))
        return
    if problem is not None:
        yield problem


def file_problem(store: Store, place: Place, record: ObjectRecord, seen: Seen) -> Problem | None:
    """Contradiction between a user object's record and its files; at most one at a time.

    Raises: OSError: they cannot be inspected.
    """

    def problem(kind: ProblemKind, detail: str = "") -> Problem:
        return Problem(kind, str(place), detail, Table.OBJECTS, place.encode(), place)

    if record.head_on > 1:
        return problem(ProblemKind.RECORD_FIELD, f"head_on is {record.head_on}")
    if record.reserved_bytes < record.length:
        detail = f"{record.reserved_bytes} are reserved, the length is {record.length}"
        return problem(ProblemKind.RESERVED_WRONG, detail)
    if not record.flags & RecordFlag.HAS_FILES:
        detail = f"its length is {record.length}, and it is said to have no files"
        return problem(ProblemKind.FILES_MISSING, detail) if record.length else None
    files = store.files(place, record)
    if files.head is not None:
        seen.generation(record.generation)
    found = shape_problem(record, files) or length_problem(record, files)
    if found is not None and found[0] is ProblemKind.FILES_MISSING:
        others = {each for each in store.generations(place) if not store.are_queued(place, each)}
        others -= {record.generation, record.spare_generation}
        if len(others) == 1:
            found = ProblemKind.GENERATION_WRONG, f"there are files of {others.pop():#x}"
    if found is not None:
        return problem(*found)
    if not record.is_settled or record.is_stale:
        return problem(ProblemKind.OPEN_RESERVATION)
    return None


def shape_problem(record: ObjectRecord, files: Files) -> tuple[ProblemKind, str] | None:
    """Head and tail do not fit one another."""
    if files.head is None and files.elsewhere is not None:
        return ProblemKind.HEAD_ELSEWHERE, ""
    if files.tail is not None and (files.head or 0) < record.head_bytes:
        return (
            ProblemKind.HEAD_LOST,
            f"of its {record.head_bytes} bytes {files.head or 0} are there",
        )
    if files.head is not None and files.head > record.head_bytes:
        return ProblemKind.HEAD_LONG, f"{files.head} bytes instead of at most {record.head_bytes}"
    return None


def length_problem(record: ObjectRecord, files: Files) -> tuple[ProblemKind, str] | None:
    """The files do not give the length; an object being written or cut has none to give."""
    there = files.length(record.head_bytes)
    detail = f"{there} bytes are there, the length is {record.length}"
    if record.flags & RecordFlag.LENGTH_RULES:
        return None
    if not record.is_settled:
        detail = f"{there} bytes are there, {record.reserved_bytes} are reserved"
        return (ProblemKind.FILE_LONG, detail) if there > record.reserved_bytes else None
    if there > record.length:
        return ProblemKind.FILE_LONG, detail
    if there < record.length:
        return (ProblemKind.FILES_MISSING if files.head is None else ProblemKind.FILE_SHORT), detail
    return None


# ---- files that no record names


def check_files(store: Store, seen: Seen, progress: StoreProgress) -> Iterator[Problem]:
    """Every file below data/ of every root."""
    total = store.db.count(Table.OBJECTS)
    number = 0
    for root in store.roots:
        for path, odd in data_files(root.data, root.path.stat().st_uid):
            if number % TELL_EVERY == 0:
                progress("files", number, total)
            number += 1
            try:
                yield from check_file(store, root, path, odd)
            except OSError as error:
                yield Problem(ProblemKind.UNREADABLE, f"{root.data}/{path}", str(error))


def why_closed(entry: os.DirEntry[str], owner: int) -> str:
    """Why the target, which runs as that user, cannot open a file; "": it can."""
    if owner == 0:
        return ""
    try:
        info = entry.stat(follow_symlinks=False)
    except OSError as error:
        return f"cannot be read: {error.strerror}"
    if info.st_uid != owner:
        return f"cannot be opened: it belongs to user {info.st_uid}, the store to {owner}: chown it"
    both = stat.S_IRUSR | stat.S_IWUSR
    if info.st_mode & both != both:
        return f"cannot be opened: its mode is {stat.S_IMODE(info.st_mode):#o}: chmod it"
    return ""


def data_files(data: Path, owner: int) -> Iterator[tuple[str, str]]:
    """Paths below a folder, and what is wrong with them, if anything."""
    pending = [""]
    while pending:
        folder = pending.pop()
        try:
            entries = os.scandir(data / folder)
        except OSError as error:
            yield folder, f"cannot be read: {error.strerror}"
            continue
        with entries:
            for entry in entries:
                path = f"{folder}/{entry.name}" if folder else entry.name
                if entry.is_dir(follow_symlinks=False):
                    pending.append(path)
                elif entry.is_file(follow_symlinks=False):
                    yield path, why_closed(entry, owner)
                else:
                    yield path, "neither a file nor a folder"


def check_file(store: Store, root: Root, path: str, odd: str) -> Iterator[Problem]:
    """One file."""
    where = f"{root.data}/{path}"
    if odd:
        kind = ProblemKind.UNREADABLE if odd.startswith("cannot") else ProblemKind.ODD_ENTRY
        yield Problem(kind, where, odd)
        return
    if is_sums(path):
        yield from check_sums_file(store, root, path)
        return
    try:
        name = FileName.parse(path)
    except FormatError as error:
        yield Problem(ProblemKind.STRAY_FILE, where, str(error), subject=Lost(root, path, None))
        return
    if store.life(name.place) is Life.DEAD:
        return
    if store.are_queued(name.place, name.generation):
        return
    lost = Lost(root, path, name)
    try:
        record = store.object(name.place)
    except FormatError:
        record = None  # the record is a problem of its own, and goes first
    if record is None or record.type is not RecordType.USER_OBJECT:
        yield Problem(ProblemKind.ORPHAN_FILE, where, "no such object", subject=lost)
    elif name.generation == record.spare_generation and name.generation:
        return
    elif name.generation != record.generation:
        detail = f"the object's generation is {record.generation:#x}"
        yield Problem(ProblemKind.ORPHAN_FILE, where, detail, subject=lost)
    elif not record.flags & RecordFlag.HAS_FILES:
        where = str(name.place)
        key = name.place.encode()
        yield Problem(ProblemKind.FILES_NOT_MARKED, where, path, Table.OBJECTS, key, name.place)
    else:
        yield from misplaced(store, lost, record)


def is_sums(path: str) -> bool:
    """Whether it is the name of a file of checksums."""
    try:
        return FileName.parse(path[:-1]).sums_path == path
    except FormatError:
        return False


def check_sums_file(store: Store, root: Root, path: str) -> Iterator[Problem]:
    """Checksums belong to the data file beside them."""
    name = FileName.parse(path[:-1])
    if store.life(name.place) is Life.DEAD or store.are_queued(name.place, name.generation):
        return
    if size_of(root.data / name.path) is None:
        where = root.data / path
        yield Problem(ProblemKind.ORPHAN_SUMS, str(where), subject=where)


def misplaced(store: Store, lost: Lost, record: ObjectRecord) -> Iterator[Problem]:
    """A file of the right name that the target would not look at."""
    name = lost.name
    assert name is not None
    where = f"{lost.root.data}/{lost.path}"
    if store.root_of(name.tail, record.head_in) is not lost.root:
        yield Problem(ProblemKind.ORPHAN_FILE, where, "it is in the wrong root", subject=lost)
    elif name.tail and record.head_bytes == ALL:
        yield Problem(ProblemKind.ORPHAN_FILE, where, "the object has no tail", subject=lost)
