# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a command by the number of sessions, by queue depth and by an object's size, against
the same on tgtd's own disk. By workers, sandboxes and objects: curve_pools.py, curve_objects.py.
"""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator, Mapping

import pyosd
from bench import curve_objects, curve_pools
from bench.curve_load import Sample, Samples, cost, curve, in_rounds, resident_bytes, some
from bench.plan import Plan
from bench.stats import Curve, Row
from bench.target import BenchTarget, bench_target
from bench.wire import disk_cdb
from pyosd import requests
from pyosd.types import ObjectRef
from pyosd.wire.cdb import encode
from pyosd.wire.transport import Command, CommandTransport, Pending

SESSIONS = (1, 2, 4, 8, 16, 32, 64)
DEPTHS = (1, 2, 4, 8, 16, 32)
SIZES = tuple(1 << shift for shift in range(10, 31, 2))
SMALL, SPAN = 4096, 32 << 20
CHUNK = 1 << 20  # bytes of a command where the object is larger
CHUNKS_DEPTH = 8
SIZE_SECONDS = 0.05  # small objects are read again for so long
DISK = "disk: "


def _small(obj: ObjectRef) -> dict[str, list[Command]]:
    """READ and WRITE of 4 KiB at places of the object, and of the disk."""
    data, buffer = b"\x5a" * SMALL, bytearray(SMALL)
    offsets = range(0, SPAN, SPAN // 64)
    return {
        "READ": [encode(requests.read(obj, at, SMALL, buffer=buffer))[0] for at in offsets],
        "WRITE": [encode(requests.write(obj, at, data))[0] for at in offsets],
        DISK + "READ": [Command(disk_cdb(0x28, at, SMALL), b"", SMALL, buffer) for at in offsets],
        DISK + "WRITE": [Command(disk_cdb(0x2A, at, SMALL), data) for at in offsets],
    }


def _written(osd: pyosd.Target, size: int) -> ObjectRef:
    obj = osd.create(osd.create_partition())
    for offset in range(0, size, CHUNK):
        osd.write(obj, offset, b"\xa5" * min(CHUNK, size - offset))
    return obj


# ---- sessions and queue depth ------------------------------------------------------------------


def sessions(target: BenchTarget, plan: Plan, rounds: int) -> Iterator[Curve]:
    """One command of 4 KiB outstanding on each session; and the memory of a session."""
    counts = some(SESSIONS, plan)
    memory: dict[float, list[float]] = {}
    with contextlib.ExitStack() as stack:
        osds: list[pyosd.Target] = []
        idle = resident_bytes(target.tgtd_pid)
        for count in counts:
            while len(osds) < count:
                osds.append(stack.enter_context(pyosd.connect(target.url)))
            with pyosd.connect(target.url) as osd:
                osd.test_unit_ready()
            memory[count] = [(resident_bytes(target.tgtd_pid) - idle) / count]
        disks = [stack.enter_context(pyosd.connect(target.disk_url)) for _ in osds]
        with pyosd.connect(target.url) as osd:
            commands = _small(_written(osd, SPAN))
        steps: dict[float, list[Sample]] = {
            count: [
                cost(
                    name, target, (disks if name.startswith(DISK) else osds)[:count], each, 1, plan
                )
                for name, each in commands.items()
            ]
            for count in counts
        }
        found = in_rounds(steps, rounds)
    yield curve("curve_sessions", "4 KiB, one command on each session", "sessions", found)
    yield curve(
        "curve_session_memory",
        "Memory of tgtd for a session",
        "sessions",
        {"bytes": memory},
        "bytes per session",
    )


def depths(target: BenchTarget, plan: Plan, rounds: int) -> Iterator[Curve]:
    """Commands of 4 KiB of one session."""
    with pyosd.connect(target.url) as osd, pyosd.connect(target.disk_url) as disk:
        commands = _small(_written(osd, SPAN))
        steps: dict[float, list[Sample]] = {
            depth: [
                cost(name, target, disk if name.startswith(DISK) else osd, each, depth, plan)
                for name, each in commands.items()
            ]
            for depth in some(DEPTHS, plan)
        }
        found = in_rounds(steps, rounds)
    yield curve("curve_depth", "4 KiB, one session", "commands outstanding", found)


# ---- size --------------------------------------------------------------------------------------


def _pieces(size: int) -> Iterator[tuple[int, int]]:
    return ((at, min(CHUNK, size - at)) for at in range(0, size, CHUNK))


def _whole(name: str, transport: CommandTransport, commands: list[Command]) -> Sample:
    """All of an object or of as many bytes of the disk, read or written; again while it is soon done."""

    def sample() -> Mapping[str, float]:
        start = time.perf_counter()
        times = 0
        while times == 0 or time.perf_counter() < start + SIZE_SECONDS:
            waiting: list[Pending] = []
            for number, command in enumerate(commands):
                if number >= CHUNKS_DEPTH:
                    assert waiting.pop(0).result().status == 0
                waiting.append(transport.submit(command))
            for each in waiting:
                assert each.result().status == 0
            times += 1
        return {name: (time.perf_counter() - start) / times}

    return sample


def _of_size(osd: pyosd.Target, disk: CommandTransport, size: int) -> list[Sample]:
    obj = _written(osd, size)
    buffers = [bytearray(min(size, CHUNK)) for _ in range(CHUNKS_DEPTH)]
    data = bytes(min(size, CHUNK))
    kinds: dict[str, list[Command]] = {
        "READ": [],
        DISK + "READ": [],
        "WRITE": [],
        DISK + "WRITE": [],
    }
    for number, (at, part) in enumerate(_pieces(size)):
        buffer = buffers[number % CHUNKS_DEPTH]
        kinds["READ"].append(encode(requests.read(obj, at, part, buffer=buffer))[0])
        kinds["WRITE"].append(encode(requests.write(obj, at, data))[0])
        kinds[DISK + "READ"].append(Command(disk_cdb(0x28, at, part), b"", part, buffer))
        kinds[DISK + "WRITE"].append(Command(disk_cdb(0x2A, at, part), data))
    return [
        _whole(name, disk if name.startswith(DISK) else osd.transport, commands)
        for name, commands in kinds.items()
    ]


def sizes(target: BenchTarget, plan: Plan, rounds: int) -> Iterator[Curve]:
    """Whole objects, read and written."""
    sizes = [size for size in some(SIZES, plan) if size <= _largest(plan)]
    with pyosd.connect(target.url) as osd, pyosd.connect(target.disk_url) as disk:
        found: Samples = in_rounds(
            {size: _of_size(osd, disk.transport, size) for size in sizes}, rounds
        )
    yield curve(
        "curve_size", "A whole object, 1 MiB a command, 8 outstanding", "bytes", found,
        "seconds per object",
    )  # fmt: skip


def _largest(plan: Plan) -> int:
    """Bytes of the largest object."""
    return 4 << 20 if plan.quick else 1 << 30


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """All curves."""
    rounds = 1 if plan.quick else 7
    with bench_target(disk_bytes=max(_largest(plan), SPAN)) as target:
        yield from sessions(target, plan, rounds)
        yield from depths(target, plan, rounds)
        yield from sizes(target, plan, rounds)
    yield from curve_pools.rows(plan, rounds)
    yield from curve_objects.rows(plan, rounds)
