# SPDX-License-Identifier: GPL-2.0-or-later
"""Large files whose transfer was cut off: a later one continues it, and what it makes is right."""

from __future__ import annotations

import os
import random
import threading
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path

import pytest

from pyosd import connect, errors
from pyosd.fs.local import resuming
from pyosd.fs.local.resuming import MARK
from pyosd.fs.local.transfer_record import TransferRecords
from pyosd.fs.transfer import FileMoved, Incoming, Outgoing, get_files, put_files
from pyosd.target import Target
from pyosd.types import AttributeValue, ObjectRef, ref
from tests.machine import unavailable
from tests.relay import Gate
from tests.serving import Serving, missing, shared

pytestmark = pytest.mark.tgtd
MIB = 1 << 20
LENGTH = 24 * MIB + 5
CUT = 17 * MIB  # bytes told of before the cut


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    if why := missing():
        unavailable("tgtd", why)
    with shared("--no-sandboxes") as made:
        yield made


@pytest.fixture
def target(served: Serving) -> Iterator[Target]:
    with served.connect() as session:
        yield session


@pytest.fixture
def zone(target: Target) -> ObjectRef:
    return ref(target.create_partition())


@pytest.fixture
def records(tmp_path: Path) -> TransferRecords:
    return TransferRecords("target", tmp_path / "records")


@cache
def content() -> bytes:
    return random.Random(3).randbytes(LENGTH)


@pytest.fixture
def source(tmp_path: Path) -> Path:
    path = tmp_path / "source"
    path.write_bytes(content())
    return path


class Cut:
    """Progress that ends a transfer as an interrupt does."""

    def __init__(self, after: int = CUT) -> None:
        self.left = after

    def __call__(self, count: int) -> None:
        self.left -= count
        if self.left <= 0:
            raise KeyboardInterrupt


def put(
    target: Target,
    zone: ObjectRef,
    source: Path,
    records: TransferRecords | None,
    progress: Callable[[int], None] | None = None,
) -> FileMoved:
    wanted = [Outgoing(source, b"file")]
    stream = put_files(zone, wanted, records=records, progress=progress)
    (moved,) = target.carry_stream(stream)
    return moved


def put_cut(target: Target, zone: ObjectRef, source: Path, records: TransferRecords) -> ObjectRef:
    """Returns: the object that is left."""
    with pytest.raises(KeyboardInterrupt):
        put(target, zone, source, records, progress=Cut())
    (left,) = target.list_objects(zone.partition_id)
    return left


def check_stored(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords, moved: FileMoved
) -> None:
    """One object, which is the source; nothing is left of the transfer."""
    assert moved.error is None and moved.length == source.stat().st_size
    assert target.fs.below(zone).read_bytes("file") == source.read_bytes()
    assert target.list_objects(zone.partition_id) == [moved.object]
    assert moved.object is not None and target.get_attribute(moved.object, *MARK) == b""
    assert records.folder is not None and [*records.folder.iterdir()] == []


# ---- into the target -----------------------------------------------------------------------------


def test_into_the_target(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords
) -> None:
    left = put_cut(target, zone, source, records)
    assert not target.fs.below(zone).exists("file")
    told = list[int]()
    moved = put(target, zone, source, records, progress=told.append)
    assert moved.object == left and CUT - 9 * MIB <= moved.kept < LENGTH
    assert sum(told) == LENGTH
    check_stored(target, zone, source, records, moved)
    assert put(target, zone, source, records).kept == 0  # that one was complete


def test_a_source_with_another_time(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords
) -> None:
    left = put_cut(target, zone, source, records)
    source.write_bytes(random.Random(4).randbytes(LENGTH))
    moved = put(target, zone, source, records)
    assert moved.kept == 0 and moved.object != left
    check_stored(target, zone, source, records, moved)


def test_a_source_that_has_changed_behind_its_time(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords
) -> None:
    put_cut(target, zone, source, records)
    times = source.stat()
    with source.open("r+b") as file:
        file.seek(2 * MIB + 7)
        file.write(b"changed")
    os.utime(source, ns=(times.st_atime_ns, times.st_mtime_ns))
    moved = put(target, zone, source, records)
    assert moved.kept == 2 * MIB
    check_stored(target, zone, source, records, moved)


def test_an_object_that_has_changed(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords
) -> None:
    left = put_cut(target, zone, source, records)
    target.write(left, 3 * MIB, b"not that")
    moved = put(target, zone, source, records)
    assert (moved.object, moved.kept) == (left, 3 * MIB)
    check_stored(target, zone, source, records, moved)


@pytest.mark.parametrize("mark", [b"", b"0123456789abcdef"])
def test_an_object_that_is_not_the_transfers_is_left_alone(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords, mark: bytes
) -> None:
    """The id was used again, or the transfer has come to its end."""
    left = put_cut(target, zone, source, records)
    target.set_attributes(left, [AttributeValue(*MARK, mark)])
    moved = put(target, zone, source, records)
    assert moved.error is None and moved.kept == 0 and moved.object != left
    assert target.get_attribute(left, *MARK) == mark
    assert len(target.list_objects(zone.partition_id)) == 2


