# SPDX-License-Identifier: GPL-2.0-or-later
"""Splits the one distribution that setup.py makes: the client's part, and that of a target's host.

``python3 debian/metadata.py iosd.egg-info PUBLIC PRIVATE``: what each needs for Python to find its version
and, by entry points, its commands.  What the packages depend on is in debian/control.
"""

from __future__ import annotations

import configparser
import re
import sys
from pathlib import Path

PARTS = (
    ("iosd", "console_scripts", "pyosd\nosd\nosd_program\n"),
    ("iosd-manager", "iosd.commands", "scheduler\n"),
)


def split(source: Path, folders: list[Path]) -> None:
    """Write a folder of metadata into each of the folders."""
    about = (source / "PKG-INFO").read_text()
    found = re.search(r"^Version: (.*)$", about, re.MULTILINE)
    assert found is not None
    about = re.sub(r"^(Requires-Dist|Provides-Extra):.*\n", "", about, flags=re.MULTILINE)
    points = configparser.ConfigParser(delimiters=("=",))
    points.optionxform = str  # type: ignore[assignment, method-assign]
    points.read(source / "entry_points.txt")
    for folder, (name, group, modules) in zip(folders, PARTS, strict=True):
        made = folder / f"{name.replace('-', '_')}-{found[1]}.egg-info"
        made.mkdir(parents=True)
        (made / "PKG-INFO").write_text(
            re.sub(r"^Name: .*$", f"Name: {name}", about, flags=re.MULTILINE)
        )
        lines = [f"{key} = {value}\n" for key, value in points[group].items()]
        (made / "entry_points.txt").write_text(f"[{group}]\n" + "".join(lines))
        (made / "top_level.txt").write_text(modules)


if __name__ == "__main__":
    split(Path(sys.argv[1]), [Path(each) for each in sys.argv[2:]])
