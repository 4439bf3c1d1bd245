# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `count`, for a hook that follows changes: figures of a text.

Attributes of the hook's page: 2 bytes, 3 lines, 4 the least and 5 the greatest number.  A line counts
for 4 and 5 if it is a whole number from 0 on.  Parameters: column=N takes the Nth part of each line,
from 1 on; separator=TEXT is between the parts, "," if nothing is said.
"""

from __future__ import annotations

import osd

NUMBER_END = 1 << 64


def number_of(line: bytes, column: int, separator: bytes) -> int | None:
    """The number in a line."""
    parts = line.split(separator) if column else [line]
    text = parts[column - 1].strip() if column <= len(parts) else b""
    value = int(text) if text.isdigit() else NUMBER_END
    return value if value < NUMBER_END else None


def options_of(change: osd.ObjectChange) -> dict[str, str]:
    """Its parameters.  Raises: ValueError: there are others, or column has another value."""
    if unknown := change.options.keys() - {"column", "separator"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    if not change.options.get("column", "0").isdecimal():
        raise ValueError(f"the parameter column is a number, not '{change.options['column']}'")
    return change.options


def main(args: bytes) -> bytes:
    """The figures of the object."""
    change = osd.change(args)
    options = options_of(change)
    column = int(options.get("column", "0"))
    separator = options.get("separator", ",").encode()
    size, lines, least, greatest = 0, 0, None, None
    for line in osd.userobject(osd.zone.partition_id, osd.zone.object_id).data:
        size += len(line)
        lines += 1
        number = number_of(line, column, separator)
        if number is not None:
            least = number if least is None else min(least, number)
            greatest = number if greatest is None else max(greatest, number)
    return change.derive({2: size, 3: lines, 4: least, 5: greatest})
