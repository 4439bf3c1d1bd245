# SPDX-License-Identifier: GPL-2.0-or-later
"""A store with one of everything, made by the real target; what clients see of it; its own database.

Lives here: building, opening again, comparing.  Not here: damage (test_damage.py).
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import shutil
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import click

from iosd_host.cli import store as commands
from iosd_host.store_tools.format.records import ObjectRecord, Place
from iosd_host.store_tools.opening.bdb import StoreDatabase, Table
from iosd_host.store_tools.opening.folders import copy_file
from pyosd.commands import Commands
from pyosd.jobs import submit
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from tests.harness import Harness, program
from tests.offline.tool_process import Done, run_apart, run_here
from tests.waiting import until

HEAD = 2 << 20
APPLICATION, USERNAME, COLLECTIONS = 0x1_0000, (1, 9), 4
ALL = 0xFFFF_FFFF
INDEX = 0x5000_0001
FIRST, SECOND = PartitionId(0x10000), PartitionId(0x10001)


@dataclass(frozen=True)
class Names:
    """Objects of the store, by what they are."""

    plain: ObjectRef
    attributed: ObjectRef
    empty: ObjectRef
    long: ObjectRef
    sparse: ObjectRef
    member: ObjectRef
    other: ObjectRef
    collection: ObjectRef
    second: ObjectRef
    queued: ObjectRef
    ended: ObjectRef


@dataclass
class Seen:
    """A client's view of an object: bytes, attributes, collections or members."""

    data: bytes = b""
    attributes: dict[tuple[int, int], bytes] = field(default_factory=dict)
    related: tuple[int, ...] = ()


Snapshot = dict[ObjectRef, Seen]


@dataclass
class Store:
    """A folder with a store; heads are in another if it has two roots."""

    folder: Path
    two_roots: bool
    names: Names

    @property
    def data(self) -> Path:
        return self.folder / "store"

    @property
    def ssd(self) -> Path | None:
        return self.folder / "ssd" if self.two_roots else None

    @property
    def roots(self) -> list[Path]:
        return [self.data, *filter(None, [self.ssd])]

    def copy(self, folder: Path) -> Store:
        # The ballast is 64 MiB, and made again when the target finds it gone.
        ignored = shutil.ignore_patterns("ballast")
        shutil.copytree(
            self.folder, folder, dirs_exist_ok=True, ignore=ignored, copy_function=copied
        )
        return Store(folder, self.two_roots, self.names)

    @contextlib.contextmanager
    def serve(self) -> Iterator[Commands]:
        harness = started(self.folder, self.two_roots)
        try:
            yield harness.osd
        finally:
            harness.finish()

    @contextlib.contextmanager
    def database(self) -> Iterator[StoreDatabase]:
        """The database itself, as nobody but a test may open it."""
        with StoreDatabase(self.data / "db") as database:
            yield database

    def put(self, table: Table, key: bytes, value: bytes) -> None:
        with self.database() as database, database.transaction() as transaction:
            transaction.put(table, key, value)

    def remove(self, table: Table, key: bytes) -> None:
        with self.database() as database, database.transaction() as transaction:
            transaction.remove(table, key)

    def records(self, table: Table) -> list[tuple[bytes, bytes]]:
        with self.database() as database:
            return list(database.walk(table))

    def place(self, obj: ObjectRef) -> Place:
        """With the partition's incarnation."""
        for key, _ in self.records(Table.OBJECTS):
            place = Place.of_object_key(key)
            if (place.partition_id, place.object_id) == (obj.partition_id, obj.object_id):
                return place
        raise AssertionError(f"{obj} has no record")

    def record(self, obj: ObjectRef) -> ObjectRecord:
        with self.database() as database:
            value = database.get(Table.OBJECTS, self_key(database, obj))
        assert value is not None
        return ObjectRecord.decode(value)

    def digest(self) -> dict[str, str]:
        """Every file of all roots, with its bytes, length and time."""
        found = {}
        for root in self.roots:
            for path in sorted(root.rglob("*")):
                info = path.lstat()
                text = "folder"
                if path.is_file():
                    text = hashlib.sha256(path.read_bytes()).hexdigest()
                    text += f" {info.st_size} {info.st_mtime_ns}"
                found[str(path)] = text
        return found

    # ---- the tools

    def run(self, command: click.Command, *words: str, here: bool = False) -> Done:
        """here: in this process, parts of which a test has replaced."""
        argv = [*words, "--data", str(self.data)]
        if self.ssd:
            argv += ["--ssd", str(self.ssd)]
        argv += ["--work", str(self.folder)]
        assert command.name is not None
        return (run_here if here else run_apart)(command.name, argv)

    def check(self) -> list[dict[str, Any]]:
        """The errors check finds; its exit code says whether there are any."""
        result = self.run(commands.check, "--json")
        *problems, summary = map(json.loads, result.stdout.splitlines())
        assert summary["schema"] == "iosd.store-check/1"
        errors = [each for each in problems if each["error"]]
        assert summary["errors"] == len(errors)
        assert result.exit_code == (65 if errors else 0)
        return errors

    def kinds(self) -> set[str]:
        return {each["kind"] for each in self.check()}

    def repair(self) -> list[dict[str, Any]]:
        """Actions of repair, which must have repaired everything."""
        result = self.run(commands.repair, "--json", "--yes")
        *problems, summary = map(json.loads, result.stdout.splitlines())
        assert result.exit_code == 0, result.output
        assert summary["left"] == 0
        return problems


