# SPDX-License-Identifier: GPL-2.0-or-later
"""What `make bench-tiers` moves of an object and compares, and what it says where it cannot."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from bench import tier_disks
from bench.stats import at_least
from bench.tier_places import COMMAND, HDD, SSD, TIERS, pieces_of
from bench.tiers import KIB, MIB, SIZES, by_turns, compared, small_row

PART = 32 * MIB


@pytest.mark.parametrize("size", [*SIZES, 24 * MIB + 5])
def test_pieces(size: int) -> None:
    """The whole object, or its first and last bytes; no command is too long, nothing comes twice."""
    pieces = pieces_of(size, PART)
    ends = [offset + length for offset, length in pieces]
    assert all(0 < length <= COMMAND for _, length in pieces)
    assert all(end <= offset for end, (offset, _) in zip(ends, pieces[1:], strict=False))
    assert pieces[0][0] == 0
    assert ends[-1] == size
    assert sum(length for _, length in pieces) == min(size, PART)


def test_each_order_as_often() -> None:
    assert by_turns("abc", 1) == "abc"
    assert by_turns("abc", 2) == "cba"


def test_rows() -> None:
    """Pairs of a round, in MB/s; the mean over sizes is geometric, of 4 KiB to the head size."""
    found = {TIERS: [8e6, 9e6, 7e6], SSD: [10e6, 10e6, 10e6], HDD: [1e6] * 3}
    row = compared("tier_x", found, SSD, at_least(0.95), "x")
    assert (row.ours, row.baseline, row.ratio, row.met) == (8, 10, 0.8, False)
    assert row.simulated
    curves = {
        "read": {
            1 * KIB: {TIERS: [1.0], SSD: [100.0]},
            4 * KIB: {TIERS: [2e6], SSD: [2e6]},
            2 * MIB: {TIERS: [8e6], SSD: [2e6]},
            4 * MIB: {TIERS: [1.0], SSD: [100.0]},
        }
    }
    row = small_row(curves)
    assert row.ours == pytest.approx(4)
    assert row.baseline == pytest.approx(2)
    assert row.ratio == pytest.approx(2)


def test_says_why_nothing_is_throttled(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(tier_disks, "BLKIO", tmp_path)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    (row,) = tier_disks.rows(quick=True)
    assert (row.id, row.ratio) == ("tier_real", None)
    assert "no blkio throttle of cgroup v1" in row.reason
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    (row,) = tier_disks.rows(quick=True)
    assert "needs root" in row.reason
