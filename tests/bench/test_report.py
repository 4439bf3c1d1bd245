# SPDX-License-Identifier: GPL-2.0-or-later
"""The report for people: a page that needs nothing else, blocks of a document, plots that repeat."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import pytest

from bench.chapters import CHAPTERS
from bench.groups import GROUPS
from bench.page import page
from bench.plots import better, draw_curve, draw_rows, size
from bench.report import DOCUMENT, fill
from bench.saved import Report, Took
from bench.stats import REPORTED, Curve, Point, Row, at_least, at_most, missing, row_of_pairs
from bench.table import format_report, quantity

SVG = "{http://www.w3.org/2000/svg}"
TOOK = Took("READ & WRITE <both>", 1.0, "0123456789ab", "2026-01-01T00:00:00+00:00", "usual")
PAIRS = [(1.0, 2.0), (1.1, 2.0), (1.2, 2.0)]
ROWS = [
    row_of_pairs("read", PAIRS, at_least(0.2), "a <method>", unit="MiB/s", paper=3.0),
    row_of_pairs("write", PAIRS, at_most(0.2), "b"),
    row_of_pairs("neither", PAIRS, REPORTED, "c"),
    missing("elsewhere", at_most(1), "no <valgrind> | here"),
]
LINE = [Point(1024.0 * 4**step, 2.0 + step, 1.0 + step, 3.5 + step) for step in range(5)]
CURVES = [
    Curve("sizes", "by <size>", "size, bytes", "MiB/s", {"ours": LINE}, True, True, {"iOSD": LINE}),
    Curve("one", "one point", "x", "y", {"ours": [Point(0, 0)]}),
    Curve("none", "no points", "x", "y", {"ours": []}),
    Curve("many", "many", "t, s", "%", {"a": [Point(x, x % 7) for x in range(100)], "b": []}),
]


@pytest.fixture
def report() -> Report:
    made = Report(machine={"cpu": "an <old> one", "cores": 2, "memory_bytes": 1 << 30})
    made.add("wire", TOOK, [*ROWS, *CURVES])
    return made


def plots() -> Iterator[tuple[str, str]]:
    """Titles and plots."""
    yield from ((curve.title, draw_curve(curve)) for curve in CURVES)
    yield "rows", draw_rows(ROWS, "rows")


def words(plot: str) -> str:
    """What a plot says; it must be XML."""
    return " ".join(ElementTree.fromstring(plot).itertext())


def test_plots_are_xml_and_repeat() -> None:
    for (title, first), (_, second) in zip(plots(), plots(), strict=True):
        assert first == second
        assert title in words(first)
        assert "nan" not in first


def test_plots_have_what_they_are_made_of() -> None:
    sizes = words(draw_curve(CURVES[0]))
    for said in ("size, bytes", "MiB/s", "ours", "iOSD (paper)", "1 KiB", "256 KiB"):
        assert said in sizes
    rows = words(draw_rows(ROWS, "rows"))
    for row in ROWS:
        assert (row.id in rows) == (row.ratio is not None)
    assert "0.55" in rows and "missed" in rows
    assert draw_rows([missing("elsewhere", REPORTED, "")], "none") == ""


def test_right_is_better_whether_time_or_speed() -> None:
    fast = row_of_pairs("fast", [(2.0, 1.0)], REPORTED, "", unit="MiB/s")
    soon = row_of_pairs("soon", [(0.5, 1.0)], at_most(1), "")
    assert better(fast, 2.0) == better(soon, 0.5) == 2


@pytest.mark.parametrize(
    ("values", "label", "log"),
    [
        ([7.0], "s", False),
        ([7.0], "time, s", True),
        ([0.0], "size, bytes", False),
        ([0.0], "s", True),
        ([1e-9, 1e12], "time, s", False),
        ([1e-9, 1e12], "size, bytes", True),
        ([5.0, 5.1], "s", False),
        ([5.0, 5.1], "size, bytes", True),
        ([3e11, 3e11 + 1], "size, bytes", False),
        ([3e11, 3e11 + 1], "time, s", True),
    ],
)
def test_any_figures_make_a_plot_with_ticks(values: list[float], label: str, log: bool) -> None:
    points = [Point(value, value) for value in values]
    plot = draw_curve(Curve("any", "any", label, label, {"a": points}, log, log))
    ticks = [element.attrib["id"] for element in ElementTree.fromstring(plot).iter(f"{SVG}g")
             if "id" in element.attrib]  # fmt: skip
    for axis in ("xtick_", "ytick_"):
        assert 1 <= sum(tick.startswith(axis) for tick in ticks) <= 14


def test_sizes_are_powers_of_two() -> None:
    assert [size(value) for value in (1, 1024, 3 << 20, 1 << 30)] == [
        "1 B",
        "1 KiB",
        "3 MiB",
        "1 GiB",
    ]


def test_page_needs_nothing_else_and_tells_all(report: Report) -> None:
    text = page(report)
    assert text == page(report)
    assert not re.search(r"<script|<link|@import|url\(|https?://", text)
    assert set(re.findall(r' src="([^,]*),', text)) == {"data:image/svg+xml;base64"}
    for row in ROWS:
        assert f"<b>{row.id}</b>" in text
    assert "not measured: no &lt;valgrind&gt; | here" in text
    assert "<method>" not in text
    assert text.count("<img") == len(CURVES) + 1
    assert 'class="met"><b>1</b>' in text


def test_blocks_are_filled_and_prose_is_kept(report: Report, tmp_path: Path) -> None:
    document = tmp_path / "performance.md"
    prose = "# Title\n\n<!-- bench:summary -->\nbygone\n<!-- /bench -->\n\nProse.\n\n"
    kept = "<!-- bench:other -->\nwhat was here\n<!-- /bench -->\n"
    document.write_text(f"{prose}<!-- bench:wire -->\n<!-- /bench -->\n\nMore prose.\n{kept}")
    (tmp_path / "performance").mkdir()
    (tmp_path / "performance" / "stale.svg").write_text("<svg/>")
    report.add("unknown", TOOK, [])
    assert fill(document, report) == ["unknown"]
    first = document.read_text()
    assert "**1** met · **1** missed · **1** no aim · **1** not measured" in first
    assert "bygone" not in first
    assert "Prose." in first and "More prose." in first and kept in first
    assert "| `read` | 1.1 MiB/s | 2 MiB/s | 3 MiB/s | 0.55 [0.5, 0.6] | ≥ 0.2 | met |" in first
    assert "no &lt;valgrind> \\| here" in first
    files = {path.name: path.read_text() for path in (tmp_path / "performance").iterdir()}
    assert set(files) == {"wire.svg", "sizes.svg", "one.svg", "none.svg", "many.svg"}
    assert all(f"(performance/{name})" in first for name in files)
    fill(document, report)
    assert document.read_text() == first
    assert files == {path.name: path.read_text() for path in (tmp_path / "performance").iterdir()}


def test_terminal_tells_what_missed(report: Report) -> None:
    text = format_report(report)
    assert "1 met, 1 missed, 1 no aim, 1 not measured" in text
    assert "missed: write: 0.55 [0.5, 0.6], aim <= 0.2" in text
    assert "not measured: elsewhere: no <valgrind> | here" in text
    assert text.endswith("wire 1 s: 0.0 min")


@pytest.mark.parametrize(
    ("value", "unit", "text"),
    [
        (None, "s", "-"),
        (0.0000123, "s", "12.3 us"),
        (0.0123, "s", "12.3 ms"),
        (1234.5, "s", "1,234 s"),
        (0.25, "%", "0.25 %"),
        (98765.4, "1/s", "98,765 1/s"),
    ],
)
def test_quantity(value: float | None, unit: str, text: str) -> None:
    assert quantity(value, unit) == text


def test_document_has_a_block_for_each_group() -> None:
    text = DOCUMENT.read_text()
    names = {name for _, found in CHAPTERS for name in found}
    for group in GROUPS:
        assert f"<!-- bench:{group.name} -->" in text, group.name
        assert group.name in names, group.name
    folder = DOCUMENT.with_suffix("")
    drawn = {path.name for path in folder.glob("*")}
    assert drawn == set(re.findall(rf"\({folder.name}/([^)]+)\)", text))
    assert sum(path.stat().st_size for path in folder.glob("*")) < 1 << 20


def test_direction_of_rows_without_aim() -> None:
    def made(unit: str) -> Row:
        return row_of_pairs("x", PAIRS, REPORTED, "", unit=unit)

    assert made("jobs/s").more_is_better
    assert not made("KiB").more_is_better
    assert made("s").bound is None
    assert math.isclose(ROWS[0].bound or 0, 0.2)
