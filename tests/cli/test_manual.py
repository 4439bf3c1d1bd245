# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/cli.md agrees with --help and with the table of exit codes."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_manual_is_up_to_date() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tools.clidoc"], cwd=ROOT, capture_output=True, text=True, check=True
    ).stdout
    manual = ROOT / "docs" / "cli.md"
    assert manual.read_text() == made, "run: .venv/bin/python -m tools.clidoc >docs/cli.md"
