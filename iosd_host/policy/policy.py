# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager's policy: readings of one target in, decisions out (docs/manager.md).

Pure: no clock, no I/O, no randomness; its state comes from earlier readings.  Parts:
follow.py (how a size follows a need), rates.py (rates from counters), strain.py (when jobs give way),
resources.py (memory).  Not here: the connection (manager/target.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from iosd_host.common.words import waiting
from iosd_host.policy.events import (
    Bounds,
    Decision,
    Load,
    Mode,
    PoolLoad,
    Scale,
    SetActive,
    SetSpares,
    SetWorkers,
    Shed,
)
from iosd_host.policy.follow import Follower
from iosd_host.policy.rates import Rates
from iosd_host.policy.resources import Claim, entitlements, room_for_spares, staffing
from iosd_host.policy.strain import Strain, judge

__all__ = ["Policy"]

GAP = 3.0
"""Intervals without a reading after which earlier checks no longer count."""
REPEAT, REPEAT_MOST = 1.0, 32.0
"""Seconds until a decision that readings do not show is repeated; the delay doubles each time."""
QUEUE_AGE = 0.001
"""Seconds after which a waiting command counts as a queue.  Shorter waits end before the decision."""


@dataclass
class _Pool:
    """State of one pool."""

    active: Follower = field(default_factory=Follower)
    spares: Follower = field(default_factory=Follower)
    rates: Rates = field(default_factory=Rates)


@dataclass
class _Asked:
    """A decision that readings do not show yet."""

    value: int
    at: float
    wait: float = REPEAT


@dataclass(frozen=True)
class _Wish:
    """Size that a pool's load requires, before limits of memory and commands.

    Attributes:
        least, high: bounds.
        want: slots, of which some are for jobs that will come.
        claim: slots where memory is short: for jobs that are there, or come now.
    """

    pool: PoolLoad
    scale: Scale
    least: int
    high: int
    want: int
    claim: int

    @property
    def follows(self) -> bool:
        """Whether its size is the policy's, and means something now."""
        return self.scale.auto and self.pool.serving and self.pool.mode is not Mode.PAUSED


class Policy:
    """Of one target.  Give it each reading in the order of arrival."""

    def __init__(self) -> None:
        self._at: float | None = None
        self._now = 0.0
        self._workers = Follower()
        self._pools: dict[str, _Pool] = {}
        self._strain = Strain()
        self._queued_before = False
        self._asked: dict[tuple[str, str], _Asked] = {}

    def step(self, load: Load, bounds: Bounds) -> list[Decision]:
        """Changes, in their order."""
        passed = self._pass(load, bounds)
        load = self._foresee(load)
        workers = self._of_workers(load, bounds)
        wishes = [self._wish(pool, bounds, passed) for pool in load.pools]
        self._pools = {pool.name: self._pools[pool.name] for pool in load.pools}
        for wish in wishes:
            if not wish.follows:
                self._pools[wish.pool.name].active.forget()
        self._give_way(load, bounds, wishes)
        found = [*workers, *self._of_pools(wishes, bounds), *self._of_spares(wishes, bounds)]
        shed = self._strain.shed(self._now, load, bounds.workers_scale)
        if shed is not None:
            found.append(Shed(*shed))
        return [decision for decision in found if self._is_news(decision)]

    def _pass(self, load: Load, bounds: Bounds) -> float:
        """Seconds since the last reading; 0 where the target's clock began anew.

        Our own time never goes back, and leaps no further than a few looks: everything that waits for time
        to pass then waits too long rather than too short.
        """
        first, passed = self._at is None, load.at - (self._at or load.at)
        self._at = load.at
        scales = [bounds.workers_scale, *bounds.pools.values()]
        gap = GAP * max(1.0, *(scale.interval for scale in scales))
        if first:
            self._workers.started(self._now)
        if not 0 <= passed <= gap:
            self._strain.forget()
            self._workers.forget()
            for pool in self._pools.values():
                pool.active.forget()
                pool.spares.forget()
        passed = max(0.0, passed)
        self._now += min(passed, gap)
        return passed

    def _foresee(self, load: Load) -> Load:
        """The reading as it will be once what was decided a moment ago is done.

        Readings overtake decisions: by what one shows we would decide the same again, or the opposite.
        """

        def size(kind: str, pool: str, shown: int) -> int:
            asked = self._asked.get((kind, pool))
            if asked is None or shown == asked.value:
                self._asked.pop((kind, pool), None)
                return shown
            return asked.value if self._now - asked.at < REPEAT else shown

        pools = tuple(
            replace(
                pool,
                active=size("active", pool.name, pool.active),
                warm_spare=size("warm_spare", pool.name, pool.warm_spare),
            )
            for pool in load.pools
        )
        workers = replace(load.workers, count=size("workers", "", load.workers.count))
        shedding = bool(size("shed", "", load.shedding))
        return replace(load, workers=workers, pools=pools, shedding=shedding)

    def _is_news(self, decision: Decision) -> bool:
        """Not what was decided before, unless that was long ago and is still not to be seen."""
        key, value = _what(decision)
        asked = self._asked.get(key)
        if asked is None or asked.value != value:
            self._asked[key] = _Asked(value, self._now)
            return True
        if self._now - asked.at < asked.wait:
            return False
        self._asked[key] = _Asked(value, self._now, min(REPEAT_MOST, 2 * asked.wait))
        return True

    # ---- workers ----

    def _of_workers(self, load: Load, bounds: Bounds) -> Iterator[Decision]:
        workers, scale, follower = load.workers, bounds.workers_scale, self._workers
        low, high = min(bounds.workers), max(bounds.workers)
        if not scale.auto:
            return
        pending = workers.busy + workers.queued
        queue = workers.queued > 0 and (workers.oldest >= QUEUE_AGE or self._queued_before)
        if follower.is_look(self._now, scale):
            self._queued_before = workers.queued > 0
        need = pending if queue or pending < workers.count else workers.count
        need = min(high, max(low, need))
        count = follower.step(self._now, workers.count, need, workers.busy, scale, queue)
        count = min(high, max(low, count))
        if count == workers.count:
            return
        follower.moved(self._now, workers.count, count)
        share = workers.busy / max(1, workers.count)
        why = f"{workers.busy} of {workers.count} at work ({share:.0%})"
        if workers.queued:
            why += f", {waiting(workers.queued, 'command')}, the first for {workers.oldest * 1000:.0f} ms"
        yield SetWorkers(count, f"{why}; {low} to {high} allowed")

    # ---- pools ----

    def _wish(self, pool: PoolLoad, bounds: Bounds, passed: float) -> _Wish:
        scale = bounds.pools.get(pool.name, Scale())
        known = self._pools.get(pool.name)
        if known is None:
            known = self._pools[pool.name] = _Pool()
            known.active.started(self._now)
            known.spares.started(self._now)
        known.rates.observe(pool, passed)
        low, high = min(pool.min, pool.max), pool.max
        pending = pool.busy + (pool.queued if pool.serving and pool.mode is not Mode.PAUSED else 0)
        work = known.rates.service or 0.0
        want = min(high, max(low, pending, staffing(known.rates.arrivals * work)))
        claim = min(high, max(low, pending, math.ceil(known.rates.now * work - 0.5)))
        return _Wish(pool, scale, low, high, want, claim)

    def _give_way(self, load: Load, bounds: Bounds, wishes: list[_Wish]) -> None:
        """Lowers or raises what pools may have for the commands' sake."""
        strain, judgement = self._strain, judge(load, bounds)
        strain.look(self._now, bounds.workers_scale, judgement)
        own = [wish for wish in wishes if wish.scale.auto]
        if load.shedding or any(wish.pool.busy or wish.pool.queued for wish in wishes):
            strain.give_way(
                self._now,
                judgement,
                {wish.pool.name: max(1, wish.least) for wish in own},
                {wish.pool.name: wish.pool.active for wish in own},
            )
        strain.recover(self._now, {wish.pool.name: wish.high for wish in own}, 2.0)

    def _of_pools(self, wishes: list[_Wish], bounds: Bounds) -> Iterator[Decision]:
        held = {wish.pool.name: max(wish.pool.active, wish.pool.busy) for wish in wishes}
        fair = self._fair(wishes, bounds.memory, held)
        # Those that shrink come first, so that what they give is there for the others.
        for wish in sorted((w for w in wishes if w.follows), key=lambda w: w.want - w.pool.active):
            pool, name = wish.pool, wish.pool.name
            size, why = self._size(wish, fair[name])
            if size > pool.active and bounds.memory is not None:
                others = sum(
                    held[other.pool.name] * other.pool.memory_per_slot
                    for other in wishes
                    if other.pool.name != name
                )
                room = (bounds.memory - others) // max(1, pool.memory_per_slot)
                size = max(pool.active, min(size, room))
            if size == pool.active:
                continue
            self._pools[name].active.moved(self._now, pool.active, size)
            held[name] = max(held[name], size)
            yield SetActive(name, size, f"{why}; {wish.least} to {wish.high} allowed")

    def _fair(
        self, wishes: list[_Wish], memory: int | None, held: dict[str, int]
    ) -> dict[str, int | None]:
        """Slots each may have at most while memory is short; None: it is not short."""
        waits = any(w.follows and w.pool.queued and w.claim > w.pool.active for w in wishes)
        after = sum(max(w.claim, held[w.pool.name]) * w.pool.memory_per_slot for w in wishes)
        if memory is None or not waits or after <= memory:
            return {wish.pool.name: None for wish in wishes}
        claims = [
            Claim(wish.least, wish.claim, wish.pool.memory_per_slot)
            if wish.follows
            else Claim(held[wish.pool.name], held[wish.pool.name], wish.pool.memory_per_slot)
            for wish in wishes
        ]
        shares = entitlements(claims, memory)
        return {wish.pool.name: share for wish, share in zip(wishes, shares, strict=True)}

    def _size(self, wish: _Wish, fair: int | None) -> tuple[int, str]:
        """Size of a pool, and the reason."""
        pool, name = wish.pool, wish.pool.name
        known = self._pools[name]
        if not wish.least <= pool.active <= wish.high:
            return min(wish.high, max(wish.least, pool.active)), "it is not within its bounds"
        ceiling, follower = self._strain.ceilings.get(name), known.active
        # Below what is at work, if need be: those end undisturbed, and no others start.
        end = f", {pool.busy} at work end undisturbed"
        if ceiling is not None and ceiling < pool.active:
            if not follower.turns.may_fall(self._now):
                return pool.active, ""
            return ceiling, f"jobs give way: {self._strain.why}{end if pool.busy > ceiling else ''}"
        if fair is not None and fair < pool.active:
            if not follower.may_be_taken(self._now, wish.scale):
                return pool.active, ""
            return fair, f"memory is short, {fair} is its part{end if pool.busy > fair else ''}"
        high = min(most for most in (wish.high, ceiling, fair) if most is not None)
        hurry = pool.queued > 0 and pool.busy + pool.queued > pool.active
        least = max(wish.least, min(pool.busy, pool.active))
        need = min(high, max(wish.want, wish.least))
        size = follower.step(self._now, pool.active, need, least, wish.scale, hurry)
        return min(wish.high, size), self._reason(pool, known.rates)

    @staticmethod
    def _reason(pool: PoolLoad, rates: Rates) -> str:
        why = f"{pool.busy} of {pool.active} at work"
        if pool.queued:
            why += f", {waiting(pool.queued, 'job')}, the first for {pool.oldest:.2f} s"
        else:
            why += ", none waits"
        if rates.service is not None:
            usual = staffing(rates.arrivals * rates.service)
            why += f", {rates.arrivals:.1f} come a second for {rates.service:.2f} s each: "
            why += f"{usual} slot{'' if usual == 1 else 's'}"
        return why

    # ---- spares ----

    def _of_spares(self, wishes: list[_Wish], bounds: Bounds) -> Iterator[Decision]:
        slots = sum(2 * wish.high + 1 for wish in wishes)
        room = room_for_spares(bounds.memory, bounds.sandboxes - slots, len(wishes))
        for wish in wishes:
            pool, scale = wish.pool, wish.scale
            if not wish.follows or pool.mode is not Mode.RUNNING:
                continue
            rates, follower = self._pools[pool.name].rates, self._pools[pool.name].spares
            flow = rates.arrivals
            if pool.queued and rates.service:  # as fast as slots become free
                flow = max(flow, pool.active / rates.service)
            need = 1 + staffing(flow * pool.warm_seconds, rates.uneven)
            high = min(max(scale.spares), 2 * wish.high, room)
            need = min(high, max(min(scale.spares), need))
            hurry = pool.queued > 0 and not pool.ready
            spares = follower.step(self._now, pool.warm_spare, need, 0, scale, hurry, leap=True)
            if self._strain.why and spares > pool.warm_spare:
                continue  # no time to fork more
            spares = min(high, spares)
            if spares == pool.warm_spare:
                continue
            follower.moved(self._now, pool.warm_spare, spares)
            yield SetSpares(
                pool.name,
                spares,
                f"{flow:.1f} jobs a second need one, and a sandbox takes "
                f"{pool.warm_seconds * 1000:.0f} ms to come up",
            )


def _what(decision: Decision) -> tuple[tuple[str, str], int]:
    """Subject of a decision, and its value."""
    match decision:
        case SetWorkers(count):
            return ("workers", ""), count
        case SetActive(pool, active):
            return ("active", pool), active
        case SetSpares(pool, spares):
            return ("warm_spare", pool), spares
        case Shed(on):
            return ("shed", ""), on
