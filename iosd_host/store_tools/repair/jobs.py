# SPDX-License-Identifier: GPL-2.0-or-later
"""Repairs the records of jobs and the marks of their objects."""

from __future__ import annotations

from dataclasses import replace

from iosd_host.store_tools.check.jobs import (
    arrays_under_way,
    job_record,
    payload_bytes,
    surrogate_of,
)
from iosd_host.store_tools.check.problems import Problem
from iosd_host.store_tools.format.jobs import JobId
from iosd_host.store_tools.format.records import JOB_IDS, Place, RecordFlag, RecordType
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.repair.context import RepairContext

__all__ = ["job_charge", "job_companion", "job_expiry", "job_key", "surrogate_mark"]


def job_expiry(context: RepairContext, problem: Problem) -> str | None:
    """Entered where expired jobs are looked for."""
    context.put(Table.JOBS, problem.key, b"\0")
    return "entered"


def job_charge(context: RepairContext, problem: Problem) -> str | None:
    """Counted again, from what is there."""
    job: JobId = problem.subject
    record = job_record(context.store, job)
    if record is None:
        return None
    right = record.charge(payload_bytes(context.store, job))
    context.put(Table.JOBS, problem.key, replace(record, charged=right).encode())
    return f"set to {right}"


def job_companion(context: RepairContext, problem: Problem) -> str | None:
    """Entered, so that only those read the result who may."""
    job: JobId = problem.subject
    context.put(Table.JOBS, problem.key, job.object_id.to_bytes(8, "big"))
    return "entered"


def job_key(context: RepairContext, problem: Problem) -> str | None:
    """Entered, so that the same submission finds the job."""
    job: JobId = problem.subject
    context.put(Table.JOB_KEYS, problem.key, job.encode())
    return "entered"


def surrogate_mark(context: RepairContext, problem: Problem) -> str | None:
    """As the job's record says."""
    place: Place = problem.subject
    store = context.store
    record = store.intact(place, RecordType.USER_OBJECT)
    if record is None:
        value = store.intact(place, RecordType.COLLECTION)
        if value is None:
            return None
        record = value
    name = JobId(place.partition_id, place.object_id)
    job = job_record(store, name)
    if job is None:
        unfinished = any(array.has_member(name) for array in arrays_under_way(store))
    else:
        unfinished = not job.has_ended and surrogate_of(store, job.id) == place
    flags = record.flags & ~RecordFlag.UNFINISHED
    if unfinished:
        flags |= RecordFlag.UNFINISHED
        if place.object_id in JOB_IDS:
            flags |= RecordFlag.SURROGATE
    if flags == record.flags:
        return None
    changed = replace(record, flags=flags)
    context.put(Table.OBJECTS, place.encode(), changed.encode())
    return "mark made" if unfinished else "mark removed"
