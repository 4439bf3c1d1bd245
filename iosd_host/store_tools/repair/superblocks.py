# SPDX-License-Identifier: GPL-2.0-or-later
"""Repairs superblocks, and finds out whether directories are of one store."""

from __future__ import annotations

import secrets
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

from iosd_host.common.whole_file import read_small
from iosd_host.store_tools.check.problems import Problem
from iosd_host.store_tools.format.records import (
    ALL,
    FormatError,
    MetaKind,
    ObjectRecord,
    Place,
    RecordFlag,
    RecordType,
)
from iosd_host.store_tools.format.superblock import FEATURE_SUMS, RootRole, Superblock
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.folders import Root, write_superblock
from iosd_host.store_tools.opening.store import Life, Store
from iosd_host.store_tools.opening.tables import place_in
from iosd_host.store_tools.repair.context import RepairContext
from iosd_host.store_tools.repair.lost_and_found import now_ms

__all__ = ["SET_ASIDE", "store_id", "superblock", "why_not"]


SET_ASIDE = "set-aside"
"""Folder in the main root for what was replaced."""
DEFAULT_HEAD_BYTES = 2 << 20
SAMPLE = 1000


def superblock(context: RepairContext, problem: Problem) -> str | None:
    """Make it from the superblock of the other root, or from its own readable fields."""
    root: Root = problem.subject
    roots = context.store.roots
    path = root.path / "superblock"
    raw = read_small(path, Superblock.READ) if path.exists() else b""
    other = roots.heads if root is roots.main else roots.main
    if other is not None and other.superblock is not None:
        block = replace(other.superblock, role=root.role)
    else:
        block = guessed_superblock(context.store, root.role, raw)
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


def store_id(context: RepairContext, problem: Problem) -> str | None:
    """The SSD directory is taken for this store's if it holds every head, of the right size."""
    heads: Root = problem.subject
    main = context.store.roots.main.superblock
    if main is None or heads.superblock is None or not heads_fit(context.store):
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
    """The reason why the two directories cannot be of one store; "": they can, or both have superblocks,
    which name their store.

    With wrong directories nearly every object would look damaged.
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
