# SPDX-License-Identifier: GPL-2.0-or-later
"""One function over a few objects as a coroutine: the leaf of graphs of other schedulers (pyosd.dask).

A leaf waits for jobs and holds no thread.  Leaves of an event loop that connect with the same options
share a session for each target, and one task that polls the jobs of that target.
"""

from __future__ import annotations

import asyncio
import pickle
import secrets
import time
import weakref
from collections import defaultdict
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyosd import aio
from pyosd.cluster import near
from pyosd.cluster.placement import Copies
from pyosd.errors import JobError, OSDError, TargetBusy, Unreachable
from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import Limits

__all__ = ["NearError", "Sites", "Work", "close_sessions", "run_leaf"]

_FAULTS = 10  # of sessions with one target that a leaf survives
_RETRY = 0.1  # seconds between two attempts


class NearError(Exception):
    """Objects of a leaf have no value.  failed: the objects, and why."""

    def __init__(self, failed: Mapping[ObjectRef, str]) -> None:
        first, why = next(iter(failed.items()))
        super().__init__(f"{len(failed)} objects have no value; the first is {first}: {why}")
        self.failed = dict(failed)

    def __reduce__(self) -> tuple[object, ...]:
        return (type(self), (self.failed,))


@dataclass(frozen=True)
class Sites:
    """Targets as a worker needs them.  urls: by name.  options: of aio.connect(), for each."""

    urls: Mapping[str, str]
    options: Mapping[str, Any]


@dataclass(frozen=True)
class Work:
    """The work on each object.

    sources: source of the function, and of those that combine and weigh.  weighted: combining takes
    weights.  combines: values of a leaf become one.  limits, pool: of each job.
    """

    sources: Mapping[str, str]
    weighted: bool = False
    combines: bool = False
    limits: Limits | None = None
    pool: str = ""
    name: str = ""


_Login = tuple[Mapping[str, Any], "asyncio.Task[aio.AsyncTarget]"]
_Sessions = dict[tuple[str, bytes | int], _Login]
_sessions: weakref.WeakKeyDictionary[asyncio.AbstractEventLoop, _Sessions] = (
    weakref.WeakKeyDictionary()
)


async def _login(url: str, options: Mapping[str, Any]) -> aio.AsyncTarget:
    return await aio.connect(url, **options)


def _mark(options: Mapping[str, Any]) -> bytes | int:
    """The same for options that unpickled alike.  Others are the same if they are one object."""
    try:
        return pickle.dumps(sorted(options.items()))
    except Exception:  # objects of users refuse in ways of their own
        return id(options)


async def _session(sites: Sites, name: str, old: aio.AsyncTarget | None) -> aio.AsyncTarget:
    """The session of this loop with a target; a new one in place of old.

    A worker serves several users: nobody may use a session that others have logged in.
    """
    known = _sessions.setdefault(asyncio.get_running_loop(), {})
    key = (sites.urls[name], _mark(sites.options))
    task = known[key][1] if key in known else None
    if task is None or (task.done() and (_failed(task) or task.result() is old)):
        task = asyncio.create_task(_login(sites.urls[name], sites.options))
        known[key] = (sites.options, task)  # while they are kept, no other object has their id
        if old is not None:
            await old.close()
    return await asyncio.shield(task)


def _failed(task: asyncio.Task[aio.AsyncTarget]) -> bool:
    return task.cancelled() or task.exception() is not None


async def close_sessions() -> None:
    """Log out of all targets on which leaves of this loop have worked."""
    for _, task in _sessions.pop(asyncio.get_running_loop(), {}).values():
        try:
            await (await task).close()
        except OSDError:
            continue


