# SPDX-License-Identifier: GPL-2.0-or-later
"""The module that people install has nothing of target/testing/: no store, no option."""

from __future__ import annotations

import re
import subprocess
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
BUILD = ROOT / "build" / "target"
TESTING = [
    path
    for path in sorted((ROOT / "target" / "testing").glob("*.c"))
    if not path.name.startswith("test_")
]
OPTION_MEANING = re.compile(r'(?:NULL|"0"),\s+"([^"]+)"')
FUNCTION = re.compile(r"^[a-z][\w \*]*?\b(\w+)\((?!\()", re.MULTILINE)


@cache
def symbols(module: str) -> frozenset[str]:
    """Names of all it defines, static functions among them."""
    path = BUILD / module
    done = subprocess.run(["nm", "--defined-only", path], capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stderr}: run 'make build'"
    return frozenset(line.split()[-1] for line in done.stdout.splitlines())


def public(source: Path) -> set[str]:
    """Functions of a file that others call."""
    text = source.read_text()
    found = {match[1] for match in FUNCTION.finditer(text) if not match[0].startswith("static")}
    return {name for name in found if name.startswith("osd_")}


@pytest.mark.parametrize("source", TESTING, ids=lambda path: path.name)
def test_no_store_for_tests(source: Path) -> None:
    """The functions of each file are in the module for tests, and not in the product's."""
    names = public(source) or {"set_stand_ins", "set_options"}
    assert names & symbols("bs_iosd_test.so"), "this test would see them"
    assert not names & symbols("bs_iosd.so")


def test_no_option_for_tests() -> None:
    """The documented options exist only in the module for tests."""
    source = (ROOT / "target" / "testing" / "options.c").read_text()
    said = [text.encode() for text in OPTION_MEANING.findall(source)]
    product, tests = ((BUILD / f"{name}.so").read_bytes() for name in ("bs_iosd", "bs_iosd_test"))
    assert len(said) == 8 and all(each in tests for each in said)
    assert not [each for each in said if each in product]
