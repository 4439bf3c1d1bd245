# SPDX-License-Identifier: GPL-2.0-or-later
"""The initiator's core under AddressSanitizer and UBSan, against the hostile target."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.sanitize.builds import CORE, made

ROOT = Path(__file__).resolve().parents[2]


def _library(name: str) -> str:
    compiler = shutil.which("cc") or "cc"
    command = [compiler, f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


@pytest.mark.slow
@pytest.mark.after_task(CORE.task)
@pytest.mark.skipif("IOSD_CORE_SANITIZED" in os.environ, reason="this is the sanitized run")
def test_hostile_target_under_sanitizers(tmp_path: Path) -> None:
    library = made(CORE).program("_core.abi3.so")
    # A copy of the package, so that the extension everybody else uses stays as it is.
    package = tmp_path / "pyosd"
    shutil.copytree(ROOT / "pyosd", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(library, package)
    (tmp_path / "tests").mkdir()
    shutil.copytree(ROOT / "tests/client", tmp_path / "tests/client")
    preload = " ".join(map(_library, ("libasan.so", "libubsan.so")))
    environment = dict(
        os.environ,
        LD_PRELOAD=preload,
        ASAN_OPTIONS="detect_leaks=0",  # the interpreter's own
        IOSD_CORE_SANITIZED="1",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / ".pytest.ini")]
    command += [
        "--rootdir",
        str(tmp_path),
        "-o",
        f"pythonpath={tmp_path}",
        "-p",
        "no:cacheprovider",
    ]
    done = subprocess.run(
        [*command, "tests/client/test_hostile_target.py"],
        cwd=tmp_path,
        env=environment,
        capture_output=True,
        text=True,
        timeout=240,
        check=False,
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-4000:]
