# SPDX-License-Identifier: GPL-2.0-or-later
"""The osc-compat switch: OSC's dialect with it, the standard without (osd2-wire 9)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from pyosd import requests as rq
from pyosd.attributes import Page
from pyosd.commands import Commands
from pyosd.types import ObjectRef, ref
from tests.expect import NO_PARTITION, OK, check, mangled
from tests.harness import Harness
from tests.processes import long_lived

ABSENT_PARTITION = ref(0x7777_0000_0000)
BYPASS = {12: b"\x7f"}


@pytest.fixture(scope="module")
def unit(tmp_path_factory: pytest.TempPathFactory, sanitized_program: Path) -> Iterator[Commands]:
    """A logical unit with the switch on, built with sanitizers."""
    folder = tmp_path_factory.mktemp("osc")
    options = {"dir": folder / "store", "osc_compat": 1}
    harness = Harness(sanitized_program, options, folder / "log")
    long_lived.add(harness.pid)
    yield harness.osd
    harness.finish()
    long_lived.discard(harness.pid)


@pytest.fixture
def part(unit: Commands) -> int:
    return unit.create_partition()


@pytest.fixture
def thing(unit: Commands, part: int) -> ObjectRef:
    return unit.create(part)


def data_modified(osd: Commands, obj: ObjectRef) -> bytes:
    return osd.get_attribute(obj, Page.USER_TIMESTAMPS, 5)


def test_timestamps_byte(osd: Commands, obj: ObjectRef, unit: Commands, thing: ObjectRef) -> None:
    """OSC's initiator always sends 7Fh, and its tests want to see time move (9-4)."""
    for each, target, moves in ((osd, obj, False), (unit, thing, True)):
        before = data_modified(each, target)
        check(mangled(each, rq.write(target, 0, b"x"), BYPASS), OK)
        assert (data_modified(each, target) != before) is moves
    check(mangled(unit, rq.write(thing, 0, b"x"), {12: b"\x01"}), OK)


def test_removing_an_absent_partition(osd: Commands, unit: Commands, part: int) -> None:
    """9-29; a partition that is there is removed as ever."""
    request = rq.remove_partition(ABSENT_PARTITION.partition_id)
    check(osd.reply(request), NO_PARTITION)
    check(unit.reply(request), OK)
    check(unit.reply(rq.remove_partition(part)), OK)
    assert part not in unit.list_partitions()
