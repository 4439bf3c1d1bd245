# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs for coroutines: AsyncJob, waiting for many, and the task that asks for all of a target's jobs.

However jobs are waited for (await, gather, as_completed), one task per target asks for them together,
with one command for those of a partition where that pays; it ends with the last that is waited for.
"""

from __future__ import annotations

import asyncio
import contextlib
from collections.abc import AsyncIterator, Generator, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Protocol, overload

from pyosd import requests
from pyosd.errors import JobError, NotFound, OSDError, ProtocolError
from pyosd.jobs.job import (
    CANCEL,
    CONTROL,
    KILL,
    RESULT,
    STDERR,
    TRACEBACK,
    Stream,
    decode_result,
    expired,
    job_error,
)
from pyosd.jobs.polling import FOLLOW_MOST, Backoff, collection_pays
from pyosd.jobs.stderr import STDERR_AT, unseen
from pyosd.types import (
    JOBS_COLLECTION,
    AttributeId,
    AttributeValue,
    ObjectAttributes,
    ObjectRef,
    ref,
)
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists, Request
from pyosd.wire.job_status import (
    POLL_IDS,
    STATES_ID,
    STATUS_IDS,
    ArrayPlace,
    JobState,
    JobStatus,
    Number,
    decode_state,
    decode_status,
)
from pyosd.wire.reply import Reply

_MEMBER_ROOM = 80  # bytes that a member's POLL_IDS take in an answer
_READ_CHUNK = 64 << 10  # beyond the end a target sends zeros: a poll of new output asks for little
_TOGETHER = 32  # members whose ends are fetched together
STATES_ROOM = 11 << 10  # bytes that the states of 10,000 members take in an answer


class AsyncCaller(Protocol):
    """What jobs need of the logical unit they run on: a pyosd.aio.AsyncTarget."""

    poller: Poller

    async def call(self, request: Request, timeout: float | None = None) -> Reply:
        """Send a request and decode its answer."""
        ...

    async def read_range(
        self, obj: ObjectRef, start: int = 0, length: int | None = None
    ) -> bytearray:
        """Read a range."""
        ...


@dataclass
class _Watched:
    """A job that somebody waits for.  ended: set when it has, or nobody can say."""

    ended: asyncio.Future[None]
    array: ObjectRef | None  # that it is a member of, where that is known
    waiting: int = 0


class Poller:
    """Asks for the jobs of one target that are waited for."""

    def __init__(self, target: AsyncCaller) -> None:
        self._target = target
        self._jobs: dict[ObjectRef, _Watched] = {}
        self._members: dict[int, int] = {}
        self._task: asyncio.Task[None] | None = None
        self._changed = asyncio.Event()

    async def ended(self, job: ObjectRef, array: ObjectRef | None = None) -> None:
        """Return when the job has ended.  Raises: JobExpired; as pyosd.commands.unit says."""
        watched = self._jobs.get(job)
        if watched is None:
            watched = self._jobs[job] = _Watched(asyncio.get_running_loop().create_future(), array)
            self._changed.set()
        if self._task is None or self._task.done():
            self._task = asyncio.create_task(self._run(), name="pyosd-jobs")
        watched.waiting += 1
        try:
            await asyncio.shield(watched.ended)
        finally:
            watched.waiting -= 1
            if not watched.waiting and self._jobs.get(job) is watched:
                del self._jobs[job]
                watched.ended.cancel()
                self._changed.set()

    async def _run(self) -> None:
        backoff = Backoff()
        try:
            while self._jobs:
                self._changed.clear()
                suggested = await self._look()
                with contextlib.suppress(TimeoutError):
                    async with asyncio.timeout(backoff.next(suggested)):
                        await self._changed.wait()
                    backoff = Backoff()
        except Exception as error:
            for watched in self._jobs.values():
                if not watched.ended.done():
                    watched.ended.set_exception(error)
            self._jobs.clear()

    async def _look(self) -> float:
        """Ask for all; returns the least number of seconds that the target suggests to wait."""
        groups: dict[int, list[ObjectRef]] = {}
        arrays: dict[ObjectRef, list[ObjectRef]] = {}
        for job, each in self._jobs.items():
            if each.array is None:
                groups.setdefault(job.partition_id, []).append(job)
            else:
                arrays.setdefault(each.array, []).append(job)
        await asyncio.gather(*(self._ask_array(*each) for each in arrays.items()))
        answers = await asyncio.gather(*(self._ask(*group) for group in groups.items()))
        suggested = []
        for job, found in (each for answer in answers for each in answer):
            watched, state = self._jobs.get(job), decode_state(found)
            if state is not None and not state.terminal:
                intervals = [each.uint for each in found if each.number == Number.POLL_INTERVAL]
                suggested.append(intervals[0] / 1000 if intervals else 0.0)
            elif watched is not None and not watched.ended.done():
                if state is None:
                    watched.ended.set_exception(expired(job))
                else:
                    watched.ended.set_result(None)
                del self._jobs[job]
        return min(suggested, default=0.0)

    async def _ask_array(self, array: ObjectRef, members: list[ObjectRef]) -> None:
        """How members of an array stand, in one command."""
        states = await member_states(self._target, array)
        for job in members:
            at = job.object_id - array.object_id - 1
            watched = self._jobs.get(job)
            if watched is None or watched.ended.done():
                continue
            if at >= len(states):
                watched.ended.set_exception(expired(job))
            elif states[at].terminal:
                watched.ended.set_result(None)
            else:
                continue
            del self._jobs[job]

    async def _ask(
        self, partition_id: int, group: list[ObjectRef]
    ) -> list[tuple[ObjectRef, tuple[AttributeValue, ...]]]:
        members: tuple[ObjectAttributes, ...] = ()
        if collection_pays(len(group), self._members.get(partition_id, 0)):
            members = await self._ask_collection(partition_id)
            self._members[partition_id] = len(members)
        found = {ref(partition_id, each.object_id): each.attributes for each in members}
        others = [job for job in group if job not in found]
        alone = await asyncio.gather(*(self._ask_one(job) for job in others))
        found.update(zip(others, alone, strict=True))
        return [(job, found[job]) for job in group]

    async def _ask_one(self, job: ObjectRef) -> tuple[AttributeValue, ...]:
        lists = AttributeLists(POLL_IDS)
        try:
            return (
                await self._target.call(requests.get_attributes(job, attributes=lists))
            ).attributes
        except NotFound:
            return ()

    async def _ask_collection(self, partition_id: int) -> tuple[ObjectAttributes, ...]:
        collection = ref(partition_id, JOBS_COLLECTION)
        room = 4096 + _MEMBER_ROOM * self._members.get(partition_id, len(self._jobs))
        while True:
            lists = AttributeLists(POLL_IDS, (), room & ~7)
            request = requests.get_member_attributes(collection, attributes=lists)
            try:
                retrieved = (await self._target.call(request)).retrieved
            except NotFound:
                return ()
            if retrieved.complete:
                return retrieved.members
            if retrieved.needed <= room & ~7:
                raise ProtocolError("the target left out attributes that there was room for")
            room = retrieved.needed + retrieved.needed // 8 + 7


async def member_states(target: AsyncCaller, array: ObjectRef) -> list[JobState]:
    """States of an array's members in order; none: it has no record, or is no array."""
    lists = AttributeLists((STATES_ID,), (), STATES_ROOM)
    try:
        reply = await target.call(requests.get_attributes(array, attributes=lists))
    except NotFound:
        return []
    return [JobState(each) for found in reply.attributes for each in found.value]


