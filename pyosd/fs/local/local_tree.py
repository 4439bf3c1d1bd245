# SPDX-License-Identifier: GPL-2.0-or-later
"""Folders of this machine and what is below them."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator
from pathlib import Path

__all__ = ["local_tree"]


def local_tree(
    source: Path, left_out: Callable[[Path], None] | None = None
) -> Iterator[tuple[Path, str, bool]]:
    """List a folder and all folders below it; the folders in each come before its files.

    Links to files are followed.  Links to folders, sockets and devices are left out.

    Args:
        left_out: is called with the path of each link, socket and device that is left out.

    Yields: path, path relative to the folder, and whether it is a folder.
    Raises: OSError: a folder cannot be read.
    """
    skip = left_out or (lambda path: None)

    def fail(error: OSError) -> None:
        raise error

    for folder, folders, names in os.walk(source, onerror=fail):
        folders.sort()
        here = Path(folder)
        for name in folders:
            if (here / name).is_symlink():
                skip(here / name)
            else:
                yield here / name, str((here / name).relative_to(source)), True
        for name in sorted(names):
            path = here / name
            if path.is_file():
                yield path, str(path.relative_to(source)), False
            else:
                skip(path)
