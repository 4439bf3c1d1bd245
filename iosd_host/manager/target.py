# SPDX-License-Identifier: GPL-2.0-or-later
"""One managed target: its connection, its readings, the policy's decisions, and the settings that it gets
again after a restart.

Not here: the requests of administrators (changes.py).  One event loop; every request that changes the
target is sent under `lock`, one after the other.
"""

from __future__ import annotations

import asyncio
import contextlib
import dataclasses
import logging
import time
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

from iosd_host.common.rate_limited_log import Limited
from iosd_host.config.live_keys import LIVE_KEYS, frame_words
from iosd_host.control.link import LOST, MANAGER, Link, LinkLost, NoAnswer, Timing
from iosd_host.control.messages import ErrorCode, FrameError, TargetError, Type
from iosd_host.manager.reading import load_of, pressure_of, summary
from iosd_host.manager.settings import POOL, PRINCIPAL, WORKERS, TargetSettings
from iosd_host.manager.state_store import OURSELVES, POLICY, Change, Override
from iosd_host.policy.events import (
    Bounds,
    Decision,
    Load,
    Scale,
    SetActive,
    SetSpares,
    SetWorkers,
    Shed,
)

__all__ = ["POLICY", "Decider", "ManagedTarget"]

LOG = logging.getLogger("iosd.target")

FRESH_S = 0.05
REFRESH_S = 0.5
WATCH_LEAST_S = 0.02
USAGE_PAGES_MOST = 1000


class Decider(Protocol):
    """Decides (policy/policy.py)."""

    def step(self, load: Load, bounds: Bounds) -> Sequence[Decision]:
        """Changes to make now."""


