# SPDX-License-Identifier: GPL-2.0-or-later
"""Damages to a store, their register, and the tools that make them.

Not here: the damages (damages.py).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.jobs import JobId, JobKey, JobKeyKind, JobRecord
from iosd_host.store_tools.format.records import (
    MemberKey,
    MetaKind,
    PartitionRecord,
    RootRecord,
    partition_key,
)
from iosd_host.store_tools.opening.bdb import Table
from pyosd.types import ObjectRef
from tests.offline.stores import Names, Store

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
    """Key of the member in the collection, in the form of members.db."""
    names = store.names
    return MemberKey(store.place(names.collection), names.member.object_id)
