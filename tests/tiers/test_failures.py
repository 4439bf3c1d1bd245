# SPDX-License-Identifier: GPL-2.0-or-later
"""One device of two fails: reads and writes say which half it has, what lies on the other is served,
and no acknowledged byte is lost or mixed with what was there before.

A head has 4,096 bytes here.  The devices fail below the target, in the calls it makes (interpose.c).
"""

from __future__ import annotations

import errno
import shutil
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli import store as tools
from iosd_host.store_tools.format.superblock import Superblock
from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH, Page
from pyosd.wire.cdb import AttributeLists, Options
from pyosd.wire.reply import Reply
from tests.expect import OK, Outcome, check
from tests.harness import Harness, StartFailed
from tests.soak.faults import interposer
from tests.tiers.two_roots import Device, TwoRoots
from tests.waiting import until

HEAD = 4096
LONG = 3 * HEAD
OLD, NEW = b"o", b"n"
FAILED = Outcome("a half failed", 3, 0x11, 0x00)
ABSENT = Outcome("the head's device is absent", 4, 0x3A, 0x00)
SLOW_S = 0.4


@pytest.fixture(scope="module")
def library(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return interposer(tmp_path_factory.mktemp("interpose"))


@pytest.fixture
def store(tmp_path: Path, library: Path) -> TwoRoots:
    return TwoRoots(tmp_path, HEAD, library)


@pytest.fixture
def harness(store: TwoRoots) -> Iterator[Harness]:
    made = store.serve()
    yield made
    for each in (store.slow_one, store.fast_one):
        each.mend()
    made.finish()


@pytest.fixture
def obj(harness: Harness) -> ObjectRef:
    """With bytes in both halves."""
    return harness.osd.create_and_write(harness.osd.create_partition(), OLD * LONG)


def failed_at(reply: Reply, outcome: Outcome = FAILED) -> int:
    """Offset of the half that failed, from the sense data."""
    check(reply, outcome)
    assert reply.sense is not None
    assert reply.sense.information is not None
    return reply.sense.information


def device_of(store: TwoRoots, half: str) -> Device:
    return store.fast_one if half == "head" else store.slow_one


# ---- while it runs


@pytest.mark.parametrize(("half", "at"), [("head", 5), ("tail", HEAD)])
def test_read_says_which_half_failed(
    store: TwoRoots, harness: Harness, obj: ObjectRef, half: str, at: int
) -> None:
    osd = harness.osd
    device_of(store, half).break_(reads=errno.EIO)
    assert failed_at(osd.reply(rq.read(obj, 5, LONG - 5))) == at
    other = rq.read(obj, 0, HEAD) if half == "tail" else rq.read(obj, HEAD, LONG - HEAD)
    check(osd.reply(other), OK)
    inside = (9, 7) if half == "head" else (HEAD + 9, 7)
    assert failed_at(osd.reply(rq.read(obj, *inside))) == inside[0]
    pieces = [(2 * HEAD, 8), (17, 8)]
    assert failed_at(osd.reply(rq.read_pieces(obj, pieces))) == (17 if half == "head" else HEAD)
    device_of(store, half).mend()
    assert osd.read(obj, 0, LONG) == OLD * LONG


@pytest.mark.parametrize(("half", "at"), [("head", 100), ("tail", HEAD)])
def test_half_of_a_write_fails(
    store: TwoRoots, harness: Harness, obj: ObjectRef, half: str, at: int
) -> None:
    """Its range may hold a mixture; nothing else has changed, also after a crash."""
    osd = harness.osd
    device_of(store, half).break_(changes=errno.EIO)
    assert failed_at(osd.reply(rq.write(obj, 100, NEW * LONG))) == at
    device_of(store, half).mend()
    for _ in range(2):
        data = harness.osd.read(obj, 0, 2 * LONG)
        assert data[:100] == OLD * 100
        assert set(data[100:LONG]) <= {OLD[0], NEW[0]}
        assert set(data[LONG:]) <= {NEW[0], 0}, "what was not acknowledged, and nothing else"
        harness.kill()
        harness.start()
    harness.osd.write(obj, 0, NEW * LONG)
    assert harness.osd.read(obj, 0, LONG) == NEW * LONG


def test_append_and_flush_say_which_half_failed(
    store: TwoRoots, harness: Harness, obj: ObjectRef
) -> None:
    store.slow_one.break_(changes=errno.EIO)
    assert failed_at(harness.osd.reply(rq.append(obj, b"more"))) == LONG
    assert failed_at(harness.osd.reply(rq.flush(obj))) == HEAD
    store.slow_one.mend()
    store.fast_one.break_(changes=errno.EIO)
    assert failed_at(harness.osd.reply(rq.flush(obj))) == 0
    check(harness.osd.reply(rq.flush_osd()), FAILED)
    short = harness.osd.create(obj.partition_id)
    assert failed_at(harness.osd.reply(rq.write(short, LONG, NEW))) == HEAD - 1
    store.fast_one.mend()
    assert failed_at(harness.osd.reply(rq.flush(obj))) == 0, "what was not written may be lost"
    check(harness.osd.reply(rq.flush_osd()), FAILED)
    assert harness.osd.read(obj, 0, LONG) == OLD * LONG


def test_both_devices_are_asked_at_once(store: TwoRoots, harness: Harness, obj: ObjectRef) -> None:
    """Both slow: a request to both takes as long as to one of them."""
    for each in (store.slow_one, store.fast_one):
        each.break_(delay_s=SLOW_S)

    def at_once(request: Callable[[], object]) -> bool:
        start = time.monotonic()
        request()
        took = time.monotonic() - start
        assert took >= SLOW_S
        return took < 2 * SLOW_S

    # A busy machine may add its own: one after the other they would never be as fast.
    until(lambda: at_once(lambda: harness.osd.read(obj, HEAD - 10, 20)))
    until(lambda: at_once(lambda: harness.osd.write(obj, HEAD - 10, NEW * 20)))
    for each in (store.slow_one, store.fast_one):
        each.mend()
    assert harness.osd.read(obj, 0, LONG) == OLD * (HEAD - 10) + NEW * 20 + OLD * (2 * HEAD - 10)


@pytest.mark.parametrize("slow", ["head", "tail"])
def test_a_slow_device_delays_what_is_on_it(
    store: TwoRoots, harness: Harness, obj: ObjectRef, slow: str
) -> None:
    halves = {"head": 0, "tail": HEAD}
    device_of(store, slow).break_(delay_s=2 * SLOW_S)
    delayed = halves.pop(slow)
    (other,) = halves.values()

    def is_served_meanwhile() -> bool:
        start = time.monotonic()
        with ThreadPoolExecutor() as threads:
            waits = threads.submit(harness.osd.read, obj, delayed, HEAD)
            assert harness.osd.read(obj, other, HEAD) == OLD * HEAD
            meanwhile = not waits.done()
            assert waits.result() == OLD * HEAD
        assert time.monotonic() - start >= 2 * SLOW_S
        return meanwhile

    until(is_served_meanwhile)  # a busy machine may add a delay of its own


@pytest.mark.parametrize("gone", ["head", "tail"])
def test_gone_while_running(store: TwoRoots, harness: Harness, obj: ObjectRef, gone: str) -> None:
    """Attributes and the other device are served; what was removed meanwhile does not come back."""
    osd, partition = harness.osd, obj.partition_id
    doomed = osd.create_and_write(partition, OLD * LONG)
    small = osd.create_and_write(partition, OLD * 10)
    osd.flush_osd()
    device_of(store, gone).go()
    assert length_of(osd, obj) == LONG
    late = osd.create(partition)
    if gone == "head":
        failed_at(osd.reply(rq.read(small, 0, 10)))
        failed_at(osd.reply(rq.write(late, 0, NEW)))
        assert osd.read(obj, HEAD, HEAD) == OLD * HEAD
        osd.write(obj, HEAD, NEW * HEAD)
    else:
        assert osd.read(small, 0, 10) == OLD * 10
        osd.write(late, 0, NEW)
        failed_at(osd.reply(rq.read(obj, HEAD, HEAD)))
        assert osd.read(obj, 0, HEAD) == OLD * HEAD
    osd.remove(doomed)
    harness.kill()
    device_of(store, gone).mend()
    harness.start()
    osd = harness.osd
    assert osd.read(small, 0, 10) == OLD * 10
    middle = (NEW if gone == "head" else OLD) * HEAD
    assert osd.read(obj, 0, LONG) == OLD * HEAD + middle + OLD * HEAD
    assert bytes(osd.read(late, 0, 10)) == (b"" if gone == "head" else NEW)
    assert not exists(osd, doomed)
    until(lambda: not left(store, doomed), "files of a removed object stay")


def length_of(osd: Commands, obj: ObjectRef) -> int:
    return int.from_bytes(osd.get_attribute(obj, LOGICAL_LENGTH.page, LOGICAL_LENGTH.number), "big")


def exists(osd: Commands, obj: ObjectRef) -> bool:
    return obj in osd.list_objects(obj.partition_id)


def left(store: TwoRoots, obj: ObjectRef) -> list[Path]:
    """Files of an object."""
    name = f"**/{obj.object_id:016x}.*"
    return [file for root in (store.data, store.ssd) for file in (root / "data").glob(name)]


@pytest.mark.parametrize(("half", "at"), [("head", 0), ("tail", HEAD)])
def test_lost_file_is_not_read_as_zeros(
    store: TwoRoots, harness: Harness, obj: ObjectRef, half: str, at: int
) -> None:
    """The device works, and what was on it is gone: files of another generation, or none."""
    (lost,) = (file for file in left(store, obj) if file.name.endswith(half[0]))
    harness.finish()
    lost.unlink()
    harness.start()
    assert failed_at(harness.osd.reply(rq.read(obj, 0, LONG))) == at
    other = HEAD - at
    assert harness.osd.read(obj, other, HEAD) == OLD * HEAD
    for request in (rq.write(obj, at + 10, NEW), rq.clear(obj, at + 10, 1)):
        assert failed_at(harness.osd.reply(request)) == at + 10
    if half == "tail":
        assert failed_at(harness.osd.reply(rq.append(obj, NEW))) == LONG
    check(harness.osd.reply(rq.copy_user_object(obj, obj.partition_id)), FAILED)
    check(harness.osd.reply(rq.punch(obj, other, 1)), FAILED)
    harness.osd.write(obj, LONG - 1, NEW if half == "head" else b"")
    assert failed_at(harness.osd.reply(rq.read(obj, at, 1))) == at, "the lost bytes are no zeros"
    assert length_of(harness.osd, obj) == LONG
    harness.osd.write(obj, 0, NEW * LONG)
    assert harness.osd.read(obj, 0, LONG) == NEW * LONG, "it is made again"


# ---- both are synced


@pytest.mark.parametrize("how", ["fua", "object", "partition", "everything"])
def test_flush_and_fua_cover_both_devices(
    store: TwoRoots, harness: Harness, obj: ObjectRef, how: str
) -> None:
    osd, devices = harness.osd, (store.slow_one, store.fast_one)
    osd.flush(obj)
    before = [each.syncs() for each in devices]
    osd.write(obj, HEAD - 10, NEW * 20)
    assert [each.syncs() for each in devices] == before
    requests = {
        "fua": rq.write(obj, HEAD - 5, NEW * 10, options=Options(fua=True)),
        "object": rq.flush(obj),
        "partition": rq.flush_partition(obj.partition_id),
        "everything": rq.flush_osd(),
    }
    check(osd.reply(requests[how]), OK)
    assert all(each.syncs() > was for each, was in zip(devices, before, strict=True))
    store.slow_one.break_(changes=errno.EIO)
    check(osd.reply(requests[how]), FAILED)


# ---- at the start


def test_absent_at_start(store: TwoRoots, harness: Harness, obj: ObjectRef) -> None:
    """Refused, or what lies elsewhere is served; when it is back nothing is missing."""
    partition = obj.partition_id
    small = harness.osd.create_and_write(partition, OLD * 10)
    doomed = harness.osd.create_and_write(partition, OLD * LONG)
    harness.kill()  # so their lengths are only in the files
    away = store.folder / "away"
    store.ssd.rename(away)
    with pytest.raises(StartFailed, match="absent or empty"):
        store.serve()
    store.ssd.mkdir()  # where it would be mounted
    with pytest.raises(StartFailed, match="on_ssd_loss=read-through"):
        store.serve()
    assert list(store.ssd.iterdir()) == []

    without = store.serve(on_ssd_loss="read-through")
    osd = without.osd
    assert length_of(osd, obj) == LONG
    assert osd.read(obj, HEAD, LONG) == OLD * (LONG - HEAD)
    assert failed_at(osd.reply(rq.read(obj, 7, LONG)), ABSENT) == 7
    assert failed_at(osd.reply(rq.read(small, 0, 10)), ABSENT) == 0, "not as if it were empty"
    assert failed_at(osd.reply(rq.write(obj, 9, NEW)), ABSENT) == 9
    late = osd.create(partition)
    osd.write(late, 3, NEW * HEAD)
    assert osd.get_attribute(late, Page.HEAD, 2) == b"\2", "its head is on the hard disk"
    osd.write(obj, HEAD, NEW * HEAD, options=Options(fua=True))
    osd.flush_osd()
    osd.remove(doomed)
    without.finish()
    assert list(store.ssd.iterdir()) == []

    store.ssd.rmdir()
    away.rename(store.ssd)
    harness.start()
    assert harness.osd.read(obj, 0, LONG) == OLD * HEAD + NEW * HEAD + OLD * HEAD
    assert harness.osd.read(small, 0, 20) == OLD * 10
    assert harness.osd.read(late, 0, LONG) == bytes(3) + NEW * HEAD
    harness.finish()
    result = CliRunner().invoke(tools.check, ["--data", str(store.data), "--ssd", str(store.ssd)])
    assert result.exit_code == 0, result.output
    harness.start()


@pytest.mark.parametrize("works", ["after a start", "while it runs"])
def test_a_file_cannot_be_read_at_start(
    store: TwoRoots, harness: Harness, obj: ObjectRef, works: str
) -> None:
    """After a kill: its object fails, others are served; later nothing is missing."""
    partition = obj.partition_id
    small = harness.osd.create_and_write(partition, OLD * 10)
    cut = harness.osd.create_and_write(partition, OLD * LONG)
    shorter = AttributeValue(*LOGICAL_LENGTH, (HEAD + 5).to_bytes(8, "big"))
    harness.osd.set_attributes(cut, [shorter])
    harness.osd.append(obj, OLD * LONG)
    harness.kill()  # so the length of the first is only in its files
    store.slow_one.break_(names=errno.EIO)
    harness.start()
    osd = harness.osd
    assert osd.read(small, 0, 10) == OLD * 10
    assert osd.read(cut, 0, HEAD) == OLD * HEAD
    assert failed_at(osd.reply(rq.read(cut, HEAD, 1))) == HEAD
    empty = AttributeValue(*LOGICAL_LENGTH, bytes(8))
    for request in (
        rq.read(obj, 0, 10),
        rq.write(obj, 0, NEW),
        rq.append(obj, NEW),
        rq.set_attributes(obj, attributes=AttributeLists((), (empty,))),
    ):
        check(osd.reply(request), FAILED)
    late = osd.create_and_write(partition, NEW * 10)
    doomed = osd.create_and_write(partition, NEW * 10)
    osd.remove(doomed)
    if works == "while it runs":
        store.slow_one.mend()
        osd.flush_osd()
        check(osd.reply(rq.read(obj, 0, 10)), FAILED)
    harness.finish()
    store.slow_one.mend()
    harness.start()
    for whole, data in ((obj, OLD * 2 * LONG), (cut, OLD * (HEAD + 5)), (late, NEW * 10)):
        assert harness.osd.read(whole, 0, 3 * LONG) == data
    harness.finish()
    result = CliRunner().invoke(tools.check, ["--data", str(store.data), "--ssd", str(store.ssd)])
    assert result.exit_code == 0, result.output
    harness.start()


def test_data_directory_absent_at_start(store: TwoRoots, harness: Harness) -> None:
    """Nothing is formatted in its place."""
    harness.finish()
    away = store.folder / "away"
    store.data.rename(away)
    store.data.mkdir()
    with pytest.raises(StartFailed, match="bring back the data directory"):
        store.serve(on_ssd_loss="read-through")
    assert list(store.data.iterdir()) == []
    store.data.rmdir()
    away.rename(store.data)
    harness.start()


def test_killed_while_it_starts(store: TwoRoots, harness: Harness, obj: ObjectRef) -> None:
    """At each change of the superblocks in turn: the two roots still fit."""
    harness.finish()
    superblock = store.data / "superblock"
    opening = Superblock.decode(superblock.read_bytes()).opening
    for at in range(1, 100):
        store.variables["IOSD_FAULT"] = f"disk:start:{at}:kill"
        with pytest.raises(StartFailed):
            store.serve()
        block = Superblock.decode(superblock.read_bytes())
        if block.opening > opening and not block.begun:
            break  # in both, and the main root knows that it is
    assert at > 6, "each of the three is written, synced and renamed"
    store.variables.pop("IOSD_FAULT")
    harness.start()
    assert harness.osd.read(obj, 0, LONG) == OLD * LONG


@pytest.mark.parametrize("stale", ["head", "tail"])
@pytest.mark.parametrize("ends", ["cleanly", "killed"])
def test_stale_return(
    store: TwoRoots, harness: Harness, obj: ObjectRef, stale: str, ends: str
) -> None:
    """A device as it was before the target was started last is never taken for the present one."""
    root = store.ssd if stale == "head" else store.data
    newest, copy = store.folder / "newest", store.folder / "copy"
    harness.finish()
    shutil.copytree(root, copy)
    harness.start()
    harness.osd.write(obj, 0, NEW * LONG)
    harness.finish() if ends == "cleanly" else harness.kill()
    root.rename(newest)
    copy.rename(root)
    for options in ({}, {"on_ssd_loss": "read-through"}):
        with pytest.raises(StartFailed, match="is an older copy"):
            store.serve(**options)
    result = CliRunner().invoke(tools.check, ["--data", str(store.data), "--ssd", str(store.ssd)])
    assert result.exit_code == 78
    assert f"'{root}' is an older copy" in result.stderr
    shutil.rmtree(root)
    newest.rename(root)
    harness.start()
    assert harness.osd.read(obj, 0, LONG) == NEW * LONG
