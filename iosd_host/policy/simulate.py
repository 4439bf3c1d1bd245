# SPDX-License-Identifier: GPL-2.0-or-later
"""A simulated target, to try the policy on a load.  No clock, no I/O.

Time goes in ticks.  The simulation counts jobs instead of storing them. Jobs of one tick wait
together in order of arrival. Each runs for a random time of its distribution. The time is rounded
to ticks at random, which keeps its mean.  As in the target a job needs a slot and a sandbox of its
own, which takes time to come up. Commands are a fluid: what the workers cannot do at once waits.
"""

from __future__ import annotations

import math
import random
from collections import defaultdict, deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise

from iosd_host.policy.events import (
    Bounds,
    Decision,
    Load,
    Mode,
    PoolLoad,
    Pressure,
    SetActive,
    SetSpares,
    SetWorkers,
    Shed,
    WorkerLoad,
)
from iosd_host.policy.policy import Policy
from iosd_host.policy.traces import Trace

__all__ = [
    "SimulatedCommands",
    "SimulatedPool",
    "SimulatedTarget",
    "SimulationRecord",
    "constant",
    "exponential",
    "fluid_wait",
    "run",
    "turns",
]

TICK = 0.01
Draw = Callable[[random.Random], float]


def exponential(mean: float) -> Draw:
    """Times to work of which most are short and some long."""
    return lambda rng: rng.expovariate(1 / mean)


def constant(seconds: float) -> Draw:
    """The same time to work for every job."""
    return lambda rng: seconds


def poisson(rng: random.Random, mean: float) -> int:
    """A number of arrivals; by the normal distribution where there are many."""
    if mean > 30:
        return max(0, round(rng.gauss(mean, math.sqrt(mean))))
    bound, count, product = math.exp(-mean), 0, rng.random()
    while product > bound:
        product *= rng.random()
        count += 1
    return count


@dataclass
class SimulatedPool:
    """A pool and what befalls it.

    Attributes:
        trace: jobs a second.
        work: seconds a job works.
        warm: seconds a sandbox takes to come up.
        even: jobs come evenly instead of by chance.
    """

    name: str
    min: int
    max: int
    trace: Trace
    work: Draw
    warm: float = 0.02
    memory_per_slot: int = 256 << 20
    even: bool = False
    active: int = 0
    spares: int = 1
    mode: Mode = Mode.RUNNING
    serving: bool = True

    waiting: deque[list[float]] = field(default_factory=deque)
    ends: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    risen: defaultdict[int, int] = field(default_factory=lambda: defaultdict(int))
    queued: int = 0
    busy: int = 0
    ready: int = 0
    warming: int = 0
    arrived: int = 0
    started: int = 0
    ended: int = 0
    refused: int = 0
    run_seconds: float = 0.0
    waited: float = 0.0
    waited_most: float = 0.0
    _owed: float = 0.0

    def tick(self, number: int, rng: random.Random, shedding: bool) -> None:
        now = number * TICK
        done = self.ends.pop(number, 0)
        self.busy -= done
        self.ended += done
        came = self._come(now, rng)
        if shedding or self.mode is Mode.DRAINING:
            self.refused += came
        elif came:
            self.arrived += came
            self.queued += came
            self.waiting.append([now, came])
        up = self.risen.pop(number, 0)
        self.warming -= up
        self.ready += up
        self._start(number, rng)
        self._refill(number)

    def _come(self, now: float, rng: random.Random) -> int:
        mean = self.trace(now) * TICK
        if not self.even:
            return poisson(rng, mean)
        self._owed += mean
        came = int(self._owed + 1e-9)
        self._owed -= came
        return came

    def _start(self, number: int, rng: random.Random) -> None:
        if self.mode is Mode.PAUSED:
            return
        room = min(self.queued, self.active - self.busy, self.ready)
        while room > 0:
            begun = room
            while room > 0:
                batch = self.waiting[0]
                take = min(room, int(batch[1]))
                wait = number * TICK - batch[0]
                self.waited += wait * take
                self.waited_most = max(self.waited_most, wait)
                batch[1] -= take
                if not batch[1]:
                    self.waiting.popleft()
                room -= take
            self.queued -= begun
            self.ready -= begun
            self.started += begun
            for _ in range(begun):
                seconds = self.work(rng)
                self.run_seconds += seconds
                ticks = int(seconds / TICK + rng.random())
                if ticks:
                    self.ends[number + ticks] += 1
                    self.busy += 1
                else:
                    self.ended += 1
            room = min(self.queued, self.active - self.busy, self.ready)

    def _refill(self, number: int) -> None:
        """As target/exec/sandbox/stock.c keeps sandboxes; those too many go, if they have no job."""
        wanted = min(max(self.min, self.busy) + self.queued, self.active) + self.spares
        idle = self.ready + self.warming
        more = wanted - self.busy - idle if self.serving else 0
        if more > 0:
            self.warming += more
            self.risen[number + max(1, round(self.warm / TICK))] += more
        elif more < 0:
            self.ready -= min(self.ready, -more)

    def mean_wait(self, now: float) -> float:
        """Seconds, of all that came; those that still wait among them."""
        late = sum((now - at) * count for at, count in self.waiting)
        return (self.waited + late) / self.arrived if self.arrived else 0.0

    def load(self, now: float) -> PoolLoad:
        oldest = now - self.waiting[0][0] if self.waiting else 0.0
        return PoolLoad(
            self.name, self.mode, self.serving, self.min, self.max, self.active, self.busy, self.spares,
            self.ready, self.warming, self.queued, oldest, self.arrived, self.started, self.ended,
            self.run_seconds, self.warm, self.memory_per_slot,
        )  # fmt: skip


