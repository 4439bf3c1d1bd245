# SPDX-License-Identifier: GPL-2.0-or-later
"""Figure 5 of the iOSD paper: what Python adds to a read and a write, by the size of the buffer.

As there: a script reads from its object's begin again and again, and writes there, so that no disk has a
part in it.  The baseline is a C program that does the same by pread and pwrite, into and from one buffer
(bench/plain_io.c), on a local file in the same file system.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator, Sequence
from pathlib import Path

import pyosd
from bench.compile import CannotCompile, compiled
from bench.plan import Plan
from bench.stats import REPORTED, Curve, Row, missing, point, row_of_pairs
from bench.target import bench_target
from pyosd.types import ObjectRef

KINDS = ("read", "readinto", "map", "write")
BLOCK = 1 << 20
SIZES = tuple(1 << power for power in range(12, 27))  # 4 KiB to 64 MiB
QUICK_SIZES = (1 << 12, 1 << 18, 1 << 20)
ROWS = {1 << 16: "64k", 1 << 20: "1m", 1 << 25: "32m"}
"""Sizes with rows of their own: below the buffer's, usual, and where the paper's reads got slow."""

SCRIPT = """
import osd, time
clock = time.perf_counter_ns
data = osd.zone.data
view = memoryview(data.map())

def read(size, buffer):
    data.seek(0)
    data.read(size)

def readinto(size, buffer):
    data.seek(0)
    data.readinto(buffer)

def mapped(size, buffer):
    buffer[:] = view[:size]

def write(size, buffer):
    data.seek(0)
    data.write(buffer)

def mean(once, size, buffer):
    once(size, buffer)
    start, count = clock(), 0
    while True:
        for _ in range(8):
            once(size, buffer)
        count += 8
        took = clock() - start
        if took >= room_ns:
            return took / count

found = []
for size in sizes:
    buffer = memoryview(bytearray(b"z" * size))
    found.append([mean(once, size, buffer) for once in (read, readinto, mapped, write)])
    del buffer
osd.result(found)
"""

Times = dict[str, float]


def _ours(osd: pyosd.Target, obj: ObjectRef, sizes: Sequence[int], room_ms: int) -> list[Times]:
    head = f"sizes, room_ns = {list(sizes)}, {room_ms * 1_000_000}\n"
    job = osd.exec(head + SCRIPT, zone=obj, limits=pyosd.Limits(mem=4 * max(sizes) + (128 << 20)))
    found = job.result(timeout=120)
    job.remove()
    return [dict(zip(KINDS, [ns * 1e-9 for ns in each], strict=True)) for each in found]


def _plain(program: Path, file: Path, sizes: Sequence[int], room_ms: int) -> list[Times]:
    command = [str(program), str(file), str(room_ms), *map(str, sizes)]
    lines = subprocess.run(command, check=True, capture_output=True, text=True).stdout.splitlines()
    return [
        {"pread": read * 1e-9, "pwrite": write * 1e-9} for read, write in map(json.loads, lines)
    ]


def _baseline(kind: str) -> str:
    return "pwrite" if kind == "write" else "pread"


def _rows(sizes: Sequence[int], found: list[list[tuple[Times, Times]]]) -> Iterator[Row]:
    for at, size in enumerate(sizes):
        for kind in KINDS if size in ROWS else ():
            yield row_of_pairs(
                f"iosd_io_{kind}_{ROWS[size]}",
                [(ours[kind], plain[_baseline(kind)]) for ours, plain in (s[at] for s in found)],
                REPORTED,
                f"a script's {kind} at the begin of an object / {_baseline(kind)} of a C program",
            )


def _curves(sizes: Sequence[int], found: list[list[tuple[Times, Times]]]) -> Iterator[Curve]:
    times = {
        name: [
            point(size, [(sample[at][0] | sample[at][1])[name] for sample in found])
            for at, size in enumerate(sizes)
        ]
        for name in (*KINDS, "pread", "pwrite")
    }
    yield Curve(
        "iosd_fig5_time",
        "iOSD figure 5: time of one read or write",
        "buffer, bytes",
        "time, s",
        times,
        log_x=True,
        log_y=True,
    )
    yield Curve(
        "iosd_fig5",
        "iOSD figure 5: a script's read or write, in times of C's",
        "buffer, bytes",
        "script / C",
        {
            kind: [
                point(size, [s[at][0][kind] / s[at][1][_baseline(kind)] for s in found])
                for at, size in enumerate(sizes)
            ]
            for kind in KINDS
        },
        log_x=True,
        log_y=True,
    )


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """iosd_io_*, of reads and writes of some sizes; figure 5."""
    sizes = QUICK_SIZES if plan.quick else SIZES
    samples, room_ms = (2, 5) if plan.quick else (5, 15)
    try:
        program = compiled("plain_io.c", "plain_io")
    except CannotCompile as error:
        yield missing("iosd_io", REPORTED, str(error))
        return
    with bench_target(disk=False) as target, pyosd.connect(target.url) as osd:
        obj = osd.create(osd.create_partition())
        file = target.folder / "plain"
        with file.open("wb") as plain:
            for offset in range(0, max(sizes), BLOCK):
                plain.write(b"z" * BLOCK)
                osd.write(obj, offset, b"z" * BLOCK)
        found = []
        for _ in range(samples + 1):  # the first warms up
            ours = _ours(osd, obj, sizes, room_ms)
            found.append(list(zip(ours, _plain(program, file, sizes, room_ms), strict=True)))
    yield from _rows(sizes, found[1:])
    yield from _curves(sizes, found[1:])
