# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `lines`: the lines of a text that contain a text.

Parameters: contains=TEXT, and invert=1 for the other lines.
"""

from __future__ import annotations

import osd


def main(args: bytes) -> bytes:
    """Lines to lines; their ends stay."""
    stage = osd.stage(args)
    text, inverted = stage.options["contains"].encode(), stage.options.get("invert") == "1"
    lines = stage.data.splitlines(keepends=True)
    return b"".join(each for each in lines if (text in each) != inverted)
