# SPDX-License-Identifier: GPL-2.0-or-later
"""The drain of the SSD and the way back, while everything else goes on: against a model, across crashes."""

from __future__ import annotations

import os
import random
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli import store as tools
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH
from pyosd.wire.cdb import Options
from tests.harness import Harness, program
from tests.tiers.placement import (
    DRAIN,
    HDD,
    HEAD_ON,
    ON_HDD,
    ON_SSD,
    RATE,
    SSD,
    check_store,
    files,
    head,
    heads,
    set_heads,
    store_folders,
)
from tests.waiting import until

HEAD = 16 << 10
OBJECTS = 12
STEPS = 400
MOST = 5 * HEAD


@pytest.fixture
def harness(tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[Harness]:
    """By the page cache, or as a test's parameter says."""
    (tmp_path / "ssd").mkdir()
    options = {"dir": tmp_path / "data", "ssd": tmp_path / "ssd", "head_size": HEAD}
    options["io"] = getattr(request, "param", "cached")
    made = Harness(program(), options, tmp_path / "log")
    yield made
    made.finish()


class World:
    """Objects and what they must hold; each step changes both."""

    def __init__(self, osd: Commands, rng: random.Random) -> None:
        self.osd, self.rng = osd, rng
        self.partition = osd.create_partition()
        self.objects: dict[ObjectRef, bytearray] = {}

    def step(self) -> None:
        """One command on one object, as it comes."""
        kinds = ("make", "write", "write", "append", "cut", "punch", "clear", "copy", "remove")
        kind = self.rng.choice(kinds)
        if kind == "make" or len(self.objects) < 3:
            data = self.rng.randbytes(self.rng.randrange(MOST))
            self.objects[self.osd.create_and_write(self.partition, data)] = bytearray(data)
            return
        obj = self.rng.choice(list(self.objects))
        getattr(self, kind)(obj, self.objects[obj])
        if len(self.objects) > OBJECTS:
            self.remove(*next(iter(self.objects.items())))

    def write(self, obj: ObjectRef, data: bytearray) -> None:
        at, new = self.rng.randrange(MOST), self.rng.randbytes(self.rng.randrange(1, HEAD))
        data.extend(bytes(max(at + len(new) - len(data), 0)))
        data[at : at + len(new)] = new
        self.osd.write(obj, at, new, options=Options(fua=self.rng.random() < 0.1))

    def append(self, obj: ObjectRef, data: bytearray) -> None:
        new = self.rng.randbytes(self.rng.randrange(1, HEAD))
        assert self.osd.append(obj, new) == len(data)
        data += new

    def cut(self, obj: ObjectRef, data: bytearray) -> None:
        length = self.rng.randrange(MOST)
        data.extend(bytes(max(length - len(data), 0)))
        del data[length:]
        self.osd.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, length.to_bytes(8, "big"))])

    def punch(self, obj: ObjectRef, data: bytearray) -> None:
        at = self.rng.randrange(len(data) + 1)
        length = self.rng.randrange(1, HEAD)
        del data[at : at + length]
        self.osd.punch(obj, at, length)

    def clear(self, obj: ObjectRef, data: bytearray) -> None:
        at, length = self.rng.randrange(MOST), self.rng.randrange(1, HEAD)
        data.extend(bytes(max(at + length - len(data), 0)))
        data[at : at + length] = bytes(length)
        self.osd.clear(obj, at, length)

    def copy(self, obj: ObjectRef, data: bytearray) -> None:
        self.objects[self.osd.copy(obj, self.partition)] = bytearray(data)

    def remove(self, obj: ObjectRef, data: bytearray) -> None:
        self.osd.remove(obj)
        del self.objects[obj]

    def look(self, obj: ObjectRef) -> None:
        assert self.osd.read(obj, 0, 2 * MOST + HEAD) == self.objects[obj]

    def look_at_all(self) -> None:
        for obj in self.objects:
            self.look(obj)
        assert {*self.osd.list_objects(self.partition)} == self.objects.keys()


