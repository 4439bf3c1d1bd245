# SPDX-License-Identifier: GPL-2.0-or-later
"""Arrays of jobs: one submission, many jobs that differ in osd.array_index.

A JobArray is a Job (its surrogate stands for all of them) and the sequence of its members.  How all
members stand comes in one command, a byte for each.
"""

from __future__ import annotations

import html
import time
from collections import deque
from collections.abc import Iterator, Sequence
from itertools import islice
from typing import Any, overload

from pyosd import errors, requests
from pyosd.commands import Commands
from pyosd.jobs import submission
from pyosd.jobs.job import CANCEL, RESULT, Job
from pyosd.jobs.polling import Backoff, sleep
from pyosd.jobs.submission import Prepared, place_of, prepare, send, takes_options
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.job_status import (
    STATES_ID,
    STATUS_IDS,
    ArrayPlace,
    JobState,
    JobStatus,
    Number,
    decode_status,
)
from pyosd.wire.reply import PendingReply

__all__ = ["JobArray", "submit"]

# Pauses between two looks at all members: a share of the time that has passed.
_PATIENCE, _PAUSE_LEAST, _PAUSE_MOST = 16, 0.002, 0.25
_FETCH_DEPTH = 32  # commands under way together that fetch ends of members
_RESULT_ID = AttributeId(Page.JOB_PAYLOAD, RESULT)
_PLACE_ID = AttributeId(Page.JOB_STATUS, Number.ARRAY)
_WAITING = (JobState.QUEUED, JobState.HELD)


class JobArray(Job, Sequence[Job]):
    """An array of jobs.

    As a Job it represents all members. It is COMPLETED if all members are, CANCELLED if all others
    are, and FAILED otherwise. kill(), cancel(), hold(), release() and remove() mean all members. As
    a sequence it holds its members in order of index: array[0] has the first index, whatever that
    is; member(index) finds one by its index.
    """

    def __init__(
        self, commands: Commands, job: ObjectRef, name: str = "", place: ArrayPlace | None = None
    ) -> None:
        super().__init__(commands, job, name)
        self._place = place
        self._members: dict[int, Job] = {}

    @property
    def place(self) -> ArrayPlace:
        """Indices, members, most running at once (asks the target, once).

        Raises: JobExpired; ValueError: it is no array.
        """
        if self._place is None:
            found = self.status().array
            if found is None or not found.members:
                raise ValueError(f"job {self.id} is not an array")
            self._place = found
        return self._place

    @property
    def indices(self) -> Sequence[int]:
        """The members' indices, ascending."""
        return self.place.indices

    # ---- the sequence ---------------------------------------------------------------------------

    def __len__(self) -> int:
        return self.place.members

    @overload
    def __getitem__(self, at: int) -> Job: ...
    @overload
    def __getitem__(self, at: slice) -> list[Job]: ...
    def __getitem__(self, at: int | slice) -> Job | list[Job]:
        if isinstance(at, slice):
            return [self.member(index) for index in self.indices[at]]
        return self.member(self.indices[at])

    def __iter__(self) -> Iterator[Job]:
        return map(self.member, self.indices)

    def member(self, index: int) -> Job:
        """The member with that index; nothing is sent.  Raises: IndexError."""
        if index not in self._members:
            job = Job(self.commands, self.place.member(index), self.name)
            job.member_of, job.label = self.id, f"{self.id}[{index}]"
            self._members[index] = job
        return self._members[index]

    # ---- how it goes ----------------------------------------------------------------------------

    def states(self) -> list[JobState]:
        """The states of all members in order, in one command.  Raises: JobExpired."""
        try:
            found = self.commands.get_attributes(self.id, [STATES_ID])
        except errors.NotFound:
            raise self._expired() from None
        states = [JobState(each) for each in found[0].value] if found else []
        if len(states) != len(self):
            raise self._expired()
        return states

    def progress(self) -> float:
        """The share of members that have ended."""
        counts = self.status().counts
        ended = sum(count for state, count in counts.items() if state.terminal)
        return ended / len(self)

    def as_completed(self, timeout: float | None = None) -> Iterator[Job]:
        """Yield members as they end, each settled: its result() needs no more commands.

        Args: timeout: seconds from now, None: for ever.
        Raises: TimeoutError: some go on; JobExpired.
        """
        deadline = None if timeout is None else time.monotonic() + timeout
        left, began = set(self.indices), time.monotonic()
        while left:
            states = self.states()
            ended = [index for index in sorted(left) if states[self.place.position(index)].terminal]
            left.difference_update(ended)
            yield from self._settled(ended)
            if left:
                pause = (time.monotonic() - began) / _PATIENCE
                pause = min(max(pause, _PAUSE_LEAST), _PAUSE_MOST)
                sleep(pause, deadline, f"{len(left)} members of {self.id}")

    def _settled(self, indices: Sequence[int]) -> Iterator[Job]:
        """Members that have ended, with how; a few commands under way at a time."""
        wanted = (*STATUS_IDS, _RESULT_ID)
        for job, found in self._ask(map(self.member, indices), wanted):
            if not job.settled:
                job.take_end(found)
            yield job

    def _ask(
        self, jobs: Iterator[Job], wanted: tuple[AttributeId, ...]
    ) -> Iterator[tuple[Job, tuple[AttributeValue, ...]]]:
        """Attributes of members in order, a few commands under way at a time; () of one that is gone."""
        lists = AttributeLists(wanted)
        under_way: deque[tuple[Job, PendingReply]] = deque()
        while True:
            for job in islice(jobs, _FETCH_DEPTH - len(under_way)):
                request = requests.get_attributes(job.id, attributes=lists)
                under_way.append((job, self.commands.submit(request)))
            if not under_way:
                return
            job, pending = under_way.popleft()
            reply = pending.reply()
            if reply.error and not isinstance(reply.error, errors.NotFound):
                raise reply.error
            yield job, () if reply.error else reply.attributes

    def statuses(self) -> Iterator[JobStatus]:
        """Everything the members say, in order; those that were removed are left out."""
        for job, found in self._ask(iter(self), STATUS_IDS):
            status = decode_status(job.id, found)
            if status is not None:
                yield status

    # ---- how it ended ---------------------------------------------------------------------------

    def results(
        self, timeout: float | None = None, *, return_exceptions: bool = False
    ) -> Iterator[Any]:
        """Yield the members' results in order of index, each as soon as it and all before it are there.

        Args: return_exceptions: yield the exception of a member that did not complete in place of its
            result, instead of raising it.
        Raises: as Job.result(), at the first member that did not complete; the others go on.
        """
        early: dict[Job, Job] = {}
        order = iter(self)
        following = next(order, None)
        for job in self.as_completed(timeout):
            early[job] = job
            while following is not None and following in early:
                yield _outcome(early.pop(following), return_exceptions)
                following = next(order, None)

    def result(self, timeout: float | None = None) -> list[Any]:
        """Wait for all members; the list of their results.

        Raises: TimeoutError: some go on; ScriptError, ...: the array did not complete: the error of
            the first member that failed.
        """
        self.wait(timeout)
        return [job.result() for job in self._settled(self.indices)]

    # ---- control --------------------------------------------------------------------------------

    def stop(self) -> None:
        """Ask for the end of the members that have not started, and do not wait for it."""
        if self._final is None:
            self._control(CANCEL)

    def cancel(self) -> bool:
        """End the members that have not started.

        Returns: whether the whole array is CANCELLED now: none runs, completed or failed.
        """
        self.stop()
        if self._final is None:
            backoff = Backoff()
            while any(self.status().counts.get(state) for state in _WAITING):
                time.sleep(backoff.next())
            counts = self.status().counts
            if set(counts) == {JobState.CANCELLED}:
                self.wait()
        return self.status().state is JobState.CANCELLED

    def __repr__(self) -> str:
        span = "" if self._place is None else f"[{self._place.text}]"
        return f"{super().__repr__()[:-1].replace('<Job ', '<JobArray ')}{span and ' ' + span}>"

    def __bool__(self) -> bool:
        return True

    def _repr_html_(self) -> str:
        """One small table; asks the target.  Never raises."""
        try:
            return html_table(self.status())
        except (errors.OSDError, errors.JobError, ValueError) as error:
            return f"<table><tr><th>array</th><td>{html.escape(str(error))}</td></tr></table>"


