# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures 7 and 8 of the iOSD paper: how much of one processor the target takes while two initiators keep
it busy with commands made from NFS calls, and how that divides between tgtd's thread and the worker.

As there: everything of the target runs on one processor (the initiators on the others), with one worker,
and is sampled every 1000 commands; commands keep their order where one needs the other; none may
fail.  The paper's traces are not public.  The calls here follow what it tells (iosd_host/policy/traces.py
has the same): heavy ones at first, files made, written and described, fading over the first fifth; then
what NFS servers of the time mostly saw: attributes, look-ups, reads.
"""

from __future__ import annotations

import collections
import math
import os
import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from multiprocessing import get_context
from multiprocessing.queues import Queue
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.stats import REPORTED, Curve, Point, Row, missing, row_of_pairs
from bench.target import BenchTarget, bench_target
from pyosd import requests
from pyosd.types import AttributeId, AttributeValue, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request, encode
from pyosd.wire.transport import Command, Pending

ROW_IDS = ("nfs_target_cpu", "nfs_worker_master")
INITIATORS = 2
OUTSTANDING = 16
SAMPLE_EVERY = 1000
STALL_S = 60.0
FIRST_OBJECT = 0x10000
BLOCK = 8192
NAME, MODE, OWNER = 0x10, 0x11, 0x12  # what a file has beside its data
KEPT = Page.APPLICATION
HEAVY = {"create": 35, "write": 40, "setattr": 15, "remove": 10}
LIGHT = {
    "getattr": 35,
    "lookup": 25,
    "access": 10,
    "read": 20,
    "write": 4,
    "readdir": 3,
    "setattr": 1,
    "commit": 1,
    "create": 1,
}


@dataclass(frozen=True)
class Sample:
    """Seconds of processor, since the one before, of the threads of tgtd; took: seconds on the clock."""

    at: float
    took: float
    master: float
    workers: float
    others: float

    @property
    def used(self) -> float:
        """Share of one processor."""
        return (self.master + self.workers + self.others) / self.took


# ---- commands ----------------------------------------------------------------------------------


def heaviness(index: int, count: int) -> float:
    """How many of the calls are of the heavy kind at this place of the stream."""
    return math.exp(-5 * index / count)


def stream(partition_id: int, count: int, seed: int) -> Iterator[tuple[Command, int]]:
    """Commands of one initiator in its partition, and the object each is about (0: the partition)."""
    rng = random.Random(seed)
    files: list[int] = []
    written: set[int] = set()
    next_id = FIRST_OBJECT
    for index in range(count):
        mix = HEAVY if rng.random() < heaviness(index, count) else LIGHT
        call = rng.choices(list(mix), list(mix.values()))[0]
        if call == "create" or not files:
            files.append(next_id)
            next_id += 1
            yield encode(_create(partition_id, files[-1]))[0], files[-1]
        elif call == "readdir":
            yield encode(requests.list_objects(partition_id, 2048))[0], 0
        elif call == "remove":
            gone = files.pop(rng.randrange(len(files)))
            yield encode(requests.remove(ref(partition_id, gone)))[0], gone
        else:
            file = rng.choice(files)
            if file not in written:  # reads of what is not there would fail
                call = "write" if call in ("read", "commit") else call
            written |= {file} if call == "write" else set()
            yield encode(_on_file(call, partition_id, file, rng))[0], file


def _create(partition_id: int, file: int) -> Request:
    described = [
        AttributeValue(KEPT, NAME, b"file%08x" % file),
        AttributeValue(KEPT, MODE, (0o644).to_bytes(4, "big")),
        AttributeValue(KEPT, OWNER, (1000).to_bytes(4, "big")),
    ]
    return requests.create(partition_id, file, attributes=AttributeLists(set=tuple(described)))


def _on_file(call: str, partition_id: int, file: int, rng: random.Random) -> Request:
    obj = ref(partition_id, file)
    if call == "write":
        return requests.write(obj, 0, b"\x5a" * BLOCK)
    if call == "read":
        return requests.read(obj, 0, BLOCK)
    if call == "commit":
        return requests.flush(obj)
    if call == "setattr":
        mode = AttributeValue(KEPT, MODE, rng.randrange(0o777).to_bytes(4, "big"))
        return requests.set_attributes(obj, attributes=AttributeLists(set=(mode,)))
    if call == "lookup":
        return requests.get_attributes(
            obj, attributes=AttributeLists(get=(AttributeId(KEPT, NAME),))
        )
    wanted = [AttributeId(KEPT, MODE), AttributeId(KEPT, OWNER)]
    if call == "getattr":
        wanted.append(AttributeId(Page.USER_INFORMATION, 0x82))
    return requests.get_attributes(obj, attributes=AttributeLists(get=tuple(wanted)))


# ---- initiators --------------------------------------------------------------------------------


def initiate(url: str, count: int, seed: int, cpus: set[int], told: Queue[int]) -> None:
    """One initiator, in a process of its own: its stream, and a word after each 100 answers.  A command
    waits for one before it that is about the same object."""
    os.sched_setaffinity(0, cpus)
    under_way: collections.deque[tuple[Pending, int]] = collections.deque()
    busy: collections.Counter[int] = collections.Counter()
    done = 0

    def take() -> None:
        nonlocal done
        pending, about = under_way.popleft()
        response = pending.result()
        assert response.status == 0, response.sense.hex()
        busy[about] -= 1
        done += 1
        if done % 100 == 0:
            told.put(100)

    with pyosd.connect(url) as osd:
        prepared = list(stream(osd.create_partition(), count, seed))
        for command, about in prepared:
            while (about and busy[about]) or len(under_way) >= OUTSTANDING:
                take()
            under_way.append((osd.transport.submit(command), about))
            busy[about] += 1
        while under_way:
            take()
    told.put(0)


# ---- samples -----------------------------------------------------------------------------------


def _tgtd(root: int) -> int:
    for task in Path(f"/proc/{root}/task").iterdir():
        for child in (task / "children").read_text().split():
            if Path(f"/proc/{child}/comm").read_text() == "tgtd\n":
                return int(child)
    raise RuntimeError("no tgtd below the supervisor")


def _seconds(pid: int) -> tuple[float, float, float]:
    """Of tgtd's thread, of the workers and of all others, since they started."""
    used = [0.0, 0.0, 0.0]
    for task in Path(f"/proc/{pid}/task").iterdir():
        name = (task / "comm").read_text().strip()
        kind = 0 if int(task.name) == pid else 1 if name == "iosd-worker" else 2
        used[kind] += int((task / "schedstat").read_text().split()[0]) / 1e9
    return used[0], used[1], used[2]


