# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of checksums of data: READ with verification, WRITE, and CREATE AND WRITE. Each is a
ratio to the same command of a target without checksums. Both targets run at the same time and are
measured in turn."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pyosd
from bench.plan import Plan
from bench.stats import REPORTED, Row, at_least, compare
from bench.target import bench_target
from bench.wire import SPAN, throughput
from pyosd import requests
from pyosd.target import Target
from pyosd.types import ObjectRef, PartitionId
from pyosd.wire.cdb import encode
from pyosd.wire.transport import Command

WITH = ("--checksums", "on", "--verify", "always", "--scrub-days", "0")
KIB = 1 << 10
AIMED = 1 << 20
SMALL = bytes(4 * KIB)


def rows(plan: Plan) -> Iterator[Row]:
    """The rows checksum_read_4k ... checksum_write_1m, checksum_write_part and checksum_create_4k."""
    plain = ("--no-sandboxes",)
    with (
        bench_target(*plain, *WITH, disk=False) as ours,
        bench_target(*plain, disk=False) as others,
        pyosd.connect(ours.url) as checked,
        pyosd.connect(others.url) as unchecked,
    ):
        yield from _rows((checked, unchecked), plan)


def _rows(targets: tuple[Target, Target], plan: Plan) -> Iterator[Row]:
    objects = [target.create(target.create_partition()) for target in targets]
    for target, obj in zip(targets, objects, strict=True):
        for offset in range(0, SPAN, AIMED):
            target.write(obj, offset, b"\xa5" * AIMED)
    for name, size, shift, depth in (
        ("read_4k", 4 * KIB, 0, 1),
        ("read_1m", AIMED, 0, 1),
        ("write_part", 512, 100, 1),
        ("write_4k", 4 * KIB, 0, 1),
        ("write_64k", 64 * KIB, 0, 1),
        ("write_1m", AIMED, 0, 1),
    ):
        ours, baseline = (
            _run(target, _commands(name, obj, size, shift), depth, plan.seconds)
            for target, obj in zip(targets, objects, strict=True)
        )
        yield compare(
            f"checksum_{name}",
            ours,
            baseline,
            at_least(0.95) if size == AIMED else REPORTED,
            f"{size} bytes, {depth} outstanding, against a target without checksums",
            pairs=plan.pairs,
            unit="MiB/s",
        )
    ours, baseline = (
        _creations(target, obj.partition_id, plan.seconds)
        for target, obj in zip(targets, objects, strict=True)
    )
    yield compare(
        "checksum_create_4k",
        ours,
        baseline,
        REPORTED,
        "CREATE AND WRITE of 4096 bytes, one at a time, against a target without checksums",
        pairs=plan.pairs,
        unit="/s",
    )


def _commands(name: str, obj: ObjectRef, size: int, shift: int) -> list[Command]:
    step = max(size, SPAN // 64)
    offsets = range(shift, SPAN - size + 1, step)
    if name.startswith("read"):
        buffer = bytearray(size)
        return [encode(requests.read(obj, at, size, buffer=buffer))[0] for at in offsets]
    return [encode(requests.write(obj, at, b"\x5a" * size))[0] for at in offsets]


def _run(
    target: Target, commands: list[Command], depth: int, seconds: float
) -> Callable[[], float]:
    return lambda: throughput(target.transport, commands, depth, seconds)


def _creations(target: Target, partition_id: PartitionId, seconds: float) -> Callable[[], float]:
    """Objects made a second."""

    def run() -> float:
        count, start = 0, time.perf_counter()
        while (spent := time.perf_counter() - start) < seconds:
            target.create_and_write(partition_id, SMALL)
            count += 1
        return count / spent

    return run
