# SPDX-License-Identifier: GPL-2.0-or-later
"""SET ATTRIBUTES of a logical length on a disk that fails: what is acknowledged holds, at once and after a
kill, and what is refused has not happened.
"""

from __future__ import annotations

import errno
import os
import struct
from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH
from pyosd.wire.cdb import AttributeLists
from tests.harness import Harness, program

LENGTH = 86


class Disk:
    """A store whose data files can be broken: changes of them fail with an errno."""

    def __init__(self, library: Path, folder: Path) -> None:
        self.switch = folder / "switch"
        self.breaks(0)
        variables = {"LD_PRELOAD": str(library), "IOSD_FAULT_SWITCH": str(self.switch)}
        options = {"dir": folder / "store"}
        self.harness = Harness(program(), options, folder / "log", os.environ | variables)

    def breaks(self, error: int) -> None:
        mode = "r+b" if self.switch.exists() else "wb"
        with self.switch.open(mode) as file:
            file.write(struct.pack("@Q", error))


@pytest.fixture
def disk(library: Path, tmp_path: Path) -> Iterator[Disk]:
    made = Disk(library, tmp_path)
    yield made
    made.harness.kill()


def set_length(disk: Disk, obj: ObjectRef, length: int) -> bool:
    value = AttributeValue(LOGICAL_LENGTH.page, LOGICAL_LENGTH.number, length.to_bytes(8, "big"))
    reply = disk.harness.osd.reply(rq.set_attributes(obj, attributes=AttributeLists((), (value,))))
    return reply.error is None


def content(disk: Disk, obj: ObjectRef) -> bytes:
    return bytes(disk.harness.osd.read(obj, 0, 1 << 20))


@pytest.mark.parametrize("error", [errno.EIO, errno.ENOSPC])
@pytest.mark.parametrize("before", [b"", b"x" * 20, b"y" * 200], ids=["none", "less", "more"])
def test_what_is_acknowledged_holds(disk: Disk, before: bytes, error: int) -> None:
    osd = disk.harness.osd
    obj = osd.create(osd.create_partition())
    if before:
        osd.write(obj, 0, before)
    disk.breaks(error)
    done = set_length(disk, obj, LENGTH)
    assert int(osd.get_attribute(obj, LOGICAL_LENGTH.page, LOGICAL_LENGTH.number).hex(), 16) == (
        LENGTH if done else len(before)
    )
    disk.breaks(0)
    wanted = before[:LENGTH].ljust(LENGTH, b"\0") if done else before
    assert content(disk, obj) == wanted
    disk.harness.kill()
    disk.harness.start()
    assert content(disk, obj) == wanted
    disk.harness.osd.append(obj, b"end")
    assert content(disk, obj) == wanted + b"end"
    disk.harness.finish()


def test_what_was_cut_off_does_not_come_back(disk: Disk) -> None:
    """The files could not be cut; the object grows over what is still in them."""
    osd = disk.harness.osd
    obj = osd.create_and_write(osd.create_partition(), b"secret" * 100)
    disk.breaks(errno.EIO)
    wanted = b"secret" * 100
    for length in (10, 500, 20, 300):
        if set_length(disk, obj, length):
            wanted = wanted[:length].ljust(length, b"\0")
    disk.breaks(0)
    if set_length(disk, obj, 700):
        wanted = wanted.ljust(700, b"\0")
    assert content(disk, obj) == wanted
    disk.harness.kill()
    disk.harness.start()
    assert content(disk, obj) == wanted
    disk.harness.finish()
