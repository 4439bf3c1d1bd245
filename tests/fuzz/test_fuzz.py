# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzz targets build, replay their corpora and survive a while of fresh fuzzing."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from tests.ahead import Task, run

RUN = Path(__file__).with_name("run.py")
SECONDS = int(os.environ.get("IOSD_FUZZ_SECONDS", "60"))
# One target after another: the other processor is that of the tests meanwhile.
TASK = Task((sys.executable, str(RUN), "--seconds", str(SECONDS), "--jobs", "1"), SECONDS + 800)


@pytest.mark.slow
@pytest.mark.is_task(TASK)
@pytest.mark.timeout(SECONDS + 900)
def test_fuzz() -> None:
    done = run(TASK)
    assert done.returncode == 0, done.output
