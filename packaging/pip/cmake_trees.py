# SPDX-License-Identifier: GPL-2.0-or-later
"""The build step of setup.py that lets CMake build a C tree.

A tree has one build directory, ``build/<tree>`` of the source tree: ``make build``, the tests and pip
share it, so nothing is built twice.  A lock lets one of them in at a time.  No compiler logic lives here.
"""

from __future__ import annotations

import fcntl
import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension
from setuptools.command.build_ext import build_ext

__all__ = ["ROOT", "BuildCMake", "CMakeTree"]

# The project is the working directory of its setup.py.  In the repository its VERSION may be a link,
# in an unpacked source distribution it is a file: either leads to the root of the source tree.
ROOT = Path("VERSION").resolve().parent
TOOLS = {"cmake": "cmake", "ninja": "ninja-build", "pkg-config": "pkg-config"}


class CMakeTree(Extension):
    """A folder with a CMakeLists.txt, whose install step fills the package of `name`.

    products: the targets of CMake that are installed.
    """

    def __init__(self, name: str, source: str, products: tuple[str, ...]) -> None:
        super().__init__(name, sources=[])
        self.source = source
        self.package = name.split(".")[:-1]
        self.products = products


class BuildCMake(build_ext):
    """Configure, build and install each tree.

    In a source tree everything is built, and used from build/.  Only `_core` is installed, beside the
    modules that import it.
    """

    def run(self) -> None:
        # Not the inherited method: it would build outside the source tree first, then copy.
        missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
        if missing:
            raise SystemExit(f"missing build tools, run 'make packages': {' '.join(missing)}")
        for ext in self.extensions:
            self.build_extension(ext)

    def build_extension(self, ext: Extension) -> None:
        assert isinstance(ext, CMakeTree)
        tree = ROOT / "build" / ext.source
        tree.mkdir(parents=True, exist_ok=True)
        with (tree / ".lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            self.build_tree(ext, tree)

    def build_tree(self, ext: CMakeTree, tree: Path) -> None:
        configure = [
            *("-S", str(ROOT / ext.source), "-B", str(tree), "-G", "Ninja", "--log-level=WARNING"),
            f"-DPython_EXECUTABLE={os.path.realpath(sys.executable)}",
        ]
        if (ROOT / "PKG-INFO").exists():  # an unpacked source distribution, for any compiler
            configure.append("-DIOSD_WERROR=OFF")
        subprocess.run(["cmake", *configure], check=True, stdout=subprocess.DEVNULL)
        build = ["--build", str(tree)]
        if not self.inplace:
            build += ["--target", *ext.products]
        subprocess.run(["cmake", *build, "--", "--quiet"], check=True, stdout=sys.stderr)
        if not self.inplace or ext.name == "pyosd._core":
            dest = (ROOT if self.inplace else Path(self.build_lib)).joinpath(*ext.package)
            install = ["--install", str(tree), "--prefix", str(dest.resolve())]
            # `make install DESTDIR=` is about where pip's files go; CMake would heed it too.
            here = {name: value for name, value in os.environ.items() if name != "DESTDIR"}
            subprocess.run(["cmake", *install], check=True, stdout=subprocess.DEVNULL, env=here)

    def get_outputs(self) -> list[str]:
        """Nothing: the files are CMake's to know, and setuptools would expect one a tree."""
        return []
