# SPDX-License-Identifier: GPL-2.0-or-later
"""The measurements of the UMN paper: table 3, the latency of each command under two security methods, and
figure 7, throughput by transfer size.  Both are compared with a file-backed disk of the same tgtd.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.security import master_of, median_of, once, sessions
from bench.stats import REPORTED, Curve, Point, Row, at_least, point, row_of_pairs
from bench.target import DISK_BYTES, BenchTarget, bench_target
from bench.wire import BLOCK, disk_cdb
from pyosd import requests
from pyosd.target import Target
from pyosd.types import AttributeValue, PartitionId
from pyosd.wire.attributes import LOGICAL_LENGTH
from pyosd.wire.capability import SecurityMethod
from pyosd.wire.cdb import encode
from pyosd.wire.transport import Command, CommandTransport

READ_10, WRITE_10 = 0x28, 0x2A
NEAREST = {"read_64b": "read", "write_64b": "write", "append_64b": "write"}
"""The disk's command that does most of the same; of the others TEST UNIT READY."""

TABLE_3 = {
    "create_partition": (15040, 14797),
    "create": (3745, 4024),
    "list": (1928, 1970),
    "list_root": (1713, 1896),
    "set_attribute": (1689, 1950),
    "write_64b": (2141, 2306),
    "append_64b": (2085, 2263),
    "read_64b": (1654, 1863),
    "get_attribute": (1677, 1902),
    "remove": (8387, 8616),
    "remove_partition": (10046, 10178),
}
"""Microseconds of the paper under CAPKEY and CMDRSP."""
METHODS = (SecurityMethod.CAPKEY, SecurityMethod.CMDRSP)

SIZES = [4096 << power for power in range(12)]  # to 8 MiB
QUOTED = {"4k": 4096, "64k": 64 << 10, "1m": 1 << 20, "4m": 4 << 20}  # sizes with a row
FILE_BYTES = 8 << 20
KINDS = {
    "allocate": "APPENDs to an empty object / WRITEs to a disk whose file is all hole",
    "overwrite": "WRITEs over what is there",
    "read": "READs",
}


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """umn_COMMAND_METHOD; umn_allocate_4k ... umn_read_4m, and the curves of figure 7."""
    with bench_target("--no-sandboxes") as target:
        yield from latencies(target, plan)
    with bench_target("--no-sandboxes") as target:
        yield from transfers(target, plan)


# ---- table 3 -------------------------------------------------------------------------------------


def _disk_once(disk: Target, count: int) -> dict[str, float]:
    """Seconds of the disk's commands, one at a time; a block is the least that it reads or writes."""
    block = bytearray(BLOCK)

    def send(opcode: int, received: int, data: bytes) -> None:
        response = disk.transport.submit(
            Command(disk_cdb(opcode, 0, BLOCK), data, received, block if received else None)
        ).result()
        assert response.status == 0, response.sense.hex()

    return {
        "read": median_of([partial(send, READ_10, BLOCK, b"")] * count),
        "write": median_of([partial(send, WRITE_10, 0, bytes(BLOCK))] * count),
        "tur": median_of([disk.test_unit_ready] * count),
    }


def latencies(target: BenchTarget, plan: Plan) -> Iterator[Row]:
    """Each command of table 3 under CAPKEY and CMDRSP against the nearest one of the disk."""
    count = 10 if plan.quick else 100
    with (
        pyosd.connect(target.disk_url) as disk,
        sessions(target.url, master_of(target)) as (obj, everyone),
    ):
        secured = {method: everyone[method] for method in METHODS}
        samples = []
        for _ in range(plan.pairs + 1):  # the first warms up
            bare = _disk_once(disk, count)
            samples.append(
                (bare, {method: once(osd, obj, count) for method, osd in secured.items()})
            )
    for name, published in TABLE_3.items():
        nearest = NEAREST.get(name, "tur")
        for method, paper_us in zip(METHODS, published, strict=True):
            yield row_of_pairs(
                f"umn_{name}_{method.name.lower()}",
                [(found[method][name], bare[nearest]) for bare, found in samples[1:]],
                REPORTED,
                f"median of {count}, one at a time, under {method.name}; baseline: the disk's "
                + {"tur": "TEST UNIT READY"}.get(
                    nearest, f"{nearest.upper()}(10) of {BLOCK} bytes"
                ),
                paper=paper_us * 1e-6,
            )


# ---- figure 7 ------------------------------------------------------------------------------------


@dataclass(frozen=True)
class _Pass:
    """Commands that move FILE_BYTES, one at a time; prepare: what comes before, and is not counted."""

    transport: CommandTransport
    commands: list[Command]
    prepare: Callable[[], object] = lambda: None

    def take(self, command: Command) -> float:
        """Seconds of one."""
        start = time.perf_counter()
        response = self.transport.submit(command).result()
        took = time.perf_counter() - start
        assert response.status == 0, response.sense.hex()
        return took


