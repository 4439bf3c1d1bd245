# SPDX-License-Identifier: GPL-2.0-or-later
"""The judge of a soak: made-up figures that are flat, grow, start anew, or say nothing."""

from __future__ import annotations

import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.soak import report
from tests.soak.judge import Verdict, judge, slope_of
from tests.soak.run import Outcome, warm_up_of
from tests.soak.samples import Sample

HOUR = 3600.0


def samples(
    value: Callable[[float], float], hours: float = 2.0, life: Callable[[float], int] = lambda at: 1
) -> list[Sample]:
    """One figure, read every 5 s."""
    times = [5.0 * n for n in range(int(hours * HOUR / 5))]
    return [Sample(at, {"x": value(at)}, {"x": life(at)}) for at in times]


def noise(seed: int = 1) -> Callable[[float], float]:
    rng = random.Random(seed)
    return lambda at: rng.gauss(0, 2) + 3 * math.sin(at / 300)


def said(found: list[Sample]) -> Verdict:
    return slope_of(found, "x").verdict


@pytest.mark.parametrize("seed", range(5))
def test_noise_is_flat(seed: int) -> None:
    wave = noise(seed)
    assert said(samples(lambda at: 100 + wave(at))) is Verdict.FLAT


@pytest.mark.parametrize("seed", range(5))
def test_a_leak_in_the_noise_grows(seed: int) -> None:
    wave = noise(seed)
    assert said(samples(lambda at: 100 + 8 * at / HOUR + wave(at))) is Verdict.GROWS


def test_less_than_a_percent_is_flat() -> None:
    assert said(samples(lambda at: 1000 + 5 * at / HOUR)) is Verdict.FLAT
    assert said(samples(lambda at: 1000 + 15 * at / HOUR)) is Verdict.GROWS


def test_what_falls_or_stands_is_flat() -> None:
    assert said(samples(lambda at: 100 - 5 * at / HOUR)) is Verdict.FLAT
    assert said(samples(lambda _: 7)) is Verdict.FLAT
    assert said(samples(lambda _: 0)) is Verdict.FLAT


def test_lives_begin_anew() -> None:
    """Each life leaks and the next begins low again: no line through all would tell."""
    quarter = HOUR / 2

    def leak(at: float) -> float:
        return 100 + 60 * (at % quarter) / HOUR

    def life(at: float) -> int:
        return int(at // quarter)

    assert said(samples(leak, life=life)) is Verdict.GROWS
    steps = samples(lambda at: 100 + 50 * life(at), life=life)
    assert said(steps) is Verdict.FLAT, "a life that begins higher is no leak within it"


def test_little_time_says_nothing() -> None:
    rng = random.Random(1)
    assert said(samples(lambda _: rng.gauss(100, 30), hours=0.1)) is Verdict.UNKNOWN
    assert said(samples(lambda _: 1, hours=0.001)) is Verdict.UNKNOWN


def test_warm_up_does_not_count() -> None:
    found = samples(lambda at: min(at, 600) + 100)
    (slope,) = judge(found, 700)
    assert slope.verdict is Verdict.FLAT
    (slope,) = judge(found, 0)
    assert slope.verdict is Verdict.GROWS


def outcome(hours: float, leak: float) -> Outcome:
    found = Outcome(1, hours * HOUR, 0.0, samples(lambda at: 100 + leak * at / HOUR, hours))
    found.slopes = judge(found.samples, 0)
    return found


def test_exit_codes() -> None:
    assert report.code(outcome(2, 0)) == report.FLAT
    assert report.code(outcome(2, 8)) == report.GROWS
    assert report.code(outcome(0.1, 8)) == report.NOTHING_SAID, "it may be warming up"
    failed = outcome(2, 0)
    failed.failures = ["read: wrong"]
    assert report.code(failed) == report.GROWS
    open_still = outcome(0.1, 0)
    open_still.rest = [{"tgtd.descriptors": 40.0}, {"tgtd.descriptors": 80.0}]
    assert report.code(open_still) == report.GROWS
    assert "tgtd.descriptors: 40 at rest at first, 80 then" in report.lines(open_still)[-1]
    assert isinstance(open_still.kills, Counter)


def memory(rss: float, pss: float, heap: float | None = None) -> Outcome:
    """Two hours; growth in percent an hour; heap None: not known."""
    found = Outcome(1, 2 * HOUR, 0.0)
    for at in range(0, int(2 * HOUR), 5):
        hours = at / HOUR
        figures = {"x.rss": 100 + rss * hours, "x.pss": 50 + pss / 2 * hours}
        figures |= {} if heap is None else {"x.heap": 20 + heap / 5 * hours}
        found.samples.append(Sample(at, figures, dict.fromkeys(figures, 1)))
    found.slopes = judge(found.samples, 0)
    return found


def test_memory_leaks_in_both_figures_or_not_at_all() -> None:
    assert report.code(memory(5, 5)) == report.GROWS
    assert report.code(memory(5, 0)) == report.FLAT
    assert report.code(memory(0, 5)) == report.FLAT
    assert report.code(memory(5, 5, 5)) == report.GROWS
    assert report.code(memory(5, 5, 0)) == report.FLAT


def test_what_is_kept_for_the_next_use() -> None:
    """It may become more while it has been as much before."""

    def run(highs: tuple[float, float]) -> Outcome:
        found = Outcome(1, 2 * HOUR, 0.0)
        for at in range(0, int(2 * HOUR), 5):
            high = highs[at >= HOUR]
            now = high if at % 1000 < 100 + 700 * at / (2 * HOUR) else 19.0
            figures = {"sandboxd.cgroups": now}
            found.samples.append(Sample(at, figures, dict.fromkeys(figures, 1)))
        found.slopes = judge(found.samples, 0)
        return found

    assert run((21, 21)).slopes[0].verdict is Verdict.GROWS
    assert report.code(run((21, 21))) == report.FLAT
    assert report.code(run((21, 23))) == report.GROWS


def test_lockers_are_bounded_by_cursors() -> None:
    def run(last: float) -> Outcome:
        found = Outcome(1, 2 * HOUR, 0.0)
        for at in range(0, int(2 * HOUR), 5):
            figures = {"database.lockers": 10 + at / (2 * HOUR) * last, "tgtd.threads": 16.0}
            found.samples.append(Sample(at, figures, dict.fromkeys(figures, 1)))
        found.slopes = judge(found.samples, 0)
        return found

    few, many = run(40), run(400)
    for each in few, many:  # no fewer at rest
        each.rest = [{"database.lockers": 10.0}, {"database.lockers": 50.0}]
    assert report.code(few) == report.FLAT
    assert report.code(many) == report.GROWS


def test_readings_are_judged_anew(tmp_path: Path) -> None:
    before = memory(5, 5)
    before.warm_up = warm_up_of(before.seconds)
    before.slopes = judge(before.samples, before.warm_up)
    report.write_json(before, tmp_path / "soak.json")
    after = report.read_json(tmp_path / "soak.json")
    assert report.lines(after) == report.lines(before)
