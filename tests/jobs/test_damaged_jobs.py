# SPDX-License-Identifier: GPL-2.0-or-later
"""A job that cannot be taken up at the start of the target: all others are, and nothing is removed that
could be repaired.  There are no sandboxes, so the others wait."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from iosd_host.store_tools.check.jobs import check_jobs
from iosd_host.store_tools.format.jobs import JobId, JobKey, JobKeyKind, JobPayload, JobRecord
from iosd_host.store_tools.format.records import Place
from iosd_host.store_tools.opening.bdb import StoreDatabase, Table
from iosd_host.store_tools.session import looking
from pyosd import jobs
from pyosd.commands import Commands
from pyosd.jobs import job_array
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import JobArray
from pyosd.jobs.submission import list_jobs
from pyosd.types import ObjectId, ObjectRef, ref
from pyosd.wire.job_status import JobState
from tests.conftest import MakeHarness
from tests.harness import Harness

WROTE = 0x10
INTERNAL, LOST_AFTER_WRITE = 901, 402


@pytest.fixture
def harness(make_harness: MakeHarness) -> Harness:
    return make_harness()


@pytest.fixture
def zone(harness: Harness) -> ObjectRef:
    return ref(harness.osd.create_partition())


def submit(osd: Commands, zone: ObjectRef, **how: object) -> Job:
    return jobs.submit(osd, "pass", zone=zone, **how)  # type: ignore[arg-type]


def entry(obj: ObjectRef, kind: JobKeyKind = JobKeyKind.RECORD, number: int = 0) -> bytes:
    return JobKey(kind, JobId(obj.partition_id, obj.object_id), number).encode()


def change(folder: Path, table: Table, key: bytes, to: Callable[[bytes], bytes | None]) -> None:
    """Change a record of the closed store, or remove it."""
    with StoreDatabase(folder / "store" / "db") as database, database.transaction() as transaction:
        before = database.get(table, key)
        assert before is not None
        after = to(before)
        if after is None:
            transaction.remove(table, key)
        else:
            transaction.put(table, key, after)


def cut(value: bytes) -> bytes:
    return value[:100]


def removed(_: bytes) -> None:
    return None


def running(flags: int = 0) -> Callable[[bytes], bytes]:
    """The record as it is while the job runs."""

    def change(value: bytes) -> bytes:
        record = JobRecord.decode(value)
        numbers = record.numbers | {"state": int(JobState.RUNNING), "attempt": 1}
        numbers["flags"] |= flags
        return replace(record, numbers=numbers).encode()

    return change


def remove_object(folder: Path, obj: ObjectRef) -> None:
    with StoreDatabase(folder / "store" / "db") as database, database.transaction() as transaction:
        for key, _ in database.walk(Table.OBJECTS, int(obj.partition_id).to_bytes(8, "big")):
            if Place.of_object_key(key).object_id == obj.object_id:
                transaction.remove(Table.OBJECTS, key)


def state_of(osd: Commands, job: Job) -> JobState:
    return Job(osd, job.id).status().state


def kinds(folder: Path) -> set[str]:
    with looking(folder / "store", None, None) as store:
        return {each.kind.name for each in check_jobs(store, lambda *_: None)}


def test_damaged_record(harness: Harness, zone: ObjectRef, tmp_path: Path) -> None:
    """It stays as it is.  Jobs that are to run after this one wait for its repair."""
    bad, good = submit(harness.osd, zone), submit(harness.osd, zone)
    after = submit(harness.osd, zone, after=[bad])
    harness.finish()
    with StoreDatabase(tmp_path / "store" / "db") as database:
        before = database.get(Table.JOBS, entry(bad.id))
    change(tmp_path, Table.JOBS, entry(bad.id), cut)
    harness.start()
    assert state_of(harness.osd, good) is JobState.QUEUED
    assert state_of(harness.osd, after) is JobState.QUEUED
    assert Job(harness.osd, after.id).status().awaited == bad.id
    assert f"{int(bad.id.object_id):#x} is damaged" in harness.log.read_text()
    another = submit(harness.osd, zone)
    assert [each.id for each in list_jobs(harness.osd, zone.partition_id)] == [
        each.id for each in (good, after, another)
    ]
    harness.finish()
    assert "JOB_DAMAGED" in kinds(tmp_path)
    change(tmp_path, Table.JOBS, entry(bad.id), lambda _: before)
    harness.start()
    for each in (bad, good, after, another):
        assert state_of(harness.osd, each) is JobState.QUEUED
    assert Job(harness.osd, bad.id).cancel()


def test_damaged_member(harness: Harness, zone: ObjectRef, tmp_path: Path) -> None:
    """It may have run, so it does not begin anew; its array counts it as lost."""
    array = job_array.submit(harness.osd, "pass", zone=zone, array=range(3))
    array[1].hold()
    harness.finish()
    change(tmp_path, Table.JOBS, entry(array[1].id), cut)
    harness.start()
    states = JobArray(harness.osd, array.id).states()
    assert states == [JobState.QUEUED, JobState.SANDBOX_LOST, JobState.QUEUED]


def test_damaged_record_of_an_array(harness: Harness, zone: ObjectRef, tmp_path: Path) -> None:
    """Its members cannot run without it."""
    array = job_array.submit(harness.osd, "pass", zone=zone, array=range(3))
    array[1].hold()
    good = submit(harness.osd, zone)
    harness.finish()
    change(tmp_path, Table.JOBS, entry(array.id), cut)
    harness.start()
    assert state_of(harness.osd, good) is JobState.QUEUED
    assert state_of(harness.osd, Job(harness.osd, array[1].id)) is JobState.SANDBOX_LOST


@pytest.mark.parametrize("part", ["after", "indices"])
def test_missing_part(harness: Harness, zone: ObjectRef, tmp_path: Path, part: str) -> None:
    """A job whose predecessors or indices are not known does not run.  Its owner sees why."""
    good = submit(harness.osd, zone)
    if part == "after":
        bad = submit(harness.osd, zone, after=[good])
        payload = JobPayload.AFTER
    else:
        bad = Job(harness.osd, job_array.submit(harness.osd, "pass", zone=zone, array=[1, 5, 9]).id)
        payload = JobPayload.INDICES
    harness.finish()
    change(tmp_path, Table.JOBS, entry(bad.id, JobKeyKind.PAYLOAD, payload), removed)
    for _ in range(2):
        harness.start()
        assert state_of(harness.osd, good) is JobState.QUEUED
        status = Job(harness.osd, bad.id).status()
        assert (status.state, status.reason) == (JobState.FAILED, INTERNAL)
        assert status.message.startswith("not taken up after a restart: ")
        harness.finish()


def test_array_that_is_not_taken_up_is_removed(
    harness: Harness, zone: ObjectRef, tmp_path: Path
) -> None:
    """With the objects of its members, which have no records yet."""
    osd = harness.osd
    array = job_array.submit(osd, "pass", zone=zone, array=[1, 5, 9], surrogate=zone)
    members = [each.id for each in array]
    harness.finish()
    key = entry(array.id, JobKeyKind.PAYLOAD, JobPayload.INDICES)
    change(tmp_path, Table.JOBS, key, removed)
    harness.start()
    osd = harness.osd
    assert set(members) <= set(osd.list_objects(zone.partition_id))
    Job(osd, array.id).remove()
    assert osd.list_objects(zone.partition_id) == []


@pytest.mark.parametrize("wrote", [False, True])
def test_lost_object(harness: Harness, zone: ObjectRef, tmp_path: Path, wrote: bool) -> None:
    """A job that ran, and whose object is gone: its record says how it ended."""
    bad, good = submit(harness.osd, zone), submit(harness.osd, zone)
    harness.finish()
    change(tmp_path, Table.JOBS, entry(bad.id), running(WROTE if wrote else 0))
    remove_object(tmp_path, bad.id)
    harness.start()
    assert state_of(harness.osd, good) is JobState.QUEUED
    harness.finish()
    with StoreDatabase(tmp_path / "store" / "db") as database:
        value = database.get(Table.JOBS, entry(bad.id))
    assert value is not None
    record = JobRecord.decode(value)
    assert record.has_ended
    assert record.numbers["reason"] == (LOST_AFTER_WRITE if wrote else INTERNAL)


def test_nothing_of_a_damaged_job_is_left_to_later_ones(
    harness: Harness, zone: ObjectRef, tmp_path: Path
) -> None:
    """REMOVE PARTITION removes its key and its place in the expiry order, too."""
    osd, place = harness.osd, zone.partition_id
    how: dict[str, object] = {"key": b"once", "surrogate": ObjectRef(place, ObjectId(0x20000))}
    bad = submit(osd, zone, **how)
    assert bad.cancel()
    harness.finish()
    change(tmp_path, Table.JOBS, entry(bad.id), cut)
    harness.start()
    osd = harness.osd
    osd.remove_partition(place, contents=True)
    harness.finish()
    with StoreDatabase(tmp_path / "store" / "db") as database:
        assert not list(database.walk(Table.JOBS, b""))
        assert not list(database.walk(Table.JOB_KEYS, b""))
    harness.start()
    osd = harness.osd
    osd.create_partition(place)
    again = submit(osd, zone, **how)
    assert (again.id, state_of(osd, again)) == (bad.id, JobState.QUEUED)


@pytest.mark.parametrize("whole", [False, True])
def test_removal(harness: Harness, zone: ObjectRef, tmp_path: Path, whole: bool) -> None:
    """REMOVE PARTITION and FORMAT OSD remove damaged records with all others."""
    osd = harness.osd
    other = ref(osd.create_partition())
    place = zone.partition_id
    bad, good = submit(osd, zone), submit(osd, zone)
    kept = submit(osd, other)
    harness.finish()
    change(tmp_path, Table.JOBS, entry(bad.id), cut)
    harness.start()
    osd = harness.osd
    assert Job(osd, good.id).cancel()
    if whole:
        osd.format_osd()
    else:
        osd.remove_partition(place, contents=True)
        assert state_of(osd, kept) is JobState.QUEUED
    harness.finish()
    with StoreDatabase(tmp_path / "store" / "db") as database:
        assert database.get(Table.JOBS, entry(bad.id)) is None
        assert (database.get(Table.JOBS, entry(kept.id)) is None) == whole
    assert "JOB_DAMAGED" not in kinds(tmp_path)
