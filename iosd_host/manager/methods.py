# SPDX-License-Identifier: GPL-2.0-or-later
"""The manager's methods: a row each (docs/control.md).

Not here: the checks of requests (requests.py), changes (changes.py), keys (key_methods.py).
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Any

from iosd_host.config.schema import Count, Key, flag, text, texts
from iosd_host.manager.changes import Changes, config_reload
from iosd_host.manager.manager import Manager
from iosd_host.manager.requests import AdminRequest, ManagerMethod
from iosd_host.policy.events import Mode

__all__ = ["methods"]

NAME_MOST = 128


def name(value: Any) -> str:
    """A text, not too long."""
    if len(text(value).encode()) > NAME_MOST:
        raise ValueError(f"a text of at most {NAME_MOST} bytes")
    return text(value)


def table(value: Any) -> dict[str, Any]:
    """Keys with values, one at least."""
    if not isinstance(value, dict) or not value:
        raise ValueError("an object of keys with values, not empty")
    return value


SLOTS, THREADS, JOBS = Count(0, 64), Count(1, 64), Count(0, 10_000)
TARGET = Key("target", name, None, "its name; may be left out where there is one")
POOL = (TARGET, Key("pool", name, None, "its name"))
AUTO = Key("auto", flag, None, "follow the load")
VALUES = Key("values", table, None, "texts by keys of pools.md")
KEYS = Key("keys", texts, None, "of these; else all that were set")
SIZES = tuple(Key(key, SLOTS, None, "slots") for key in ("active", "min", "max"))
COUNTS = tuple(Key(key, THREADS, None, "threads") for key in ("count", "min", "max"))
PRINCIPAL = (TARGET, Key("principal", name, None, "as pool.usage names it"))
SHARE = (
    Key("weight", Count(1, 1000), None, "of its share"),
    Key("queue", JOBS, None, "jobs waiting; 0: the default"),
    Key("at_once", JOBS, None, "running; 0: no cap"),
)
SINCE = Key("since", Count(0, 1 << 53), 0, "changes: an id; history: milliseconds since 1970")
WHO = Key("who", name, None, "a name in the log, policy, or people: all but the policy")
MOST = Key("most", Count(1, 10_000), 100, "rows at most")
STEP = Key("step", Count(1, 1 << 31), 10, "seconds between rows")


class Looks:
    """Methods that change nothing."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager

    async def status(self, request: AdminRequest) -> Any:
        """Everything, at this moment."""
        await asyncio.gather(*(each.refresh() for each in self.manager.targets.values()))
        found = self.manager.status()
        found["manager"] |= {"you": request.client.name, "role": request.client.role}
        return found

    async def usage(self, request: AdminRequest) -> Any:
        """Of principals."""
        return {"principals": await self.manager.usage(request.params["target"])}

    async def jobs(self, request: AdminRequest) -> Any:
        """At work, waiting, and ended lately."""
        return {"jobs": await self.manager.jobs(request.params["target"])}

    async def settings(self, request: AdminRequest) -> Any:
        """Values in force, and their authors."""
        return {"settings": self.manager.target(request.params["target"]).settings.show()}

    async def changes(self, request: AdminRequest) -> Any:
        """The log of changes."""
        if request.params["target"] is not None:
            self.manager.target(request.params["target"])  # which may refuse it
        return {"changes": await self.manager.changes(**request.params)}

    async def history(self, request: AdminRequest) -> Any:
        """Loads of the past."""
        values = dict(request.params)
        values["since"] /= 1000
        return {"loads": await self.manager.history(**values)}


def methods(manager: Manager) -> list[ManagerMethod]:
    """The rows."""
    looks, changes = Looks(manager), Changes(manager.keep, manager.configuration)

    def change(
        name: str, run: Callable[..., Any], keys: Sequence[Key], *required: str, **more: Any
    ) -> ManagerMethod:
        """A row that changes a target."""

        async def one(request: AdminRequest) -> Any:
            return await run(manager.target(request.params["target"]), request, **more)

        return ManagerMethod(name, one, keys, required, changes=True)

    return [
        ManagerMethod("status", looks.status),
        change("pool.set", changes.pool_set, (*POOL, VALUES), "pool", "values"),
        change("pool.scale", changes.pool_scale, (*POOL, AUTO, *SIZES), "pool"),
        change("pool.drain", changes.pool_mode, POOL, "pool", mode=Mode.DRAINING),
        change("pool.resume", changes.pool_mode, POOL, "pool", mode=Mode.RUNNING),
        change("pool.pause", changes.pool_mode, POOL, "pool", mode=Mode.PAUSED),
        change("pool.recycle", changes.pool_recycle, POOL, "pool"),
        change("pool.reset", changes.pool_reset, (*POOL, KEYS), "pool"),
        ManagerMethod("pool.usage", looks.usage, (TARGET,)),
        change("principal.set", changes.principal_set, (*PRINCIPAL, *SHARE), "principal"),
        change("principal.reset", changes.principal_reset, PRINCIPAL, "principal"),
        change("workers.set", changes.workers_set, (TARGET, AUTO, *COUNTS)),
        change("workers.reset", changes.workers_reset, (TARGET,)),
        ManagerMethod("config.show", looks.settings, (TARGET,)),
        change("config.reload", config_reload, (TARGET,)),
        change("config.apply", changes.config_apply, (TARGET,)),
        ManagerMethod("jobs", looks.jobs, (TARGET,)),
        ManagerMethod("changes", looks.changes, (TARGET, SINCE, MOST, WHO, POOL[1])),
        ManagerMethod("history", looks.history, (TARGET, SINCE, STEP, MOST)),
    ]
