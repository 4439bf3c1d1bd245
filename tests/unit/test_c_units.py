# SPDX-License-Identifier: GPL-2.0-or-later
"""Runs the C unit tests, one pytest item for each ``test_*.c`` that lies beside the code."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
TREES = ("target", "sandbox", "pyosd/_core")
SOURCES = [
    (tree, source)
    for tree in TREES
    for pattern in ("test_*.c", "*/test_*.c")
    for source in sorted((ROOT / tree).glob(pattern))
]


@pytest.mark.parametrize(
    ("tree", "source"), SOURCES, ids=[str(source.relative_to(ROOT)) for _, source in SOURCES]
)
def test_c_unit(tree: str, source: Path, tmp_path: Path) -> None:
    program = ROOT / "build" / tree / source.stem
    assert program.exists(), f"{program} is not built: run 'make build'"
    done = subprocess.run(
        [program],
        cwd=tmp_path,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        timeout=120,
        check=False,
    )
    assert done.returncode == 0, f"{source.name} ended with {done.returncode}:\n{done.stdout}"
