# SPDX-License-Identifier: GPL-2.0-or-later
"""`python -m tests.mutants [WORD...]`: plant each mutant (whose name has a word) in a copy of the source
under build/mutants, build what changed, run its tests; exit 1 when one survives, or cannot be judged.

A mutant is killed when its tests fail; the same tests pass without it, which is tried first.
"""

from __future__ import annotations

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path

from tests.mutants.table import MUTANTS, Mutant
from tests.sanitize.builds import ADDRESS
from tests.source_copy import copy_source

ROOT = Path(__file__).resolve().parents[2]
TREE = ROOT / "build" / "mutants"
TIMEOUT_S = 400.0
FIRST_BUILD_S = 3600.0
TESTS_FAILED = 1
"""Exit code of pytest; others are of what kept it from judging."""


def run(*words: str, timeout: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    """A command in the copy; its output is kept."""
    environment = {key: value for key, value in os.environ.items() if key != "PYTHONPATH"}
    return subprocess.run(
        words,
        cwd=TREE,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=timeout,
        check=False,
    )


def build(timeout: float = TIMEOUT_S) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "setup.py", "-q", "build_ext", "--inplace", timeout=timeout)


def build_all() -> subprocess.CompletedProcess[str]:
    """Also the build with sanitizers: a test that makes it from nothing exceeds its own time."""
    built = build(FIRST_BUILD_S)
    if built.returncode:
        return built
    return run(sys.executable, "-m", "tests.sanitize.builds", ADDRESS.folder, timeout=FIRST_BUILD_S)


def test(words: tuple[str, ...]) -> subprocess.CompletedProcess[str]:
    return run(sys.executable, "-m", "pytest", "-q", "-x", "--timeout=120", *words)


def plant(mutant: Mutant) -> str:
    """Change the copy; returns what the file was.  Raises: ValueError: the place is not there once."""
    path = TREE / mutant.file
    text = path.read_text()
    if text.count(mutant.before) != 1:
        raise ValueError(f"'{mutant.before}' is {text.count(mutant.before)} times in {mutant.file}")
    path.write_text(text.replace(mutant.before, mutant.after))
    return text


def judge(mutant: Mutant) -> str:
    """Outcome of a mutant: killed, survived, or the reason why it is unknown."""
    try:
        before = plant(mutant)
    except ValueError as error:
        return f"cannot be planted: {error}"
    try:
        built = build()
        if built.returncode:
            return f"does not build:\n{built.stdout[-2000:]}"
        code = test(mutant.tests).returncode
    except subprocess.TimeoutExpired:
        return "killed"  # its tests hang, which the gate does not let pass
    finally:
        (TREE / mutant.file).write_text(before)
    if code == TESTS_FAILED:
        return "killed"
    return "survived" if code == 0 else f"pytest ended with {code}"


def sound(mutants: list[Mutant]) -> list[str]:
    """Tests that fail without a mutant, or are not there: those judge nothing."""
    found = []
    for words in dict.fromkeys(mutant.tests for mutant in mutants):
        done = test(words)
        if done.returncode:
            found.append(f"{' '.join(words)}:\n{done.stdout[-2000:]}")
    return found


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.mutants", description=__doc__)
    parser.add_argument("words", nargs="*", help="only mutants whose name has one of these")
    parser.add_argument("--unsound", action="store_true", help="do not try the tests without them")
    arguments = parser.parse_args()
    chosen = [
        each
        for each in MUTANTS
        if not arguments.words or any(word in each.name for word in arguments.words)
    ]
    copy_source(TREE)
    built = build_all()
    if built.returncode:
        print(built.stdout, file=sys.stderr)
        return 2
    failing = [] if arguments.unsound else sound(chosen)
    if failing:
        print("fails without a mutant:", *failing, sep="\n", file=sys.stderr)
        return 2
    lived = 0
    for mutant in chosen:
        begin = time.monotonic()
        fate = judge(mutant)
        lived += fate != "killed"
        print(f"{fate}: {mutant.name} ({time.monotonic() - begin:.0f} s)", flush=True)
    print(f"{len(chosen) - lived} of {len(chosen)} killed")
    return 1 if lived else 0


if __name__ == "__main__":
    sys.exit(main())
