# SPDX-License-Identifier: GPL-2.0-or-later
"""The rule for the head size, and what each size needs: against values worked out by hand."""

from __future__ import annotations

import pytest

from iosd_host.store_tools.head_size import CANDIDATES, THESIS, Range, Tally, propose

KIB, MIB, GIB = 1 << 10, 1 << 20, 1 << 30


@pytest.mark.parametrize(
    ("access_s", "write_bytes_s", "exact", "head"),
    [
        (0.015, 150e6, 2_250_000, 2 * MIB),  # the thesis: 2.25 MB, so 2 MB
        (0.015, 139_810_134, 2_097_152.01, 2 * MIB),
        (0.015, 139_810_133, 2_097_151.995, 1 * MIB),
        (0.0001, 500e6, 50_000, 64 * KIB),  # a data device as fast as an SSD: the least
        (0.020, 3e9, 60e6, 16 * MIB),  # the most
    ],
)
def test_rule(access_s: float, write_bytes_s: float, exact: float, head: int) -> None:
    proposal = propose(access_s, write_bytes_s)
    assert proposal.exact_bytes == pytest.approx(exact, rel=1e-9)
    assert proposal.head_bytes == head


def test_needs_of_sizes() -> None:
    """1, 65,536, 65,537 and 3,000,000 bytes."""
    tally = Tally()
    for size in (1, 64 * KIB, 64 * KIB + 1, 3_000_000):
        tally.add(size)
    needs = {need.head_bytes: need for need in tally.needs()}
    assert tuple(needs) == CANDIDATES == tuple(64 * KIB * 2**n for n in range(9))
    assert (tally.objects, tally.stored_bytes) == (4, 3_131_074)
    assert needs[64 * KIB].ssd_bytes == 1 + 65_536 + 65_536 + 65_536
    assert needs[64 * KIB].whole == 0.5
    assert needs[128 * KIB].ssd_bytes == 1 + 65_536 + 65_537 + 131_072
    assert needs[2 * MIB].ssd_bytes == 131_074 + 2_097_152
    assert needs[2 * MIB].whole == 0.75
    assert needs[4 * MIB].ssd_bytes == 3_131_074
    assert needs[4 * MIB].whole == 1


def test_needs_of_nothing() -> None:
    assert all(need.ssd_bytes == 0 and need.whole == 0 for need in Tally().needs())


def test_cited_distribution() -> None:
    """98 % of files have at most 1 MB and 20 % of the bytes, as the thesis says; the heads of the
    other 2 % take 0.02 x 1,024 of the mean's 189 KB."""
    needs = {need.head_bytes: need for need in THESIS.needs(500 * GIB)}
    assert needs[MIB].whole == pytest.approx(0.98)
    assert needs[MIB].ssd_bytes == pytest.approx(500 * GIB * (0.20 + 0.02 * 1024 / 189))
    assert [need.whole for need in needs.values()] == sorted(need.whole for need in needs.values())
    least = THESIS.ranges[0]
    assert least.share * least.mean / THESIS.mean == pytest.approx(0.05)
    assert least.below(32 * KIB) == 1


def test_range_by_hand() -> None:
    """Evenly over the logarithm from 1 to 4: mean 3 / ln 4, half of them below 2."""
    even = Range(1, 4, 1.0, 3 / 1.3862943611198906)
    assert even.power == pytest.approx(0, abs=1e-6)
    assert even.below(2) == pytest.approx(0.5, abs=1e-6)
    assert even.mean_head(2) == pytest.approx((2 - 1) / 1.3862943611198906 + 2 * 0.5, abs=1e-6)
    assert even.mean_head(1) == 1
    assert even.mean_head(9) == pytest.approx(even.mean, abs=1e-6)


def test_samples_follow_the_distribution() -> None:
    sizes = list(THESIS.sample(10_000))
    assert sizes == sorted(sizes)
    assert len(sizes) == 10_000
    assert sum(size <= 32 * KIB for size in sizes) == pytest.approx(8000, abs=2)
    assert sum(size <= MIB for size in sizes) == pytest.approx(9800, abs=2)
    assert sizes[0] >= KIB
    assert sizes[-1] <= GIB
    assert sum(sizes) / len(sizes) == pytest.approx(THESIS.mean, rel=0.1)
