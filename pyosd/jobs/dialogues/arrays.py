# SPDX-License-Identifier: GPL-2.0-or-later
"""Dialogues of an array of jobs.  The text of each is that of the method of JobArray and AsyncJobArray."""

from __future__ import annotations

import time
from collections.abc import Iterable
from typing import Any

from pyosd import errors
from pyosd.commands.attributes import get_attributes
from pyosd.commands.dialogue import (
    Dialogue,
    OwnMethod,
    OwnStreamMethod,
    Stream,
    collected,
    sleep,
    transformed,
)
from pyosd.jobs.dialogues.followed import Backoff, FollowedArray, expired
from pyosd.jobs.dialogues.following import CANCEL, control, status, wait
from pyosd.jobs.dialogues.rounds import ask_each, settled
from pyosd.wire.job_status import STATES_ID, STATUS_IDS, JobState, JobStatus, decode_status

# Pauses between two polls of all members: a share of the time that has passed.
_PATIENCE, _PAUSE_LEAST, _PAUSE_MOST = 32, 0.002, 0.25
_FETCH_DEPTH = 32  # commands under way together that fetch ends of members
_WAITING = (JobState.QUEUED, JobState.HELD)


def states(array: FollowedArray) -> Dialogue[list[JobState]]:
    """The states of all members in order, in one command.  Raises: JobExpired."""
    try:
        found = yield from get_attributes(array.id, [STATES_ID])
    except errors.NotFound:
        raise expired(array.id, array) from None
    every = [JobState(each) for each in found[0].value] if found else []
    if len(every) != array.place.members:
        raise expired(array.id, array)
    return every


def progress(array: FollowedArray) -> Dialogue[float]:
    """The share of members that have ended."""
    counts = (yield from status(array)).counts
    ended = sum(count for state, count in counts.items() if state.terminal)
    return ended / array.place.members


def as_completed(array: FollowedArray, timeout: float | None = None) -> Stream[Any]:
    """Yield members as they end, each settled: its result() needs no more commands.

    Args:
        timeout: seconds from now; None: no limit.

    Raises: TimeoutError: some have not ended; JobExpired.
    """
    deadline = None if timeout is None else time.monotonic() + timeout
    place = array.place
    left, began = set(place.indices), time.monotonic()
    while left:
        now = yield from states(array)
        ended = [index for index in sorted(left) if now[place.position(index)].terminal]
        left.difference_update(ended)
        yield from settled(map(array.member, ended), _FETCH_DEPTH)
        if left:
            pause = (time.monotonic() - began) / _PATIENCE
            pause = min(max(pause, _PAUSE_LEAST), _PAUSE_MOST)
            yield from sleep(pause, deadline, f"{len(left)} members of {array.id}")


def statuses(array: FollowedArray) -> Stream[JobStatus]:
    """The statuses of the members, in order; removed members are left out."""
    members = map(array.member, array.place.indices)

    def known(answer: tuple[Any, Any]) -> list[JobStatus]:
        job, found = answer
        said = decode_status(job.id, found)
        return [] if said is None else [said]

    yield from transformed(ask_each(members, STATUS_IDS, _FETCH_DEPTH), known)


def results(
    array: FollowedArray, timeout: float | None = None, *, return_exceptions: bool = False
) -> Stream[Any]:
    """Yield the members' results in order of index, each as soon as it and all before it are there.

    Args:
        timeout: seconds from now; None: no limit.
        return_exceptions: yield the exception of a member that did not complete in place of its
            result, instead of raising it.

    Raises: as Job.result(), at the first member that did not complete; the others continue.
    """
    early: dict[int, Any] = {}
    order = iter(array.place.indices)
    following = next(order, None)
    members = {array.member(index).id: index for index in array.place.indices}

    def in_order(job: Any) -> Iterable[Any]:
        nonlocal following
        early[members[job.id]] = job
        while following is not None and following in early:
            yield outcome(early.pop(following), return_exceptions)
            following = next(order, None)

    yield from transformed(as_completed(array, timeout), in_order)


def result(array: FollowedArray, timeout: float | None = None) -> Dialogue[list[Any]]:
    """Wait for all members and return their results.

    Raises: TimeoutError: some have not ended; ScriptError and others: the error of the first member
        that failed.
    """
    yield from wait(array, timeout)
    members = [array.member(index) for index in array.place.indices]
    yield from collected(settled(members, _FETCH_DEPTH))
    return [outcome(job, False) for job in members]


def outcome(job: Any, return_exceptions: bool) -> Any:
    """The result of a member that has ended, or the exception that says how it ended."""
    value, error = job.settled_outcome()
    if error is None:
        return value
    if return_exceptions:
        return error
    raise error


def stop(array: FollowedArray) -> Dialogue[None]:
    """Cancel the members that have not started, and do not wait for them."""
    if array.final is None:
        yield from control(array, CANCEL)


def cancel(array: FollowedArray) -> Dialogue[bool]:
    """End the members that have not started.

    Returns: whether the whole array is CANCELLED now: none runs, completed or failed.
    """
    yield from stop(array)
    if array.final is None:
        backoff = Backoff()
        counts = (yield from status(array)).counts
        while any(counts.get(state) for state in _WAITING):
            yield from sleep(backoff.next(), None, array)
            counts = (yield from status(array)).counts
        if set(counts) == {JobState.CANCELLED}:
            yield from wait(array)
    return (yield from status(array)).state is JobState.CANCELLED


class ArrayTable:
    """The methods that JobArray and AsyncJobArray share, beside those of jobs."""

    states = OwnMethod(states)
    progress = OwnMethod(progress)
    as_completed = OwnStreamMethod(as_completed)
    statuses = OwnStreamMethod(statuses)
    results = OwnStreamMethod(results)
    stop = OwnMethod(stop)
