# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `csv`: some rows and some columns of CSV with a header.

Parameters: columns=NAME,NAME...: these, in this order; default: all.  where=NAME and is=TEXT: the rows
with this text in the column.  separator=CHARACTER; default: a comma.  A name that the header does not
have is a failure.  So is a row of several lines, if the object is longer than 16 MiB and the row lies
between two parts of it.
"""

from __future__ import annotations

import csv
import io

import osd


def options_of(stage: osd.StageInput) -> dict[str, str]:
    """Its parameters.  Raises: ValueError: there are others, or no column for a text."""
    if unknown := stage.options.keys() - {"columns", "where", "is", "separator"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    if "is" in stage.options and "where" not in stage.options:
        raise ValueError("is=TEXT needs where=NAME")
    return stage.options


def place_of(name: str, header: list[str]) -> int:
    """The place of a column.  Raises: ValueError: there is none with this name."""
    if name not in header:
        raise ValueError(f"no column has the name '{name}'; the columns are {', '.join(header)}")
    return header.index(name)


def main(args: bytes) -> bytes:
    """CSV to CSV, UTF-8, with lines that end with LF."""
    stage = osd.stage(args)
    options = options_of(stage)
    separator = options.get("separator", ",")
    if (stage.header or len(stage.data) != stage.whole) and stage.data.count(b'"') % 2:
        raise ValueError("a row of several lines lies between two parts of the object")
    text = (stage.header + stage.data).decode("utf-8-sig")  # spreadsheets begin with a mark
    if not text:
        return b""
    rows = csv.reader(io.StringIO(text, newline=""), delimiter=separator)
    header = next(rows)
    wanted = options.get("columns")
    names = header if wanted is None else wanted.split(",")
    places = [place_of(name, header) for name in names]
    where, value = options.get("where"), options.get("is", "")
    place = 0 if where is None else place_of(where, header)
    made = io.StringIO(newline="")
    writer = csv.writer(made, delimiter=separator, lineterminator="\n")
    if not stage.header:
        writer.writerow(names)
    try:
        for row in rows:
            if row and (where is None or row[place] == value):
                writer.writerow([row[each] for each in places])
    except IndexError:
        raise ValueError("a row has fewer fields than are selected") from None
    return made.getvalue().encode()
