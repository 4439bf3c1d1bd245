# SPDX-License-Identifier: GPL-2.0-or-later
"""Repairs memberships, names and value indexes: records that say the same as others do."""

from __future__ import annotations

from dataclasses import replace

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.indexes import IndexStage, Stage
from iosd_host.store_tools.format.records import (
    WELL_KNOWN,
    CollectionType,
    MemberKey,
    ObjectRecord,
    Place,
    RecordFlag,
    RecordType,
)
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Store
from iosd_host.store_tools.repair.context import RepairContext, remove_record
from iosd_host.store_tools.repair.lost_and_found import now_ms

__all__ = [
    "collection_record",
    "index_missing",
    "index_stage",
    "mark_missing",
    "mark_stale",
    "membership_number",
    "name_cycle",
    "name_lost",
    "name_mark",
    "name_one_way",
    "other_half",
    "stale_member",
]


def collection_record(place: Place, attributes: int) -> ObjectRecord:
    """Of a collection of which only mark or members are left."""
    kind = CollectionType.TRACKING if place.object_id in WELL_KNOWN else CollectionType.LINKED
    return ObjectRecord(
        RecordType.COLLECTION,
        collection_type=kind,
        times=(now_ms(),) * 5,
        attribute_count=attributes,
    )


def mark_missing(context: RepairContext, problem: Problem) -> str | None:
    """The mark is a member with id 0."""
    context.put(Table.MEMBERS, problem.key, b"")
    return "made"


def mark_stale(context: RepairContext, problem: Problem) -> str | None:
    """The collection is made again, unless the id is a user object's."""
    key: MemberKey = problem.subject
    store = context.store
    if store.db.get(Table.OBJECTS, key.place.encode()) is not None:
        return remove_record(context, problem)
    count = sum(1 for _ in store.db.walk(Table.ATTRIBUTES, key.place.encode()))
    record = collection_record(key.place, count)
    context.put(Table.OBJECTS, key.place.encode(), record.encode())
    return "the collection is there again"


def free_number(store: Store, member: Place, collection: Place) -> int:
    """Of the Collections page; 0 where the target puts members in."""
    record = store.intact(collection, RecordType.COLLECTION)
    if record is not None and record.collection_type != CollectionType.LINKED:
        return 0
    taken = {
        int.from_bytes(value, "big")
        for _, value in store.db.walk(Table.MEMBERSHIPS, member.encode())
        if len(value) == 4
    }
    return next(number for number in range(1, len(taken) + 2) if number not in taken)


def other_half(context: RepairContext, problem: Problem) -> str | None:
    """The record that the other end looks for."""
    key: MemberKey = problem.subject
    turned = key.turned()
    if problem.kind is ProblemKind.MEMBERSHIP_ONE_WAY:
        context.put(Table.MEMBERS, turned.encode(), b"")
        return "the collection knows its member"
    number = free_number(context.store, turned.place, key.place)
    context.put(Table.MEMBERSHIPS, turned.encode(), number.to_bytes(4, "big"))
    return f"the member knows its collection, as number {number}"


def stale_member(context: RepairContext, problem: Problem) -> str | None:
    """Both halves."""
    assert problem.table is not None
    key: MemberKey = problem.subject
    other = Table.MEMBERSHIPS if problem.table is Table.MEMBERS else Table.MEMBERS
    value = context.store.db.get(problem.table, problem.key)
    if value is None:
        return None
    back = context.store.db.get(other, key.turned().encode())
    with context.store.db.transaction() as transaction:
        transaction.remove(problem.table, problem.key)
        transaction.remove(other, key.turned().encode())
    return f"removed {problem.key.hex()}={value.hex()}, other half {back.hex() if back else '-'}"


def membership_number(context: RepairContext, problem: Problem) -> str | None:
    """The next free one."""
    key: MemberKey = problem.subject
    store = context.store
    if store.db.get(Table.MEMBERSHIPS, problem.key) is None:
        return None
    number = free_number(store, key.place, key.turned().place)
    context.put(Table.MEMBERSHIPS, problem.key, number.to_bytes(4, "big"))
    return f"now number {number}"


def index_stage(context: RepairContext, problem: Problem) -> str | None:
    """From the beginning, in the background, when the target next opens the store."""
    context.put(Table.META, problem.key, IndexStage(Stage.CLEAR).encode())
    return "it will be built again"


def index_missing(context: RepairContext, problem: Problem) -> str | None:
    """As the attribute says."""
    context.put(Table.INDEX, problem.key, b"")
    return "entered"


def name_one_way(context: RepairContext, problem: Problem) -> str | None:
    """As the directory says."""
    context.put(Table.NAMED, problem.key, b"")
    return "the object knows its name"


def name_cycle(context: RepairContext, problem: Problem) -> str | None:
    """Both halves: one alone would bring the other back."""
    value = context.store.db.get(Table.NAMES, problem.key)
    if value is None:
        return None
    with context.store.db.transaction() as transaction:
        transaction.remove(Table.NAMES, problem.key)
        transaction.remove(Table.NAMED, problem.subject)
    return f"removed {problem.key.hex()}={value.hex()}"


def name_lost(context: RepairContext, problem: Problem) -> str | None:
    """As the object says."""
    if context.store.db.get(Table.NAMES, problem.key) is not None:
        return None
    context.put(Table.NAMES, problem.key, problem.subject)
    return "entered"


def name_mark(context: RepairContext, problem: Problem) -> str | None:
    """As named.db says."""
    value = context.store.db.get(Table.OBJECTS, problem.key)
    if value is None:
        return None
    record = ObjectRecord.decode(value)
    flags = record.flags & ~RecordFlag.NAMED | (problem.subject and RecordFlag.NAMED)
    context.put(Table.OBJECTS, problem.key, replace(record, flags=flags).encode())
    return "set" if problem.subject else "taken away"