def _speeds(ours: _Pass, theirs: _Pass, seconds: float) -> tuple[float, float]:
    """MiB/s of both, their commands in turn, over as many passes as fit, at least one."""
    moved, spent, other = 0, 0.0, 0.0
    while not moved or spent + other < seconds:
        ours.prepare(), theirs.prepare()
        for mine, command in zip(ours.commands, theirs.commands, strict=True):
            spent += ours.take(mine)
            other += theirs.take(command)
        moved += FILE_BYTES >> 20
    return moved / spent, moved / other


def _of_object(osd: Target, pid: PartitionId, size: int) -> dict[str, _Pass]:
    """APPENDs to an empty object; WRITEs over what is there; READs."""
    data, buffer, offsets = b"z" * size, bytearray(size), range(0, FILE_BYTES, size)
    old, new = osd.create(pid), osd.create(pid)
    appends = [encode(requests.append(new, data))[0]] * len(offsets)
    nothing = AttributeValue(*LOGICAL_LENGTH, bytes(8))
    writes = [encode(requests.write(old, at, data))[0] for at in offsets]
    reads = [encode(requests.read(old, at, size, buffer=buffer))[0] for at in offsets]
    return {
        "allocate": _Pass(osd.transport, appends, partial(osd.set_attributes, new, [nothing])),
        "overwrite": _Pass(osd.transport, writes),
        "read": _Pass(osd.transport, reads),
    }


def _of_disk(disk: Target, image: Path, size: int) -> dict[str, _Pass]:
    """WRITEs to a file that is all hole; WRITEs over what is there; READs."""

    def empty() -> None:
        os.truncate(image, 0)
        os.truncate(image, DISK_BYTES)

    data, buffer, offsets = b"z" * size, bytearray(size), range(0, FILE_BYTES, size)
    writes = [Command(disk_cdb(WRITE_10, at, size), data) for at in offsets]
    reads = [Command(disk_cdb(READ_10, at, size), b"", size, buffer) for at in offsets]
    return {
        "allocate": _Pass(disk.transport, writes, empty),
        "overwrite": _Pass(disk.transport, writes),
        "read": _Pass(disk.transport, reads),
    }


Speeds = dict[str, list[tuple[float, float]]]
"""By kind, MiB/s of the object and of the disk, measured in turn."""


def _measured(target: BenchTarget, plan: Plan) -> dict[int, Speeds]:
    seconds = plan.seconds / 10  # of a sample: three kinds, twelve sizes
    sizes = QUOTED.values() if plan.quick else SIZES
    found: dict[int, Speeds] = {}
    with pyosd.connect(target.url) as osd, pyosd.connect(target.disk_url) as disk:
        pid = osd.create_partition()
        for size in sizes:
            ours, theirs = _of_object(osd, pid, size), _of_disk(disk, target.folder / "disk", size)
            found[size] = {kind: [] for kind in ours}
            for _ in range(plan.pairs + 1):  # the first warms up
                for kind, pairs in found[size].items():
                    pairs.append(_speeds(ours[kind], theirs[kind], seconds))
    return {
        size: {kind: pairs[1:] for kind, pairs in speeds.items()} for size, speeds in found.items()
    }


def transfers(target: BenchTarget, plan: Plan) -> Iterator[Row | Curve]:
    """The rows umn_KIND_SIZE, and figure 7 as speeds and as ratios."""
    found = _measured(target, plan)
    for kind, what in KINDS.items():
        for label, size in QUOTED.items():
            yield row_of_pairs(
                f"umn_{kind}_{label}",
                found[size][kind],
                at_least(1.0),
                f"{FILE_BYTES >> 20} MiB by {size} bytes, one command at a time, in turn: {what}",
                unit="MiB/s",
            )

    def points(kind: str, figure: Callable[[tuple[float, float]], float]) -> list[Point]:
        return [point(size, [figure(pair) for pair in found[size][kind]]) for size in found]

    speeds = {f"object, {kind}": points(kind, lambda pair: pair[0]) for kind in KINDS}
    speeds |= {f"disk, {kind}": points(kind, lambda pair: pair[1]) for kind in KINDS}
    x = "transfer size, bytes"
    yield Curve(
        "umn_fig7", "Throughput by transfer size (UMN, fig. 7)", x, "MiB/s", speeds, True, True
    )
    ratios = {kind: points(kind, lambda pair: pair[0] / pair[1]) for kind in KINDS}
    title = "The object's throughput as a ratio to the disk's"
    yield Curve("umn_fig7_ratio", title, x, "object / disk", ratios, True)
