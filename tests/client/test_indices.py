# SPDX-License-Identifier: GPL-2.0-or-later
"""Indices of arrays: text, ranges and bytes."""

from __future__ import annotations

import contextlib
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pyosd.wire import indices
from pyosd.wire.indices import (
    MOST,
    decode,
    encode,
    indices_in,
    parse_array,
    position,
    ranges_of,
    text_of,
)

INDICES = st.sets(st.integers(0, 2**32 - 1), min_size=1, max_size=60) | st.sets(
    st.integers(0, 90), min_size=1, max_size=60
)


@pytest.mark.parametrize(
    ("text", "indices", "at_once"),
    [
        ("7", [7], 0),
        ("1,3,5", [1, 3, 5], 0),
        ("0-99:2", list(range(0, 100, 2)), 0),
        ("1,3,10-20:2", [1, 3, *range(10, 21, 2)], 0),
        ("1-7:4", [1, 5], 0),
        ("5,1,3-4,3%2", [1, 3, 4, 5], 2),
        ("0-9999", list(range(10_000)), 0),
        ("4294967295", [4294967295], 0),
    ],
)
def test_slurm_syntax(text: str, indices: list[int], at_once: int) -> None:
    ranges, most = parse_array(text)
    assert (list(indices_in(ranges)), most) == (indices, at_once)


@pytest.mark.parametrize(
    "text",
    [
        *("", ",", "1,", "4-2", "1-", "-1", "1-5:0", "1:2", "a", "1%0", "1%", "1%x", "0-10000"),
        *("4294967296", "0-4294967295", "0-9999,20000", "1-3:-1", "1--3", "1%10001"),
    ],
)
def test_refused(text: str) -> None:
    with pytest.raises(ValueError, match=r"'|members"):
        parse_array(text)


@given(INDICES)
def test_there_and_back(indices: set[int]) -> None:
    ranges = ranges_of(indices)
    assert list(indices_in(ranges)) == sorted(indices)
    assert decode(encode(ranges)) == ranges
    assert parse_array(text_of(ranges)) == (ranges, 0)
    assert len(ranges) <= len(indices) // 2 + 1
    assert all(before[-1] < after[0] for before, after in pairwise(ranges))
    for at, index in enumerate(sorted(indices)):
        assert position(indices_in(ranges), index) == at
    with pytest.raises(ValueError, match="not"):
        position(indices_in(ranges), max(indices) + 1)


@given(st.binary(max_size=96) | st.binary(max_size=8).map(lambda end: bytes(4) + end))
def test_bytes_that_are_no_list(value: bytes) -> None:
    found = decode(value)
    assert not found or encode(found) == value or len(value) % 12 == 0
    assert sum(map(len, found)) <= MOST


@given(st.text(st.sampled_from("0123456789,-:% "), max_size=20))
def test_text(text: str) -> None:
    """Any text is read, or refused as a ValueError; never is more kept than an array may have."""
    with contextlib.suppress(ValueError):
        ranges, at_once = parse_array(text)
        assert 0 < len(indices_in(ranges)) <= MOST
        assert 0 <= at_once <= MOST


def test_the_worst_case_fits() -> None:
    """10,000 indices with no three at the same distance: 5,000 ranges, what the target takes."""
    every = [number * number for number in range(10_000)]
    assert len(ranges_of(every)) == 5_000
    assert len(encode(ranges_of(every))) <= 60 << 10
    with pytest.raises(ValueError, match="10000"):
        ranges_of([*every, 5])
    with pytest.raises(ValueError, match="10000"):
        ranges_of(range(1 << 60))
    assert indices.MOST == 10_000
