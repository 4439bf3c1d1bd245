# SPDX-License-Identifier: GPL-2.0-or-later
"""Every way of damaging a store that the tools know: files edited, records changed behind its back.

Each names the problem that check must find, the objects that may look different afterwards, and
does its damage to a closed store.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from pyosd.types import ObjectRef, ref
from scheduler.store_tools.bdb import Table
from scheduler.store_tools.format import (
    ALL,
    ALL_OBJECTS,
    AttributeKey,
    FileName,
    MemberKey,
    MetaKind,
    PartitionRecord,
    Place,
    RecordFlag,
    RootRecord,
    dead_epoch_key,
    dead_files_key,
    dead_partition_key,
    id_mark_key,
    partition_key,
)
from scheduler.store_tools.index_format import IndexEntry, indexed_value
from scheduler.store_tools.job_format import JobId, JobKey, JobKeyKind, JobRecord
from scheduler.store_tools.key_format import KeyKind, KeyName
from tests.offline.stores import APPLICATION, FIRST, HEAD, SECOND, Names, Store

Act = Callable[[Store], None]
Chosen = Callable[[Names], list[ObjectRef]]


@dataclass(frozen=True)
class Damage:
    """kind: what check must call it.  changed: objects whose look may change, ids in FIRST.
    lossy: bytes are gone and cannot come back."""

    kind: str
    act: Act
    changed: Chosen = lambda names: []
    lossy: bool = False
    two_roots: bool = False


DAMAGES: dict[str, Damage] = {}


def damage(
    kind: str, changed: Chosen = lambda names: [], lossy: bool = False, two_roots: bool = False
) -> Callable[[Act], Act]:
    def register(act: Act) -> Act:
        DAMAGES[act.__name__.replace("_", " ")] = Damage(kind, act, changed, lossy, two_roots)
        return act

    return register


# ---- how to do it


def head_file(store: Store, obj: ObjectRef, tail: bool = False) -> Path:
    record = store.record(obj)
    root = store.data if tail or store.ssd is None else store.ssd
    return root / "data" / FileName(store.place(obj), record.generation, tail).path


def change(store: Store, obj: ObjectRef, **fields: object) -> None:
    record = replace(store.record(obj), **fields)  # type: ignore[arg-type]
    store.put(Table.OBJECTS, store.place(obj).encode(), record.encode())


def spoil(store: Store, obj: ObjectRef, at: int, byte: int) -> None:
    """One byte of an object's record."""
    key = store.place(obj).encode()
    value = bytearray(store.record(obj).encode())
    value[at] = byte
    store.put(Table.OBJECTS, key, bytes(value))


def meta(store: Store, key: bytes) -> bytes:
    with store.database() as database:
        return database.get(Table.META, key) or b""


def root_record(store: Store) -> RootRecord:
    return RootRecord.decode(meta(store, MetaKind.ROOT.key))


def put_root(store: Store, **fields: object) -> None:
    changed = replace(root_record(store), **fields)  # type: ignore[arg-type]
    store.put(Table.META, MetaKind.ROOT.key, changed.encode())


def partition(store: Store, partition_id: int) -> PartitionRecord:
    with store.database() as database:
        value = database.get(Table.PARTITIONS, partition_key(1, partition_id))
    assert value is not None
    return PartitionRecord.decode(value)


def job(store: Store, obj: ObjectRef) -> JobRecord:
    key = JobKey(JobKeyKind.RECORD, JobId(obj.partition_id, obj.object_id)).encode()
    with store.database() as database:
        return JobRecord.decode(database.get(Table.JOBS, key) or b"")


def job_key(obj: ObjectRef, kind: JobKeyKind, number: int = 0) -> bytes:
    return JobKey(kind, JobId(obj.partition_id, obj.object_id), number).encode()


def membership(store: Store) -> MemberKey:
    """Of the member in the collection, as members.db has it."""
    names = store.names
    return MemberKey(store.place(names.collection), names.member.object_id)


# ---- superblocks and the database's files


