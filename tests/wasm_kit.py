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


def kit_rust_module(folder: Path, name: str, source: str = "") -> Path:
    """A function in Rust: the kit's of this name, or this source.  Skips where there is no compiler."""
    rustc = _rustc()
    if rustc is None:
        unavailable("sandbox", "rustc and libstd-rust-dev-wasm32 are not installed")
    kit = KIT
    if source:
        kit = folder / "kit"
        kit.mkdir()
        for file in ("Makefile", "osd.rs"):
            shutil.copy(KIT / file, kit)
        (kit / f"{name}.rs").write_text(source)
    module = folder / f"{name}.wasm"
    command = ["make", "-C", str(kit), f"OUT={folder}", f"RUSTC={rustc}", str(module)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    return module


@cache
def _rustc() -> str | None:
    """A compiler with the standard library for wasm32: Debian's, or another one."""
    for rustc in ("/usr/bin/rustc", shutil.which("rustc")):
        if rustc is None or not Path(rustc).exists():
            continue
        command = [rustc, "--print", "target-libdir", "--target", "wasm32-unknown-unknown"]
        done = subprocess.run(command, capture_output=True, text=True, check=False)
        if done.returncode == 0 and Path(done.stdout.strip()).is_dir():
            return rustc
    return None


def needs_compiler_of_stock() -> None:
    """Skips where there is not the compiler that made pyosd/functions/stock/image.wasm."""
    found = shutil.which("clang-14") and shutil.which("wasm-ld-14")
    command = ["clang-14", "--version"]
    if not found or "14.0.6" not in subprocess.run(command, capture_output=True, text=True).stdout:
        unavailable("sandbox", "clang-14 and lld-14 of Debian 12 are not installed")


def kit_module(folder: Path, name: str) -> Path:
    """The compiled function of this name.  Skips where there is no compiler."""
    if not shutil.which("clang-14") or not shutil.which("wasm-ld-14"):
        unavailable("sandbox", "clang-14 and lld-14 are not installed")
    _build(folder)
    return folder / f"{name}.wasm"
