# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of one client's long commands for another client: small WRITEs during PUNCHes of large
objects."""

from __future__ import annotations

import contextlib
import threading
import time
from collections.abc import Iterator

import pyosd
from bench.plan import Plan
from bench.stats import Row, at_most, percentile, row_of_pairs
from bench.target import bench_target
from pyosd.types import ObjectRef

MIB = 1 << 20
PUNCHES, PUNCHED_MIB = 10, 100
WRITE_BYTES, WRITES_PER_S = 1000, 200
AIM = at_most(3)


def _fill(osd: pyosd.Target, objects: list[ObjectRef]) -> None:
    """Make the objects as long as they were before they were punched."""
    block = b"\x5a" * MIB
    for each in objects:
        for at in range(0, PUNCHED_MIB * MIB, MIB):
            osd.write(each, at, block)
    osd.flush_osd()


def _write_p99(osd: pyosd.Target, own: ObjectRef, go_on: threading.Event, least: int) -> float:
    """At a fixed pace, at least so many; a late WRITE counts from when it was due."""
    data, times = b"\xa5" * WRITE_BYTES, []
    start = time.perf_counter()
    index = 0
    while index < least or go_on.is_set():
        due = start + index / WRITES_PER_S
        while (now := time.perf_counter()) < due:
            time.sleep(max(0.0, due - now - 5e-5))
        osd.write(own, 0, data)
        times.append(time.perf_counter() - due)
        index += 1
    return percentile(times, 0.99)


class _Punches:
    """One PUNCH over each connection, at once; `running` until the last one has ended."""

    def __init__(self, clients: list[pyosd.Target], objects: list[ObjectRef]) -> None:
        self.running = threading.Event()
        self.running.set()
        self.left = len(objects)
        self.lock = threading.Lock()
        both = zip(clients, objects, strict=True)
        self.threads = [threading.Thread(target=self._punch, args=each) for each in both]
        for thread in self.threads:
            thread.start()

    def _punch(self, osd: pyosd.Target, punched: ObjectRef) -> None:
        try:
            osd.punch(punched, 1000, 4096)
        finally:
            with self.lock:
                self.left -= 1
                if not self.left:
                    self.running.clear()

    def join(self) -> None:
        for thread in self.threads:
            thread.join()


def rows(plan: Plan) -> Iterator[Row]:
    """neighbour_p99."""
    pairs, least = (2, 100) if plan.quick else (7, 400)
    idle = threading.Event()
    with contextlib.ExitStack() as stack:
        target = stack.enter_context(bench_target("--no-sandboxes", disk=False))
        osd = stack.enter_context(pyosd.connect(target.url))
        clients = [stack.enter_context(pyosd.connect(target.url)) for _ in range(PUNCHES)]
        mine, theirs = osd.create_partition(), osd.create_partition()
        own = osd.create(mine)
        objects = [osd.create(theirs) for _ in range(PUNCHES)]
        _write_p99(osd, own, idle, least)

        def pair() -> tuple[float, float]:
            _fill(osd, objects)
            quiet = _write_p99(osd, own, idle, least)
            punches = _Punches(clients, objects)
            loaded = _write_p99(osd, own, punches.running, 1)
            punches.join()
            return loaded, quiet

        samples = [pair() for _ in range(pairs)]
    method = (
        f"99th percentile of WRITEs of {WRITE_BYTES} bytes at {WRITES_PER_S}/s while {PUNCHES} PUNCHes of "
        f"objects of {PUNCHED_MIB} MiB run, each over a connection of its own / while nothing else runs"
    )
    yield row_of_pairs("neighbour_p99", samples, AIM, method)
