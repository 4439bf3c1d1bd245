# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd mount` against ext4: small files, one large file, a build.

The rows with an aim are against ext4 on a disk of the same tgtd.  QEMU's initiator and FUSE make a file of
the disk, since not every kernel has an initiator.  The rows `..._loop` are against ext4 on a file, without
network and target.  All stores lie in memory.
"""

from __future__ import annotations

import contextlib
import itertools
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.servers import Absent, disk_file
from bench.stats import REPORTED, Aim, Row, at_least, compare, missing
from bench.target import bench_target
from pyosd.types import ref

MEMORY = Path("/dev/shm")
MOUNT = "from pyosd.cli import main; main()"
START_S = 60.0
FILES, SMALL = 200, 1024
LARGE, MIB = 128 << 20, 1 << 20
DISK_BYTES = 4 * LARGE
SOURCES = 24


def rows(plan: Plan) -> Iterator[Row]:
    """The rows osdfs_meta, osdfs_stream and osdfs_build, and the same with _loop."""
    with tempfile.TemporaryDirectory(prefix="iosd-bench-", dir=MEMORY) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with (
            bench_target(
                "--no-sandboxes",
                data=folder / "store",
                disk_bytes=DISK_BYTES,
                image=folder / "disk",
            ) as served,
            _mounted(served.url, folder / "osdfs") as ours,
        ):
            with _loop_file(folder / "image") as file, _ext4(file, folder / "ext4") as theirs:
                for each in WORKS:
                    yield _row(each, "_loop", REPORTED, "a file", ours, theirs, plan)
            try:
                with (
                    disk_file(served.disk_url, folder / "unit") as file,
                    _ext4(file, folder / "ext4-unit") as theirs,
                ):
                    for each in WORKS:
                        yield _row(each, "", each.aim, "a disk of this tgtd", ours, theirs, plan)
            except Absent as absent:
                for each in WORKS:
                    yield missing(each.row_id, each.aim, str(absent))


def _row(work: Work, suffix: str, aim: Aim, disk: str, ours: Path, theirs: Path, plan: Plan) -> Row:
    run = _numbered(work.run)
    return compare(
        work.row_id + suffix,
        partial(run, ours),
        partial(run, theirs),
        aim,
        f"{work.method}, against ext4 on {disk}",
        pairs=plan.pairs,
        unit="1/s",
    )


@contextlib.contextmanager
def _mounted(url: str, place: Path) -> Iterator[Path]:
    """A partition, mounted."""
    with pyosd.connect(url) as target:
        path = f"/{ref(target.create_partition())}"
    place.mkdir()
    command = [sys.executable, "-c", MOUNT, "mount", "-q", "--target", url, path, str(place)]
    process = subprocess.Popen(command)
    try:
        deadline = time.monotonic() + START_S
        while not place.is_mount():
            assert process.poll() is None and time.monotonic() < deadline, "osd mount"
            time.sleep(0.05)
        yield place
    finally:
        process.send_signal(signal.SIGTERM)
        process.wait(START_S)


@contextlib.contextmanager
def _loop_file(image: Path) -> Iterator[Path]:
    """A file for a file system, without blocks."""
    with image.open("wb") as file:
        file.truncate(DISK_BYTES)
    yield image
    image.unlink()


@contextlib.contextmanager
def _ext4(file: Path, place: Path) -> Iterator[Path]:
    """A file system of its own in a file."""
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", "-F", str(file)], check=True)
    subprocess.run(["mount", "-o", "loop", str(file), str(place)], check=True)
    try:
        yield place
    finally:
        subprocess.run(["umount", str(place)], check=True)


def _numbered(work: Callable[[Path], None]) -> Callable[[Path], float]:
    """Work in a new directory.  Returns: how often it could be done in a second."""
    numbers = itertools.count()

    def run(top: Path) -> float:
        folder = top / f"run{next(numbers)}"
        folder.mkdir()
        start = time.perf_counter()
        work(folder)
        taken = time.perf_counter() - start
        shutil.rmtree(folder)
        return 1 / taken

    return run


def _meta(folder: Path) -> None:
    for each in range(FILES):
        (folder / f"f{each}").write_bytes(bytes(SMALL))
    sizes = [entry.stat().st_size for entry in os.scandir(folder)]
    assert sizes == [SMALL] * FILES
    for each in range(FILES):
        (folder / f"f{each}").rename(folder / f"g{each}")
    for each in range(FILES):
        (folder / f"g{each}").unlink()


def _stream(folder: Path) -> None:
    piece, path = bytes(MIB), folder / "large"
    with path.open("wb", buffering=0) as file:
        for _ in range(LARGE // MIB):
            file.write(piece)
        os.fsync(file.fileno())
        os.posix_fadvise(file.fileno(), 0, 0, os.POSIX_FADV_DONTNEED)
    got, buffer = 0, bytearray(MIB)
    with path.open("rb", buffering=0) as file:
        while count := file.readinto(buffer):
            got += count
    assert got == LARGE


def _build(folder: Path) -> None:
    names = [f"part{each}" for each in range(SOURCES)]
    (folder / "all.h").write_text("".join(f"int {name}(int value);\n" for name in names))
    for name in names:
        text = '#include <stdio.h>\n#include "all.h"\n'
        (folder / f"{name}.c").write_text(f"{text}int {name}(int value) {{ return value + 1; }}\n")
    objects = " ".join(f"{name}.o" for name in names)
    rule = f"all.a: {objects}\n\tar rcs $@ {objects}\n%.o: %.c all.h\n\tcc -O2 -c -o $@ $<\n"
    (folder / "Makefile").write_text(rule)
    subprocess.run(["make", "-s", "-j2"], cwd=folder, check=True)


@dataclass(frozen=True)
class Work:
    """What both file systems do."""

    row_id: str
    run: Callable[[Path], None]
    aim: Aim
    method: str


WORKS = (
    Work("osdfs_meta", _meta, at_least(0.8), f"{FILES} files made, listed, moved and removed"),
    Work("osdfs_stream", _stream, at_least(0.9), f"{LARGE >> 20} MiB written, fsync, and read"),
    Work("osdfs_build", _build, at_least(0.8), f"make of {SOURCES} C files, two at a time"),
)
