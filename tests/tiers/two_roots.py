# SPDX-License-Identifier: GPL-2.0-or-later
"""A harness on two roots, with a head size of its own and devices that can be broken.

Lives here: the store, the devices.  Not here: what is tried with them (test_*.py).
"""

from __future__ import annotations

import errno
import mmap
import struct
from pathlib import Path

from tests.harness import Harness, program

READS, CHANGES, NAMES, DELAY, SYNCS = range(5)
"""As tests/fault/interpose.c has them."""
NUMBERS = 5


class Device:
    """One of the folders, broken and repaired while the target runs."""

    def __init__(self, shared: mmap.mmap, number: int) -> None:
        self._shared = shared
        self._start = number * NUMBERS * 8

    def _at(self, which: int) -> int:
        return self._start + which * 8

    def _put(self, which: int, value: int) -> None:
        at = self._at(which)
        self._shared[at : at + 8] = struct.pack("@Q", value)

    def break_(
        self, *, reads: int = 0, changes: int = 0, names: int = 0, delay_s: float = 0
    ) -> None:
        """From now on its calls end with these errnos, or take longer."""
        for which, value in ((READS, reads), (CHANGES, changes), (NAMES, names)):
            self._put(which, value)
        self._put(DELAY, int(delay_s * 1e6))

    def go(self) -> None:
        """Gone: nothing is done any more."""
        self.break_(reads=errno.EIO, changes=errno.EIO, names=errno.EIO)

    def mend(self) -> None:
        self.break_()

    def syncs(self) -> int:
        """How many were asked of it."""
        at = self._at(SYNCS)
        return int(struct.unpack("@Q", self._shared[at : at + 8])[0])


class TwoRoots:
    """A store in `data` and `ssd`, served by a harness; its devices by interpose.c if given.

    Args: head: bytes of a head; None: as it is formatted.
    """

    def __init__(
        self,
        folder: Path,
        head: int | None = None,
        library: Path | None = None,
        **options: object,
    ) -> None:
        self.folder = folder
        self.data, self.ssd = folder / "data", folder / "ssd"
        size = {} if head is None else {"head_size": head}
        self.settings: dict[str, object] = {"dir": self.data, "ssd": self.ssd} | size | options
        self.variables: dict[str, str] = {}
        for each in (self.data, self.ssd):
            each.mkdir(parents=True, exist_ok=True)
        if library is not None:
            shared = folder / "devices"
            shared.write_bytes(bytes(2 * NUMBERS * 8))
            with shared.open("r+b") as file:
                mapped = mmap.mmap(file.fileno(), 0)
            self.slow_one, self.fast_one = Device(mapped, 0), Device(mapped, 1)
            self.variables = {
                "LD_PRELOAD": str(library),
                "IOSD_DEVICES": f"{shared}:{self.data / 'data'}:{self.ssd}",
            }

    def serve(self, **options: object) -> Harness:
        """A harness on it.  Raises: StartFailed."""
        return Harness(program(), self.settings | options, self.folder / "log", self.variables)
