# SPDX-License-Identifier: GPL-2.0-or-later
"""The core under AddressSanitizer and UBSan: against the hostile target, and lists of attributes."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

import pytest

from tests.programs import run
from tests.sanitize.builds import CORE, made

ROOT = Path(__file__).resolve().parents[2]
COMMAND = (sys.executable, "-m", "tests.client.test_sanitized_core")


@pytest.mark.slow
@pytest.mark.skipif("IOSD_CORE_SANITIZED" in os.environ, reason="this is the sanitized run")
def test_hostile_target_under_sanitizers() -> None:
    made(CORE)
    done = run(COMMAND, ROOT)
    assert done.returncode == 0, done.output[-8000:]


def _library(name: str) -> str:
    compiler = shutil.which("cc") or "cc"
    command = [compiler, f"-print-file-name={name}"]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def main(folder: Path) -> int:
    """Run the tests on a copy of the package, so that the extension everybody uses stays as it is."""
    package = folder / "pyosd"
    shutil.copytree(ROOT / "pyosd", package, ignore=shutil.ignore_patterns("*.so", "__pycache__"))
    shutil.copy(CORE.program("_core.abi3.so"), package)
    (folder / "tests").mkdir()
    shutil.copytree(ROOT / "tests/client", folder / "tests/client")
    preload = " ".join(map(_library, ("libasan.so", "libubsan.so")))
    environment = dict(
        os.environ,
        LD_PRELOAD=preload,
        ASAN_OPTIONS="detect_leaks=0",  # the interpreter's own
        IOSD_CORE_SANITIZED="1",
    )
    command = [sys.executable, "-m", "pytest", "-q", "-c", str(ROOT / ".pytest.ini")]
    command += ["--rootdir", str(folder), "-o", f"pythonpath={folder}", "-p", "no:cacheprovider"]
    command += ["tests/client/test_hostile_target.py", "tests/client/test_decode_members.py"]
    return subprocess.run(command, cwd=folder, env=environment, check=False).returncode


if __name__ == "__main__":
    with tempfile.TemporaryDirectory() as made_folder:
        sys.exit(main(Path(made_folder)))
