# SPDX-License-Identifier: GPL-2.0-or-later
"""Mends the store as a whole: superblocks, root, partitions, counters, memberships, jobs.

A repair checks again before it acts, because an earlier repair may have solved its problem. It
returns a description of its action, or None if there was nothing to do. Not here: objects and their
files (objects.py), the order of repairs (rounds.py).
"""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from itertools import islice

from iosd_host.store_tools.check.jobs import (
    arrays_under_way,
    job_record,
    payload_bytes,
    surrogate_of,
)
from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.check.whole_store import next_numbers
from iosd_host.store_tools.format.indexes import IndexStage, Stage
from iosd_host.store_tools.format.jobs import JobId, JobKey
from iosd_host.store_tools.format.records import (
    ALL,
    FIRST_ID,
    JOB_IDS,
    WELL_KNOWN,
    CollectionType,
    FormatError,
    MemberKey,
    MetaKind,
    ObjectRecord,
    PartitionRecord,
    Place,
    Quotas,
    RecordFlag,
    RecordType,
    RootRecord,
    id_mark_key,
    parse_partition_key,
    parse_partition_meta,
    partition_key,
)
from iosd_host.store_tools.format.superblock import FEATURE_SUMS, RootRole, Superblock
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.folders import Root, write_superblock
from iosd_host.store_tools.opening.store import Life, Store
from iosd_host.store_tools.opening.tables import place_in
from iosd_host.store_tools.repair.lost_and_found import LostAndFound, now_ms

__all__ = ["MENDERS", "SET_ASIDE", "Mender", "Mending", "collection_record", "why_not"]

SET_ASIDE = "set-aside"
"""Folder in the main root for what was replaced."""
DEFAULT_HEAD_BYTES = 2 << 20
SAMPLE = 1000


@dataclass
class Mending:
    """Context of repairs."""

    store: Store
    lost: LostAndFound

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        """One change that stands alone."""
        with self.store.db.transaction() as transaction:
            transaction.put(table, key, value)

    def remove(self, table: Table, key: bytes) -> None:
        """One removal that stands alone."""
        with self.store.db.transaction() as transaction:
            transaction.remove(table, key)

    def void_versions(self) -> None:
        """What is mended may change data, or what a record says of them: without this record, the
        target gives every object another version.
        """
        if self.store.db.get(Table.META, MetaKind.VERSIONS.key) is not None:
            self.remove(Table.META, MetaKind.VERSIONS.key)


Mender = Callable[[Mending, Problem], str | None]


# ---- superblocks


def superblock(mending: Mending, problem: Problem) -> str | None:
    """From the other root's, or from what is left of it."""
    root: Root = problem.subject
    roots = mending.store.roots
    path = root.path / "superblock"
    raw = path.read_bytes() if path.exists() else b""
    other = roots.heads if root is roots.main else roots.main
    if other is not None and other.superblock is not None:
        block = replace(other.superblock, role=root.role)
    else:
        block = guessed_superblock(mending.store, root.role, raw)
    if raw:
        place_in(roots.main.path / SET_ASIDE, f"superblock.{root.role.name}").write_bytes(raw)
    write_superblock(root.path, block)
    root.superblock = block
    return f"made again, store id {block.store_id.hex()}"


def guessed_superblock(store: Store, role: RootRole, raw: bytes) -> Superblock:
    """Its own fields as far as they are there."""
    raw = raw if len(raw) == Superblock.BYTES else b""
    store_id = raw[24:40] if any(raw[24:40]) else secrets.token_bytes(16)
    system_id = raw[40:60]
    if not system_id.startswith(Superblock.DESIGNATOR):
        system_id = Superblock.DESIGNATOR + store_id[:8]
    head_bytes = ALL
    if store.roots.heads is not None:
        sizes = Counter(each for each in islice(head_sizes(store), SAMPLE) if each != ALL)
        common = sizes.most_common(1)
        head_bytes = common[0][0] if common else DEFAULT_HEAD_BYTES
    has_sums = store.db.get(Table.META, MetaKind.SUMS.key) is not None
    features = FEATURE_SUMS if has_sums else 0
    return Superblock(role, store_id, system_id, head_bytes, now_ms(), features=features)


