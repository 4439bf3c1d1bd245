# SPDX-License-Identifier: GPL-2.0-or-later
"""docs/limits.md against the one table of limits in target/wire/exec_limits.h."""

from __future__ import annotations

import re
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
ROW = re.compile(r'X\((\w+), "(\w+)", "([\w/]+)", ([^,]+), ([^,]+), "([^"]+)"\)')
WORDS = {"OSD_KIB": 1 << 10, "OSD_MIB": 1 << 20, "OSD_GIB": 1 << 30, "OSD_SECOND": 10**6}
WORDS |= {"OSD_DAY": 86400 * 10**6, "UINT64_MAX": (1 << 64) - 1}
SCALES = {
    "bytes": ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")),
    "us": ((86400 * 10**6, "d"), (10**6, "s"), (10**3, "ms")),
}


def value(text: str) -> int:
    """A product of numbers and the header's words."""
    product = 1
    for factor in text.split("*"):
        product *= WORDS.get(factor.strip()) or int(factor)
    return product


def shown(number: int, unit: str) -> str:
    """A limit as people read it."""
    if number == WORDS["UINT64_MAX"]:
        return "none"
    for scale, name in SCALES.get(unit, ()):
        if number >= scale and number % scale == 0:
            return f"{number // scale} {name}"
    return f"{number:,} bytes" if unit == "bytes" else f"{number:,}"


def table() -> str:
    """The rows of docs/limits.md as they should be."""
    header = (ROOT / "target/wire/exec_limits.h").read_text(encoding="utf-8")
    one_line = re.sub(r"\s*\\\n\s*", " ", header)
    joined = one_line.partition("#define OSD_EXEC_LIMITS(X)")[2].partition("\n")[0]
    rows = ROW.findall(joined)
    assert len(rows) == joined.count(" X(")
    return "".join(
        f"| {name} | {meaning} | {shown(value(standard), unit)} | {shown(value(maximum), unit)} |\n"
        for _, name, unit, standard, maximum, meaning in rows
    )


def test_limits_are_documented() -> None:
    assert table() in (ROOT / "docs/limits.md").read_text(encoding="utf-8")
