# SPDX-License-Identifier: GPL-2.0-or-later
"""The promise of a flush, seen from below: data files are synced on request, and not before.  (That
the log is synced too, and in order, only a power loss would show.)  After a sync of the log has failed,
nothing is promised any more.
"""

from __future__ import annotations

import errno
import mmap
import struct
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.commands import Commands
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Options
from tests.expect import OK, Outcome, check
from tests.harness import Harness, program
from tests.tiers.two_roots import NUMBERS, Device

DATA = b"f" * 10_000
FAILED = Outcome("the database failed", 3, 0x11, 0x00)


class Synced:
    """A harness, and how often it has synced a data file."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.file = folder / "syncs"
        variables = {"LD_PRELOAD": str(library), "IOSD_SYNC_COUNT": str(self.file)}
        self.harness = Harness(program(), {"dir": folder / "store"}, folder / "log", variables)
        self.osd: Commands = self.harness.osd

    def count(self) -> int:
        return int(struct.unpack("@Q", self.file.read_bytes())[0])


@pytest.fixture
def synced(library: Path, tmp_path: Path) -> Iterator[Synced]:
    made = Synced(library, tmp_path)
    yield made
    made.harness.finish()


FLUSHES: dict[str, Callable[[Commands, ObjectRef], object]] = {
    "object": lambda osd, obj: osd.flush(obj),
    "partition": lambda osd, obj: osd.flush_partition(obj.partition_id),
    "everything": lambda osd, obj: osd.flush_osd(),
}


def test_flush_syncs_what_was_written(synced: Synced) -> None:
    """Each kind of flush, and nothing before it."""
    partition = synced.osd.create_partition()
    for flush in FLUSHES.values():
        obj = synced.osd.create_and_write(partition, DATA)
        flush(synced.osd, obj)  # the folders of a new file are synced with it
        before = synced.count()
        synced.osd.write(obj, 5, DATA)
        assert synced.count() == before, "nobody asked for it"
        flush(synced.osd, obj)
        assert synced.count() > before


def test_fua_syncs_before_it_answers(synced: Synced) -> None:
    obj = synced.osd.create_and_write(synced.osd.create_partition(), DATA)
    synced.osd.flush(obj)
    before = synced.count()
    check(synced.osd.reply(rq.write(obj, 0, DATA, options=Options(fua=True))), OK)
    assert synced.count() > before


@pytest.fixture
def database(tmp_path: Path) -> Device:
    """The folder of the database."""
    shared = tmp_path / "device"
    shared.write_bytes(bytes(NUMBERS * 8))
    with shared.open("r+b") as file:
        return Device(mmap.mmap(file.fileno(), 0), 0)


@pytest.fixture
def harness(library: Path, tmp_path: Path, database: Device) -> Iterator[Harness]:
    variables = {
        "LD_PRELOAD": str(library),
        "IOSD_DEVICES": f"{tmp_path / 'device'}:{tmp_path / 'store' / 'db'}",
    }
    made = Harness(program(), {"dir": tmp_path / "store"}, tmp_path / "log", variables)
    yield made
    made.finish()


@pytest.mark.parametrize("number", [errno.EIO, errno.ENOSPC])
def test_no_flush_succeeds_after_a_sync_of_the_log_failed(
    harness: Harness, database: Device, number: int
) -> None:
    """The kernel reports a lost write once: the next sync would succeed without its bytes."""
    osd = harness.osd
    obj = osd.create_and_write(osd.create_partition(), DATA)
    database.break_(changes=number)
    check(osd.reply(rq.flush(obj)), FAILED)
    database.mend()
    fua = rq.write(obj, 0, DATA, options=Options(fua=True))
    for request in (rq.flush(obj), rq.flush_osd(), fua, rq.punch(obj, 0, 10)):
        check(osd.reply(request), FAILED)
    osd.write(obj, 0, DATA)
    assert osd.read(obj, 0, len(DATA)) == DATA
    harness.kill()
    harness.start()
    for flush in FLUSHES.values():
        flush(harness.osd, obj)
