# SPDX-License-Identifier: GPL-2.0-or-later
"""Durations as people write them, in pyosd, the command line, and the configuration."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
import pytest
from click.testing import CliRunner
from hypothesis import given
from hypothesis import strategies as st

from iosd_host.config.schema import Duration, seconds_of
from pyosd.cli import main
from pyosd.cli.frame.params import DurationParam
from pyosd.wire.exec_params import parse_duration

if TYPE_CHECKING:
    from pathlib import Path

UNITS = (("d", 86400), ("h", 3600), ("m", 60), ("s", 1))
BOUNDED = DurationParam(most_s=1e9)
TEXTS = st.text(st.sampled_from("0123456789.dhmsuin "), max_size=12)


@pytest.mark.parametrize(
    ("text", "seconds"),
    [
        ("90s", 90.0),
        ("2d", 172800.0),
        ("1h30m", 5400.0),
        ("1h 30min", 5400.0),
        ("1d2h3m4s", 93784.0),
        ("1s500ms", 1.5),
        ("1.5h", 5400.0),
        ("90", 90.0),
    ],
)
def test_read(text: str, seconds: float) -> None:
    assert parse_duration(text) == seconds
    assert BOUNDED.convert(text, None, None) == seconds


@pytest.mark.parametrize("text", ["", "1h30", "30m1h", "1h1h", "1h-5m", "h", "1.h", "1hm", "inf"])
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match="cannot read duration"):
        parse_duration(text)
    with pytest.raises(click.BadParameter):
        BOUNDED.convert(text, None, None)


@given(st.lists(st.integers(0, 999), min_size=4, max_size=4), st.sampled_from(["", " "]))
def test_the_sum_of_its_parts(numbers: list[int], between: str) -> None:
    parts = [(number, *unit) for number, unit in zip(numbers, UNITS, strict=True) if number]
    text = between.join(f"{number}{unit}" for number, unit, _ in parts) or "0s"
    assert parse_duration(text) == sum(number * factor for number, _, factor in parts)


@given(TEXTS)
def test_client_and_configuration_agree(text: str) -> None:
    """Any text with units means the same to both."""
    found = seconds_of(text)
    try:
        assert parse_duration(text) == (float(text) if found is None else found)
    except ValueError:
        assert found is None


def test_configuration() -> None:
    assert Duration(1, 86400)("1h30m") == 5400 * 10**6
    with pytest.raises(ValueError, match="unit"):
        Duration(1, 86400)("90")


@pytest.mark.parametrize(
    ("words", "args"),
    [
        (["--wait", "1s"], []),
        (["--wait", "1h30m"], []),
        (["--wait"], []),
        (["--wait=5"], []),
        (["--wait", "--", "1s"], ["1s"]),
        (["--wait", "word"], ["word"]),
        (["--wait", "--wait", "2s", "word"], ["word"]),
    ],
)
def test_wait_takes_a_duration(tmp_path: Path, words: list[str], args: list[str]) -> None:
    script = tmp_path / "script.py"
    script.write_text("pass\n")
    for line in (["exec", "--dry-run", str(script), *words], ["exec", *words, "--dry-run"]):
        if str(script) not in line:
            if args:
                continue
            line = [*line, str(script)]
        done = CliRunner().invoke(main, line)
        assert done.exit_code == 0, done.output
        assert json.loads(done.stdout)["args"] == args


def test_wait_in_a_line_of_the_script(tmp_path: Path) -> None:
    script = tmp_path / "script.py"
    script.write_text("#OSD --wait 1s\npass\n")
    done = CliRunner().invoke(main, ["exec", "--dry-run", str(script)])
    assert done.exit_code == 0, done.output
    assert json.loads(done.stdout)["args"] == []
