# SPDX-License-Identifier: GPL-2.0-or-later
"""What a zygote does before it forks sandboxes (sandbox/py_host.c): everything they are to find done.

Not here: how a job runs (_host.py), how a sandbox is cleaned for another one (_hygiene.py), what a
package set is (_packages.py).
"""

from __future__ import annotations

import gc
from importlib.machinery import ExtensionFileLoader
from typing import TYPE_CHECKING

from . import _host, _hygiene, _packages

if TYPE_CHECKING:
    from collections.abc import Callable
    from importlib.machinery import ModuleSpec
    from types import ModuleType

__all__ = ["prepare"]


def prepare(
    pool: str, folder: str, wanted: str, preload: str
) -> tuple[Callable[..., _host.Report], Callable[[], bool]]:
    """Warm this interpreter up; give what runs a job, and what cleans up after it.

    Args: pool: whose sandboxes these will be.  folder, wanted: its package set and that one's id;
    wanted "": it has none.  preload: modules of it to import, separated by commas; "": as it says.

    Raises:
        PackageSetError: the set cannot be used; the text says why.
    """
    found = _packages.PackageSet(folder, wanted) if wanted else None  # before any of it is imported
    _host.preload()
    names = found.load([name for name in preload.split(",") if name]) if found else []
    explain_late_extensions(pool, names)
    _host.rehearse()
    _hygiene.remember()
    gc.collect()
    gc.freeze()
    return _host.run, _hygiene.clean


def explain_late_extensions(pool: str, names: list[str]) -> None:
    """Say what to do where a sandbox's filter keeps a script from importing machine code."""
    create = ExtensionFileLoader.create_module
    listed = f"preloads: {', '.join(names)}" if names else "has no such list"

    def create_module(self: ExtensionFileLoader, spec: ModuleSpec) -> ModuleType:
        try:
            return create(self, spec)
        except ImportError as error:
            raise ImportError(
                f"{spec.name} is an extension module, which a sandbox can only import ahead of "
                f"need: the target's administrator may add it to the preload list of pool "
                f"'{pool}' (it {listed})",
                name=spec.name,
                path=spec.origin,
            ) from error

    ExtensionFileLoader.create_module = create_module  # type: ignore[method-assign]
