# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/sense.md agrees with the table of conditions in the code."""

from __future__ import annotations

from pathlib import Path

from tools.sensedoc import conditions, page

DOCS = Path(__file__).resolve().parents[2] / "docs"


def test_page_equals_table() -> None:
    made = "run: .venv/bin/python -m tools.sensedoc >docs/sense.md"
    assert (DOCS / "sense.md").read_text(encoding="utf-8") == page(), made


def test_each_condition_has_one_name() -> None:
    names = [each.name for each in conditions()]
    assert len(set(names)) == len(names)