def head_sizes(store: Store) -> Iterator[int]:
    """Of the user objects."""
    for _, value in store.db.walk(Table.OBJECTS):
        try:
            record = ObjectRecord.decode(value)
        except FormatError:
            continue
        if record.type is RecordType.USER_OBJECT:
            yield record.head_bytes


def store_id(mending: Mending, problem: Problem) -> str | None:
    """The SSD directory is taken for this store's if it holds every head, of the right size."""
    heads: Root = problem.subject
    main = mending.store.roots.main.superblock
    if main is None or heads.superblock is None or not heads_fit(mending.store):
        return None
    write_superblock(heads.path, replace(main, role=RootRole.HEADS))
    heads.superblock = replace(main, role=RootRole.HEADS)
    return "every head fits its record: took the id of the main root"


def heads_fit(store: Store) -> bool:
    """Whether each settled object has its head where it should be; at least one has."""
    matched = False
    for fits in heads_that_fit(store):
        if not fits:
            return False
        matched = True
    return matched


def heads_that_fit(store: Store) -> Iterator[bool]:
    """For each settled object with data in a head store, whether the head is there as recorded."""
    for key, value in store.db.walk(Table.OBJECTS):
        try:
            place, record = Place.of_object_key(key), ObjectRecord.decode(value)
        except FormatError:
            continue
        wanted = record.flags & RecordFlag.HAS_FILES and record.is_settled and record.length
        if wanted and not record.head_in and store.life(place) is Life.LIVE:
            yield store.files(place, record).head == min(record.length, record.head_bytes)


def why_not(store: Store) -> str:
    """Why directories without a superblock that says so are not of one store; empty: they may be.

    With the wrong ones nearly every object would look damaged.
    """
    if all(root.superblock is not None for root in store.roots):
        return ""
    split = any(size != ALL for size in islice(head_sizes(store), SAMPLE))
    if store.roots.heads is None:
        return "its objects have their heads in another root: give that as --ssd" if split else ""
    found = list(islice(heads_that_fit(store), SAMPLE))
    if 2 * sum(found) < len(found):
        return "the heads in the SSD directory are not of its objects: give the right one as --ssd"
    return "" if split or not found else "its objects have no heads elsewhere: it takes no --ssd"


# ---- root and partitions


def root_record(mending: Mending, problem: Problem) -> str | None:
    """Values that follow from the partitions; quotas are lost."""
    store = mending.store
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
    mending.put(Table.META, MetaKind.ROOT.key, root.encode())
    store.forget()
    if problem.subject:
        key = MetaKind.ROOT.key
        record = (Table.META, b"damaged " + key, problem.subject)
        mending.lost.keep("root record", problem.kind, records=[record])
    return f"made again: epoch {root.epoch}, next incarnation {incarnation}"