@pytest.mark.parametrize("command", ["equal_bytes", "get_attributes"])
def test_an_object_that_cannot_be_read(
    target: Target,
    zone: ObjectRef,
    source: Path,
    records: TransferRecords,
    monkeypatch: pytest.MonkeyPatch,
    command: str,
) -> None:
    """The transfer begins anew.  The object is removed if it is known to be the transfer's."""
    left = put_cut(target, zone, source, records)

    def damaged(*_: object) -> Iterator[None]:
        raise errors.StorageError(0x3, 0x11, 0, "the storage failed")
        yield

    monkeypatch.setattr(resuming, command, damaged)
    moved = put(target, zone, source, records)
    assert moved.error is None and moved.kept == 0 and moved.object != left
    if command == "get_attributes":
        target.remove(left)
    check_stored(target, zone, source, records, moved)


def test_an_object_that_is_gone(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords
) -> None:
    target.remove(put_cut(target, zone, source, records))
    moved = put(target, zone, source, records)
    assert moved.kept == 0
    check_stored(target, zone, source, records, moved)


@pytest.mark.parametrize(
    "damage",
    [
        lambda data: b"",
        lambda data: data[:20],
        lambda data: b"[" * 4000,
        lambda data: b'{"object": 5, "mark": []}\n',
        lambda data: b'{"object": "0x10000/0x10000", "mark": "xx"}\n',
        lambda data: b'["object"]\n',
        lambda data: os.urandom(10_000),
    ],
)
def test_a_damaged_record(
    target: Target,
    zone: ObjectRef,
    source: Path,
    records: TransferRecords,
    damage: Callable[[bytes], bytes],
) -> None:
    left = put_cut(target, zone, source, records)
    assert records.folder is not None
    (path,) = records.folder.iterdir()
    path.write_bytes(damage(path.read_bytes()))
    moved = put(target, zone, source, records)
    assert moved.kept == 0 and moved.object != left
    target.remove(left)  # nobody knows it any more
    check_stored(target, zone, source, records, moved)


def test_records_that_cannot_be_written(
    target: Target, zone: ObjectRef, source: Path, tmp_path: Path
) -> None:
    (tmp_path / "file").write_bytes(b"")
    nowhere = TransferRecords("target", tmp_path / "file" / "records")
    with pytest.raises(KeyboardInterrupt):
        put(target, zone, source, nowhere, progress=Cut())
    assert target.list_objects(zone.partition_id) == []
    assert put(target, zone, source, nowhere).error is None


