# SPDX-License-Identifier: GPL-2.0-or-later
"""The format package against stores that the target wrote: what it decodes, it encodes again."""

from __future__ import annotations

import dataclasses
import struct
import zlib

import pytest

from iosd_host.store_tools.check.problems import ProblemKind
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.jobs import JobId, JobKey, JobKeyKind, JobRecord, JobState
from iosd_host.store_tools.format.records import (
    AttributeKey,
    FormatError,
    MemberKey,
    MetaKind,
    ObjectRecord,
    PartitionRecord,
    Place,
    RecordFlag,
    RecordType,
    RootRecord,
    Unknown,
    parse_partition_key,
    partition_key,
)
from iosd_host.store_tools.format.superblock import RootRole, Superblock
from iosd_host.store_tools.opening.bdb import Table
from pyosd.jobs import job_array
from pyosd.types import PartitionId, ref
from pyosd.wire.exec_params import ExecParams, FunctionCall
from tests.offline.stores import FIRST, HEAD, Store

pytestmark = pytest.mark.parametrize(
    "template", [False, True], indirect=True, ids=["one root", "two roots"]
)


def test_records_of_the_target_come_out_as_they_went_in(store: Store) -> None:
    with store.database() as database:
        for key, value in database.walk(Table.OBJECTS):
            assert Place.of_object_key(key).encode() == key
            assert ObjectRecord.decode(value).encode() == value
        for key, value in database.walk(Table.PARTITIONS):
            assert partition_key(*parse_partition_key(key)) == key
            assert PartitionRecord.decode(value).encode() == value
        for key, _ in database.walk(Table.ATTRIBUTES):
            assert AttributeKey.decode(key).encode() == key
        for table in (Table.MEMBERS, Table.MEMBERSHIPS):
            for key, _ in database.walk(table):
                assert MemberKey.decode(key).encode() == key
                assert MemberKey.decode(key).turned().turned().encode() == key
        for key, value in database.walk(Table.JOBS):
            assert JobKey.decode(key).encode() == key
            if JobKey.decode(key).kind is JobKeyKind.RECORD:
                assert JobRecord.decode(value).encode() == value
        root = database.get(Table.META, MetaKind.ROOT.key)
        assert root is not None and RootRecord.decode(root).encode() == root


def test_records_say_what_was_stored(store: Store) -> None:
    record = store.record(store.names.long)
    assert record.type is RecordType.USER_OBJECT
    assert record.length == record.reserved_bytes == HEAD + 70_000
    assert record.flags == RecordFlag.HAS_FILES
    assert store.record(store.names.attributed).attribute_count == 6
    assert store.record(store.names.collection).type is RecordType.COLLECTION
    with store.database() as database:
        jobs = [
            JobRecord.decode(value)
            for key, value in database.walk(Table.JOBS)
            if JobKey.decode(key).kind is JobKeyKind.RECORD
        ]
        keys = [key for key, _ in database.walk(Table.JOB_KEYS)]
    assert {each.state for each in jobs} == {JobState.QUEUED, JobState.CANCELLED}
    assert {each.key for each in jobs} == {b"key 1", b"key 2"}
    assert sorted(keys) == sorted(each.idempotency_key for each in jobs)
    assert all(each.id.partition_id == FIRST for each in jobs)


def test_superblocks(store: Store) -> None:
    blocks = []
    for root, role in zip(store.roots, RootRole, strict=False):
        data = (root / "superblock").read_bytes()
        blocks.append(Superblock.decode(data))
        assert blocks[-1].encode() == data
        assert blocks[-1].role is role
    assert len({each.store_id for each in blocks}) == 1


def test_files_are_where_their_names_say(store: Store) -> None:
    found = [
        FileName.parse(str(path.relative_to(root / "data")))
        for root in store.roots
        for path in (root / "data").rglob("*")
        if path.is_file()
    ]
    assert len(found) >= 8
    for name in found:
        assert FileName.parse(name.path) == name


