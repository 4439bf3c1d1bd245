# SPDX-License-Identifier: GPL-2.0-or-later
"""Curves have a point with its interval for each x of each series; nothing here looks at a time."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from dataclasses import replace

import pytest

from bench import curve_objects, curve_pools, curves
from bench.curve_load import Sample, curve, in_rounds, processor_seconds, some
from bench.plan import QUICK
from bench.stats import Curve
from bench.target import BenchTarget, bench_target
from iosd_host.control.messages import TargetError, Type
from tests.serving import missing

SHORT = replace(QUICK, seconds=0.004)


def test_rounds_measure_everything_in_turn_and_drop_the_first() -> None:
    order: list[str] = []

    def sample(name: str) -> dict[str, float]:
        order.append(name)
        return {name[0]: float(len(order))}

    steps: dict[float, list[Sample]] = {
        1: [lambda: sample("a1"), lambda: sample("b1")],
        2: [lambda: sample("a2")],
    }
    found = in_rounds(steps, 2)
    assert order == ["a1", "b1", "a2"] * 3
    assert found == {"a": {1: [4, 7], 2: [6, 9]}, "b": {1: [5, 8]}}
    made = curve("c", "title", "x", found, "s")
    assert [(each.x, each.y) for each in made.series["a"]] == [(1, 5.5), (2, 7.5)]


def test_processor_time_is_that_of_ended_threads_too() -> None:
    before = processor_seconds(os.getpid())
    thread = threading.Thread(target=lambda: sum(range(3_000_000)))
    thread.start()
    thread.join()
    assert processor_seconds(os.getpid()) > before


@pytest.fixture(scope="module")
def target() -> Iterator[BenchTarget]:
    if why := missing():
        pytest.skip(why)
    with bench_target("--no-sandboxes") as running:
        yield running


def check(found: Curve, series: set[str], xs: tuple[int, ...]) -> None:
    assert set(found.series) == series
    for points in found.series.values():
        assert tuple(each.x for each in points) == xs
        for each in points:
            assert each.low is not None
            assert each.high is not None
            assert each.low <= each.y <= each.high


def test_depth(target: BenchTarget) -> None:
    names = {"READ", "WRITE", "disk: READ", "disk: WRITE"}
    (found,) = curves.depths(target, SHORT, 1)
    assert found.id == "curve_depth"
    check(
        found, names | {f"{name}, processor" for name in names}, tuple(some(curves.DEPTHS, SHORT))
    )


def test_data(target: BenchTarget) -> None:
    (found,) = curve_objects.data(target, SHORT, 1)
    names = {"READ", "WRITE", "disk: READ"}
    counts = tuple(each for each in curve_objects.WITH_DATA if each <= curve_objects.QUICK_DATA)
    check(found, names | {f"{name}, processor" for name in names}, counts)


def test_control(target: BenchTarget) -> None:
    with curve_pools.Control(target) as control:
        assert control.ask(Type.WORKERS, count=3)["is"] == {"count": "3"}
        with pytest.raises(TargetError):
            control.ask(Type.WORKERS, count=0)
