# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `gzip`: objects that are stored in the format of gzip, read and written as text.

Parameters: level=0..9 of the compression; default 6.
"""

from __future__ import annotations

import gzip

import osd


def options_of(stage: osd.StageInput) -> dict[str, str]:
    """Its parameters.  Raises: ValueError: there are others."""
    if unknown := stage.options.keys() - {"level"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    return stage.options


def decompress(args: bytes) -> bytes:
    """Gzip's format to text."""
    stage = osd.stage(args)
    options_of(stage)
    return gzip.decompress(stage.data)


def compress(args: bytes) -> bytes:
    """Text to gzip's format.  Without a time, so that the same text gives the same bytes."""
    stage = osd.stage(args)
    return gzip.compress(stage.data, int(options_of(stage).get("level", "6")), mtime=0)
