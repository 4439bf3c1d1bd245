# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads of every shape through the real policy and a simulated target: waiting, oscillation, bounds."""

from __future__ import annotations

import math
from itertools import pairwise

import pytest

from iosd_host.policy.events import Bounds, Mode, Scale, SetActive, SetSpares, SetWorkers, Shed
from iosd_host.policy.simulate import (
    SimulatedCommands,
    SimulatedPool,
    SimulatedTarget,
    SimulationRecord,
    constant,
    exponential,
    fluid_wait,
    run,
    turns,
)
from iosd_host.policy.traces import Trace, nfs, square, steady, table
from tools.managerdoc import CASES, DOCS, Case, simulated

TURNS_MOST = 6
GIB = 1 << 30
FIXED = Scale(auto=False)


def check(record: SimulationRecord, bounds: Bounds) -> None:
    """Invariants at every step, for every load."""
    first, _ = record.steps[0]
    for load, decisions in record.steps:
        pools = {pool.name: pool for pool in load.pools}
        held = {pool.name: max(pool.active, pool.busy) for pool in load.pools}
        for each in decisions:
            if isinstance(each, SetActive):
                pool = pools[each.pool]
                assert pool.min <= each.active <= pool.max
                assert (
                    each.active >= min(pool.busy, pool.active) or "end undisturbed" in each.why
                ), "a busy sandbox would be taken"
                held[each.pool] = max(each.active, pool.busy)
            if isinstance(each, SetWorkers):
                assert bounds.workers[0] <= each.count <= bounds.workers[1]
        if bounds.memory is not None:
            assert sum(held[name] * pools[name].memory_per_slot for name in held) <= bounds.memory
    turned = {
        "workers": turns(record.sizes(SetWorkers)),
        "shed": turns(record.sizes(Shed)),
    }
    for pool in first.pools:
        sizes = [(first.at, pool.active), *record.sizes(SetActive, pool.name)]
        turned[pool.name] = turns(sizes)
        turned[f"{pool.name}'s spares"] = turns(record.sizes(SetSpares, pool.name))
    assert max(turned.values()) <= TURNS_MOST, turned


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_waiting_is_the_fluids(case: Case) -> None:
    """If slots are short, the policy costs at most a fifth more than all slots at all times."""
    found = simulated(case)
    check(found.record, found.bounds)
    wait = found.pool.mean_wait(found.target.now)
    fluid = fluid_wait(case.trace, case.slots, case.work, case.seconds)
    assert 0.8 * fluid <= wait <= 1.2 * fluid, f"{wait:.3f} s; the fluid's is {fluid:.3f} s"
    page = (DOCS / "manager.md").read_text()
    assert found.row() in page.splitlines(), "run: python -m tools.managerdoc"


def test_the_simulator_waits_as_erlang_says() -> None:
    servers, rate, work, seconds = 8, 32.0, 0.2, 500.0
    pool = SimulatedPool(
        "default", 8, servers, steady(rate), exponential(work), active=servers, spares=16
    )
    target = SimulatedTarget([pool])
    run(target, Bounds(workers_scale=FIXED, pools={"default": FIXED}), seconds)
    offered = rate * work
    terms = [offered**k / math.factorial(k) for k in range(servers)]
    last = offered**servers / math.factorial(servers) * servers / (servers - offered)
    erlang = last / (sum(terms) + last) / (servers / work - rate)
    assert pool.mean_wait(target.now) == pytest.approx(erlang, rel=0.2)
    assert pool.run_seconds / pool.started == pytest.approx(work, rel=0.03)


def test_a_steady_load_settles() -> None:
    pool = SimulatedPool("default", 1, 16, steady(30), exponential(0.2), active=1)
    target, bounds = SimulatedTarget([pool]), Bounds()
    record = run(target, bounds, 240.0)
    check(record, bounds)
    assert pool.mean_wait(target.now) < 0.02
    late = [size for at, size in record.sizes(SetActive, "default") if at > 60]
    falls = sum(1 for before, after in pairwise(late) if after < before)
    assert falls <= 5, f"does not settle: {late}"


def test_an_idle_pool_is_small_and_one_job_does_not_wait() -> None:
    trace = table([(0, 200), (10, 0), (250, 1)])
    pool = SimulatedPool("default", 1, 8, trace, constant(0.2), active=1)
    target, bounds = SimulatedTarget([pool]), Bounds()
    run(target, bounds, 250.0)
    assert (pool.active, pool.busy, pool.spares) == (1, 0, 1) and pool.ready >= 1
    waited = pool.waited
    run(target, bounds, 20.0)
    assert pool.waited - waited < 0.5


HOSTILE = 100.0
"""Jobs a second: more than there will ever be slots for."""


def commands(rate: Trace) -> SimulatedCommands:
    """8 workers do 40,000 a second, 2,500 each processor's worth of jobs less: jobs cost them dear."""
    return SimulatedCommands(rate, hindered=3.0)


