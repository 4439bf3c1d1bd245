# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `schema`, for a hook that follows changes: the columns of CSV with a header.

Attributes of the hook's page: 2 rows, 3 columns, 4 the schema: JSON, for each column its name, its type
(integer, number, text, or empty), its least and greatest value, and how many of its fields are empty.
Names and texts are cut to 40 characters; columns behind the 100th are not described.  Parameters:
separator=CHARACTER; default: a comma.
"""

from __future__ import annotations

import csv
import json
import math
import re
from collections.abc import Iterator

import osd

TEXT_MOST = 40  # characters, so that the schema fits into an attribute
COLUMNS_MOST = 100
NUMBER = re.compile(r"[+-]?\d+(\.\d*)?([eE][+-]?\d+)?", re.ASCII)


def number_of(text: str) -> int | float | None:
    """The number in a field."""
    found = NUMBER.fullmatch(text) if len(text) <= TEXT_MOST else None
    if found is None:
        return None
    value = float(text) if any(found.groups()) else int(text)
    return value if math.isfinite(value) else None


class ColumnFacts:
    """The type and range of the fields of a column."""

    def __init__(self, name: str) -> None:
        self.name = name[:TEXT_MOST]
        self.empty = 0
        self.kind = "empty"
        self.numbers: list[float] = []  # the least and the greatest
        self.texts: list[str] = []

    def add(self, text: str) -> None:
        """One field."""
        if not text:
            self.empty += 1
            return
        short = text[:TEXT_MOST]
        self.texts = [min([short, *self.texts]), max([short, *self.texts])]
        value = None if self.kind == "text" else number_of(text)
        if value is None:
            self.kind = "text"
            return
        if self.kind != "number":
            self.kind = "integer" if isinstance(value, int) else "number"
        self.numbers = [min([value, *self.numbers]), max([value, *self.numbers])]

    def record(self) -> dict[str, object]:
        """Its part of the schema."""
        least, greatest = (self.texts if self.kind == "text" else self.numbers) or [None, None]
        found: dict[str, object] = {"name": self.name, "type": self.kind}
        return found | {"min": least, "max": greatest, "empty": self.empty}


def lines() -> Iterator[str]:
    """The text of the object."""
    encoding = "utf-8-sig"  # spreadsheets begin with a mark
    for line in osd.userobject(osd.zone.partition_id, osd.zone.object_id).data:
        yield line.decode(encoding, errors="replace")
        encoding = "utf-8"


def main(args: bytes) -> bytes:
    """The columns of the object."""
    change = osd.change(args)
    if unknown := change.options.keys() - {"separator"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    rows = csv.reader(lines(), delimiter=change.options.get("separator", ","))
    names = next(rows, [])
    columns = [ColumnFacts(name) for name in names[:COLUMNS_MOST]]
    count = 0
    for row in rows:
        count += bool(row)
        for column, text in zip(columns, row, strict=False):
            column.add(text)
    schema = json.dumps([each.record() for each in columns], ensure_ascii=False)
    return change.derive({2: count, 3: len(names), 4: schema})
