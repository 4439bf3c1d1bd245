# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of running in a sandbox: reads and a scan of a page-cached object, against plain CPython
on a local file of the same bytes.  Each side times its own loop and reports it.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.stats import Row, at_least, compare
from bench.target import BenchTarget, bench_target
from pyosd.types import ObjectRef

BYTES = 64 << 20
PLAIN_PYTHON = "/usr/bin/python3"

# One text for both sides: only the way `data` comes about differs.
READ_LOOP = """
import time
start = time.perf_counter()
total = 0
while block := data.read(1 << 20):
    total += len(block)
speed = total / (time.perf_counter() - start) / (1 << 20)
"""
MAP_LOOP = """
import time, zlib
start = time.perf_counter()
view = memoryview(data)
total = 0
for at in range(0, len(view), 1 << 20):
    total = zlib.crc32(view[at : at + (1 << 20)], total)
speed = len(view) / (time.perf_counter() - start) / (1 << 20)
"""
COMPUTE_LOOP = """
import re, time
start = time.perf_counter()
count = 0
pattern = re.compile(rb"\\x5a+")
while block := data.read(1 << 20):
    count += len(pattern.findall(block))
speed = total_bytes / (time.perf_counter() - start) / (1 << 20)
"""


def _near_data(osd: pyosd.Target, obj: ObjectRef, opening: str, loop: str) -> float:
    code = (
        f"import osd\nzone = osd.zone\nuser = osd.userobject({obj.partition_id}, {obj.object_id})\n"
    )
    code += f"total_bytes = {BYTES}\ndata = {opening}\n{loop}\nosd.result(speed)\n"
    job = osd.exec(code, zone=obj)
    return float(job.result(timeout=60))


def _plain(path: Path, opening: str, loop: str) -> float:
    code = f"import json, mmap\nfile = open({str(path)!r}, 'rb', buffering=0)\n"
    code += f"total_bytes = {BYTES}\ndata = {opening}\n{loop}\nprint(json.dumps(speed))\n"
    command = [PLAIN_PYTHON, "-I", "-c", code]
    return float(json.loads(subprocess.run(command, check=True, capture_output=True).stdout))


def rows(plan: Plan) -> Iterator[Row]:
    """script_read_1m, script_map, script_compute."""
    with bench_target() as target:
        yield from _rows(target, plan.many_pairs)


def _rows(target: BenchTarget, pairs: int) -> Iterator[Row]:
    path = target.folder / "local"
    block = (b"\x5a" * 63 + b"\n") * (1 << 14)
    with path.open("wb") as file:
        for _ in range(BYTES >> 20):
            file.write(block)
    with pyosd.connect(target.url) as osd:
        obj = osd.create(osd.create_partition())
        for offset in range(0, BYTES, 1 << 20):
            osd.write(obj, offset, block)
        mapped = "mmap.mmap(file.fileno(), 0, prot=mmap.PROT_READ)"
        cases = (
            ("script_read_1m", "user.data", "file", READ_LOOP, 0.95, "1 MiB reads"),
            ("script_map", "user.data.map()", mapped, MAP_LOOP, 0.95, "map() and crc32"),
            ("script_compute", "user.data", "file", COMPUTE_LOOP, 0.97, "regular expression"),
        )
        for row_id, ours, local, loop, aim, what in cases:

            def near(opening: str = ours, loop: str = loop) -> float:
                return _near_data(osd, obj, opening, loop)

            def plain(opening: str = local, loop: str = loop) -> float:
                return _plain(path, opening, loop)

            first: Callable[[], float] = near
            yield compare(
                row_id,
                first,
                plain,
                at_least(aim),
                f"{what} over {BYTES >> 20} MiB in the page cache, sandbox / plain CPython",
                pairs=pairs,
                unit="MiB/s",
            )
