# SPDX-License-Identifier: GPL-2.0-or-later
"""Changes as `make bench-compare` defines them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest

from bench.compare import BETTER, SAME, WORSE, changes, compared
from bench.saved import Report, Took
from bench.stats import REPORTED, Aim, Row, at_least, at_most, missing, row_of_pairs
from bench.target import SOURCE
from tests import warm

TOOK = Took("Title", 1.0, "0123456789ab", "2026-01-01T00:00:00+00:00", "usual")


def row(row_id: str, ratio: float, aim: Aim, unit: str = "s", spread: float = 0.02) -> Row:
    ratios = [ratio * (1 + spread * step / 4) for step in range(-4, 5)]
    return row_of_pairs(row_id, [(each, 1.0) for each in ratios], aim, "made up", unit=unit)


def report(*rows: Row) -> Report:
    made = Report(machine={"cpu": "a", "cores": 2, "memory_bytes": 1 << 30})
    made.add("wire", TOOK, rows)
    return made


@pytest.mark.parametrize(
    ("aim", "unit", "old", "new", "word"),
    [
        (at_most(5), "s", 4, 2, BETTER),
        (at_most(5), "s", 2, 4, WORSE),
        (at_least(1), "MiB/s", 1, 2, BETTER),
        (at_least(1.5), "s", 2, 1, WORSE),  # a speed-up, of times
        (REPORTED, "s", 2, 1, BETTER),
        (REPORTED, "jobs/s", 2, 1, WORSE),
        (at_most(5), "s", 1, 1.01, SAME),  # intervals have much in common
        (at_most(5), "s", 1, 1.045, SAME),  # they do not, but runs differ by so much
        (at_most(5), "s", 1, 1.08, WORSE),
    ],
)
def test_change(aim: Aim, unit: str, old: float, new: float, word: str) -> None:
    change = compared(row("x", old, aim, unit), row("x", new, aim, unit))
    assert change is not None
    assert change.word == word
    assert (change.factor > 1) == (word == BETTER) or word == SAME


def test_wide_intervals_are_noise() -> None:
    old, new = (row("x", ratio, at_most(1), spread=0.5) for ratio in (1, 1.3))
    change = compared(old, new)
    assert change is not None
    assert change.word == SAME


def test_most_changed_first() -> None:
    old = report(*(row(name, 1, REPORTED) for name in "abc"))
    new = report(row("a", 1.1, REPORTED), row("b", 3, REPORTED), row("c", 0.5, REPORTED))
    assert [change.new.id for change in changes(old, new)] == ["b", "c", "a"]


def run(*arguments: object) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench.compare", *map(str, arguments)]
    return warm.run(command, cwd=SOURCE, capture_output=True, text=True)


def test_what_is_printed_and_exit_codes(tmp_path: Path) -> None:
    old_file, new_file = tmp_path / "old.json", tmp_path / "new.json"
    old = report(
        row("slower", 1, at_most(2)), row("steady", 1, at_most(2)), row("went", 1, REPORTED)
    )
    new = report(
        row("slower", 2, at_most(2)),
        row("steady", 1, at_most(2)),
        missing("went", REPORTED, "no luck"),
        row("came", 1, REPORTED),
    )
    new.machine["cpu"] = "b"
    new.groups["wire"] = replace(TOOK, size="quick")
    old.write(old_file)
    new.write(new_file)
    done = run(old_file, new_file)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert lines[0] == "warning: cpu differs: a, b"
    assert lines[1] == "warning: sizes of the runs of wire differ: usual, quick"
    assert lines[2].split()[:4] == ["slower", "2.00", "times", "worse"]
    assert [line.split() for line in lines[3:5]] == [
        ["went", "gone:", "no", "luck"],
        ["came", "new"],
    ]
    assert lines[5] == "1 worse, 0 better, 1 same"
    assert run("--fail", old_file, new_file).returncode == 1
    assert run("--fail", new_file, old_file).returncode == 0
    assert run("--fail", "--between-runs", 3, old_file, new_file).returncode == 0


def test_no_report(tmp_path: Path) -> None:
    path = tmp_path / "file"
    path.write_text("{}")
    done = run(path, path)
    assert done.returncode == 2
    assert "is no report of this release" in done.stderr


@pytest.mark.sandbox
def test_two_runs_compare(tmp_path: Path) -> None:
    """The cheapest group that starts a target, as `make bench` does, against the same figures of an
    earlier run."""
    files = [tmp_path / "a.json", tmp_path / "b.json"]
    command = [
        sys.executable,
        "-m",
        "bench",
        "--quick",
        "--only",
        "calls",
        "--output",
        str(files[1]),
    ]
    done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert "script_create" in done.stdout
    assert (tmp_path / "report.html").stat().st_size > 4000
    shutil.copy(files[1], files[0])
    done = run(*files)
    assert done.returncode == 0, done.stderr
    counted = [int(part.split()[0]) for part in done.stdout.splitlines()[-1].split(", ")]
    assert sum(counted) == sum(row.ratio is not None for row in Report.read(files[0]).rows)
