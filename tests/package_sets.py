# SPDX-License-Identifier: GPL-2.0-or-later
"""Package sets for tests: small ones made of given files, and real ones that pip makes once.

Those of pip are kept below build/, beside what else is made once and used by every run.
"""

from __future__ import annotations

import fcntl
from pathlib import Path

from iosd_host.config import packages
from iosd_host.config.packages import PackageSet
from tests.harness import SOURCE

SETS = SOURCE / "build" / "packages"
NUMPY = ("numpy==2.4.6",)
CRYPTOGRAPHY = ("cryptography==50.0.2",)
PYARROW = ("pyarrow==26.0.1",)
PANDAS = ("numpy==2.4.6", "pandas==3.1.1")


def make(name: str, sets: Path, files: dict[str, str], *preload: str) -> PackageSet:
    """A set of these modules: path below lib/ -> source."""
    work = sets / f".{name}"
    for path, source in files.items():
        file = work / "lib" / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(source)
    (sets / name).mkdir(exist_ok=True)
    return packages.seal(name, work, sets / name, set(), preload)


def from_registry(name: str, requirements: tuple[str, ...], *preload: str) -> PackageSet:
    """The set of that name, built when it is not there, or is another release's."""
    SETS.mkdir(parents=True, exist_ok=True)
    with (SETS / ".lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        try:
            found = packages.find(name, SETS)
            if sorted(requirements) == sorted(asked(found, requirements)):
                return found
        except packages.PackagesError:
            pass
        return packages.build(name, requirements, sets=SETS, preload=preload)


def asked(found: PackageSet, requirements: tuple[str, ...]) -> list[str]:
    """The requirements that the set fulfils, in the same form."""
    versions = found.manifest()["distributions"]
    names = [each.partition("==")[0] for each in requirements]
    return [f"{each}=={versions.get(each)}" for each in names]
