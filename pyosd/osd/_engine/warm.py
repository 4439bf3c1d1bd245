# SPDX-License-Identifier: GPL-2.0-or-later
"""Preparations of a zygote of the engine `python` (sandbox/python/python_engine.c) before it forks
sandboxes, so that no sandbox has to do them.

Not here: how a job runs (host.py), how a sandbox is cleaned for another one (hygiene.py), what a
package set is (packages.py).
"""

from __future__ import annotations

import _random
import gc
import os
import random
from functools import partial
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING

from . import forks, host, hygiene, packages

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["prepare"]

PAGE_BYTES = os.sysconf("SC_PAGESIZE")


def prepare(
    pool: str, folder: str, wanted: str, preload: str, statm: int
) -> tuple[
    Callable[..., host.EndReport],
    Callable[[bytes, str], host.KeptCode | None],
    Callable[[bool], bool],
    Callable[[], None],
    bool,
    int,
]:
    """Warm this interpreter up.

    Args:
        pool: the pool of the sandboxes.
        folder, wanted: its package set and the id of this; wanted "": it has none.
        preload: modules to import, of the set or of the standard library, separated by commas; "": those
            of the set's manifest.
        statm: descriptor of our /proc/self/statm; -1: there is none.

    Returns:
        the functions that run a job, keep code, clean up after a job, and are called in a sandbox after
        the fork; whether the interpreter's own preparations for forks are needed; bytes of data of the
        set's modules, which are not charged to jobs.

    Raises:
        PackageSetError: the set cannot be used, or a module cannot be imported; the text says why.
    """
    found = (
        packages.VerifiedPackageSet(folder, wanted) if wanted else None
    )  # before any of it is imported
    host.preload()
    before = data_bytes(statm)
    names = [name for name in preload.split(",") if name]
    if found:
        names = found.load(names)
    else:
        packages.import_all(names, [])
    loaded = data_bytes(statm)
    forks.unwatch()
    # Nothing but C: each line of Python would touch pages that every sandbox then copies.
    forks.in_child += [partial(_random.Random.seed, random._inst), *packages.seeds]
    explain_late_extensions(pool, names)
    host.rehearse()
    gc.enable()  # python_engine.c has disabled it
    hygiene.remember()
    set_bytes = max(0, loaded - before)
    made = host.run, host.keep, hygiene.clean, forks.forked, forks.wants_all(), set_bytes
    gc.collect()
    gc.freeze()
    host.rehearse()  # again: what came between has put other types into the caches
    gc.freeze()  # what is not frozen is a job's: hygiene.py
    return made


def data_bytes(statm: int) -> int:
    """The bytes of this process that RLIMIT_DATA counts, or 0 if unknown."""
    return 0 if statm < 0 else int(os.pread(statm, 256, 0).split()[5]) * PAGE_BYTES


# Compiled modules of the standard library that are of no use in a sandbox, or that a target's
# administrator must decide about, and why.
NO_NETWORK = "a sandbox has no network"
NO_PROCESSES = "a sandbox starts no processes"
NO_TERMINAL = "a sandbox has no terminal"
LIBRARY = {
    "_asyncio": NO_NETWORK,
    "_ctypes": "it calls machine code and touches any memory",
    "_curses": NO_TERMINAL,
    "_curses_panel": NO_TERMINAL,
    "_multiprocessing": NO_PROCESSES,
    "_posixshmem": NO_PROCESSES,
    "_ssl": NO_NETWORK,
    "nis": NO_NETWORK,
    "ossaudiodev": "a sandbox has no devices",
    "readline": NO_TERMINAL,
    "termios": NO_TERMINAL,
}


def explain_late_extensions(pool: str, names: list[str]) -> None:
    """Say what to do where a sandbox's filter keeps a script from importing machine code."""
    create = ExtensionFileLoader.create_module

    def create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
        try:
            return create(self, spec)
        except ImportError as error:
            raise ImportError(
                late_extension(spec.name, pool, names), name=spec.name, path=spec.origin
            ) from error

    ExtensionFileLoader.create_module = create_module  # type: ignore[method-assign]


def late_extension(name: str, pool: str, names: list[str]) -> str:
    """Why a script cannot import a compiled module, and how it could.

    Args: names: the modules that the pool imports ahead of need.
    """
    if name in LIBRARY:
        return (
            f"{name} is an extension module that scripts do not get: {LIBRARY[name]} "
            f"(preload = ['{name}'] of pool '{pool}' would import it)"
        )
    why = f"{name} is an extension module, which a sandbox can only import ahead of need"
    if packages.in_library(name):
        return f"{why}: the target's administrator may set preload = ['{name}'] of pool '{pool}'"
    listed = f"preloads: {', '.join(names)}" if names else "has no such list"
    return (
        f"{why}: the target's administrator may add it to the preload list of pool '{pool}' "
        f"(it {listed})"
    )
