# SPDX-License-Identifier: GPL-2.0-or-later
"""One run of the conformance program on a target of our own, for all tests that look at it."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path

import pytest

from tests import warm
from tests.conformance import program
from tests.harness import SOURCE
from tests.machine import unavailable
from tests.serving import missing, shared


@dataclass(frozen=True)
class Run:
    """Results of one run of the program."""

    code: int
    found: dict[str, object]
    text: str
    errors: str

    @cached_property
    def outcomes(self) -> dict[tuple[str, str], tuple[str, str]]:
        """Outcome and message of each test, by its name and condition."""
        tests: list[dict[str, str]] = self.found["tests"]  # type: ignore[assignment]
        return {
            (each["name"], each["condition"]): (each["outcome"], each["message"]) for each in tests
        }


def run_program(folder: Path, *arguments: str) -> Run:
    command = [sys.executable, "-m", "tests.conformance", "--output", str(folder), *arguments]
    ended = warm.run(command, cwd=SOURCE, capture_output=True, text=True, timeout=200)
    assert (folder / "report.json").exists(), ended.stderr[-4000:]
    found = json.loads((folder / "report.json").read_text())
    return Run(ended.returncode, found, ended.stdout, ended.stderr)


@pytest.fixture(scope="session")
def throwaway() -> Iterator[str]:
    """The URL of a target that may be formatted."""
    if why := missing():
        unavailable("tgtd", why)
    with shared("--no-sandboxes") as served:
        yield served.url


@pytest.fixture(scope="session")
def over_iscsi(throwaway: str, tmp_path_factory: pytest.TempPathFactory) -> Run:
    names = ",".join(sorted(program.documented()))
    arguments = (throwaway, "--destructive", "--require", names)
    return run_program(tmp_path_factory.mktemp("conformance"), *arguments)