def copied(source: str, target: str) -> None:
    copy_file(Path(source), Path(target))
    shutil.copystat(source, target)


def self_key(database: StoreDatabase, obj: ObjectRef) -> bytes:
    for key, _ in database.walk(Table.OBJECTS, int(obj.partition_id).to_bytes(8, "big")):
        if Place.of_object_key(key).object_id == obj.object_id:
            return key
    raise AssertionError(f"{obj} has no record")


def started(folder: Path, two_roots: bool, target: Path | None = None) -> Harness:
    """The target, today's unless another is given; there is no iosd-sandboxd, so that jobs wait."""
    options: dict[str, object] = {"dir": folder / "store", "sandboxd": folder / "absent"}
    if two_roots:
        (folder / "ssd").mkdir(exist_ok=True)
        options["ssd"] = folder / "ssd"
    return Harness(target or program(), options, folder / "log")


def filled(length: int, seed: int) -> bytes:
    block = bytes((seed * 31 + at * 7) % 251 + 1 for at in range(4093))
    return (block * (length // len(block) + 1))[:length]


def build(folder: Path, two_roots: bool, target: Path | None = None, indexes: bool = True) -> Store:
    """Make one of everything, and close it in order; an earlier target may have no indexes."""
    harness = started(folder, two_roots, target)
    osd = harness.osd
    assert osd.create_partition() == FIRST and osd.create_partition() == SECOND
    plain = osd.create(FIRST)
    osd.write(plain, 0, filled(5000, 1))
    attributed = osd.create(FIRST)
    osd.write(attributed, 0, filled(100, 2))
    values = [AttributeValue(APPLICATION, n, f"value {n}".encode()) for n in range(1, 6)]
    osd.set_attributes(attributed, [*values, AttributeValue(*USERNAME, b"attributed")])
    empty = osd.create(FIRST)
    osd.set_attributes(empty, [AttributeValue(0xF000_0001, 7, b"x" * 3000)])
    long = osd.create(FIRST)
    osd.write(long, 0, filled(HEAD + 70_000, 3))
    sparse = osd.create(FIRST)
    osd.write(sparse, HEAD + 12345, filled(300, 4))
    collection = osd.create_collection(FIRST)
    second = osd.create_collection(FIRST)
    member, other = osd.create(FIRST), osd.create(FIRST)
    for each, where in ((member, (collection, second)), (other, (collection,))):
        osd.set_attributes(
            each,
            [
                AttributeValue(COLLECTIONS, n + 1, int(at.object_id).to_bytes(8, "big"))
                for n, at in enumerate(where)
            ],
        )
    osd.set_attributes(ref(FIRST), [AttributeValue(0x3000_0001, 9, b"first")])
    gone = osd.create(FIRST)
    osd.remove(gone)
    for n in range(4):
        each = osd.create(SECOND)
        osd.write(each, 0, filled(2000 + n, 10 + n))
        osd.set_attributes(each, [AttributeValue(APPLICATION, 1, bytes([n + 1]) * 40)])
    queued = submit(osd, "print(1)", zone=ref(FIRST), key=b"key 1", name="waits")
    ended = submit(osd, "print(2)", zone=ref(FIRST), key=b"key 2", tags={"a": "b"})
    assert ended.cancel()
    if indexes:
        index(osd, FIRST, APPLICATION)
        index(osd, SECOND, 1)
    osd.flush_osd()
    harness.finish()
    names = Names(
        plain,
        attributed,
        empty,
        long,
        sparse,
        member,
        other,
        collection,
        second,
        queued.id,
        ended.id,
    )
    return Store(folder, two_roots, names)


def index(osd: Commands, partition_id: int, page: int) -> None:
    """Have an index of a page, and wait until it is ready."""
    osd.set_attributes(ref(partition_id), [AttributeValue(INDEX, page, b"\1")])
    until(lambda: osd.get_attribute(ref(partition_id), INDEX, page) == b"\2")


def look(osd: Commands) -> Snapshot:
    """All a client can see, but for times and what the target computes."""
    found: Snapshot = {}
    for partition_id in osd.list_partitions():
        if partition_id >= 1 << 62:
            continue
        jobs: set[ObjectRef] = set()
        for at in osd.list_collections(partition_id):
            members = osd.list_members(at)
            if at.object_id >= FIRST:
                found[at] = Seen(related=tuple(int(each.object_id) for each in members))
            else:  # of jobs, which stand apart from the other objects
                jobs.update(members)
        for obj in sorted({*osd.list_objects(partition_id), *jobs}):
            found[obj] = look_at(osd, obj)
    return found


def look_at(osd: Commands, obj: ObjectRef) -> Seen:
    length = int.from_bytes(osd.get_attribute(obj, 1, 0x82), "big")
    data = b"".join(bytes(osd.read(obj, at, 1 << 20)) for at in range(0, length, 1 << 20))
    attributes = {
        (each.page, each.number): each.value
        for each in osd.get_attributes(obj, [AttributeId(ALL, ALL)])
        if each.page >= 0x10000
        and each.page not in (0x2000_0001, 0x2000_0003, 0x2000_0004, 0x2000_0005, 0xFFFF_FFFE)
        and each.value
    }
    name = osd.get_attribute(obj, *USERNAME)
    if name:
        attributes[USERNAME] = name
    joined = osd.get_attributes(obj, [AttributeId(COLLECTIONS, ALL)])
    related = tuple(each.uint for each in joined if each.number and each.value)
    return Seen(data, attributes, related)


def lost(osd: Commands) -> dict[str, Seen]:
    """Contents of lost+found, by name."""
    partition = 0x7FFF_FFFF_0000_0001
    if partition not in osd.list_partitions():
        return {}
    found = [look_at(osd, each) for each in osd.list_objects(PartitionId(partition))]
    names = [each.attributes.get(USERNAME, b"?").decode() for each in found]
    assert len(set(names)) == len(names), names
    return dict(zip(names, found, strict=True))


def everything(osd: Commands) -> Sequence[bytes]:
    """Data of all objects, in lost+found too."""
    return [each.data for each in (*look(osd).values(), *lost(osd).values())]
