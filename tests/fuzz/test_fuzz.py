# SPDX-License-Identifier: GPL-2.0-or-later
"""The fuzz targets build, replay their corpora and survive a while of fresh fuzzing."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

RUN = Path(__file__).with_name("run.py")
SECONDS = int(os.environ.get("IOSD_FUZZ_SECONDS", "60"))


@pytest.mark.slow
@pytest.mark.timeout(SECONDS + 900)
def test_fuzz() -> None:
    done = subprocess.run(
        [sys.executable, str(RUN), "--seconds", str(SECONDS)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        check=False,
    )
    assert done.returncode == 0, done.stdout
