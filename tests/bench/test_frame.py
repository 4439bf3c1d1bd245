# SPDX-License-Identifier: GPL-2.0-or-later
"""The frame of `make bench`: what fails is in the report with its reason, and a report reads as written."""

from __future__ import annotations

import json
import os
import random
import statistics
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from bench import compile as compiling
from bench import link, runner
from bench.groups import GROUPS, Group
from bench.plan import QUICK, Plan
from bench.required import REQUIRED
from bench.runner import run_group
from bench.saved import NotAReport, Report
from bench.stats import Curve, Row, at_least, at_most, bootstrap, point, row_of_pairs, row_of_tail


def measured(row_id: str = "read_4k_qd1") -> Row:
    return row_of_pairs(row_id, [(2.0, 1.0), (3.0, 1.0), (4.0, 1.0)], at_least(1), "made up")


def curve() -> Curve:
    return Curve(
        "c", "title", "x, s", "y, s", {"ours": [point(1, [1, 2, 3])]}, paper={"theirs": []}
    )


def breaks(_plan: Plan) -> Iterator[Row | Curve]:
    yield measured()
    yield curve()
    raise OSError("no such luck")


def hangs(_plan: Plan) -> Iterator[Row | Curve]:
    while True:
        pass
    yield


def test_required_rows_belong_to_groups() -> None:
    assert set(REQUIRED) <= {group.name for group in GROUPS}
    ids = [row_id for rows in REQUIRED.values() for row_id in rows]
    assert len(ids) == len(set(ids))


def test_each_required_row_is_described() -> None:
    page = (Path(__file__).parents[2] / "docs/benchmarks.md").read_text()
    ids = [each for group, rows in REQUIRED.items() if group != "wire" for each in rows]
    assert not [each for each in ids if f"`{each}`" not in page]


def test_group_that_breaks_leaves_what_it_measured_and_says_why_of_the_rest() -> None:
    report = Report()
    run_group(Group("wire", "READ and WRITE", breaks), QUICK, report)
    run_group(Group("jobs", "Jobs", lambda _: iter([measured("poll_one")])), QUICK, report)
    rows = {row.id: row for row in report.rows}
    assert set(REQUIRED["wire"]) | set(REQUIRED["jobs"]) == set(rows)
    assert rows["read_4k_qd1"].ratio == 3
    assert rows["write_1m_qd8"].reason == "OSError: no such luck"
    assert rows["poll_hundred"].reason == "the group jobs did not give it"
    assert rows["poll_hundred"].aim == "<= 3"
    assert {row.group for row in report.rows} == {"wire", "jobs"}
    assert report.groups["wire"].error
    assert not report.groups["jobs"].error
    assert [each.group for each in report.curves] == ["wire"]


def test_group_that_hangs_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runner, "LIMIT_S", 1)
    report = Report()
    run_group(Group("elsewhere", "Nothing required", hangs), QUICK, report)
    (row,) = report.rows
    assert (row.id, row.ratio) == ("elsewhere_rest", None)
    assert "not done after 1 s" in row.reason


def test_group_measured_again_takes_the_place_of_what_was_there() -> None:
    report = Report()
    for name in ("wire", "jobs", "wire"):
        run_group(Group(name, name, lambda _: iter([curve()])), QUICK, report)
    assert list(report.groups) == ["wire", "jobs"]
    assert len(report.rows) == len(REQUIRED["wire"]) + len(REQUIRED["jobs"])
    assert len(report.curves) == 2


def test_report_reads_as_written(tmp_path: Path) -> None:
    report = Report()
    run_group(Group("wire", "READ and WRITE", breaks), QUICK, report)
    path = tmp_path / "results" / "latest.json"
    report.write(path)
    assert Report.read(path) == report
    found = json.loads(path.read_bytes())
    assert found["schema"] == "iosd.bench/1"
    assert {"cpu", "cores", "kernel", "python", "memory_bytes", "tgt", "libgcrypt"} <= set(
        found["machine"]
    )
    wanted = {"id", "ours", "baseline", "ratio", "interval", "aim", "met", "n", "method"}
    assert all(wanted <= set(row) for row in found["rows"])


@pytest.mark.parametrize(
    "text", ["", "[]", "{}", '{"schema": "iosd.bench/1"}', '{"schema": "other/1"}']
)
def test_other_files_are_no_reports(tmp_path: Path, text: str) -> None:
    path = tmp_path / "file"
    path.write_text(text)
    with pytest.raises(NotAReport):
        Report.read(path)


@pytest.mark.parametrize("n", [1, 2, 5, 9, 40, 401])
def test_interval_is_the_one_of_resampling(n: int) -> None:
    rng = random.Random(n)
    values = [rng.lognormvariate(0, 1) for _ in range(n)]
    resampled = sorted(statistics.median(rng.choices(values, k=n)) for _ in range(2000))
    low, high = bootstrap(values)
    ordered = sorted(values)
    places = [ordered.index(low), ordered.index(high)]
    near = [resampled[50], resampled[1949]]
    for place, value in zip(places, near, strict=True):
        around = ordered[max(0, place - 2 - n // 50) : place + 3 + n // 50]
        assert around[0] <= value <= around[-1]


def test_interval_of_a_tail() -> None:
    times = [at / 1000 for at in range(1, 1001)]
    row = row_of_tail("tail", times, 0.5, "made up")
    assert row.ours == pytest.approx(0.99)
    assert row.interval is not None
    assert row.interval[0] * 0.5 == pytest.approx(0.983, abs=0.002)
    assert row.interval[1] * 0.5 == pytest.approx(0.996, abs=0.002)
    assert row.met is False


def test_aim_is_met_where_the_interval_reaches_it() -> None:
    pairs = [(1.0, 1.0), (1.1, 1.0), (1.2, 1.0)]
    assert row_of_pairs("x", pairs, at_most(1), "").met
    assert not row_of_pairs("x", pairs, at_most(0.99), "").met
    assert row_of_pairs("x", pairs, at_least(1.2), "").met


def test_a_program_is_there_when_it_is_complete(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The readers of a row make the same library at the same time, and load it."""
    compiler = tmp_path / "cc"
    compiler.write_text(
        '#!/bin/sh\nwhile [ "$1" != -o ]; do shift; done; : >"$2"; ls "${2%/*}" >seen\n'
    )
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", f"{tmp_path}:{os.environ['PATH']}")
    monkeypatch.setattr(compiling, "BUILT", tmp_path / "built")
    monkeypatch.chdir(tmp_path)
    made = compiling.compiled("calls.c", "calls")
    assert (tmp_path / "seen").read_text() != "calls\n"
    assert [each.name for each in made.parent.iterdir()] == ["calls"]


@pytest.mark.skipif(bool(link.unavailable()), reason=link.unavailable())
def test_namespaces_of_killed_runs_are_removed() -> None:
    with subprocess.Popen(["true"]) as ended:
        ended.wait()
    left, ours = f"iosd-s{ended.pid}-3", f"iosd-c{os.getpid()}"
    try:
        for name in (left, ours):
            subprocess.run(["ip", "netns", "add", name], check=True)
        link.remove_left_over()
        assert not (link.NAMESPACES / left).exists() and (link.NAMESPACES / ours).exists()
    finally:
        for name in (left, ours):
            link.delete(name)
