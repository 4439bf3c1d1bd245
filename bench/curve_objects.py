# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of commands by the number of objects, each number in a separate store. Also READs of
random objects, against READs of as many places of tgtd's own disk.
"""

from __future__ import annotations

import contextlib
import random
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping

import pyosd
from bench.curve_load import Sample, cost, curve, in_rounds
from bench.plan import Plan
from bench.scale import FIRST, NUMBER, Population, wait_for_index
from bench.stats import Curve
from bench.target import BenchTarget, bench_target
from bench.wire import disk_cdb
from pyosd import requests
from pyosd.types import AttributeId, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, encode
from pyosd.wire.transport import Command, Pending

OBJECTS = (1_000, 10_000, 100_000, 1_000_000)
QUICK_DATA, LARGE_DATA = 1_000, 100_000
WITH_DATA = (100, 300, 1_000, 3_000, 10_000, 30_000, 100_000)
SMALL = 4096
OUTSTANDING = 16
PICKED = 30_000
BATCH = 20  # calls in one sample


def _by_calls(population: Population) -> dict[str, Callable[[], None]]:
    return {
        "CREATE": population.create,
        "REMOVE": population.remove,
        "LIST of 1,000": population.list,
        "QUERY, 1,000 matches": population.query,
    }


def _timed(name: str, call: Callable[[], None]) -> Sample:
    def sample() -> Mapping[str, float]:
        start = time.perf_counter()
        for _ in range(BATCH):
            call()
        return {name: (time.perf_counter() - start) / BATCH}

    return sample


def _picked(pid: int, count: int) -> list[ObjectRef]:
    rng = random.Random(count)
    return [ref(pid, FIRST + rng.randrange(count)) for _ in range(min(count, PICKED))]


def _counts(plan: Plan, rounds: int) -> Iterator[Curve]:
    counts = OBJECTS[:2] if plan.quick else OBJECTS
    wanted = AttributeLists(get=(AttributeId(Page.APPLICATION, NUMBER),))
    with contextlib.ExitStack() as stack:
        steps: dict[float, list[Sample]] = {}
        for count in counts:
            target = stack.enter_context(bench_target("--no-sandboxes", disk=False))
            osd = stack.enter_context(pyosd.connect(target.url))
            population = Population(osd, count)
            wait_for_index(osd, population.pid)
            steps[count] = [_timed(name, call) for name, call in _by_calls(population).items()]
            get = [
                encode(requests.get_attributes(obj, attributes=wanted))[0]
                for obj in _picked(population.pid, count)
            ]
            steps[count].append(
                cost(
                    f"GET ATTRIBUTES, {OUTSTANDING} outstanding",
                    target,
                    osd,
                    get,
                    OUTSTANDING,
                    plan,
                )
            )
        found = in_rounds(steps, 2 * rounds)
    yield curve("curve_objects", "A store of its own for each number", "objects", found)


# ---- data --------------------------------------------------------------------------------------


def _fill(osd: pyosd.Target, pid: int, count: int) -> None:
    """More objects of 4 KiB."""
    command = encode(requests.create_and_write(pid, 0, 0, b"\xa5" * SMALL))[0]
    under_way: deque[Pending] = deque()
    for _ in range(count):
        if len(under_way) >= OUTSTANDING:
            assert under_way.popleft().result().status == 0
        under_way.append(osd.transport.submit(command))
    while under_way:
        assert under_way.popleft().result().status == 0


def _reach(
    target: BenchTarget, plan: Plan, osd: pyosd.Target, disk: pyosd.Target, objects: list[ObjectRef]
) -> Iterator[Sample]:
    """READ and WRITE of these objects, READ of the disk where it has as many blocks."""
    buffer, data = bytearray(SMALL), b"\x5a" * SMALL
    read = [encode(requests.read(obj, 0, SMALL, buffer=buffer))[0] for obj in objects]
    write = [encode(requests.write(obj, 0, data))[0] for obj in objects]
    blocks = [
        Command(disk_cdb(0x28, (obj.object_id - FIRST) * SMALL, SMALL), b"", SMALL, buffer)
        for obj in objects
    ]
    yield cost("READ", target, osd, read, OUTSTANDING, plan)
    yield cost("WRITE", target, osd, write, OUTSTANDING, plan)
    yield cost("disk: READ", target, disk, blocks, OUTSTANDING, plan)


def data(target: BenchTarget, plan: Plan, rounds: int) -> Iterator[Curve]:
    """READs and WRITEs of objects of 4 KiB, any of so many."""
    counts = [count for count in WITH_DATA if count <= (QUICK_DATA if plan.quick else LARGE_DATA)]
    with pyosd.connect(target.url) as osd, pyosd.connect(target.disk_url) as disk:
        pid, made = osd.create_partition(), 0
        steps: dict[float, list[Sample]] = {}
        for count in counts:
            _fill(osd, pid, count - made)
            made = count
            steps[count] = list(_reach(target, plan, osd, disk, _picked(pid, count)))
        found = in_rounds(steps, rounds)
    yield curve(
        "curve_objects_data",
        f"4 KiB of objects picked at random, {OUTSTANDING} outstanding",
        "objects",
        found,
    )


def rows(plan: Plan, rounds: int) -> Iterator[Curve]:
    """curve_objects, curve_objects_data."""
    yield from _counts(plan, rounds)
    with bench_target("--no-sandboxes", disk_bytes=-(-LARGE_DATA * SMALL >> 20) << 20) as target:
        yield from data(target, plan, rounds)
