# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd pool simulate`: traces of users, and the report about them."""

from __future__ import annotations

import csv
import json
import re
import sys
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from iosd_host.cli.simulate import simulate
from tools.managerdoc import DOCS

TRACE = "time,jobs\n100,10\n110,600\n120,0\n\n160,0\n"


def asked(tmp_path: Path, *words: str, trace: str = TRACE) -> Result:
    (tmp_path / "trace.csv").write_text(trace)
    return CliRunner().invoke(simulate, [str(tmp_path / "trace.csv"), *words])


def test_table(tmp_path: Path) -> None:
    found = asked(tmp_path, "--pool", "default:max=8", "--work", "200ms", "--rows", "6")
    assert found.exit_code == 0, found.output
    heading, *rows = found.stdout.splitlines()
    assert heading.split() == ["TIME", "CAME", "ACTIVE", "BUSY", "WARM_SPARE", "QUEUED", "WAITED"]
    numbers = [[float(word.rstrip("s")) for word in row.split()] for row in rows[:6]]
    assert [round(row[0], -1) for row in numbers] == [0, 10, 20, 30, 40, 50]
    assert numbers[2][2:4] == [8, 8] and numbers[2][5] > 100, "all slots at work, jobs wait"
    assert numbers[0][2] == 1 and numbers[5][3] == 0
    jobs, mean, longest = re.match(
        r"(\d+) jobs waited ([0-9.]+) s on average, ([0-9.]+) s at most;", rows[6]
    ).groups()  # type: ignore[union-attr]
    assert 520 < int(jobs) < 710 and 0 < float(mean) < float(longest)
    assert float(re.findall(r"([0-9.]+) s at best", found.stdout)[0]) == pytest.approx(
        float(mean), rel=0.35
    )


def test_the_page_shows_what_it_says(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "manager.md").read_text()
    trace, words, said = re.findall(
        r"^\$ cat friday\.csv\n(.*?)^\$ osd pool simulate ([^\n]*)\n(.*?)^```", page, re.M | re.S
    )[0]
    monkeypatch.chdir(tmp_path)
    Path("friday.csv").write_text(trace)
    assert CliRunner().invoke(simulate, words.split()).stdout == said


def test_formats_say_the_same_and_a_seed_repeats_it(tmp_path: Path) -> None:
    table = asked(tmp_path, "-o", "csv", "--rows", "5", "--work", "100ms")
    rows = list(csv.DictReader(table.stdout.splitlines()))
    told = json.loads(asked(tmp_path, "-o", "json", "--rows", "5", "--work", "100ms").stdout)
    assert told["schema"] == "iosd.simulation/1"
    assert [{key: str(value) for key, value in row.items()} for row in told["rows"]] == rows
    other = asked(tmp_path, "-o", "csv", "--rows", "5", "--work", "100ms", "--seed", "2")
    assert other.stdout != table.stdout
    assert set(told["summary"]) == {
        *("jobs", "mean_wait", "longest_wait", "best_wait", "most_active", "most_turns"),
    }


def test_reasons_and_keys_of_the_configuration(tmp_path: Path) -> None:
    file = tmp_path / "iosd.toml"
    file.write_text("[pools.default]\nmax = 5\n[pools.default.scale]\nup_factor = 5\n")
    found = asked(tmp_path, "--config", str(file), "--why")
    assert re.search(r"active 5: [0-9] of [0-9] at work, .*; 1 to 5 allowed", found.stdout)
    found = asked(tmp_path, "--config", str(file), "--pool", "default:scale.auto=false", "--why")
    assert (found.exit_code, found.stdout) == (0, "")


def test_plot(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with monkeypatch.context() as patch:
        patch.setitem(sys.modules, "matplotlib", None)
        found = asked(tmp_path, "--plot", str(tmp_path / "it.png"))
        assert found.exit_code == 1 and "matplotlib is not installed" in found.output
    found = asked(tmp_path, "--plot", str(tmp_path / "it.png"))
    assert found.exit_code == 0
    assert (tmp_path / "it.png").read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(
    ("trace", "message"),
    [
        ("time,jobs\n1,2\nyesterday,5\n", "line 3: 'yesterday,5' is not TIME,JOBS"),
        ("1,2\n1,3\n", "line 2: times must rise"),
        ("1,-2\n2,3\n", "line 1: times must rise, jobs be 0 to"),
        ("1,nan\n2,3\n", "line 1"),
        ("1,2\ninf,1\n", "line 2"),
        ("1,2\n", "two rows"),
        ("0,2\n1e6,3\n", "more than a day"),
    ],
)
def test_traces_that_are_none(tmp_path: Path, trace: str, message: str) -> None:
    found = asked(tmp_path, trace=trace)
    assert found.exit_code == 2 and message in found.output, found.output


def test_other_mistakes(tmp_path: Path) -> None:
    found = asked(tmp_path, "--pool", "default:mx=3")
    assert found.exit_code == 78 and "did you mean 'max'?" in found.output
    assert "cannot read duration" in asked(tmp_path, "--work", "soon").output
