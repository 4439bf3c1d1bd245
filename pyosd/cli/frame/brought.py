# SPDX-License-Identifier: GPL-2.0-or-later
"""Verbs that the packages iosd-host and iosd-secmgr bring by the entry points "iosd.commands".

A client alone does not have them. It names the package to install when somebody types one.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

__all__ = ["NOUNS", "VERBS", "brought", "package_of"]

# package -> verbs, with dots for spaces
VERBS = {
    "iosd-host": (
        *("doctor", "manager", "config.check", "config.reload", "config.show"),
        *("pool.build", "pool.drain", "pool.history", "pool.pause", "pool.recycle", "pool.reset"),
        *("pool.resume", "pool.scale", "pool.set", "pool.share", "pool.simulate", "pool.usage"),
        *("target.attach", "target.backup", "target.calibrate", "target.check", "target.detach"),
        *("target.dump", "target.manager", "target.repair", "target.restore", "target.sandboxd"),
        *("target.serve", "target.workers"),
    ),
    "iosd-secmgr": ("secmgr.init", "secmgr.serve", "secmgr.audit.verify"),
}
NOUNS = frozenset({"config"})  # our nouns that have no verb of ours
DEBIAN = {"iosd-host": "iosd-manager"}  # where Debian's package has another name


@cache
def brought() -> dict[str, EntryPoint]:
    """The installed ones when it is first asked."""
    from importlib.metadata import entry_points  # takes 15 ms, which few verbs need

    return {point.name: point for point in entry_points(group="iosd.commands")}


def package_of(name: str) -> str | None:
    """The package, as people install it, that brings a verb or all verbs of a noun."""
    for package, verbs in VERBS.items():
        if any(verb == name or verb.startswith(f"{name}.") for verb in verbs):
            debian = DEBIAN.get(package)
            return f"{package} (Debian: {debian})" if debian else package
    return None
