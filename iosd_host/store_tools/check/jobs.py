# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds what is wrong between jobs, their parts and their surrogates."""

from __future__ import annotations

from collections.abc import Iterator

from iosd_host.store_tools.check.problems import Problem, ProblemKind
from iosd_host.store_tools.format.jobs import JobId, JobKey, JobKeyKind, JobPayload, JobRecord
from iosd_host.store_tools.format.records import (
    ALL_OBJECTS,
    FormatError,
    Place,
    RecordFlag,
    RecordType,
)
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Life, Store, StoreProgress

__all__ = [
    "arrays_under_way",
    "check_commands",
    "check_jobs",
    "job_record",
    "payload_bytes",
    "surrogate_of",
]

TELL_EVERY = 1024
COMMAND_KEY_BYTES = Place.BYTES + 1
COMMAND_BYTES = (40, 48)  # of an earlier release, of this one
COMPANION_BYTES = 8


def job_record(store: Store, job: JobId) -> JobRecord | None:
    """A job's record; None: there is none that decodes."""
    value = store.db.get(Table.JOBS, JobKey(JobKeyKind.RECORD, job).encode())
    try:
        record = JobRecord.decode(value) if value is not None else None
    except FormatError:
        return None
    return record if record is not None and record.id == job else None


def arrays_under_way(store: Store) -> list[JobRecord]:
    """Arrays that have not ended.  Their members need have no record until something happens to them."""
    found = []
    for key, _ in store.db.walk(Table.JOBS):
        if key[:1] != bytes((JobKeyKind.RECORD,)):
            continue
        try:
            record = job_record(store, JobKey.decode(key).job)
        except FormatError:
            continue
        if record is not None and record.numbers["array_count"] and not record.has_ended:
            found.append(record)
    return found


def surrogate_of(store: Store, job: JobId) -> Place | None:
    """Address of a job's surrogate; None: there is none."""
    partition = store.partition(job.partition_id)
    if partition is None:
        return None
    place = job.at(partition.incarnation)
    return place if store.intact(place, RecordType.USER_OBJECT) is not None else None


def check_jobs(store: Store, progress: StoreProgress) -> Iterator[Problem]:
    """jobs.db, job_keys.db, and the marks on surrogates."""
    total = store.db.count(Table.JOBS)
    for number, (key, value) in enumerate(store.db.walk(Table.JOBS)):
        if number % TELL_EVERY == 0:
            progress("jobs", number, total)
        try:
            yield from check_record(store, JobKey.decode(key), key, value)
        except FormatError as error:
            where = f"jobs.db {key.hex()}"
            yield Problem(ProblemKind.KEY_DAMAGED, where, str(error), Table.JOBS, key, value)
    yield from check_keys(store)
    yield from check_marks(store, progress)


def check_record(store: Store, parsed: JobKey, key: bytes, value: bytes) -> Iterator[Problem]:
    """One record of jobs.db."""
    where = f"job {parsed.job}"
    if parsed.kind is JobKeyKind.RECORD:
        yield from check_job(store, parsed.job, key, value)
        return
    if parsed.kind is JobKeyKind.COMPANION:
        yield from check_companion(store, parsed.job, key, value)
        return
    record = job_record(store, parsed.job)
    if parsed.kind is JobKeyKind.EXPIRY:
        if record is None or not record.has_ended or record.expiry_ms != parsed.number:
            yield Problem(ProblemKind.JOB_EXPIRY_STALE, where, "", Table.JOBS, key, parsed.job)
    elif record is None or (parsed.kind is JobKeyKind.USED and parsed.number >= record.used_pieces):
        detail = f"{parsed.kind.name.lower()} {parsed.number}"
        yield Problem(ProblemKind.JOB_PART_ORPHAN, where, detail, Table.JOBS, key, value)


def check_companion(store: Store, companion: JobId, key: bytes, value: bytes) -> Iterator[Problem]:
    """The job whose result an object contains."""
    job = JobId(companion.partition_id, int.from_bytes(value, "big"))
    record = job_record(store, job) if len(value) == COMPANION_BYTES else None
    if record is None or record.numbers["result_object"] != companion.object_id:
        yield Problem(ProblemKind.JOB_COMPANION_STALE, f"object {companion}", "", Table.JOBS, key)