def test_two_at_a_time(
    served: Serving, target: Target, zone: ObjectRef, source: Path, records: TransferRecords
) -> None:
    """Only one of them continues what there is; both store the file."""
    put_cut(target, zone, source, records)
    outcomes, gate = list[FileMoved](), threading.Barrier(2)

    def one() -> None:
        with served.connect() as session:
            gate.wait()
            outcomes.append(put(session, zone, source, records))

    threads = [threading.Thread(target=one) for _ in range(2)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()
    assert [each.error for each in outcomes] == [None, None]
    assert outcomes[0].object != outcomes[1].object
    assert sum(each.kept > 0 for each in outcomes) == 1
    assert target.fs.below(zone).read_bytes("file") == source.read_bytes()
    assert len(target.list_objects(zone.partition_id)) == 1


def test_a_source_that_changes_meanwhile(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords
) -> None:
    """The copy would be of two versions, and younger than the source: `osd sync` would leave it."""

    def change(count: int) -> None:
        if source.read_bytes() == content():
            with source.open("r+b") as file:
                file.write(b"changed")
            os.utime(source, (1e9, 1e9))

    moved = put(target, zone, source, records, progress=change)
    assert "changed while it was read" in str(moved.error)
    assert target.list_objects(zone.partition_id) == []
    check_stored(target, zone, source, records, put(target, zone, source, records))


def test_what_is_refused_leaves_nothing(
    target: Target, zone: ObjectRef, source: Path, records: TransferRecords
) -> None:
    target.fs.below(zone).mkdir("file")
    assert isinstance(put(target, zone, source, records).error, errors.IsADirectory)
    assert target.list_objects(zone.partition_id) == []
    assert records.folder is not None and [*records.folder.iterdir()] == []


# ---- from the target -----------------------------------------------------------------------------


class Getting:
    """One file of the target, fetched again and again."""

    def __init__(self, target: Target, zone: ObjectRef, folder: Path, data: bytes) -> None:
        self.target, self.folder = target, folder
        self.folder.mkdir()
        self.fs = target.fs.below(zone)
        self.object = self.fs.write_bytes("file", data)
        self.records = TransferRecords("target", folder.parent / "records")

    def get(self, progress: Callable[[int], None] | None = None) -> FileMoved:
        wanted = [Incoming(self.fs.info("file"), self.folder / "file")]
        stream = get_files(wanted, records=self.records, progress=progress)
        (moved,) = self.target.carry_stream(stream)
        return moved

    def cut(self) -> Path:
        """Returns: the file that is left."""
        with pytest.raises(KeyboardInterrupt):
            self.get(progress=Cut())
        (left,) = self.folder.iterdir()
        assert left.name.startswith(".osd-")
        return left

    def check(self, moved: FileMoved) -> None:
        assert moved.error is None
        assert (self.folder / "file").read_bytes() == self.target.read_range(self.object)
        assert [each.name for each in self.folder.iterdir()] == ["file"]
        assert self.records.folder is not None and [*self.records.folder.iterdir()] == []


@pytest.fixture
def getting(target: Target, zone: ObjectRef, tmp_path: Path, source: Path) -> Getting:
    return Getting(target, zone, tmp_path / "here", source.read_bytes())


def test_from_the_target(getting: Getting) -> None:
    getting.cut()
    told = list[int]()
    moved = getting.get(progress=told.append)
    assert CUT - 9 * MIB <= moved.kept <= CUT and sum(told) == LENGTH
    getting.check(moved)
    assert (getting.folder / "file").stat().st_mode & 0o777 == 0o666 & ~_umask()


def _umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_an_object_of_another_version(getting: Getting) -> None:
    getting.cut()
    getting.target.write(getting.object, 5, b"changed")
    moved = getting.get()
    assert moved.kept == 0
    getting.check(moved)


@pytest.mark.parametrize("length", [None, 0, 2 * MIB + 9])
def test_a_local_part_that_has_changed(getting: Getting, length: int | None) -> None:
    left = getting.cut()
    if length is None:
        with left.open("r+b") as file:
            file.seek(2 * MIB + 100)
            file.write(b"changed")
    else:
        os.truncate(left, length)
    moved = getting.get()
    assert moved.kept == (0 if length == 0 else 2 * MIB)
    getting.check(moved)


def test_a_local_part_that_is_gone(getting: Getting) -> None:
    getting.cut().unlink()
    moved = getting.get()
    assert moved.kept == 0
    getting.check(moved)


def test_a_local_part_that_is_a_link(getting: Getting, tmp_path: Path) -> None:
    """What it leads to stays."""
    left = getting.cut()
    left.rename(tmp_path / "elsewhere")
    before = (tmp_path / "elsewhere").read_bytes()
    left.symlink_to(tmp_path / "elsewhere")
    assert getting.get().kept == 0
    assert (tmp_path / "elsewhere").read_bytes() == before
    assert (getting.folder / "file").read_bytes() == getting.target.read_range(getting.object)


@pytest.mark.parametrize("name", ["../.osd-x", "/etc/passwd", "file", "", 5])
def test_a_record_that_leads_elsewhere(getting: Getting, name: object) -> None:
    getting.cut().unlink()
    record = getting.records.open("from", str(getting.object), str(getting.folder / "file"))
    assert record is not None and record.facts["version"]
    record.begin(record.facts | {"temporary": name})
    record.close()
    moved = getting.get()
    assert moved.kept == 0
    getting.check(moved)


# ---- the target ends -----------------------------------------------------------------------------


def test_the_target_is_killed(tmp_path: Path, source: Path, records: TransferRecords) -> None:
    if why := missing():
        unavailable("tgtd", why)
    own = Serving("--no-sandboxes")
    try:

        class Kill(Cut):
            """The target dies, and stays away: one that is started again would serve the rest."""

            def __init__(self, gate: Gate) -> None:
                super().__init__()
                self.gate = gate

            def __call__(self, count: int) -> None:
                self.left -= count
                if self.left <= 0 < self.left + count:
                    own.kill("tgtd")
                    self.gate.shut()

        with own.connect() as target:
            zone = ref(target.create_partition())
        with (
            Gate(own.url) as gate,
            connect(gate.url, local=False, reconnect_timeout=0.0) as target,
            pytest.raises(errors.Unreachable),
        ):
            put(target, zone, source, records, progress=Kill(gate))
        own.restarted()
        with own.connect() as target:
            moved = put(target, zone, source, records)
            assert moved.kept >= CUT - 9 * MIB
            check_stored(target, zone, source, records, moved)
            info = target.fs.below(zone).info("file")
        own.kill("tgtd")  # gives data that were just written another version
        own.restarted()
        wanted = [Incoming(info, tmp_path / "back")]
        with (
            Gate(own.url) as gate,
            connect(gate.url, local=False, reconnect_timeout=0.0) as target,
            pytest.raises(errors.Unreachable),
        ):
            list(target.carry_stream(get_files(wanted, records=records, progress=Kill(gate))))
        own.restarted()
        with own.connect() as target:
            (got,) = target.carry_stream(get_files(wanted, records=records))
            assert got.kept >= CUT - 9 * MIB
        assert (tmp_path / "back").read_bytes() == source.read_bytes()
    finally:
        own.stop(check=False)
