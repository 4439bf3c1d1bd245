# SPDX-License-Identifier: GPL-2.0-or-later
"""Each mutant of `make mutants` can still be planted: its place is there, once, and so are its tests."""

from __future__ import annotations

from pathlib import Path

from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]


def plantable(mutant: Mutant) -> bool:
    once = (ROOT / mutant.file).read_text().count(mutant.before) == 1
    return once and mutant.after != mutant.before and (ROOT / mutant.tests[0]).exists()


def test_mutants_can_be_planted() -> None:
    assert [mutant.name for mutant in MUTANTS if not plantable(mutant)] == []
