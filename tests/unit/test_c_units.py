# SPDX-License-Identifier: GPL-2.0-or-later
"""The C unit tests of sandbox/ and pyosd/_core, one item for each ``test_*.c`` that lies beside the code.

Not here: those of target/, which run with sanitizers (tests/sanitize/test_units.py).
"""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import run

ROOT = Path(__file__).resolve().parents[2]
TREES = ("sandbox", "pyosd/_core")
SOURCES = [(tree, source) for tree in TREES for source in sorted((ROOT / tree).glob("**/test_*.c"))]


@pytest.mark.parametrize(
    ("tree", "source"),
    SOURCES,
    ids=[str(source.relative_to(ROOT)) for _, source in SOURCES],
)
def test_c_unit(tree: str, source: Path, tmp_path: Path) -> None:
    program = ROOT / "build" / tree / source.stem
    assert program.exists(), f"{program} is not built: run 'make build'"
    done = run([str(program)], tmp_path)
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.output}"
