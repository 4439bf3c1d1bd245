# SPDX-License-Identifier: GPL-2.0-or-later
"""The C unit tests of target/ under AddressSanitizer and UndefinedBehaviorSanitizer, and those of the
layers that share memory between threads under ThreadSanitizer: one item for each program."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.programs import run
from tests.sanitize.builds import ADDRESS, ROOT, THREAD, Build, made

SOURCES = sorted((ROOT / "target").glob("*/**/test_*.c"))
THREADED_LAYERS = frozenset(
    {"base", "command", "unit", "exec", "object", "security", "store", "testing"}
)
# They fork and kill, or check signatures, which takes long under ThreadSanitizer and has no second thread
# to show it.
ONE_THREAD = frozenset(
    {"test_crash.c", "test_faults.c", "test_heads_crash.c", "test_index_crash.c", "test_nonce.c"}
    | {"test_sshsig.c"}
)


def is_threaded(source: Path) -> bool:
    return (
        source.relative_to(ROOT / "target").parts[0] in THREADED_LAYERS
        and source.name not in ONE_THREAD
    )


RUNS = [(ADDRESS, source) for source in SOURCES] + [
    (THREAD, source) for source in SOURCES if is_threaded(source)
]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("build", "source"),
    RUNS,
    ids=[f"{build.folder}-{source.relative_to(ROOT)}" for build, source in RUNS],
)
def test_c_unit(build: Build, source: Path, tmp_path: Path) -> None:
    done = run(made(build).command(source.stem), tmp_path)
    assert done.returncode == 0, f"ended with {done.returncode}:\n{done.output[-8000:]}"
    assert "Sanitizer" not in done.output, done.output[-8000:]
