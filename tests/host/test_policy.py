# SPDX-License-Identifier: GPL-2.0-or-later
"""The policy's rules one by one, on readings made by hand."""

from __future__ import annotations

import itertools
from dataclasses import replace
from typing import Any

import pytest

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
from iosd_host.policy.resources import Claim, default_slots, default_workers, entitlements, staffing

GIB = 1 << 30
POOL = PoolLoad(
    "default", Mode.RUNNING, True, 1, 8, active=4, busy=0, warm_spare=1, ready=1, warming=0, queued=0,
    oldest=0.0, arrived=0, started=0, ended=0,
    run_seconds=0.0, warm_seconds=0.02, memory_per_slot=256 << 20,
)  # fmt: skip
IDLE = WorkerLoad(2, 0, 0)
BOUNDS = Bounds(workers=(2, 8), cores=4)


class Story:
    """Readings one after the other, each done by a target that does at once what it is told."""

    def __init__(self, *pools: PoolLoad, bounds: Bounds = BOUNDS) -> None:
        self.policy = Policy()
        self.bounds = bounds
        self.load = Load(100.0, IDLE, pools or (POOL,))
        self.said: list[tuple[float, Decision]] = []

    def read(self, after: float = 1.0, name: str = "default", **change: Any) -> list[Decision]:
        """A reading so many seconds after the last, with a pool's, or the load's, fields changed."""
        whole = {
            key: change.pop(key) for key in ("workers", "pressure", "shedding") if key in change
        }
        pools = tuple(replace(p, **change) if p.name == name else p for p in self.load.pools)
        self.load = replace(self.load, at=self.load.at + after, pools=pools, **whole)
        found = self.policy.step(self.load, self.bounds)
        self.said += [(self.load.at, each) for each in found]
        for each in found:
            self._do(each)
        return found

    def _do(self, decision: Decision) -> None:
        match decision:
            case SetActive(pool, active):
                self._pool(pool, active=active)
            case SetSpares(pool, spares):
                self._pool(pool, warm_spare=spares)
            case SetWorkers(count):
                self.load = replace(self.load, workers=replace(self.load.workers, count=count))
            case Shed(on):
                self.load = replace(self.load, shedding=on)

    def _pool(self, name: str, **change: Any) -> None:
        pools = tuple(replace(p, **change) if p.name == name else p for p in self.load.pools)
        self.load = replace(self.load, pools=pools)

    def reads(self, count: int, after: float = 1.0, **change: Any) -> list[Decision]:
        return list(itertools.chain.from_iterable(self.read(after, **change) for _ in range(count)))

    def active(self, name: str = "default") -> int:
        return next(p.active for p in self.load.pools if p.name == name)


def actives(found: list[Decision]) -> list[int]:
    return [each.active for each in found if isinstance(each, SetActive)]


def test_jobs_that_wait_get_slots_at_once() -> None:
    story = Story(replace(POOL, active=1))
    found = [story.read(0.02, busy=busy, queued=20 - busy, oldest=0.01) for busy in (1, 2, 4, 8)]
    assert [actives(each) for each in found] == [[2], [4], [8], []]
    assert "19 jobs wait, the first for 0.01 s" in found[0][0].why
    assert "1 of 1 at work" in found[0][0].why


def test_one_job_that_waits_gets_a_slot() -> None:
    assert actives(Story().read(busy=4, queued=1, oldest=0.01)) == [5]


def test_idle_slots_go_late_and_in_steps() -> None:
    story = Story(replace(POOL, active=8))
    found = {
        at - 100: each.active for at, each in _during(story, 40) if isinstance(each, SetActive)
    }
    assert list(found.values()) == [4, 2, 1]
    first, *later = found
    assert first >= 5, "cooldown after the policy began"
    assert all(b - a >= 3 for a, b in itertools.pairwise([first, *later])), "three looks agree"


def _during(story: Story, looks: int) -> list[tuple[float, Decision]]:
    story.reads(looks)
    return story.said


def test_one_look_that_disagrees_keeps_the_size() -> None:
    story = Story(replace(POOL, active=8))
    for number in range(40):
        assert not actives(story.read(busy=8 if number % 3 == 0 else 0)), number


def test_never_below_what_is_at_work() -> None:
    story = Story(replace(POOL, active=8))
    story.reads(30, busy=5)
    assert story.active() == 5


