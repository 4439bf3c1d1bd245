# SPDX-License-Identifier: GPL-2.0-or-later
"""The conformance run over iSCSI, an item for each command: it lists every test that failed."""

from __future__ import annotations

import pytest

from tests.conformance.cells import TESTS
from tests.conformance.commands import ROWS, Row
from tests.conformance.conftest import Run


@pytest.mark.tgtd
@pytest.mark.parametrize("row", ROWS, ids=lambda row: row.name.replace(" ", "_"))
def test_over_iscsi(over_iscsi: Run, row: Row) -> None:
    tests = [test for test in TESTS if test.row == row]
    assert tests, "no test is about this command"
    wrong = []
    for test in tests:
        outcome, message = over_iscsi.outcomes.get((test.name, test.condition), ("missing", ""))
        if outcome in ("failed", "missing"):
            wrong.append(f"{test.name}, {test.condition}: {outcome}\n{message}")
    assert not wrong, f"{len(wrong)} of {len(tests)} tests\n" + "\n".join(wrong)
