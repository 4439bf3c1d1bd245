# SPDX-License-Identifier: GPL-2.0-or-later
"""READs of data that pass through functions, beside READs that do not.

Rows whose function must run in every READ declare it not deterministic: its results are never kept.
"""

from __future__ import annotations

import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pyosd
from bench import callgrind, views_link
from bench.instructions import BYTES, count_cases
from bench.jobs import paced_pairs
from bench.plan import Plan
from bench.stats import Row, at_least, at_most, missing, row_of_pairs
from bench.target import bench_target
from pyosd import requests
from pyosd.commands import Commands
from pyosd.functions import Contract, Functions, FunctionStage, OutputSize
from pyosd.types import ObjectRef, PartitionId
from pyosd.wire.cdb import encode

MIB = 1 << 20
BLOCK_BYTES = 16 * MIB
CHECK_AIM, IDENTITY_AIM, BLOCK_AIM, CACHED_AIM = (
    at_most(1.01),
    at_most(1.05),
    at_least(0.9),
    at_most(1.05),
)
IDENTITY = b"import osd\n\ndef main(args):\n    return osd.stage(args).view\n"
INVERT = """
TABLE = bytes(255 - each for each in range(256))

def compute(data):
    return bytes(data).translate(TABLE)
"""
INVERT_STAGE = f"import osd\n{INVERT}\ndef main(args):\n    return compute(osd.stage(args).data)\n"
COMPUTED = Contract(OutputSize.SAME, block=4096)
KEPT = Contract(OutputSize.SAME, block=4096, deterministic=True)


def _stacked(osd: pyosd.Target, code: bytes | str, contract: Contract, length: int) -> ObjectRef:
    """An object of so many bytes, whose READs pass a function."""
    obj = osd.create(osd.create_partition())
    for at in range(0, length, MIB):
        osd.write(obj, at, (bytes(range(256)) * 4096)[: min(MIB, length - at)])
    functions = Functions(osd)
    made = functions.put(code, name=f"f{obj.partition_id:x}", contract=contract)
    functions.attach(obj, [FunctionStage(made.id)])
    return obj


def _reader(osd: pyosd.Target, obj: ObjectRef, length: int) -> Callable[[], None]:
    command = encode(requests.read(obj, 0, length))[0]

    def read() -> None:
        assert osd.transport.submit(command).result().status == 0

    return read


def _plain(osd: pyosd.Target, length: int) -> ObjectRef:
    obj = osd.create(osd.create_partition())
    osd.write(obj, 0, bytes(length))
    return obj


def _cached(osd: pyosd.Target, plan: Plan) -> Row:
    ours = _reader(osd, _stacked(osd, IDENTITY, KEPT, 4096), 4096)
    ours()
    pairs = paced_pairs(ours, _reader(osd, _plain(osd, 4096), 4096), plan.count)
    method = f"READ of a kept result / READ of stored bytes, {plan.count} pairs at 100/s"
    return row_of_pairs("view_cached_4k", pairs, CACHED_AIM, method)


def _identity(osd: pyosd.Target, plan: Plan) -> Row:
    ours = _reader(osd, _stacked(osd, IDENTITY, COMPUTED, MIB), MIB)
    count = max(plan.count // 10, 5)
    pairs = paced_pairs(ours, _reader(osd, _plain(osd, MIB), MIB), count)
    method = f"a Python function that returns its input, run each time / READ, {count} pairs"
    return row_of_pairs("view_identity_1m", pairs, IDENTITY_AIM, method)


def _blocks(osd: pyosd.Target, times: int) -> Row:
    obj = _stacked(osd, INVERT_STAGE, COMPUTED, BLOCK_BYTES)
    place: dict[str, Callable[[bytes], bytes]] = {}
    exec(INVERT, place)  # what the function runs, too
    pairs = []
    with tempfile.NamedTemporaryFile() as file:
        file.write(bytes(range(256)) * (BLOCK_BYTES // 256))
        file.flush()
        for _ in range(times + 1):
            begin = time.perf_counter()
            for at in range(0, BLOCK_BYTES, MIB):
                osd.read(obj, at, MIB)
            ours = time.perf_counter() - begin
            begin = time.perf_counter()
            with Path(file.name).open("rb", buffering=0) as opened:
                while data := opened.read(MIB):
                    place["compute"](data)
            theirs = time.perf_counter() - begin
            pairs.append((BLOCK_BYTES / MIB / ours, BLOCK_BYTES / MIB / theirs))
    method = "Python that inverts bytes, 16 READs of 1 MiB / the same Python, local file"
    return row_of_pairs("view_block_1m", pairs[1:], BLOCK_AIM, method, unit="MiB/s")


# ---- the check -----------------------------------------------------------------------------------


def _read(osd: Commands) -> Callable[[], object]:
    obj = osd.create(osd.create_partition())
    osd.write(obj, 0, BYTES)
    return partial(osd.call, requests.read(obj, 0, len(BYTES)))


def _read_beside(osd: Commands) -> Callable[[], object]:
    """The same, with a function on another object."""
    osd.create_partition(PartitionId(1))
    functions = Functions(osd, 1)
    made = functions.put(IDENTITY, name="identity", contract=KEPT)
    other = osd.create(osd.create_partition())
    functions.attach(other, [FunctionStage(made.id)])
    return _read(osd)


def _check() -> Row:
    if why := callgrind.unavailable():
        return missing("view_check_none", CHECK_AIM, why)
    found = count_cases({"none": _read, "beside": _read_beside})
    pairs = [(found["beside"].instructions, found["none"].instructions)]
    method = "READ 4 KiB of an object without functions: others have some / no object has any"
    return row_of_pairs("view_check_none", pairs, CHECK_AIM, method, unit="instructions")


def rows(plan: Plan) -> Iterator[Row]:
    """view_check_none, view_cached_4k, view_identity_1m, view_block_1m, and those of views_link."""
    yield _check()
    with (
        bench_target("--reuse", "trusted", disk=False) as target,
        pyosd.connect(target.url) as osd,
    ):
        osd.create_partition(PartitionId(1))
        yield _cached(osd, plan)
        yield _identity(osd, plan)
        yield _blocks(osd, plan.pairs)
    yield from views_link.rows(plan)
