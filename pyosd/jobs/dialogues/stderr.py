# SPDX-License-Identifier: GPL-2.0-or-later
"""Standard error of jobs as the target keeps it: the first 20 and the last 40 KiB of it, readable while
the script runs (attribute 4 of page 2000_0002h).
"""

from __future__ import annotations

STDERR_AT = 4
"""Number of the attribute: be64 how many bytes there were in all, then those that are kept."""
HEAD = 20 << 10
"""Bytes kept from the beginning; the rest of what is kept is the end."""


def unseen(value: bytes, at: int) -> tuple[int, bytes]:
    """The part of the attribute after a position. A line counts bytes that are not kept.

    Args: value: of the attribute; b"": nothing was written.  at: bytes seen before.
    Returns: how many bytes there were in all, and the new ones.
    """
    total, kept = int.from_bytes(value[:8], "big"), value[8:]
    if total <= at:
        return at, b""
    lost = total - len(kept)
    if not lost:
        return total, kept[at:]
    end = HEAD + lost  # where the kept end begins
    if at >= end:
        return total, kept[at - lost :]
    missing = end - max(at, HEAD)
    return total, kept[at:HEAD] + f"[{missing} bytes were not kept]\n".encode() + kept[HEAD:]