@damage("superblock-damaged")
def a_byte_of_the_superblock(store: Store) -> None:
    path = store.data / "superblock"
    data = bytearray(path.read_bytes())
    data[70] ^= 0xFF
    path.write_bytes(data)


@damage("superblock-damaged")
def superblock_zeroed(store: Store) -> None:
    (store.data / "superblock").write_bytes(bytes(512))


@damage("superblock-damaged")
def superblock_removed(store: Store) -> None:
    (store.data / "superblock").unlink()


@damage("superblock-damaged", two_roots=True)
def superblock_of_the_ssd_cut(store: Store) -> None:
    assert store.ssd is not None
    os.truncate(store.ssd / "superblock", 100)


@damage("superblock-damaged", two_roots=True)
def both_superblocks_gone(store: Store) -> None:
    for root in store.roots:
        (root / "superblock").unlink()


@damage("store-ids-differ", two_roots=True)
def another_store_id_on_the_ssd(store: Store) -> None:
    from scheduler.store_tools.format import Superblock

    assert store.ssd is not None
    path = store.ssd / "superblock"
    block = Superblock.decode(path.read_bytes())
    path.write_bytes(replace(block, store_id=b"x" * 16).encode())


@damage("log-damaged")
def log_of_zeros(store: Store) -> None:
    for path in (store.data / "db").glob("log.*"):
        path.write_bytes(bytes(path.stat().st_size))


@damage("table-missing", changed=lambda names: [names.member, names.other, names.collection])
def table_removed(store: Store) -> None:
    (store.data / "db" / "memberships.db").unlink()


@damage("table-damaged", changed=lambda names: [names.member, names.other])
def page_of_a_table_spoiled(store: Store) -> None:
    path = store.data / "db" / "memberships.db"
    data = bytearray(path.read_bytes())
    data[8192 + 20 : 8192 + 26] = b"\xff" * 6
    path.write_bytes(data)


# ---- root and partitions


@damage("root-damaged")
def root_record_removed(store: Store) -> None:
    store.remove(Table.META, MetaKind.ROOT.key)


@damage("root-damaged")
def root_record_cut(store: Store) -> None:
    store.put(Table.META, MetaKind.ROOT.key, root_record(store).encode()[:50])


@damage("partition-damaged")
def partition_record_of_another_version(store: Store) -> None:
    value = b"\7" + partition(store, FIRST).encode()[1:]
    store.put(Table.PARTITIONS, partition_key(1, FIRST), value)


@damage("partition-damaged")
def partition_record_empty(store: Store) -> None:
    store.put(Table.PARTITIONS, partition_key(1, SECOND), b"")


@damage("partition-missing")
def partition_record_removed(store: Store) -> None:
    store.remove(Table.PARTITIONS, partition_key(1, SECOND))


@damage("partition-in-other-epoch")
def partition_of_a_later_epoch(store: Store) -> None:
    value = partition(store, SECOND).encode()
    store.remove(Table.PARTITIONS, partition_key(1, SECOND))
    store.put(Table.PARTITIONS, partition_key(3, SECOND), value)


@damage("partition-in-other-epoch")
def epoch_of_the_root(store: Store) -> None:
    put_root(store, epoch=9)


@damage("object-stale", changed=lambda names: [ref(SECOND, 0x10000 + n) for n in range(4)])
def partition_of_another_incarnation(store: Store) -> None:
    record = replace(partition(store, SECOND), incarnation=77)
    store.put(Table.PARTITIONS, partition_key(1, SECOND), record.encode())


@damage("key-damaged")
def odd_keys(store: Store) -> None:
    store.put(Table.OBJECTS, b"odd", b"value of an odd key")
    store.put(Table.ATTRIBUTES, b"\0" * 21, b"another")
    store.put(Table.PARTITIONS, b"p", b"third")
    store.put(Table.MEMBERS, b"\xff" * 3, b"")
    store.put(Table.JOBS, b"\x09", b"fourth")


# ---- objects


@damage("object-damaged", changed=lambda names: [names.attributed])
def object_record_of_another_version(store: Store) -> None:
    spoil(store, store.names.attributed, 0, 9)


