# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/commands.md has a row for each line of ``osd_harness --list-commands``, with the same cells."""

from __future__ import annotations

import re
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
COLUMNS = 5  # code, name, supported, object types, permissions; the page adds notes


def _listed() -> list[list[str]]:
    harness = ROOT / "build" / "target" / "osd_harness"
    assert harness.exists(), f"{harness} is not built: run 'make build'"
    done = subprocess.run(
        [harness, "--list-commands"], capture_output=True, text=True, timeout=60, check=True
    )
    return [line.split("\t") for line in done.stdout.splitlines()]


def _cells() -> list[list[str]]:
    page = (ROOT / "docs" / "commands.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| ([0-9A-F]{4} \|.*)\|$", page, re.MULTILINE)
    return [[cell.strip() for cell in row.split("|")] for row in rows]


def test_page_equals_table() -> None:
    assert [row[:COLUMNS] for row in _cells()] == _listed()


def test_what_is_not_supported_has_a_reason() -> None:
    missing = [
        name for _, name, supported, _, _, note, *_ in _cells() if supported == "no" and not note
    ]
    assert not missing
