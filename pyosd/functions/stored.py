# SPDX-License-Identifier: GPL-2.0-or-later
"""@pyosd.function: a Python function of this program that is stored in a target and called there."""

from __future__ import annotations

import functools
import hashlib
import os
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Generic, ParamSpec, Protocol, TypeVar, overload

from pyosd.commands.dialogue import Dialogue, sleep
from pyosd.errors import JobError, NotFound, OSDError, TargetBusy
from pyosd.functions import calling, dialogues
from pyosd.functions.functions import AsyncFunctions, Functions
from pyosd.functions.manifest import Access
from pyosd.jobs.aio_jobs import AsyncJob
from pyosd.jobs.job import Job
from pyosd.jobs.source import stored_source
from pyosd.types import ROOT, ObjectRef, no_target
from pyosd.wire.exec_params import Duration, Limits

__all__ = ["AsyncBoundFunction", "BoundFunction", "StoredFunction", "function"]

P = ParamSpec("P")
R = TypeVar("R")

ATTEMPTS = 6  # when others activate or replace the same name at the same time
PAUSE_S = 0.02  # after the first; doubled each time


class ThreadTarget(Protocol):
    """A pyosd.Target."""

    @property
    def functions(self) -> Functions:
        """The functions of the target."""


class CoroutineTarget(Protocol):
    """A pyosd.aio.AsyncTarget."""

    @property
    def functions(self) -> AsyncFunctions:
        """The functions of the target."""


@dataclass(frozen=True)
class CallPlace:
    """The target and the options of a call of a stored function.  Fields as of Functions.call()."""

    table: Any
    zone: ObjectRef
    record: bool | None
    timeout: Duration | None


class StoredFunction(Generic[P, R]):
    """A Python function that a target can run.  Make one with @pyosd.function.

    Calling it runs it here.  on() names the target that runs it.
    """

    def __init__(self, function: Callable[P, R], partition: int | None, **options: Any) -> None:
        functools.update_wrapper(self, function)
        self.function = function
        self.partition = partition
        self.options = options
        self.name: str = options["name"]
        told = {key: value for key, value in options.items() if key != "sign_with"}
        self.source = stored_source(function, f"{self.name}: {told!r}")
        self.sha256 = hashlib.sha256(self.source.encode()).hexdigest()

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function in this process."""
        return self.function(*args, **kwargs)

    @overload
    def on(
        self,
        target: ThreadTarget,
        *,
        zone: ObjectRef = ...,
        record: bool | None = ...,
        timeout: Duration | None = ...,
    ) -> BoundFunction[P, R]: ...
    @overload
    def on(
        self,
        target: CoroutineTarget,
        *,
        zone: ObjectRef = ...,
        record: bool | None = ...,
        timeout: Duration | None = ...,
    ) -> AsyncBoundFunction[P, R]: ...
    def on(
        self,
        target: Any,
        *,
        zone: ObjectRef = ROOT,
        record: bool | None = None,
        timeout: Duration | None = None,
    ) -> Any:
        """The same function, run by a target.  Nothing is sent before it is called.

        Args:
            target: a Target, or an AsyncTarget for coroutines.
            zone: where the function may act, as its access class permits.
            record: as of Functions.call().
            timeout: how long a call waits. A call without a record ends then.

        Raises: TypeError: target is another object.
        """
        table = getattr(target, "functions", None)
        if not isinstance(table, AsyncFunctions | Functions):
            raise no_target(target)
        table.partition = self.partition
        face = AsyncBoundFunction if isinstance(table, AsyncFunctions) else BoundFunction
        return face(self, CallPlace(table, zone, record, timeout))


class _Bound(Generic[P, R]):
    """A stored function and the target that runs it, for threads or for coroutines."""

    def __init__(self, stored: StoredFunction[P, R], place: CallPlace) -> None:
        self.stored = stored
        self.place = place

    def _ask(
        self, ask: Callable[..., Dialogue[Any]], args: Any, kwargs: Any, **options: Any
    ) -> Dialogue[Any]:
        """By the SHA-256 of the code, so that no other version answers."""
        table, sha256 = self.place.table, self.stored.sha256
        given = {"args": args, "kwargs": kwargs}
        attempt = functools.partial(ask, table, sha256, given, zone=self.place.zone, **options)
        return stored_first(self.stored, table, attempt)

    def _call(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dialogue[Any]:
        place = self.place
        options = {"record": place.record, "timeout": place.timeout}
        try:
            return (yield from self._ask(calling.call, args, kwargs, **options))
        except (JobError, OSDError) as error:  # it names the function as the call does
            error.text = error.text.replace(self.stored.sha256, self.stored.name)
            raise

    def _submit(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Dialogue[Any]:
        return self._ask(calling.submit, args, kwargs)


class BoundFunction(_Bound[P, R]):
    """A stored function and the target that runs it, for threads."""

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function in the target, after storing it there if it is not active.

        Returns: what it returned. JSON has no tuples: they become lists.
        Raises: as Functions.call() and Functions.put().  TypeError: an argument is not JSON.
        """
        result: R = self.place.table.carry(self._call(args, kwargs))
        return result

    def submit(self, *args: P.args, **kwargs: P.kwargs) -> Job:
        """Run it as a job and do not wait.  Raises: as a call, but not how the call failed."""
        job: Job = self.place.table.carry(self._submit(args, kwargs))
        return job


