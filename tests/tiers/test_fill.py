# SPDX-License-Identifier: GPL-2.0-or-later
"""An SSD that fills up: new heads go to the hard disk, and nothing is refused while that has room."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH
from pyosd.wire.cdb import AttributeLists
from tests.expect import QUOTA, check
from tests.harness import Harness, program
from tests.tiers.placement import (
    HDD,
    HEAD_ON,
    HEAD_SIZE,
    HIGH,
    LOW,
    ON_HDD,
    ON_SSD,
    SSD,
    SSD_FREE,
    SSD_TOTAL,
    files,
    head,
    heads,
    set_heads,
    small_ssd,
)
from tests.waiting import until

HEAD = 64 << 10
DISK = 4 << 20
LONG = 3 * HEAD


@pytest.fixture
def ssd(tmp_path: Path) -> Iterator[Path]:
    with small_ssd(tmp_path / "ssd", f"size={DISK},nr_inodes=400") as folder:
        yield folder


@pytest.fixture
def harness(tmp_path: Path, ssd: Path) -> Iterator[Harness]:
    marks = {"head_high": 95, "head_low": 90}
    options = {"dir": tmp_path / "data", "ssd": ssd, "head_size": HEAD} | marks
    made = Harness(program(), options, tmp_path / "log")
    yield made
    made.finish()


def content(number: int, length: int = LONG) -> bytes:
    return bytes((number * 7 + at // 1024) % 251 for at in range(0, length, 1024)) * 1024


def check_all(osd: Commands, objects: list[ObjectRef]) -> None:
    for number, obj in enumerate(objects):
        assert osd.read(obj, 0, LONG) == content(number), obj


def test_above_the_high_water_mark(harness: Harness, ssd: Path) -> None:
    """There is always room; below the low-water mark heads come back."""
    osd = harness.osd
    partition = osd.create_partition()
    objects = [osd.create_and_write(partition, content(number)) for number in range(80)]
    places = [head(osd, each, HEAD_ON) for each in objects]
    assert places == [SSD] * places.count(SSD) + [HDD] * places.count(HDD)
    assert 0 < places.count(HDD) < 30
    assert heads(osd, SSD_TOTAL) == DISK
    assert heads(osd, SSD_FREE) <= DISK * 0.06 + HEAD
    assert heads(osd, ON_SSD) == places.count(SSD) * HEAD
    assert heads(osd, ON_HDD) == places.count(HDD) * HEAD
    check_all(osd, objects)
    harness.kill()
    harness.start()
    osd = harness.osd
    assert heads(osd, ON_HDD) == places.count(HDD) * HEAD
    for _ in range(30):
        osd.remove(objects.pop())
    until(lambda: heads(osd, ON_HDD) == 0)
    assert {head(osd, each, HEAD_ON) for each in objects} == {SSD}
    until(lambda: files(ssd) == len(objects))
    check_all(osd, objects)


def fill_up(folder: Path) -> Path:
    """Somebody else takes the rest."""
    filler = folder / "filler"
    with filler.open("wb", buffering=0) as file, contextlib.suppress(OSError):
        while True:
            file.write(bytes(4096))
    return filler


def test_full_under_a_head(harness: Harness, ssd: Path) -> None:
    """Heads that are there: what grows, fills a hole or is punched goes to the hard disk."""
    osd = harness.osd
    partition = osd.create_partition()
    objects = [osd.create_and_write(partition, b"x" * 5000) for _ in range(5)]
    set_heads(osd, HIGH, 99)
    sparse = osd.create(partition)
    osd.write(sparse, HEAD - 1, b"s")
    lasting = osd.create_and_write(partition, b"l" * 4096)
    fill_up(ssd)
    grows, appends, punched, cleared, copied = objects
    for each in (grows, sparse, lasting):
        assert head(osd, each, HEAD_ON) == SSD
    osd.write(grows, 5000, b"y" * LONG)
    osd.append(appends, b"z" * LONG)
    osd.write(sparse, 100, b"t" * 20_000)
    osd.punch(punched, 10, 20)
    osd.clear(cleared, 100, LONG)
    copy = osd.copy(copied, partition)
    osd.write(lasting, 0, b"m" * 4096)
    assert osd.read(grows, 0, 1 << 20) == b"x" * 5000 + b"y" * LONG
    assert osd.read(appends, 0, 1 << 20) == b"x" * 5000 + b"z" * LONG
    assert osd.read(sparse, 0, HEAD) == bytes(100) + b"t" * 20_000 + bytes(HEAD - 20_101) + b"s"
    assert osd.read(punched, 0, 1 << 20) == b"x" * 4980
    assert osd.read(cleared, 0, 200) == b"x" * 100 + bytes(100)
    assert osd.read(copy, 0, 1 << 20) == b"x" * 5000
    for each in (grows, appends, sparse, copy):
        assert head(osd, each, HEAD_ON) == HDD, each
    assert head(osd, lasting, HEAD_ON) == SSD, "nothing was needed for it"


def test_no_inode_is_left(harness: Harness, ssd: Path) -> None:
    """Bytes are free, but no file can be made: by each of the commands that make one."""
    osd = harness.osd
    partition = osd.create_partition()
    made, source = osd.create(partition), osd.create_and_write(partition, b"c" * 100)
    fillers = []
    with contextlib.suppress(OSError):
        for number in range(1000):
            (ssd / f"filler{number}").touch()
            fillers.append(ssd / f"filler{number}")
    osd.write(made, 0, b"w" * LONG)
    with_data = osd.create_and_write(partition, b"d" * LONG)
    copy = osd.copy(source, partition)
    appended, extended = osd.create(partition), osd.create(partition)
    osd.append(appended, b"a" * 10)
    length = AttributeValue(*LOGICAL_LENGTH, LONG.to_bytes(8, "big"))
    osd.set_attributes(extended, [length])
    osd.write(extended, 5, b"e")
    for obj, wanted in (
        (made, b"w" * LONG),
        (with_data, b"d" * LONG),
        (copy, b"c" * 100),
        (appended, b"a" * 10),
        (extended, bytes(5) + b"e" + bytes(LONG - 6)),
    ):
        assert osd.read(obj, 0, LONG) == wanted
        assert head(osd, obj, HEAD_ON) == HDD
        assert head(osd, obj, HEAD_SIZE) == HEAD
    for each in fillers:
        each.unlink()
    set_heads(osd, LOW, 90)
    until(lambda: heads(osd, ON_HDD) == 0)
    assert osd.read(made, 0, LONG) == b"w" * LONG


def test_only_the_hard_disk_is_full(tmp_path: Path) -> None:
    """Bytes for the SSD are still accepted; bytes after the head are refused."""
    with small_ssd(tmp_path / "disk", "size=48m") as disk:
        (tmp_path / "ssd").mkdir()
        options = {"dir": disk / "data", "ssd": tmp_path / "ssd", "head_size": HEAD}
        harness = Harness(program(), options | {"cache": "4MiB"}, tmp_path / "log")
        osd = harness.osd
        partition = osd.create_partition()
        long, small = osd.create_and_write(partition, b"l" * LONG), osd.create(partition)
        filler = fill_up(disk)
        reply = osd.reply(rq.write(long, LONG, bytes(1 << 20)))
        assert reply.error, "behind the head nothing is free"
        osd.write(long, 5, b"n")
        filler.unlink()
        write = rq.write(small, 0, b"s" * 100)
        until(lambda: osd.reply(write).error is None)  # the target looks once a second
        assert osd.read(long, 0, LONG + 1) == b"l" * 5 + b"n" + b"l" * (LONG - 6)
        harness.finish()


def take_inodes(folder: Path) -> list[Path]:
    """Until no file can be made any more."""
    fillers = []
    with contextlib.suppress(OSError):
        for number in range(2000):
            (folder / f"filler{number}").touch()
            fillers.append(folder / f"filler{number}")
    return fillers


def test_both_devices_are_full(tmp_path: Path) -> None:
    """A new length needs no space at once: the bytes are zeros, and a write is refused for lack of
    space."""
    with (
        small_ssd(tmp_path / "ssd", "size=4m,nr_inodes=400") as ssd,
        small_ssd(tmp_path / "disk", "size=48m,nr_inodes=1000") as disk,
    ):
        options = {"dir": disk / "data", "ssd": ssd, "head_size": HEAD}
        harness = Harness(program(), options | {"cache": "4MiB"}, tmp_path / "log")
        osd = harness.osd
        partition = osd.create_partition()
        fresh, short = osd.create(partition), osd.create_and_write(partition, b"s" * 100)
        fillers = take_inodes(ssd) + take_inodes(disk)
        for obj, start in ((fresh, b""), (short, b"s" * 100)):
            wanted = start + bytes(LONG - len(start))
            osd.set_attributes(obj, [AttributeValue(*LOGICAL_LENGTH, LONG.to_bytes(8, "big"))])
            assert osd.read(obj, 0, LONG) == wanted
            assert osd.read(obj, HEAD - 5, 10) == bytes(10)
            check(osd.reply(rq.write(obj, HEAD, b"w")), QUOTA)
            longer = AttributeValue(*LOGICAL_LENGTH, (2 * LONG).to_bytes(8, "big"))
            check(
                osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), (longer,)))), QUOTA
            )
            assert osd.read(obj, 0, LONG) == wanted
        for each in fillers:
            each.unlink()
        write = rq.write(fresh, HEAD - 1, b"ww")
        until(lambda: osd.reply(write).error is None)  # the target looks once a second
        assert bytes(osd.read(fresh, HEAD - 2, 4)) == b"\0ww\0"
        assert osd.read(short, 0, LONG) == b"s" * 100 + bytes(LONG - 100)
        harness.finish()
