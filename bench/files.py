# SPDX-License-Identifier: GPL-2.0-or-later
"""Files in and out by their names: ten thousand small ones against 5,000 files a second, and a large one
against WRITE and READ of 1 MiB, eight at a time, of the same session.  Local files and the store lie in
memory: ext4 takes long to make files while others have just been removed.
"""

from __future__ import annotations

import itertools
import shutil
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.stats import Row, at_least, compare
from bench.target import bench_target
from bench.wire import SPAN, throughput
from pyosd import requests
from pyosd.fs.transfer import FileMoved, Incoming, Outgoing, get_files, put_files
from pyosd.target import Target
from pyosd.types import ObjectRef, ref
from pyosd.wire.cdb import encode

FILES_PER_S = 5000.0
FILES, FOLDERS, SMALL = 10_000, 100, 1024
LARGE = 256 << 20
MEMORY = Path("/dev/shm")
MIB = 1 << 20


def rows(plan: Plan) -> Iterator[Row]:
    """The rows files_in_small, files_out_small, files_in_large and files_out_large."""
    with (
        tempfile.TemporaryDirectory(prefix="iosd-bench-", dir=MEMORY) as name,
        bench_target("--no-sandboxes", disk=False, data=_store(Path(name))) as served,
        pyosd.connect(served.url) as target,
    ):
        yield from _small_rows(target, Path(name), plan)
        yield from _large_rows(target, Path(name), plan)


def _store(folder: Path) -> Path:
    """The store's folder, which the target's own user can reach."""
    folder.chmod(0o755)
    return folder / "store"


def _all_moved(moved: Iterator[FileMoved], count: int) -> None:
    outcomes = list(moved)
    failed = [each for each in outcomes if each.error is not None]
    assert not failed, failed[0]
    assert len(outcomes) == count


def _small_rows(target: Target, folder: Path, plan: Plan) -> Iterator[Row]:
    source = folder / "in"
    names = [f"{n % FOLDERS:02}/{n:05}" for n in range(FILES)]
    for each in range(FOLDERS):
        (source / f"{each:02}").mkdir(parents=True)
    for name in names:
        (source / name).write_bytes(name.encode().ljust(SMALL, b"."))
    base = ref(target.create_partition())
    fs = target.fs.below(base)
    numbers = itertools.count()

    def into() -> float:
        top = f"run{next(numbers)}"
        start = time.perf_counter()
        fs.mkdir(top)
        for each in range(FOLDERS):
            fs.mkdir(f"{top}/{each:02}")
        files = [Outgoing(source / name, f"{top}/{name}".encode()) for name in names]
        _all_moved(target.carry_stream(put_files(base, files)), FILES)
        return FILES / (time.perf_counter() - start)

    def out() -> float:
        back = folder / "out"
        shutil.rmtree(back, ignore_errors=True)
        start = time.perf_counter()
        found = [each for each in fs.walk("run0")]
        wanted = list[Incoming]()
        for each in found:
            place = back / each.path.removeprefix("/run0/")
            if each.is_directory:
                place.mkdir(parents=True)
            else:
                wanted.append(Incoming(each, place))
        _all_moved(target.carry_stream(get_files(wanted)), FILES)
        return FILES / (time.perf_counter() - start)

    method = f"{FILES:,} files of {SMALL} bytes in {FOLDERS} directories"
    for row_id, measure in (("files_in_small", into), ("files_out_small", out)):
        yield compare(
            row_id,
            measure,
            lambda: FILES_PER_S,
            at_least(1),
            f"{method}, against 5,000 files a second",
            pairs=plan.pairs,
            unit="files/s",
        )


def _large_rows(target: Target, folder: Path, plan: Plan) -> Iterator[Row]:
    """The files are new: the local one before is removed first, because this takes long."""
    source, back = folder / "large", folder / "back"
    source.write_bytes(bytes(range(256)) * (LARGE >> 8))
    base = ref(target.create_partition())
    fs = target.fs.below(base)

    def into() -> float:
        start = time.perf_counter()
        _all_moved(target.carry_stream(put_files(base, [Outgoing(source, b"large")])), 1)
        return LARGE / MIB / (time.perf_counter() - start)

    def out() -> float:
        info = fs.info("large")
        back.unlink(missing_ok=True)
        start = time.perf_counter()
        _all_moved(target.carry_stream(get_files([Incoming(info, back)])), 1)
        return LARGE / MIB / (time.perf_counter() - start)

    plain = target.create(base.partition_id)
    for offset in range(0, SPAN, MIB):
        target.write(plain, offset, b"\xa5" * MIB)
    for row_id, measure, direction in (
        ("files_in_large", into, "write"),
        ("files_out_large", out, "read"),
    ):
        yield compare(
            row_id,
            measure,
            _plain(target, plain, direction, plan.seconds),
            at_least(0.9),
            f"a new file of {LARGE >> 20} MiB, against {direction}_1m_qd8 of the same session",
            pairs=plan.pairs,
            unit="MiB/s",
        )


def _plain(target: Target, obj: ObjectRef, direction: str, seconds: float) -> Callable[[], float]:
    """MiB/s of READs or WRITEs of 1 MiB, eight at a time."""
    data, buffer = b"\x5a" * MIB, bytearray(MIB)
    offsets = range(0, SPAN, MIB)
    if direction == "read":
        commands = [encode(requests.read(obj, at, MIB, buffer=buffer))[0] for at in offsets]
    else:
        commands = [encode(requests.write(obj, at, data))[0] for at in offsets]
    return lambda: throughput(target.transport, commands, 8, seconds)
