# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages to what commands keep beside objects: jobs, value indexes, commands in progress, keys."""

from __future__ import annotations

from dataclasses import replace

from iosd_host.store_tools.format.indexes import IndexEntry, indexed_value
from iosd_host.store_tools.format.jobs import JobId, JobKey, JobKeyKind
from iosd_host.store_tools.format.keys import KeyKind, KeyName
from iosd_host.store_tools.format.records import AttributeKey, MetaKind, Place, RecordFlag
from iosd_host.store_tools.opening.bdb import Table
from tests.offline.damage import (
    change,
    damage,
    job,
    job_key,
    meta,
)
from tests.offline.stores import APPLICATION, FIRST, Store


@damage("job-damaged", changed=lambda names: [names.queued])
def job_record_cut(store: Store) -> None:
    value = job(store, store.names.queued).encode()
    store.put(Table.JOBS, job_key(store.names.queued, JobKeyKind.RECORD), value[:100])


@damage("surrogate-unfinished", changed=lambda names: [names.queued])
def job_record_removed(store: Store) -> None:
    store.remove(Table.JOBS, job_key(store.names.queued, JobKeyKind.RECORD))


@damage("job-charge")
def job_charged_too_much(store: Store) -> None:
    record = replace(job(store, store.names.queued), charged=1 << 40)
    store.put(Table.JOBS, job_key(store.names.queued, JobKeyKind.RECORD), record.encode())


@damage("job-companion-stale")
def companion_of_no_job(store: Store) -> None:
    key = JobKey(JobKeyKind.COMPANION, JobId(FIRST, 0x55555)).encode()
    store.put(Table.JOBS, key, (0x44444).to_bytes(8, "big"))


@damage("job-companion-missing")
def companion_forgotten(store: Store) -> None:
    record = job(store, store.names.ended)
    numbers = record.numbers | {"result_object": int(store.names.plain.object_id)}
    value = replace(record, numbers=numbers).encode()
    store.put(Table.JOBS, job_key(store.names.ended, JobKeyKind.RECORD), value)


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


# ---- value index, commands in progress, keys


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