@damage("object-damaged", changed=lambda names: [names.long])
def object_record_of_no_type(store: Store) -> None:
    spoil(store, store.names.long, 1, 0)


@damage("object-damaged", changed=lambda names: [names.plain])
def object_record_with_unknown_flags(store: Store) -> None:
    spoil(store, store.names.plain, 4, 0x80)


@damage("object-damaged")
def record_of_a_collection(store: Store) -> None:
    spoil(store, store.names.collection, 0, 0)


@damage("record-field")
def head_on_nowhere(store: Store) -> None:
    change(store, store.names.plain, head_on=7)


@damage("attribute-count")
def attribute_count_too_high(store: Store) -> None:
    change(store, store.names.attributed, attribute_count=40)


@damage("attribute-count")
def attribute_count_zero(store: Store) -> None:
    change(store, store.names.empty, attribute_count=0)


@damage("attribute-strange")
def attributes_their_objects_cannot_have(store: Store) -> None:
    """Pages of nobody and of other kinds of objects, and the number that means all."""
    names = store.names
    whole = store.place(names.plain).partition
    for obj, page, number in (
        (store.place(names.attributed), 0x4000, 9),
        (store.place(names.attributed), APPLICATION, 0xFFFF_FFFF),
        (store.place(names.empty), 0xFFFF_FFFF, 7),
        (store.place(names.collection), 0x3000_0001, 9),
        (whole, 0x10, 9),
        (whole, 0x9000_0001, 9),
        (whole.sibling(ALL_OBJECTS), 0x7FFF, 1),
        (Place(0, 1), 0xC000_0000, 1),
    ):
        store.put(Table.ATTRIBUTES, AttributeKey(obj, page, number).encode(), b"whose")


@damage("orphan-attributes", changed=lambda names: [names.attributed])
def record_removed_and_a_strange_attribute(store: Store) -> None:
    place = store.place(store.names.attributed)
    store.remove(Table.OBJECTS, place.encode())
    for key in (AttributeKey(place, 0x4001, 9), AttributeKey(place, APPLICATION, 0xFFFF_FFFF)):
        store.put(Table.ATTRIBUTES, key.encode(), b"whose")


@damage("orphan-attributes", changed=lambda names: [names.empty])
def record_removed_attributes_left(store: Store) -> None:
    store.remove(Table.OBJECTS, store.place(store.names.empty).encode())


@damage("orphan-file", changed=lambda names: [names.attributed])
def record_removed_everything_left(store: Store) -> None:
    store.remove(Table.OBJECTS, store.place(store.names.attributed).encode())


@damage("reserved-wrong")
def reserved_below_the_length(store: Store) -> None:
    change(store, store.names.plain, reserved_bytes=17)


@damage("file-short")
def length_too_high(store: Store) -> None:
    change(store, store.names.plain, length=9000, reserved_bytes=9000)


@damage("file-long")
def length_too_low(store: Store) -> None:
    change(store, store.names.long, length=10, reserved_bytes=10)


@damage("generation-wrong")
def generation_spoiled(store: Store) -> None:
    change(store, store.names.plain, generation=0x1_2345_6789)


@damage("files-not-marked")
def files_not_marked(store: Store) -> None:
    change(store, store.names.plain, flags=RecordFlag(0), length=0, reserved_bytes=0)


@damage("files-missing")
def length_without_files(store: Store) -> None:
    change(store, store.names.empty, length=500, reserved_bytes=500)


# ---- data files


@damage("files-missing", changed=lambda names: [names.plain], lossy=True)
def file_removed(store: Store) -> None:
    head_file(store, store.names.plain).unlink()


@damage("file-short", changed=lambda names: [names.plain], lossy=True)
def file_cut(store: Store) -> None:
    os.truncate(head_file(store, store.names.plain), 77)


@damage("file-long", changed=lambda names: [names.plain])
def file_grown(store: Store) -> None:
    with head_file(store, store.names.plain).open("ab") as file:
        file.write(b"more of it")


