# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzz targets build, replay their corpora and survive a while of fresh fuzzing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.programs import run

RUN = Path(__file__).with_name("run.py")
GATE_S = 10
SECONDS = int(os.environ.get("IOSD_FUZZ_SECONDS", GATE_S))
# One target after another: the other processor is for the tests of another worker.
COMMAND = (sys.executable, str(RUN), "--seconds", str(SECONDS), "--jobs", "1")
# The compiler takes five times as long as the gate fuzzes.
QUICK = ("--quick",)


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 900)
def test_fuzz(tmp_path: Path) -> None:
    quick = QUICK if SECONDS <= GATE_S else ()
    done = run((*COMMAND, *quick), tmp_path, SECONDS + 800)
    assert done.returncode == 0, done.output
