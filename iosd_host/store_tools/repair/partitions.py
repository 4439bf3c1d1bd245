# SPDX-License-Identifier: GPL-2.0-or-later
"""Repairs the records of the root and of partitions, and counters."""

from __future__ import annotations

from dataclasses import replace

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.check.whole_store import next_numbers
from iosd_host.store_tools.format.records import (
    ALL,
    FIRST_ID,
    MetaKind,
    PartitionRecord,
    Place,
    Quotas,
    RootRecord,
    id_mark_key,
    parse_partition_key,
    parse_partition_meta,
    partition_key,
)
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life, Store
from iosd_host.store_tools.repair.context import RepairContext
from iosd_host.store_tools.repair.lost_and_found import now_ms
from iosd_host.store_tools.repair.methods import close

__all__ = [
    "boot_counter",
    "id_mark",
    "incarnations",
    "other_epoch",
    "partition_missing",
    "partition_record",
    "queue_alive",
    "raise_root",
    "root_record",
    "versions_damaged",
]


def root_record(context: RepairContext, problem: Problem) -> str | None:
    """Values that follow from the partitions; quotas are lost."""
    store = context.store
    if store.root is not None:
        return None
    incarnation, partition_id = next_numbers(store)
    times = (now_ms(),) * 5
    root = RootRecord(
        store.epoch,
        incarnation,
        max(FIRST_ID, partition_id),
        common=PartitionRecord(0, times=times),
    )
    context.put(Table.META, MetaKind.ROOT.key, root.encode())
    store.forget()
    if problem.subject:
        key = MetaKind.ROOT.key
        record = (Table.META, b"damaged " + key, problem.subject)
        context.lost.keep("root record", problem.kind, records=[record])
    return f"made again: epoch {root.epoch}, next incarnation {incarnation}"


def partition_record(context: RepairContext, problem: Problem) -> str | None:
    """The incarnation is what its objects say."""
    store = context.store
    epoch, partition_id = parse_partition_key(problem.key)
    value: bytes = problem.subject
    record = (Table.PARTITIONS, problem.key, value)
    if epoch != store.epoch or store.partition(partition_id) is not None:
        where = context.lost.keep(f"partition {partition_id:x}", problem.kind, records=[record])
        store.forget()
        return f"moved to {where}"
    known = incarnations(store, partition_id)
    raw = int.from_bytes(value[4:8], "big")
    root = store.root
    next_one = root.next_incarnation if root is not None else 1
    plausible = 0 < raw < next_one and store.life(Place(partition_id, raw)) is not Life.DEAD
    incarnation = max(known, default=next_one)
    if plausible and (not known or raw in known):
        incarnation = raw
    make_partition(context, partition_id, incarnation)
    where = context.lost.keep(
        f"partition {partition_id:x}",
        problem.kind,
        records=[(Table.PARTITIONS, b"damaged " + problem.key, value)],
    )
    return f"made again with incarnation {incarnation}; the old record is in {where}"


def incarnations(store: Store, partition_id: int) -> set[int]:
    """Of a partition's objects, without those that wait to be freed."""
    found: set[int] = set()
    start = partition_id.to_bytes(8, "big")
    while True:
        record = next(
            store.db.walk(Table.OBJECTS, partition_id.to_bytes(8, "big"), start=start), None
        )
        if record is None:
            return found
        incarnation = int.from_bytes(record[0][8:12], "big")
        if store.life(Place(partition_id, incarnation)) is not Life.DEAD:
            found.add(incarnation)
        if incarnation == 0xFFFF_FFFF:
            return found
        start = partition_id.to_bytes(8, "big") + (incarnation + 1).to_bytes(4, "big")


def make_partition(context: RepairContext, partition_id: int, incarnation: int) -> None:
    """A record with the store's default quotas."""
    store = context.store
    quotas = store.root.common.quotas if store.root is not None else Quotas()
    quotas = replace(quotas, partition_count=ALL)
    record = PartitionRecord(incarnation, times=(now_ms(),) * 5, quotas=quotas)
    with store.db.transaction() as transaction:
        transaction.put(Table.PARTITIONS, partition_key(store.epoch, partition_id), record.encode())
        close(store, transaction, Place(partition_id, incarnation))
    store.forget()


def partition_missing(context: RepairContext, problem: Problem) -> str | None:
    """Made again with the youngest incarnation there are objects of."""
    place: Place = problem.subject
    store = context.store
    if store.partition(place.partition_id) is not None:
        return None
    key = partition_key(store.epoch, place.partition_id)
    if store.db.get(Table.PARTITIONS, key) is not None:
        return None  # damaged, and a problem of its own
    incarnation = max({place.incarnation} | incarnations(store, place.partition_id))
    make_partition(context, place.partition_id, incarnation)
    return f"made again with incarnation {incarnation}"


def other_epoch(context: RepairContext, problem: Problem) -> str | None:
    """Into the store's epoch, if the id is free there."""
    store = context.store
    _, partition_id = parse_partition_key(problem.key)
    value: bytes = problem.subject
    key = partition_key(store.epoch, partition_id)
    if store.db.get(Table.PARTITIONS, key) is not None:
        record = (Table.PARTITIONS, problem.key, value)
        where = context.lost.keep(f"partition {partition_id:x}", problem.kind, records=[record])
        store.forget()
        return f"the id is in use: moved to {where}"
    with store.db.transaction() as transaction:
        transaction.put(Table.PARTITIONS, key, value)
        transaction.remove(Table.PARTITIONS, problem.key)
    store.forget()
    return f"now in epoch {store.epoch}"


def boot_counter(context: RepairContext, problem: Problem) -> str | None:
    """Raised; 0 as a subject: only made, and raised when all files have been seen."""
    value = context.store.db.get(Table.META, MetaKind.BOOT.key) or b""
    boots = max(int.from_bytes(value, "big") if len(value) == 4 else 1, problem.subject)
    context.put(Table.META, MetaKind.BOOT.key, boots.to_bytes(4, "big"))
    return f"set to {boots}"


def raise_root(context: RepairContext, problem: Problem) -> str | None:
    """Next incarnation or next partition id."""
    root = context.store.root
    if root is None:
        return None
    least: int = problem.subject
    incarnation = problem.kind is ProblemKind.NEXT_INCARNATION
    raised = root.with_next(least, 0) if incarnation else root.with_next(0, least)
    context.put(Table.META, MetaKind.ROOT.key, raised.encode())
    context.store.forget()
    return f"set to {least:#x}"


def id_mark(context: RepairContext, problem: Problem) -> str | None:
    """Raised, or made again from the greatest id there is."""
    store = context.store
    if isinstance(problem.subject, tuple):
        place, least = problem.subject
    else:
        place = parse_partition_meta(problem.key)
        least = max(FIRST_ID, store.greatest_id(place) + 1)
    context.put(Table.META, id_mark_key(place), min(least, ALL).to_bytes(8, "big"))
    return f"set to {least:#x}"


def queue_alive(context: RepairContext, problem: Problem) -> str | None:
    """Records in use must not be removed."""
    if context.store.db.get(Table.META, problem.key) is None:
        return None
    context.remove(Table.META, problem.key)
    context.store.forget()
    return f"entry {problem.key.hex()} taken out"


def versions_damaged(context: RepairContext, problem: Problem) -> str | None:
    """Every context removes the record."""
    context.void_versions()
    return "removed"