class AsyncJob:
    """A job for coroutines; awaiting it gives its result, as Job.result() does."""

    def __init__(self, target: AsyncCaller, job: ObjectRef, array: ObjectRef | None = None) -> None:
        self._target = target
        self._final: JobStatus | None = None
        self.id = job
        self.member_of = array

    def __await__(self) -> Generator[Any, None, Any]:
        return self.result().__await__()

    def __repr__(self) -> str:
        return f"<AsyncJob {self.id}{f' {self._final.state.name}' if self._final else ''}>"

    async def _get(self, wanted: Iterable[AttributeId]) -> tuple[AttributeValue, ...]:
        lists = AttributeLists(tuple(wanted))
        request = requests.get_attributes(self.id, attributes=lists)
        try:
            return (await self._target.call(request)).attributes
        except NotFound:
            raise expired(self.id) from None

    async def status(self) -> JobStatus:
        """Everything the surrogate says; nothing is sent once it has ended.  Raises: JobExpired."""
        if self._final is not None:
            return self._final
        status = decode_status(self.id, await self._get(STATUS_IDS))
        if status is None:
            raise expired(self.id)
        if status.done:
            self._final = status
        return status

    async def done(self) -> bool:
        """Whether the job has ended (asks the target)."""
        return (await self.status()).done

    async def wait(self) -> JobStatus:
        """Wait until the job has ended; bound it with asyncio.timeout().  Raises: JobExpired."""
        if self._final is None:
            await self._target.poller.ended(self.id, self.member_of)
        return await self.status()

    async def result(self) -> Any:
        """Wait for the end and return the script's result; raises as Job.result() does."""
        status = await self.wait()
        try:
            if status.state is not JobState.COMPLETED:
                trace = await self._payload(TRACEBACK)
                raise job_error(None, status, trace.decode("utf-8", "replace"))
            if status.result_object:
                data = bytes(
                    await self._target.read_range(status.result_object, 0, status.result_length)
                )
            else:
                data = await self._payload(RESULT) if status.result_length else b""
        except NotFound:
            raise expired(self.id) from None  # since its status was asked for
        return decode_result(status, data)

    async def logs(self, *, follow: bool = False, stream: Stream = "stdout") -> AsyncIterator[str]:
        """Lines of output without their ends, undecodable bytes replaced.

        Args: follow: go on until the job has ended; else stop at what is there now.
        """
        at, rest, backoff = 0, b"", Backoff(FOLLOW_MOST)
        while True:
            status = await self.status()
            while piece := await self._output(stream, at):
                at, backoff = piece[0], Backoff(FOLLOW_MOST)
                *lines, rest = (rest + piece[1]).split(b"\n")
                for line in lines:
                    yield line.decode("utf-8", "replace")
            if status.done or not follow:
                break
            await asyncio.sleep(backoff.next(status.poll_interval))
        if rest:
            yield rest.decode("utf-8", "replace")

    async def _output(self, stream: Stream, at: int) -> tuple[int, bytes] | None:
        """What a stream has behind a position, and the position behind that; None: nothing now."""
        if stream == "stderr":
            now, piece = unseen(await self._payload(STDERR_AT), at)
            return (now, piece) if now > at else None
        piece = bytes(await self._target.read_range(self.id, at, _READ_CHUNK))
        return (at + len(piece), piece) if piece else None

    async def stderr(self) -> bytes:
        """Standard error up to now; of more than 60 KiB the first 20 and the last 40."""
        return await self._payload(STDERR)

    async def _payload(self, number: int) -> bytes:
        lists = AttributeLists((AttributeId(Page.JOB_PAYLOAD, number),), (), 64 << 10)
        reply = await self._target.call(requests.get_attributes(self.id, attributes=lists))
        return reply.attributes[0].value if reply.attributes else b""

    async def _control(self, action: int) -> None:
        values = (AttributeValue(CONTROL.page, CONTROL.number, bytes([action])),)
        request = requests.set_attributes(self.id, attributes=AttributeLists((), values))
        try:
            await self._target.call(request)
        except NotFound:
            raise expired(self.id) from None
        except OSDError as error:
            if error.attributes:  # the control attribute is refused: of what is no job, too
                await self.status()
            raise

    async def cancel(self) -> bool:
        """End the job if it has not started.  Returns: whether it is CANCELLED now."""
        await self._control(CANCEL)
        return (await self.status()).state is JobState.CANCELLED

    async def kill(self) -> JobState:
        """End the job for sure.  Returns: the state that won."""
        await self._control(KILL)
        return (await self.wait()).state


