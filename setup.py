# SPDX-License-Identifier: GPL-2.0-or-later
"""Package metadata, and a build step that lets CMake build the three C trees.

Each tree has one build directory, ``build/<tree>``, whoever asks for it: ``make build``, the tests
and pip share it, so nothing is built twice.  No compiler logic lives here.
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
    """A folder with a CMakeLists.txt, whose install step fills the package of `name`."""

    def __init__(self, name: str, source: str) -> None:
        super().__init__(name, sources=[])
        self.source = source
        self.package = name.split(".")[:-1]


class BuildCMake(build_ext):
    """Configure, build and install each tree."""

    def run(self) -> None:
        # Not the inherited method: it would build outside the source tree first, then copy.
        missing = [package for tool, package in TOOLS.items() if shutil.which(tool) is None]
        if missing:
            raise SystemExit(f"missing build tools, run 'make packages': {' '.join(missing)}")
        for ext in self.extensions:
            self.build_extension(ext)
        if self.inplace:  # what runs in this tree has its verbs, whatever is installed
            self.run_command("egg_info")

    def build_extension(self, ext: Extension) -> None:
        assert isinstance(ext, CMakeTree)
        tree = ROOT / "build" / ext.source
        configure = [
            *("-S", str(ROOT / ext.source), "-B", str(tree), "-G", "Ninja", "--log-level=WARNING"),
            f"-DPython_EXECUTABLE={os.path.realpath(sys.executable)}",
        ]
        subprocess.run(["cmake", *configure], check=True, stdout=subprocess.DEVNULL)
        build = ["--build", str(tree), "--", "--quiet"]
        subprocess.run(["cmake", *build], check=True, stdout=sys.stderr)
        # In a source tree all but `_core`, which must be importable, is used from build/.
        if not self.inplace or ext.name == "pyosd._core":
            dest = (ROOT if self.inplace else Path(self.build_lib)).joinpath(*ext.package)
            install = ["--install", str(tree), "--prefix", str(dest.resolve())]
            # `make install DESTDIR=` is about where pip's files go; CMake would heed it too.
            here = {name: value for name, value in os.environ.items() if name != "DESTDIR"}
            subprocess.run(["cmake", *install], check=True, stdout=subprocess.DEVNULL, env=here)

    def get_outputs(self) -> list[str]:
        """Nothing: the files are CMake's to know, and setuptools would expect one a tree."""
        return []


TREES = [
    CMakeTree(name, source)
    for name, source in (
        ("scheduler.libexec.bs_iosd", "target"),
        ("scheduler.libexec.sandboxd", "sandbox"),
        ("pyosd._core", "pyosd/_core"),
    )
    if (ROOT / source / "CMakeLists.txt").exists()
]

PACKAGES = [
    name
    for name, folder in (
        ("pyosd", "pyosd"),
        ("pyosd.cli", "pyosd/cli"),
        ("pyosd.osd", "pyosd/osd"),
        ("pyosd.secmgr", "pyosd/secmgr"),
        ("osd", "pyosd/_alias"),
        ("osd_program", "pyosd/_program"),
        ("scheduler", "scheduler"),
        ("scheduler.admin", "scheduler/admin"),
        ("scheduler.admin.console", "scheduler/admin/console"),
        ("scheduler.store_tools", "scheduler/store_tools"),
    )
    if (ROOT / folder).is_dir()
]

setup(
    name="iosd",
    version=(ROOT / "VERSION").read_text().strip(),
    description="Object storage (T10 OSD-2 over iSCSI) that runs Python scripts next to the data",
    long_description=(ROOT / "README.md").read_text(),
    long_description_content_type="text/markdown",
    license="GPL-2.0-or-later",
    license_files=["LICENSE"],
    python_requires=">=3.11",
    packages=PACKAGES,
    package_dir={"osd": "pyosd/_alias", "osd_program": "pyosd/_program"},
    package_data={
        "pyosd": ["py.typed", "*.pyi"],
        "osd": ["*.pyi"],
        "scheduler": ["py.typed"],
        "scheduler.admin.console": ["static/*"],
    },
    ext_modules=TREES,
    cmdclass={"build_ext": BuildCMake},
    install_requires=[
        "click>=8.1",
        "rich>=13",
        "pyzmq>=24",  # the resource manager and its administrators; Debian 12 has 24
        # The manager's metrics, health and console; Debian 12 has 0.16 and 3.8.
        *("prometheus-client>=0.16", "aiohttp>=3.8"),
        # Of the security manager: sealed keys and certificates; Debian 12 has 38.
        "cryptography>=38",
        # Berkeley DB 5.3 for the offline tools: libdb5.3-dev; the second where the first, which is
        # no longer developed, does not build.
        "bsddb3==6.2.9; python_version < '3.12'",
        "berkeleydb==18.1.17; python_version >= '3.12'",
    ],
    extras_require={
        "dev": [
            *("hypothesis>=6.70", "mypy>=1.8", "pytest>=8", "pytest-timeout>=2.2", "ruff>=0.4"),
            *("pyyaml>=6", "types-PyYAML>=6", "selenium>=4.16"),  # alert rules; the console's page
            *("numpy>=1.26", "pandas>=2.1"),  # objects are files to them, which tests try
        ],
        # Only to measure against; `make bench` installs it, nothing else needs it.
        "bench": ["dask[distributed]>=2024.5", "matplotlib>=3.8"],
        # A security manager whose database is a PostgreSQL server's.
        "postgresql": ["psycopg[binary]>=3.1"],
        # To draw what `make soak` measured, which installs it.
        "soak": ["matplotlib>=3.8"],
    },
    entry_points={
        "console_scripts": ["osd=osd_program:main", "iosd-manager=scheduler.__main__:main"],
        # Verbs of `osd` that other packages bring; the part before the colon is what people type.
        "iosd.commands": [
            "config.check=scheduler.config_commands:check",
            "config.reload=scheduler.config_commands:reload",
            "config.show=scheduler.config_commands:show",
            "pool.build=scheduler.config_commands:build",
            "pool.set=scheduler.admin.pool_verbs:set_",
            "pool.scale=scheduler.admin.pool_verbs:scale",
            "pool.drain=scheduler.admin.pool_verbs:drain",
            "pool.resume=scheduler.admin.pool_verbs:resume",
            "pool.pause=scheduler.admin.pool_verbs:pause",
            "pool.recycle=scheduler.admin.pool_verbs:recycle",
            "pool.reset=scheduler.admin.pool_verbs:reset",
            "pool.usage=scheduler.admin.pool_verbs:usage",
            "pool.share=scheduler.admin.pool_verbs:share",
            "pool.history=scheduler.admin.pool_verbs:history",
            "pool.simulate=scheduler.simulate_command:simulate",
            "manager=scheduler.admin.manager_verbs:manager",
            "target.workers=scheduler.admin.manager_verbs:workers",
            "target.serve=scheduler.commands:serve",
            "target.attach=scheduler.unit_commands:attach",
            "target.detach=scheduler.unit_commands:detach",
            "target.sandboxd=scheduler.unit_commands:sandboxd",
            "target.manager=scheduler.unit_commands:manager",
            "target.check=scheduler.store_tools.commands:check",
            "target.repair=scheduler.store_tools.commands:repair",
            "target.dump=scheduler.store_tools.commands:dump",
            "target.backup=scheduler.store_tools.backup_commands:backup",
            "target.restore=scheduler.store_tools.backup_commands:restore",
            "target.calibrate=scheduler.store_tools.calibrate:calibrate",
            "doctor=scheduler.commands:doctor",
        ],
    },
    zip_safe=False,
)
