# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/jobs.md names the states and reasons of target/exec/record/reasons.h, no more and no less."""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from pyosd.jobs.reasons import BLOCKS, REASONS
from pyosd.wire.job_status import JobState
from tests.jobs import history

TOP = Path(__file__).parents[2]
HEADER = (TOP / "target" / "exec" / "record" / "reasons.h").read_text()
PAGE = (TOP / "docs" / "jobs.md").read_text()


def block(name: str) -> str:
    """The rows of an X-macro table."""
    return HEADER.split(f"#define {name}(X)")[1].split("\n\n")[0]


def test_states() -> None:
    rows = re.findall(r"X\(0x(\w\w), (\w+)\)", block("OSD_JOB_STATES"))
    assert rows == re.findall(r"^\| (\w\w)h \| (\w+) \|", PAGE, re.MULTILINE)


def pictured() -> set[tuple[str, str]]:
    """The transitions of the picture in docs/jobs.md."""
    names = re.findall(r"X\(0x\w\w, (\w+)\)", block("OSD_JOB_STATES"))
    ends = names[names.index("COMPLETED") :]
    found = set()
    for line in PAGE.split("```")[1].strip().splitlines():
        both = "<->" in line
        line = line.replace("one terminal state", ", ".join(ends)).replace("<->", "->")
        places = [re.findall(r"\b[A-Z_]+\b", part.split("(")[0]) for part in line.split("->")]
        for before, after in itertools.pairwise(places):
            found |= {(a, b) for a in before for b in after}
            found |= {(b, a) for a in before for b in after if both}
    return found


def coded() -> set[tuple[str, str]]:
    """The transitions of target/exec/job/table.c."""
    source = (TOP / "target" / "exec" / "job" / "table.c").read_text()
    rows = re.findall(r"\{OSD_STATE_(\w+), OSD_JOB_EVENT_\w+, OSD_STATE_(\w+)\}", source)
    assert len(rows) > 20
    return set(rows)


def modelled() -> set[tuple[str, str]]:
    """The transitions of the model that histories of jobs are held against."""
    found = set()
    for state, doomed, others in itertools.product(
        JobState, (False, True), ((), (history.MISSED,))
    ):
        here = history.Where(state, doomed, after=others)
        steps = [history.controlled(here, control) for control in history.CONTROLS]
        steps += history.by_itself(here)
        found |= {(state.name, after.state.name) for after in steps if after.state is not state}
    return found


def test_transitions() -> None:
    """The page, the model of tests/jobs and the code know the same ones."""
    assert pictured() == coded()
    assert modelled() == coded()


def test_reasons() -> None:
    pattern = r'X\((\d+), \w+, (\w+),[\s\\]*"([^"]*)",[\s\\]*"([^"]*)"\)'
    text = re.sub(r'"[\s\\]+"', "", block("OSD_JOB_REASONS"))
    rows = [row for row in re.findall(pattern, text) if row[0] != "0"]
    assert len(rows) > 20
    explained = [(str(n), r.state or "0", r.label, r.hint) for n, r in REASONS.items()]
    assert explained == rows, "pyosd/jobs/reasons.py has every reason, in the target's words"
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
