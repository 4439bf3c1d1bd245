# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs for coroutines: AsyncJob, AsyncJobArray, waiting for many, and the task that asks for all.

One task per target polls all jobs that somebody awaits (await, gather, as_completed). It uses one
command for several jobs of a partition if that is faster. It ends when nobody awaits a job.
Not here: what most methods do (dialogues/).
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Generator, Iterable, Sequence
from typing import Any, TypeVar, overload

from pyosd import errors
from pyosd.commands.async_unit import AsyncCommands
from pyosd.commands.dialogue import Awaiting, Dialogue, Stream
from pyosd.jobs.dialogues import arrays, following
from pyosd.jobs.dialogues.followed import Backoff, Followed, FollowedArray
from pyosd.jobs.dialogues.job_table import JobTable
from pyosd.jobs.dialogues.rounds import poll_round
from pyosd.jobs.submission import Kinds
from pyosd.types import ObjectRef
from pyosd.wire.job_status import ArrayPlace, JobStatus

__all__ = ["AsyncJob", "AsyncJobArray", "Poller", "PollingCommands", "as_completed", "wait"]

R = TypeVar("R")


class PollingCommands(AsyncCommands):
    """Commands with what asks for the jobs that coroutines wait for."""

    poller: Poller


class Poller:
    """Asks for the jobs of one target that are waited for."""

    def __init__(self, commands: AsyncCommands) -> None:
        self._commands = commands
        self._waiting: dict[AsyncJob, set[asyncio.Future[None]]] = {}
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def ended(self, job: AsyncJob) -> None:
        """Return when the job is settled.  Raises: as pyosd.commands.unit says."""
        if job.settled:
            return
        heard = asyncio.get_running_loop().create_future()
        if job not in self._waiting:
            self._waiting[job] = set()
            self._changed.set()
        self._waiting[job].add(heard)
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="pyosd-jobs")
        try:
            await heard
        finally:
            waiting = self._waiting.get(job, set())
            waiting.discard(heard)
            if not waiting and self._waiting.pop(job, None) is not None:
                self._changed.set()

    async def _run(self) -> None:
        backoff = Backoff()
        try:
            while self._waiting:
                self._changed.clear()
                suggested = await self._commands.carry(poll_round([*self._waiting]))
                for job in [each for each in self._waiting if each.settled]:
                    _tell(self._waiting.pop(job), None)
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(backoff.next(suggested)):
                        await self._changed.wait()
                    backoff = Backoff()
        except Exception as error:
            for waiting in self._waiting.values():
                _tell(waiting, error)
            self._waiting.clear()


def _tell(waiting: Iterable[asyncio.Future[None]], error: Exception | None) -> None:
    for heard in waiting:
        if heard.done():
            continue
        if error is None:
            heard.set_result(None)
        else:
            heard.set_exception(error)


class AsyncJob(JobTable, Followed, Awaiting):
    """A job for coroutines; awaiting it gives its result.

    Its methods are those of Job, as coroutines.  It is no Future: done() asks the target.
    """

    commands: PollingCommands

    def __init__(self, commands: PollingCommands, job: ObjectRef, name: str = "") -> None:
        super().__init__(commands, job, name)
        self._outcome: tuple[Any, BaseException | None] | None = None

    async def carry(self, dialogue: Dialogue[R]) -> R:
        return await self.commands.carry(dialogue)

    def carry_stream(self, stream: Stream[R]) -> AsyncIterator[R]:
        return self.commands.carry_stream(stream)

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result().__await__()

    def __repr__(self) -> str:
        return self.describe("AsyncJob")

    # ---- the methods that Job has from Future ---------------------------------------------------

    async def done(self) -> bool:
        """Whether the job has ended (asks the target)."""
        return await self.carry(following.done(self))

    async def running(self) -> bool:
        """Whether the script runs now (asks the target)."""
        return await self.carry(following.running(self))

    async def cancelled(self) -> bool:
        """Whether the job ended CANCELLED (asks the target)."""
        return await self.carry(following.cancelled(self))

    async def cancel(self) -> bool:
        """End the job if it has not started.  Returns: whether it is CANCELLED now."""
        return await self.carry(following.cancel(self))

    async def result(self, timeout: float | None = None) -> Any:
        """Wait for the end and return the script's result; None: it has none.

        Raises: TimeoutError: the job has not ended; ScriptError, JobCancelled, JobTimeout,
            JobOutOfMemory, LimitExceeded, SandboxLost: how it failed.
        """
        await self.wait(timeout)
        value, error = self.settled_outcome()
        if error is not None:
            raise error
        return value

    async def exception(self, timeout: float | None = None) -> BaseException | None:
        """Wait for the end and return how the job failed; None: it COMPLETED.

        Raises: TimeoutError: the job has not ended.
        """
        await self.wait(timeout)
        return self.settled_outcome()[1]

    async def wait_for_end(self, timeout: float | None) -> None:
        """Wait until the job has ended: wait() without its answer."""
        try:
            async with asyncio.timeout(timeout):
                await self.commands.poller.ended(self)
        except TimeoutError:
            if self.settled:
                return
            raise TimeoutError(f"not ended in time: {self}") from None

    # ---- its end --------------------------------------------------------------------------------

    def end(self, status: JobStatus, value: Any, error: errors.JobError | None) -> None:
        """The job has ended: keep how, once."""
        if self._final is None:
            self._final = status
            self._outcome = (value, error)

    def lose(self, error: BaseException) -> None:
        """Give an error to all that wait, because the end of the job cannot be found out."""
        if self._outcome is None:
            self._outcome = (None, error)

    @property
    def settled(self) -> bool:
        """Whether its end is known, without asking the target."""
        return self._outcome is not None

    def settled_outcome(self) -> tuple[Any, BaseException | None]:
        """The result, and the exception in its place.  Call it only if settled."""
        assert self._outcome
        return self._outcome


