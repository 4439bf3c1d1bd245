# SPDX-License-Identifier: GPL-2.0-or-later
"""The C tree of the distribution `iosd`, the client; everything else about it is in pyproject.toml.

``build_ext --inplace`` prepares the whole source tree: it also builds the projects of packaging/pip.
"""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from setuptools import find_packages, setup

PROJECTS = Path("packaging", "pip").resolve()
sys.path.insert(0, str(PROJECTS))

from cmake_trees import ROOT, BuildCMake, CMakeTree  # noqa: E402


class BuildAll(BuildCMake):
    """Builds the client; in a source tree, builds all projects."""

    def run(self) -> None:
        super().run()
        if self.inplace and not self.editable_mode:
            # The metadata is beside the packages: programs that run here find the verbs of this tree.
            self.run_command("egg_info")
            for project in sorted(path.parent for path in PROJECTS.glob("*/setup.py")):
                words = ("build_ext", "--inplace", "egg_info", "--egg-base", str(ROOT))
                subprocess.run([sys.executable, "setup.py", "-q", *words], cwd=project, check=True)


# pyproject.toml cannot name a package that is found under another name.
ALIASES = {"osd": "pyosd/_alias", "osd_program": "pyosd/_program"}
OWN = find_packages(include=["pyosd", "pyosd.*"], exclude=["pyosd._alias", "pyosd._program"])

setup(
    # Here, because setuptools 66 of Debian 12 and 77 read it differently in pyproject.toml.
    license="GPL-2.0-or-later",
    packages=[*OWN, *ALIASES],
    package_dir=ALIASES,
    ext_modules=[CMakeTree("pyosd._core", "pyosd/_core", ("_core",))],
    cmdclass={"build_ext": BuildAll},
    options={
        "build": {"build_base": "build/pip/iosd"},
        "bdist_wheel": {"py_limited_api": "cp311"},  # as pyosd/_core/core.h has it
    },
)
