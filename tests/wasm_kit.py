# SPDX-License-Identifier: GPL-2.0-or-later
"""The functions of examples/functions, compiled."""

from __future__ import annotations

import shutil
import subprocess
from functools import cache
from pathlib import Path

from tests.machine import unavailable

KIT = Path(__file__).resolve().parents[1] / "examples" / "functions"


@cache
def _build(folder: Path) -> None:
    done = subprocess.run(
        ["make", "-C", str(KIT), f"OUT={folder}"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr


def kit_module(folder: Path, name: str) -> Path:
    """The compiled function of this name.  Skips where there is no compiler."""
    if not shutil.which("clang-14") or not shutil.which("wasm-ld-14"):
        unavailable("sandbox", "clang-14 and lld-14 are not installed")
    _build(folder)
    return folder / f"{name}.wasm"
