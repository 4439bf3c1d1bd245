# SPDX-License-Identifier: GPL-2.0-or-later
"""Actions that the policy must never take, on generated loads with clocks, modes and lags."""

from __future__ import annotations

import re
from collections import deque
from dataclasses import dataclass, field, replace
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from iosd_host.policy.events import (
    Bounds,
    Decision,
    Load,
    Mode,
    PoolLoad,
    Pressure,
    Scale,
    SetActive,
    SetSpares,
    SetWorkers,
    Shed,
    WorkerLoad,
)
from iosd_host.policy.policy import Policy

MIB = 1 << 20
WINDOW, TURNS_MOST = 60.0, 6
NAMES = ("a", "b")


@dataclass(frozen=True)
class Stretch:
    """So many readings of one kind.

    Attributes:
        every: seconds between them; below 0: the target's clock began anew.
        jobs: that want to run, by pool.
        come: jobs that come, and have ended, between two readings; where none, none ends.
        age: how long the first command waits, in ms.
        begun: the target was started anew: its counters are 0.
    """

    readings: int
    every: float
    jobs: tuple[int, int]
    come: int = 0
    commands: int = 0
    age: int = 0
    memory: float = 0.0
    mode: Mode = Mode.RUNNING
    serving: bool = True
    begun: bool = False


STRETCH = st.builds(
    Stretch,
    readings=st.integers(1, 25),
    every=st.sampled_from([1.0, 1.0, 0.02, 0.5, 1.05, 2.0, 7.0, 100.0, 0.0, -50.0]),
    jobs=st.tuples(*[st.sampled_from([0, 0, 1, 3, 8, 20, 500])] * 2),
    come=st.sampled_from([0, 1, 10, 1000]),
    commands=st.sampled_from([0, 0, 1, 9, 500]),
    age=st.sampled_from([0, 5, 30, 100, 900]),
    memory=st.sampled_from([0.0, 0.0, 0.07, 0.5]),
    mode=st.sampled_from([Mode.RUNNING, Mode.RUNNING, Mode.PAUSED, Mode.DRAINING]),
    serving=st.sampled_from([True, True, False]),
    begun=st.booleans(),
)
SCALE = st.builds(
    Scale,
    interval=st.sampled_from([0.02, 1.0, 5.0]),
    wait_count=st.integers(1, 4),
    up_factor=st.sampled_from([1.01, 2.0, 64.0]),
    cooldown=st.sampled_from([0.0, 5.0]),
)


@dataclass
class Host:
    """A target that does what it is told within half a second, `lag` readings later; jobs at work stay."""

    load: Load
    lag: int
    told: deque[list[Decision]] = field(default_factory=deque)
    passed: float = 0.0
    moves: dict[str, list[tuple[float, int]]] = field(default_factory=dict)

    def read(self, stretch: Stretch, anew: bool) -> Load:
        self.passed += max(0.0, stretch.every)
        if stretch.every >= 0.5:
            self.tell_late(0)
        busy = min(stretch.commands, self.load.workers.count)
        workers = WorkerLoad(
            self.load.workers.count, busy, stretch.commands - busy, stretch.age / 1000
        )
        pools = tuple(
            self._pool(pool, stretch, jobs, anew)
            for pool, jobs in zip(self.load.pools, stretch.jobs, strict=True)
        )
        at = max(0.0, self.load.at + stretch.every)
        pressure = Pressure(None, stretch.memory, None)
        self.load = replace(self.load, at=at, workers=workers, pools=pools, pressure=pressure)
        return self.load

    @staticmethod
    def _pool(pool: PoolLoad, stretch: Stretch, jobs: int, anew: bool) -> PoolLoad:
        can = stretch.serving and stretch.mode is not Mode.PAUSED
        staying = pool.busy - min(pool.busy, 1 if stretch.come else 0)
        busy = min(jobs, max(staying, pool.active if can else 0))
        arrived = (0 if anew else pool.arrived) + stretch.come
        return replace(
            pool, mode=stretch.mode, serving=stretch.serving, busy=busy, queued=jobs - busy,
            oldest=1.0 if jobs > busy else 0.0, arrived=arrived, started=arrived, ended=arrived,
            run_seconds=0.3 * arrived, ready=0,
        )  # fmt: skip

    def tell(self, decisions: list[Decision]) -> None:
        self.told.append(decisions)
        self.tell_late(self.lag)

    def tell_late(self, most: int) -> None:
        while len(self.told) > most:
            for each in self.told.popleft():
                self._do(each)

    def _do(self, decision: Decision) -> None:
        match decision:
            case SetActive(name, size):
                self._size(name, "active", size)
            case SetSpares(name, size):
                self._size(name, "warm_spare", size)
            case SetWorkers(size):
                self._moved("workers", self.load.workers.count, size)
                workers = replace(self.load.workers, count=size)
                self.load = replace(self.load, workers=workers)
            case Shed(on):
                self._moved("shed", self.load.shedding, on)
                self.load = replace(self.load, shedding=on)

    def _size(self, name: str, what: str, size: int) -> None:
        pool = next(pool for pool in self.load.pools if pool.name == name)
        self._moved(f"{what} of {name}", getattr(pool, what), size)
        new = replace(pool, active=size) if what == "active" else replace(pool, warm_spare=size)
        pools = tuple(new if each is pool else each for each in self.load.pools)
        self.load = replace(self.load, pools=pools)

    def _moved(self, what: str, before: int, after: int) -> None:
        assert after != before, f"{what}: {after} was there already"
        self.moves.setdefault(what, []).append((self.passed, 1 if after > before else -1))


