# SPDX-License-Identifier: GPL-2.0-or-later
"""Every test of the conformance suite as an item: what the run over iSCSI found."""

from __future__ import annotations

import pytest

from tests.conformance.cells import TESTS, Test
from tests.conformance.conftest import Run


@pytest.fixture(autouse=True)
def no_leaks() -> None:
    """These items only look at what one run left: nothing to watch 2,000 times."""


def item(test: Test) -> str:
    return f"{test.row.name}-{test.condition}-{test.title}".replace(" ", "_")


@pytest.mark.tgtd
@pytest.mark.parametrize("test", TESTS, ids=item)
def test_over_iscsi(over_iscsi: Run, test: Test) -> None:
    outcome, message = over_iscsi.outcomes.get((test.name, test.condition), ("missing", ""))
    assert outcome not in ("failed", "missing"), f"{test.name}\n{message}"
