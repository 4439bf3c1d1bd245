# SPDX-License-Identifier: GPL-2.0-or-later
"""Compares data with its checksums: every byte is read, at most so many a second."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from pathlib import Path

from iosd_host.common.whole_file import open_file
from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.records import (
    FormatError,
    MetaKind,
    ObjectRecord,
    Place,
    RecordFlag,
    RecordType,
)
from iosd_host.store_tools.format.sums import BLOCK, SumsHeader, SumsRun, block_crcs, current_run
from iosd_host.store_tools.format.superblock import FEATURE_SUMS
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life, Store, StoreProgress

__all__ = ["Pace", "check_sums", "keeps_sums", "trusted_epoch"]

BATCH = 256
"""Blocks read at a time."""
UNKNOWN = bytes(4)
ZERO_CRC = b"\xff" * 4
"""Substitute for a sum that happens to be 0."""


@dataclass
class Pace:
    """At most rate bytes a second; 0: as fast as it goes."""

    rate: int = 0
    read: int = 0
    began: float = field(default_factory=time.monotonic)

    def wait(self, count: int) -> None:
        """After so many bytes were read."""
        self.read += count
        if not self.rate:
            return
        ahead = self.read / self.rate - (time.monotonic() - self.began)
        if ahead > 0:
            time.sleep(ahead)


def keeps_sums(store: Store) -> bool:
    """Whether the store has checksums at all."""
    block = store.roots.main.superblock
    return block is not None and bool(block.features & FEATURE_SUMS)


def trusted_epoch(store: Store) -> int | None:
    """Epoch whose unsealed files have valid sums. None: no epoch has, because the machine restarted
    before the store was closed, or the store is a copy made while it was open."""
    try:
        run = SumsRun.decode(store.db.get(Table.META, MetaKind.SUMS.key) or b"")
    except FormatError:
        return None
    clean = store.db.get(Table.META, MetaKind.CLEAN.key) is not None
    same = (run.boot, run.device, run.inode) == current_run(store.roots.main.data)
    return run.epoch if clean or (same and any(run.boot)) else None


def check_sums(store: Store, pace: Pace, progress: StoreProgress) -> Iterator[Problem]:
    """All data of all objects."""
    if not keeps_sums(store):
        return
    epoch = trusted_epoch(store)
    total = store.db.count(Table.OBJECTS)
    for number, (key, value) in enumerate(store.db.walk(Table.OBJECTS)):
        progress("checksums", number, total)
        try:
            place, record = Place.decode(key), ObjectRecord.decode(value)
        except (FormatError, ValueError):
            continue  # a problem of its own
        if record.type is not RecordType.USER_OBJECT or store.life(place) is not Life.LIVE:
            continue
        if record.flags & RecordFlag.HAS_FILES and record.head_in < 2:
            yield from check_object_sums(store, place, record, epoch, pace)


def check_object_sums(
    store: Store, place: Place, record: ObjectRecord, epoch: int | None, pace: Pace
) -> Iterator[Problem]:
    """Head and tail."""
    head = FileName(place, record.generation, False)
    for name, shift in ((head, 0), (replace(head, tail=True), record.head_bytes)):
        root = store.root_of(name.tail, record.head_in)
        data, sums = root.data / name.path, root.data / name.sums_path
        try:
            yield from compare(place, data, sums, shift, epoch, pace)
        except FileNotFoundError:
            continue
        except OSError as error:
            yield Problem(ProblemKind.UNREADABLE, str(place), str(error))


def compare(
    place: Place, data: Path, sums: Path, shift: int, epoch: int | None, pace: Pace
) -> Iterator[Problem]:
    """One file with its sums; shift: of its first byte in the object.  Raises: OSError."""
    with os.fdopen(open_file(sums), "rb") as known, os.fdopen(open_file(data), "rb", 0) as file:
        begin = known.read(SumsHeader.BYTES)
        if not begin:
            return
        try:
            header = SumsHeader.decode(begin)
        except FormatError as error:
            yield Problem(ProblemKind.SUMS_DAMAGED, str(sums), str(error), subject=sums)
            return
        if not header.sealed and header.epoch != epoch:
            return
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
        for first, count in damaged_blocks(file.fileno(), known.fileno(), pace):
            start = shift + first * BLOCK
            detail = f"bytes {start} to {start + count * BLOCK - 1} differ from their checksums"
            yield Problem(ProblemKind.BLOCK_DAMAGED, str(place), detail, subject=place)


def damaged_blocks(data: int, sums: int, pace: Pace) -> Iterator[tuple[int, int]]:
    """First and number of blocks in a row."""
    block, run = 0, 0
    while wanted := os.pread(sums, BATCH * 4, SumsHeader.BYTES + block * 4):
        wanted = wanted[: len(wanted) // 4 * 4]
        bad = differing(data, block, wanted, pace) if any(wanted) else []
        for at in range(len(wanted) // 4):
            if at in bad:
                run += 1
            elif run:
                yield block + at - run, run
                run = 0
        block += len(wanted) // 4
        if len(wanted) < BATCH * 4:
            break
    if run:
        yield block - run, run


def differing(data: int, first: int, wanted: bytes, pace: Pace) -> list[int]:
    """Blocks, from first on, that differ from their sums."""
    length = len(wanted) // 4 * BLOCK
    piece = os.pread(data, length, first * BLOCK)
    pace.wait(len(piece))
    found = block_crcs(piece.ljust(length, b"\0"))
    if found == wanted:
        return []
    pairs = ((found[at : at + 4], wanted[at : at + 4]) for at in range(0, len(wanted), 4))
    return [
        number
        for number, (is_, said) in enumerate(pairs)
        if said not in (UNKNOWN, is_ if any(is_) else ZERO_CRC)
    ]
