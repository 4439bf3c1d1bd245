# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies into a folder of distributions what they require, from the environment that runs this.

`make install` so gets the versions that `make build` has, and needs no network: ``python -m
tools.copy_required FOLDER``.
"""

from __future__ import annotations

import shutil
import sys
from collections.abc import Iterator
from importlib.metadata import Distribution, distribution, distributions
from pathlib import Path

from pip._vendor.packaging.requirements import Requirement

__all__ = ["copy_required"]


def requirements(found: Distribution, extras: set[str]) -> Iterator[Requirement]:
    """Those of it that count on this host, with these extras."""
    for text in found.requires or ():
        each = Requirement(text)
        if each.marker is None or any(
            each.marker.evaluate({"extra": extra}) for extra in ("", *extras)
        ):
            yield each


def copy_required(folder: Path) -> None:
    """Raises: PackageNotFoundError: the environment has not all that is required."""
    there = {name_of(each.name) for each in distributions(path=[str(folder)])}
    waiting = [
        each for found in distributions(path=[str(folder)]) for each in requirements(found, set())
    ]
    while waiting:
        wanted = waiting.pop()
        if name_of(wanted.name) in there:
            continue
        there.add(name_of(wanted.name))
        found = distribution(wanted.name)
        waiting += requirements(found, wanted.extras)
        for file in found.files or ():
            if ".." in file.parts or file.suffix == ".pyc":
                continue  # programs, and what is made anew
            copy = folder / file
            copy.parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(str(file.locate()), copy)


def name_of(name: str) -> str:
    """As names of distributions are compared."""
    return name.lower().replace("_", "-").replace(".", "-")


if __name__ == "__main__":
    copy_required(Path(sys.argv[1]))
