# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of a command by the number of workers, and of a job by the number of sandboxes, both
changed while the target serves. The baselines are the disk's sixteen threads, and a
ProcessPoolExecutor with as many workers.
"""

from __future__ import annotations

import itertools
import socket
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, ProcessPoolExecutor
from multiprocessing import get_context
from typing import Any

import pyosd
from bench.curve_load import Sample, cost, curve, in_rounds, keep_under_way, some
from bench.peers import nothing
from bench.plan import Plan
from bench.stats import Curve
from bench.target import BenchTarget, bench_target
from bench.wire import disk_cdb
from iosd_host.control import messages
from iosd_host.control.messages import Type
from pyosd import requests
from pyosd.wire.cdb import Options, encode
from pyosd.wire.transport import Command

WORKERS = (1, 2, 4, 8)
SANDBOXES = (1, 2, 4, 8)
OUTSTANDING = 16
SMALL, LARGE = 4096, 1 << 20
ANSWER_S = 20.0


class Control:
    """The module's control socket, as a tool uses it where there is no manager (docs/control.md)."""

    def __init__(self, target: BenchTarget) -> None:
        self._serials = itertools.count(1)
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        self._socket.settimeout(ANSWER_S)
        self._socket.connect(str(target.control))
        self.ask(Type.HELLO, role="tool", who="bench", versions="1-1")

    def __enter__(self) -> Control:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()

    def ask(self, kind: Type, **keys: object) -> dict[str, Any]:
        """The answer's fields.  Raises: TargetError: it was refused."""
        frame = messages.request(kind, next(self._serials), keys)
        self._socket.send(messages.encode(frame))
        return messages.answer_fields(messages.decode(self._socket.recv(messages.FRAME_MAX)))


def _after(change: Callable[[], object], sample: Sample) -> Sample:
    def changed() -> Mapping[str, float]:
        change()
        return sample()

    return changed


# ---- workers -----------------------------------------------------------------------------------


def _worker_commands(osd: pyosd.Target) -> dict[str, list[Command]]:
    pid = osd.create_partition()
    objects = [osd.create(pid) for _ in range(OUTSTANDING)]
    for obj in objects:
        osd.write(obj, 0, b"\xa5" * LARGE)
    small, buffer = b"\x5a" * SMALL, bytearray(LARGE)
    sync = Options(fua=True)
    kinds = {
        "WRITE of 4 KiB": [requests.write(obj, 0, small) for obj in objects],
        "WRITE of 4 KiB with FUA": [requests.write(obj, 0, small, options=sync) for obj in objects],
        "READ of 1 MiB": [requests.read(obj, 0, LARGE, buffer=buffer) for obj in objects],
        "CREATE": [requests.create(pid)],
    }
    return {name: [encode(each)[0] for each in kind] for name, kind in kinds.items()}


def _workers(plan: Plan, rounds: int) -> Iterator[Curve]:
    with (
        bench_target() as target,
        Control(target) as control,
        pyosd.connect(target.url) as osd,
        pyosd.connect(target.disk_url) as disk,
    ):
        buffer = bytearray(LARGE)
        offsets = range(0, OUTSTANDING * LARGE, LARGE)
        theirs = {
            "disk, 16 threads: WRITE of 4 KiB": [
                Command(disk_cdb(0x2A, at, SMALL), b"\x5a" * SMALL) for at in offsets
            ],
            "disk, 16 threads: READ of 1 MiB": [
                Command(disk_cdb(0x28, at, LARGE), b"", LARGE, buffer) for at in offsets
            ],
        }
        ours = _worker_commands(osd)

        def samples(count: int) -> Iterator[Sample]:
            for name, commands in ours.items():
                one = cost(name, target, osd, commands, OUTSTANDING, plan)
                yield _after(lambda: control.ask(Type.WORKERS, count=count), one)
            for name, commands in theirs.items():
                yield cost(name, target, disk, commands, OUTSTANDING, plan)

        found = in_rounds({count: list(samples(count)) for count in some(WORKERS, plan)}, rounds)
    yield curve("curve_workers", f"{OUTSTANDING} commands outstanding", "workers", found)


# ---- sandboxes ---------------------------------------------------------------------------------

COMPUTE = """
total = 0
for number in range(60_000):
    total += number * number
"""
WAIT = "import time\ntime.sleep(0.01)\n"


def compute() -> None:
    """Some milliseconds of a processor."""
    exec(COMPUTE, {})  # the same text as the job's


def wait() -> None:
    """Ten milliseconds of nothing."""
    exec(WAIT, {})


TASKS: dict[str, tuple[bytes, Callable[[], object]]] = {
    "nothing": (b"pass", nothing),
    "compute": (COMPUTE.encode(), compute),
    "wait 10 ms": (WAIT.encode(), wait),
}


def _jobs(osd: pyosd.Target, name: str, code: bytes, seconds: float) -> Sample:
    zone = osd.partition(osd.create_partition())
    command = encode(requests.execute(zone, code, synchronous=True))[0]

    def sample() -> Mapping[str, float]:
        start = time.perf_counter()
        done = keep_under_way([osd.transport], [command], OUTSTANDING, seconds)
        return {name: (time.perf_counter() - start) / done}

    return sample


def _tasks(
    pool: ProcessPoolExecutor, name: str, task: Callable[[], object], seconds: float
) -> Sample:
    def sample() -> Mapping[str, float]:
        start = time.perf_counter()
        under_way: deque[Future[object]] = deque(pool.submit(task) for _ in range(OUTSTANDING))
        done = 0
        while under_way:
            under_way.popleft().result()
            done += 1
            if time.perf_counter() < start + seconds:
                under_way.append(pool.submit(task))
        return {f"ProcessPoolExecutor: {name}": (time.perf_counter() - start) / done}

    return sample


def _sandboxes(plan: Plan, rounds: int) -> Iterator[Curve]:
    counts = some(SANDBOXES, plan)
    with (
        bench_target("--slots", str(max(SANDBOXES)), disk=False) as target,
        Control(target) as control,
        pyosd.connect(target.url) as osd,
    ):
        pools = {
            count: ProcessPoolExecutor(count, mp_context=get_context("spawn")) for count in counts
        }

        def samples(count: int) -> Iterator[Sample]:
            def change() -> object:
                return control.ask(Type.POOL, name="default", active=count)

            for name, (code, task) in TASKS.items():
                yield _after(change, _jobs(osd, name, code, plan.seconds / 2))
                yield _tasks(pools[count], name, task, plan.seconds / 2)

        try:
            found = in_rounds({count: list(samples(count)) for count in counts}, rounds)
        finally:
            for pool in pools.values():
                pool.shutdown()
    yield curve(
        "curve_sandboxes", f"Jobs, {OUTSTANDING} outstanding", "sandboxes", found,
        "seconds per job",
    )  # fmt: skip


def rows(plan: Plan, rounds: int) -> Iterator[Curve]:
    """curve_workers, curve_sandboxes."""
    yield from _workers(plan, rounds)
    yield from _sandboxes(plan, min(rounds, 5))
