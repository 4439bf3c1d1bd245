# SPDX-License-Identifier: GPL-2.0-or-later
"""The iOSD paper's experiments run, small, and their rows and curves have the shape of the paper's."""

from __future__ import annotations

from typing import Any

import pytest

from bench import iosd_calls, iosd_io, iosd_log, offload_kernels, offload_model, operations
from bench.offload_auto import auto_rows
from bench.offload_model import Line, Model, fitted, right
from bench.plan import QUICK
from bench.stats import Curve, Row
from examples.demo import generate


def _parts(found: list[Row | Curve]) -> tuple[dict[str, Row], dict[str, Curve]]:
    rows = {each.id: each for each in found if isinstance(each, Row)}
    return rows, {each.id: each for each in found if isinstance(each, Curve)}


@pytest.mark.sandbox
def test_the_layers_of_a_call_are_all_of_it() -> None:
    rows, curves = _parts([*iosd_calls.rows(QUICK)])
    assert set(curves) == {"iosd_fig3", "iosd_fig4", "iosd_fig4_overhead"}
    for name, published in operations.TABLE_I.items():
        whole = rows.pop(f"iosd_{name}")
        assert whole.paper == published.seconds
        layers = [rows.pop(f"iosd_{name}_{layer}") for layer in operations.LAYERS]
        assert sum(each.paper or 0 for each in layers) == pytest.approx(whole.paper, rel=1e-3)
        assert all(each.n == QUICK.pairs for each in layers)
    assert not rows
    for line in curves["iosd_fig4"].series.values():
        assert [place.x for place in line] == list(iosd_calls.QUICK_NUMBERS)


def test_a_sample_divides_into_its_layers() -> None:
    sample = operations.Sample(osd=3.0, call=5.0, method=6.0)
    assert [sample.of(layer) for layer in operations.LAYERS] == [3.0, 2.0, 1.0]


@pytest.mark.sandbox
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


def test_the_model_finds_what_its_figures_were_made_of() -> None:
    assert fitted({100: [3.0, 2.0, 9.0], 300: [7.0]}) == Line(start=1.0, per_byte=0.02)
    assert fitted({100: [2.0], 300: [1.0]}).per_byte == 0.0


@pytest.mark.parametrize(
    ("off", "cpu", "near", "fetch"),
    [
        (Line(1, 0.1), Line(0, 0.1), 101.0, 2001.0),  # the link is what one waits for
        (Line(1, 9.0), Line(0, 3.0), 9001.0, 3020.0),  # the computation is, and alpha is 3
    ],
)
def test_the_model_overlaps_fetching_and_computing(
    off: Line, cpu: Line, near: float, fetch: float
) -> None:
    model = Model(net=Line(0, 2.0), cpu=cpu, off=off)
    assert model.near(1000) == near
    assert model.fetch(1000, block=10) == fetch
    assert right(model, 1000, near, fetch) and right(model, 1000, 1.0, 1.0)
    assert not right(model, 1000, fetch, near)


def test_kernels_do_not_mind_where_blocks_end() -> None:
    data = b"1 a b U C3 0f 1 read fh 00 euid 1f egid 2\nno request\n" * 50
    for text in (offload_kernels.KERNELS[name] for name in ("lines", "sha256", "log")):
        names: dict[str, Any] = {}
        exec(text, names)
        pieces = [memoryview(data)[at : at + 7] for at in range(0, len(data), 7)]
        assert names["compute"](pieces) == names["compute"]([memoryview(data)])
    assert names["compute"]([data]) == [50]


def test_auto_is_held_against_both_places() -> None:
    near, here = [1.0, "near"], [2.0, "local"]
    words = {"name": "words", "pairs": [(4.0, 2.0)]}
    found = {
        "idle": [words | {"pairs": [(1.0, 2.0)], "auto": [near, near]}],
        "busy": [words | {"auto": [here, [4.0, "near"], here]}],
        "changing": [
            {"name": "words", "sums": [(5.0, 4.0, 2.0), (5.0, 4.0, 2.0)]},
            {"name": "log", "sums": [(3.0, 9.0, 4.0), (1.0, 1.0, 4.0)]},
        ],
    }
    rows = {row.id: row for row in auto_rows(found, 1.1)}
    assert rows["offload_auto_busy_words"].ratio == 2
    assert "local, near, local" in rows["offload_auto_busy_words"].method
    assert rows["offload_auto_worst"].ratio == 1
    assert rows["offload_auto_changing"].method.endswith("worst: log")
    assert rows["offload_auto_changing"].ratio == 0.5
    assert rows["offload_auto_right"].ratio == 0.8
    assert not [*auto_rows({"idle": [words]}, 1.1)]


def test_a_prediction_is_held_against_what_was_measured() -> None:
    model = [[0.0, 2.0], [0.0, 1.0], [5.0, 1.0]]  # 1005 s near the data, 2000 s and more fetched
    found = {
        "idle": [{"name": "log", "model": model, "pairs": [(1000.0, 2000.0)]}],
        "busy": [{"name": "log", "model": model, "pairs": [(3000.0, 2000.0)]}],
    }
    rows, curves = _parts([*offload_model.rows_of(found, 1000)])
    assert rows["offload_log_idle"].ratio == 2
    assert rows["offload_log_idle"].method.startswith("alpha 1.00, ")
    assert "offload, right" in rows["offload_log_idle"].method
    assert "offload, wrong" in rows["offload_log_busy"].method
    assert (rows["offload_decisions"].ratio, rows["offload_decisions"].met) == (0.5, False)
    assert [place.y for place in curves["iosd_offload"].series["offload"]] == [1000.0, 3000.0]
