# SPDX-License-Identifier: GPL-2.0-or-later
"""The measurements of Runde's thesis for functions that run in a target: the latency of one that does
nothing, and the cost of its sandbox for reads and writes of 4 MiB.  bench/runde_link.py has its programs
near the data.
"""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pyosd
from bench import runde_link
from bench.jobs import paced_pairs
from bench.plan import Plan
from bench.scripts import PLAIN_PYTHON
from bench.stats import Row, at_most, row_of_pairs
from bench.target import bench_target
from pyosd.types import ObjectRef
from pyosd.wire.exec_params import ArgsEncoding, ExecParams

NOOP_S = 415e-6  # of the thesis, section 2.6.4
ARGUMENTS, RESULT = (
    bytes(128),
    b"\x5a" * 96,
)  # as long as the thesis' function is given, and gives back
NOOP = b"import osd\nosd.result(%r)\n" % RESULT

BLOCK, BLOCKS = 4 << 20, 16
# Of the thesis' figure 2.11: ratio to the same without a sandbox, and seconds of all sixteen, which follow
# from the differences it states (0.4 ms or 1.9 %, 8.9 ms or 12.9 %).
SANDBOXED = {"read": (1.019, 0.0215), "write": (1.129, 0.0779)}

# One text for both sides: only what `data` is differs.
LOOP = f"""
import statistics, time
clock, block = time.perf_counter, b"z" * {BLOCK}  # zeros would be one page of the kernel's
def reads():
    while data.read(len(block)):
        pass
def writes():
    for _ in range({BLOCKS}):
        data.write(block)
def median(work):
    times = []
    for _ in range(5):
        data.seek(0)
        start = clock()
        work()
        times.append(clock() - start)
    return statistics.median(times)
found = {{"read": median(reads), "write": median(writes)}}
"""


def rows(plan: Plan) -> Iterator[Row]:
    """runde_noop, runde_noop_reuse, runde_read_4m, runde_write_4m, and those of runde_link."""
    count = min(200, plan.count)
    with bench_target(disk=False) as target, pyosd.connect(target.url) as osd:
        yield _noop(osd, "runde_noop", count)
        yield from _sandboxed(osd, target.folder / "local", plan.pairs)
    with bench_target("--reuse", "trusted", disk=False) as target, pyosd.connect(target.url) as osd:
        yield _noop(osd, "runde_noop_reuse", count)
    yield from runde_link.rows(plan)


def _noop(osd: pyosd.Target, row_id: str, count: int) -> Row:
    zone = osd.partition(osd.create_partition())
    params = ExecParams(args=ARGUMENTS, args_encoding=ArgsEncoding.BYTES)

    def noop() -> None:
        reply = osd.exec_code(
            zone, NOOP, params, synchronous=True, result_allocation_length=len(RESULT)
        )
        assert reply.error is None and reply.result == RESULT, reply

    times = [ours for ours, _ in paced_pairs(noop, osd.test_unit_ready, count)]
    method = f"synchronous EXEC, {len(ARGUMENTS)} bytes in, {len(RESULT)} back, {count} in turn with TUR; "
    method += "baseline: the thesis' own"
    pairs = [(ours, NOOP_S) for ours in times]
    return row_of_pairs(row_id, pairs, at_most(1), method, paper=NOOP_S)


def _in_sandbox(osd: pyosd.Target, obj: ObjectRef) -> dict[str, float]:
    job = osd.exec(f"import osd\ndata = osd.zone.data\n{LOOP}\nosd.result(found)\n", zone=obj)
    found: dict[str, float] = job.result(timeout=60)
    job.remove()
    return found


def _without(path: Path) -> dict[str, float]:
    code = f"import json\ndata = open({str(path)!r}, 'r+b', buffering=0)\n{LOOP}\nprint(json.dumps(found))"
    done = subprocess.run([PLAIN_PYTHON, "-I", "-c", code], check=True, capture_output=True)
    found: dict[str, float] = json.loads(done.stdout)
    return found


def _sandboxed(osd: pyosd.Target, path: Path, pairs: int) -> Iterator[Row]:
    obj = osd.create(osd.create_partition())
    with path.open("wb") as file:
        for at in range(BLOCKS):
            osd.write(obj, at * BLOCK, b"\x5a" * BLOCK)
            file.write(b"\x5a" * BLOCK)
    found = [(_in_sandbox(osd, obj), _without(path)) for _ in range(pairs + 1)][1:]
    for kind, (ratio, seconds) in SANDBOXED.items():
        yield row_of_pairs(
            f"runde_{kind}_4m",
            [(ours[kind], plain[kind]) for ours, plain in found],
            at_most(ratio),
            f"{BLOCKS} {kind}s of {BLOCK >> 20} MiB by a script / by plain CPython of a local file; "
            f"aim: the thesis' own ratio",
            paper=seconds,
        )