def _outcome(job: Job, return_exceptions: bool) -> Any:
    """The result of a member that has ended, or the exception that says how it ended."""
    error = job.exception() if return_exceptions else None
    return job.result() if error is None else error


def html_table(status: JobStatus) -> str:
    """An array for notebooks: its state, a bar of what has ended, how many are in which state."""
    members = sum(status.counts.values())
    ended = sum(count for state, count in status.counts.items() if state.terminal)
    counts = ", ".join(f"{count} {state.name}" for state, count in status.counts.items())
    bar = f'<progress value="{ended}" max="{members}">{ended} of {members}</progress>'
    return (
        f"<table><tr><th>array</th><td>{status.id} {html.escape(status.name)}</td></tr>"
        f"<tr><th>state</th><td><b>{status.state.name}</b></td></tr>"
        f"<tr><th>ended</th><td>{bar} {ended} of {members}</td></tr>"
        f"<tr><th>members</th><td>{counts}</td></tr></table>"
    )


def submit_prepared(commands: Commands, prepared: Prepared) -> Job:
    """Send EXEC for one job, or for an array of jobs where the options name indices."""
    if prepared.params.array is None:
        return submission.submit_prepared(commands, prepared)
    return submit_array(commands, prepared)


def submit_array(commands: Commands, prepared: Prepared) -> JobArray:
    """Send EXEC for an array of jobs.  Raises: ValueError: the options name no indices."""
    params = prepared.params
    if params.array is None:
        raise ValueError("an array of jobs needs array=range(...), other indices, or text")
    reply = send(commands, prepared)
    if reply.job is None:
        raise errors.ProtocolError("the target accepted an array without naming it")
    job = JobArray(commands, reply.job, params.name, place_of(reply.job, params))
    job.take_reply(reply)
    return job


@takes_options(prepare)
def submit(commands: Commands, prepared: Prepared) -> JobArray:
    """Run code once for each index, as jobs that are accepted together or not at all.

    The options of a job hold for each member.

    Raises: as pyosd.jobs.submit().  ValueError: array is missing, or has no such indices.
    """
    return submit_array(commands, prepared)


def known(commands: Commands, status: JobStatus) -> Job:
    """A job or an array of which the status is known."""
    if status.array is not None and status.array.members:
        return JobArray(commands, status.id, status.name, status.array)
    return Job(commands, status.id, status.name)
