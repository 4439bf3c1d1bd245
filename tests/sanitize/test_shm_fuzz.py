# SPDX-License-Identifier: GPL-2.0-or-later
"""A few seconds of tests/shm_fuzz.py: hostile sandboxes against a target under AddressSanitizer, beside a
tenant that checks what it reads."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.jobs.conftest import skip_without_sandboxes
from tests.shm_fuzz import Campaign

SECONDS, CALLS = 2.0, 100


@pytest.mark.sandbox
def test_hostile_sandboxes(tmp_path: Path, seed: int) -> None:
    skip_without_sandboxes()
    campaign = Campaign(tmp_path, seed)
    campaign.run(SECONDS, CALLS)
    said = campaign.summary()
    assert campaign.ends and campaign.calls >= CALLS, said
    assert campaign.tenant.jobs, said
