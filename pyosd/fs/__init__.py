# SPDX-License-Identifier: GPL-2.0-or-later
"""Files of a target by their paths, for threads and for coroutines: target.fs, target.open()."""

from pyosd.fs.faces import AsyncFileSystem, FileSystem

__all__ = ["AsyncFileSystem", "FileSystem"]
