# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/permissions.md has what verbs need."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.machine import unavailable
from tests.secmgr.verbs import document, sample
from tests.serving import missing, sandboxes_missing

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]
PAGE = Path(__file__).resolve().parents[2] / "docs" / "permissions.md"


def test_the_table_is_up_to_date() -> None:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with sample() as found:
        made = document(found)
    assert PAGE.read_text() == made, (
        "run: .venv/bin/python -m tests.secmgr.verbs >docs/permissions.md"
    )
