# SPDX-License-Identifier: GPL-2.0-or-later
"""From a SNAPSHOT to a load: whatever a target says, it is a load or a FrameError; pressure as the kernel
writes it."""

from __future__ import annotations

import copy
import math
from pathlib import Path
from typing import Any

import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from iosd_host.control.messages import FrameError
from iosd_host.manager.reading import load_of, pressure_of, summary
from iosd_host.policy.events import Load, Mode, Pressure
from tests.manager.fake_target import FakeTarget, pool
from tests.manager.test_requests import JSON

SNAPSHOT = FakeTarget(Path("nowhere")).snapshot() | {"pools": [pool("default"), pool("numpy")]}


def test_a_load() -> None:
    fields = copy.deepcopy(SNAPSHOT)
    fields["pools"].append(pool("old", gone=True))
    del fields["pools"][0]["warm_seconds"]
    load = load_of(fields, Pressure(cpu=0.5))
    assert [each.name for each in load.pools] == ["default", "numpy"]
    assert (load.at, load.pools[0].mode, load.pools[0].warm_seconds) == (100.0, Mode.RUNNING, 0.0)
    assert (load.pressure.cpu, load.shedding) == (0.5, False)
    assert summary(load)["pools"]["numpy"]["active"] == 1


PATHS = [
    ("target",),
    ("target", "monotonic"),
    ("workers",),
    ("workers", "count"),
    ("workers", "oldest"),
    ("pools",),
    ("pools", 0),
    ("pools", 1, "name"),
    ("pools", 1, "mode"),
    ("pools", 1, "serving"),
    ("pools", 1, "active"),
    ("pools", 1, "run_seconds"),
    ("pools", 1, "memory_per_slot"),
]


@settings(max_examples=120)
@given(st.sampled_from(PATHS), JSON)
@example(("workers", "count"), 10**400)
def test_whatever_it_says(path: tuple[Any, ...], value: Any) -> None:
    fields = copy.deepcopy(SNAPSHOT)
    *inner, last = path
    at: Any = fields
    for key in inner:
        at = at[key]
    at[last] = value
    try:
        load = load_of(fields, Pressure())
    except FrameError:
        return
    assert isinstance(load, Load)
    for number in (load.at, load.workers.oldest, *(each.run_seconds for each in load.pools)):
        assert math.isfinite(number)
        assert number >= 0
    assert all(each.active >= 0 for each in load.pools)


@settings(max_examples=30)
@given(st.dictionaries(st.text(), JSON))
def test_anything_else(fields: dict[str, Any]) -> None:
    with pytest.raises(FrameError):
        load_of(fields, Pressure())


def test_pressure(tmp_path: Path) -> None:
    line = "some avg10=12.50 avg60=1.00 avg300=0.00 total=1\nfull avg10=99.00 avg60=0 total=0\n"
    (tmp_path / "cpu.pressure").write_text(line)
    (tmp_path / "memory.pressure").write_text("nonsense")
    assert pressure_of(tmp_path, ".pressure") == Pressure(cpu=0.125, memory=None, io=None)
