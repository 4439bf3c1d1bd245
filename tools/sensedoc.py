# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints docs/sense.md, made of what ``osd_harness --list-sense`` prints.

A test compares the file with this; ``python -m tools.sensedoc >docs/sense.md`` brings it up to
date.
"""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import NamedTuple

__all__ = ["Condition", "conditions", "page"]

HARNESS = Path(__file__).resolve().parents[1] / "build" / "target" / "osd_harness"

INTRODUCTION = """\
# Sense data

Every condition that ends a command otherwise than GOOD, made from the table in
`target/command/sense_table.c` by `tools/sensedoc.py`; a test compares the two, and another one
provokes each row. Numbers are hexadecimal, but fields: these are bytes of the CDB.

## Form

Descriptor format, current errors (72), the descriptors in this order, so that what Linux cuts off
after 96 bytes or misreads comes last:

| Type | Descriptor | When |
|---|---|---|
| 07 | response integrity check value, before all others | security methods CMDRSP and ALLDATA |
| 06 | object identification: functions not initiated, functions completed, ids | always, but see below |
| 02 | sense-key specific: field pointer into the CDB | there is a field to point at |
| 01 | command-specific information | see below |
| 00 | information | see below |
| 08 | attribute identification: page and number of each | attributes caused the failure |

Function bits: 80000000 validation, 20000000, 00002000 and 00000020 the capability (command, set, get),
10000000 the command, 00100000 implicit state attributes, 00001000 set and 00000010 get attributes. What
is found while validating, missing objects and taken ids among it, leaves everything (B0103030) not
initiated. A capability that is refused: validation completed, the capability's bits in neither word.
Later: in neither word is what began and failed, or was undone because a later part of the same command
failed; an attribute that is refused behind a CREATE leaves its 10000000 in neither.

With key 1, RECOVERED ERROR, data and attributes are delivered as with GOOD; with the conditions `job
ended` too. Of a list in which attributes are refused all of these are named, up to 16, and none is
set. Sense data are never deferred (73): a command that runs on after its answer reports in its
collection's Command Tracking page.

Unit attentions are tgtd's own: 29/00 for the first command of a new session, and what its
administration causes.

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
    """What the target's table says."""
    done = subprocess.run(
        [HARNESS, "--list-sense"], capture_output=True, text=True, timeout=60, check=True
    )
    return [Condition(*line.split("\t")) for line in done.stdout.splitlines()]


def page() -> str:
    """The whole text."""
    rows = (f"| {' | '.join(each)} |" for each in conditions())
    return INTRODUCTION + "\n".join(rows) + "\n"


if __name__ == "__main__":
    print(page(), end="")
