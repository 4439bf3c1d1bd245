# SPDX-License-Identifier: GPL-2.0-or-later
"""A store of an earlier release opens with all that is in it; one of a later is refused, untouched."""

from __future__ import annotations

import struct
import zlib
from dataclasses import replace
from pathlib import Path

import pytest

from iosd_host.cli import store as commands
from iosd_host.store_tools.check.charges import attribute_units
from iosd_host.store_tools.format.jobs import VERSION as WRITTEN
from iosd_host.store_tools.format.jobs import JobId, JobKey, JobKeyKind, JobRecord, JobState
from iosd_host.store_tools.format.records import ALL_OBJECTS, AttributeKey, RecordFlag
from iosd_host.store_tools.opening.bdb import Table
from pyosd.commands import Commands
from pyosd.jobs.dialogues.following import KILL
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from tests.harness import StartFailed
from tests.offline.earlier import ARCHIVES, unpack
from tests.offline.stores import APPLICATION, FIRST, SECOND, Store, index, look, started

VERSION, FEATURES = slice(8, 12), slice(16, 24)  # of a superblock
CONTROL = 0x2000_0003
APART = 1 << 62  # ids of jobs from here on stand apart from the partition's data
NUMBERS, RESULT_OBJECT = slice(4, 292), slice(176, 184)  # of a job record; of its numbers


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def test_an_earlier_store_opens_whole(archive: Path, folder: Path) -> None:
    """The tools find nothing wrong before and after; all that was seen is seen, and can be gone on with."""
    store, seen = unpack(archive, folder)
    assert len(seen) == 15
    assert store.check() == []
    wanted = charges(store)
    with store.serve() as osd:
        assert look(osd) == seen
        counted = charged(osd)
    assert [each[1:] for each in counted] == wanted
    assert counted[0][1] and bool(counted[0][2]) == (store.names.queued.object_id < APART)
    with store.serve() as osd:
        assert charged(osd) == counted
        for page, partition_id in ((APPLICATION, FIRST), (1, SECOND)):
            index(osd, partition_id, page)
        osd.write(store.names.plain, 3, b"later")
        osd.set_attributes(store.names.plain, [AttributeValue(APPLICATION, 1, b"later")])
        osd.set_attributes(store.names.queued, [AttributeValue(CONTROL, 1, bytes([KILL]))])
    plain = seen[store.names.plain]
    plain.data = plain.data[:3] + b"later" + plain.data[8:]
    plain.attributes[APPLICATION, 1] = b"later"
    assert store.check() == []
    with store.serve() as osd:
        assert look(osd) == seen


def test_results_of_an_earlier_store_become_private(store: Store) -> None:
    """Objects that hold results were like others then; the records of their jobs name them."""
    names = store.names
    key = JobKey(JobKeyKind.RECORD, JobId(FIRST, names.ended.object_id)).encode()
    record = JobRecord.decode(dict(store.records(Table.JOBS))[key])
    store.put(Table.JOBS, key, version_4(record, int(names.plain.object_id)))
    for _ in range(2):
        with store.serve() as osd:
            assert osd.get_attribute(names.plain, 1, 0x82)
        assert RecordFlag.SURROGATE in store.record(names.plain).flags
        assert store.check() == []
    companion = JobKey(JobKeyKind.COMPANION, JobId(FIRST, names.plain.object_id)).encode()
    wanted = int(names.ended.object_id).to_bytes(8, "big")
    assert dict(store.records(Table.JOBS))[companion] == wanted


def version_4(record: JobRecord, result_object: int) -> bytes:
    """A job's record as a release without charges wrote it, naming the object that holds its result."""
    numbers = bytearray(record.encode()[NUMBERS])
    numbers[RESULT_OBJECT] = result_object.to_bytes(8, "big")
    key = bytes((len(record.key),)) + record.code_sha256 + record.content_sha256 + record.key
    texts = (record.name, record.message, record.principal, record.pool, record.set)
    counted = [len(each).to_bytes(2, "big") + each for each in texts]
    rights = len(record.rights).to_bytes(2, "big") + record.rights
    return b"".join((b"\0\4", numbers, key, *counted, bytes(38), rights))


def charged(osd: Commands) -> list[list[int]]:
    """All charged bytes of two partitions, those for attributes, those for jobs."""
    wanted = [AttributeId(Page.CHARGED, number) for number in (1, 2, 3)]
    return [[each.uint for each in osd.get_attributes(ref(pid), wanted)] for pid in (FIRST, SECOND)]


def charges(store: Store) -> list[list[int]]:
    """The same, by what is in the tables of the closed store, but for the objects' data.

    Jobs that stand apart are not charged to the partition.
    """
    found = [[0, 0], [0, 0]]
    pids: list[int] = [FIRST, SECOND]
    for key, value in store.records(Table.ATTRIBUTES):
        attribute = AttributeKey.decode(key)
        if attribute.place.partition_id in pids and attribute.place.object_id != ALL_OBJECTS:
            units = attribute_units(attribute.page, len(value))
            found[pids.index(attribute.place.partition_id)][0] += 16 * units
    for key, value in store.records(Table.JOBS):
        parsed = JobKey.decode(key)
        if parsed.job.object_id >= APART:
            continue
        where = found[pids.index(parsed.job.partition_id)]
        if parsed.kind is JobKeyKind.RECORD:
            where[1] += 1024
        elif parsed.kind in (JobKeyKind.CODE, JobKeyKind.PAYLOAD, JobKeyKind.USED):
            where[1] += len(value)
    return found


