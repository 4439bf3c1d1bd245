# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs jobs again that have ended: whole, or of an array the members that did not complete."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeVar, Unpack

from pyosd.commands.attributes import get_attributes
from pyosd.commands.dialogue import Dialogue
from pyosd.jobs.dialogues.followed import Followed, expired
from pyosd.jobs.dialogues.following import recorded
from pyosd.jobs.dialogues.following import status as status_of
from pyosd.jobs.source import Code
from pyosd.jobs.submission import Kinds, Prepared, Submission, prepare, submit
from pyosd.types import ref
from pyosd.wire.exec_params import ArgsEncoding, ExecFlag
from pyosd.wire.job_status import (
    STATES_ID,
    STATUS_IDS,
    ArrayPlace,
    JobFlag,
    JobState,
    JobStatus,
    decode_status,
    is_apart,
)

__all__ = ["keeps_code", "retry"]


J = TypeVar("J", bound=Followed)
A = TypeVar("A", bound=Followed)


def retry(
    kinds: Kinds[J, A],
    commands: object,
    old: Followed,
    *,
    code: Code | None = None,
    failed: bool = False,
    **how: Unpack[Submission],
) -> Dialogue[J | A]:
    """Run a job again that has ended, as a new job that names the old one as its predecessor.

    Zone, name, tags, pool, limits and idempotence are those of the old job, unless how has others.  So are
    code and arguments, which the target keeps of a job that did not complete.  Its rights are not known:
    they are how["rights"], as for a new job.  A member of an array is run as an array of its index.

    Args:
        code: the code to run instead; needed if the target no longer has the old one.  The job then has
            the arguments and the objects of over that how gives, and without any of them, those of the
            old job if the target still has them.
        failed: run only the members of an array that did not complete.

    Raises: JobExpired; ValueError: the job has not ended, nothing of it failed, or its code is not kept.
    """
    if not isinstance(old, Followed):
        raise TypeError(f"a job to retry is a Job, as target.job(id) returns, not {old!r}")
    status = yield from status_of(old)
    if not status.done or status.zone is None:
        raise ValueError(f"{old.label} is {status.state.name}: wait for its end first")
    if failed and status.state is JobState.COMPLETED:
        raise ValueError(f"{old.label} is COMPLETED: nothing of it failed")
    gives_none = how.get("args") is None and how.get("kwargs") is None and how.get("over") is None
    takes = (code is None or gives_none) and (yield from keeps_code(old, status))
    if code is None and not takes:
        raise ValueError(
            f"the target no longer has the code of {old.label}: it keeps the code of jobs that did not "
            "complete, up to 2 MiB with the arguments"
        )
    again: Submission = {
        "name": status.name,
        "tags": dict(status.tags),
        "pool": status.pool,
        "limits": status.limits.stated(),
        "idempotent": bool(status.flags & JobFlag.IDEMPOTENT),
        "predecessor": old.id,
    }
    if not is_apart(old.id):
        again["surrogate"] = ref(old.id.partition_id)
    if status.array is not None:
        again["array"] = yield from _indices(old, status.array, failed)
        again["at_once"] = status.array.at_once
    again.update(how)
    prepared = prepare(code, zone=status.zone, **again)
    if code is not None and takes:
        prepared = _with_old_arguments(prepared)
    return (yield from submit(kinds, commands, prepared))


def _with_old_arguments(prepared: Prepared) -> Prepared:
    params = prepared.params
    flags = params.flags | ExecFlag.PREDECESSOR_ARGS
    # A function always has some of its own.
    params = replace(params, args=b"", args_encoding=ArgsEncoding.NONE, flags=flags)
    return prepared._replace(params=params)


def _indices(old: Followed, place: ArrayPlace, failed: bool) -> Dialogue[Sequence[int]]:
    """The indices to run again: of a member its own, of an array all, or those that failed."""
    if not place.members:
        return [place.index]
    if not failed:
        return place.indices
    found = yield from recorded(old, get_attributes(old.id, [STATES_ID]))
    states = [JobState(each) for each in found[0].value] if found else []
    if len(states) != place.members:
        raise expired(old.id, old)
    ended = zip(place.indices, states, strict=True)
    return [index for index, state in ended if state is not JobState.COMPLETED]


def keeps_code(job: Followed, status: JobStatus) -> Dialogue[bool]:
    """Whether the target still has code and arguments of a job; a member has those of its array."""
    if status.array is not None and not status.array.members:
        array = status.array.array
        asking = recorded(job, get_attributes(array, STATUS_IDS))
        found = decode_status(array, (yield from asking))
        if found is None:
            raise expired(array)
        if not found.done:
            return True
        status = found
    return bool(status.flags & JobFlag.CODE_KEPT)
