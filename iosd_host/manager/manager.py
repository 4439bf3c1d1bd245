# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager: its targets, their stored settings and their history (docs/control.md).

Other files read a `Manager` through `status`, `changes` and `history`, and at each of `targets` for its
last reading (`snapshot`, as the target sent it; `load`, as the policy sees it).  One event loop; the
state store works in a thread of its own.  Not here: requests (methods.py), their effects (changes.py).
"""

from __future__ import annotations

import asyncio
import contextlib
import functools
import logging
import math
import os
import sqlite3
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import Any, NoReturn, TypeVar

from iosd_host.common.rate_limited_log import Limited
from iosd_host.config.schema import Setting
from iosd_host.control.link import LOST, LinkLost, NoAnswer
from iosd_host.control.messages import FrameError, TargetError
from iosd_host.manager.requests import RequestRefused
from iosd_host.manager.state_store import LEVELS, Change, Override, StateStore, merge
from iosd_host.manager.target import ManagedTarget

__all__ = ["Manager"]

LOG = logging.getLogger("iosd.manager")

T = TypeVar("T")

VERSION = metadata.version("iosd")
FLUSH_S = 0.5  # that a change of the policy waits for others before it is written
USAGE_S = 30.0  # between two times that usage is kept: a target that dies takes that much with it
JOBS_S = 1.0  # between two times that a target is asked for its jobs
LOG_MOST = 10_000  # changes that wait to be written, where they cannot be
STEPS_S, _ = LEVELS[0]
NOW = ("queued", "running")  # of a principal's usage: not sums
SHARES = ("weight", "queue", "at_once")


class Manager:
    """All of it.  The creator closes it. Call `run` in between.

    Args: configuration: of a target, read when it is called; raises ConfigError.
    """

    def __init__(
        self, store: StateStore, configuration: Callable[[str], Mapping[str, Setting]]
    ) -> None:
        self.store = store
        self.configuration = configuration
        self.thread = ThreadPoolExecutor(1, "state")
        self.targets: dict[str, ManagedTarget] = {}
        self.started = time.time()
        self.url = ""  # of the first endpoint
        self.unwritten: list[Change] = []
        self.boots: dict[str, str] = {}  # as they are in the store
        self.writing = asyncio.Lock()
        self.jobs_lock = asyncio.Lock()
        self.jobs_known: dict[str, tuple[float, list[dict[str, Any]]]] = {}  # when they were asked
        self.warnings = Limited(LOG)

    def add(self, target: ManagedTarget) -> None:
        """Manage this target, too; before `run`."""
        target.synced = self.store.boot(target.name)
        if target.synced is not None:
            self.boots[target.name] = target.synced
        self.targets[target.name] = target

    async def run(self) -> None:
        """Until cancelled."""
        async with asyncio.TaskGroup() as group:
            for target in self.targets.values():
                group.create_task(target.run())
            group.create_task(self._every(FLUSH_S, self._write))
            group.create_task(self._every(STEPS_S, self._keep_loads))
            group.create_task(self._every(USAGE_S, self._keep_usage))

    def close(self) -> None:
        """Everything is kept; nothing may be called any more."""
        self.thread.shutdown()
        try:
            if self.unwritten:
                self.store.change(self.unwritten)
        except sqlite3.Error as error:
            LOG.warning("%d changes are not in the log: %s", len(self.unwritten), error)
        self.store.close()

    async def stored(self, call: Callable[..., T], *values: Any, **named: Any) -> T:
        """Call the store in its thread.  A call that was begun is made, even if this is cancelled."""
        work = functools.partial(call, *values, **named)
        loop = asyncio.get_running_loop()
        return await asyncio.shield(loop.run_in_executor(self.thread, work))

    def target(self, name: str | None) -> ManagedTarget:
        """The one named, or the only one.  Raises: RequestRefused."""
        if name is None and len(self.targets) == 1:
            return next(iter(self.targets.values()))
        if name is None or name not in self.targets:
            wrong = "say which target" if name is None else f"no target '{name}'"
            raise RequestRefused("no-such-target", wrong, f"there are: {', '.join(self.targets)}")
        return self.targets[name]

    # ---- what is kept ----

    async def _every(self, seconds: float, keep: Callable[[], Any]) -> NoReturn:
        """A store that cannot be written keeps nobody from work."""
        while True:
            await asyncio.sleep(seconds)
            try:
                await keep()
            except sqlite3.Error as error:
                self.warnings.warning("cannot write %s: %s", self.store.path, error)

    def log(self, change: Change) -> None:
        """For the log of changes, soon."""
        self.unwritten.append(change)
        if len(self.unwritten) > LOG_MOST:
            self.unwritten = self.unwritten[LOG_MOST // 2 :]
            self.warnings.warning("changes are lost that could not be written")

    async def _write(self) -> None:
        async with self.writing:
            await self._write_changes()
            for name, target in self.targets.items():
                if target.synced is not None and target.synced != self.boots.get(name):
                    await self.stored(self.store.put_boot, name, target.synced)
                    self.boots[name] = target.synced

    async def _write_changes(self) -> None:
        batch, self.unwritten = self.unwritten, []
        if not batch:
            return
        try:
            await self.stored(self.store.change, batch)
        except sqlite3.Error:
            self.unwritten = [*batch, *self.unwritten]
            raise

    async def keep(
        self, changes: Sequence[Change], put: Sequence[Override], drop: Sequence[Override]
    ) -> None:
        """Record a change of an administrator. When this returns, the change is on the disk."""
        async with self.writing:
            try:
                await self._write_changes()
                await self.stored(self.store.change, changes, put, drop)
            except sqlite3.Error as error:
                self.unwritten += changes
                raise RequestRefused(
                    "failed",
                    f"it was done, and cannot be kept: {error}",
                    "it holds until the target is restarted; "
                    f"make room at {self.store.path.parent}",
                ) from None
        for each in changes:  # a target has its own in its log
            LOG.log(logging.DEBUG if each.target else logging.INFO, "%s", each)

    async def logged(self, change: Change) -> None:
        """A change that is about no target; when it returns, it is on the disk."""
        await self.keep([change], [], [])

    async def _keep_loads(self) -> None:
        for target in self.targets.values():
            samples, target.samples = target.samples, []
            if samples:
                load = merge(samples)
                await self.stored(self.store.put_load, target.name, time.time(), load)

    async def _keep_usage(self) -> None:
        for target in self.targets.values():
            await self._usage(target)

    async def _usage(self, target: ManagedTarget) -> dict[str, dict[str, Any]]:
        """Keep and return what principals have used in this run of the target; {}: it cannot be asked."""
        boot = target.link.boot
        if target.link.role == LOST or boot is None:
            return {}
        try:
            rows = await target.usage()
        except (LinkLost, NoAnswer, FrameError, TargetError) as error:
            self.warnings.warning("%s: usage: %s", target.name, error)
            return {}
        if target.link.boot == boot:
            sums = {name: sums_of(row) for name, row in rows.items()}
            await self.stored(self.store.put_usage, target.name, boot, sums)
        return rows

    # ---- what is answered ----

    def status(self) -> dict[str, Any]:
        """Everything at this moment."""
        me: dict[str, Any] = {"version": VERSION, "pid": os.getpid()}
        me |= {"started": round(self.started * 1000), "url": self.url}
        return {"manager": me, "targets": [each.status() for each in self.targets.values()]}

    async def changes(
        self,
        target: str | None = None,
        since: int = 0,
        most: int = 100,
        who: str | None = None,
        pool: str | None = None,
    ) -> list[dict[str, Any]]:
        """The newest lines of the log of changes with an id above `since`, oldest first.

        Args: who, pool: see StateStore.changes.
        """
        with contextlib.suppress(sqlite3.Error):  # _every() logs the next failure
            await self._write()
        found = await self.stored(self.store.changes, target, since, most, who, pool)
        return [each.fields() for each in found]

    async def history(
        self, target: str | None = None, since: float = 0.0, step: int = 10, most: int = 1000
    ) -> list[dict[str, Any]]:
        """Loads of the past (state_store.py says which), oldest first."""
        name = self.target(target).name
        return await self.stored(self.store.history, name, since, step, most)

    async def jobs(self, target: str | None = None) -> list[dict[str, Any]]:
        """Jobs at work, waiting, and ended lately; the target is asked once a second at most.

        Raises: RequestRefused: the target cannot be asked.
        """
        found = self.target(target)
        async with self.jobs_lock:
            at, rows = self.jobs_known.get(found.name, (-math.inf, []))
            if time.monotonic() - at >= JOBS_S:
                try:
                    rows = await found.jobs()
                except (LinkLost, NoAnswer) as error:
                    raise RequestRefused("no-target", str(error)) from None
                except (FrameError, TargetError) as error:
                    raise RequestRefused(
                        "failed", f"the target does not list its jobs: {error}"
                    ) from None
                self.jobs_known[found.name] = (time.monotonic(), rows)
        return rows

    async def usage(self, target: str | None = None) -> list[dict[str, Any]]:
        """Usage of principals in all runs of a target, and their present shares and jobs."""
        found = self.target(target)
        now = await self._usage(found)
        sums = await self.stored(self.store.usage, found.name)
        rows = []
        for who in sorted({*sums, *now}):
            here = now.get(who, {})
            row = {"name": who, **{key: here.get(key) for key in SHARES}}
            row |= {key: here.get(key, 0) for key in NOW}
            rows.append(row | sums.get(who, {}))
        return rows


def sums_of(row: dict[str, Any]) -> dict[str, Any]:
    """Fields of a principal's usage that are sums since the target started."""
    return {
        key: value
        for key, value in row.items()
        if key not in (*NOW, *SHARES)
        and isinstance(value, int | float)
        and not isinstance(value, bool)
    }
