# SPDX-License-Identifier: GPL-2.0-or-later
"""The paths of built components: in a source tree under build/, in an installation under libexec/."""

from __future__ import annotations

import importlib.util
import os
import shutil
from dataclasses import dataclass
from pathlib import Path

__all__ = [
    "CRC32C",
    "DB_VERIFY",
    "MODULE",
    "SANDBOXD",
    "SIGNERS",
    "TGTD",
    "MissingComponent",
    "find_component",
    "find_program",
    "python_dir",
    "wasmtime_library",
]

HERE = Path(__file__).resolve().parents[1]
LIBEXEC = HERE / "libexec"
SOURCE_TREE = HERE.parent


@dataclass(frozen=True)
class Component:
    """A built file: its name, the folder of build/ it is made in, where a package puts it if not into
    LIBEXEC, the target of make that makes it, and the Debian package that has it."""

    name: str
    tree: str
    installed: Path = LIBEXEC
    make: str = "build"
    package: str = "iosd-target"


MODULE = Component("bs_iosd.so", "target", Path("/usr/lib/tgt/backing-store"))
CRC32C = Component("iosd_crc32c.so", "target")
DB_VERIFY = Component("iosd-db-verify", "target")
SIGNERS = Component("iosd_signers.so", "target")
SANDBOXD = Component("iosd-sandboxd", "sandbox", package="iosd-sandbox")
# The hardened one; the stock one is found in PATH.
TGTD = Component("tgtd", "tgtd", HERE.parent, "tgtd", "iosd-tgtd")


class MissingComponent(Exception):
    """A piece is not where it should be; the text says how to get it."""


def find_component(component: Component) -> Path:
    """Return the path of a built piece.

    Raises:
        MissingComponent: it is not built or not installed.
    """
    for folder in (SOURCE_TREE / "build" / component.tree, LIBEXEC, component.installed):
        path = folder / component.name
        if path.is_file():
            return path
    raise MissingComponent(
        f"{component.name} is neither installed (Debian package {component.package}) nor built "
        f"('make {component.make}')"
    )


def find_program(name: str, package: str) -> Path:
    """Return the path of a system program, also where PATH lacks the sbin folders.

    Raises:
        MissingComponent: it is not installed.
    """
    path = os.environ.get("PATH", os.defpath) + ":/usr/local/sbin:/usr/sbin:/sbin"
    found = shutil.which(name, path=path)
    if found is None:
        raise MissingComponent(f"{name} is not installed: apt-get install {package}")
    return Path(found)


def python_dir() -> Path:
    """Return the folder that holds the package `osd` which scripts import: pyosd, beside this one or
    where Python finds it."""
    spec = importlib.util.find_spec("pyosd")  # looks, and imports nothing
    folders = [SOURCE_TREE / "pyosd", *map(Path, (spec and spec.submodule_search_locations) or ())]
    for folder in folders:
        if (folder / "osd" / "__init__.py").is_file():
            return folder
    raise MissingComponent("the Python package 'osd' is not installed beside iosd")


def wasmtime_library() -> Path | None:
    """Return the library of the Python package wasmtime, which the engine `wasm` needs; None: this host
    has none."""
    spec = importlib.util.find_spec("wasmtime")  # looks, and imports nothing
    folders = map(Path, (spec and spec.submodule_search_locations) or ())
    return next((found for each in folders for found in each.glob("*/_libwasmtime.so")), None)
