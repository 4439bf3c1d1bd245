# SPDX-License-Identifier: GPL-2.0-or-later
"""Each mutant of `make mutants` can still be planted: its place is there, once, and so are its tests."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.mutants.table import MUTANTS, Mutant

ROOT = Path(__file__).resolve().parents[2]


@pytest.mark.parametrize("mutant", MUTANTS, ids=lambda mutant: mutant.name)
def test_mutant_can_be_planted(mutant: Mutant) -> None:
    assert (ROOT / mutant.file).read_text().count(mutant.before) == 1
    assert mutant.after != mutant.before
    assert (ROOT / mutant.tests[0]).exists()
