# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages to records of the root, partitions, objects, collections; counters and queues."""

from __future__ import annotations

from dataclasses import replace

from iosd_host.store_tools.format.records import (
    ALL_OBJECTS,
    AttributeKey,
    MemberKey,
    MetaKind,
    Place,
    RecordFlag,
    dead_epoch_key,
    dead_files_key,
    dead_partition_key,
    id_mark_key,
    partition_key,
)
from iosd_host.store_tools.opening.bdb import Table
from pyosd.types import ref
from tests.offline.damage import (
    change,
    damage,
    membership,
    partition,
    put_root,
    root_record,
    spoil,
)
from tests.offline.stores import APPLICATION, FIRST, SECOND, Store


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


@damage("attribute-count")
def attribute_units_too_few(store: Store) -> None:
    change(store, store.names.attributed, attribute_units=1)


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


@damage("boot-counter")
def version_of_a_later_opening(store: Store) -> None:
    change(store, store.names.plain, version_opening=1 << 20)


@damage("versions-damaged")
def versions_of_another_length(store: Store) -> None:
    store.put(Table.META, MetaKind.VERSIONS.key, b"\x01")


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
