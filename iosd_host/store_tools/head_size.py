# SPDX-License-Identifier: GPL-2.0-or-later
"""How large the heads on the SSD should be: the rule of Runde's thesis, and what each size needs.

Lives here: arithmetic on figures and sizes.  Not here: measuring (measure.py), finding the sizes of a
store's objects and printing (cli/calibrate.py).
"""

from __future__ import annotations

import bisect
import itertools
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

__all__ = ["CANDIDATES", "THESIS", "HeadSizeCost", "Proposal", "Range", "Sizes", "Tally", "propose"]

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30
CANDIDATES = tuple(64 * KIB << step for step in range(9))
"""Head sizes worth a thought: 64 KiB to 16 MiB."""
FLAT = 1e-9  # an exponent as good as 0


@dataclass(frozen=True)
class Proposal:
    """The head size by the rule.

    exact_bytes: access time of the hard disk x rate at which the SSD writes: so much the SSD moves
        before the hard disk begins.
    head_bytes: the largest of CANDIDATES that is not above it, or the smallest of them.
    """

    access_s: float
    write_bytes_s: float
    exact_bytes: float
    head_bytes: int


def propose(access_s: float, write_bytes_s: float) -> Proposal:
    """Apply the rule to a hard disk's access time and an SSD's rate of writes."""
    exact = access_s * write_bytes_s
    at = bisect.bisect_right(CANDIDATES, exact)
    return Proposal(access_s, write_bytes_s, exact, CANDIDATES[max(0, at - 1)])


@dataclass(frozen=True)
class HeadSizeCost:
    """Space for one head size: bytes on the SSD, and the share of objects that fit there
    completely."""

    head_bytes: int
    ssd_bytes: int
    whole: float


class Tally:
    """Sizes of objects, counted as they come; memory does not grow with them."""

    def __init__(self) -> None:
        self.objects = 0
        self.stored_bytes = 0
        self._whole = [0] * len(CANDIDATES)
        self._ssd_bytes = [0] * len(CANDIDATES)

    def add(self, size: int) -> None:
        """One object of so many bytes."""
        self.objects += 1
        self.stored_bytes += size
        for index, head in enumerate(CANDIDATES):
            self._whole[index] += size <= head
            self._ssd_bytes[index] += min(size, head)

    def needs(self) -> list[HeadSizeCost]:
        """A row for each candidate; with no object the shares are 0."""
        return [
            HeadSizeCost(head, ssd_bytes, whole / max(1, self.objects))
            for head, ssd_bytes, whole in zip(CANDIDATES, self._ssd_bytes, self._whole, strict=True)
        ]


# ---- the distribution that the thesis cites --------------------------------------------------------


@dataclass(frozen=True)
class Range:
    """Objects of low to high bytes: which part of all they are, and their mean size.

    Within it the density falls as a power of the size, the one that gives the mean.
    """

    low: int
    high: int
    share: float
    mean: float

    @property
    def power(self) -> float:
        """a in density ~ size ** (-a - 1); larger: more small ones."""
        least, most = -20.0, 20.0
        for _ in range(100):
            middle = (least + most) / 2
            if self._mean_with(middle) > self.mean:
                least = middle
            else:
                most = middle
        return most

    def _moment(self, exponent: float, upto: float) -> float:
        """Integral of size ** (exponent - 1) from low, in units of low."""
        if abs(exponent) < FLAT:
            return math.log(upto / self.low)
        return (math.pow(upto / self.low, exponent) - 1) / exponent

    def _mean_with(self, power: float) -> float:
        return self.low * self._moment(1 - power, self.high) / self._moment(-power, self.high)

    def below(self, size: float) -> float:
        """Share of the objects of this range that have at most so many bytes."""
        size = min(max(size, self.low), self.high)
        return self._moment(-self.power, size) / self._moment(-self.power, self.high)

    def mean_head(self, head: int) -> float:
        """Mean of min(size, head) over the range."""
        if head <= self.low:
            return float(head)
        upto, power = min(head, self.high), self.power
        inside = self.low * self._moment(1 - power, upto) / self._moment(-power, self.high)
        return inside + head * (1 - self.below(upto))

    def size_at(self, part: float) -> int:
        """The size that this part of the range's objects, 0 to 1, does not exceed."""
        power = self.power
        moment = part * self._moment(-power, self.high)
        flat = abs(power) < FLAT
        factor = math.exp(moment) if flat else math.pow(1 - power * moment, -1 / power)
        return min(self.high, round(self.low * factor))


@dataclass(frozen=True)
class Sizes:
    """A distribution of object sizes: ranges, ascending."""

    ranges: Sequence[Range]

    @property
    def mean(self) -> float:
        """Mean size of an object."""
        return sum(each.share * each.mean for each in self.ranges)

    def needs(self, stored_bytes: int) -> list[HeadSizeCost]:
        """A row for each candidate, for objects of so many bytes in all."""
        objects = stored_bytes / self.mean
        return [
            HeadSizeCost(
                head,
                round(objects * sum(each.share * each.mean_head(head) for each in self.ranges)),
                sum(each.share * each.below(head) for each in self.ranges if head >= each.low),
            )
            for head in CANDIDATES
        ]

    def sample(self, count: int) -> Iterator[int]:
        """So many sizes that are spread as evenly over the distribution as can be, ascending."""
        ends = list(itertools.accumulate(each.share for each in self.ranges))
        for index in range(count):
            part = (index + 0.5) / count
            at = min(bisect.bisect_left(ends, part), len(ends) - 1)
            within = self.ranges[at]
            yield within.size_at(1 - (ends[at] - part) / within.share)


MEAN = 189 * KIB
THESIS = Sizes(
    (
        Range(1 * KIB, 32 * KIB, 0.80, 0.05 * MEAN / 0.80),
        Range(32 * KIB, 1 * MIB, 0.18, 0.15 * MEAN / 0.18),
        Range(1 * MIB, 1 * GIB, 0.02, 0.80 * MEAN / 0.02),
    )
)
"""Section 3.4 of the thesis, after Agrawal et al., A five-year study of file-system metadata (2007): 80 %
of files have at most 32 KB and 5 % of the bytes, 98 % at most 1 MB and 20 % of the bytes.  The mean of
189 KB (2004) is the study's."""
