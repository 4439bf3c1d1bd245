# SPDX-License-Identifier: GPL-2.0-or-later
"""Repairs objects: brings records and files together again, or both to lost+found.

Contents of files are never shortened or deleted. A record is adapted to its files, and files
without a record become objects.
"""

from __future__ import annotations

import os
from dataclasses import replace
from pathlib import Path

from iosd_host.store_tools.check.charges import attribute_units
from iosd_host.store_tools.check.objects import Lost
from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.records import (
    ALL,
    FIRST_ID,
    IDS_COUNTED,
    AttributeKey,
    FormatError,
    MemberKey,
    ObjectRecord,
    Place,
    RecordFlag,
    RecordType,
    id_mark_key,
)
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.folders import Root
from iosd_host.store_tools.opening.store import Life, Store, size_of
from iosd_host.store_tools.repair.context import Repair, RepairContext
from iosd_host.store_tools.repair.relations import collection_record

__all__ = ["OBJECT_REPAIRS"]


LARGEST_HEAD = 1 << 40
"""A head size beyond this is damage."""


def label_of(place: Place, generation: int = 0) -> str:
    """Unit of recovery in lost+found: one generation of one object."""
    text = f"{place.partition_id:x}.{place.incarnation:x}.{place.object_id:x}"
    return f"{text}.{generation:x}" if generation else text


def put(context: RepairContext, place: Place, record: ObjectRecord) -> None:
    """Write a record."""
    context.put(Table.OBJECTS, place.encode(), record.encode())


def keep_id(context: RepairContext, place: Place) -> None:
    """Keep the id in the mark of the partition before its record goes, so that no object gets it again."""
    store = context.store
    if store.life(place) is not Life.LIVE or not FIRST_ID <= place.object_id < IDS_COUNTED:
        return
    value = store.db.get(Table.META, id_mark_key(place)) or b""
    mark = int.from_bytes(value, "big") if len(value) == 8 else 0
    if place.object_id >= mark and place.object_id >= store.greatest_id(place):
        context.put(Table.META, id_mark_key(place), (place.object_id + 1).to_bytes(8, "big"))


# ---- records


def damaged(context: RepairContext, problem: Problem) -> str | None:
    """Move the record with its attributes and files; make a collection that has its mark again."""
    place: Place = problem.subject
    store = context.store
    value = store.db.get(Table.OBJECTS, place.encode())
    if value is None or decodes(value):
        return None
    mark = MemberKey(place, 0).encode()
    if store.db.get(Table.MEMBERS, mark) is not None and not store.generations(place):
        count = sum(1 for _ in store.db.walk(Table.ATTRIBUTES, place.encode()))
        put(context, place, collection_record(place, count))
        record = (Table.OBJECTS, b"damaged " + place.encode(), value)
        where = context.lost.keep(label_of(place), problem.kind, origin=place, records=[record])
        return f"the collection is there again, its old record in {where}"
    keep_id(context, place)
    return move(context, problem, place, value, newest(store, place))


def stale(context: RepairContext, problem: Problem) -> str | None:
    """An object of no partition: everything of it moves."""
    place: Place = problem.subject
    store = context.store
    value = store.db.get(Table.OBJECTS, place.encode())
    if value is None or store.life(place) is not Life.UNKNOWN:
        return None
    try:
        generation = ObjectRecord.decode(value).generation
    except FormatError:
        generation = newest(store, place)
    return move(context, problem, place, value, generation)


def move(
    context: RepairContext, problem: Problem, place: Place, value: bytes, generation: int
) -> str:
    """Record, attributes and one generation of files to lost+found."""
    files = files_of(context.store, place, generation)
    where = context.lost.keep(
        label_of(place),
        problem.kind,
        origin=place,
        records=[(Table.OBJECTS, place.encode(), value)],
        adopt=place,
        files=files,
    )
    return f"moved to {where}"


def decodes(value: bytes) -> bool:
    """Whether the record is in order."""
    try:
        ObjectRecord.decode(value)
    except FormatError:
        return False
    return True


def unqueued(store: Store, place: Place) -> set[int]:
    """Generations of which there are files that do not wait to be removed."""
    return {each for each in store.generations(place) if not store.are_queued(place, each)}


def newest(store: Store, place: Place) -> int:
    """Generation of the files that were made last; 0: there are none."""
    return max(unqueued(store, place), default=0)


