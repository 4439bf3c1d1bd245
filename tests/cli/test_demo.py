# SPDX-License-Identifier: GPL-2.0-or-later
"""The demonstration on a short log: how it ends, the bar it shows, and that it notices a wrong count."""

from __future__ import annotations

import json
import pty
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import pytest

from examples.demo.generate import LINES, SEED, log_lines
from tests.cli.screen import written_to

ROOT = Path(__file__).resolve().parents[2]
DEADLINE_S = 120


def demo(*words: str, code: int) -> tuple[dict[str, Any], bytes]:
    """Run it on few lines where a person watches.  Returns: its last line, and what the person sees."""
    leader, follower = pty.openpty()
    with tempfile.TemporaryFile("w+") as output:
        process = subprocess.Popen(
            [sys.executable, "-m", "examples.demo", "--lines", "2000", *words],
            cwd=ROOT,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=follower,
        )
        talk = written_to(leader, follower)
        found = process.wait(DEADLINE_S)
        output.seek(0)
        lines = output.readlines()
    assert found == code, "".join(lines) + talk.decode()
    last = json.loads(lines[-1])
    assert last["schema"] == "iosd.demo/1"
    return dict(last), talk


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_equal() -> None:
    last, talk = demo(code=0)
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
    assert b"100 %" in talk and b"\x1b[" in talk, "a bar"


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_planted_error_is_noticed() -> None:
    last, _ = demo("--plant-error", code=1)
    assert not last["equal"]
    assert not last["awk_equal"]
    assert not last["jobs"][0]["equal"]


def test_log_is_the_same_for_the_same_seed() -> None:
    first = list(log_lines(500, SEED))
    assert first == list(log_lines(500, SEED))
    assert first != list(log_lines(500, SEED + 1))
    assert len(first) == 500
    assert all(20 <= len(line) <= 1024 for line in first)
    assert LINES == 503_937
