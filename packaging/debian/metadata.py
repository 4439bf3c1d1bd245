# SPDX-License-Identifier: GPL-2.0-or-later
"""Installs the metadata by which Python finds the version and the commands of a distribution.

``python3 debian/metadata.py NAME.egg-info FOLDER``.  Without its requirements: the dependencies of the
packages are in debian/control.
"""

from __future__ import annotations

import re
import shutil
import sys
from pathlib import Path


def install(source: Path, folder: Path) -> None:
    """Write FOLDER/NAME-VERSION.egg-info."""
    about = (source / "PKG-INFO").read_text()
    version = re.search(r"^Version: (.*)$", about, re.MULTILINE)
    assert version is not None
    made = folder / f"{source.stem}-{version[1]}.egg-info"
    made.mkdir(parents=True)
    text = re.sub(r"^(Requires-Dist|Provides-Extra):.*\n", "", about, flags=re.MULTILINE)
    (made / "PKG-INFO").write_text(text)
    for name in ("entry_points.txt", "top_level.txt"):
        shutil.copy(source / name, made)


if __name__ == "__main__":
    install(Path(sys.argv[1]), Path(sys.argv[2]))
