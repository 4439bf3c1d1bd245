# SPDX-License-Identifier: GPL-2.0-or-later
"""READ and WRITE of the OSD against tgtd's own file-backed disk: the same tgtd, initiator, parameters and
file system, page cache warm, no fsync on either side.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterator

import pyosd
from bench.plan import Plan
from bench.stats import Row, at_least, compare
from bench.target import BenchTarget, bench_target
from pyosd import requests
from pyosd.types import ObjectRef
from pyosd.wire.cdb import encode
from pyosd.wire.transport import Command, CommandTransport, Pending

SIZES = {"4k": 4096, "64k": 64 << 10, "1m": 1 << 20}
DEPTHS = (1, 8)
SPAN = 32 << 20  # bytes of the object, and of the disk, that are touched
BLOCK = 512


def throughput(
    transport: CommandTransport, commands: list[Command], depth: int, seconds: float
) -> float:
    """MiB/s with `depth` commands outstanding for about `seconds`; commands are sent in turn."""
    size = max(commands[0].data_in_length, len(commands[0].data_out))
    under_way: collections.deque[Pending] = collections.deque()
    done = 0
    start = time.perf_counter()
    deadline = start + seconds
    index = 0
    while time.perf_counter() < deadline:
        while len(under_way) < depth:
            under_way.append(transport.submit(commands[index % len(commands)]))
            index += 1
        response = under_way.popleft().result()
        assert response.status == 0, response.sense.hex()
        done += 1
    while under_way:
        under_way.popleft().result()
        done += 1
    return done * size / (time.perf_counter() - start) / (1 << 20)


def disk_cdb(opcode: int, offset: int, size: int) -> bytes:
    """READ(10) 28h or WRITE(10) 2Ah."""
    return (
        bytes((opcode, 0))
        + (offset // BLOCK).to_bytes(4, "big")
        + b"\0"
        + (size // BLOCK).to_bytes(2, "big")
        + b"\0"
    )


def _offsets(size: int) -> Iterator[int]:
    return iter(range(0, SPAN, max(size, SPAN // 64)))


def rows(plan: Plan) -> Iterator[Row]:
    """The rows read_4k_qd1 ... write_1m_qd8."""
    with bench_target() as target:
        yield from _rows(target, plan.seconds, plan.pairs)


def _rows(target: BenchTarget, seconds: float, pairs: int) -> Iterator[Row]:
    with pyosd.connect(target.url) as osd, pyosd.connect(target.disk_url) as disk:
        partition = osd.create_partition()
        obj = osd.create(partition)
        for offset in range(0, SPAN, 1 << 20):
            osd.write(obj, offset, b"\xa5" * (1 << 20))
        for direction in ("read", "write"):
            for label, size in SIZES.items():
                ours, baseline = _commands(direction, size, obj)
                for depth in DEPTHS:

                    def run(
                        transport: CommandTransport, commands: list[Command], depth: int = depth
                    ) -> Callable[[], float]:
                        return lambda: throughput(transport, commands, depth, seconds)

                    yield compare(
                        f"{direction}_{label}_qd{depth}",
                        run(osd.transport, ours),
                        run(disk.transport, baseline),
                        at_least(1.0),
                        f"{size} bytes, {depth} outstanding, against a rdwr disk of the same tgtd",
                        pairs=pairs,
                        unit="MiB/s",
                    )


def _commands(direction: str, size: int, obj: ObjectRef) -> tuple[list[Command], list[Command]]:
    """Prepared commands for the object and for the disk, at the same offsets."""
    ours, disk = [], []
    data = b"\x5a" * size
    buffer = bytearray(size)
    for offset in _offsets(size):
        if direction == "read":
            ours.append(encode(requests.read(obj, offset, size, buffer=buffer))[0])
            disk.append(Command(disk_cdb(0x28, offset, size), b"", size, buffer))
        else:
            ours.append(encode(requests.write(obj, offset, data))[0])
            disk.append(Command(disk_cdb(0x2A, offset, size), data))
    return ours, disk
