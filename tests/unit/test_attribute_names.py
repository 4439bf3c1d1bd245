# SPDX-License-Identifier: GPL-2.0-or-later
"""The names that `osd obj attr ls` shows are those of the target's table of attributes."""

from __future__ import annotations

from pyosd.cli.objects.attribute_names import NAMES
from tools.harness import table


def test_names_are_those_of_the_target() -> None:
    known: dict[tuple[int, int], str] = {}
    for row in table("--list-attributes"):
        if len(row) < 6 or "-" in row[2] or row[2] in ("0", "form") or row[3] == "0":
            continue
        name = row[5].split(":")[0].split(";")[0].strip()
        known[int(row[0], 16), int(row[2], 16)] = name
    current = {key for key in known if key[0] == 0xFFFF_FFFE}  # of a command, not of an object
    ours = {(page, number): name for page, names in NAMES.items() for number, name in names.items()}
    assert ours == {key: name for key, name in known.items() if key not in current}