def _watch(pid: int, told: Queue[int]) -> Iterator[Sample]:
    told.get(timeout=STALL_S)  # until then initiators start
    start = last = time.perf_counter()
    before = _seconds(pid)
    count, left = 0, INITIATORS
    while left:
        answers = told.get(timeout=STALL_S)
        left -= answers == 0
        count += answers
        if count < SAMPLE_EVERY:
            continue
        count -= SAMPLE_EVERY
        now, used = time.perf_counter(), _seconds(pid)
        parts = [after - earlier for after, earlier in zip(used, before, strict=True)]
        yield Sample(now - start, now - last, *parts)
        before, last = used, now


def _run(target: BenchTarget, commands: int, others: set[int]) -> list[Sample]:
    context = get_context("spawn")
    told: Queue[int] = context.Queue()
    processes = [
        context.Process(target=initiate, args=(target.url, commands // INITIATORS, n, others, told))
        for n in range(INITIATORS)
    ]
    for process in processes:
        process.start()
    samples = list(_watch(_tgtd(target.pid), told))
    for process in processes:
        process.join()
        assert process.exitcode == 0
    return samples


def _curves(samples: list[Sample]) -> Iterator[Curve]:
    def line(share: Callable[[Sample], float]) -> list[Point]:
        return [Point(sample.at, 100 * share(sample)) for sample in samples]

    labels = ("time, s", "share of one processor, %")
    target = {"target": line(lambda sample: sample.used)}
    yield Curve("nfs_target_cpu", "NFS calls: the target (figure 7)", *labels, target)
    threads = {
        "tgtd's thread": line(lambda sample: sample.master / sample.took),
        "worker": line(lambda sample: sample.workers / sample.took),
    }
    yield Curve("nfs_threads_cpu", "NFS calls: threads (figure 8)", *labels, threads)


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """nfs_target_cpu, nfs_worker_master; as curves figures 7 and 8."""
    samples = 10 if plan.quick else 100
    cpus = sorted(os.sched_getaffinity(0))
    if len(cpus) < 2:
        for row_id in ROW_IDS:
            yield missing(row_id, REPORTED, "one processor for the target, one for initiators")
        return
    options = ("--workers", "1", "--no-sandboxes")
    with bench_target(*options, prefix=("taskset", "-c", str(cpus[0]))) as target:
        found = _run(target, samples * SAMPLE_EVERY, set(cpus[1:]))
    yield from _curves(found)
    method = (
        f"{len(found)} samples of {SAMPLE_EVERY} commands from {INITIATORS} initiators, target on one "
        f"processor with one worker, {SAMPLE_EVERY / statistics.median(s.took for s in found):.0f} "
        "commands/s"
    )
    pairs = [(100 * sample.used, 100.0) for sample in found]
    yield row_of_pairs(
        ROW_IDS[0], pairs, REPORTED, f"{method}; baseline: all of the processor", unit="%"
    )
    # A tick of the worker's at least, so that a sample without any has a ratio.
    pairs = [
        (100 * sample.workers / sample.took, 100 * max(sample.master, 1e-6) / sample.took)
        for sample in found
    ]
    yield row_of_pairs(
        ROW_IDS[1], pairs, REPORTED, f"worker's share / tgtd's thread's, {method}", unit="%"
    )
