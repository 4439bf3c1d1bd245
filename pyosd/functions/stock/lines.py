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


def options_of(stage: osd.StageInput) -> dict[str, str]:
    """Its parameters.  Raises: ValueError: there are others, or invert has another value."""
    if unknown := stage.options.keys() - {"contains", "invert"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    if stage.options.get("invert", "0") not in ("0", "1"):
        raise ValueError("the parameter invert is 0 or 1")
    return stage.options


def main(args: bytes) -> bytes:
    """Lines to lines; their ends stay."""
    stage = osd.stage(args)
    options = options_of(stage)
    text, inverted = options["contains"].encode(), options.get("invert") == "1"
    data = stage.data
    if text and not inverted and b"\n" not in text and b"\r" not in data:
        return b"".join(containing(data, text))
    lines = data.splitlines(keepends=True)
    return b"".join([each for each in lines if (text in each) != inverted])
