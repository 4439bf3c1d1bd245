# SPDX-License-Identifier: GPL-2.0-or-later
"""A target of the demonstration's own: `osd target serve` with a store in a temporary folder."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

__all__ = ["osd", "serving"]

STOP_S = 30


def osd(*words: str | Path) -> list[str | Path]:
    """The command line of the program `osd` of this environment."""
    return [Path(sys.executable).parent / "osd", *words]


@contextmanager
def serving(data: Path, log: Path) -> Iterator[dict[str, Any]]:
    """Serve a target as long as the context lasts; yields what its ready line says.

    Raises:
        RuntimeError: it did not start; the text holds what it said.
    """
    words = ("target", "serve", "--data", data, "--portal", "127.0.0.1:0", "--isolation", "best")
    with log.open("w") as errors:
        process = subprocess.Popen(
            osd(*words, "-o", "json"),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=errors,
            text=True,
        )
    try:
        assert process.stdout is not None
        line = process.stdout.readline()
        if not line:
            process.wait()
            raise RuntimeError(f"the target did not start:\n{log.read_text()}")
        yield json.loads(line)
    finally:
        process.terminate()
        process.communicate(timeout=STOP_S)