@damage("orphan-file")
def file_of_nobody(store: Store) -> None:
    name = FileName(Place(FIRST, 1, 0x77777), 0x1_0000_0042, False)
    path = store.data / "data" / name.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"whose is it")


@damage("orphan-file")
def files_of_a_partition_that_never_was(store: Store) -> None:
    for generation in (1, 2):
        name = FileName(Place(0x5_0000, 9, 0x10000), generation, False)
        path = store.data / "data" / name.path
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"generation %d" % generation)


@damage("stray-file")
def files_that_are_none(store: Store) -> None:
    (store.data / "data" / "core").write_bytes(b"dumped")
    (store.data / "data" / "a" / "b").mkdir(parents=True)
    (store.data / "data" / "a" / "b" / "c d").write_bytes(b"deep")


@damage("orphan-file")
def a_tail_of_an_object_without(store: Store) -> None:
    name = FileName(store.place(store.names.plain), 0x1_0000_0099, True)
    path = store.data / "data" / name.path
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(b"only a tail")


@damage("head-lost", changed=lambda names: [names.long], lossy=True, two_roots=True)
def head_removed(store: Store) -> None:
    head_file(store, store.names.long).unlink()


@damage("head-lost", changed=lambda names: [names.long], lossy=True, two_roots=True)
def head_cut(store: Store) -> None:
    os.truncate(head_file(store, store.names.long), 4096)


@damage("head-lost", two_roots=True)
def head_size_too_high(store: Store) -> None:
    change(store, store.names.long, head_bytes=HEAD * 4)


