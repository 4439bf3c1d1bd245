# SPDX-License-Identifier: GPL-2.0-or-later
"""Everything a store holds as rows of plain values: decoded where it can be, else byte for byte.

Not here: how rows look (report.py), the bytes of objects' data but for write_data.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterator
from typing import IO, Any

from iosd_host.common.whole_file import open_file
from iosd_host.store_tools.check.names import read_entry
from iosd_host.store_tools.format.file_names import FileName
from iosd_host.store_tools.format.indexes import IndexEntry, IndexStage, parse_index_stage
from iosd_host.store_tools.format.jobs import JobId, JobKey, JobKeyKind, JobPayload, JobRecord
from iosd_host.store_tools.format.keys import KeyKind, KeyName, decode_identifier, decode_spans
from iosd_host.store_tools.format.names import NameRecord
from iosd_host.store_tools.format.records import (
    AttributeKey,
    FormatError,
    MemberKey,
    MetaKind,
    ObjectRecord,
    PartitionRecord,
    Place,
    RecordType,
    RootRecord,
    parse_dead_files,
    parse_partition_key,
    parse_partition_meta,
    partition_key,
)
from iosd_host.store_tools.format.sums import SumsHeader, SumsRun
from iosd_host.store_tools.format.versions import VersionsRun
from iosd_host.store_tools.opening.bdb import Table
from iosd_host.store_tools.opening.store import Store
from iosd_host.store_tools.repair.partitions import incarnations

__all__ = ["SCHEMA", "StoreAddress", "dump_store", "write_data"]

SCHEMA = "iosd.store-dump/1"
PIECE = 1 << 20
TIMES = ("created", "attr_accessed", "attr_modified", "data_accessed", "data_modified")
DumpedRow = dict[str, Any]
"""what, where, then the fields; bytes stay bytes."""


@dataclasses.dataclass(frozen=True)
class StoreAddress:
    """``root``, PID or PID/OID, each decimal or 0x; partition 0: the root."""

    partition_id: int
    object_id: int = 0

    @classmethod
    def parse(cls, text: str) -> StoreAddress:
        """Read it.  Raises: ValueError."""
        if text == "root":
            return cls(0)
        partition, slash, inside = text.partition("/")
        address = cls(int(partition, 0), int(inside, 0) if slash else 0)
        if not all(0 <= each < 1 << 64 for each in dataclasses.astuple(address)):
            raise ValueError("ids have 64 bits")
        return address


def dump_store(store: Store, address: StoreAddress | None) -> Iterator[DumpedRow]:
    """All rows, or those of an address: a partition comes with what is in it."""
    if address is None:
        yield from dump_superblocks(store)
        for table in Table:
            yield from dump_table(store, table, b"")
    elif address.partition_id == 0:
        yield from dump_superblocks(store)
        yield from dump_table(store, Table.META, b"")
        place = Place(0, store.epoch)
        yield from dump_table(store, Table.ATTRIBUTES, place.encode())
        yield from dump_table(store, Table.KEYS, Place(0, 0).encode()[:12])
    else:
        yield from dump_address(store, address)


def dump_address(store: Store, address: StoreAddress) -> Iterator[DumpedRow]:
    """A partition with its objects, or one object; of every incarnation there is."""
    partition_id = address.partition_id
    yield from dump_table(store, Table.PARTITIONS, partition_key(store.epoch, partition_id))
    found = incarnations(store, partition_id)
    record = store.partition(partition_id)
    if record is not None:
        found.add(record.incarnation)
    for incarnation in sorted(found):
        prefix = Place(partition_id, incarnation, address.object_id).encode()
        if not address.object_id:
            prefix = prefix[:12]
        tables = [
            *(Table.OBJECTS, Table.ATTRIBUTES, Table.MEMBERS, Table.MEMBERSHIPS),
            *(Table.NAMES, Table.NAMED),
        ]
        for table in tables if address.object_id else [*tables, Table.KEYS]:
            yield from dump_table(store, table, prefix)
    if record is not None and address.object_id:
        place = Place(partition_id, record.incarnation, address.object_id)
        yield from dump_sums(store, place)
    job = JobId(partition_id, address.object_id).encode()
    for kind in (JobKeyKind.RECORD, JobKeyKind.CODE, JobKeyKind.PAYLOAD, JobKeyKind.USED):
        prefix = bytes((kind,)) + (job if address.object_id else job[:8])
        yield from dump_table(store, Table.JOBS, prefix)


def dump_sums(store: Store, place: Place) -> Iterator[DumpedRow]:
    """The files with an object's checksums: their header, how many blocks have one."""
    record = store.intact(place, RecordType.USER_OBJECT)
    if record is None:
        return
    head = FileName(place, record.generation, False)
    for name in (head, dataclasses.replace(head, tail=True)):
        path = store.root_of(name.tail, record.head_in).data / name.sums_path
        try:
            with os.fdopen(open_file(path), "rb") as file:
                data = file.read()
        except OSError:
            continue
        row: DumpedRow = {"what": "checksums", "where": str(place), "file": str(path)}
        try:
            row |= dataclasses.asdict(SumsHeader.decode(data))
        except FormatError as error:
            yield row | {"error": str(error)}
            continue
        sums = [data[at : at + 4] for at in range(SumsHeader.BYTES, len(data), 4)]
        row["known"] = sum(map(any, sums))
        yield row | {"unknown": len(sums) - row["known"]}


