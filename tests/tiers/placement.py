# SPDX-License-Identifier: GPL-2.0-or-later
"""Common parts of tests of placement: a small SSD, and the attributes that show and move heads."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from click.testing import CliRunner

from iosd_host.cli import store as tools
from pyosd.commands import Commands
from pyosd.types import ROOT, AttributeValue, ObjectRef
from pyosd.wire.attributes import Page
from tests.machine import unavailable

HEAD_SIZE, HEAD_ON, SSD_BYTES, HDD_BYTES = range(1, 5)
"""Of page 2000_0004h."""
NOWHERE, SSD, HDD = range(3)
(SIZE, POLICY, HIGH, LOW, RATE, DRAIN) = range(1, 7)
"""Of page B000_0003h."""
SSD_TOTAL, SSD_FREE, HDD_TOTAL, HDD_FREE, ON_SSD, ON_HDD, TO_SSD, TO_HDD = range(7, 15)


@contextmanager
def small_ssd(folder: Path, options: str) -> Iterator[Path]:
    """A file system in memory, by options of its mount."""
    folder.mkdir()
    command = ["mount", "-t", "tmpfs", "-o", options, "tmpfs", str(folder)]
    if subprocess.run(command, capture_output=True, check=False).returncode:
        unavailable("tgtd", "cannot mount a small tmpfs")
    try:
        yield folder
    finally:
        subprocess.run(["umount", folder], check=True)


def head(osd: Commands, obj: ObjectRef, number: int) -> int:
    return int.from_bytes(osd.get_attribute(obj, Page.HEAD, number), "big")


def heads(osd: Commands, number: int) -> int:
    return int.from_bytes(osd.get_attribute(ROOT, Page.HEADS_ROOT, number), "big")


def set_heads(osd: Commands, number: int, value: int) -> None:
    width = 8 if number in (SIZE, RATE) else 1
    osd.set_attributes(
        ROOT, [AttributeValue(Page.HEADS_ROOT, number, value.to_bytes(width, "big"))]
    )


def files(root: Path) -> int:
    """How many files of objects a root has; folders may go meanwhile."""
    return sum(len(inside) for _, _, inside in os.walk(root / "data"))


def store_folders(folder: Path) -> list[str]:
    """Options of the offline tools."""
    return ["--data", str(folder / "data"), "--ssd", str(folder / "ssd")]


def check_store(folder: Path) -> None:
    """The tools find nothing wrong in a closed store."""
    done = CliRunner().invoke(tools.check, store_folders(folder))
    assert done.exit_code == 0, done.output
