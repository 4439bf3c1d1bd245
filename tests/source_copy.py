# SPDX-License-Identifier: GPL-2.0-or-later
"""A copy of the source below build/, for builds that must not touch the one everybody uses."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]


def copy_source(tree: Path) -> None:
    """Bring the copy up to date.  It keeps its build, and files that are the same keep their times."""
    listed = subprocess.run(
        ["git", "ls-files", "--cached", "--others", "--exclude-standard", "-z"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    for name in filter(None, listed.split("\0")):
        source, copy = ROOT / name, tree / name
        if source.is_symlink():
            copy.parent.mkdir(parents=True, exist_ok=True)
            copy.unlink(missing_ok=True)
            copy.symlink_to(source.readlink())
        if source.is_symlink() or not source.is_file():
            continue
        if copy.exists() and copy.read_bytes() == source.read_bytes():
            continue
        copy.parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(source, copy)