def dump_superblocks(store: Store) -> Iterator[DumpedRow]:
    """One row a root."""
    for root in store.roots:
        where = str(root.path)
        if root.superblock is None:
            yield {"what": "damaged superblock", "where": where, "error": root.damage}
        else:
            yield {"what": "superblock", "where": where} | dataclasses.asdict(root.superblock)


def dump_table(store: Store, table: Table, prefix: bytes) -> Iterator[DumpedRow]:
    """Its records in key order."""
    for key, value in store.db.walk(table, prefix):
        try:
            yield from READERS[table](store, key, value)
        except FormatError as error:
            row: DumpedRow = {"what": "damaged record", "where": f"{table.value} {key.hex()}"}
            row["error"] = str(error)
            if table is not Table.KEYS:
                row["value"] = value
            yield row


def fields(record: Any) -> DumpedRow:
    """Of a dataclass, times by their names."""
    row = dataclasses.asdict(record)
    times = row.pop("times", None)
    if times is not None:
        row |= dict(zip((f"{name}_ms" for name in TIMES), times, strict=True))
    return row


def read_partition(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """Epoch and record."""
    epoch, partition_id = parse_partition_key(key)
    row = fields(PartitionRecord.decode(value))
    row |= row.pop("quotas")
    yield {"what": "partition", "where": f"{partition_id:#x}", "epoch": epoch} | row


def read_object(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """Record, and the sizes of its files."""
    place = Place.of_object_key(key)
    record = ObjectRecord.decode(value)
    what = "user object" if record.type is RecordType.USER_OBJECT else "collection"
    row = {"what": what, "where": str(place), "incarnation": place.incarnation} | fields(record)
    row["type"], row["flags"] = int(record.type), int(record.flags)
    if record.type is RecordType.USER_OBJECT:
        try:
            files = store.files(place, record)
            row |= {"head_file": files.head, "tail_file": files.tail}
        except OSError as error:
            row["files_error"] = str(error)
    yield row


def read_attribute(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """Page, number, value."""
    parsed = AttributeKey.decode(key)
    row = {"page": parsed.page, "number": parsed.number, "value": value}
    place = parsed.place
    yield {"what": "attribute", "where": str(place), "incarnation": place.incarnation} | row


def read_member(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """From the collection."""
    parsed = MemberKey.decode(key)
    what = "member" if parsed.other_id else "collection mark"
    row = {"incarnation": parsed.place.incarnation, "member": parsed.other_id}
    yield {"what": what, "where": str(parsed.place)} | row


def read_membership(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """From the member."""
    parsed = MemberKey.decode(key)
    if len(value) != 4:
        raise FormatError(f"a number of {len(value)} bytes")
    row = {"incarnation": parsed.place.incarnation, "collection": parsed.other_id}
    row["number"] = int.from_bytes(value, "big")
    yield {"what": "membership", "where": str(parsed.place)} | row


def read_name(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """From the directory."""
    found = read_entry(store, key, value)
    row: DumpedRow = {"what": "name", "where": str(found.directory)}
    row["incarnation"] = found.directory.incarnation
    name = found.name.decode("utf-8", "backslashreplace")
    if found.type is None:
        yield row | {"name": name, "object": found.object.partition_id, "type": "partition"}
        return
    yield row | {"name": name, "object": found.object.object_id, "type": found.type.name.lower()}


def read_named(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """From the object."""
    place, directory, name = NameRecord.parse_named(key, store.epoch)
    row: DumpedRow = {"what": "named", "where": str(place), "incarnation": place.incarnation}
    yield row | {
        "directory": directory.object_id,
        "name": name.decode("utf-8", "backslashreplace"),
    }


def read_job(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """A job, or a part of one."""
    parsed = JobKey.decode(key)
    where = str(parsed.job)
    if parsed.kind is JobKeyKind.RECORD:
        row = dataclasses.asdict(JobRecord.decode(value))
        row |= row.pop("numbers")
        unknown = {f"{tag:#x}": each.hex() for tag, each in row.pop("unknown").items()}
        row |= {"unknown": unknown} if unknown else {}
        texts = ("name", "message", "principal", "pool", "set", "signer")
        row |= {each: row[each].decode("utf-8", "replace") for each in texts}
        yield {"what": "job", "where": where} | row
    elif parsed.kind is JobKeyKind.EXPIRY:
        yield {"what": "job expiry", "where": where, "expiry_ms": parsed.number}
    elif parsed.kind in (JobKeyKind.CODE, JobKeyKind.USED):
        what = f"job {parsed.kind.name.lower()}"
        yield {"what": what, "where": where, "piece": parsed.number, "value": value}
    else:
        known = parsed.number in tuple(JobPayload)
        name = JobPayload(parsed.number).name.lower() if known else str(parsed.number)
        yield {"what": f"job {name}", "where": where, "value": value}


def read_job_key(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """Digest and job."""
    yield {"what": "job key", "where": str(JobId.decode(value)), "sha256": key}


def read_index(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """An entry of a value index, with its value in the form of the key."""
    entry = IndexEntry.decode(key)
    row = {"page": entry.page, "number": entry.number, "indexed": entry.value}
    place = entry.place
    yield {"what": "index entry", "where": str(place), "incarnation": place.incarnation} | row


def read_command(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """A command that runs in steps."""
    where = str(JobId.decode(key[:16]))
    yield {"what": "command", "where": where, "kind": key[16:].hex(), "value": value}


def read_key(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """A secret key's name and identifier, never the key; or times of nonces."""
    name = KeyName.decode(key)
    row: DumpedRow = {"where": str(name), "incarnation": name.place.incarnation}
    if name.kind is KeyKind.NONCES:
        spans = [list(each) for each in decode_spans(value)]
        yield {"what": "times of nonces"} | row | {"spans_ms": spans}
        return
    row["identifier"] = decode_identifier(value)
    if name.kind is KeyKind.WORKING:
        row["version"] = name.version
    yield {"what": f"{name.kind.name.lower()} key"} | row | {"key": "sealed, not shown"}


def read_meta(store: Store, key: bytes, value: bytes) -> Iterator[DumpedRow]:
    """Root record, counters, removal queue."""
    known = bool(key) and key[0] in tuple(MetaKind)
    if not known:
        yield {"what": "meta", "where": key.hex(), "value": value}
        return
    kind = MetaKind(key[0])
    row: DumpedRow = {"what": kind.name.lower().replace("_", " "), "where": "store"}
    if kind is MetaKind.ROOT:
        row |= fields(RootRecord.decode(value))
        common = row.pop("common")
        common.pop("times")
        row |= common.pop("quotas") | {"bypass": common["bypass"]}
    elif kind in (MetaKind.ID_MARK, MetaKind.DEAD_PARTITION):
        place = parse_partition_meta(key)
        row |= {"where": str(place), "incarnation": place.incarnation, "value": value}
    elif kind is MetaKind.INDEX:
        place, row["page"] = parse_index_stage(key)
        stage = IndexStage.decode(value)
        row |= {"where": str(place), "incarnation": place.incarnation} | dataclasses.asdict(stage)
    elif kind in (MetaKind.DEAD_FILES, MetaKind.DRAFT_FILES):
        place, row["generation"] = parse_dead_files(key)
        row |= {"where": str(place), "incarnation": place.incarnation}
    elif kind is MetaKind.SUMS:
        row |= dataclasses.asdict(SumsRun.decode(value))
    elif kind is MetaKind.VERSIONS:
        row |= dataclasses.asdict(VersionsRun.decode(value))
    elif kind is MetaKind.DEAD_EPOCH and len(key) == 5:
        row["epoch"] = int.from_bytes(key[1:], "big")
    else:
        row["value"] = value
    yield row


READERS = {
    Table.PARTITIONS: read_partition,
    Table.OBJECTS: read_object,
    Table.ATTRIBUTES: read_attribute,
    Table.MEMBERS: read_member,
    Table.MEMBERSHIPS: read_membership,
    Table.JOBS: read_job,
    Table.JOB_KEYS: read_job_key,
    Table.INDEX: read_index,
    Table.COMMANDS: read_command,
    Table.NAMES: read_name,
    Table.NAMED: read_named,
    Table.KEYS: read_key,
    Table.META: read_meta,
}


# ---- data


def write_data(store: Store, address: StoreAddress, output: IO[bytes]) -> int | None:
    """Write an object's bytes.  Returns how many; None: there is no such object.

    Raises: OSError: a file cannot be read; FormatError: the record does not decode.
    """
    live = store.partition(address.partition_id)
    found = incarnations(store, address.partition_id)
    chosen = live.incarnation if live is not None else max(found, default=0)
    place = Place(address.partition_id, chosen, address.object_id)
    record = store.object(place)
    if record is None or record.type is not RecordType.USER_OBJECT:
        return None
    length = store.files(place, record).length(record.head_bytes)
    if record.is_settled or record.length > length:
        length = record.length
    in_head = min(length, record.head_bytes)
    name = FileName(place, record.generation, False)
    copy(store.path(name, record.head_in), output, in_head)
    if length > in_head:
        tail = dataclasses.replace(name, tail=True)
        copy(store.path(tail, record.head_in), output, length - in_head)
    return length


def copy(path: os.PathLike[str], output: IO[bytes], length: int) -> None:
    """So many bytes of a file; zeros for what it lacks."""
    try:
        with open(path, "rb") as source:  # noqa: PTH123
            while length and (piece := source.read(min(PIECE, length))):
                output.write(piece)
                length -= len(piece)
    except FileNotFoundError:
        pass
    while length:
        piece = bytes(min(PIECE, length))
        output.write(piece)
        length -= len(piece)
