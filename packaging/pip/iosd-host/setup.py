# SPDX-License-Identifier: GPL-2.0-or-later
"""The C trees and the requirements of the distribution `iosd-host`, one of which names the version."""

from __future__ import annotations

import sys
from pathlib import Path

from setuptools import setup

sys.path.insert(0, str(Path().resolve()))

from cmake_trees import ROOT, BuildCMake, CMakeTree  # noqa: E402

VERSION = (ROOT / "VERSION").read_text().strip()

setup(
    version=VERSION,
    # Here, because setuptools 66 of Debian 12 and 77 read it differently in pyproject.toml.
    license="GPL-2.0-or-later",
    install_requires=[
        f"iosd=={VERSION}",
        "click>=8.1",
        "pyzmq>=24",  # the resource manager and its administrators; Debian 12 has 24
        # The manager's metrics, health and console; Debian 12 has 0.16 and 3.8.
        *("prometheus-client>=0.16", "aiohttp>=3.8"),
        # Berkeley DB 5.3 for the offline tools: libdb5.3-dev; the second where the first, which is
        # no longer developed, does not build.
        "bsddb3==6.2.9; python_version < '3.12'",
        "berkeleydb==18.1.17; python_version >= '3.12'",
    ],
    ext_modules=[
        CMakeTree(
            "iosd_host.libexec.bs_iosd",
            "target",
            ("bs_iosd", "iosd_crc32c", "iosd_signers", "iosd-db-verify"),
        ),
        CMakeTree("iosd_host.libexec.sandboxd", "sandbox", ("iosd-sandboxd", "iosd-zygote")),
    ],
    cmdclass={"build_ext": BuildCMake},
)
