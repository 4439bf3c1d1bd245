# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/attributes.md agrees with the table of attributes in the code."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_page_equals_table() -> None:
    made = subprocess.run(
        [sys.executable, "-m", "tools.attrdoc"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    page = ROOT / "docs" / "attributes.md"
    assert page.read_text() == made, "run: .venv/bin/python -m tools.attrdoc >docs/attributes.md"
