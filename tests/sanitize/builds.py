# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds of target/ with sanitizers, made once a run and then only brought up to date.

Lives here: which sanitizers go into which folder, and what their run-time is told.
Not here: what is run in them (test_*.py).
"""

from __future__ import annotations

import functools
import subprocess
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
BUILD_S = 600


@dataclass(frozen=True)
class Build:
    """One build: its folder below build/, the sanitizers in it, and the variables they read."""

    folder: str
    sanitizers: str
    options: tuple[tuple[str, str], ...]

    def program(self, name: str) -> Path:
        return ROOT / "build" / self.folder / name

    def command(self, name: str, *arguments: str) -> list[str]:
        """A command line that runs a program of this build with the variables set."""
        variables = [f"{variable}={value}" for variable, value in self.options]
        return ["/usr/bin/env", *variables, str(self.program(name)), *arguments]


ADDRESS = Build(
    "target-sanitized",
    "address,undefined",
    (
        ("ASAN_OPTIONS", "detect_stack_use_after_return=1:strict_string_checks=1"),
        ("UBSAN_OPTIONS", "print_stacktrace=1"),
    ),
)
THREAD = Build(
    "target-threads",
    "thread",
    (("TSAN_OPTIONS", "second_deadlock_stack=1:history_size=4"),),
)


@functools.cache
def made(build: Build) -> Build:
    """The build, up to date."""
    folder = ROOT / "build" / build.folder
    configure: list[str | Path] = ["cmake", "-S", ROOT / "target", "-B", folder, "-G", "Ninja"]
    steps: tuple[list[str | Path], ...] = (
        [*configure, f"-DIOSD_SANITIZE={build.sanitizers}", "--log-level=WARNING"],
        ["cmake", "--build", folder],
    )
    for step in steps:
        done = subprocess.run(
            step, capture_output=True, text=True, errors="replace", timeout=BUILD_S, check=False
        )
        assert done.returncode == 0, done.stdout + done.stderr
    return build
