# SPDX-License-Identifier: GPL-2.0-or-later
"""Memory of processes that read and write much data."""

from __future__ import annotations

import contextlib
import ctypes

__all__ = ["keep_memory"]

_M_TRIM_THRESHOLD, _M_MMAP_THRESHOLD = -1, -3  # malloc.h
_KEPT = 32 << 20  # bytes; twice what READs and WRITEs under way need


def keep_memory() -> None:
    """Have the C library reuse the memory of large buffers: new pages cost more than the copy into them."""
    with contextlib.suppress(AttributeError):  # another C library
        libc = ctypes.CDLL(None)
        libc.mallopt(_M_MMAP_THRESHOLD, _KEPT)
        libc.mallopt(_M_TRIM_THRESHOLD, _KEPT)
