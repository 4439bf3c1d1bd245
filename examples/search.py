# SPDX-License-Identifier: GPL-2.0-or-later
"""Search by attribute value, then in the bytes, beside the data.

Usage: python3 search.py iscsi://HOST/NAME/LUN
"""

from __future__ import annotations

import sys

import pyosd
from pyosd import AttributeValue, Page

YEAR, KIND = (Page.APPLICATION, 1), (Page.APPLICATION, 2)
BOOKS = {
    "Moby-Dick": (1851, "novel", b"Call me Ishmael.\nSome years ago - never mind how long.\n"),
    "Walden": (1854, "essay", b"When I wrote the following pages,\nI lived alone, years ago.\n"),
    "Middlemarch": (1871, "novel", b"Who that cares much to know\nthe history of man.\n"),
}


def lines_with(word: str, before: int) -> list[str]:
    """Run beside the data: only lines that match come back."""
    import osd

    year, kind = osd.attr(0x10000, 1), osd.attr(0x10000, 2)
    found = osd.query((year < before) & (kind == "novel"))
    return [line.decode() for book in found for _, line in book.grep(word)]


def main(url: str) -> None:
    """Store three books, look for some of them from here and in them from there, clean up."""
    with pyosd.connect(url) as target:
        partition = target.create_partition()
        zone = target.partition(partition)
        # Optional: an index of the page, so that no query reads every object.
        target.set_attributes(zone, [AttributeValue(Page.INDEX, Page.APPLICATION, b"\x01")])
        titles = {}
        for title, (year, kind, text) in BOOKS.items():
            values = [
                AttributeValue(*YEAR, year.to_bytes(8, "big")),
                AttributeValue(*KIND, kind.encode()),
            ]
            titles[target.create_and_write(partition, text, attributes=values)] = title

        fifties = (pyosd.attr(*YEAR) >= 1850) & (pyosd.attr(*YEAR) <= 1859)
        print("1850-1859:", ", ".join(titles[each] for each in target.query(zone, fifties)))
        job = target.exec(lines_with, zone=zone, args=["years", 1860])
        print("in novels before 1860:", *job.result(timeout=30))
        target.remove_partition(partition, contents=True)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
