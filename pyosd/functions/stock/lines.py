# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `lines`: the lines of a text that contain a text.

Parameters: contains=TEXT, and invert=1 for the other lines.
"""

from __future__ import annotations

from collections.abc import Iterator

import osd


def containing(data: bytes, text: bytes) -> Iterator[bytes]:
    """The lines with the text, of data without CR.  The others are passed over at the speed of a search."""
    end = 0
    while (found := data.find(text, end)) >= 0:
        begin = data.rfind(b"\n", end, found) + 1 or end
        end = data.find(b"\n", found) + 1 or len(data)
        yield data[begin:end]


def main(args: bytes) -> bytes:
    """Lines to lines; their ends stay."""
    stage = osd.stage(args)
    text, inverted = stage.options["contains"].encode(), stage.options.get("invert") == "1"
    data = stage.data
    if text and not inverted and b"\n" not in text and b"\r" not in data:
        return b"".join(containing(data, text))
    lines = data.splitlines(keepends=True)
    return b"".join([each for each in lines if (text in each) != inverted])