class AsyncJobArray(AsyncJob, Sequence[AsyncJob]):
    """An array of jobs for coroutines, and the sequence of its members; as JobArray.

    Awaiting it gives the list of its members' results.
    """

    def __init__(self, target: AsyncCaller, place: ArrayPlace) -> None:
        super().__init__(target, place.array)
        self.place = place
        self._members = [
            AsyncJob(target, place.member(index), place.array) for index in place.indices
        ]

    def __len__(self) -> int:
        return self.place.members

    @overload
    def __getitem__(self, at: int) -> AsyncJob: ...
    @overload
    def __getitem__(self, at: slice) -> list[AsyncJob]: ...
    def __getitem__(self, at: int | slice) -> AsyncJob | list[AsyncJob]:
        return self._members[at]

    def __bool__(self) -> bool:
        return True

    def member(self, index: int) -> AsyncJob:
        """The member with that index.  Raises: IndexError."""
        return self._members[self.place.position(index)]

    async def states(self) -> list[JobState]:
        """The states of all members in order, in one command.  Raises: JobExpired."""
        states = await member_states(self._target, self.id)
        if len(states) != len(self):
            raise expired(self.id)
        return states

    async def result(self) -> list[Any]:
        """Wait for all members; the list of their results; raises as the first that failed."""
        return await self.results()

    async def results(self, *, return_exceptions: bool = False) -> list[Any]:
        """Wait for all members; the list of their results in order of index.

        Args: return_exceptions: the JobError of a member that did not complete stands in its place.
        Raises: without return_exceptions the error of the first member that did not complete.
        """
        await self.wait()
        found = []
        for at in range(0, len(self), _TOGETHER):
            some = self._members[at : at + _TOGETHER]
            found += await asyncio.gather(*(_outcome(job, return_exceptions) for job in some))
        return found


async def _outcome(job: AsyncJob, return_exceptions: bool) -> Any:
    try:
        return await job.result()
    except JobError as error:
        if not return_exceptions:
            raise
        return error


async def as_completed(
    waited: Iterable[AsyncJob], timeout: float | None = None
) -> AsyncIterator[AsyncJob]:
    """Yield jobs as they end.

    Args: timeout: seconds from now, None: for ever.
    Raises: TimeoutError: some go on; JobExpired: one has no record (any more).
    """
    tasks = {asyncio.ensure_future(job.wait()): job for job in waited}
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
    waited: Iterable[AsyncJob], timeout: float | None = None
) -> tuple[list[AsyncJob], list[AsyncJob]]:
    """Wait until all have ended or the time is up.  Returns: those that ended, and the others."""
    every = list(waited)
    ended: set[AsyncJob] = set()
    with contextlib.suppress(TimeoutError):
        async for job in as_completed(every, timeout):
            ended.add(job)
    return [job for job in every if job in ended], [job for job in every if job not in ended]
