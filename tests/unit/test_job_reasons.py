# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/jobs.md names the states and reasons of target/exec/job.h, no more and no less."""

from __future__ import annotations

import re
from pathlib import Path

from pyosd.reasons import BLOCKS, REASONS

TOP = Path(__file__).parents[2]
HEADER = (TOP / "target" / "exec" / "job.h").read_text()
PAGE = (TOP / "docs" / "jobs.md").read_text()


def block(name: str) -> str:
    """The rows of an X-macro table."""
    return HEADER.split(f"#define {name}(X)")[1].split("\n\n")[0]


def test_states() -> None:
    rows = re.findall(r"X\(0x(\w\w), (\w+)\)", block("OSD_JOB_STATES"))
    assert rows == re.findall(r"^\| (\w\w)h \| (\w+) \|", PAGE, re.MULTILINE)


def test_reasons() -> None:
    pattern = r'X\((\d+), \w+, (\w+),[\s\\]*"([^"]*)",[\s\\]*"([^"]*)"\)'
    text = re.sub(r'"[\s\\]+"', "", block("OSD_JOB_REASONS"))
    rows = [row for row in re.findall(pattern, text) if row[0] != "0"]
    assert len(rows) > 20
    explained = [(str(n), r.state or "0", r.label, r.hint) for n, r in REASONS.items()]
    assert explained == rows, "pyosd/reasons.py has every reason, in the target's words"
    shown = [
        f"| {number} | {'–' if state == '0' else state} | {label} | {hint} |"
        for number, state, label, hint in rows
    ]
    assert shown == re.findall(r"^\| \d{3} \|.*\|$", PAGE, re.MULTILINE)


def test_reasons_are_explained() -> None:
    for number, reason in REASONS.items():
        assert number // 100 in BLOCKS
        assert reason.cause.endswith(".") and reason.again.endswith("."), number
        assert not reason.hint.endswith("."), number