class AsyncJobArray(arrays.ArrayTable, FollowedArray, AsyncJob, Sequence[AsyncJob]):
    """An array of jobs for coroutines, and the sequence of its members; as JobArray.

    Awaiting it gives the list of its members' results.
    """

    def __init__(
        self, commands: PollingCommands, job: ObjectRef, name: str, place: ArrayPlace
    ) -> None:
        super().__init__(commands, job, name)
        self._place = place
        self._members: dict[int, AsyncJob] = {}

    @property
    def place(self) -> ArrayPlace:
        """Indices, members, most running at once."""
        return self._place

    @property
    def indices(self) -> Sequence[int]:
        """The members' indices, ascending."""
        return self._place.indices

    def __len__(self) -> int:
        return self._place.members

    @overload
    def __getitem__(self, at: int) -> AsyncJob: ...
    @overload
    def __getitem__(self, at: slice) -> list[AsyncJob]: ...
    def __getitem__(self, at: int | slice) -> AsyncJob | list[AsyncJob]:
        if isinstance(at, slice):
            return [self.member(index) for index in self.indices[at]]
        return self.member(self.indices[at])

    def __bool__(self) -> bool:
        return True

    def __repr__(self) -> str:
        return f"{self.describe('AsyncJobArray')[:-1]} [{self._place.text}]>"

    def member(self, index: int) -> AsyncJob:
        """The member with that index; nothing is sent.  Raises: IndexError."""
        if index not in self._members:
            job = AsyncJob(self.commands, self._place.member(index), self.name)
            job.member_of, job.label = self.id, f"{self.id}[{index}]"
            self._members[index] = job
        return self._members[index]

    async def result(self, timeout: float | None = None) -> list[Any]:
        """Wait for all members and return their results.

        Raises: TimeoutError: some have not ended; ScriptError and others: the error of the first member
            that failed.
        """
        return await self.carry(arrays.result(self, timeout))

    async def cancel(self) -> bool:
        """End the members that have not started.

        Returns: whether the whole array is CANCELLED now: none runs, completed or failed.
        """
        return await self.carry(arrays.cancel(self))


KINDS = Kinds(AsyncJob, AsyncJobArray)
"""The classes of submitted jobs, for coroutines."""


async def as_completed(
    jobs: Iterable[AsyncJob], timeout: float | None = None
) -> AsyncIterator[AsyncJob]:
    """Yield jobs as they end.

    Args:
        timeout: seconds from now; None: no limit.

    Raises: TimeoutError: some go on; JobExpired: one has no record (any more).
    """
    tasks = {asyncio.ensure_future(job.wait()): job for job in jobs}
    loop = asyncio.get_running_loop()
    deadline = None if timeout is None else loop.time() + timeout
    left = set(tasks)
    try:
        while left:
            patience = None if deadline is None else max(0.0, deadline - loop.time())
            ended, left = await asyncio.wait(
                left, timeout=patience, return_when=asyncio.FIRST_COMPLETED
            )
            if not ended:
                raise TimeoutError(f"not ended in time: {len(left)} jobs")
            for task in ended:
                task.result()
                yield tasks[task]
    finally:
        for task in left:
            task.cancel()
        await asyncio.gather(*left, return_exceptions=True)


async def wait(
    jobs: Iterable[AsyncJob], timeout: float | None = None
) -> tuple[list[AsyncJob], list[AsyncJob]]:
    """Wait until all have ended, or the time is up.  Returns: jobs that have ended, and the others."""
    every = list(jobs)
    ended: set[AsyncJob] = set()
    with contextlib.suppress(TimeoutError):
        async for job in as_completed(every, timeout):
            ended.add(job)
    return [job for job in every if job in ended], [job for job in every if job not in ended]
