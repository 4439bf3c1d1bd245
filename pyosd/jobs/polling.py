# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking for jobs until they have ended: how often, many at once, and the thread that does it.

Not here: what one job says (job.py).
"""

from __future__ import annotations

import contextlib
import random
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol, TypeVar

from pyosd import errors, requests
from pyosd.commands import Commands
from pyosd.types import JOBS_COLLECTION, AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.job_status import (
    POLL_IDS,
    STATES_ID,
    STATUS_IDS,
    JobState,
    JobStatus,
    decode_status,
)

FOLLOW_MOST = 0.075
"""Seconds between looks at the output of a running job: a line is there 100 ms after its print()."""
_POLL_FIRST, _POLL_MOST, _POLL_GROWTH, _POLL_JITTER = 0.002, 1.0, 1.2, 0.2
_COLLECTION_WORTH = 4  # so many jobs of a partition are asked for in one command ...
_TOGETHER = 64  # commands about members of arrays that are under way together
_TERMINAL = 0x10  # in states that are an end
_COLLECTION_RATIO = 16  # ... unless the collection has so many times more members


class Followed(Protocol):
    """The part of a job that polling needs (job.py)."""

    commands: Commands
    id: ObjectRef
    member_of: ObjectRef | None

    @property
    def settled(self) -> bool:
        """Whether its end is known here."""
        ...

    def poll(self) -> tuple[JobState, float]:
        """State and suggested seconds to the next poll."""
        ...

    def take_poll(self, found: Iterable[AttributeValue]) -> tuple[JobState, float]:
        """The result of poll(), made from attributes that another command retrieved."""
        ...

    def lose(self, error: BaseException) -> None:
        """Its end cannot be known: its waiters get the error."""
        ...


AnyJob = TypeVar("AnyJob", bound=Followed)


class Backoff:
    """Time between polls: 2 ms, growing by a fifth up to 1 s, +-20 %, never below what the target
    says.

    most: seconds, of who may not wait longer whatever the target says (FOLLOW_MOST).
    """

    def __init__(self, most: float = _POLL_MOST) -> None:
        self._delay = _POLL_FIRST
        self._most = most

    def next(self, suggested: float = 0.0) -> float:
        """Seconds to wait now."""
        delay = min(max(self._delay, suggested), self._most)
        self._delay = min(self._delay * _POLL_GROWTH, _POLL_MOST)
        return delay * random.uniform(1 - _POLL_JITTER, 1 + _POLL_JITTER)


def sleep(seconds: float, deadline: float | None, what: object) -> None:
    """Sleep, but not past the deadline.  Raises: TimeoutError: the deadline has come."""
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"not ended in time: {what}")
        seconds = min(seconds, left)
    time.sleep(seconds)


def poll_jobs(jobs: Iterable[Followed]) -> float:
    """Ask for many jobs at once, by their partitions' jobs collections; ended ones settle.

    Returns: seconds until asking again is worth while, the least any of them suggests.
    """
    suggestions = []
    asked, arrays = _split(jobs)
    for members in arrays.values():
        ended = list(_ended_members(members))
        asked += ended
        if len(ended) < len(members):
            suggestions.append(0.0)
    for job, attributes in ask_jobs(asked, POLL_IDS):
        try:
            state, suggested = job.take_poll(attributes)
        except errors.JobExpired as error:
            job.lose(error)
            continue
        if not state.terminal:
            suggestions.append(suggested)
    return min(suggestions, default=0.0)


def ask_jobs(
    jobs: Iterable[AnyJob], wanted: tuple[AttributeId, ...]
) -> Iterator[tuple[AnyJob, tuple[AttributeValue, ...]]]:
    """The same attributes of many jobs, with one command for those of one partition where that pays.

    Yields: each job once, in no order; no attributes: it has no record (any more).
    """
    groups: dict[tuple[int, int], list[AnyJob]] = {}
    members_of_arrays = []
    for job in jobs:
        if job.member_of is not None:  # no jobs collection tells of it
            members_of_arrays.append(job)
            continue
        groups.setdefault((id(job.commands), job.id.partition_id), []).append(job)
    for group in groups.values():
        members = _members_seen.get(group[0].commands, {}).get(group[0].id.partition_id, 0)
        ask = _ask_collection if collection_pays(len(group), members) else _ask_each
        yield from zip(group, ask(group, wanted), strict=True)
    for at in range(0, len(members_of_arrays), _TOGETHER):
        some = members_of_arrays[at : at + _TOGETHER]
        yield from zip(some, _ask_each(some, wanted), strict=True)


def _split(
    jobs: Iterable[AnyJob],
) -> tuple[list[AnyJob], dict[tuple[int, ObjectRef], list[AnyJob]]]:
    """Those that are members of no array, and those of each one."""
    alone: list[AnyJob] = []
    arrays: dict[tuple[int, ObjectRef], list[AnyJob]] = {}
    for job in jobs:
        if job.member_of is None:
            alone.append(job)
        else:
            arrays.setdefault((id(job.commands), job.member_of), []).append(job)
    return alone, arrays


def _ended_members(members: list[AnyJob]) -> Iterator[AnyJob]:
    """Those of one array that have ended, or are gone: the array says it in one command."""
    array = members[0].member_of
    assert array is not None
    try:
        states = members[0].commands.get_attributes(array, [STATES_ID])[0].value
    except errors.NotFound:
        states = b""
    for job in members:
        at = job.id.object_id - array.object_id - 1
        if at >= len(states) or states[at] & _TERMINAL:
            yield job


def job_statuses(
    jobs: Iterable[AnyJob], wanted: tuple[AttributeId, ...] = STATUS_IDS
) -> dict[AnyJob, JobStatus | None]:
    """The present status of many jobs, requested like poll_jobs(); None: no record (any more)."""
    return {job: decode_status(job.id, found) for job, found in ask_jobs(jobs, wanted)}


def collection_pays(jobs: int, members: int) -> bool:
    """Whether asking all members of a jobs collection is less than asking for each job."""
    return jobs >= _COLLECTION_WORTH and members <= _COLLECTION_RATIO * jobs


def _ask_collection(
    jobs: Sequence[Followed], wanted: tuple[AttributeId, ...]
) -> list[tuple[AttributeValue, ...]]:
    """One command for all; jobs it does not tell of are asked for one by one."""
    commands, partition_id = jobs[0].commands, jobs[0].id.partition_id
    try:
        members = commands.get_member_attributes(ref(partition_id, JOBS_COLLECTION), wanted)
    except errors.NotFound:
        members = ()
    _members_seen.setdefault(commands, {})[partition_id] = len(members)
    found: dict[int, tuple[AttributeValue, ...]] = {
        each.object_id: each.attributes for each in members
    }
    others = [job for job in jobs if job.id.object_id not in found]
    for job, attributes in zip(others, _ask_each(others, wanted), strict=True):
        found[job.id.object_id] = attributes
    return [found[job.id.object_id] for job in jobs]


def _ask_each(
    jobs: Sequence[Followed], wanted: tuple[AttributeId, ...]
) -> list[tuple[AttributeValue, ...]]:
    """One command for each, all under way together; () for a job that is gone."""
    lists = AttributeLists(wanted)
    requests_sent = [
        job.commands.submit(requests.get_attributes(job.id, attributes=lists)) for job in jobs
    ]
    replies = [each.reply() for each in requests_sent]
    for reply in replies:
        if reply.error and not isinstance(reply.error, errors.NotFound):
            raise reply.error
    return [reply.attributes for reply in replies]


def as_completed(jobs: Iterable[AnyJob], timeout: float | None = None) -> Iterator[AnyJob]:
    """Yield jobs as they end.

    Args: timeout: seconds from now, None: for ever.
    Raises: TimeoutError: some go on.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    left, backoff = list(dict.fromkeys(jobs)), Backoff()
    while left:
        suggested = poll_jobs([job for job in left if not job.settled])
        ended = [job for job in left if job.settled]
        left = [job for job in left if not job.settled]
        yield from ended
        if ended:
            backoff = Backoff()
        elif left:
            sleep(backoff.next(suggested), deadline, f"{len(left)} jobs")


