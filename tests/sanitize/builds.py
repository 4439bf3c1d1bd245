# SPDX-License-Identifier: GPL-2.0-or-later
"""Builds with sanitizers, made once a run and then only brought up to date.

`python -m tests.sanitize.builds [FOLDER]...` makes all of them, or those.  `make test` does so before the
tests: a worker that waits for a build has nothing else to do.

Lives here: which sanitizers go into which folder, and what their run-time is told.
Not here: what is run in them (test_*.py).
"""

from __future__ import annotations

import fcntl
import functools
import subprocess
import sys
import tempfile
from dataclasses import dataclass
from pathlib import Path

from tests import programs
from tests.workers import locked

ROOT = Path(__file__).resolve().parents[2]


@dataclass(frozen=True)
class Build:
    """One build: its folder below build/, the sanitizers in it, and the variables they read."""

    folder: str
    sanitizers: str
    options: tuple[tuple[str, str], ...] = ()
    source: str = "target"

    def program(self, name: str) -> Path:
        return ROOT / "build" / self.folder / name

    def command(self, name: str, *arguments: str) -> list[str]:
        """A command line that runs a program of this build with the variables set."""
        variables = [f"{variable}={value}" for variable, value in self.options]
        variables.append(f"TMPDIR={tempfile.gettempdir()}")
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
CORE = Build("sanitized/core", "address,undefined", source="pyosd/_core")


@functools.cache
def made(build: Build) -> Build:
    """The build, up to date.  One worker builds at a time; the next one finds everything built."""
    folder = ROOT / "build" / build.folder
    folder.mkdir(parents=True, exist_ok=True)
    with locked(folder / ".lock", fcntl.LOCK_EX):
        done = programs.run((sys.executable, "-m", "tests.sanitize.builds", build.folder), ROOT)
    assert done.returncode == 0, done.output
    return build


def main(build: Build) -> None:
    """Configure and build; ends as the step that fails does."""
    folder = ROOT / "build" / build.folder
    configure = ["cmake", "-S", str(ROOT / build.source), "-B", str(folder), "-G", "Ninja"]
    configure += [f"-DIOSD_SANITIZE={build.sanitizers}", f"-DPython_EXECUTABLE={sys.executable}"]
    configure += ["--no-warn-unused-cli", "--log-level=WARNING"]
    for step in (configure, ["cmake", "--build", str(folder)]):
        code = subprocess.run(step, check=False).returncode
        if code:
            sys.exit(code)


if __name__ == "__main__":
    for each in (ADDRESS, THREAD, CORE):
        if each.folder in (sys.argv[1:] or [each.folder]):
            main(each)
