# SPDX-License-Identifier: GPL-2.0-or-later
"""The tgtd to run: our hardened build (`make tgtd`, docs/hardened-tgtd.md), or the distribution's."""

from __future__ import annotations

import re
import subprocess
from collections.abc import Collection
from dataclasses import dataclass
from pathlib import Path

from iosd_host.common import paths

__all__ = ["HARDENED", "STOCK", "Tgtd", "find_tgtd"]

STOCK, HARDENED = "stock", "hardened"
OURS = "+iosd"  # in the version of a tgtd with our patches


@dataclass(frozen=True)
class Tgtd:
    """A tgtd program.

    Attributes:
        version: as it says itself: "1.0.85", or "1.0.85+iosd1" with our patches; "" unknown.
    """

    path: Path
    version: str

    @property
    def hardened(self) -> bool:
        """Whether it has our patches."""
        return OURS in self.version

    @property
    def kind(self) -> str:
        """For logs and records."""
        return HARDENED if self.hardened else STOCK

    def fields(self) -> dict[str, str]:
        """For records."""
        return {"kind": self.kind, "version": self.version, "path": str(self.path)}

    def __str__(self) -> str:
        return f"{self.kind} tgtd {self.version or '(version unknown)'}, {self.path}"


def find_tgtd(wanted: str | None = None) -> Tgtd:
    """Return the daemon to run.

    Args:
        wanted: "hardened", "stock", or the path of one; None: hardened where it is built, else stock.

    Raises:
        paths.MissingComponent: it is not there.
    """
    if wanted == STOCK:
        path = paths.find_program("tgtd", "tgt")
    elif wanted == HARDENED:
        path = paths.find_component(paths.TGTD)
    elif wanted is not None:
        path = Path(wanted).resolve()
        if not path.is_file():
            raise paths.MissingComponent(f"there is no tgtd at {path}")
    else:
        try:
            path = paths.find_component(paths.TGTD)
        except paths.MissingComponent:
            path = paths.find_program("tgtd", "tgt")
    return Tgtd(path, version_of(path))


def version_of_open(descriptor: int) -> str:
    """Version that an open program prints."""
    return version_of(Path(f"/proc/self/fd/{descriptor}"), (descriptor,))


def version_of(path: Path, descriptors: Collection[int] = ()) -> str:
    """Version that the program prints.  descriptors: those that it gets."""
    try:
        done = subprocess.run(
            [path, "--version"],
            pass_fds=descriptors,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=False,
            timeout=10,
        )
    except (OSError, subprocess.TimeoutExpired):
        return ""
    found = re.search(r"\d+\.\d+\.\d+\S*", done.stdout + done.stderr)
    return found.group() if found else ""
