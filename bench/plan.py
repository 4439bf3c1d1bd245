# SPDX-License-Identifier: GPL-2.0-or-later
"""How much of everything a run measures."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Plan:
    """Sizes for a group to take its own from.

    quick: does it run at all?  A group is done within 10 s.  full: as long as it takes.
    pairs: interleaved samples of a row.  seconds: of one sample of throughput.  count: commands of a
    row of latencies.  rate_seconds: of one sample of jobs a second.
    """

    quick: bool
    full: bool
    pairs: int
    seconds: float
    count: int
    rate_seconds: float

    @property
    def many_pairs(self) -> int:
        """Interleaved samples where one takes little."""
        return self.pairs if self.quick else 3 * self.pairs


USUAL = Plan(quick=False, full=False, pairs=9, seconds=0.4, count=2000, rate_seconds=4.0)
QUICK = Plan(quick=True, full=False, pairs=3, seconds=0.1, count=50, rate_seconds=0.5)
FULL = Plan(quick=False, full=True, pairs=15, seconds=1.0, count=5000, rate_seconds=60.0)