def wait(jobs: Iterable[AnyJob], timeout: float | None = None) -> tuple[list[AnyJob], list[AnyJob]]:
    """Wait until all have ended or the time is up.  Returns: those that ended, and the others."""
    jobs = list(dict.fromkeys(jobs))
    with contextlib.suppress(TimeoutError):
        deque(as_completed(jobs, timeout), maxlen=0)
    ended = [job for job in jobs if job.settled]
    return ended, [job for job in jobs if not job.settled]


class _Watcher:
    """The thread that asks for the watched jobs of one target, alive while there are any."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._jobs: list[Followed] = []
        self._running = False

    def add(self, job: Followed) -> None:
        with self._lock:
            if job in self._jobs:
                return
            self._jobs.append(job)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="pyosd-jobs", daemon=True).start()

    def _run(self) -> None:
        backoff = Backoff()
        while True:
            with self._lock:
                self._jobs = [job for job in self._jobs if not job.settled]
                jobs = list(self._jobs)
                if not jobs:
                    self._running = False
                    return
            suggested = _POLL_MOST
            try:
                suggested = poll_jobs(jobs)
            except errors.OSDError:
                _give_up(jobs)
            time.sleep(backoff.next(suggested))


def _give_up(jobs: list[Followed]) -> None:
    """Some job cannot be asked for: whoever waits for it must hear it."""
    for job in jobs:
        try:
            job.poll()
        except (errors.OSDError, errors.JobError) as error:
            job.lose(error)


# How many members jobs collections had when last asked, by target and partition.
_members_seen: weakref.WeakKeyDictionary[Commands, dict[int, int]] = weakref.WeakKeyDictionary()
_watchers: weakref.WeakKeyDictionary[Commands, _Watcher] = weakref.WeakKeyDictionary()
_watchers_lock = threading.Lock()


def watch(job: Followed) -> None:
    """Have a thread ask for the job until it has ended."""
    with _watchers_lock:
        watcher = _watchers.setdefault(job.commands, _Watcher())
    watcher.add(job)