def host(lag: int, memory: int | None) -> Host:
    pools = tuple(
        PoolLoad(
            name, Mode.RUNNING, True, 1, most, active=2, busy=0, warm_spare=2, ready=2, warming=0,
            queued=0, oldest=0.0, arrived=0, started=0, ended=0, run_seconds=0.0, warm_seconds=0.05,
            memory_per_slot=each * MIB,
        )
        for name, most, each in zip(NAMES, (16, 32), (256, 100), strict=True)
    )  # fmt: skip
    return Host(Load(50.0, WorkerLoad(2, 0, 0), pools), lag)


def most_turns(moves: list[tuple[float, int]]) -> int:
    """Changes of direction within any WINDOW, at most."""
    times = [at for (_, before), (at, after) in pairwise(moves) if before != after]
    return max((sum(1 for at in times if end - WINDOW < at <= end) for end in times), default=0)


def check(decision: Decision, seen: Load, bounds: Bounds) -> None:
    assert re.search("[0-9]", decision.why), decision.why
    pools = {pool.name: pool for pool in seen.pools}
    match decision:
        case SetWorkers(count):
            assert bounds.workers[0] <= count <= bounds.workers[1]
        case SetSpares(name, spares):
            assert 1 <= spares <= 2 * pools[name].max
        case SetActive(name, active):
            pool = pools[name]
            assert pool.min <= active <= pool.max
            assert pool.serving and pool.mode is not Mode.PAUSED
            if "end undisturbed" not in decision.why:
                assert active >= min(pool.busy, pool.active), (
                    "for want of load, though it is at work"
                )


@settings(max_examples=25)
@given(
    st.lists(STRETCH, min_size=1, max_size=25),
    st.dictionaries(st.sampled_from(NAMES), SCALE),
    st.sampled_from([None, 2048 * MIB]),
    st.integers(0, 1),
)
def test_whatever_the_load(
    story: list[Stretch], scales: dict[str, Scale], memory: int | None, lag: int
) -> None:
    target, policy = host(lag, memory), Policy()
    bounds = Bounds(workers=(1, 8), pools=scales, memory=memory)
    for stretch in story:
        for number in range(stretch.readings):
            seen = target.read(stretch, stretch.begun and not number)
            decisions = policy.step(seen, bounds)
            for decision in decisions:
                check(decision, seen, bounds)
            target.tell(decisions)
            held = sum(max(p.active, p.busy) * p.memory_per_slot for p in target.load.pools)
            assert memory is None or held <= memory
    for what, moves in target.moves.items():
        assert most_turns(moves) <= TURNS_MOST, what
    # After every history: if commands are fast, no job waits while slots are free.
    wanting = Stretch(1, 2.0, (500, 500), come=10)
    for _ in range(200):
        target.tell(policy.step(target.read(wanting, False), bounds))
    a, b = target.load.pools
    assert not target.load.shedding
    if memory is None:
        assert (a.active, b.active) == (16, 32)
    else:
        assert memory - a.active * 256 * MIB - b.active * 100 * MIB < 100 * MIB
        assert a.active >= 4 and b.active >= 9


@pytest.mark.parametrize("nervous", [Scale(), Scale(interval=0.02, wait_count=1, cooldown=0.0)])
@pytest.mark.parametrize("commands", [False, True], ids=["jobs", "jobs and commands"])
def test_not_even_for_a_load_that_knows_it(nervous: Scale, commands: bool) -> None:
    """Jobs come when it has made the pool smaller, and are gone when it is larger; commands likewise."""
    target, policy = host(0, None), Policy()
    bounds = Bounds(workers=(1, 8), workers_scale=nervous, pools=dict.fromkeys(NAMES, nervous))
    calm = Stretch(1, 0.5, (0, 0))
    longest = 0
    for _ in range(1200):
        a, b = (pool.active for pool in target.load.pools)
        suffer = commands and a > 4
        now = replace(
            calm,
            jobs=(20 if a < 8 else 0, 3 if b < 4 else 0),
            commands=9 if suffer or target.load.workers.count < 2 else 0,
            age=900 if suffer else 5,
        )
        target.tell(policy.step(target.read(now, False), bounds))
    for what, moves in target.moves.items():
        assert most_turns(moves) <= TURNS_MOST, what
        longest = max(longest, most_turns(moves))
    assert longest >= 4, "the load did not try hard enough"


def test_not_even_when_commands_suffer_after_it_has_turned_often() -> None:
    """Then jobs are refused instead."""
    target, policy = host(0, None), Policy()
    nervous = Scale(interval=0.02, wait_count=1, cooldown=0.0)
    bounds = Bounds(workers=(1, 8), pools=dict.fromkeys(NAMES, nervous))
    shed = False
    for tick in range(200):
        a = target.load.pools[0].active
        suffer = 24 <= tick < 32 or tick >= 75
        jobs = 20 if tick >= 24 or a < 8 else 0
        now = Stretch(1, 0.5, (jobs, 0), come=1, commands=9 if suffer else 0, age=900)
        target.tell(policy.step(target.read(now, False), bounds))
        shed = shed or target.load.shedding
    assert most_turns(target.moves["active of a"]) == TURNS_MOST
    assert shed