class ManagedTarget:
    """One target.

    Args:
        name: the name for administrators.
        path: of its control socket.
        policy: makes a policy for each run of the target.
        log: logs a change; never waits.

    Attributes:
        settings: the present settings; replaced as a whole.
        bounds: limits of the policy, made from the settings.
        snapshot: the last reading as the target sent it; None: none yet.
        load: the same reading for the policy.  at: its time, in seconds since 1970.
        synced: the run of the target that has all values that administrators have set.
        samples: of the loads since the last call that took them.
        decisions: number of executed decisions of the policy, by pool or "workers", and "up" or "down".
    """

    def __init__(
        self,
        name: str,
        path: Path,
        who: str,
        settings: TargetSettings,
        policy: Callable[[], Decider],
        log: Callable[[Change], None],
        timing: Timing,
        cgroup: Path | None = None,
    ) -> None:
        self.name = name
        self.make_policy = policy
        self.policy = policy()
        self.log = log
        self.cgroup = cgroup
        self.link = Link(path, who, self._hear, timing)
        self.lock = asyncio.Lock()
        self.news = asyncio.Event()
        self.snapshot: dict[str, Any] | None = None
        self.load: Load | None = None
        self.at = 0.0
        self.fresh = False  # the policy has not used it
        self.synced: str | None = None
        self.reasons: dict[str, dict[str, Any]] = {}  # by what: "workers", "pool NAME"
        self.samples: list[dict[str, Any]] = []
        self.decisions: Counter[tuple[str, str]] = Counter()
        self.warnings = Limited(LOG)
        self._told: tuple[str, str | None] = (LOST, None)
        self.use(settings)

    def use(self, settings: TargetSettings) -> None:
        """Use these settings from now on."""
        self.settings = settings
        self.bounds = settings.bounds()
        scales = [self.bounds.workers_scale, *self.bounds.pools.values()]
        watch = max(WATCH_LEAST_S, min(scale.interval for scale in scales))
        self.link.timing = dataclasses.replace(self.link.timing, watch=watch)

    # ---- what comes ----

    def _hear(self, fields: dict[str, Any] | None) -> None:
        if fields is None:
            self.fresh = False  # what came before may be another run's
            self._tell_role()
        else:
            self.load = load_of(fields, pressure_of())
            self.snapshot, self.at, self.fresh = fields, time.time(), True
            self.samples.append(summary(self.load))
        self.news.set()

    def _tell_role(self) -> None:
        """The log of changes has every time that we won, lost or regained the target."""
        link, (role, boot) = self.link, self._told
        if (link.role, link.boot) == (role, boot):
            return
        self._told = link.role, link.boot
        why = link.trouble or (
            f"the target is another process now, boot {link.boot}"
            if boot not in (None, link.boot)
            else f"boot {link.boot}"
        )
        self.log(Change(self.name, "link", OURSELVES, why, {"role": role}, {"role": link.role}))

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            group.create_task(self.link.run())
            group.create_task(self._follow())

    async def _follow(self) -> None:
        while True:
            await self.news.wait()
            self.news.clear()
            if self.link.role != MANAGER:
                continue
            try:
                async with self.lock:
                    await self._look()
            except (LinkLost, NoAnswer, FrameError, TargetError) as error:
                self.warnings.warning("%s: %s", self.name, error)

    async def _look(self) -> None:
        if self.synced != self.link.boot:
            await self.restore("the target was restarted")
        if self.load is None or not self.fresh:
            return
        self.fresh = False
        for decision in self._decide(self.load):
            await self._do(decision)

    def _decide(self, load: Load) -> Sequence[Decision]:
        """The policy's word; a fault of it costs what it remembers, and nobody their administration."""
        try:
            return self.policy.step(load, self.bounds)
        except Exception:
            LOG.exception("%s: our fault: the policy fails at %s", self.name, load)
            self.policy = self.make_policy()
            return ()

    # ---- what goes ----

    async def ask(self, kind: Type, by: str, why: str, **keys: object) -> dict[str, Any]:
        """Change something in the target; the caller holds `lock`.

        Raises:
            LinkLost, NoAnswer, FrameError, TargetError: see Link.request.
        """
        why = why.encode()[:250].decode(errors="ignore")
        try:
            return await self.link.request(kind, **keys, by=by[:120], why=why or None)
        except TargetError as error:
            if error.code == ErrorCode.NOT_MANAGER:
                self.link.demoted()
            raise

    async def _do(self, decision: Decision) -> None:
        """Carry out one decision of the policy, and log it."""
        assert self.load is not None
        pool = getattr(decision, "pool", None)
        before = {each.name: each for each in self.load.pools}.get(pool or "")
        was: dict[str, Any]
        now: dict[str, Any]
        match decision:
            case SetWorkers(count):
                was, now = {"count": self.load.workers.count}, {"count": count}
                await self.ask(Type.WORKERS, POLICY, decision.why, count=count)
            case SetActive(_, active):
                was, now = {"active": before and before.active}, {"active": active}
                await self.ask(Type.POOL, POLICY, decision.why, name=pool, active=active)
            case SetSpares(_, spares):
                was, now = {"warm_spare": before and before.warm_spare}, {"warm_spare": spares}
                await self.ask(Type.POOL, POLICY, decision.why, name=pool, warm_spare=spares)
            case Shed(on):
                was, now = {"shedding": self.load.shedding}, {"shedding": on}
                await self.ask(Type.SHED, POLICY, decision.why, on=on)
        self.explain(pool, POLICY, decision.why, now)
        for key in ("count", "active"):
            if key in now and was[key] is not None:
                self.decisions[pool or "workers", "up" if now[key] > was[key] else "down"] += 1
        change = Change(self.name, POLICY, POLICY, decision.why, was, now, pool)
        LOG.debug("%s", change)  # at level info the target tells of it
        self.log(change)

    def explain(self, pool: str | None, by: str, why: str, now: Mapping[str, Any]) -> None:
        """Status says why something has the size it has."""
        if "active" in now or "count" in now:
            what = f"pool {pool}" if pool else "workers"
            self.reasons[what] = {"by": by, "why": why, "since": round(time.time() * 1000)}

    # ---- a target that has been restarted ----

    async def restore(self, since: str) -> None:
        """Set again what administrators have set: the target has what its configuration says.

        Args: since: when.  The caller holds `lock`.

        Raises:
            LinkLost, NoAnswer, FrameError, TargetError: see Link.request.
        """
        self.policy = self.make_policy()
        self.reasons = {}
        boot = self.link.boot
        await self._restore_pools(since)
        for name in self.settings.names(PRINCIPAL):
            await self._restore_one(Type.PRINCIPAL, name, self.settings.of(PRINCIPAL, name), since)
        workers = self.settings.of(WORKERS)
        if "count" in workers:
            await self._restore_one(Type.WORKERS, None, {"count": workers["count"]}, since)
        self.synced = boot

    async def _restore_pools(self, since: str) -> None:
        """One may have to give before another can have."""
        waiting = self.settings.names(POOL)
        while waiting:
            refused = []
            for name in waiting:
                try:
                    await self._set_again(Type.POOL, name, self.settings.of(POOL, name), since)
                except TargetError as error:
                    if error.code == ErrorCode.NOT_MANAGER:
                        raise
                    refused.append(name)
            if len(refused) == len(waiting):
                break
            waiting = refused
        for name in waiting:
            await self._restore_one(Type.POOL, name, self.settings.of(POOL, name), since)

    async def _restore_one(
        self, kind: Type, name: str | None, overrides: Mapping[str, Override], since: str
    ) -> None:
        """All at once; where the target takes not all of them, one by one."""
        try:
            await self._set_again(kind, name, overrides, since)
        except TargetError as error:
            if error.code == ErrorCode.NOT_MANAGER:
                raise
            if len(overrides) > 1 and error.code != ErrorCode.NO_SUCH_POOL:
                for key, each in overrides.items():
                    await self._restore_one(kind, name, {key: each}, since)
                return
            why = f"cannot be set again: {error.message}"
            now = {key: each.value for key, each in overrides.items()}
            LOG.warning("%s: %s %s %s", self.name, name, now, why)
            pool = name if kind == Type.POOL else None
            self.log(Change(self.name, "restored", OURSELVES, why, None, now, pool))

    async def _set_again(
        self, kind: Type, name: str | None, overrides: Mapping[str, Override], since: str
    ) -> None:
        """All, or nothing.  Raises: as `ask`."""
        keys = {key: frame_of(kind, key, each.value) for key, each in overrides.items()}
        words = {word: value for pair in keys.values() for word, value in pair.items()}
        if not words:
            return
        why = f"set again: {since}"
        await self.ask(kind, OURSELVES, why, name=name, **words)
        pool = name if kind == Type.POOL else None
        for key, each in overrides.items():
            self.explain(pool, each.by, each.why, {key: each.value})
        now = {key: each.value for key, each in overrides.items()}
        self.log(Change(self.name, "restored", OURSELVES, why, None, now, pool))

    # ---- what others ask ----

    async def refresh(self) -> None:
        """A reading that is not older than FRESH_S, for people; the policy keeps its own pace."""
        if self.link.role == LOST or time.time() - self.at < FRESH_S:
            return
        with contextlib.suppress(LinkLost, NoAnswer, FrameError, TargetError, TimeoutError):
            async with asyncio.timeout(REFRESH_S):
                fields = await self.link.request(Type.SNAPSHOT)
            self.load = load_of(fields, pressure_of())
            self.snapshot, self.at = fields, time.time()

    def status(self) -> dict[str, Any]:
        """As `status` answers it."""
        link = self.link
        known: dict[str, Any] = {"name": self.name, "role": link.role, "boot": link.boot}
        known["trouble"] = link.trouble
        if self.load is None:
            return known
        load = dataclasses.asdict(self.load)
        least, most = self.bounds.workers
        workers = {**load["workers"], "min": least, "max": most}
        workers["auto"] = self.bounds.workers_scale.auto
        pools = [
            {
                **pool,
                "auto": self.bounds.pools.get(pool["name"], Scale()).auto,
                **self.reasons.get(f"pool {pool['name']}", {}),
            }
            for pool in load["pools"]
        ]
        found = known | {
            "at": round(self.at * 1000),
            "workers": workers | self.reasons.get("workers", {}),
            "pressure": load["pressure"],
            "shedding": load["shedding"],
            "pools": pools,
        }
        if self.cgroup is not None:
            pressure = pressure_of(self.cgroup, ".pressure")
            found["sandboxes_pressure"] = dataclasses.asdict(pressure)
        return found

    async def usage(self) -> dict[str, dict[str, Any]]:
        """Of each principal since the target started.

        Raises:
            LinkLost, NoAnswer, FrameError, TargetError: see Link.request.
        """
        found: dict[str, dict[str, Any]] = {}
        after: str | None = None
        for _ in range(USAGE_PAGES_MOST):
            page = await self.link.request(Type.USAGE, after=after)
            rows = page.get("principals")
            if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
                raise FrameError("USAGE without principals")
            found |= {str(each.get("name")): each for each in rows}
            if not rows or not page.get("more"):
                break
            after = str(rows[-1].get("name"))
        return found

    async def jobs(self) -> list[dict[str, Any]]:
        """Jobs at work, waiting, and ended lately: a bounded list.

        Raises:
            LinkLost, NoAnswer, FrameError, TargetError: see Link.request.
        """
        rows = (await self.link.request(Type.JOBS)).get("jobs")
        if not isinstance(rows, list) or not all(isinstance(each, dict) for each in rows):
            raise FrameError("JOBS without jobs")
        return rows


def frame_of(kind: Type, key: str, value: Any) -> dict[str, Any]:
    """Messages to a target for one override; none for settings of the manager itself."""
    if kind != Type.POOL or key not in LIVE_KEYS:
        return {key: value}
    return dict(frame_words({key: LIVE_KEYS[key].convert(value)}))