def test_fixed_sizes_are_the_administrators() -> None:
    bounds = replace(BOUNDS, pools={"default": Scale(auto=False)}, workers_scale=Scale(auto=False))
    story = Story(bounds=bounds)
    waiting = WorkerLoad(2, 2, 50, 0.04)
    found = story.reads(20, busy=4, queued=100, oldest=9.0, workers=waiting)
    assert [type(each) for each in found] == [Shed], "nothing else is left to do"


@pytest.mark.parametrize("change", [{"mode": Mode.PAUSED}, {"serving": False}])
def test_a_pool_that_cannot_start_jobs_is_left_alone(change: dict[str, Any]) -> None:
    story = Story()
    assert not story.reads(30, queued=100, oldest=9.0, **change)


def test_bounds_that_an_administrator_narrowed_hold_at_once() -> None:
    story = Story(replace(POOL, active=8, busy=8))
    assert actives(story.read(max=3)) == [3]
    assert actives(story.read(min=5, max=8, busy=3)) == [5]


def test_a_clock_or_counters_that_begin_anew_do_no_harm() -> None:
    story = Story()
    story.reads(10, busy=4, arrived=1000, started=1000, ended=996, run_seconds=500.0)
    story.said.clear()
    story.read(-90.0, busy=0, arrived=0, started=0, ended=0, run_seconds=0.0)
    story.read(1e9)
    story.read(0.0)
    assert not actives([each for _, each in story.said])


def test_looks_before_a_gap_do_not_count() -> None:
    story = Story(replace(POOL, active=8))
    story.reads(8, busy=8)
    for _ in range(10):  # two looks that agree, then the manager was stopped
        assert not actives(story.reads(2, busy=0))
        assert not actives(story.read(60.0, busy=0))
        assert not actives(story.read(busy=8))


def test_it_falls_to_the_most_that_was_at_work_meanwhile() -> None:
    story = Story(replace(POOL, active=8))
    story.reads(8, busy=8)
    found = [
        story.read(after, busy=busy) for after, busy in [(1.0, 0), (0.3, 6), (0.7, 0), (1.0, 0)]
    ]
    assert [actives(each) for each in found] == [[], [], [], [6]]


def test_a_reading_that_a_decision_has_overtaken_is_not_taken_for_the_opposite() -> None:
    policy = Policy()
    load = Load(100.0, IDLE, (replace(POOL, busy=4, queued=9, oldest=0.01),))
    assert actives(policy.step(load, BOUNDS)) == [8]
    late = replace(load, at=100.02, pools=(replace(POOL, busy=4, queued=2, oldest=0.01),))
    assert not actives(policy.step(late, BOUNDS)), "6 would be smaller than what was decided"


def test_what_a_target_does_not_do_is_asked_for_less_and_less_often() -> None:
    policy = Policy()
    load = Load(100.0, IDLE, (replace(POOL, busy=4, queued=9, oldest=0.01),))
    times = [
        second
        for second in range(100)
        if actives(policy.step(replace(load, at=100.0 + second), BOUNDS))
    ]
    assert times == [0, 1, 3, 7, 15, 31, 63, 95]


def test_workers_follow_commands_that_wait() -> None:
    story = Story()
    found = story.read(workers=WorkerLoad(2, 2, 9, 0.004))
    assert found == [
        SetWorkers(4, "2 of 2 at work (100%), 9 commands wait, the first for 4 ms; 2 to 8 allowed")
    ]
    assert story.reads(30, workers=WorkerLoad(4, 0, 0))[0] == SetWorkers(
        2, "0 of 4 at work (0%); 2 to 8 allowed"
    )


def test_a_queue_that_was_read_once_and_is_young_is_none() -> None:
    story = Story()
    passing = WorkerLoad(2, 2, 1, 0.0002)
    assert not story.read(workers=passing)
    assert not story.read(workers=IDLE) + story.read(workers=passing)
    assert story.read(workers=passing)[0] == SetWorkers(
        3, "2 of 2 at work (100%), 1 command waits, the first for 0 ms; 2 to 8 allowed"
    )


