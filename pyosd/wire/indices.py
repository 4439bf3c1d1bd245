# SPDX-License-Identifier: GPL-2.0-or-later
"""The indices of an array of jobs: "1,3,10-20:2", their ranges, and the bytes of these.  Pure.

Ranges are ascending and do not overlap, as target/wire/index_ranges.h requires.
"""

from __future__ import annotations

import re
import struct
from bisect import bisect_left
from collections.abc import Iterable, Sequence

MOST = 10_000  # members of one array
INDEX_END = 1 << 32
RANGE = struct.Struct(">III")  # first, last, step
_SPAN = r"(\d+)(?:-(\d+)(?::(\d+))?)?"  # compiled when it is first used
_FORM = "indices and ranges, as 1,3,10-20:2, and %N for at most N at once"

Ranges = tuple[range, ...]


def ranges_of(indices: Iterable[int]) -> Ranges:
    """The fewest ranges that follow from left to right; n indices take at most n/2 + 1 of them.

    Raises: ValueError: an index is negative or has more than 32 bits, or there are none, or too many;
        TypeError: they are one number.
    """
    if isinstance(indices, int):
        raise TypeError(f"array is a range, or other indices, not {indices}: range({indices})")
    if isinstance(indices, range) and not 0 < len(indices) <= MOST:
        raise ValueError(f"an array has 1 to {MOST} members, not {len(indices)}")
    every = sorted(set(indices))
    if not 0 < len(every) <= MOST:
        raise ValueError(f"an array has 1 to {MOST} members, not {len(every)}")
    if every[0] < 0 or every[-1] >= INDEX_END:
        raise ValueError(f"an index of an array is 0 to {INDEX_END - 1}")
    found: list[range] = []
    at = 0
    while at < len(every):
        step = every[at + 1] - every[at] if at + 1 < len(every) else 1
        end = at + 1
        while end < len(every) and every[end] - every[end - 1] == step:
            end += 1
        found.append(range(every[at], every[end - 1] + 1, step if end - at > 1 else 1))
        at = end
    return tuple(found)


def parse_array(text: str) -> tuple[Ranges, int]:
    """Slurm's syntax: "1,3,10-20:2%4"; how many may run at once, 0: all.

    Raises: ValueError: with a sentence for people.
    """
    spans, percent, most = text.partition("%")
    if percent and not (most.isdecimal() and 0 < int(most) <= MOST):
        raise ValueError(f"'{text}': what follows % is how many may run at once, 1 to {MOST}")
    every: set[int] = set()
    for span in spans.split(","):
        match = re.fullmatch(_SPAN, span.strip())
        if match is None:
            raise ValueError(f"'{text}' is not {_FORM}")
        first, last, step = int(match[1]), int(match[2] or match[1]), int(match[3] or 1)
        if step < 1 or last < first:
            raise ValueError(f"'{span.strip()}' in '{text}' is an empty range")
        if last >= INDEX_END or (last - first) // step >= MOST:
            raise ValueError(
                f"'{span.strip()}' in '{text}': an array has at most {MOST} members, "
                f"with indices up to {INDEX_END - 1}"
            )
        every.update(range(first, last + 1, step))
        if len(every) > MOST:
            raise ValueError(f"'{text}' has more than {MOST} indices")
    return ranges_of(every), int(most or 0)


def text_of(ranges: Iterable[range]) -> str:
    """As parse_array() reads it."""
    return ",".join(
        str(each[0])
        if len(each) == 1
        else f"{each[0]}-{each[-1]}{'' if each.step == 1 else f':{each.step}'}"
        for each in ranges
    )


def encode(ranges: Ranges) -> bytes:
    """The list in the form of the target."""
    return b"".join(RANGE.pack(each[0], each[-1], each.step) for each in ranges)


def decode(value: bytes) -> Ranges:
    """The same back; () of bytes that are no such list."""
    if not value or len(value) % RANGE.size:
        return ()
    found: list[range] = []
    total = 0
    for first, last, step in RANGE.iter_unpack(value):
        if step == 0 or last < first or (found and first <= found[-1][-1]):
            return ()
        found.append(range(first, last + 1, step))
        total += (last - first) // step + 1
    return tuple(found) if total <= MOST else ()


def indices_in(ranges: Ranges) -> Sequence[int]:
    """All of them in order; a range where there is one."""
    if len(ranges) == 1:
        return ranges[0]
    return tuple(index for each in ranges for index in each)


def position(indices: Sequence[int], index: int) -> int:
    """Position of an index among ascending ones.  Raises: ValueError: it is not among them."""
    if isinstance(indices, range):
        return indices.index(index)
    at = bisect_left(indices, index)
    if at == len(indices) or indices[at] != index:
        raise ValueError(f"{index} is not among the indices")
    return at
