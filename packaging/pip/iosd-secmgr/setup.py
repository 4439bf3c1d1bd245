# SPDX-License-Identifier: GPL-2.0-or-later
"""The requirements of the distribution `iosd-secmgr`, one of which names the version."""

from __future__ import annotations

from pathlib import Path

from setuptools import setup

VERSION = Path("VERSION").read_text().strip()

setup(
    version=VERSION,
    # Here, because setuptools 66 of Debian 12 and 77 read it differently in pyproject.toml.
    license="GPL-2.0-or-later",
    install_requires=[
        f"iosd=={VERSION}",
        "click>=8.1",
        "aiohttp>=3.8",  # Debian 12 has 3.8
        "cryptography>=38",  # sealed keys and certificates; Debian 12 has 38
    ],
)