def test_what_is_not_of_the_format_is_said(store: Store) -> None:
    data = bytearray((store.data / "superblock").read_bytes())
    for at in range(len(data)):
        data[at] ^= 0x10
        with pytest.raises(FormatError):
            Superblock.decode(bytes(data))
        data[at] ^= 0x10
    for decode in (ObjectRecord.decode, PartitionRecord.decode, RootRecord.decode):
        for length in (0, 1, 40, 80):
            with pytest.raises(FormatError):
                decode(b"\1" + bytes(length))
    for path in ("x", "0/00/0", FileName(Place(1, 1, 1), 1, False).path.replace("/", "/x")):
        with pytest.raises(FormatError):
            FileName.parse(path)


def test_a_later_version_is_not_damage(store: Store) -> None:
    block = Superblock.decode((store.data / "superblock").read_bytes())
    later = bytearray(block.encode())
    later[11] = 2
    later[508:] = zlib.crc32(later[:508]).to_bytes(4, "big")
    with pytest.raises(Unknown):
        Superblock.decode(bytes(later))


def test_calls_of_functions(store: Store) -> None:
    with store.serve() as osd:
        zone = ref(osd.create_partition())
        functions = osd.create_partition(PartitionId(0x11))
        function = osd.create_and_write(functions, b"def main(args): return args\n")
        osd.activate_function(function)
        named = FunctionCall(functions, function.object_id)
        job = osd.call_function(zone, b"", ExecParams(function=named), synchronous=False).job
    assert job is not None and store.check() == []
    with store.database() as database:
        key = JobKey(JobKeyKind.RECORD, JobId(job.partition_id, job.object_id)).encode()
        value = database.get(Table.JOBS, key)
    assert value is not None
    record = JobRecord.decode(value)
    assert record.encode() == value
    assert (
        record.function
        == struct.pack(">QQB", function.partition_id, function.object_id, 0) + b"main"
    )
    signed = dataclasses.replace(record, signer=b"ann@example.org").encode()
    assert JobRecord.decode(signed).signer == b"ann@example.org"
    for damaged in (record.function[:17], record.function + b"x" * 64):
        with pytest.raises(FormatError, match="function"):
            JobRecord.decode(dataclasses.replace(record, function=damaged).encode())


def test_arrays_of_jobs(store: Store) -> None:
    """Members that have no record of their own are no damage, and neither is what they leave."""
    with store.serve() as osd:
        zone = ref(osd.create_partition())
        array = job_array.submit(osd, "pass", zone=zone, array=range(3, 23))
        array[2].hold()
        array[3].cancel()
        ended = job_array.submit(osd, "pass", zone=zone, array=range(5), key="k")
        ended.cancel()
    assert store.check() == []
    states = {}
    with store.database() as database:
        for key, value in database.walk(Table.JOBS):
            if JobKey.decode(key).kind is JobKeyKind.RECORD:
                record = JobRecord.decode(value)
                assert record.encode() == value
                if record.id.partition_id == zone.partition_id:
                    states[record.id.object_id] = record
    known = sorted(int(array.id.object_id) + more for more in (0, 3, 4))
    assert sorted(states)[: len(known)] == known
    head, held = states[array.id.object_id], states[array[2].id.object_id]
    assert (head.numbers["array_count"], head.numbers["array_index"], head.array) == (20, 3, None)
    assert (held.array, held.numbers["array_index"], held.state) == (head.id, 5, JobState.HELD)
    # Marks that no array explains are, though.
    store.remove(Table.JOBS, JobKey(JobKeyKind.RECORD, head.id).encode())
    assert {ProblemKind.SURROGATE_UNFINISHED.name, ProblemKind.JOB_PART_ORPHAN.name} <= {
        each.upper().replace("-", "_") for each in store.kinds()
    }
    store.repair()
    assert store.check() == []