def states(store: Store) -> dict[int, JobState]:
    """Of the jobs, by their object ids."""
    return {
        int(record.id.object_id): record.state
        for key, value in store.records(Table.JOBS)
        if JobKey.decode(key).kind is JobKeyKind.RECORD
        for record in (JobRecord.decode(value),)
    }


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def test_jobs_of_an_earlier_store(archive: Path, folder: Path) -> None:
    """One that waited still waits, one that had ended has ended, before and after the first opening."""
    store, _ = unpack(archive, folder)
    wanted = {
        int(store.names.queued.object_id): JobState.QUEUED,
        int(store.names.ended.object_id): JobState.CANCELLED,
    }
    assert states(store) == wanted
    with store.serve():
        pass
    assert states(store) == wanted


def patched(root: Path, where: slice, value: int) -> None:
    """A superblock as another release might write it."""
    file = root / "superblock"
    data = bytearray(file.read_bytes())
    data[where] = value.to_bytes(where.stop - where.start, "big")
    data[508:] = zlib.crc32(data[:508]).to_bytes(4, "big")
    file.write_bytes(data)


@pytest.mark.parametrize("root", [0, 1], ids=["main", "heads"])
@pytest.mark.parametrize(
    ("where", "value", "words"),
    [(VERSION, 2, "format version 2"), (FEATURES, 5, "feature bits")],
    ids=["version", "features"],
)
def test_a_later_store_is_refused(
    store: Store, root: int, where: slice, value: int, words: str
) -> None:
    """By the target and by every tool, with a message that says what it is, and nothing is changed."""
    patched(store.roots[root], where, value)
    before = store.digest()
    with pytest.raises(StartFailed) as refused:
        started(store.folder, store.two_roots)
    for text in (words, "use the release that wrote it", str(store.roots[root])):
        assert text in str(refused.value)
    for verb in (commands.check, commands.repair, commands.dump):
        done = store.run(verb)
        assert done.exit_code == 78, done.output
        assert words in done.output and "use the release that wrote it" in done.output
    assert store.digest() == before


def test_a_later_job_record_is_refused(store: Store) -> None:
    """The format of the store being the same, a record of a job may still be of a later release."""
    key, value = next(
        (key, value)
        for key, value in store.records(Table.JOBS)
        if JobKey.decode(key).kind is JobKeyKind.RECORD
    )
    store.put(Table.JOBS, key, (9).to_bytes(2, "big") + value[2:])
    with pytest.raises(StartFailed, match=r"version 9.*use the release that wrote it"):
        started(store.folder, store.two_roots)
    assert any("of a later release" in each["detail"] for each in store.check())


@pytest.mark.parametrize("archive", ARCHIVES, ids=lambda path: path.name.partition(".")[0])
def test_job_records_are_written_in_the_present_form(archive: Path, folder: Path) -> None:
    """One that is changed; what it says stays."""
    store, _ = unpack(archive, folder)
    obj = store.names.queued
    key = JobKey(JobKeyKind.RECORD, JobId(obj.partition_id, obj.object_id)).encode()
    before = JobRecord.decode(dict(store.records(Table.JOBS))[key])
    assert before.version < WRITTEN
    with store.serve() as osd:
        osd.set_attributes(obj, [AttributeValue(CONTROL, 1, bytes([KILL]))])
    after = JobRecord.decode(dict(store.records(Table.JOBS))[key])
    assert after.version == WRITTEN and after.state is JobState.CANCELLED
    for name in ("key", "name", "principal", "pool", "code_sha256", "rights"):
        assert getattr(after, name) == getattr(before, name), name
    for number in ("sequence", "submitted_ms", "limit_wall_us", "array_count", "code_length"):
        assert after.numbers[number] == before.numbers[number], number


def with_field(value: bytes, tag: int, content: bytes) -> bytes:
    """A job record with a field of a later release behind its own."""
    value += struct.pack(">HH", tag, len(content)) + content
    return value[:2] + len(value).to_bytes(2, "big") + value[4:]


def record_of(store: Store, obj: ObjectRef) -> tuple[bytes, bytes]:
    """Key and value of a job's record."""
    key = JobKey(JobKeyKind.RECORD, JobId(obj.partition_id, obj.object_id)).encode()
    return key, dict(store.records(Table.JOBS))[key]


def test_a_field_of_a_later_release_that_may_be_skipped(store: Store) -> None:
    """The target serves the job and drops the field with its next change; repair keeps it."""
    key, value = record_of(store, store.names.queued)
    store.put(Table.JOBS, key, with_field(value, 0x7FF0, b"later"))
    assert store.check() == []
    record = JobRecord.decode(record_of(store, store.names.queued)[1])
    assert record.unknown == {0x7FF0: b"later"}
    assert record.encode() == with_field(value, 0x7FF0, b"later")
    store.put(Table.JOBS, key, replace(record, charged=1).encode())
    store.repair()
    assert store.check() == []
    assert JobRecord.decode(record_of(store, store.names.queued)[1]) == record
    with store.serve() as osd:
        osd.set_attributes(store.names.queued, [AttributeValue(CONTROL, 1, bytes([KILL]))])
    assert JobRecord.decode(record_of(store, store.names.queued)[1]).unknown == {}
    assert store.check() == []


def test_a_field_of_a_later_release_that_must_be_understood(store: Store) -> None:
    """The target does not start: it would run the job in another way than asked."""
    key, value = record_of(store, store.names.queued)
    store.put(Table.JOBS, key, with_field(value, 0x8FFF, b"later"))
    with pytest.raises(StartFailed, match=r"field 0x8fff.*use the release that wrote it"):
        started(store.folder, store.two_roots)
    assert any("of a later release" in each["detail"] for each in store.check())
    assert record_of(store, store.names.queued)[1] == with_field(value, 0x8FFF, b"later")
