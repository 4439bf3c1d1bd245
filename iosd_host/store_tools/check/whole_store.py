# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what is wrong with a store, section by section, in the order in which repair repairs.

A check is a stream of problems. It changes nothing and holds no list of a whole table. Any of its
problems can be repaired before the next is requested. Lives here: superblocks, tables, the records
of root and partitions, counters, the removal queue. Not here: objects and their files (objects.py),
memberships (members.py), jobs (jobs.py).
"""

from __future__ import annotations

from collections.abc import Iterator

from iosd_host.store_tools.check.indexes import check_index
from iosd_host.store_tools.check.jobs import check_commands, check_jobs
from iosd_host.store_tools.check.keys import check_keys
from iosd_host.store_tools.check.members import check_members, check_memberships
from iosd_host.store_tools.check.names import check_names
from iosd_host.store_tools.check.objects import Seen, check_files, check_objects
from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.check.sums import Pace, check_sums
from iosd_host.store_tools.format.records import (
    IDS_COUNTED,
    JOBS_PARTITION,
    LOST_PARTITION,
    FormatError,
    MetaKind,
    PartitionRecord,
    Place,
    RootRecord,
    id_mark_key,
    parse_dead_files,
    parse_partition_key,
    parse_partition_meta,
)
from iosd_host.store_tools.format.versions import VersionsRun
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life, Store, StoreProgress

__all__ = ["check_store"]

META_KEY_MOST = 48
BOOT_MAX = 0xF000_0000
"""A count of openings beyond this is damage, not age."""


def check_store(
    store: Store, progress: StoreProgress, compare: Pace | None = None
) -> Iterator[Problem]:
    """Everything wrong with a store.  compare: all data with its checksums too, at that pace."""
    seen = Seen()
    yield from check_roots(store)
    if not store.roots.of_one_store:
        return  # with another store's heads everything would look damaged
    yield from check_tables(store)
    yield from check_root_record(store)
    yield from check_partitions(store)
    yield from check_queue(store)
    yield from check_objects(store, seen, progress)
    yield from check_files(store, seen, progress)
    yield from check_members(store, progress)
    yield from check_memberships(store, progress)
    yield from check_names(store, progress)
    yield from check_jobs(store, progress)
    yield from check_commands(store)
    yield from check_keys(store)
    yield from check_index(store, progress)
    yield from check_counters(store, seen)
    if compare is not None:
        yield from check_sums(store, compare, progress)


def check_roots(store: Store) -> Iterator[Problem]:
    """Superblocks."""
    for root in store.roots:
        if root.superblock is None:
            where = f"{root.path}/superblock"
            yield Problem(ProblemKind.SUPERBLOCK_DAMAGED, where, root.damage, subject=root)
    if not store.roots.of_one_store:
        heads = store.roots.heads
        assert heads is not None
        yield Problem(ProblemKind.STORE_IDS_DIFFER, f"{heads.path}/superblock", subject=heads)


def check_tables(store: Store) -> Iterator[Problem]:
    """Files of the database: what was met when it was opened."""
    if store.health.log_damage:
        yield Problem(ProblemKind.LOG_DAMAGED, "db/log.*", store.health.log_damage)
    for table in store.health.missing:
        yield Problem(ProblemKind.TABLE_MISSING, f"db/{table.value}", table=table)
    for table, text in store.health.damaged.items():
        yield Problem(ProblemKind.TABLE_DAMAGED, f"db/{table.value}", text, table=table)


def check_root_record(store: Store) -> Iterator[Problem]:
    """The one record without which the target would think the store empty."""
    value = store.db.get(Table.META, MetaKind.ROOT.key)
    try:
        RootRecord.decode(value or b"")
    except FormatError as error:
        detail = "it is missing" if value is None else str(error)
        key = MetaKind.ROOT.key
        yield Problem(ProblemKind.ROOT_DAMAGED, "root", detail, Table.META, key, value)
    value = store.db.get(Table.META, MetaKind.BOOT.key)
    if value is None or len(value) != 4:
        yield Problem(ProblemKind.BOOT_COUNTER, "meta.db B", "", Table.META, MetaKind.BOOT.key, 0)
    clean = store.db.get(Table.META, MetaKind.CLEAN.key) is not None
    if not clean and value is not None:
        yield Problem(ProblemKind.NOT_CLOSED, str(store.roots.main.path))


def check_partitions(store: Store) -> Iterator[Problem]:
    """Partition records, of this epoch and of others."""
    for key, value in store.db.walk(Table.PARTITIONS):
        table = Table.PARTITIONS
        try:
            epoch, partition_id = parse_partition_key(key)
        except FormatError as error:
            yield Problem(
                ProblemKind.KEY_DAMAGED, f"{table.value} {key.hex()}", str(error), table, key, value
            )
            continue
        place = Place(partition_id, 0)
        try:
            PartitionRecord.decode(value)
        except FormatError as error:
            yield Problem(ProblemKind.PARTITION_DAMAGED, str(place), str(error), table, key, value)
            continue
        if epoch != store.epoch and store.life(Place(0, epoch)) is Life.UNKNOWN:
            detail = f"its epoch is {epoch}, the store's is {store.epoch}"
            kind = ProblemKind.PARTITION_IN_OTHER_EPOCH
            yield Problem(kind, str(place), detail, table, key, value)


# ---- the removal queue and marks


def check_queue(store: Store) -> Iterator[Problem]:
    """meta.db: what waits to be removed, marks of ids."""
    for key, value in store.db.walk(Table.META):
        where = f"meta.db {key.hex()}"
        try:
            yield from check_meta(store, key, value)
        except FormatError as error:
            yield Problem(ProblemKind.QUEUE_DAMAGED, where, str(error), Table.META, key, value)


def check_meta(store: Store, key: bytes, value: bytes) -> Iterator[Problem]:
    """One record.  Raises: FormatError."""
    kinds = tuple(MetaKind)
    if not 0 < len(key) <= META_KEY_MOST:  # longer ones keep the target from reading the table
        raise FormatError(f"a key of {len(key)} bytes")
    if key[0] not in kinds:
        where = f"meta.db {key.hex()}"
        yield Problem(ProblemKind.UNKNOWN_META, where, "", Table.META, key, value)
        return
    kind = MetaKind(key[0])
    if (
        kind
        in (
            *(MetaKind.ROOT, MetaKind.BOOT, MetaKind.CLEAN, MetaKind.INDEX_BOOT),
            *(MetaKind.SUMS, MetaKind.SCRUB, MetaKind.VERSIONS),
        )
        and len(key) != 1
    ):
        raise FormatError(f"a key of {len(key)} bytes instead of 1")
    if kind is MetaKind.VERSIONS:
        try:
            VersionsRun.decode(value)
        except FormatError as error:
            yield Problem(ProblemKind.VERSIONS_DAMAGED, "meta.db W", str(error), Table.META, key)
    elif kind in (MetaKind.DEAD_FILES, MetaKind.DRAFT_FILES):
        yield check_dead_files(store, key)
    elif kind is MetaKind.DEAD_PARTITION:
        place = parse_partition_meta(key)
        record = store.partition(place.partition_id)
        alive = record is not None and record.incarnation == place.incarnation
        queued = ProblemKind.QUEUE_ALIVE if alive else ProblemKind.QUEUED_PARTITION
        detail = f"partition {place} is in use" if alive else ""
        yield Problem(queued, f"{place}.{place.incarnation}", detail, Table.META, key)
    elif kind is MetaKind.DEAD_EPOCH:
        if len(key) != 5:
            raise FormatError(f"a key of {len(key)} bytes instead of 5")
        epoch = int.from_bytes(key[1:], "big")
        queued = ProblemKind.QUEUE_ALIVE if epoch >= store.epoch else ProblemKind.QUEUED_EPOCH
        detail = "it is the store's own, or a later one" if epoch >= store.epoch else ""
        yield Problem(queued, f"epoch {epoch}", detail, Table.META, key)
    elif kind is MetaKind.ID_MARK:
        place = parse_partition_meta(key)
        if len(value) != 8:
            detail = f"a mark of {len(value)} bytes"
            yield Problem(ProblemKind.ID_MARK, str(place), detail, Table.META, key, 0)


def check_dead_files(store: Store, key: bytes) -> Problem:
    """An entry D or N.  Raises: FormatError."""
    place, generation = parse_dead_files(key)
    try:
        record = store.object(place)
    except FormatError:
        record = None
    if record is not None and generation in (record.generation, record.spare_generation):
        detail = f"generation {generation:#x} is the object's own"
        return Problem(ProblemKind.QUEUE_ALIVE, str(place), detail, Table.META, key)
    if key[0] == MetaKind.DRAFT_FILES:  # its id was never told to anybody
        return Problem(ProblemKind.QUEUED_FILES, str(place), f"generation {generation:#x}")
    mark = id_mark(store, place)
    given_out = place.object_id < max(mark, store.greatest_id(place) + 1)
    if store.life(place) is Life.LIVE and not given_out and place.object_id < IDS_COUNTED:
        detail = f"id {place.object_id:#x} was given out and is above the mark"
        least = place.object_id + 1
        return Problem(
            ProblemKind.ID_MARK, str(place.partition), detail, Table.META, subject=(place, least)
        )
    return Problem(
        ProblemKind.QUEUED_FILES, str(place), f"generation {generation:#x}", Table.META, key
    )


def id_mark(store: Store, place: Place) -> int:
    """Object ids below it were given out; 0: no mark that decodes."""
    value = store.db.get(Table.META, id_mark_key(place))
    return int.from_bytes(value, "big") if value is not None and len(value) == 8 else 0


# ---- counters


def check_counters(store: Store, seen: Seen) -> Iterator[Problem]:
    """Counters that must be above all assigned values."""
    value = store.db.get(Table.META, MetaKind.BOOT.key) or b""
    boots = int.from_bytes(value, "big") if len(value) == 4 else 0
    if boots < seen.boots < BOOT_MAX:
        detail = f"it is {boots}, and files or versions of opening {seen.boots} exist"
        key = MetaKind.BOOT.key
        yield Problem(ProblemKind.BOOT_COUNTER, "meta.db B", detail, Table.META, key, seen.boots)
    root = store.root
    if root is None:
        return
    incarnation, partition_id = next_numbers(store)
    incarnation = max(incarnation, seen.incarnation + 1)
    if root.next_incarnation < incarnation:
        detail = f"it is {root.next_incarnation} and must be at least {incarnation}"
        yield Problem(ProblemKind.NEXT_INCARNATION, "root", detail, subject=incarnation)
    if root.next_partition_id < partition_id:
        detail = f"it is {root.next_partition_id:#x} and must be at least {partition_id:#x}"
        yield Problem(ProblemKind.NEXT_PARTITION_ID, "root", detail, subject=partition_id)


def next_numbers(store: Store) -> tuple[int, int]:
    """The least values of the root's next incarnation and next partition id."""
    incarnation, partition_id = 1, 0
    for key, _ in store.db.walk(Table.META, MetaKind.DEAD_PARTITION.key):
        try:  # a partition of that number would be freed as soon as it is made
            incarnation = max(incarnation, parse_partition_meta(key).incarnation + 1)
        except FormatError:
            continue
    for epoch, each, value in store.partition_keys():
        try:
            record = PartitionRecord.decode(value)
        except FormatError:
            continue
        incarnation = max(incarnation, record.incarnation + 1)
        own = each in (JOBS_PARTITION, LOST_PARTITION) or each >= IDS_COUNTED
        if epoch == store.epoch and not own:
            partition_id = max(partition_id, each + 1)
    return incarnation, partition_id
