# SPDX-License-Identifier: GPL-2.0-or-later
"""kill -9 under the load of tests/fault, with two roots: nothing acknowledged is lost, whichever device
it was on, and the offline check finds both whole.
"""

from __future__ import annotations

import random
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli import store as tools
from tests.fault.test_crash_harness import ANSWERS, CLIENTS, work_and_kill
from tests.oracle import Clients
from tests.tiers.two_roots import TwoRoots

ROUNDS = 3


@pytest.mark.parametrize(("head", "io"), [(1, "cached"), (500, "direct"), (4096, "cached")])
def test_kill_9(tmp_path: Path, seed: int, head: int, io: str) -> None:
    store, rng = TwoRoots(tmp_path, head, io=io), random.Random(seed)
    harness = store.serve()
    clients = Clients(harness.osd, CLIENTS, seed, tmp_path)
    for _ in range(ROUNDS):
        assert work_and_kill(harness, clients, rng) >= ANSWERS
        harness.start()
        assert clients.losses(harness.osd) == []
    harness.finish()
    tails = [file for file in store.data.glob("data/**/*t") if file.is_file()]
    assert tails, "nothing was written across the border"
    result = CliRunner().invoke(tools.check, ["--data", str(store.data), "--ssd", str(store.ssd)])
    assert result.exit_code == 0, result.output
