# SPDX-License-Identifier: GPL-2.0-or-later
"""The machine of the figures, and versions of the software involved."""

from __future__ import annotations

import ctypes
import ctypes.util
import os
import platform
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

from bench.target import SOURCE
from iosd_host.serve.tgtd import find_tgtd

UNKNOWN = "unknown"


def machine() -> dict[str, Any]:
    """For the report: strings, and numbers with their unit in the name."""
    return {
        "cpu": _cpu(),
        "cores": os.cpu_count(),
        "memory_bytes": os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE"),
        "kernel": platform.release(),
        "python": sys.version.split()[0],
        "tgt": find_tgtd().version or UNKNOWN,
        "berkeley_db": _version("db-5.3", "db_version", None, None, None),
        "libgcrypt": _version("gcrypt", "gcry_check_version", None),
    }


def commit() -> str:
    """The commit that is measured, "-dirty" with changes; unknown without a repository."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    try:
        done = subprocess.run(command, cwd=SOURCE, capture_output=True, text=True)
    except OSError:
        return UNKNOWN
    return done.stdout.strip() or UNKNOWN


def _cpu() -> str:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    names = (line.split(":", 1)[1].strip() for line in lines if line.startswith("model name"))
    return next(names, UNKNOWN)


def _version(library: str, function: str, *arguments: None) -> str:
    """Version that a library's own function returns."""
    path = ctypes.util.find_library(library)
    if path is None:
        return UNKNOWN
    call = getattr(ctypes.CDLL(path), function)
    call.restype = ctypes.c_char_p
    found = re.search(r"\d+(\.\d+)+", call(*arguments).decode())
    return found.group() if found else UNKNOWN
