# SPDX-License-Identifier: GPL-2.0-or-later
"""Print docs/sense.md, made from the output of ``osd_harness --list-sense``.

A test compares the file with this output. ``python -m tools.sensedoc >docs/sense.md`` updates it.
"""

from __future__ import annotations

from typing import NamedTuple

from tools.harness import table

__all__ = ["Condition", "conditions", "page"]


INTRODUCTION = """\
# Sense data

This page lists every condition in which a command ends with another status than GOOD.
`tools/sensedoc.py` makes it from the table in `target/command/sense_table.c`. One test compares the
two, and another one provokes each row. Numbers are hexadecimal, except fields, which are decimal
numbers of bytes of the CDB.

## Form

Sense data are in descriptor format, current errors (72). Linux cuts them off after 96 bytes and
misreads some descriptors. The descriptors therefore have this order:

| Type | Descriptor | When |
|---|---|---|
| 07 | response integrity check value, before all others | security methods CMDRSP and ALLDATA |
| 06 | object: functions not initiated, functions completed, ids | if the table below has it |
| 02 | sense-key specific: field pointer into the CDB | a field of the CDB is at fault |
| 01 | command-specific information | the table below says so |
| 00 | information | the table below says so |
| 08 | attribute identification: page and number of each | attributes caused the failure |

The descriptor 06 has two words of function bits, one for functions not initiated and one for
completed functions:

| Bits | Function |
|---|---|
| 80000000 | validation |
| 20000000, 00002000, 00000020 | check of the capability for the command, for set and for get |
| 10000000 | the command |
| 00100000 | implicit state attributes |
| 00001000, 00000010 | set attributes, get attributes |

- If validation finds an error, such as a missing object or an id that is in use, no function is
  initiated (B0103030).
- If a capability is refused, validation is completed. The bits of the capability are in neither
  word.
- A function that began and failed is in neither word. The same holds for a function that was undone
  because a later part of the command failed. For example, if an attribute is refused after a
  CREATE, 10000000 is in neither word.

With key 1, RECOVERED ERROR, data and attributes are delivered as with GOOD. The same holds for the
conditions `job ended`. If attributes of a list are refused, the sense data name up to 16 of them,
and none is set. Sense data are never deferred (73). A command that continues after its answer
reports its end in the Command Tracking page of its collection.

tgtd itself makes the unit attentions: 29/00 for the first command of a new session, and those that
its administration causes.

## Conditions

| Condition | SAM status | Key | ASC/ASCQ | Field | Descriptors | |
|---|---|---|---|---|---|---|
"""


class Condition(NamedTuple):
    """One row of the table."""

    name: str
    status: str
    key: str
    code: str
    field: str
    descriptors: str
    value: str


def conditions() -> list[Condition]:
    """Rows of the target's table."""
    return [Condition(*columns) for columns in table("--list-sense")]


def page() -> str:
    """The whole text."""
    rows = (f"| {' | '.join(each)} |" for each in conditions())
    return INTRODUCTION + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
