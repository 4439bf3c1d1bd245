# SPDX-License-Identifier: GPL-2.0-or-later
"""SNAPSHOT reports the true space, and a write without space is logged with the remedy."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from pyosd.commands import Commands
from pyosd.errors import OSDError
from pyosd.types import ROOT, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page
from tests.control.peer import Peer
from tests.harness import Harness, program
from tests.tiers.placement import small_ssd
from tests.waiting import until

MIB = 1 << 20
HEAD = 64 << 10
CAPACITY_QUOTA = 0x10001
NO_SPACE = re.compile(r"\S+ (?P<level>error|warning): (?P<text>(no space|the store has).*)")


def space(path: Path) -> dict[str, Any]:
    """The reading, with its devices by name."""
    with Peer(path) as peer:
        reading = peer.snapshot()
    return {**reading["store"], "devices": {each["tier"]: each for each in reading["heads"]}}


def device(folder: Path) -> tuple[int, int]:
    """Size of a file system as df(1) counts it, and what is free."""
    found = os.statvfs(folder)
    size = found.f_blocks - found.f_bfree + found.f_bavail
    return size * found.f_frsize, found.f_bavail * found.f_frsize


def as_df_says(path: Path, folder: Path) -> bool:
    """Whether the target says the same of a device; it may write between the two looks."""
    found = space(path)["devices"][folder.name]
    return (found["total"], found["free"]) == device(folder)


def refusals(harness: Harness) -> list[tuple[str, str]]:
    """Log lines about missing space: level and text."""
    lines = harness.log.read_text(errors="replace").splitlines()
    found = [NO_SPACE.search(line) for line in lines]
    return [(each["level"], each["text"]) for each in found if each]


def fill(osd: Commands, obj: ObjectRef, most: int) -> None:
    """Write until it is refused."""
    with pytest.raises(OSDError, match="no space left"):
        for at in range(0, most, MIB):
            osd.write(obj, at, bytes(MIB))


def test_partitions_and_the_store(harness: Harness, path: Path) -> None:
    pids = [harness.osd.create_partition() for _ in range(20)]
    for number, pid in enumerate(pids):
        harness.osd.write(harness.osd.create(pid), 0, bytes(100 * number))
    quota = AttributeValue(Page.PARTITION_QUOTAS, CAPACITY_QUOTA, (5 * MIB).to_bytes(8, "big"))
    harness.osd.set_attributes(ref(pids[-1]), [quota])
    found = space(path)
    assert (found["objects"], found["partitions"]) == (20, 20)
    assert found["used_bytes"] == sum(100 * number for number in range(20))
    assert found["charged_bytes"] >= found["used_bytes"]
    assert found["free_bytes"] <= found["capacity_bytes"] - found["charged_bytes"]
    rows = found["largest"]
    assert [row["used_bytes"] for row in rows] == [100 * number for number in range(19, 3, -1)]
    assert rows[0]["partition"] == f"{pids[-1]:#x}"
    assert (rows[0]["quota_bytes"], rows[0]["objects"]) == (5 * MIB, 1)
    assert "quota_bytes" not in rows[1]
    number = int.from_bytes(harness.osd.get_attribute(ROOT, Page.STORE_ROOT, 12), "big")
    assert number == space(path)["free_bytes"]


@pytest.fixture(params=["off", "on"])
def small(request: pytest.FixtureRequest, tmp_path: Path, path: Path) -> Iterator[Harness]:
    """Two small devices of its own, without and with checksums."""
    with (
        small_ssd(tmp_path / "main", "size=48m") as main,
        small_ssd(tmp_path / "ssd", "size=4m") as ssd,
    ):
        options = {"dir": main / "store", "ssd": ssd / "store", "head_size": HEAD, "control": path}
        options["checksums"] = request.param
        (main / "store").mkdir()
        (ssd / "store").mkdir()
        made = Harness(program(), options, tmp_path / "log")
        yield made
        made.finish()


def test_devices_and_a_full_one(small: Harness, path: Path, tmp_path: Path) -> None:
    pid = small.osd.create_partition()
    obj = small.osd.create(pid)
    small.osd.write(obj, 0, bytes(3 * HEAD))
    found = space(path)["devices"]
    assert found["ssd"]["data"] == HEAD
    assert found["main"]["data"] == 2 * HEAD
    until(lambda: all(as_df_says(path, tmp_path / tier) for tier in ("ssd", "main")))
    assert refusals(small) == []
    fill(small.osd, obj, 100 * MIB)
    level, text = until(lambda: refusals(small))[0]
    assert level == "error"
    assert str(tmp_path / "main" / "store") in text
    assert "of 48.0 MiB" in text and "osd target df" in text
    assert space(path)["no_space"]["main"] >= 1
    again = small.osd.create(pid)
    fill(small.osd, again, 100 * MIB)
    fill(small.osd, again, 100 * MIB)
    small.restart()
    errors = [text for level, text in refusals(small) if level == "error"]
    assert len(errors) == 1, "one line a minute, however many writes are refused"


def test_a_small_capacity(tmp_path: Path, path: Path) -> None:
    harness = Harness(
        program(),
        {"dir": tmp_path / "store", "control": path},
        tmp_path / "log",
    )
    try:
        harness.osd.format_osd(4 * MIB)
        obj = harness.osd.create(harness.osd.create_partition())
        fill(harness.osd, obj, 100 * MIB)
        level, text = until(lambda: refusals(harness))[0]
        assert level == "error"
        assert "its capacity of 4.0 MiB" in text and "osd target df" in text
        found = space(path)
        assert found["no_space"] == {"ssd": 0, "main": 0, "capacity": 1}
        assert found["capacity_bytes"] == 4 * MIB
    finally:
        harness.finish()
