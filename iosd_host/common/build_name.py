# SPDX-License-Identifier: GPL-2.0-or-later
"""The name of what compiles functions: compiler and processor.  Machine code is good for the same ones."""

from __future__ import annotations

import hashlib
import platform
from pathlib import Path

CPU_INFO = Path("/proc/cpuinfo")


def _features(text: str) -> list[str]:
    """Features of all processors, as the kernel names them."""
    found: set[str] = set()
    for line in text.splitlines():
        key, _, value = line.partition(":")
        if key.strip() in ("flags", "Features"):
            found.update(value.split())
    return sorted(found)


def build_name(library: Path) -> str | None:
    """Return a name, in 64 hexadecimal digits, that differs between files of the library, architectures,
    and sets of features of processors.  None: there is no such file.

    The file is told by its size and the time of its last change: to read it takes a tenth of a second.

    Args: library: that of Wasmtime.
    """
    try:
        status = library.stat()
        features = _features(CPU_INFO.read_text())
    except OSError:
        return None
    words = [str(status.st_size), str(status.st_mtime_ns), platform.machine(), *features]
    return hashlib.sha256("\0".join(words).encode()).hexdigest()
