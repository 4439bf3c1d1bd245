# SPDX-License-Identifier: GPL-2.0-or-later
"""JobArray: one submission, many jobs that differ in osd.array_index, for threads.

A JobArray is a Job (its surrogate stands for all of them) and the sequence of its members.  How all
members stand comes in one command, a byte for each.
Not here: what most methods do (dialogues/arrays.py).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Unpack, overload

from pyosd import errors
from pyosd.commands import Commands
from pyosd.jobs import retrying, submission
from pyosd.jobs.dialogues import arrays
from pyosd.jobs.dialogues.followed import FollowedArray
from pyosd.jobs.job import Job
from pyosd.jobs.source import Code
from pyosd.jobs.submission import Prepared, prepare, takes_options
from pyosd.types import ObjectRef
from pyosd.wire.job_status import ArrayPlace, JobStatus

__all__ = ["JobArray", "known", "submit"]


class JobArray(arrays.ArrayTable, FollowedArray, Job, Sequence[Job]):
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
        """Indices, members, and how many run at once.  The first use asks the target.

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

    # ---- as a Job's methods, about all members --------------------------------------------------

    def result(self, timeout: float | None = None) -> list[Any]:
        """Wait for all members and return their results.

        Raises: TimeoutError: some have not ended; ScriptError and others: the error of the first member
            that failed.
        """
        return self.carry(arrays.result(self, timeout))

    def cancel(self) -> bool:
        """End the members that have not started.

        Returns: whether the whole array is CANCELLED now: none runs, completed or failed.
        """
        return self.carry(arrays.cancel(self))

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
            import html

            return f"<table><tr><th>array</th><td>{html.escape(str(error))}</td></tr></table>"


def html_table(status: JobStatus) -> str:
    """An array for notebooks: its state, a bar of what has ended, how many are in which state."""
    members = sum(status.counts.values())
    ended = sum(count for state, count in status.counts.items() if state.terminal)
    import html

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
    return commands.carry(submission.submit(KINDS, commands, prepared))


def submit_array(commands: Commands, prepared: Prepared) -> JobArray:
    """Send EXEC for an array of jobs.  Raises: ValueError: the options name no indices."""
    return commands.carry(submission.submit_array(KINDS, commands, prepared))


@takes_options(prepare)
def submit_job(commands: Commands, prepared: Prepared) -> Job:
    """Run code near the data (EXEC).

    Returns: the Job, accepted for good.  A job that failed says so in its result().  With array the
        code runs once for each index, and the result is a JobArray.
    Raises: TargetBusy: try again later, or compute here.  Conflict: the key belongs to other
        content.  TypeError, ValueError, OSError: the code cannot be sent.  SessionLost: without a
        key, unknown whether the job was accepted.
    """
    return submit_prepared(commands, prepared)


@takes_options(prepare)
def submit(commands: Commands, prepared: Prepared) -> JobArray:
    """Run code once for each index, as jobs that are accepted together or not at all.

    The options of a job hold for each member.

    Raises: as pyosd.jobs.submit().  ValueError: array is missing, or has no such indices.
    """
    return submit_array(commands, prepared)


KINDS = submission.Kinds(Job, JobArray)
"""The classes of submitted jobs, for threads."""


def known(commands: Commands, status: JobStatus) -> Job:
    """A job or an array of which the status is known."""
    if status.array is not None and status.array.members:
        return JobArray(commands, status.id, status.name, status.array)
    return Job(commands, status.id, status.name)


def retry(
    commands: Commands,
    old: Job,
    *,
    code: Code | None = None,
    failed: bool = False,
    **how: Unpack[submission.Submission],
) -> Job:
    """Run a job that has ended again, as a new job; see pyosd.jobs.retrying.retry."""
    return commands.carry(retrying.retry(KINDS, commands, old, code=code, failed=failed, **how))
