# SPDX-License-Identifier: GPL-2.0-or-later
"""Many clients at once on a core built with ThreadSanitizer: no data race, and nothing mixed up."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.conftest import MakeHarness
from tests.oracle import Clients
from tests.sanitize.builds import THREAD, made

CLIENTS = 6
ANSWERS = 1200


@pytest.mark.parametrize("backend", ["memory", "bdb"])
def test_no_data_race(make_harness: MakeHarness, tmp_path: Path, seed: int, backend: str) -> None:
    options: dict[str, object] = {"memory": 1} if backend == "memory" else {}
    harness = make_harness(made(THREAD).program("osd_harness"), workers=8, **options)
    clients = Clients(harness.osd, CLIENTS, seed, tmp_path)
    assert clients.work(lambda number: harness.osd, clients.stop.set, ANSWERS, 0) >= ANSWERS
    assert clients.losses(harness.osd) == []
    harness.finish()  # a report is a failure
