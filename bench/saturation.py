# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands and jobs as load rises past what the target can do, with the resource manager and without it.

Load is offered, not taken back: arrivals come by the clock, whether or not those before them are
answered.  Load 1 is half of what a target does of commands alone and half of what it does of jobs alone,
both at the same time.  A latency runs from a command's arrival to its answer; what is answered BUSY is
counted by itself.  Both targets are up all the time and are measured in turn.
"""

from __future__ import annotations

import asyncio
import contextlib
import random
from collections import deque
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from time import perf_counter

import pyosd
from bench.plan import Plan
from bench.stats import REPORTED, Curve, Point, Row, at_least, percentile, row_of_pairs
from bench.target import BenchTarget, bench_target
from pyosd import aio, requests
from pyosd.types import AttributeId, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, encode
from pyosd.wire.transport import Command, Pending

LOADS = (0.25, 0.5, 0.75, 1.0, 1.5, 2.0, 3.0)
OUTSTANDING = 16
KINDS = ("commands", "jobs")
OBJECTS, BYTES = 64, 4096
JOB = b"import osd\nosd.userobject(osd.zone.partition_id, %d).data.read(4096)\n"
BUSY = 0x08
TIMEOUT_S = 60.0
KEPT = 0.9  # of the best throughput, past saturation


@dataclass(frozen=True)
class Place:
    """The target of a load, for a process.  objects: ids in the partition."""

    url: str
    partition_id: int
    objects: tuple[int, ...]


@dataclass(frozen=True)
class Outcome:
    """Answered: a second, during the window.  p99: seconds; None: nothing was answered.  busy: share of
    the arrivals that were answered BUSY."""

    offered: float
    answered: float
    p99: float | None
    busy: float


@dataclass(frozen=True)
class Step:
    """Both kinds at one load."""

    load: float
    commands: Outcome
    jobs: Outcome


# ---- what is sent ------------------------------------------------------------------------------


def _commands(place: Place, kind: str) -> list[Command]:
    """Sent in turn: of 20 commands 14 READs, 3 WRITEs of 4 KiB and 3 GET ATTRIBUTES; or jobs."""
    found = []
    for number, object_id in enumerate(place.objects):
        obj = ref(place.partition_id, object_id)
        if kind == "jobs":
            code = JOB % object_id
            found.append(requests.execute(ref(place.partition_id), code, synchronous=True))
        elif number % 20 < 14:
            found.append(requests.read(obj, 0, BYTES))
        elif number % 20 < 17:
            found.append(requests.write(obj, 0, b"\x5a" * BYTES))
        else:
            wanted = AttributeLists(get=(AttributeId(Page.USER_INFORMATION, 0x82),))
            found.append(requests.get_attributes(obj, attributes=wanted))
    return [encode(request)[0] for request in found]


async def _offer(place: Place, kind: str, rate: float, seconds: float, seed: int) -> Outcome:
    rng = random.Random(seed)
    commands = _commands(place, kind)
    latencies: list[float] = []
    in_window = refused = 0
    async with aio.connect(place.url, timeout=TIMEOUT_S) as target:

        async def one(command: Command) -> None:
            nonlocal in_window, refused
            arrived = perf_counter()
            response = await target.transport.execute(command)
            now = perf_counter()
            refused += response.status == BUSY
            if response.status != BUSY:
                assert response.status == 0, response.sense.hex()
                latencies.append(now - arrived)
                in_window += now < end

        start = perf_counter()
        end = start + seconds
        tasks: list[asyncio.Task[None]] = []
        at = start
        while (at := at + rng.expovariate(rate)) < end:
            await asyncio.sleep(max(0.0, at - perf_counter()))
            tasks.append(asyncio.create_task(one(commands[len(tasks) % len(commands)])))
        await asyncio.gather(*tasks)
    p99 = percentile(latencies, 0.99) if latencies else None
    return Outcome(
        len(tasks) / seconds, in_window / seconds, p99, refused / len(tasks) if tasks else 0.0
    )


def offer(place: Place, kind: str, rate: float, seconds: float, seed: int) -> Outcome:
    """Arrivals at random, so many a second on average; in a process of its own."""
    return asyncio.run(_offer(place, kind, rate, seconds, seed))


def _alone(osd: pyosd.Target, commands: Sequence[Command], seconds: float) -> float:
    """Answers a second, always as many under way."""
    under_way: deque[Pending] = deque()
    sent = done = 0
    start = perf_counter()
    while perf_counter() < start + seconds:
        while len(under_way) < OUTSTANDING:
            under_way.append(osd.transport.submit(commands[sent % len(commands)]))
            sent += 1
        response = under_way.popleft().result()
        assert response.status == 0, response.sense.hex()
        done += 1
    while under_way:
        under_way.popleft().result()
    return done / seconds


# ---- rows --------------------------------------------------------------------------------------


def _prepare(osd: pyosd.Target, url: str) -> Place:
    zone: ObjectRef = osd.partition(osd.create_partition())
    objects = [osd.create(zone.partition_id) for _ in range(OBJECTS)]
    for obj in objects:
        osd.write(obj, 0, b"\xa5" * BYTES)
    return Place(url, zone.partition_id, tuple(obj.object_id for obj in objects))


def _steps(
    places: dict[str, Place], full: dict[str, float], seconds: float
) -> Iterator[tuple[str, Step]]:
    with ProcessPoolExecutor(2, mp_context=get_context("spawn")) as pool:
        for number, load in enumerate((LOADS[0], *LOADS)):
            for name, place in places.items():
                under_way = [
                    pool.submit(offer, place, kind, load * full[kind] / 2, seconds, number)
                    for kind in KINDS
                ]
                commands, jobs = (each.result() for each in under_way)
                if number:  # the first is a warm-up
                    yield name, Step(load, commands, jobs)


def _capacity(
    targets: dict[str, BenchTarget], seconds: float
) -> tuple[dict[str, Place], dict[str, float]]:
    places: dict[str, Place] = {}
    full = dict.fromkeys(KINDS, 0.0)
    for name, target in targets.items():
        with pyosd.connect(target.url) as osd:
            places[name] = _prepare(osd, target.url)
            for kind in KINDS:
                found = _alone(osd, _commands(places[name], kind), seconds)
                full[kind] = max(full[kind], found)
    return places, full


def _rows(found: dict[str, list[Step]], method: str) -> Iterator[Row]:
    managed, fixed = found["with"], found["without"]
    for kind in KINDS:
        outcomes = [getattr(step, kind) for step in managed]
        best = max(outcome.answered for outcome in outcomes)
        yield row_of_pairs(
            f"saturation_{kind}",
            [(step.answered, best) for step, load in zip(outcomes, LOADS, strict=True) if load > 1],
            at_least(KEPT) if kind == "commands" else REPORTED,  # which go first
            f"{kind} a second at loads above 1 with the manager / at the best load; {method}",
            unit="/s",
        )
        pairs = [
            (ours.p99, theirs.p99)
            for ours, theirs in zip(
                (getattr(step, kind) for step in managed),
                (getattr(step, kind) for step in fixed),
                strict=True,
            )
            if ours.p99 and theirs.p99
        ]
        yield row_of_pairs(
            f"saturation_{kind}_p99",
            pairs,
            REPORTED,
            f"99th percentile of {kind}, with the manager / without, over loads; {method}",
        )


def _curves(found: dict[str, list[Step]]) -> Iterator[Curve]:
    for kind in KINDS:
        outcomes = {
            f"{name} the manager": [(step.load, getattr(step, kind)) for step in steps]
            for name, steps in found.items()
        }
        answered = {
            name: [Point(load, each.answered) for load, each in line]
            for name, line in outcomes.items()
        }
        yield Curve(f"saturation_{kind}", f"{kind} past saturation", "load", "1/s", answered)
        tails = {
            name: [Point(load, 1e3 * each.p99) for load, each in line if each.p99]
            for name, line in outcomes.items()
        }
        title = f"99th percentile of {kind} past saturation"
        yield Curve(f"saturation_{kind}_p99", title, "load", "ms", tails, log_y=True)


def rows(plan: Plan) -> Iterator[Row | Curve]:
    """saturation_commands, saturation_jobs and their p99; the same as curves over load."""
    seconds = 0.5 if plan.quick else 3.0
    with contextlib.ExitStack() as stack:
        targets = {
            "with": stack.enter_context(bench_target(manager=True)),
            "without": stack.enter_context(bench_target()),
        }
        places, full = _capacity(targets, seconds)
        found: dict[str, list[Step]] = {name: [] for name in targets}
        for name, step in _steps(places, full, seconds):
            found[name].append(step)
    yield from _curves(found)
    method = (
        f"load 1 is {full['commands'] / 2:.0f} commands/s and {full['jobs'] / 2:.0f} jobs/s, "
        f"{len(LOADS)} loads, {seconds:g} s each"
    )
    yield from _rows(found, method)
