# SPDX-License-Identifier: GPL-2.0-or-later
"""Stores that earlier states of iosd wrote, kept in earlier/: what they hold, and how they were made.

``python -m tests.offline.earlier HARNESS ARCHIVE [--two-roots] [--no-indexes]`` has the osd_harness of an
earlier commit make one of everything, looks at it, and packs store and looks.  Those that are kept:

    before-indexes.tar.xz   no value indexes, job records of version 1, all bytes in one root
    before-arrays.tar.xz    value indexes, job records of version 2, heads in a second root
    before-charges.tar.xz   job records of version 4, object records that do not say how much their
                            attributes are
    before-tags.tar.xz      job records of version 5, one order of fields; heads in a second root

Whoever changes what stands on disk so that the target before it would not understand it adds one, made by
the commit before.
"""

from __future__ import annotations

import argparse
import json
import tarfile
import tempfile
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

from iosd_host.store_tools.format.jobs import JobKey, JobKeyKind, JobRecord
from iosd_host.store_tools.opening.bdb import Table
from pyosd.types import ObjectId, ObjectRef, PartitionId
from tests.offline.stores import Names, Seen, Snapshot, Store, build, look, started

__all__ = ["ARCHIVES", "unpack"]

FOLDER = Path(__file__).with_name("earlier")
ARCHIVES = sorted(FOLDER.glob("*.tar.xz"))
SEEN = "seen.json"
EXPIRY = slice(70, 78)  # of a job record of these versions


def written(seen: Snapshot, names: Names) -> dict[str, Any]:
    """As JSON."""
    return {
        "names": {key: [each.partition_id, each.object_id] for key, each in vars(names).items()},
        "objects": [
            {
                "id": [obj.partition_id, obj.object_id],
                "data": each.data.hex(),
                "attributes": [[*key, value.hex()] for key, value in each.attributes.items()],
                "related": each.related,
            }
            for obj, each in seen.items()
        ],
    }


def reference(pair: list[int]) -> ObjectRef:
    """Of an object."""
    return ObjectRef(PartitionId(pair[0]), ObjectId(pair[1]))


def unpack(archive: Path, folder: Path) -> tuple[Store, Snapshot]:
    """The store, and what a client of the target that wrote it saw."""
    with tarfile.open(archive) as tar:
        tar.extraction_filter = lambda member, _: member  # ours; Python 3.11.2 has no filters
        tar.extractall(folder)
    found = json.loads((folder / SEEN).read_text())
    names = Names(**{key: reference(pair) for key, pair in found["names"].items()})
    seen = {
        reference(each["id"]): Seen(
            bytes.fromhex(each["data"]),
            {(page, number): bytes.fromhex(value) for page, number, value in each["attributes"]},
            tuple(each["related"]),
        )
        for each in found["objects"]
    }
    store = Store(folder, (folder / "ssd").exists(), names)
    keep_jobs(store)
    return store, seen


def keep_jobs(store: Store) -> None:
    """Let ended jobs expire a day from now: the archives are older than jobs are kept."""
    expiry = int(time.time() * 1000) + 86_400_000
    for key, value in store.records(Table.JOBS):
        parsed = JobKey.decode(key)
        if parsed.kind is JobKeyKind.EXPIRY:
            store.remove(Table.JOBS, key)
            store.put(Table.JOBS, replace(parsed, number=expiry).encode(), value)
        elif parsed.kind is JobKeyKind.RECORD and JobRecord.decode(value).numbers["expiry_ms"]:
            changed = value[: EXPIRY.start] + expiry.to_bytes(8, "big") + value[EXPIRY.stop :]
            assert JobRecord.decode(changed).numbers["expiry_ms"] == expiry
            store.put(Table.JOBS, key, changed)


def make(harness: Path, archive: Path, two_roots: bool, indexes: bool) -> None:
    """Write the archive."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = build(folder, two_roots, harness, indexes)
        again = started(folder, two_roots, harness)
        seen = look(again.osd)
        again.finish()
        (folder / SEEN).write_text(json.dumps(written(seen, store.names)))
        with tarfile.open(archive, "w:xz", preset=9) as tar:
            for path in [*store.roots, folder / SEEN]:
                tar.add(path, path.name, filter=bare)


def bare(each: tarfile.TarInfo) -> tarfile.TarInfo | None:
    """Without the ballast, which is made again, and without who made it."""
    each.uid = each.gid = 0
    each.uname = each.gname = ""
    return None if each.name.endswith("/ballast") else each


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("harness", type=Path)
    parser.add_argument("archive", type=Path)
    parser.add_argument("--two-roots", action="store_true")
    parser.add_argument("--no-indexes", action="store_true")
    given = parser.parse_args()
    make(given.harness, given.archive, given.two_roots, not given.no_indexes)