@pytest.mark.parametrize("harness", ["cached", "direct"], indirect=True)
def test_model_while_heads_move(harness: Harness, tmp_path: Path) -> None:
    """To and fro under all commands, killed now and then; nothing is lost, nothing is left over."""
    seed = int(os.environ["IOSD_SEED"])
    print(f"IOSD_SEED={seed}")
    rng = random.Random(seed)
    world = World(harness.osd, rng)
    for number in range(STEPS):
        if number % 20 == 0:
            set_heads(harness.osd, DRAIN, number // 20 % 2)
        world.step()
        if world.objects:
            world.look(rng.choice(list(world.objects)))
        if number % 100 == 90:
            harness.kill()
            harness.start()
            world.osd = harness.osd
            world.look_at_all()
    set_heads(harness.osd, DRAIN, 1)
    until(lambda: heads(harness.osd, DRAIN) == 2)
    until(lambda: files(tmp_path / "ssd") == 0)  # those of removed objects go in their own time
    assert heads(harness.osd, ON_SSD) == 0
    assert heads(harness.osd, ON_HDD) == sum(min(len(d), HEAD) for d in world.objects.values())
    world.look_at_all()
    for obj in [*world.objects]:
        world.remove(obj, world.objects[obj])
    until(lambda: files(tmp_path / "data") == 0)
    harness.finish()
    check_store(tmp_path)
    harness.start()


def test_a_drain_is_remembered(harness: Harness, tmp_path: Path) -> None:
    """Killed in its middle it goes on by itself; a second target of the store sees where it is."""
    osd = harness.osd
    partition = osd.create_partition()
    objects = [osd.create_and_write(partition, bytes([number]) * 2 * HEAD) for number in range(60)]
    set_heads(osd, RATE, 256 << 10)  # a second and more for all
    set_heads(osd, DRAIN, 1)
    until(lambda: heads(osd, ON_SSD) < 50 * HEAD)
    harness.kill()
    check_store_is_repairable(tmp_path)
    harness.start()
    osd = harness.osd
    assert heads(osd, DRAIN) != 0
    assert head(osd, osd.create_and_write(partition, b"n"), HEAD_ON) == HDD
    until(lambda: heads(osd, DRAIN) == 2)
    assert files(tmp_path / "ssd") == 0
    for number, obj in enumerate(objects):
        assert osd.read(obj, 0, 3 * HEAD) == bytes([number]) * 2 * HEAD
    harness.finish()
    check_store(tmp_path)
    assert dumped(tmp_path, objects[7]) == bytes([7]) * 2 * HEAD
    leave_a_copy(tmp_path, objects[7])
    done = CliRunner().invoke(tools.check, store_folders(tmp_path))
    assert done.exit_code == 65, done.output
    done = CliRunner().invoke(tools.repair, [*store_folders(tmp_path), "--yes"])
    assert done.exit_code == 0, done.output
    check_store(tmp_path)
    harness.start()
    osd = harness.osd
    assert heads(osd, DRAIN) != 0
    set_heads(osd, DRAIN, 0)
    until(lambda: heads(osd, ON_HDD) == 0)
    assert head(osd, objects[5], HEAD_ON) == SSD
    assert osd.read(objects[5], 0, 3 * HEAD) == bytes([5]) * 2 * HEAD


def check_store_is_repairable(folder: Path) -> None:
    """Files that a killed target left are not lost."""
    done = CliRunner().invoke(tools.check, store_folders(folder))
    assert "orphan" not in done.output, done.output
    assert "lost" not in done.output, done.output


def dumped(folder: Path, obj: ObjectRef) -> bytes:
    """An object's bytes by `osd target dump`."""
    to = folder / "dumped"
    words = [str(obj), *store_folders(folder), "--data-to", str(to)]
    done = CliRunner().invoke(tools.dump, words)
    assert done.exit_code == 0, done.output
    return to.read_bytes()


def leave_a_copy(folder: Path, obj: ObjectRef) -> None:
    """As a power loss in a move that took the record of the new files with it: of another generation."""
    pattern = f"{int(obj.object_id):016x}.*h"
    (there,) = (folder / "data" / "data").rglob(pattern)
    copy = folder / "ssd" / "data" / there.relative_to(folder / "data" / "data")
    copy.parent.mkdir(parents=True, exist_ok=True)
    generation = f"{int(there.name[17:33], 16) + 1:016x}"
    copy.with_name(f"{there.name[:16]}.{generation}h").write_bytes(there.read_bytes())


def test_commands_go_first(harness: Harness) -> None:
    """The rate holds: a drain of 1 MiB at 256 KiB/s takes its time, and commands do not feel it."""
    osd = harness.osd
    partition = osd.create_partition()
    objects = [osd.create_and_write(partition, b"r" * HEAD) for _ in range(32)]
    set_heads(osd, RATE, 256 << 10)
    start = time.monotonic()
    set_heads(osd, DRAIN, 1)
    until(lambda: heads(osd, ON_HDD) >= 16 * HEAD)
    assert time.monotonic() - start > 16 * HEAD / (256 << 10) * 0.7
    assert osd.read(objects[-1], 0, HEAD) == b"r" * HEAD
    set_heads(osd, RATE, 1 << 30)


def test_partition_goes_while_heads_move(harness: Harness, tmp_path: Path) -> None:
    """REMOVE PARTITION and FORMAT OSD in the middle of a drain leave no file."""
    osd = harness.osd
    for command in ("remove", "format"):
        partition = osd.create_partition()
        for _ in range(40):
            osd.create_and_write(partition, b"g" * 2 * HEAD)
        set_heads(osd, DRAIN, 1)
        until(lambda: heads(osd, ON_HDD) > 0)
        if command == "remove":
            osd.remove_partition(partition, contents=True)
        else:
            osd.format_osd()
            assert heads(osd, DRAIN) == 0
        until(lambda: files(tmp_path / "ssd") + files(tmp_path / "data") == 0)
        assert heads(osd, ON_SSD) + heads(osd, ON_HDD) == 0
        set_heads(osd, DRAIN, 0)
