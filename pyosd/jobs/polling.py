# SPDX-License-Identifier: GPL-2.0-or-later
"""Asking for jobs until they have ended, for threads: many at once, and the thread that does it.

Not here: what is asked (dialogues/rounds.py).
"""

from __future__ import annotations

import contextlib
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Iterable, Iterator

from pyosd import errors
from pyosd.commands import Commands
from pyosd.jobs.dialogues.followed import POLL_MOST, Backoff, Followed
from pyosd.jobs.dialogues.following import poll
from pyosd.jobs.dialogues.rounds import AnyJob, ask, poll_round
from pyosd.types import AttributeId, shown
from pyosd.wire.job_status import STATUS_IDS, JobStatus, decode_status

__all__ = ["as_completed", "job_statuses", "poll_jobs", "wait", "watch"]


def _by_target(jobs: Iterable[AnyJob]) -> list[list[AnyJob]]:
    groups: dict[int, list[AnyJob]] = {}
    for job in jobs:
        groups.setdefault(id(job.commands), []).append(job)
    return [*groups.values()]


def poll_jobs(jobs: Iterable[Followed]) -> float:
    """Ask for many jobs at once, with few commands for each target; ended ones settle.

    Returns: seconds until asking again is worth while, the least any of them suggests.
    """
    groups = _by_target(jobs)
    return min((group[0].commands.carry(poll_round(group)) for group in groups), default=0.0)


def job_statuses(
    jobs: Iterable[AnyJob], wanted: tuple[AttributeId, ...] = STATUS_IDS
) -> dict[AnyJob, JobStatus | None]:
    """The present status of many jobs, requested like poll_jobs(); None: no record (any more)."""
    return {
        job: decode_status(job.id, found)
        for group in _by_target(jobs)
        for job, found in group[0].commands.carry(ask(group, wanted))
    }


def distinct(jobs: Iterable[AnyJob]) -> list[AnyJob]:
    """Each job once.  Raises: TypeError: one is no job."""
    found = list(dict.fromkeys(jobs))
    for each in found:
        if not isinstance(each, Followed):
            raise TypeError(f"these are jobs, as target.exec() returns, and not {shown(each)}")
    return found


def as_completed(jobs: Iterable[AnyJob], timeout: float | None = None) -> Iterator[AnyJob]:
    """Yield jobs as they end.

    Args:
        timeout: seconds from now; None: no limit.

    Raises: TimeoutError: some have not ended.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    left, backoff = distinct(jobs), Backoff()
    while left:
        suggested = poll_jobs([job for job in left if not job.settled])
        ended = [job for job in left if job.settled]
        left = [job for job in left if not job.settled]
        yield from ended
        if ended:
            backoff = Backoff()
        elif left:
            _sleep(backoff.next(suggested), deadline, len(left))


def _sleep(seconds: float, deadline: float | None, jobs: int) -> None:
    if deadline is not None:
        left = deadline - time.monotonic()
        if left <= 0:
            raise TimeoutError(f"not ended in time: {jobs} jobs")
        seconds = min(seconds, left)
    time.sleep(seconds)


def wait(jobs: Iterable[AnyJob], timeout: float | None = None) -> tuple[list[AnyJob], list[AnyJob]]:
    """Wait until all have ended, or the time is up.  Returns: jobs that have ended, and the others."""
    jobs = distinct(jobs)
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
            if not self._running:  # a thread may not be to be had: the next job tries again
                threading.Thread(target=self._run, name="pyosd-jobs", daemon=True).start()
                self._running = True
            self._jobs.append(job)

    def _run(self) -> None:
        backoff = Backoff()
        while True:
            with self._lock:
                self._jobs = [job for job in self._jobs if not job.settled]
                jobs = list(self._jobs)
                if not jobs:
                    self._running = False
                    return
            suggested = POLL_MOST
            try:
                suggested = poll_jobs(jobs)
            except Exception as error:
                _give_up(jobs, error)
            time.sleep(backoff.next(suggested))


def _give_up(jobs: list[Followed], error: Exception) -> None:
    """A job cannot be polled: its waiters get the error.  If the target is lost, all jobs are."""
    for job in jobs:
        if not isinstance(error, errors.Unreachable):
            try:
                job.commands.carry(poll(job))
                continue
            except Exception as found:
                error = found
        job.lose(error)


class _Watchers:
    """The watcher of each target."""

    def __init__(self) -> None:
        self.forget()

    def forget(self) -> None:
        """Have none: after a fork() their threads are the parent's, and one may have held the lock."""
        self._lock = threading.Lock()
        self._found: weakref.WeakKeyDictionary[Commands, _Watcher] = weakref.WeakKeyDictionary()

    def of(self, commands: Commands) -> _Watcher:
        """The watcher of a target."""
        with self._lock:
            return self._found.setdefault(commands, _Watcher())


_watchers = _Watchers()
os.register_at_fork(after_in_child=_watchers.forget)


def watch(job: Followed) -> None:
    """Have a thread ask for the job until it has ended."""
    _watchers.of(job.commands).add(job)
