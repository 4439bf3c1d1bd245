# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager: its targets, and what it answers of them.

Others look at a `Manager` through `status`, `changes` and `history`, and at each of `targets` for its
last reading (`snapshot`, as the target sent it; `load`, as the policy sees it).  One event loop; the
state store works in a thread of its own.
"""

from __future__ import annotations

import asyncio
import dataclasses
import functools
import os
import time
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from importlib import metadata
from typing import Any, TypeVar

from scheduler.events import Bounds, Load, Scale
from scheduler.requests import Method, Refusal, Request
from scheduler.schema import Key, count, text
from scheduler.state_store import StateStore

__all__ = ["Manager", "Target"]

T = TypeVar("T")
TARGET = Key("target", text, None, "its name; may be left out where there is one")


class Target:
    """One target as the manager knows it.

    Attributes:
        name: as administrators say it.
        role: ours at the target: "manager", "standby", or "lost" while there is no connection.
        boot: of the run of the target; None: not known yet.
        snapshot: the last reading as it came; None: none yet.
        load: the same as the policy sees it; at: when it came, in seconds since 1970.
    """

    def __init__(self, name: str, bounds: Bounds) -> None:
        self.name = name
        self.bounds = bounds
        self.role = "lost"
        self.trouble = "not connected yet"
        self.boot: str | None = None
        self.snapshot: dict[str, Any] | None = None
        self.load: Load | None = None
        self.at = 0.0
        self.reasons: dict[str, dict[str, Any]] = {}  # by what: "workers", "pool NAME"

    def status(self) -> dict[str, Any]:
        """As `status` answers it."""
        known: dict[str, Any] = {
            "name": self.name,
            "role": self.role,
            "boot": self.boot,
            "trouble": self.trouble,
        }
        if self.load is None:
            return known
        load = dataclasses.asdict(self.load)
        least, most = self.bounds.workers
        scale = dataclasses.asdict(self.bounds.workers_scale)
        workers = {**load["workers"], "min": least, "max": most, "scale": scale}
        pools = [
            {
                **pool,
                "scale": dataclasses.asdict(self.bounds.pools.get(pool["name"], Scale())),
                **self.reasons.get(f"pool {pool['name']}", {}),
            }
            for pool in load["pools"]
        ]
        return known | {
            "at": round(self.at * 1000),
            "workers": workers | self.reasons.get("workers", {}),
            "pressure": load["pressure"],
            "shedding": load["shedding"],
            "pools": pools,
        }


class Manager:
    """All of it.  Whoever makes one closes it."""

    def __init__(self, store: StateStore, targets: Iterable[Target]) -> None:
        self.store = store
        self.thread = ThreadPoolExecutor(1, "state")
        self.targets = {target.name: target for target in targets}
        self.started = time.time()
        self.url = ""  # of the first endpoint

    def close(self) -> None:
        """Everything is kept; nothing may be called any more."""
        self.thread.shutdown()
        self.store.close()

    async def stored(self, call: Callable[..., T], *values: Any, **named: Any) -> T:
        """Call the store in its thread."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self.thread, functools.partial(call, *values, **named))

    def target(self, name: str | None) -> Target:
        """The one named, or the only one.  Raises: Refusal."""
        if name is None and len(self.targets) == 1:
            return next(iter(self.targets.values()))
        if name is None or name not in self.targets:
            wrong = "say which target" if name is None else f"no target '{name}'"
            raise Refusal("no-such-target", wrong, f"there are: {', '.join(self.targets)}")
        return self.targets[name]

    # ---- what is answered ----

    def status(self) -> dict[str, Any]:
        """Everything at this moment."""
        me: dict[str, Any] = {"version": metadata.version("iosd"), "pid": os.getpid()}
        me |= {"started": round(self.started * 1000), "url": self.url}
        return {"manager": me, "targets": [each.status() for each in self.targets.values()]}

    async def changes(
        self, target: str | None = None, since: int = 0, most: int = 100
    ) -> list[dict[str, Any]]:
        """The newest lines of the log of changes with an id above `since`, oldest first."""
        found = await self.stored(self.store.changes, target, since, most)
        return [each.fields() for each in found]

    async def history(
        self, target: str | None = None, since: float = 0.0, step: int = 10, most: int = 1000
    ) -> list[dict[str, Any]]:
        """Loads of the past (state_store.py says which), oldest first."""
        name = self.target(target).name
        return await self.stored(self.store.history, name, since, step, most)

    def methods(self) -> list[Method]:
        """The rows of docs/control.md."""

        async def status(request: Request) -> Any:
            found = self.status()
            found["manager"] |= {"you": request.client.name, "role": request.client.role}
            return found

        async def changes(request: Request) -> Any:
            values = request.params
            name = values["target"] and self.target(values["target"]).name
            return {"changes": await self.changes(name, values["since"], values["most"])}

        async def history(request: Request) -> Any:
            values = dict(request.params)
            return {"loads": await self.history(**values | {"since": values["since"] / 1000})}

        since = Key(
            "since", count(0, 1 << 53), 0, "changes: an id; history: milliseconds since 1970"
        )
        most = Key("most", count(1, 10_000), 100, "rows at most")
        step = Key("step", count(1, 1 << 31), 10, "seconds between rows")
        return [
            Method("status", status),
            Method("changes", changes, (TARGET, since, most)),
            Method("history", history, (TARGET, since, step, most)),
        ]
