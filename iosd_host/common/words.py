# SPDX-License-Identifier: GPL-2.0-or-later
"""Numbers with their nouns, in reasons and messages.  Pure."""

from __future__ import annotations

__all__ = ["waiting"]


def waiting(count: int, noun: str) -> str:
    """ "1 job waits", "2 jobs wait"."""
    return f"1 {noun} waits" if count == 1 else f"{count} {noun}s wait"