def files_of(store: Store, place: Place, generation: int) -> list[Lost]:
    """Head and tail of a generation; of two heads the one in the SSD directory."""
    found = []
    roots = (
        [store.roots.main] if store.roots.heads is None else [store.roots.heads, store.roots.main]
    )
    for tail in (False, True):
        name = FileName(place, generation, tail)
        for root in roots:
            if size_of(root.data / name.path) is not None and (
                not tail or root is store.roots.main
            ):
                found.append(Lost(root, name.path, name))
                break
    return found


def attribute_count(context: RepairContext, problem: Problem) -> str | None:
    """Counted again."""
    place: Place = problem.subject
    store = context.store
    record = current(store, place)
    if record is None:
        return None
    found = [
        attribute_units(AttributeKey.decode(key).page, len(value))
        for key, value in store.db.walk(Table.ATTRIBUTES, place.encode())
        if len(key) == AttributeKey.BYTES
    ]
    count, units = len(found), sum(found) if found else None
    if (count, units) == (record.attribute_count, record.attribute_units):
        return None
    put(context, place, replace(record, attribute_count=count, attribute_units=units))
    return f"set to {count}"


def current(store: Store, place: Place) -> ObjectRecord | None:
    """The record as it is now, if it decodes."""
    try:
        return store.object(place)
    except FormatError:
        return None


def orphan_attributes(context: RepairContext, problem: Problem) -> str | None:
    """Move the attributes, with files of the same object that have no record."""
    place: Place = problem.subject
    store = context.store
    if store.db.get(Table.OBJECTS, place.encode()) is not None:
        return None
    if next(store.db.walk(Table.ATTRIBUTES, place.encode()), None) is None:
        return None
    files = files_of(store, place, newest(store, place)) if place.object_id else []
    where = context.lost.keep(label_of(place), problem.kind, origin=place, adopt=place, files=files)
    return f"moved to {where}"


# ---- records and their files


def refit(context: RepairContext, problem: Problem) -> str | None:
    """The record follows its files: where they are, how long, how much is in the head."""
    place: Place = problem.subject
    store = context.store
    record = store.intact(place, RecordType.USER_OBJECT)
    if record is None:
        return None
    changed = find_files(store, place, record)
    changed = fit_head(store, place, changed)
    missing = 0
    if problem.kind is ProblemKind.HEAD_LOST:
        before = store.files(place, changed).head or 0
        changed = fill_head(store, place, changed)
        missing = (store.files(place, changed).head or 0) - before
    if not changed.flags & RecordFlag.LENGTH_RULES:
        changed = fit_length(store, place, changed)
    elif changed.reserved_bytes < changed.length:
        changed = replace(changed, reserved_bytes=changed.length)
    if changed != record:
        put(context, place, changed)
    done = [f"{missing} bytes of the head read as zeros"] if missing else []
    done += difference(record, changed)
    return ", ".join(done) or None


def difference(old: ObjectRecord, new: ObjectRecord) -> list[str]:
    """Changed fields, with old and new values."""
    names = ("flags", "head_on", "generation", "head_bytes", "length", "reserved_bytes")
    return [
        f"{name} {getattr(old, name):#x} -> {getattr(new, name):#x}"
        for name in names
        if getattr(old, name) != getattr(new, name)
    ]


def find_files(store: Store, place: Place, record: ObjectRecord) -> ObjectRecord:
    """Find files in the other root, or of the only other generation that has files."""
    if record.head_on > 1:
        record = replace(record, head_on=0)
    files = store.files(place, record)
    if files.head is None and files.elsewhere is not None:
        record = replace(record, head_on=1 - record.head_on)
        files = store.files(place, record)
    if files.head is not None or files.tail is not None:
        return replace(record, flags=record.flags | RecordFlag.HAS_FILES)
    others = unqueued(store, place) - {record.generation, record.spare_generation}
    if len(others) != 1:
        return record
    generation = others.pop()
    record = replace(record, generation=generation, flags=record.flags | RecordFlag.HAS_FILES)
    if store.files(place, record).head is None:
        record = replace(record, head_on=1 - record.head_on)
    return record if store.files(place, record).head is not None else replace(record, head_on=0)


def fit_head(store: Store, place: Place, record: ObjectRecord) -> ObjectRecord:
    """Set the head size to the size of the head file, if there is a tail or the length requires it."""
    files = store.files(place, record)
    if files.head is None or files.tail is None:
        longer = files.head is not None and files.head > record.head_bytes
        return replace(record, head_bytes=ALL) if longer else record
    fits = record.is_settled and files.head + files.tail == record.length
    usual = files.head == store.roots.head_bytes
    if files.head > record.head_bytes or fits or usual or record.head_bytes == ALL:
        return replace(record, head_bytes=files.head)
    return record


