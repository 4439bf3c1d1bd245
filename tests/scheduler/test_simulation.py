# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads of every shape through the real policy and a simulated target: waiting, oscillation, bounds."""

from __future__ import annotations

from dataclasses import dataclass

import pytest

from scheduler.events import Bounds, Scale, SetActive
from scheduler.simulate import Record, SimulatedPool, Target, exponential, fluid_wait, run
from scheduler.traces import Trace, burst, diurnal, saw_tooth, square, steady

MINUTE = 60.0
TURNS_MOST = 6


def turns(sizes: list[tuple[float, int]], start: int) -> list[float]:
    """When a size changed its direction."""
    found, last, direction = [], start, 0
    for at, size in sizes:
        now = (size > last) - (size < last)
        if now and direction and now != direction:
            found.append(at)
        direction, last = now or direction, size
    return found


def most_within(times: list[float], length: float) -> int:
    return max((sum(1 for t in times if end - length < t <= end) for end in times), default=0)


def check(record: Record, memory: int | None = None) -> None:
    """What holds at every step, whatever the load."""
    for load, decisions in record.steps:
        pools = {pool.name: pool for pool in load.pools}
        size = {pool.name: max(pool.active, pool.busy) for pool in load.pools}
        for each in decisions:
            assert each.why
            if isinstance(each, SetActive):
                pool = pools[each.pool]
                assert pool.min <= each.active <= pool.max
                assert each.active >= min(pool.busy, pool.active), "a busy sandbox would be taken"
                size[each.pool] = max(each.active, pool.busy)
        if memory is not None:
            assert sum(size[name] * pools[name].memory_per_slot for name in size) <= memory
    for name in {pool.name for load, _ in record.steps for pool in load.pools}:
        times = turns(record.sizes(name), record.steps[0][0].pools[0].active)
        assert most_within(times, MINUTE) <= TURNS_MOST, name


@dataclass(frozen=True)
class Case:
    trace: Trace
    slots: int = 64
    work: float = 0.2
    seconds: float = 120.0


OVERLOADS = {
    "square": Case(square(16, 480, 20)),
    "square, fast": Case(square(16, 480, 6)),
    "saw-tooth": Case(saw_tooth(0, 480, 40)),
    "burst": Case(burst(8, 3200, 30)),
    "day": Case(diurnal(240, 0.9, 120)),
    "10,000 a second, 1,000 sandboxes": Case(square(2000, 16000, 20), 1000, 0.1, 40),
}


@pytest.mark.parametrize("case", OVERLOADS.values(), ids=OVERLOADS.keys())
def test_waiting_is_the_fluids(case: Case) -> None:
    """Where slots are what is short, the policy costs a fifth at most over having all of them always."""
    pool = SimulatedPool(
        "default", 1, case.slots, case.trace, exponential(case.work), active=1, even=True
    )
    target = Target([pool], cores=case.slots)
    bounds = Bounds(pools={"default": Scale(spares=(1, 2 * case.slots))}, sandboxes=5 * case.slots)
    record = run(target, bounds, case.seconds)
    check(record)
    late = sum((target.now - at) * count for at, count in pool.waiting)
    wait = (pool.waited + late) / pool.arrived
    fluid = fluid_wait(case.trace, case.slots, case.work, case.seconds)
    assert 0.8 * fluid <= wait <= 1.2 * fluid, f"{wait:.3f} s; the fluid's is {fluid:.3f} s"


def test_a_steady_load_settles() -> None:
    pool = SimulatedPool("default", 1, 16, steady(30), exponential(0.2), active=1)
    record = run(Target([pool]), Bounds(), 240.0)
    check(record)
    assert pool.waited / pool.started < 0.02
    late = [size for at, size in record.sizes("default") if at > 60]
    assert len(late) <= 12, f"does not settle: {late}"
