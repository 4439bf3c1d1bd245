# SPDX-License-Identifier: GPL-2.0-or-later
"""Attributes of files from values that a target should not send."""

from __future__ import annotations

import struct

import pytest

from pyosd.errors import ProtocolError
from pyosd.fronts.osdfs.file_page import Defaults, Facts, facts_of, wanted_of
from pyosd.fronts.osdfs.kernel import entry_out
from pyosd.types import AttributeValue, ref

WANTED = wanted_of(ref(65536, 65537), is_directory=False)
OWNER, MODIFIED, ACCESSED, CHANGED, READ, WRITTEN, VERSION, LENGTH, XATTRS = range(9)
LONGEST = b"\x7f" + b"\xff" * 7


def facts(number: int = XATTRS, value: bytes = b"", count: int = len(WANTED)) -> Facts:
    values = [b"", b"", b"", *3 * [bytes(6)], bytes(12), bytes(8), b""]
    values[number] = value
    found = [AttributeValue(*each, value) for each, value in zip(WANTED, values, strict=True)]
    return facts_of(found[:count], Defaults(1, 2), is_directory=False, links=3)


def test_the_longest_file() -> None:
    found = facts(LENGTH, LONGEST)
    assert (found.stat.size, found.stat.uid, found.stat.links) == (2**63 - 1, 1, 3)
    assert facts(LENGTH).length_unknown


@pytest.mark.parametrize("number", [CHANGED, READ, WRITTEN, LENGTH])
def test_numbers_that_are_too_large(number: int) -> None:
    with pytest.raises(ProtocolError):
        facts(number, b"\xff" * 8)


@pytest.mark.parametrize("count", range(len(WANTED) - 1))
def test_values_that_are_missing(count: int) -> None:
    with pytest.raises(ProtocolError):
        facts(count=count)


@pytest.mark.parametrize("number", [OWNER, MODIFIED, ACCESSED, VERSION, XATTRS])
def test_values_that_mean_nothing(number: int) -> None:
    for length in (1, 11, 13, 17, 4000):
        found = facts(number, b"\xff" * length)
        assert (found.stat.size, found.stat.modified) == (0, 0)


@pytest.mark.parametrize("seconds", [2**63 - 1, -(2**63)])
def test_times_of_other_clients(seconds: int) -> None:
    """Whatever one has set, the others can list the directory."""
    for ns in (0, 10**9 - 1, 10**9, 2**32 - 1):
        value = struct.pack(">qI", seconds, ns) + bytes(12)
        stat = facts(MODIFIED, value).stat
        assert stat.modified == (seconds * 10**9 + ns if ns < 10**9 else 0)
        assert entry_out(2, 65537, stat, 0.0, 0.0)