@dataclass
class SimulatedCommands:
    """Ordinary commands.

    Attributes:
        trace: commands a second.
        each: seconds of a worker that one takes, over time.
        hindered: how much longer a command takes for each job at work a processor.
        late: seconds in which the last that came had to wait for more than 50 ms.
    """

    trace: Trace
    each: Trace = lambda at: 0.0002
    hindered: float = 0.0
    count: int = 2
    queued: int = 0
    busy: int = 0
    capacity: float = 1.0
    came: int = 0
    waited: float = 0.0
    late: float = 0.0
    _rest: float = 0.0

    def tick(self, number: int, rng: random.Random, jobs: int, cores: int) -> None:
        """Commands are executed or wait. Further work of the workers within a tick is random."""
        now = number * TICK
        rate, each = self.trace(now), self.each(now) * (1 + self.hindered * jobs / cores)
        self.capacity = self.count / each
        came = poisson(rng, rate * TICK)
        self.came += came
        can = self.capacity * TICK + self._rest
        done = min(self.queued + came, int(can))
        self.queued += came - done
        self._rest = can - done if self.queued else 0.0
        self.busy = self.count if self.queued else min(self.count, poisson(rng, rate * each))
        self.waited += self.queued * TICK
        self.late += TICK if self.queued / self.capacity > 0.05 else 0.0

    def load(self) -> WorkerLoad:
        """As a reading shows it."""
        return WorkerLoad(self.count, self.busy, self.queued, self.queued / self.capacity)


class SimulatedTarget:
    """Pools, workers and a host of so many processors."""

    def __init__(
        self,
        pools: Sequence[SimulatedPool],
        commands: SimulatedCommands | None = None,
        cores: int = 4,
        seed: int = 1,
    ) -> None:
        self.pools = {pool.name: pool for pool in pools}
        self.commands = commands or SimulatedCommands(lambda at: 0.0)
        self.cores = cores
        self.shedding = False
        self.number = 0
        self._rng = random.Random(seed)
        self._stalled = 0.0

    @property
    def now(self) -> float:
        return self.number * TICK

    def tick(self) -> None:
        for pool in self.pools.values():
            pool.tick(self.number, self._rng, self.shedding)
        jobs = sum(pool.busy for pool in self.pools.values())
        self.commands.tick(self.number, self._rng, jobs, self.cores)
        wanted = jobs + self.commands.busy
        self._stalled += ((wanted > self.cores) - self._stalled) * TICK / 10
        self.number += 1

    def load(self) -> Load:
        return Load(
            self.now,
            self.commands.load(),
            tuple(pool.load(self.now) for pool in self.pools.values()),
            Pressure(self._stalled, 0.0, 0.0),
            self.shedding,
        )

    def waits(self) -> bool:
        """Whether a job waits, which the target tells at once."""
        return any(pool.queued for pool in self.pools.values())

    def do(self, decision: Decision) -> None:
        match decision:
            case SetWorkers(count):
                self.commands.count = count
            case SetActive(pool, active):
                self.pools[pool].active = active
            case SetSpares(pool, spares):
                self.pools[pool].spares = spares
            case Shed(on):
                self.shedding = on


def value_of(decision: Decision) -> int:
    """Value of a decision."""
    match decision:
        case SetWorkers(value) | SetActive(_, value) | SetSpares(_, value) | Shed(value):
            return value


@dataclass
class SimulationRecord:
    """Readings and decisions: (reading, decisions), in order."""

    steps: list[tuple[Load, list[Decision]]] = field(default_factory=list)

    def sizes(self, kind: type[Decision], pool: str = "") -> list[tuple[float, int]]:
        """(time, value) of each decision of a kind; `pool` where it is about one."""
        return [
            (load.at, value_of(decision))
            for load, decisions in self.steps
            for decision in decisions
            if isinstance(decision, kind) and getattr(decision, "pool", "") == pool
        ]


def run(
    target: SimulatedTarget, bounds: Bounds, seconds: float, policy: Policy | None = None
) -> SimulationRecord:
    """Let the policy govern the target for so long: a reading each second, and soon after jobs wait."""
    policy = policy or Policy()
    record = SimulationRecord()
    last = -math.inf
    for _ in range(round(seconds / TICK)):
        target.tick()
        since = target.now - last
        if since < (0.0199 if target.waits() else 0.9999):
            continue
        last = target.now
        load = target.load()
        decisions = policy.step(load, bounds)
        record.steps.append((load, decisions))
        for decision in decisions:
            target.do(decision)
    return record


def turns(sizes: Sequence[tuple[float, int]], length: float = 60.0) -> int:
    """Changes of direction of (time, size) within so many seconds, at most."""
    moves = [(at, new > old) for (_, old), (at, new) in pairwise(sizes) if old != new]
    times = [at for (_, old), (at, new) in pairwise(moves) if old != new]
    return max((sum(1 for at in times if end - length < at <= end) for end in times), default=0)


def fluid_wait(trace: Trace, slots: int, work: float, seconds: float) -> float:
    """Mean wait, in seconds, where jobs are a fluid and all slots are always there: no policy has less.

    Jobs wait while more come than all slots can do; the mean is that of the queue by that of the
    arrivals (Little).
    """
    queue = area = came = 0.0
    for number in range(round(seconds / TICK)):
        rate = trace(number * TICK)
        queue = max(0.0, queue + (rate - slots / work) * TICK)
        area += queue * TICK
        came += rate * TICK
    return area / came if came else 0.0
