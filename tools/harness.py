# SPDX-License-Identifier: GPL-2.0-or-later
"""Tables of the target, as the built osd_harness prints them."""

from __future__ import annotations

import subprocess
from pathlib import Path

__all__ = ["HARNESS", "table"]

HARNESS = Path(__file__).resolve().parents[1] / "build" / "target" / "osd_harness"


def table(option: str) -> list[list[str]]:
    """The columns of each line.  Args: option: of osd_harness, such as --list-sense."""
    done = subprocess.run([HARNESS, option], capture_output=True, text=True, timeout=60, check=True)
    return [line.split("\t") for line in done.stdout.splitlines()]