class AsyncBoundFunction(_Bound[P, R]):
    """A stored function and the target that runs it, for coroutines."""

    async def __call__(self, *args: P.args, **kwargs: P.kwargs) -> R:
        """Run the function in the target.  As BoundFunction."""
        result: R = await self.place.table.carry(self._call(args, kwargs))
        return result

    async def submit(self, *args: P.args, **kwargs: P.kwargs) -> AsyncJob:
        """Run it as a job and do not wait.  As BoundFunction."""
        job: AsyncJob = await self.place.table.carry(self._submit(args, kwargs))
        return job


def stored_first(
    stored: StoredFunction[Any, Any], table: Any, attempt: Callable[[], Dialogue[Any]]
) -> Dialogue[Any]:
    """Call; if the target does not have this version, store it and call again.

    A call that finds no function has run nothing, so it can be repeated.
    """
    active = False
    for number in range(ATTEMPTS):
        try:
            return (yield from attempt())
        except NotFound:
            before, active = active, (yield from is_active(stored, table))
            if number == ATTEMPTS - 1 or (before and active):  # something else was not found
                raise
        if active:  # another call has stored it meanwhile
            continue
        try:
            yield from dialogues.put(table, stored.source, **stored.options)
        except (TargetBusy, NotFound):  # another client activates this name, or has replaced it
            if number == ATTEMPTS - 1:
                raise
            yield from sleep(PAUSE_S * 2**number * random.random(), None, stored.name)
    raise AssertionError("unreachable")


def is_active(stored: StoredFunction[Any, Any], table: Any) -> Dialogue[bool]:
    """Whether the target has this version."""
    try:
        found = yield from dialogues.show(table, stored.sha256)
    except NotFound:
        return False
    return found.active


@overload
def function(plain: Callable[P, R], /) -> StoredFunction[P, R]: ...
@overload
def function(
    *,
    name: str = ...,
    access: Access = ...,
    partition: int | None = ...,
    limits: Limits | None = ...,
    pool: str = ...,
    version: str = ...,
    description: str = ...,
    sign_with: str | os.PathLike[str] | None = ...,
) -> Callable[[Callable[P, R]], StoredFunction[P, R]]: ...
def function(
    plain: Callable[..., Any] | None = None,
    /,
    *,
    name: str = "",
    access: Access = Access.NONE,
    partition: int | None = None,
    limits: Limits | None = None,
    pool: str = "",
    version: str = "",
    description: str = "",
    sign_with: str | os.PathLike[str] | None = None,
) -> Any:
    """Make a Python function one that a target stores and runs: @pyosd.function, or with options.

    The first call on a target stores the function and activates it. If its source or one of these
    options changes, the next call replaces it, in one step. The function must be plain, as for
    `Target.exec()`: no closure, no other decorator, no globals but modules.

    Args:
        plain: the function, if there are no parentheses.
        name: its alias in the target.  "": the function's own name.
        access: what calls can do in their zone.
        partition: function partition, 1h to FFFFh.  None: the only one; 1h is made.
        limits, pool, version, description, sign_with: as for Functions.put().

    Raises: TypeError, ValueError, at the decoration: the function cannot be sent.
    """

    def decorated(function: Callable[..., Any]) -> StoredFunction[..., Any]:
        return StoredFunction(
            function,
            partition,
            name=name or getattr(function, "__name__", ""),
            access=access,
            limits=limits,
            pool=pool,
            version=version,
            description=description,
            sign_with=sign_with,
        )

    return decorated(plain) if plain is not None else decorated