def fill_head(store: Store, place: Place, record: ObjectRecord) -> ObjectRecord:
    """Zeros for what is lost, so that the tail is where it was."""
    files = store.files(place, record)
    if files.tail is None or (files.head or 0) >= record.head_bytes:
        return record
    size = record.head_bytes
    if size > LARGEST_HEAD:
        record, size = replace(record, head_bytes=store.roots.head_bytes), store.roots.head_bytes
        if size == ALL:
            return record
    path = store.path(FileName(place, record.generation, False), record.head_on)
    make_folders(path)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW, 0o600)
    try:
        os.ftruncate(descriptor, size)
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
    return replace(record, flags=record.flags | RecordFlag.HAS_FILES)


def make_folders(path: Path) -> None:
    """Those of a data file."""
    for folder in (path.parent.parent, path.parent):
        folder.mkdir(mode=0o700, exist_ok=True)


def fit_length(store: Store, place: Place, record: ObjectRecord) -> ObjectRecord:
    """Length and reservation are what is there."""
    length = 0
    if record.flags & RecordFlag.HAS_FILES:
        length = store.files(place, record).length(record.head_bytes)
    if record.is_settled or length > record.reserved_bytes or record.reserved_bytes < record.length:
        return replace(record, length=length, reserved_bytes=length)
    return record


def files_missing(context: RepairContext, problem: Problem) -> str | None:
    """Set the length to 0, unless files of another generation are there, and clear LENGTH_RULES."""
    place: Place = problem.subject
    record = context.store.intact(place, RecordType.USER_OBJECT)
    if record is None:
        return None
    if not record.flags & RecordFlag.HAS_FILES:
        changed = replace(record, flags=record.flags & ~RecordFlag.LENGTH_RULES)
        changed = find_files(context.store, place, changed)
        changed = fit_length(context.store, place, replace(changed, reserved_bytes=changed.length))
        put(context, place, changed)
        return ", ".join(difference(record, changed)) or None
    return refit(context, problem)


# ---- files without a record


def orphan_file(context: RepairContext, problem: Problem) -> str | None:
    """Make it an object, with the other file of its generation and the attributes that are left."""
    lost: Lost = problem.subject
    store = context.store
    if size_of(lost.root.data / lost.path) is None:
        return None
    if lost.name is None:
        label = f"{lost.root.role.name.lower()} {lost.path}"
        return f"moved to {context.lost.keep(label, problem.kind, files=[lost])}"
    place, generation = lost.name.place, lost.name.generation
    record = current(store, place)
    files = [lost]
    if record is None or record.generation != generation:
        files += [each for each in files_of(store, place, generation) if each.name != lost.name]
    has_record = store.db.get(Table.OBJECTS, place.encode()) is not None
    label = label_of(place, generation) if has_record else label_of(place)
    where = context.lost.keep(label, problem.kind, origin=place, files=in_order(files, lost.root))
    return f"moved to {where}"


def sums(context: RepairContext, problem: Problem) -> str | None:
    """The target makes what it needs again."""
    path: Path = problem.subject
    path.unlink(missing_ok=True)
    return "removed"


def in_order(files: list[Lost], root: Root) -> list[Lost]:
    """The head before the tail; root: of the file that was met."""
    return sorted(
        files, key=lambda each: (each.name is not None and each.name.tail, each.root is root)
    )


OBJECT_REPAIRS: dict[ProblemKind, Repair] = {
    ProblemKind.OBJECT_DAMAGED: damaged,
    ProblemKind.OBJECT_STALE: stale,
    ProblemKind.ATTRIBUTE_COUNT: attribute_count,
    ProblemKind.ORPHAN_ATTRIBUTES: orphan_attributes,
    ProblemKind.RECORD_FIELD: refit,
    ProblemKind.FILES_MISSING: files_missing,
    ProblemKind.GENERATION_WRONG: refit,
    ProblemKind.FILE_SHORT: refit,
    ProblemKind.FILE_LONG: refit,
    ProblemKind.FILES_NOT_MARKED: refit,
    ProblemKind.HEAD_LOST: refit,
    ProblemKind.HEAD_LONG: refit,
    ProblemKind.HEAD_ELSEWHERE: refit,
    ProblemKind.RESERVED_WRONG: refit,
    ProblemKind.ORPHAN_FILE: orphan_file,
    ProblemKind.STRAY_FILE: orphan_file,
    ProblemKind.ORPHAN_SUMS: sums,
    ProblemKind.SUMS_DAMAGED: sums,
}
