# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints docs/attributes.md, made of what ``osd_harness --list-attributes`` prints.

A test compares the file with this; ``python -m tools.attrdoc >docs/attributes.md`` brings it up to
date.
"""

from __future__ import annotations

import subprocess
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

__all__ = ["page"]

HARNESS = Path(__file__).resolve().parents[1] / "build" / "target" / "osd_harness"

INTRODUCTION = """\
# Attributes

Every attribute of the standard that this target has, made from the table in
`target/object/attr_table.c` (and `target/command/current.c`) by `tools/attrdoc.py`; a test compares
the two. Numbers are hexadecimal, lengths are bytes, values are big-endian.

## Rules

- **Pages.** Each type of object has pages in a range of its own: user objects from 0, partitions
  from 30000000, collections from 60000000, the root from 90000000; F0000000-FFFFFFFD belong to any.
  In each range, counted from its beginning: 0-7F are the standard's, 80-7FFF are reserved,
  8000-FFFF and 20000000 on are read only, 10000-1FFFFFFF are the application's. User objects'
  unassigned pages 8-7F are the application's too. A page of another type's range, or a reserved
  one: 26/00 (in page format 24/00), with the attribute in descriptor 08h.
- **Number 0** is the page's identification: 8 bytes vendor, 32 bytes name. Standard pages have the
  one below. An application's page takes up to 40 bytes with a NUL in them; until then, if it has
  any attribute, it is `unidentified attributes page`.
- **Undefined** attributes have length 0, in answers as in sets: setting length 0 makes undefined
  what is kept as it is, and a policy or security value what it was at first. What always has a value
  refuses it.
- **Number FFFFFFFF** asks for all of a page, page FFFFFFFF for all pages: the standard's, those of
  jobs, and those that have attributes, ascending; both FFFFFFFF for everything. A number on page
  FFFFFFFF: that number of each page that has it. The Current Command page is of the command, not of
  the object, and is in no such answer. One list may come to 1,048,576 attributes in this way for
  one object, else 55/00 with key 4.
- **Refused** are lengths and values other than those below, and what is not settable: 26/00, where
  CDBFMT 1 carried it 24/00 at byte 52. Of a list in which one attribute is refused none is set. One
  named twice has the last value. CDBFMT 1 with page 0 sets nothing.
- **At most** 65,536 attributes, of 65,534 bytes each, on one object; a 65,537th: 55/07.
- **Inherited** values are those that what is made inside begins with: of the root in new
  partitions, of a partition in new user objects.
- **Lengths.** 0: the attribute exists in the standard and never has a value here.

## Quotas

Enforced before anything changes: by CREATE, CREATE PARTITION, WRITE, APPEND, CREATE AND WRITE,
CLEAR, COPY USER OBJECTS, the logical length and the Collections page; 55/07 with key 7. All ones:
no limit. A quota below what is in use refuses growth and nothing else.
A capacity quota limits attributes and jobs beside the data ([limits.md](limits.md), Space).

## Timestamps

| What happens | Whose time moves | Which |
|---|---|---|
| attributes are read; set | the object's | attributes accessed; modified |
| a user object is read; written or cut | its own, its partition's | data accessed; modified |
| objects are listed; made or removed | the partition's | data accessed; modified |
| members are listed or queried; join or leave | the collection's | data accessed; modified |

Not with byte 12 of the CDB 7Fh, nor where the timestamp bypass of the partition (for everything in
it) or of the root (for its own times) is 7Fh. Values 01-7E and 80-FF of byte 12, the reserved and
the vendor's, are 24/00 at 12. Times of access may be lost by a crash, up to a second of them.

## Pages of this target

2000_0001h to 2000_0003h are a job's ([jobs](jobs-internals.md)), 5000_0001h says which pages the
value index covers,
5000_0002h of a partition has the bytes its capacity quota is compared with, be64 each: 1 all
charged bytes, 2 those charged for attributes, 3 those charged for jobs among the data
([limits.md](limits.md)); the rest of 1 is the used capacity. 4 has the bytes of jobs
that stand apart, 5 the number of their objects.
B000_0001h describes EXEC. User object page 7h holds the counters of the atomic commands.
B000_0002h of the root has figures of the database, be64 each: 1 commits, 2 aborts, 3 deadlocks,
4 checkpoints since the target started; 5 lockers, 6 locks, 7 locked things, 8 open transactions now; and
9 bytes of the process's heap that are in use; 10 user objects and collections of all partitions,
11 bytes that count against the capacity, 12 bytes that can still be written.

