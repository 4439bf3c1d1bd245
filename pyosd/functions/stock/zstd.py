# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `zstd`: objects that are stored in the format of Zstandard, read and written as text.

Parameters: level=1..22 of the compression; default 3.
"""

from __future__ import annotations

import osd
import pyarrow


def decompress(args: bytes) -> bytes:
    """Zstandard's format to text.  It is an error if the end of the data is missing."""
    source = pyarrow.BufferReader(osd.stage(args).data)
    with pyarrow.CompressedInputStream(source, "zstd") as stream:
        return bytes(stream.read())


def compress(args: bytes) -> bytes:
    """Text to Zstandard's format."""
    stage = osd.stage(args)
    codec = pyarrow.Codec("zstd", compression_level=int(stage.options.get("level", "3")))
    return bytes(codec.compress(stage.data, asbytes=True))
