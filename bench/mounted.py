# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd mount` against ext4 on a loop device: small files, one large file, a build.

A disk of the same tgtd would be the fairer baseline, but needs an initiator of the kernel.  A loop device
does not: so this ext4 has no network and no target behind it.  Both stores lie in memory.
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
from functools import partial
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.stats import Row, at_least, compare
from bench.target import bench_target
from pyosd.types import ref

META = at_least(0.8)
STREAM = at_least(0.9)
BUILD = at_least(0.8)
MEMORY = Path("/dev/shm")
MOUNT = "from pyosd.cli import main; main()"
START_S = 60.0
FILES, SMALL = 200, 1024
LARGE, MIB = 128 << 20, 1 << 20
SOURCES = 24


def rows(plan: Plan) -> Iterator[Row]:
    """The rows osdfs_meta, osdfs_stream and osdfs_build."""
    with tempfile.TemporaryDirectory(prefix="iosd-bench-", dir=MEMORY) as name:
        folder = Path(name)
        folder.chmod(0o755)
        with (
            bench_target("--no-sandboxes", disk=False, data=folder / "store") as served,
            _mounted(served.url, folder / "osdfs") as ours,
            _ext4(folder / "image", folder / "ext4") as theirs,
        ):
            for row_id, work, aim, method in (
                ("osdfs_meta", _meta, META, f"{FILES} files made, listed, moved and removed"),
                ("osdfs_stream", _stream, STREAM, f"{LARGE >> 20} MiB written, fsync, and read"),
                ("osdfs_build", _build, BUILD, f"make of {SOURCES} C files, two at a time"),
            ):
                run = _numbered(work)
                yield compare(
                    row_id,
                    partial(run, ours),
                    partial(run, theirs),
                    aim,
                    f"{method}, against ext4 on a loop device",
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
def _ext4(image: Path, place: Path) -> Iterator[Path]:
    """A file system of its own in a file."""
    with image.open("wb") as file:
        file.truncate(4 * LARGE)
    place.mkdir()
    subprocess.run(["mkfs.ext4", "-q", str(image)], check=True)
    subprocess.run(["mount", "-o", "loop", str(image), str(place)], check=True)
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