def test_commands_that_wait_make_jobs_give_way_then_be_refused() -> None:
    late = WorkerLoad(8, 8, 40, 0.1)
    story = Story(replace(POOL, active=8, busy=8))
    found = story.reads(8, queued=50, oldest=3.0, workers=late)
    assert actives(found) == [4, 2, 1]
    assert "40 commands wait, the first for 100 ms" in found[0].why
    assert "8 at work end undisturbed" in found[0].why
    assert not any(isinstance(each, Shed) for each in found[:3])
    assert (
        Shed(True, "40 commands wait, the first for 100 ms, and pools are as small as they may be")
        in found
    )
    story.said.clear()
    found = story.reads(60, busy=1, workers=WorkerLoad(8, 1, 0))
    assert [each for each in found if isinstance(each, Shed)] == [
        Shed(False, "no command had to wait for 20 s")
    ]
    assert next(at for at, each in story.said if isinstance(each, Shed)) - 108 >= 20
    assert story.active() == 8, "recovered"
    spares = story.read(0.02, queued=9, ready=0, arrived=10_000, workers=WorkerLoad(8, 0, 0))
    assert any(isinstance(each, SetSpares) for each in spares), "and spares are forked again"


def test_busy_processors_alone_are_no_reason_to_give_way() -> None:
    story = Story(replace(POOL, active=8, busy=8))
    assert not actives(story.reads(20, pressure=Pressure(1.0, 0.0, 1.0)))
    assert actives(story.reads(3, pressure=Pressure(0.0, 0.3, 0.0)))[0] == 4


def spares(story: Story) -> int:
    return story.load.pools[0].warm_spare


def test_spares_are_what_comes_while_one_comes_up_and_what_chance_adds() -> None:
    even, uneven = (Story(replace(POOL, max=64, warm_seconds=0.2)) for _ in range(2))
    found = [even.read(arrived=100 * second) for second in range(1, 4)]
    first = [each.spares for found in found for each in found if isinstance(each, SetSpares)]
    assert first == [30], "100 a second x 0.2 s, twice the root of that, and one; at once"
    for second in range(60):
        even.read(arrived=400 + 100 * second)
        uneven.read(arrived=400 + 1000 * (second // 10))
    assert 28 <= spares(even) <= 31
    assert spares(uneven) > 1.3 * spares(even), "bursts"


def test_spares_leave_room_for_slots_in_what_sandboxes_there_may_be() -> None:
    story = Story(replace(POOL, warm_seconds=0.5), bounds=replace(BOUNDS, sandboxes=20))
    story.read()
    story.read(arrived=1000)
    assert spares(story) == 3, "20 less 8 slots at work, 8 that just end, and one"


def test_spares_for_jobs_that_wait_are_what_slots_can_take() -> None:
    story = Story(replace(POOL, active=8, warm_seconds=0.1))
    story.reads(3, busy=8, queued=500, oldest=3.0)
    assert spares(story) == 1, "nobody knows yet how long jobs work"
    story.read(busy=8, ended=80, started=88, run_seconds=8.0)
    assert spares(story) == 15, "80 slots a second become free; 0.1 s each"
    assert "80.0 jobs a second need one" in story.said[-1][1].why


def test_memory_is_shared_and_never_exceeded() -> None:
    greedy = replace(POOL, name="greedy", max=16, active=15, busy=15, queued=99, oldest=1.0)
    other = replace(POOL, name="other", max=16, active=1, busy=1, queued=9, oldest=0.1)
    story = Story(greedy, other, bounds=replace(BOUNDS, memory=4 * GIB))
    story.reads(2)
    assert (story.active("greedy"), story.active("other")) == (8, 1), (
        "others wait for what is at work"
    )
    story.read(0.02, name="greedy", busy=12)
    assert story.active("other") == 2
    story.read(0.02, name="greedy", busy=8)
    story.read(0.02)
    story.read(0.02)
    assert (story.active("greedy"), story.active("other")) == (8, 8)


def test_entitlements() -> None:
    assert entitlements([Claim(1, 9, 2), Claim(1, 2, 1)], 100) == [9, 2]
    assert entitlements([Claim(1, 9, 2), Claim(1, 9, 1)], 12) == [3, 6]
    assert entitlements([Claim(0, 1, 4), Claim(0, 9, 4)], 4) == [1, 0]


def test_defaults() -> None:
    assert default_workers(2) == (2, 8), "the paper's 8, on its two processors"
    assert default_workers(1) == (2, 4) and default_workers(64) == (2, 64)
    assert default_slots(8, None, 256 << 20) == 8
    assert default_slots(8, 2 * GIB, 256 << 20) == 6
    assert default_slots(8, 1 << 20, 256 << 20) == 1
    assert staffing(0.0) == 0 and staffing(100.0) == 120 and staffing(100.0, 4.0) == 140