def check_job(store: Store, job: JobId, key: bytes, value: bytes) -> Iterator[Problem]:
    """A job's record, and what must be there because of it."""
    where = f"job {job}"
    try:
        record = JobRecord.decode(value)
        if record.id != job:
            raise FormatError(f"the record of job {record.id}")
    except FormatError as error:
        yield Problem(ProblemKind.JOB_DAMAGED, where, str(error), Table.JOBS, key, job)
        return
    place = surrogate_of(store, job)
    if place is None:
        yield Problem(ProblemKind.JOB_WITHOUT_SURROGATE, where, "", Table.JOBS, key, job)
        return
    surrogate = store.intact(place, RecordType.USER_OBJECT)
    assert surrogate is not None
    if not record.has_ended and not surrogate.flags & RecordFlag.UNFINISHED:
        yield Problem(
            ProblemKind.SURROGATE_UNMARKED, where, "", Table.OBJECTS, place.encode(), place
        )
    if record.charged not in (None, right := record.charge(payload_bytes(store, job))):
        detail = f"the record says {record.charged}, it is {right}"
        yield Problem(ProblemKind.JOB_CHARGE, where, detail, Table.JOBS, key, job)
    companion = JobId(job.partition_id, record.numbers["result_object"])
    if companion.object_id and record.charged is not None and surrogate_of(store, companion):
        entry = JobKey(JobKeyKind.COMPANION, companion).encode()
        if store.db.get(Table.JOBS, entry) is None:
            kind = ProblemKind.JOB_COMPANION_MISSING
            yield Problem(kind, where, f"object {companion}", Table.JOBS, entry, job)
    if record.has_ended and record.expiry_ms:
        expiry = JobKey(JobKeyKind.EXPIRY, job, record.expiry_ms).encode()
        if store.db.get(Table.JOBS, expiry) is None:
            yield Problem(ProblemKind.JOB_EXPIRY_MISSING, where, "", Table.JOBS, expiry, job)
    if record.key and store.db.get(Table.JOB_KEYS, record.idempotency_key) is None:
        table = Table.JOB_KEYS
        yield Problem(ProblemKind.JOB_KEY_MISSING, where, "", table, record.idempotency_key, job)


def payload_bytes(store: Store, job: JobId) -> int:
    """All records of kind PAYLOAD together."""
    keys = (JobKey(JobKeyKind.PAYLOAD, job, kind).encode() for kind in JobPayload)
    return sum(len(store.db.get(Table.JOBS, key) or b"") for key in keys)


def check_keys(store: Store) -> Iterator[Problem]:
    """job_keys.db: from idempotency keys to jobs."""
    for key, value in store.db.walk(Table.JOB_KEYS):
        try:
            record = job_record(store, JobId.decode(value))
        except FormatError:
            record = None
        if record is None or not record.key or record.idempotency_key != key:
            where = f"job_keys.db {key.hex()}"
            yield Problem(ProblemKind.JOB_KEY_STALE, where, "", Table.JOB_KEYS, key)


def check_marks(store: Store, progress: StoreProgress) -> Iterator[Problem]:
    """Objects marked as surrogates of unfinished jobs."""
    total = store.db.count(Table.OBJECTS)
    arrays: list[JobRecord] | None = None
    for partition in store.live_partitions():
        for number, (place, value) in enumerate(store.objects_of(partition)):
            if number % TELL_EVERY == 0:
                progress("surrogates", number, total)
            # The flags' low byte: decoding all for a few would take its time.
            if len(value) < 6 or not value[5] & RecordFlag.UNFINISHED:
                continue
            job = JobId(place.partition_id, place.object_id)
            record = job_record(store, job)
            if record is None:
                arrays = arrays_under_way(store) if arrays is None else arrays
                if any(array.has_member(job) for array in arrays):
                    continue
            if record is None or record.has_ended:
                detail = "the job has ended" if record else "there is no such job"
                kind = ProblemKind.SURROGATE_UNFINISHED
                yield Problem(kind, str(place), detail, Table.OBJECTS, place.encode(), place)


def check_commands(store: Store) -> Iterator[Problem]:
    """commands.db: commands that run in steps, of collections that are there."""
    for key, value in store.db.walk(Table.COMMANDS):
        try:
            where, detail = command_damage(store, key, value)
        except FormatError as error:
            where, detail = f"commands.db {key.hex()}", str(error)
        if detail:
            yield Problem(ProblemKind.COMMAND_DAMAGED, where, detail, Table.COMMANDS, key, value)


def command_damage(store: Store, key: bytes, value: bytes) -> tuple[str, str]:
    """Place and kind of a fault; empty: none.  Raises: FormatError."""
    if len(key) != COMMAND_KEY_BYTES or key[-1] > 1:
        raise FormatError(f"a key of {len(key)} bytes")
    place = Place.decode(key)
    where = f"command of {place}"
    life = store.life(place)
    if life is Life.DEAD:  # goes with its partition
        return where, ""
    there = place.object_id == ALL_OBJECTS or store.intact(place, RecordType.COLLECTION)
    if life is not Life.LIVE or not there:
        return where, "no such collection"
    if key[-1] == 0 and (len(value) not in COMMAND_BYTES or value[0] != 1):
        return where, f"a record of {len(value)} bytes"
    if key[-1] == 1 and store.db.get(Table.COMMANDS, key[:-1] + b"\0") is None:
        return where, "its CDB without its state"
    return where, ""
