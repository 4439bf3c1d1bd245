# SPDX-License-Identifier: GPL-2.0-or-later
"""No hot path takes more instructions than this release's, and a tolerance, counted by callgrind: a
regression of speed that a busy machine can show.  Meant to be so?  `python -m bench.instructions --renew`.
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Mapping

import pytest

from bench import instructions
from bench.callgrind import Profile
from tests.jobs.conftest import skip_without_sandboxes

TRIES = 3
"""A count that is too high is taken again: what a command met by chance is not its cost."""


@pytest.fixture(autouse=True)
def comparable(monkeypatch: pytest.MonkeyPatch) -> None:
    """Stores on a disk, which are read another way than those in memory.  Skips where counts would
    differ for other reasons."""
    monkeypatch.setattr(tempfile, "tempdir", os.environ.get("TMPDIR", "/tmp"))
    if why := instructions.unavailable():
        pytest.skip(why)


def too_many(found: Mapping[str, Profile]) -> dict[str, str]:
    """The message for each command that exceeds its limit."""
    said = {}
    for name, profile in found.items():
        reference = instructions.references()["cases"][name]
        before = reference["instructions"]
        if profile.instructions > before * (1 + instructions.TOLERANCES[name]):
            more = ", ".join(instructions.grown(profile, reference))
            said[name] = f"{profile.instructions:,.0f} instead of {before:,}; functions: {more}"
    return said


def check(count: Callable[[], Mapping[str, Profile]]) -> None:
    said = too_many(count())
    for _ in range(TRIES - 1):
        if not said:
            break
        again = too_many(count())
        said = {name: text for name, text in said.items() if name in again}
    assert not said, "\n".join(f"{name}: {text}" for name, text in said.items())


def test_commands_take_no_more_instructions() -> None:
    check(instructions.count_commands)


def test_a_job_takes_no_more_instructions() -> None:
    skip_without_sandboxes()
    check(instructions.count_jobs)


def test_what_grew_is_named() -> None:
    """The guard itself: against references of a smaller target it fails and says where."""
    profile = Profile(3110.0, {"reset": 400.0, "osd_cdb_decode": 246.0, "new": 7.0})
    reference = {"instructions": 2800, "functions": {"reset": 100, "osd_cdb_decode": 246}}
    assert instructions.grown(profile, reference, 2) == ["reset 100 + 300", "new 0 + 7"]