async def _at(sites: Sites, name: str, work: Work, objects: list[ObjectRef]) -> Any:
    """Run the function for objects of one partition at one target, in one job.

    A lost session is replaced, and the job found again by its key, for reconnect_timeout.

    Raises: OSDError, JobError: the target, or the job, cannot do it.
    """
    partition, numbers = objects[0].partition_id, [each.object_id for each in objects]
    key, target, faults = secrets.token_hex(8), None, 0
    patience, end = float(sites.options.get("reconnect_timeout", 10.0)), 0.0
    while True:
        try:
            target = await _session(sites, name, target)
            while True:
                try:
                    job = await target.exec(
                        near.run_slice,
                        zone=ref(partition),
                        args=[dict(work.sources), work.weighted, partition, [numbers]],
                        key=key,
                        idempotent=True,
                        name=work.name,
                        limits=work.limits,
                        pool=work.pool,
                    )
                    break
                except TargetBusy as busy:
                    await asyncio.sleep(busy.retry_after)
            end = 0.0
            return await job
        except Unreachable:
            faults, now = faults + 1, time.monotonic()
            end = end or now + patience
            if faults > _FAULTS or now >= end:
                raise
        await asyncio.sleep(_RETRY)


class _LeafRun:
    """The objects of a leaf: values, errors, and targets that are left to be tried."""

    def __init__(self, sites: Sites, work: Work, objects: list[Copies]) -> None:
        self._sites, self._work, self._objects = sites, work, objects
        self._places = {
            each.object: [name for name in each.targets if name in sites.urls] for each in objects
        }
        self._waiting = [each.object for each in objects]
        self._values: dict[ObjectRef, Any] = {}
        self._pairs: list[Any] = []
        self._failed: dict[ObjectRef, str] = {}

    async def run(self) -> list[Any]:
        """As run_leaf()."""
        while self._waiting:
            groups = self._next_groups()
            ends = await asyncio.gather(
                *(_at(self._sites, name, self._work, group) for (name, _), group in groups.items()),
                return_exceptions=True,
            )
            for group, found in zip(groups.values(), ends, strict=True):
                self._take(group, found)
        if self._failed:
            raise NearError(self._failed)
        if self._work.combines:
            return self._pairs
        return [self._values[each.object] for each in self._objects]

    def _next_groups(self) -> dict[tuple[str, int], list[ObjectRef]]:
        """The waiting objects by target and partition; those that have no target left fail."""
        groups: dict[tuple[str, int], list[ObjectRef]] = defaultdict(list)
        for obj in self._waiting:
            if self._places[obj]:
                groups[self._places[obj].pop(0), obj.partition_id].append(obj)
            else:
                self._failed.setdefault(obj, "no target of these has it")
        self._waiting = []
        return groups

    def _take(self, group: list[ObjectRef], found: Any) -> None:
        """Take what the job of a group returned or raised.  Raises: an error of this program."""
        if isinstance(found, OSDError | JobError):
            self._fail(group, f"{type(found).__name__}: {found}")
            return
        if isinstance(found, BaseException):
            raise found
        try:
            refused, answered = near.checked(found, len(group), self._work.combines)
        except ValueError as error:
            self._fail(group, str(error))
            return
        for position, obj in enumerate(group):
            if position not in refused:
                self._failed.pop(obj, None)
                continue
            kind, text, storage = refused[position]
            self._fail([obj], f"{kind}: {text}", elsewhere=storage)
        if self._work.combines:
            self._pairs += answered
        else:
            self._values |= {group[position]: value for position, value in answered}

    def _fail(self, group: list[ObjectRef], why: str, *, elsewhere: bool = True) -> None:
        """Keep the error of objects, and try those elsewhere that another target has."""
        self._failed |= dict.fromkeys(group, why)
        if elsewhere:
            self._waiting += [obj for obj in group if self._places[obj]]


async def run_leaf(sites: Sites, work: Work, objects: list[Copies]) -> list[Any]:
    """Run the function for each object at a target that has it; if that fails, at another one.

    Returns: the values in the order of the objects.  If values are combined: a list of one pair of
        value and weight, or [] if there are no objects.
    Raises: NearError: an object has no value at any target that has it.
    """
    return await _LeafRun(sites, work, objects).run()
