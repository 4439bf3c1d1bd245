# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds value indexes that do not say what the attributes say."""

from __future__ import annotations

from collections.abc import Iterator

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.indexes import (
    IndexEntry,
    IndexStage,
    indexed_value,
    is_indexed,
    may_have_index,
    parse_index_stage,
)
from iosd_host.store_tools.format.records import (
    AttributeKey,
    FormatError,
    MetaKind,
    Place,
    RecordType,
)
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life, Store, StoreProgress

__all__ = ["check_index"]

TELL_EVERY = 1024


def check_index(store: Store, progress: StoreProgress) -> Iterator[Problem]:
    """Stages, then entries, then attributes of declared pages."""
    yield from check_stages(store)
    db = store.db
    boots = db.get(Table.META, MetaKind.BOOT.key)
    # Else a release without indexes had the store: the target builds all that are declared anew.
    is_kept = boots is not None and boots == db.get(Table.META, MetaKind.INDEX_BOOT.key)
    yield from check_entries(store, is_kept, progress)
    if not is_kept:
        return
    for key, _ in db.walk(Table.META, MetaKind.INDEX.key):
        try:
            place, page = parse_index_stage(key)
        except FormatError:
            continue
        yield from check_attributes(store, place, page, progress)


def stage_of(store: Store, place: Place, page: int) -> IndexStage | None:
    """Of a page of a live partition; None: not declared."""
    key = MetaKind.INDEX.key + place.encode()[:12] + page.to_bytes(4, "big")
    value = store.db.get(Table.META, key)
    try:
        return IndexStage.decode(value) if value is not None else None
    except FormatError:
        return None


def check_stages(store: Store) -> Iterator[Problem]:
    """The records of declared pages."""
    for key, value in store.db.walk(Table.META, MetaKind.INDEX.key):
        where = f"meta.db {key.hex()}"
        try:
            place, page = parse_index_stage(key)
        except FormatError as error:
            yield Problem(ProblemKind.INDEX_STALE, where, str(error), Table.META, key)
            continue
        where = f"{place} page {page:#x}"
        if store.life(place) is Life.UNKNOWN or not may_have_index(page):
            yield Problem(ProblemKind.INDEX_STALE, where, "", Table.META, key)
            continue
        try:
            IndexStage.decode(value)
        except FormatError as error:
            yield Problem(ProblemKind.INDEX_STAGE, where, str(error), Table.META, key)


def check_entries(store: Store, is_kept: bool, progress: StoreProgress) -> Iterator[Problem]:
    """index.db: each entry is on a declared page and, where these are kept, has its attribute."""
    total = store.db.count(Table.INDEX)
    for number, (key, _) in enumerate(store.db.walk(Table.INDEX)):
        if number % TELL_EVERY == 0:
            progress("index", number, total)
        try:
            entry = IndexEntry.decode(key)
        except FormatError as error:
            where = f"index.db {key.hex()}"
            yield Problem(ProblemKind.INDEX_SUPERFLUOUS, where, str(error), Table.INDEX, key)
            continue
        if store.life(entry.place) is Life.DEAD:
            continue
        stage = stage_of(store, entry.place, entry.page)
        if stage is not None and not (is_kept and stage.keeps):
            continue
        attribute = AttributeKey(entry.place, entry.page, entry.number)
        value = store.db.get(Table.ATTRIBUTES, attribute.encode())
        if stage is None or value is None or indexed_value(value) != entry.value:
            where = f"{entry.place} {entry.page:#x}/{entry.number:#x}"
            yield Problem(ProblemKind.INDEX_SUPERFLUOUS, where, "", Table.INDEX, key)


def check_attributes(
    store: Store, partition: Place, page: int, progress: StoreProgress
) -> Iterator[Problem]:
    """Each attribute of a declared page has its entry."""
    stage = stage_of(store, partition, page)
    if stage is None or not stage.keeps or store.life(partition) is not Life.LIVE:
        return
    total = store.db.count(Table.ATTRIBUTES)
    prefix = partition.encode()[:12]
    for number, (key, value) in enumerate(store.db.walk(Table.ATTRIBUTES, prefix)):
        if number % TELL_EVERY == 0:
            progress(f"attributes of page {page:#x}", number, total)
        if len(key) != AttributeKey.BYTES or key[20:24] != page.to_bytes(4, "big"):
            continue
        attribute = AttributeKey.decode(key)
        place = attribute.place
        if not is_indexed(page, attribute.number) or not stage.has(
            place.object_id, attribute.number
        ):
            continue
        entry = IndexEntry(place, page, attribute.number, indexed_value(value)).encode()
        if store.db.get(Table.INDEX, entry) is not None:
            continue
        if store.intact(place, RecordType.USER_OBJECT) is not None:
            where = f"{place} {page:#x}/{attribute.number:#x}"
            yield Problem(ProblemKind.INDEX_MISSING, where, "", Table.INDEX, entry)
