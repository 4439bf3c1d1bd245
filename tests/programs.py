# SPDX-License-Identifier: GPL-2.0-or-later
"""Programs that tests run to their end: C unit tests, fuzzing, builds with sanitizers."""

from __future__ import annotations

import subprocess
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

LIMIT_S = 900.0


@dataclass(frozen=True)
class Done:
    """How a program ended, and everything it printed."""

    returncode: int
    output: str


def run(command: Sequence[str], folder: Path, limit_s: float = LIMIT_S) -> Done:
    """Run a program in a folder.

    Args: limit_s: a program that runs for longer hangs; it is killed and has failed.
    """
    try:
        done = subprocess.run(
            command,
            cwd=folder,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
            timeout=limit_s,
            check=False,
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        return Done(-1, f"{command}: {error}")
    return Done(done.returncode, done.stdout)
