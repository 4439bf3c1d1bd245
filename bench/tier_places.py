# SPDX-License-Identifier: GPL-2.0-or-later
"""The stores that the benchmarks of the two tiers compare, and what is timed in each of them."""

from __future__ import annotations

import contextlib
import os
import shutil
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import pyosd
from bench.target import SOURCE, bench_target
from pyosd.types import ObjectRef, PartitionId

SSD, TIERS, HDD, CACHE = "ssd", "tiers", "hdd", "cache"
"""Everything on the SSD; heads there and the rest on the hard disk; everything on the hard disk;
a plain store with nothing but the page cache."""

MODELS = {SSD: "thesis-ssd", TIERS: "thesis", HDD: "thesis-hdd", CACHE: None}
COMMAND = 16 << 20
"""Largest transfer of one command: objects up to it are one READ or WRITE, as in the thesis."""

TEST_MODULE = SOURCE / "build" / "target" / "bs_iosd_test.so"
"""The module with simulated disks, which the product does not have."""
MEMORY = Path("/dev/shm")
MEMORY_LEAST = 6 << 30


@dataclass
class Place:
    """One store, and a partition in it."""

    osd: pyosd.Target
    pid: PartitionId
    pattern: bytes
    buffer: bytearray

    def content(self, offset: int, length: int) -> memoryview:
        """The bytes written there, length at most COMMAND."""
        start = offset % COMMAND
        return memoryview(self.pattern)[start : start + length]

    def make(self, count: int) -> list[ObjectRef]:
        """Empty objects."""
        return [self.osd.create(self.pid) for _ in range(count)]

    def write(self, objects: Sequence[ObjectRef], pieces: Sequence[tuple[int, int]]) -> float:
        """Write these pieces (offset, length) of each object.  Returns: bytes a second."""
        start = time.perf_counter()
        for obj in objects:
            for offset, length in pieces:
                self.osd.write(obj, offset, self.content(offset, length))
        return rate(len(objects), pieces, time.perf_counter() - start)

    def read(self, objects: Sequence[ObjectRef], pieces: Sequence[tuple[int, int]]) -> float:
        """Read them.  Returns: bytes a second.  Raises: SystemExit: they are not what was written."""
        view = memoryview(self.buffer)
        start = time.perf_counter()
        for obj in objects:
            for offset, length in pieces:
                got = self.osd.read(obj, offset, length, into=view[:length])
                if len(got) != length:
                    raise SystemExit(f"bench: {len(got)} of {length} bytes at {offset} of {obj}")
        took = time.perf_counter() - start
        if view[:length] != self.content(offset, length):
            raise SystemExit(f"bench: {obj} has other bytes than were written")
        return rate(len(objects), pieces, took)

    def create(self, count: int, size: int) -> float:
        """CREATE AND WRITE small objects.  Returns: objects a second."""
        data = memoryview(self.pattern)[:size]
        start = time.perf_counter()
        for _ in range(count):
            self.osd.create_and_write(self.pid, data)
        return count / (time.perf_counter() - start)


def rate(objects: int, pieces: Sequence[tuple[int, int]], seconds: float) -> float:
    return objects * sum(length for _, length in pieces) / seconds


def pieces_of(size: int, most: int) -> list[tuple[int, int]]:
    """An object in commands; of one larger than most bytes its first and last part, most in all."""
    if size <= most:
        return [(at, min(COMMAND, size - at)) for at in range(0, size, COMMAND)]
    half = most // 2
    step = min(COMMAND, half)
    starts = [*range(0, half, step), *range(size - half, size, step)]
    return [(at, step) for at in starts]


@contextlib.contextmanager
def place(*arguments: str, data: Path, prefix: Sequence[str] = ()) -> Iterator[Place]:
    """A target for the length of the block."""
    with (
        bench_target("--no-sandboxes", *arguments, data=data, prefix=prefix, disk=False) as target,
        pyosd.connect(target.url) as osd,
    ):
        pattern = os.urandom(COMMAND) * 2
        yield Place(osd, osd.create_partition(), pattern, bytearray(COMMAND))


@contextlib.contextmanager
def simulated_places() -> Iterator[dict[str, Place]]:
    """All four, three of them on simulated disks, their files in memory where that is large enough: what
    a real disk adds would not be the model's."""
    roomy = MEMORY.is_dir() and shutil.disk_usage(MEMORY).free >= MEMORY_LEAST
    with (
        tempfile.TemporaryDirectory(prefix="iosd-bench-", dir=MEMORY if roomy else None) as name,
        contextlib.ExitStack() as stack,
    ):
        folder = Path(name)
        folder.chmod(0o755)
        found = {}
        for kind, model in MODELS.items():
            simulated = ["--module", str(TEST_MODULE), "--module-option", f"model={model}"]
            arguments = simulated if model else []
            if kind == TIERS:
                arguments += ["--ssd", str(folder / f"{kind}-ssd")]
            found[kind] = stack.enter_context(place(*arguments, data=folder / kind))
        yield found