@damage("head-long", two_roots=True)
def head_size_too_low(store: Store) -> None:
    change(store, store.names.long, head_bytes=HEAD // 2)


@damage("head-lost", two_roots=True)
def head_size_all(store: Store) -> None:
    change(store, store.names.long, head_bytes=ALL)


@damage("head-elsewhere", two_roots=True)
def head_in_the_other_root(store: Store) -> None:
    change(store, store.names.plain, head_on=1)


@damage("file-short", changed=lambda names: [names.long], lossy=True, two_roots=True)
def tail_removed(store: Store) -> None:
    head_file(store, store.names.long, True).unlink()


@damage("orphan-file", changed=lambda names: [names.long], two_roots=True)
def record_of_head_and_tail_removed(store: Store) -> None:
    store.remove(Table.OBJECTS, store.place(store.names.long).encode())


# ---- collections


@damage("mark-missing")
def mark_removed(store: Store) -> None:
    store.remove(Table.MEMBERS, MemberKey(store.place(store.names.collection), 0).encode())


@damage("mark-stale")
def collection_record_removed(store: Store) -> None:
    store.remove(Table.OBJECTS, store.place(store.names.collection).encode())


@damage("membership-one-way")
def member_forgotten_by_the_collection(store: Store) -> None:
    store.remove(Table.MEMBERS, membership(store).encode())


@damage("member-one-way")
def collection_forgotten_by_the_member(store: Store) -> None:
    store.remove(Table.MEMBERSHIPS, membership(store).turned().encode())


@damage("member-stale")
def member_that_does_not_exist(store: Store) -> None:
    store.put(Table.MEMBERS, replace(membership(store), other_id=0x999999).encode(), b"")


@damage("member-stale")
def collection_that_does_not_exist(store: Store) -> None:
    key = replace(membership(store).turned(), other_id=0x888888)
    store.put(Table.MEMBERSHIPS, key.encode(), b"\0\0\0\7")


@damage("member-stale", changed=lambda names: [names.member, names.collection, names.second])
def member_removed(store: Store) -> None:
    store.remove(Table.OBJECTS, store.place(store.names.member).encode())


@damage("membership-number", changed=lambda names: [names.member])
def number_of_no_width(store: Store) -> None:
    store.put(Table.MEMBERSHIPS, membership(store).turned().encode(), b"abc")


# ---- counters and queues


@damage("boot-counter")
def boot_counter_removed(store: Store) -> None:
    store.remove(Table.META, MetaKind.BOOT.key)


@damage("boot-counter")
def boot_counter_too_low(store: Store) -> None:
    store.put(Table.META, MetaKind.BOOT.key, bytes(4))


@damage("next-incarnation")
def next_incarnation_too_low(store: Store) -> None:
    put_root(store, next_incarnation=1)


@damage("next-partition-id")
def next_partition_id_too_low(store: Store) -> None:
    put_root(store, next_partition_id=0x10000)


@damage("id-mark")
def id_mark_of_no_width(store: Store) -> None:
    store.put(Table.META, id_mark_key(Place(FIRST, 1)), b"\1")


@damage("id-mark")
def id_mark_too_low(store: Store) -> None:
    store.put(Table.META, dead_files_key(Place(FIRST, 1, 0x20000), 1), b"")


@damage("queue-alive")
def a_live_partition_queued(store: Store) -> None:
    place = Place(SECOND, partition(store, SECOND).incarnation)
    store.put(Table.META, dead_partition_key(place), b"")


@damage("queue-alive")
def the_live_epoch_queued(store: Store) -> None:
    store.put(Table.META, dead_epoch_key(1), b"")


@damage("queue-alive")
def live_files_queued(store: Store) -> None:
    plain = store.names.plain
    key = dead_files_key(store.place(plain), store.record(plain).generation)
    store.put(Table.META, key, b"")


@damage("queue-alive")
def live_files_as_of_an_object_being_made(store: Store) -> None:
    long = store.names.long
    key = dead_files_key(store.place(long), store.record(long).generation)
    store.put(Table.META, MetaKind.DRAFT_FILES.key + key[1:], b"")


@damage("queue-damaged")
def queue_entry_cut(store: Store) -> None:
    store.put(Table.META, b"D123", b"")


# ---- jobs


@damage("job-damaged", changed=lambda names: [names.queued])
def job_record_cut(store: Store) -> None:
    value = job(store, store.names.queued).encode()
    store.put(Table.JOBS, job_key(store.names.queued, JobKeyKind.RECORD), value[:100])


@damage("surrogate-unfinished", changed=lambda names: [names.queued])
def job_record_removed(store: Store) -> None:
    store.remove(Table.JOBS, job_key(store.names.queued, JobKeyKind.RECORD))


@damage("job-part-orphan")
def payload_of_no_job(store: Store) -> None:
    key = JobKey(JobKeyKind.PAYLOAD, JobId(FIRST, 0x55555), 1).encode()
    store.put(Table.JOBS, key, b"the result" * 6000)


@damage("surrogate-unmarked")
def mark_of_a_surrogate_removed(store: Store) -> None:
    change(store, store.names.queued, flags=RecordFlag(0))


@damage("surrogate-unfinished")
def mark_on_a_plain_object(store: Store) -> None:
    flags = RecordFlag.HAS_FILES | RecordFlag.UNFINISHED
    change(store, store.names.plain, flags=flags)


@damage("job-without-surrogate", changed=lambda names: [names.queued])
def surrogate_removed(store: Store) -> None:
    store.remove(Table.OBJECTS, store.place(store.names.queued).encode())


@damage("job-expiry-missing")
def expiry_removed(store: Store) -> None:
    expiry = job(store, store.names.ended).expiry_ms
    store.remove(Table.JOBS, job_key(store.names.ended, JobKeyKind.EXPIRY, expiry))


@damage("job-expiry-stale")
def expiry_of_another_time(store: Store) -> None:
    store.put(Table.JOBS, job_key(store.names.ended, JobKeyKind.EXPIRY, 5), b"\0")


@damage("job-key-missing")
def idempotency_key_removed(store: Store) -> None:
    store.remove(Table.JOB_KEYS, job(store, store.names.queued).idempotency_key)


@damage("job-key-stale")
def idempotency_key_of_no_job(store: Store) -> None:
    store.put(Table.JOB_KEYS, b"k" * 32, JobId(FIRST, 3).encode())


# ---- value index, commands in progress


def entry(store: Store) -> bytes:
    place = store.place(store.names.attributed)
    return IndexEntry(place, APPLICATION, 2, indexed_value(b"value 2")).encode()


@damage("index-missing")
def index_entry_removed(store: Store) -> None:
    assert entry(store) in dict(store.records(Table.INDEX))
    store.remove(Table.INDEX, entry(store))


@damage("index-superfluous")
def index_entry_of_another_value(store: Store) -> None:
    store.put(Table.INDEX, entry(store).replace(b"value", b"other"), b"")


@damage("index-superfluous")
def attribute_changed_behind_the_index(store: Store) -> None:
    key = AttributeKey(store.place(store.names.attributed), APPLICATION, 2)
    store.put(Table.ATTRIBUTES, key.encode(), b"v\0lue 3")
    store.put(Table.ATTRIBUTES, key.encode(), b"value 2")
    store.put(Table.INDEX, entry(store)[:20] + b"\0\1", b"")


@damage("index-stage")
def index_stage_spoiled(store: Store) -> None:
    key = MetaKind.INDEX.key + Place(FIRST, 1).encode()[:12] + APPLICATION.to_bytes(4, "big")
    store.put(Table.META, key, b"\xff" * 16)


@damage("index-stale")
def index_of_no_partition(store: Store) -> None:
    key = MetaKind.INDEX.key + Place(0x44444, 44).encode()[:12] + bytes(4)
    store.put(Table.META, key, b"\3" + bytes(15))


@damage("index-stale")
def index_of_a_page_that_can_have_none(store: Store) -> None:
    for page in (0, 3, 0x80, 0x3000_0001, 0xF000_0001):
        key = MetaKind.INDEX.key + Place(FIRST, 1).encode()[:12] + page.to_bytes(4, "big")
        store.put(Table.META, key, b"\3" + bytes(15))


@damage("index-superfluous")
def index_entry_of_no_index_while_all_are_made_anew(store: Store) -> None:
    place = store.place(store.names.attributed)
    for key in (replace(place, incarnation=77), place):
        other = IndexEntry(key, APPLICATION + 1, 2, indexed_value(b"value 2")).encode()
        store.put(Table.INDEX, other, b"")
    store.put(Table.META, MetaKind.INDEX_BOOT.key, b"\0\0\0\x63")


@damage("index-superfluous")
def opening_of_the_index_longer_than_a_number(store: Store) -> None:
    """The target and the tools must agree on whether the indexes are to be made anew."""
    boots = meta(store, MetaKind.BOOT.key)
    assert boots == meta(store, MetaKind.INDEX_BOOT.key)
    store.put(Table.META, MetaKind.INDEX_BOOT.key, boots + b"\1")
    store.remove(Table.INDEX, entry(store))
    place = store.place(store.names.attributed)
    other = IndexEntry(place, APPLICATION + 1, 2, indexed_value(b"value 2")).encode()
    store.put(Table.INDEX, other, b"")


@damage("command-damaged")
def command_of_no_collection(store: Store) -> None:
    store.put(Table.COMMANDS, Place(FIRST, 1, 0x66666).encode() + b"\0", b"\1" + bytes(39))


@damage("command-damaged")
def command_of_no_partition(store: Store) -> None:
    place = replace(store.place(store.names.collection), incarnation=99)
    store.put(Table.COMMANDS, place.encode() + b"\0", b"\1" + bytes(39))


def key_record(kind: KeyKind, place: Place, version: int = 0) -> tuple[bytes, bytes]:
    return KeyName(place, kind, version).encode(), b"\1initial" + bytes(92)


@damage("key-record-damaged")
def keys_of_no_partition_and_of_no_kind(store: Store) -> None:
    store.put(Table.KEYS, *key_record(KeyKind.WORKING, Place(0x66666, 1), 3))
    store.put(Table.KEYS, b"\0" * 12 + b"\7\0", b"")
    store.put(Table.KEYS, KeyName(Place(0, 0), KeyKind.NONCES, 0).encode(), b"\1short")


@damage("key-without-seal")
def keys_whose_seal_is_gone(store: Store) -> None:
    store.put(Table.KEYS, *key_record(KeyKind.MASTER, Place(0, 0)))
    store.put(Table.KEYS, *key_record(KeyKind.PARTITION, Place(FIRST, 1)))