def test_commands_come_first_and_jobs_recover() -> None:
    """With four jobs commands would wait without end; with one they need not."""
    waits = {}
    for scale in (Scale(), FIXED):
        rate = square(1000, 20000, 400, 0.25)
        pool = SimulatedPool("default", 1, 4, steady(HOSTILE), exponential(0.5), active=4)
        target = SimulatedTarget([pool], commands(rate))
        bounds = Bounds(workers=(2, 8), pools={"default": scale})
        record = run(target, bounds, 300.0 if scale.auto else 100.0)
        check(record, bounds)
        if scale is FIXED:
            waits["fixed"] = target.commands.late
            continue
        waits["policy"] = target.commands.late
        assert pool.active == 4, "recovered"
        least = min(size for _, size in record.sizes(SetActive, "default"))
        assert least == 1
        assert not record.sizes(Shed), "smaller pools were enough"
        ended = [load.pools[0].ended for load, _ in record.steps if 20 < load.at < 100]
        assert ended[-1] - ended[0] > 80 * 2 * 0.8, "the slot that is left is used"
    assert waits["policy"] < 15 < 60 < waits["fixed"], waits


def test_jobs_are_refused_when_smaller_pools_are_not_enough() -> None:
    pool = SimulatedPool("default", 3, 4, steady(2.0), exponential(0.5), active=4)
    target = SimulatedTarget([pool], commands(square(1000, 30000, 400, 0.25)))
    bounds = Bounds(workers=(2, 8))
    record = run(target, bounds, 300.0)
    check(record, bounds)
    shed = record.sizes(Shed)
    assert [on for _, on in shed[:1]] == [True] and not target.shedding and pool.active == 4
    assert pool.refused and shed[0][0] < 10
    lowered = record.sizes(SetActive, "default")[0]
    assert lowered[1] == 3 and lowered[0] < shed[0][0], "pools give way first"


@pytest.mark.parametrize("period", [10.0, 70.0])
def test_commands_that_come_and_go_do_not_make_pools_swing(period: float) -> None:
    pool = SimulatedPool("default", 1, 4, steady(HOSTILE), exponential(0.5), active=4)
    target = SimulatedTarget([pool], commands(square(1000, 20000, period)))
    bounds = Bounds(workers=(2, 8))
    record = run(target, bounds, 150.0)
    check(record, bounds)
    assert pool.ended > 150 * 2 * 0.9, "jobs do not starve"


def test_the_papers_nfs_commands() -> None:
    """At the paper's bounds, 8 workers and 4 sandboxes; jobs get the fifth of the processor it leaves."""
    rows = nfs(400, seed=4)
    assert 0.87 < sum(row.used for row in rows[:10]) / 10 < 0.93
    assert 0.78 < sum(row.used for row in rows[-100:]) / 100 < 0.82
    rate = table([(index / 2, row.rate) for index, row in enumerate(rows)])
    each = table([(index / 2, row.worker) for index, row in enumerate(rows)])
    pool = SimulatedPool("default", 1, 4, steady(1.0), exponential(0.2), active=4)
    target = SimulatedTarget([pool], SimulatedCommands(rate, each, hindered=0.5, count=1), cores=1)
    bounds = Bounds(workers=(1, 8), cores=1)
    record = run(target, bounds, 200.0)
    check(record, bounds)
    assert target.commands.late == 0 and not record.sizes(Shed)
    assert target.commands.waited / target.commands.came < 0.001
    assert pool.mean_wait(target.now) < 0.1


def test_memory_goes_where_jobs_wait() -> None:
    """Two pools that want all of it, in turn and together."""
    one = SimulatedPool(
        "one", 1, 16, square(0, 55, 60), exponential(0.2), active=1, memory_per_slot=GIB // 4
    )
    two = SimulatedPool(
        "two", 1, 16, square(55, 0, 60, 0.4), exponential(0.2), active=1, memory_per_slot=GIB // 4
    )
    target, bounds = SimulatedTarget([one, two]), Bounds(memory=4 * GIB)
    record = run(target, bounds, 180.0)
    check(record, bounds)
    for pool in (one, two):
        assert max(size for _, size in record.sizes(SetActive, pool.name)) >= 11
        assert pool.waited_most < 10, "nobody starves"


def test_pools_that_are_paused_drained_and_broken() -> None:
    pool = SimulatedPool("default", 1, 8, steady(20), exponential(0.2), active=2)
    target, bounds = SimulatedTarget([pool]), Bounds()
    record = run(target, bounds, 20.0)
    pool.mode = Mode.PAUSED
    policy_was = pool.active
    record = run(target, bounds, 10.0)
    assert pool.active == policy_was and not record.sizes(SetActive, "default")
    pool.mode = Mode.RUNNING
    run(target, bounds, 30.0)
    assert pool.queued < 8
    pool.mode = Mode.DRAINING
    run(target, bounds, 10.0)
    assert (pool.queued, pool.busy) == (0, 0) and pool.refused
