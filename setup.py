# SPDX-License-Identifier: GPL-2.0-or-later
"""Package metadata, and a build step that lets CMake build the three C trees.

Each tree has one build directory, ``build/<tree>``, whoever asks for it: ``make build``, the tests and
pip share it, so nothing is built twice.  No compiler logic lives here.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

from setuptools import Extension, setup
from setuptools.command.build_ext import build_ext

ROOT = Path(__file__).resolve().parent
TOOLS = {"cmake": "cmake", "ninja": "ninja-build", "pkg-config": "pkg-config"}


class CMakeTree(Extension):
    """A folder with a CMakeLists.txt, whose install step fills the folder of `name`."""

    def __init__(self, name: str, source: str) -> None:
        super().__init__(name, sources=[])
        self.source = source


class BuildCMake(build_ext):
    """Configure, build and install each tree; an editable install puts `_core` into the source folder."""

    def run(self) -> None:
        missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
        if missing:
            raise SystemExit(
                f"missing build tools: run 'make packages' or install {' '.join(missing)}"
            )
        super().run()

    def build_extension(self, ext: Extension) -> None:
        assert isinstance(ext, CMakeTree)
        tree = ROOT / "build" / ext.source
        dest = Path(self.get_ext_fullpath(ext.name)).resolve().parent
        configure = [
            "-S",
            str(ROOT / ext.source),
            "-B",
            str(tree),
            "-G",
            "Ninja",
            f"-DPython_EXECUTABLE={os.path.realpath(sys.executable)}",
        ]
        for step in (configure, ["--build", str(tree)]):
            subprocess.run(["cmake", *step], check=True)
        # Supervisor and tests of a source tree use what lies in build/; only `_core` must be importable.
        if not self.inplace or ext.name == "pyosd._core":
            install = ["--install", str(tree), "--prefix", str(dest)]
            subprocess.run(["cmake", *install], check=True, stdout=subprocess.DEVNULL)

    def get_outputs(self) -> list[str]:
        """What is installed is CMake's to know, and setuptools must not expect one file a tree."""
        return []

    def copy_extensions_to_source(self) -> None:
        """Nothing to copy: build_extension() has put the one file there."""


TREES = [
    CMakeTree(name, source)
    for name, source in (
        ("scheduler.libexec.target", "target"),
        ("scheduler.libexec.sandbox", "sandbox"),
        ("pyosd._core", "pyosd/_core"),
    )
    if (ROOT / source / "CMakeLists.txt").exists()
]

PACKAGES = [
    name
    for name, folder in (
        ("pyosd", "pyosd"),
        ("pyosd.cli", "pyosd/cli"),
        ("osd", "pyosd/osd"),
        ("scheduler", "scheduler"),
    )
    if (ROOT / folder).is_dir()
]

setup(
    name="iosd",
    version=(ROOT / "VERSION").read_text().strip(),
    description="Object storage device (T10 OSD-2 over iSCSI) that runs Python scripts next to the data",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="GPL-2.0-or-later",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=PACKAGES,
    package_dir={"osd": "pyosd/osd"},
    package_data={"pyosd": ["py.typed", "*.pyi"], "osd": ["py.typed"], "scheduler": ["py.typed"]},
    ext_modules=TREES,
    cmdclass={"build_ext": BuildCMake},
    install_requires=["click>=8.1", "rich>=13"],
    extras_require={
        "dev": ["hypothesis>=6.70", "mypy>=1.8", "pytest>=8", "pytest-timeout>=2.2", "ruff>=0.4"],
    },
    entry_points={"console_scripts": ["osd=pyosd.cli:main"]},
    zip_safe=False,
)
