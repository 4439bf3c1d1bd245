# SPDX-License-Identifier: GPL-2.0-or-later
"""The iOSD paper's experiments run, small, and their rows and curves have the shape of the paper's."""

from __future__ import annotations

import pytest

from bench import iosd_calls, iosd_io, iosd_log
from bench.plan import QUICK
from bench.stats import Curve, Row
from examples.demo import generate


def _parts(found: list[Row | Curve]) -> tuple[dict[str, Row], dict[str, Curve]]:
    rows = {each.id: each for each in found if isinstance(each, Row)}
    return rows, {each.id: each for each in found if isinstance(each, Curve)}


def test_the_layers_of_a_call_are_all_of_it() -> None:
    rows, curves = _parts([*iosd_calls.rows(QUICK)])
    assert set(curves) == {"iosd_fig3", "iosd_fig4", "iosd_fig4_overhead"}
    for name, published in iosd_calls.TABLE_I.items():
        whole = rows.pop(f"iosd_{name}")
        assert whole.paper == published.seconds
        layers = [rows.pop(f"iosd_{name}_{layer}") for layer in iosd_calls.LAYERS]
        assert sum(each.paper or 0 for each in layers) == pytest.approx(whole.paper, rel=1e-3)
        assert all(each.n == QUICK.pairs for each in layers)
    assert not rows
    for line in curves["iosd_fig4"].series.values():
        assert [place.x for place in line] == list(iosd_calls.QUICK_NUMBERS)


def test_a_sample_divides_into_its_layers() -> None:
    sample = iosd_calls.Sample(osd=3.0, call=5.0, method=6.0)
    assert [sample.of(layer) for layer in iosd_calls.LAYERS] == [3.0, 2.0, 1.0]


def test_io_of_scripts_is_compared_with_c() -> None:
    rows, curves = _parts([*iosd_io.rows(QUICK)])
    assert set(rows) == {f"iosd_io_{kind}_1m" for kind in iosd_io.KINDS}
    assert all(row.ratio and row.ratio > 0 for row in rows.values())
    assert set(curves["iosd_fig5_time"].series) == {*iosd_io.KINDS, "pread", "pwrite"}


def test_the_log_job_counts_the_same_in_c() -> None:
    """rows() itself compares what they print."""
    rows, curves = _parts([*iosd_log.rows(QUICK)])
    assert set(rows) == set(iosd_log.ROW_IDS)
    if reason := rows["iosd_log_c"].reason:
        assert "libpcre2-dev" in reason
        return
    assert set(curves["iosd_fig6"].series) == {"Python, re", "C, PCRE2", "C, PCRE2 compiled"}
    assert max(iosd_log.LINES) == generate.LINES
