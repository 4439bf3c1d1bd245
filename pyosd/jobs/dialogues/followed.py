# SPDX-License-Identifier: GPL-2.0-or-later
"""A job as its dialogues know it, and how often it is asked for; what its end means.

Not here: asking (following.py, rounds.py).
"""

from __future__ import annotations

import random
from collections.abc import Mapping
from typing import Any

from pyosd import errors
from pyosd.jobs.advice import advice
from pyosd.types import ObjectRef
from pyosd.wire.job_status import ArrayPlace, JobFlag, JobState, JobStatus

FOLLOW_MOST = 0.075
"""Seconds between looks at the output of a running job: a line is there 100 ms after its print()."""
_POLL_FIRST, POLL_MOST, _POLL_GROWTH, _POLL_JITTER = 0.002, 1.0, 1.2, 0.2


class Backoff:
    """Time between polls: 2 ms, growing by a fifth up to 1 s, +-20 %, never below what the target
    says.

    most: seconds, the longest wait whatever the target says (FOLLOW_MOST).
    """

    def __init__(self, most: float = POLL_MOST) -> None:
        self._delay = _POLL_FIRST
        self._most = most

    def next(self, suggested: float = 0.0) -> float:
        """Seconds to wait now."""
        delay = min(max(self._delay, suggested), self._most)
        self._delay = min(self._delay * _POLL_GROWTH, POLL_MOST)
        return delay * random.uniform(1 - _POLL_JITTER, 1 + _POLL_JITTER)


class Followed:
    """A job: its id, and what is known of it here."""

    commands: Any
    """The carrier of its dialogues: Commands, or AsyncCommands."""

    def __init__(self, commands: Any, job: ObjectRef, name: str = "") -> None:
        if not isinstance(job, ObjectRef):
            raise TypeError(f"a job's id is an ObjectRef, as ObjectRef.parse makes, not {job!r}")
        self.commands = commands
        self.id = job
        self.name = name
        self.label = str(job)  # for people; of a member of an array ARRAY[INDEX]
        self.member_of: ObjectRef | None = None  # the array, where that is known
        self.cached_result = False
        """Whether a submission with reuse was answered with this earlier job.

        Of a member of an array, once it has ended: whether an earlier member answered it.
        """
        self._final: JobStatus | None = None
        self._seen: JobState | None = None

    def __reduce__(self) -> tuple[object, ...]:
        raise TypeError("a job cannot be pickled or copied: target.job(id) makes another of its id")

    @property
    def final(self) -> JobStatus | None:
        """The status after the end, if that is known here."""
        return self._final

    def see(self, state: JobState) -> None:
        """Remember the state seen last, for repr()."""
        self._seen = state

    @property
    def settled(self) -> bool:
        """Whether its end is known here; then result() asks nothing."""
        raise NotImplementedError

    def end(self, status: JobStatus, value: Any, error: errors.JobError | None) -> None:
        """The job has ended: keep how, once."""
        raise NotImplementedError

    def lose(self, error: BaseException) -> None:
        """Give an error to all that wait, because the end of the job cannot be found out."""
        raise NotImplementedError

    def settled_outcome(self) -> tuple[Any, BaseException | None]:
        """The result, and the exception in its place.  Call it only if settled."""
        raise NotImplementedError

    def wait_for_end(self, timeout: float | None) -> Any:
        """Wait until it has ended, as the face does."""
        raise NotImplementedError

    def describe(self, kind: str) -> str:
        """For repr()."""
        seen = self._final.state if self._final else self._seen
        state = "not asked for yet" if seen is None else seen.name
        name = f" {self.name!r}" if self.name else ""
        return f"<{kind} {self.id}{name} {state}>"


class FollowedArray(Followed):
    """An array of jobs."""

    @property
    def place(self) -> ArrayPlace:
        """Indices, members, most running at once."""
        raise NotImplementedError

    def member(self, index: int) -> Any:
        """The member with that index; nothing is sent.  Raises: IndexError."""
        raise NotImplementedError


_ERRORS: Mapping[JobState, type[errors.JobError]] = {
    JobState.CANCELLED: errors.JobCancelled,
    JobState.TIMEOUT: errors.JobTimeout,
    JobState.OUT_OF_MEMORY: errors.JobOutOfMemory,
    JobState.LIMIT_EXCEEDED: errors.LimitExceeded,
    JobState.SANDBOX_LOST: errors.SandboxLost,
}


def error_kind(state: JobState) -> type[errors.JobError]:
    """The exception for a job that ended in this state, and not by its script."""
    return _ERRORS.get(state, errors.JobError)


def decode_result(status: JobStatus, data: bytes) -> Any:
    """The argument of osd.result(): bytes, the value of its JSON, or None without a result.

    A script may mark anything as JSON.  A result that is none, or is nested too deep, is returned as bytes.
    """
    if not status.result_length:
        return None
    if not status.flags & JobFlag.RESULT_JSON:
        return data
    from pyosd.osd._results import decode  # with the library of scripts, which takes 10 ms

    try:
        return decode(data)
    except (ValueError, RecursionError):
        return data


def expired(job: ObjectRef, followed: Followed | None = None) -> errors.JobExpired:
    """There is no job of that id."""
    hint = "osd ps lists the jobs there are; a record that was removed or expired is gone for good"
    text = f"{job} is no job, or its record is gone"
    return errors.JobExpired(followed, 0, hint, text)


def job_error(job: Followed | None, status: JobStatus, traceback: str) -> errors.JobError:
    """The exception for a job that did not end COMPLETED."""
    label = status.reason_label or f"reason {status.reason}"
    text = f"job {status.id} ended {status.state.name}: {label}"
    by_itself = status.state is JobState.FAILED and status.reason // 100 == 2
    if status.message and (by_itself or status.started is None):
        text += f": {status.message}"  # the exception, or the target's words
    hint = advice(status.message) or status.hint
    if hint:
        text += f" ({hint})"
    if by_itself:
        return errors.ScriptError(
            job,
            status.reason,
            hint,
            text,
            remote_traceback=traceback,
            exit_code=status.exit_code,
        )
    kind = error_kind(status.state)
    return kind(job, status.reason, hint, text)
