# SPDX-License-Identifier: GPL-2.0-or-later
"""Print docs/attributes.md, made from the output of ``osd_harness --list-attributes``.

A test compares the file with this output. ``python -m tools.attrdoc >docs/attributes.md`` updates
it.
"""

from __future__ import annotations

from itertools import groupby
from typing import NamedTuple

from tools.harness import table

__all__ = ["page"]


INTRODUCTION = """\
# Attributes

This page lists every attribute of the standard that this target has. `tools/attrdoc.py` makes it
from the tables in `target/object/attr_table.c` and `target/command/current.c`. A test compares
them. Numbers are hexadecimal, lengths are in bytes, values are big-endian.

## Rules

- **Pages.** Each type of object has its own range of pages: user objects from 0, partitions from
  30000000, collections from 60000000, the root from 90000000. All types have F0000000-FFFFFFFD. The
  numbers here count from the beginning of a range. Pages 0-7F belong to the standard. 80-7FFF are
  reserved. 8000-FFFF and 20000000 and higher are read only. 10000-1FFFFFFF belong to the
  application, and so do the unassigned pages 8-7F of user objects. A page of another type's range,
  or a reserved one: 26/00 (in page format 24/00), with the attribute in descriptor 08h.
- **Number 0** identifies the page: 8 bytes vendor, 32 bytes name. The identification of a standard
  page is in its title below. For a page of the application a client sets up to 40 bytes that
  contain a NUL. Until then a page with attributes is called `unidentified attributes page`.
- **Undefined** attributes have length 0, in answers and in set lists. To make an attribute
  undefined, set length 0. This resets a policy or security value to its first value. An attribute
  that always has a value refuses length 0.
- **Number FFFFFFFF** requests all attributes of a page. Page FFFFFFFF requests all pages in
  ascending order: those of the standard, those of jobs, and those that have attributes. With a
  number, it requests the attribute with this number of every page. Such an answer never contains
  the Current Command page, because that page belongs to the command instead of the object. One list
  can request 131,072 attributes of one object in this way, and one number of every page 8 times.
  More: 55/00 with key 4.
- **Refused** are lengths and values other than those below, and attributes that are not settable:
  26/00, with CDBFMT 1 24/00 at byte 52. If one attribute of a list is refused, none is set. If a
  list names an attribute twice, the last value is set. CDBFMT 1 with page 0 sets nothing.
- **At most** 65,536 attributes of one object, of 65,534 bytes each. One more: 55/07.
- **Inherited** values are the first values of new objects: those of the root for new partitions,
  those of a partition for new user objects.
- **Lengths.** 0: the attribute exists in the standard and never has a value here.

## Quotas

The target checks quotas before it changes anything. CREATE, CREATE PARTITION, WRITE, APPEND, CREATE
AND WRITE, CLEAR, COPY USER OBJECTS, the logical length and the Collections page are refused with
55/07 and key 7. A value of all ones means no limit. A quota below the present use refuses growth
only. A capacity quota limits attributes and jobs together with the data
([limits](limits.md#space)).

## Timestamps

| Event | Object | Timestamp |
|---|---|---|
| attributes are read; set | the object | attributes accessed; modified |
| a user object is read; written or cut | the user object and its partition | data accessed; modified |
| objects are listed; created or removed | the partition | data accessed; modified |
| members are listed or queried; added or removed | the collection | data accessed; modified |

Timestamps do not change if byte 12 of the CDB is 7Fh. They do not change either if the timestamp
bypass is 7Fh: that of the partition for all its objects, that of the root for the root's own times.
Values 01-7E (reserved) and 80-FF (vendor) of byte 12 are refused with 24/00 at 12. A crash can lose
up to a second of the times of access. An object that has the id of a removed one was always created
later, by at least 1 ms.

## Pages of this target

| Page | Object | Contents |
|---|---|---|
| 0000_0007h | user object | counters of the [atomic commands](commands.md#atomic-commands) |
| 2000_0001h to 2000_0003h | user object | [a job](jobs-internals.md) |
| 2000_0004h | user object | its head, below |
| 2000_0005h | user object | version of its data, below |
| 2000_0006h | user object of a function partition | manifest of a [function](functions.md) |
| 2000_0007h | user object | [objects that a job used](jobs-internals.md#objects-used) |
| 2000_0020h | user object | [functions](views.md#stages) that its data pass through |
| 2000_0021h | user object | [functions](hooks.md) that check or follow its changes |
| 5000_0001h | partition | the pages that the [value index](query.md) covers |
| 5000_0002h | partition | space in use, below |
| 5000_0020h | partition | [functions](views.md#stages) for the objects in it |
| 5000_0021h | partition | [functions](hooks.md) for the objects in it |
| 8000_0001h | collection | version of its members, below |
| 8000_0020h | collection | [functions](views.md#stages) for its direct members |
| B000_0001h | root | description of EXEC |
| B000_0002h | root | figures of the database, below |
| B000_0003h | root | the two devices, below |
| B000_0004h | root | checksums and the scrub, below |
| B000_0005h | root | [engines, and the room for functions](functions.md#engines-and-room) |
| B000_0020h | root | [functions](views.md#stages) for all user objects |
| B000_0021h | root | [functions](hooks.md) for all user objects |

### Versions of data and of members

Page 2000_0005h of a user object has the version of its data, page 8000_0001h of a collection the
version of its membership. Both are number 1, 12 bytes, read only. Two versions of an object are
equal if all bytes are.

- A version that was read with data never identifies other data of that object. This holds after a
  crash, for a later object with the same id, and in a restored store.
- The version of data changes with each change of data or logical length. The version of a
  membership changes with each member that joins or leaves.
- Attributes, timestamps, reads and moves between devices do not change it.
- Some events change the version but not the data: a power failure, `osd target repair`, a crash
  during changes of the object.

The collections of all user objects (1000h) and of jobs (1001h) have no version. Commands can return
the version with the data, and [require one](wire.md#precondition-f082h).

### Figures and devices

Page 5000_0002h has the bytes that count against the capacity quota ([limits](limits.md#space)),
be64 each:

| # | Contents |
|---|---|
| 1 | all charged bytes; without 2 and 3 they are the used capacity |
| 2 | bytes charged for attributes |
| 3 | bytes charged for jobs among the data |
| 4 | bytes of jobs that lie apart |
| 5 | number of objects of jobs that lie apart |

Page B000_0002h of the root, be64 each:

| # | Contents |
|---|---|
| 1 to 4 | commits, aborts, deadlocks and checkpoints since the target started |
| 5 to 8 | lockers, locks, locked things and open transactions at present |
| 9 | bytes of the process's heap in use |
| 10 | user objects and collections of all partitions |
| 11 | bytes that count against the capacity |
| 12 | bytes that can still be written |

If the store has an SSD ([tiers](tiers.md)), user objects have page 2000_0004h, about their heads:

| # | Bytes | Set by | |
|---|---|---|---|
| 1 | 8 | client, before the first write; then 26/00 | head size: number of bytes that belong on the SSD |
| 2 | 1 | | place of the head: 0 none yet, 1 SSD, 2 hard disk |
| 3, 4 | 8 | | bytes of the object on the SSD, on the hard disk |

Head sizes are 0 to 2^40. The root has page B000_0003h. Settable values, except 6, are lost when the
target ends:

| # | Bytes | Set by | |
|---|---|---|---|
| 1 | 8 | client | head size of new objects |
| 2 | 1 | client | policy: 0 first, 1 small-only, 2 off |
| 3, 4 | 1 | client | high-water and low-water mark of the SSD, per cent, 1 to 99 |
| 5 | 8 | client | limit of the mover in bytes per second, 64 KiB to 1 TiB |
| 6 | 1 | client: 0, 1 | drain of the SSD: 0 no, 1 running, 2 finished; FORMAT OSD ends it |
| 7, 8 | 8 | | bytes of the SSD's file system: total, free |
| 9, A | 8 | | the same for the hard disk; also if the store has one folder |
| B, C | 8 | | bytes of heads on the SSD, on the hard disk |
| D, E | 8 | | heads moved to the SSD, to the hard disk since the target started |
| F, 10 | 8 | | bytes of these heads |
| 11 | 8 | | heads that the last pass of the mover could not move |

Root page B000_0004h describes checksums and the scrub ([reliability](reliability.md)). If the store
keeps no checksums, the page has only number 1:

| # | Bytes | Set by | |
|---|---|---|---|
| 1 | 1 | | 1: the store keeps checksums |
| 2 | 1 | client: 1 start or continue, 0 stop | the scrub: 0 idle, 1 running, 2 stopped |
| 3 | 8 | client, until the target ends | limit of its reads in bytes per second, 64 KiB to 1 TiB |
| 4 | 8 | | ms from the end of one scrub to the next; 0: only on request |
| 5, 6 | 8 | | begin and end of the last scrub: ms since 1970, 0 never |
| 7, 8 | 8 | | objects examined, blocks of 4 KiB compared |
| 9, A | 8 | | blocks that had no checksum and got one; blocks that differed from theirs |
| B | 8 | | objects that could not be read |
| C, D | 8 | | partition and object id of the present position |
| E | 8 | | blocks known to be damaged |
| F | 24 each | | the first 256 of these: partition id, object id, first byte |
| 10-12 | 8 | | blocks compared, given their first checksum, found damaged since the target started |
| 13 | 8 | | files whose checksums were dropped since then, after a power failure |
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
    return [Row(*columns) for columns in table("--list-attributes")]


def page() -> str:
    """The whole text."""
    parts = [INTRODUCTION]
    for (number, name), group in groupby(rows(), key=lambda row: (row.page, row.name)):
        listed = list(group)
        forms = [row.length for row in listed if row.numbers == "form"]
        parts.append(f"## {number[:4]}_{number[4:]}h {name}\n")
        if forms:
            parts.append(f"Page form: {forms[0]} bytes after the header.\n")
        parts.append("| Number | Length | Settable | Contents |\n|---|---|---|---|")
        parts += [
            f"| {row.numbers} | {row.length} | {row.settable} | {row.what} |"
            for row in listed
            if row.numbers != "form"
        ]
        parts.append("")
    return "\n".join(parts)


if __name__ == "__main__":
    print(page(), end="")
