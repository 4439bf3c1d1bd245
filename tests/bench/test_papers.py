# SPDX-License-Identifier: GPL-2.0-or-later
"""Results of the benches after other papers: ids, units, the papers' values.  No time is
asserted."""

from __future__ import annotations

from dataclasses import replace

import pytest

from bench import runde, runde_link, umn
from bench.plan import QUICK
from bench.stats import Curve, Row

PLAN = replace(QUICK, pairs=1, seconds=0.001)


def measured(row: Row) -> bool:
    """Whether it has figures, and an interval around the ratio."""
    assert row.ratio is not None, row.reason
    assert row.interval is not None
    return row.interval[0] <= row.ratio <= row.interval[1]


def test_umn(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(umn, "FILE_BYTES", max(umn.QUOTED.values()))
    found = list(umn.rows(PLAN))
    rows = {each.id: each for each in found if isinstance(each, Row)}
    assert all(map(measured, rows.values()))
    latencies = {row_id: row for row_id, row in rows.items() if row.unit == "s"}
    assert len(latencies) == 2 * len(umn.TABLE_3)
    assert latencies["umn_remove_capkey"].paper == 8387e-6
    transfers = {f"umn_{kind}_{size}" for kind in umn.KINDS for size in umn.QUOTED}
    assert set(rows) - set(latencies) == transfers
    speeds, ratios = (each for each in found if isinstance(each, Curve))
    assert set(ratios.series) == set(umn.KINDS)
    assert set(speeds.series) == {
        f"{side}, {kind}" for side in ("object", "disk") for kind in umn.KINDS
    }
    for line in (*speeds.series.values(), *ratios.series.values()):
        assert [point.x for point in line] == list(umn.QUOTED.values())


@pytest.mark.sandbox
def test_runde(monkeypatch: pytest.MonkeyPatch) -> None:
    """The three programs find the same at both ends of the link, or a row says why there is none."""
    monkeypatch.setattr(runde_link, "QUICK_BYTES", runde_link.CHUNK)
    rows = {row.id: row for row in runde.rows(replace(PLAN, count=10))}
    assert set(rows) == {
        *("runde_noop", "runde_noop_reuse", "runde_read_4m", "runde_write_4m"),
        *runde_link.WAYS,
    }
    assert all(row.reason or measured(row) for row in rows.values())
    assert rows["runde_noop"].paper == runde.NOOP_S
    assert all(row.ratio for row_id, row in rows.items() if row_id not in runde_link.WAYS)
