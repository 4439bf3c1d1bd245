# SPDX-License-Identifier: GPL-2.0-or-later
"""Dialogues that ask for many jobs of one target at once.

An array answers for its members in one command, a jobs collection for those of a partition where that
is less than one command for each.
"""

from __future__ import annotations

import weakref
from collections import deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice
from typing import Any, TypeVar

from pyosd import errors, requests
from pyosd.commands.attributes import get_attributes
from pyosd.commands.dialogue import Dialogue, Stream, StreamItem, collected, finish, start
from pyosd.jobs.dialogues.followed import Followed, expired
from pyosd.jobs.dialogues.following import RESULT, take_end
from pyosd.types import JOBS_COLLECTION, AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.job_status import POLL_IDS, STATES_ID, STATUS_IDS, Number, decode_state
from pyosd.wire.reply import Reply

_COLLECTION_WORTH = 4  # so many jobs of a partition are asked for in one command ...
_COLLECTION_RATIO = 16  # ... unless the collection has so many times more members
_TOGETHER = 64  # commands that are under way together
_TERMINAL = 0x10  # in states that are an end
_END_IDS = (*STATUS_IDS, AttributeId(Page.JOB_PAYLOAD, RESULT))

PolledValues = tuple[AttributeValue, ...]
AnyJob = TypeVar("AnyJob", bound=Followed)

# How many members jobs collections had when last asked, by target and partition.
_members_seen: weakref.WeakKeyDictionary[Any, dict[int, int]] = weakref.WeakKeyDictionary()


def poll_round(jobs: Sequence[Followed]) -> Dialogue[float]:
    """Ask for jobs of one target; those that have ended settle, those without a record are lost.

    Returns: seconds until asking again is worth while, the least any of them suggests.
    """
    alone, arrays = _split(jobs)
    suggestions, ended = list[float](), list[Followed]()
    for members in arrays.values():
        gone = yield from _ended_members(members)
        ended += gone
        if len(gone) < len(members):
            suggestions.append(0.0)
    for job, found in (yield from ask(alone, POLL_IDS)):
        state = decode_state(found)
        if state is None:
            job.lose(expired(job.id, job))
        elif state.terminal:
            ended.append(job)
        else:
            job.see(state)
            intervals = (each.uint for each in found if each.number == Number.POLL_INTERVAL)
            suggestions.append(next(intervals, 0) / 1000)
    yield from collected(settled(ended))
    return min(suggestions, default=0.0)


def ask(
    jobs: Iterable[AnyJob], wanted: tuple[AttributeId, ...]
) -> Dialogue[list[tuple[AnyJob, PolledValues]]]:
    """The same attributes of many jobs of one target.

    Returns: each job once, in no order; no attributes: it has no record (any more).
    """
    groups: dict[int, list[AnyJob]] = {}
    of_arrays = list[AnyJob]()
    for job in jobs:
        if job.member_of is None:
            groups.setdefault(job.id.partition_id, []).append(job)
        else:  # no jobs collection has it
            of_arrays.append(job)
    answers = list[tuple[AnyJob, PolledValues]]()
    for partition_id, group in groups.items():
        members = _members_seen.get(group[0].commands, {}).get(partition_id, 0)
        if collection_pays(len(group), members):
            answers += yield from _ask_collection(group, wanted)
        else:
            of_arrays += group
    answers += yield from collected(ask_each(iter(of_arrays), wanted))
    return answers


def collection_pays(jobs: int, members: int) -> bool:
    """Whether asking all members of a jobs collection is less than asking for each job."""
    return jobs >= _COLLECTION_WORTH and members <= _COLLECTION_RATIO * jobs


def _ask_collection(
    jobs: Sequence[AnyJob], wanted: tuple[AttributeId, ...]
) -> Dialogue[list[tuple[AnyJob, PolledValues]]]:
    """One command for all; jobs that it does not have are asked for one by one."""
    from pyosd.commands.collections import get_member_attributes

    commands, partition_id = jobs[0].commands, jobs[0].id.partition_id
    try:
        members = yield from get_member_attributes(ref(partition_id, JOBS_COLLECTION), wanted)
    except errors.NotFound:
        members = ()
    _members_seen.setdefault(commands, {})[partition_id] = len(members)
    found = {each.object_id: each.attributes for each in members}
    here = [(job, found[job.id.object_id]) for job in jobs if job.id.object_id in found]
    others = (job for job in jobs if job.id.object_id not in found)
    return here + (yield from collected(ask_each(others, wanted)))


def ask_each(
    jobs: Iterator[AnyJob], wanted: tuple[AttributeId, ...], together: int = _TOGETHER
) -> Stream[tuple[AnyJob, PolledValues]]:
    """Attributes of jobs in order, a command for each, some under way together; () of a job that
    is gone.
    """
    lists = AttributeLists(wanted)
    under_way: deque[tuple[AnyJob, Any]] = deque()
    while True:
        for job in islice(jobs, together - len(under_way)):
            started = yield from start(requests.get_attributes(job.id, attributes=lists))
            under_way.append((job, started))
        if not under_way:
            return
        job, started = under_way.popleft()
        reply = yield from finish(started)
        if reply.error and not isinstance(reply.error, errors.NotFound):
            raise reply.error
        yield StreamItem((job, (yield from _values(job, reply, wanted))))


def _values(job: AnyJob, reply: Reply, wanted: tuple[AttributeId, ...]) -> Dialogue[PolledValues]:
    """The attributes in an answer; () of a job that is gone.

    A result can be longer than the room for it: then the attributes are asked for again.
    """
    if reply.error:
        return ()
    if reply.retrieved.complete:
        return reply.attributes
    try:
        return (yield from get_attributes(job.id, wanted))
    except errors.NotFound:
        return ()


def settled(jobs: Iterable[AnyJob], together: int = _TOGETHER) -> Stream[AnyJob]:
    """Jobs that have ended, with how; a few commands under way at a time, and none for settled jobs."""
    left = iter(jobs)
    while some := list(islice(left, together)):
        unknown = list[AnyJob]()
        for job in some:
            if job.settled:
                yield StreamItem(job)
            else:
                unknown.append(job)
        for job, found in (yield from collected(ask_each(iter(unknown), _END_IDS, together))):
            if not job.settled:  # another thread can have settled it meanwhile
                yield from take_end(job, found)
            yield StreamItem(job)


def _split(
    jobs: Iterable[Followed],
) -> tuple[list[Followed], dict[ObjectRef, list[Followed]]]:
    """Those that are members of no array, and those of each one."""
    alone, arrays = list[Followed](), dict[ObjectRef, list[Followed]]()
    for job in jobs:
        if job.member_of is None:
            alone.append(job)
        else:
            arrays.setdefault(job.member_of, []).append(job)
    return alone, arrays


def _ended_members(members: list[Followed]) -> Dialogue[list[Followed]]:
    """Those of one array that have ended, or are gone: the array says it in one command."""
    array = members[0].member_of
    assert array is not None
    try:
        states = (yield from get_attributes(array, [STATES_ID]))[0].value
    except errors.NotFound:
        states = b""
    ended = []
    for job in members:
        at = job.id.object_id - array.object_id - 1
        if at >= len(states) or states[at] & _TERMINAL:
            ended.append(job)
    return ended
