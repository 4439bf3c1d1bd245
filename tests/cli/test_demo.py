# SPDX-License-Identifier: GPL-2.0-or-later
"""The demonstration on a short log: what it ends with, and that it notices a wrong count."""

from __future__ import annotations

import json
import pty
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from examples.demo.generate import LINES, SEED, log_lines
from tests.cli.screen import written_to

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120


def demo(*words: str, code: int) -> dict[str, Any]:
    """Run it on few lines; return its last line."""
    done = subprocess.run(
        [sys.executable, "-m", "examples.demo", "--lines", "2000", *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == code, done.stdout + done.stderr
    last = json.loads(done.stdout.splitlines()[-1])
    assert last["schema"] == "iosd.demo/1"
    return dict(last)


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_equal() -> None:
    last = demo(code=0)
    assert last["equal"]
    assert last["awk_equal"]
    assert [job["name"] for job in last["jobs"]] == [
        *("nfs log", "packages", "listing 1"),
        "one user",
    ]
    for job in last["jobs"]:
        assert job["near"]["output_sha256"] == job["local"]["output_sha256"]
        assert job["near"]["output_bytes"] > 0
    for job in (last["jobs"][0], last["jobs"][3]):
        assert job["local"]["received_bytes"] > last["log"]["bytes"]
        assert job["near"]["received_bytes"] < last["log"]["bytes"]


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_planted_error_is_noticed() -> None:
    last = demo("--plant-error", code=1)
    assert not last["equal"]
    assert not last["awk_equal"]
    assert not last["jobs"][0]["equal"]


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_bar_where_a_person_watches() -> None:
    leader, follower = pty.openpty()
    process = subprocess.Popen(
        [sys.executable, "-m", "examples.demo", "--lines", "2000"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=follower,
    )
    talk = written_to(leader, follower)
    assert process.wait(DEADLINE_S) == 0
    assert b"100 %" in talk
    assert b"\x1b[" in talk


def test_log_is_the_same_for_the_same_seed() -> None:
    first = list(log_lines(500, SEED))
    assert first == list(log_lines(500, SEED))
    assert first != list(log_lines(500, SEED + 1))
    assert len(first) == 500
    assert all(20 <= len(line) <= 1024 for line in first)
    assert LINES == 503_937
