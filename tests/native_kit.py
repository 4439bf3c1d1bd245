# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions of the engine `native`, compiled: those of examples/functions, and hostile ones."""

from __future__ import annotations

import subprocess
from functools import cache
from pathlib import Path

from tests.machine import unavailable
from tests.wasm_kit import KIT

ROOT = KIT.parents[1]
FLAGS = "-std=gnu17 -O1 -fPIC -shared -fvisibility=hidden -Wall -Wextra -Werror".split()


def _run(command: list[str]) -> None:
    try:
        done = subprocess.run(command, capture_output=True, text=True, check=False)
    except FileNotFoundError as error:
        unavailable("sandbox", f"{error.filename} is not installed")
    assert done.returncode == 0, done.stdout + done.stderr


@cache
def _build(folder: Path) -> None:
    _run(["make", "-C", str(KIT), f"OUT={folder}", "native"])


def kit_library(folder: Path, name: str) -> Path:
    """The kit's function of this name.  Skips where there is no compiler."""
    _build(folder)
    return folder / f"{name}.so"


def library(folder: Path, source: Path | str, *words: str) -> Path:
    """A library of a C file, or of C text.  Skips where there is no compiler."""
    if isinstance(source, str):
        path = folder / "source.c"
        path.write_text(source)
        source = path
    made = folder / f"{source.stem}.so"
    _run(["cc", *FLAGS, f"-I{KIT}", f"-I{ROOT / 'target'}", str(source), "-o", str(made), *words])
    return made


def hostile_library(folder: Path) -> Path:
    """tests/sandbox/hostile_native.c."""
    return library(folder, ROOT / "tests/sandbox/hostile_native.c", "-lm")
