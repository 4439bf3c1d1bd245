# SPDX-License-Identifier: GPL-2.0-or-later
"""The cost of commands in a partition of a million objects, against one of a thousand in the same
store. Also the time of a restart after kill -9 with a full store.
"""

from __future__ import annotations

import itertools
import os
import random
import signal
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.stats import Row, at_most, missing, row_of_pairs
from bench.target import BenchTarget, bench_target
from pyosd import Criterion, requests
from pyosd.errors import OSDError
from pyosd.types import AttributeValue, PartitionId, ref
from pyosd.wire.attributes import Page

GROUP = 1000  # objects with the same value of the indexed attribute
NUMBER = 1
RESTART_AIM_S = 2.0
OUTSTANDING = 64
FIRST = 0x10000  # id of a partition's first object


def fill(osd: pyosd.Target, count: int) -> PartitionId:
    """A partition with so many objects, each with the number of its group in an indexed page."""
    pid = osd.create_partition()
    osd.set_attributes(ref(pid), [AttributeValue(Page.INDEX, Page.APPLICATION, b"\1")])
    for group in range(0, count, GROUP):
        value = AttributeValue(Page.APPLICATION, NUMBER, (group // GROUP).to_bytes(8, "big"))
        osd.create_many(pid, min(GROUP, count - group), attributes=[value])
    return pid


class Population:
    """A partition and what is done to it, each as a function that takes no argument."""

    def __init__(self, osd: pyosd.Target, count: int) -> None:
        self.osd, self.count = osd, count
        self.pid = fill(osd, count)
        self.rng = random.Random(count)
        self.made: list[int] = []

    def create(self) -> None:
        self.made.append(self.osd.create(self.pid).object_id)

    def remove(self) -> None:
        self.osd.remove(ref(self.pid, self.made.pop()))

    def list(self) -> None:
        """A page from anywhere."""
        initial = FIRST + self.rng.randrange(self.count - GROUP + 1)
        assert len(self.osd.list_page(ref(self.pid), initial, GROUP).ids) == GROUP

    def query(self) -> None:
        """The objects of one group."""
        group = self.rng.randrange(self.count // GROUP).to_bytes(8, "big")
        wanted = Criterion(Page.APPLICATION, NUMBER, group, group)
        assert len(self.osd.query(ref(self.pid), [wanted])) == GROUP

    def get(self) -> None:
        """An attribute of an object from anywhere."""
        obj = ref(self.pid, FIRST + self.rng.randrange(self.count))
        assert self.osd.get_attribute(obj, Page.APPLICATION, NUMBER)

    def count_objects(self) -> None:
        self.osd.get_attribute(ref(self.pid), Page.PARTITION_INFORMATION, 0xC1)


def timed(call: Callable[[], None]) -> float:
    start = time.perf_counter()
    call()
    return time.perf_counter() - start


def rows(plan: Plan) -> Iterator[Row]:
    """create_scale, list_scale, query_scale, count_scale, remove_scale, restart."""
    with bench_target() as target:
        yield from _rows(target, 20_000 if plan.quick else 1_000_000, plan.count // 5)
    part, repeats = (20, 2) if plan.quick else (1, 5)
    with bench_target("--reuse", "trusted") as target:
        yield restart_row(target, 100_000 // part, 10_000 // part, repeats)


def _rows(target: BenchTarget, objects: int, pairs: int) -> Iterator[Row]:
    with pyosd.connect(target.url) as osd:
        small, large = Population(osd, GROUP), Population(osd, objects)
        wait_for_index(osd, large.pid)
        method = f"{{}} at {objects:,} objects / at {GROUP:,}, {pairs} interleaved pairs"
        for name, what in (
            ("create", "CREATE"),
            ("list", f"LIST of {GROUP} ids from anywhere"),
            ("query", f"QUERY by an indexed attribute, {GROUP} matches"),
            ("count_objects", "GET ATTRIBUTES of the number of objects"),
            ("remove", "REMOVE"),
        ):
            many, few = getattr(large, name), getattr(small, name)
            samples = [(timed(many), timed(few)) for _ in range(pairs + pairs // 10)]
            row_id = name.removesuffix("_objects") + "_scale"
            samples = samples[pairs // 10 :]
            yield row_of_pairs(row_id, samples, at_most(1.2), method.format(what))


def wait_for_index(osd: pyosd.Target, pid: PartitionId) -> None:
    ready = b"\2"
    while osd.get_attribute(ref(pid), Page.INDEX, Page.APPLICATION) != ready:
        time.sleep(0.1)


# ---- restart -----------------------------------------------------------------------------------


def run_jobs(osd: pyosd.Target, count: int) -> None:
    """So many jobs that have ended, as fast as they go."""
    zone = osd.partition(osd.create_partition())
    request = requests.execute(zone, b"pass", synchronous=True)
    under_way = []
    for number in itertools.count():
        if number < count:
            under_way.append(osd.submit(request))
        if not under_way:
            return
        if number >= count or len(under_way) >= OUTSTANDING:
            reply = under_way.pop(0).reply()
            assert reply.error is None, reply.error


def tgtd_of(target: BenchTarget) -> int:
    """Process id of the tgtd that has the store open."""
    wanted = (target.folder / "store" / "lock").stat().st_ino
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            opened = [each.stat().st_ino for each in (entry / "fd").iterdir()]
            if wanted in opened and (entry / "comm").read_text().strip() == "tgtd":
                return int(entry.name)
        except OSError:
            continue
    raise SystemExit("bench: no tgtd has the store open")


def restart_row(target: BenchTarget, objects: int, jobs: int, repeats: int) -> Row:
    """restart: from kill -9 of tgtd to the first command answered, by the supervisor's doing."""
    aim = at_most(1)
    with pyosd.connect(target.url) as osd:
        fill(osd, objects)
        run_jobs(osd, jobs)
    samples = []
    for _ in range(repeats):
        with pyosd.connect(target.url) as osd:  # something to recover
            osd.create_and_write(osd.create_partition(), b"x" * 100_000)
        start = time.perf_counter()
        os.kill(tgtd_of(target), signal.SIGKILL)
        while not answers(target):
            if time.perf_counter() > start + 60:
                return missing("restart", aim, "the target did not come back within a minute")
            time.sleep(0.01)
        samples.append((time.perf_counter() - start, RESTART_AIM_S))
    method = f"kill -9 of tgtd to the first answer, {objects:,} objects, {jobs:,} jobs; the aim"
    return row_of_pairs("restart", samples, aim, method)


def answers(target: BenchTarget) -> bool:
    try:
        with pyosd.connect(target.url, timeout=5, reconnect_timeout=0) as osd:
            osd.list_page(ref(), 0, 1)
            return True
    except OSDError:
        return False