Where the store has an SSD (tiers.md) user objects have page 2000_0004h, about their heads:

| # | Bytes | Set by | |
|---|---|---|---|
| 1 | 8 | client, until the first byte is written; then 26/00 | head size: so many bytes belong to the SSD |
| 2 | 1 | | where the head is: 0 nowhere yet, 1 SSD, 2 hard disk |
| 3, 4 | 8 | | bytes of the object on the SSD, on the hard disk |

Head sizes are 0 to 2^40. The root has page B000_0003h; what is settable but 6 holds until the target ends:

| # | Bytes | Set by | |
|---|---|---|---|
| 1 | 8 | client | head size of new objects |
| 2 | 1 | client | policy: 0 first, 1 small-only, 2 off |
| 3, 4 | 1 | client | high-water and low-water mark of the SSD, per cent, 1 to 99 |
| 5 | 8 | client | bytes a second that the mover copies at most, 64 KiB to 1 TiB |
| 6 | 1 | client: 0, 1 | drain of the SSD: 0 no, 1 under way, 2 no head is left; FORMAT OSD ends it |
| 7, 8 | 8 | | bytes of the SSD's file system, and free ones |
| 9, A | 8 | | the same of the hard disk; also with one folder |
| B, C | 8 | | bytes of heads on the SSD, on the hard disk |
| D, E | 8 | | heads moved to the SSD, to the hard disk since the target started |
| F, 10 | 8 | | bytes of these |
| 11 | 8 | | heads that the last pass of the mover had to leave where they should not be |

Root page B000_0004h is about checksums and the scrub (reliability.md). Where the store keeps no checksums
it has number 1 alone:

| # | Bytes | Set by | |
|---|---|---|---|
| 1 | 1 | | 1: the store keeps checksums |
| 2 | 1 | client: 1 start or go on, 0 stop | the scrub: 0 idle, 1 running, 2 stopped |
| 3 | 8 | client, until the target ends | bytes a second that it reads at most, 64 KiB to 1 TiB |
| 4 | 8 | | ms from the end of one scrub to the next; 0: only when told to |
| 5, 6 | 8 | | when the last scrub began, and ended: ms since 1970, 0 never |
| 7, 8 | 8 | | objects it has looked at, blocks of 4 KiB it has compared |
| 9, A | 8 | | blocks that had no checksum and got one; blocks that differed from theirs |
| B | 8 | | objects that it could not read |
| C, D | 8 | | partition and object id where it is |
| E | 8 | | blocks known as damaged |
| F | 24 each | | the first 256 of these: partition id, object id, first byte |
| 10-12 | 8 | | blocks compared, given their first checksum, found damaged since the target started |
| 13 | 8 | | files whose checksums were given up since then, after a power failure |
"""


class Row(NamedTuple):
    """A line of the table."""

    page: str
    name: str
    numbers: str
    length: str
    settable: str
    what: str


def rows() -> list[Row]:
    """The table, as the built harness prints it."""
    done = subprocess.run(
        [HARNESS, "--list-attributes"], capture_output=True, text=True, timeout=60, check=True
    )
    return [Row(*line.split("\t")) for line in done.stdout.splitlines()]


def page() -> str:
    """The whole text."""
    parts = [INTRODUCTION]
    for (number, name), group in groupby(rows(), key=lambda row: (row.page, row.name)):
        listed = list(group)
        forms = [row.length for row in listed if row.numbers == "form"]
        parts.append(f"## {number[:4]}_{number[4:]}h {name}\n")
        if forms:
            parts.append(f"Page form: {forms[0]} bytes behind the header.\n")
        parts.append("| Number | Length | Settable | What |\n|---|---|---|---|")
        parts += [
            f"| {row.numbers} | {row.length} | {row.settable} | {row.what} |"
            for row in listed
            if row.numbers != "form"
        ]
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
