# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of packages.txt, and which of them each target of make installs."""

from __future__ import annotations

import configparser
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
SCRIPT = ROOT / "tools" / "install-packages.sh"


def parts() -> dict[str, set[str]]:
    parser = configparser.ConfigParser(allow_no_value=True)
    parser.read(ROOT / "packages.txt")
    return {part: set(parser[part]) for part in parser.sections()}


def installed_for(goal: str) -> set[str]:
    """The parts that a target of make installs."""
    words = ["make", "-n", "-C", str(ROOT), goal]
    plan = subprocess.run(words, capture_output=True, text=True, check=True).stdout
    lines = [line for line in plan.splitlines() if line.startswith("tools/install-packages.sh")]
    return {part for line in lines for part in line.split()[1:]}


def test_a_build_needs_no_browser() -> None:
    found = parts()
    assert list(found) == ["build", "run", "install", "test"]
    assert {"chromium", "debootstrap", "valgrind", "clang-tidy-14"} <= found["test"]
    for part in ("build", "run", "install"):
        assert not found[part] & found["test"]


def test_what_targets_of_make_install() -> None:
    for goal in ("build", "demo"):
        assert installed_for(goal) == {"build", "run"}
    for goal in ("test", "lint", "dev"):
        assert installed_for(goal) == {"build", "run", "install", "test"}
    assert installed_for("install") == {"build", "run", "install"}


def test_an_unknown_part_is_refused() -> None:
    done = subprocess.run([SCRIPT, "tests"], capture_output=True, text=True)
    assert done.returncode == 2 and "no part 'tests'" in done.stderr
