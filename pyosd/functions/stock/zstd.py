# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `zstd`: objects that are stored in the format of Zstandard, read and written as text.

Parameters: level=1..22 of the compression; default 3.
"""

from __future__ import annotations

import osd
import pyarrow


def options_of(stage: osd.StageInput) -> dict[str, str]:
    """Its parameters.  Raises: ValueError: there are others."""
    if unknown := stage.options.keys() - {"level"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    return stage.options


def decompress(args: bytes) -> bytes:
    """Zstandard's format to text.  It is an error if the end of the data is missing."""
    stage = osd.stage(args)
    options_of(stage)
    source = pyarrow.BufferReader(stage.data)
    with pyarrow.CompressedInputStream(source, "zstd") as stream:
        return bytes(stream.read())


def compress(args: bytes) -> bytes:
    """Text to Zstandard's format."""
    stage = osd.stage(args)
    codec = pyarrow.Codec("zstd", compression_level=int(options_of(stage).get("level", "3")))
    return bytes(codec.compress(stage.data, asbytes=True))