def partition_record(mending: Mending, problem: Problem) -> str | None:
    """The incarnation is what its objects say."""
    store = mending.store
    epoch, partition_id = parse_partition_key(problem.key)
    value: bytes = problem.subject
    record = (Table.PARTITIONS, problem.key, value)
    if epoch != store.epoch or store.partition(partition_id) is not None:
        where = mending.lost.keep(f"partition {partition_id:x}", problem.kind, records=[record])
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
    make_partition(mending, partition_id, incarnation)
    where = mending.lost.keep(
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


def make_partition(mending: Mending, partition_id: int, incarnation: int) -> None:
    """A record with the store's default quotas."""
    store = mending.store
    quotas = store.root.common.quotas if store.root is not None else Quotas()
    quotas = replace(quotas, partition_count=ALL)
    record = PartitionRecord(incarnation, times=(now_ms(),) * 5, quotas=quotas)
    mending.put(Table.PARTITIONS, partition_key(store.epoch, partition_id), record.encode())
    store.forget()


def partition_missing(mending: Mending, problem: Problem) -> str | None:
    """Made again with the youngest incarnation there are objects of."""
    place: Place = problem.subject
    store = mending.store
    if store.partition(place.partition_id) is not None:
        return None
    key = partition_key(store.epoch, place.partition_id)
    if store.db.get(Table.PARTITIONS, key) is not None:
        return None  # damaged, and a problem of its own
    incarnation = max({place.incarnation} | incarnations(store, place.partition_id))
    make_partition(mending, place.partition_id, incarnation)
    return f"made again with incarnation {incarnation}"


def other_epoch(mending: Mending, problem: Problem) -> str | None:
    """Into the store's epoch, if the id is free there."""
    store = mending.store
    _, partition_id = parse_partition_key(problem.key)
    value: bytes = problem.subject
    key = partition_key(store.epoch, partition_id)
    if store.db.get(Table.PARTITIONS, key) is not None:
        record = (Table.PARTITIONS, problem.key, value)
        where = mending.lost.keep(f"partition {partition_id:x}", problem.kind, records=[record])
        store.forget()
        return f"the id is in use: moved to {where}"
    with store.db.transaction() as transaction:
        transaction.put(Table.PARTITIONS, key, value)
        transaction.remove(Table.PARTITIONS, problem.key)
    store.forget()
    return f"now in epoch {store.epoch}"


# ---- records that go to lost+found as they are


def keep_record(mending: Mending, problem: Problem) -> str | None:
    """Moved, with its key."""
    assert problem.table is not None
    value = mending.store.db.get(problem.table, problem.key)
    if value is None:
        return None
    label = f"{problem.table.value} {problem.key.hex()[:64]}"
    record = (problem.table, problem.key, value)
    return f"moved to {mending.lost.keep(label, problem.kind, records=[record])}"


def keep_job(mending: Mending, problem: Problem) -> str | None:
    """A job's record or part: all that is kept of one job comes together."""
    assert problem.table is not None
    value = mending.store.db.get(problem.table, problem.key)
    if value is None:
        return None
    job = problem.subject if isinstance(problem.subject, JobId) else JobKey.decode(problem.key).job
    record = (problem.table, problem.key, value)
    where = mending.lost.keep(f"job {job}", problem.kind, records=[record])
    return f"moved to {where}"


def versions_damaged(mending: Mending, problem: Problem) -> str | None:
    """Every mending removes the record."""
    mending.void_versions()
    return "removed"


def remove_record(mending: Mending, problem: Problem) -> str | None:
    """For records that can be derived from others, or that belong to nothing."""
    assert problem.table is not None
    value = mending.store.db.get(problem.table, problem.key)
    if value is None:
        return None
    mending.remove(problem.table, problem.key)
    return f"removed {problem.key.hex()}={value.hex()[:128]}"


# ---- counters


def boot_counter(mending: Mending, problem: Problem) -> str | None:
    """Raised; 0 as a subject: only made, and raised when all files have been seen."""
    value = mending.store.db.get(Table.META, MetaKind.BOOT.key) or b""
    boots = max(int.from_bytes(value, "big") if len(value) == 4 else 1, problem.subject)
    mending.put(Table.META, MetaKind.BOOT.key, boots.to_bytes(4, "big"))
    return f"set to {boots}"


def raise_root(mending: Mending, problem: Problem) -> str | None:
    """Next incarnation or next partition id."""
    root = mending.store.root
    if root is None:
        return None
    least: int = problem.subject
    incarnation = problem.kind is ProblemKind.NEXT_INCARNATION
    raised = root.with_next(least, 0) if incarnation else root.with_next(0, least)
    mending.put(Table.META, MetaKind.ROOT.key, raised.encode())
    mending.store.forget()
    return f"set to {least:#x}"


def id_mark(mending: Mending, problem: Problem) -> str | None:
    """Raised, or made again from the greatest id there is."""
    store = mending.store
    if isinstance(problem.subject, tuple):
        place, least = problem.subject
    else:
        place = parse_partition_meta(problem.key)
        least = max(FIRST_ID, store.greatest_id(place) + 1)
    mending.put(Table.META, id_mark_key(place), min(least, ALL).to_bytes(8, "big"))
    return f"set to {least:#x}"


def queue_alive(mending: Mending, problem: Problem) -> str | None:
    """Records in use must not be removed."""
    if mending.store.db.get(Table.META, problem.key) is None:
        return None
    mending.remove(Table.META, problem.key)
    mending.store.forget()
    return f"entry {problem.key.hex()} taken out"


# ---- memberships


def collection_record(place: Place, attributes: int) -> ObjectRecord:
    """Of a collection of which only mark or members are left."""
    kind = CollectionType.TRACKING if place.object_id in WELL_KNOWN else CollectionType.LINKED
    return ObjectRecord(
        RecordType.COLLECTION,
        collection_type=kind,
        times=(now_ms(),) * 5,
        attribute_count=attributes,
    )


def mark_missing(mending: Mending, problem: Problem) -> str | None:
    """The mark is a member with id 0."""
    mending.put(Table.MEMBERS, problem.key, b"")
    return "made"


def mark_stale(mending: Mending, problem: Problem) -> str | None:
    """The collection is made again, unless the id is a user object's."""
    key: MemberKey = problem.subject
    store = mending.store
    if store.db.get(Table.OBJECTS, key.place.encode()) is not None:
        return remove_record(mending, problem)
    count = sum(1 for _ in store.db.walk(Table.ATTRIBUTES, key.place.encode()))
    record = collection_record(key.place, count)
    mending.put(Table.OBJECTS, key.place.encode(), record.encode())
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


def other_half(mending: Mending, problem: Problem) -> str | None:
    """The record that the other end looks for."""
    key: MemberKey = problem.subject
    turned = key.turned()
    if problem.kind is ProblemKind.MEMBERSHIP_ONE_WAY:
        mending.put(Table.MEMBERS, turned.encode(), b"")
        return "the collection knows its member"
    number = free_number(mending.store, turned.place, key.place)
    mending.put(Table.MEMBERSHIPS, turned.encode(), number.to_bytes(4, "big"))
    return f"the member knows its collection, as number {number}"


def stale_member(mending: Mending, problem: Problem) -> str | None:
    """Both halves."""
    assert problem.table is not None
    key: MemberKey = problem.subject
    other = Table.MEMBERSHIPS if problem.table is Table.MEMBERS else Table.MEMBERS
    value = mending.store.db.get(problem.table, problem.key)
    if value is None:
        return None
    back = mending.store.db.get(other, key.turned().encode())
    with mending.store.db.transaction() as transaction:
        transaction.remove(problem.table, problem.key)
        transaction.remove(other, key.turned().encode())
    return f"removed {problem.key.hex()}={value.hex()}, other half {back.hex() if back else '-'}"


def membership_number(mending: Mending, problem: Problem) -> str | None:
    """The next free one."""
    key: MemberKey = problem.subject
    store = mending.store
    if store.db.get(Table.MEMBERSHIPS, problem.key) is None:
        return None
    number = free_number(store, key.place, key.turned().place)
    mending.put(Table.MEMBERSHIPS, problem.key, number.to_bytes(4, "big"))
    return f"now number {number}"


# ---- jobs


def job_expiry(mending: Mending, problem: Problem) -> str | None:
    """Entered where expired jobs are looked for."""
    mending.put(Table.JOBS, problem.key, b"\0")
    return "entered"


def job_charge(mending: Mending, problem: Problem) -> str | None:
    """Counted again, from what is there."""
    job: JobId = problem.subject
    record = job_record(mending.store, job)
    if record is None:
        return None
    right = record.charge(payload_bytes(mending.store, job))
    mending.put(Table.JOBS, problem.key, replace(record, charged=right).encode())
    return f"set to {right}"


def job_companion(mending: Mending, problem: Problem) -> str | None:
    """Entered, so that only those read the result who may."""
    job: JobId = problem.subject
    mending.put(Table.JOBS, problem.key, job.object_id.to_bytes(8, "big"))
    return "entered"


def job_key(mending: Mending, problem: Problem) -> str | None:
    """Entered, so that the same submission finds the job."""
    job: JobId = problem.subject
    mending.put(Table.JOB_KEYS, problem.key, job.encode())
    return "entered"


def surrogate_mark(mending: Mending, problem: Problem) -> str | None:
    """As the job's record says."""
    place: Place = problem.subject
    store = mending.store
    record = store.intact(place, RecordType.USER_OBJECT)
    if record is None:
        value = store.intact(place, RecordType.COLLECTION)
        if value is None:
            return None
        record = value
    name = JobId(place.partition_id, place.object_id)
    job = job_record(store, name)
    if job is None:
        unfinished = any(array.has_member(name) for array in arrays_under_way(store))
    else:
        unfinished = not job.has_ended and surrogate_of(store, job.id) == place
    flags = record.flags & ~RecordFlag.UNFINISHED
    if unfinished:
        flags |= RecordFlag.UNFINISHED
        if place.object_id in JOB_IDS:
            flags |= RecordFlag.SURROGATE
    if flags == record.flags:
        return None
    changed = replace(record, flags=flags)
    mending.put(Table.OBJECTS, place.encode(), changed.encode())
    return "mark made" if unfinished else "mark removed"


# ---- value indexes


def index_stage(mending: Mending, problem: Problem) -> str | None:
    """From the beginning, in the background, when the target next opens the store."""
    mending.put(Table.META, problem.key, IndexStage(Stage.CLEAR).encode())
    return "it will be built again"


def index_missing(mending: Mending, problem: Problem) -> str | None:
    """As the attribute says."""
    mending.put(Table.INDEX, problem.key, b"")
    return "entered"


def name_one_way(mending: Mending, problem: Problem) -> str | None:
    """As the directory says."""
    mending.put(Table.NAMED, problem.key, b"")
    return "the object knows its name"


def name_mark(mending: Mending, problem: Problem) -> str | None:
    """As named.db says."""
    value = mending.store.db.get(Table.OBJECTS, problem.key)
    if value is None:
        return None
    record = ObjectRecord.decode(value)
    flags = record.flags & ~RecordFlag.NAMED | (problem.subject and RecordFlag.NAMED)
    mending.put(Table.OBJECTS, problem.key, replace(record, flags=flags).encode())
    return "set" if problem.subject else "taken away"


MENDERS: dict[ProblemKind, Mender] = {
    ProblemKind.SUPERBLOCK_DAMAGED: superblock,
    ProblemKind.STORE_IDS_DIFFER: store_id,
    ProblemKind.ROOT_DAMAGED: root_record,
    ProblemKind.PARTITION_DAMAGED: partition_record,
    ProblemKind.PARTITION_MISSING: partition_missing,
    ProblemKind.PARTITION_IN_OTHER_EPOCH: other_epoch,
    ProblemKind.KEY_DAMAGED: keep_record,
    ProblemKind.ATTRIBUTE_STRANGE: keep_record,
    ProblemKind.QUEUE_DAMAGED: keep_record,
    ProblemKind.BOOT_COUNTER: boot_counter,
    ProblemKind.VERSIONS_DAMAGED: versions_damaged,
    ProblemKind.NEXT_INCARNATION: raise_root,
    ProblemKind.NEXT_PARTITION_ID: raise_root,
    ProblemKind.ID_MARK: id_mark,
    ProblemKind.QUEUE_ALIVE: queue_alive,
    ProblemKind.MARK_MISSING: mark_missing,
    ProblemKind.MARK_STALE: mark_stale,
    ProblemKind.MEMBER_ONE_WAY: other_half,
    ProblemKind.MEMBERSHIP_ONE_WAY: other_half,
    ProblemKind.MEMBER_STALE: stale_member,
    ProblemKind.MEMBERSHIP_NUMBER: membership_number,
    ProblemKind.NAME_STALE: remove_record,
    ProblemKind.NAME_ONE_WAY: name_one_way,
    ProblemKind.NAMED_STALE: remove_record,
    ProblemKind.NAME_MARK: name_mark,
    ProblemKind.NAME_CYCLE: remove_record,
    ProblemKind.JOB_DAMAGED: keep_job,
    ProblemKind.JOB_WITHOUT_SURROGATE: keep_job,
    ProblemKind.JOB_PART_ORPHAN: keep_job,
    ProblemKind.JOB_CHARGE: job_charge,
    ProblemKind.JOB_COMPANION_STALE: remove_record,
    ProblemKind.JOB_COMPANION_MISSING: job_companion,
    ProblemKind.JOB_EXPIRY_MISSING: job_expiry,
    ProblemKind.JOB_EXPIRY_STALE: remove_record,
    ProblemKind.JOB_KEY_MISSING: job_key,
    ProblemKind.JOB_KEY_STALE: remove_record,
    ProblemKind.INDEX_STAGE: index_stage,
    ProblemKind.INDEX_STALE: remove_record,
    ProblemKind.INDEX_MISSING: index_missing,
    ProblemKind.INDEX_SUPERFLUOUS: remove_record,
    ProblemKind.COMMAND_DAMAGED: keep_record,
    ProblemKind.KEY_RECORD_DAMAGED: remove_record,
    ProblemKind.KEY_WITHOUT_SEAL: remove_record,
    ProblemKind.SURROGATE_UNFINISHED: surrogate_mark,
    ProblemKind.SURROGATE_UNMARKED: surrogate_mark,
}
