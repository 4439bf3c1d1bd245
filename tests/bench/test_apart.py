# SPDX-License-Identifier: GPL-2.0-or-later
"""Measuring before the machine's other programs leaves nothing behind."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from bench.apart import CPU, apart


def cpu_group() -> str:
    lines = Path("/proc/self/cgroup").read_text().splitlines()
    return next((line for line in lines if "cpu" in line.split(":")[1].split(",")), "")


def test_a_group_for_the_time_of_it() -> None:
    before = cpu_group()
    with apart() as alone:
        if not alone:
            pytest.skip(f"no group of our own at {CPU}")
        inside = cpu_group()
        child = [sys.executable, "-c", "print(open('/proc/self/cgroup').read())"]
        found = subprocess.run(child, capture_output=True, text=True, check=True)
    assert inside != before and inside in found.stdout
    assert cpu_group() == before
    assert not (CPU / inside.rpartition("/")[2]).exists()
