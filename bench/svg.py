# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots as SVG: curves, and rows as dots with their intervals and aims.  The same figures give the same
bytes; colours are those of Okabe and Ito, which the colour-blind tell apart, and every line has a
marker of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from bench.axes import Axis
from bench.stats import Curve, Point, Row

LIGHT = ("#0072b2", "#d55e00", "#009e73", "#b35a8c", "#b07800", "#2a8fc7", "#1b1b1b", "#777777")
DARK = ("#56b4e9", "#ff8a3c", "#2fd0a0", "#e79cc6", "#f0b429", "#9ad4f5", "#f2f2f2", "#aaaaaa")


def _variables(paper: str, ink: str, soft: str, grid: str, colours: Sequence[str]) -> str:
    lines = "".join(f"--c{number}:{colour};" for number, colour in enumerate(colours))
    return f"--paper:{paper};--ink:{ink};--soft:{soft};--grid:{grid};{lines}"


LIGHT_VARIABLES = _variables("#ffffff", "#1b1b1b", "#5c6470", "#dfe3e8", LIGHT)
DARK_VARIABLES = _variables("#14171c", "#eceff4", "#a3adba", "#343b46", DARK)
STYLE = (
    ".plot text{font:12px system-ui,sans-serif;fill:var(--ink)}.plot .soft{fill:var(--soft)}"
    ".plot .title{font-weight:600;font-size:14px}.plot .id{font-family:ui-monospace,monospace}"
    ".plot .grid{stroke:var(--grid)}.plot .axis{stroke:var(--soft)}.plot .back{fill:var(--paper)}"
    ".plot .line{fill:none;stroke-width:2}.plot .paper{stroke-dasharray:6 4;stroke-width:1.5}"
    ".plot .part{stroke-dasharray:2 3;stroke-width:1.5}.plot .aim{stroke:var(--ink);stroke-width:1.5}"
    + "".join(f".plot .s{n}{{stroke:var(--c{n});color:var(--c{n})}}" for n in range(len(LIGHT)))
    + ".plot .fill{fill:currentcolor}.plot .open{fill:var(--paper)}"
)
"""For a page that has plots in it and sets the variables."""

WIDTH, PLOT_HEIGHT = 720, 260
LEFT, RIGHT, TOP = 84, 24, 36
LETTER = 6.9  # pixels, of text of 12, on average
ROW_HEIGHT = 22
BETTER = "times better than the baseline"
LEGEND = "│: the aim; ―: 95 % interval; at the right: the ratio"
MARKS = {None: (7, 3), True: (2, 0), False: (1, 2)}
"""Colour and marker of a row whose aim is met, or not, or that has none."""


def _svg(height: float, parts: Sequence[str], title: str, alone: bool) -> str:
    style = (
        f"<style>svg{{{LIGHT_VARIABLES}}}@media(prefers-color-scheme:dark){{svg{{{DARK_VARIABLES}}}}}"
        f"{STYLE}</style>"
    )
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" class="plot" role="img" width="{WIDTH}" '
        f'height="{height:.0f}" viewBox="0 0 {WIDTH} {height:.0f}" aria-label="{escape(title)}">'
    )
    back = f'<rect class="back" width="{WIDTH}" height="{height:.0f}"/>'
    return "\n".join([head + (style if alone else "") + back, *parts, "</svg>\n"])


def _text(x: float, y: float, text: str, kind: str = "", anchor: str = "start") -> str:
    return (
        f'<text x="{x:.1f}" y="{y:.1f}" class="{kind}" text-anchor="{anchor}">{escape(text)}</text>'
    )


def _line(x1: float, y1: float, x2: float, y2: float, kind: str) -> str:
    return f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{kind}"/>'


def _marker(x: float, y: float, shape: int, kind: str) -> str:
    """Circle, square, triangle, diamond, and so on."""
    outlines = (
        "",
        "-4,-4 4,-4 4,4 -4,4",
        "0,-5 5,4 -5,4",
        "0,-5.5 5.5,0 0,5.5 -5.5,0",
        "0,5 5,-4 -5,-4",
    )
    outline = outlines[shape % len(outlines)]
    if not outline:
        return f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" class="{kind}"/>'
    return f'<polygon transform="translate({x:.1f} {y:.1f})" points="{outline}" class="{kind}"/>'


# ---- curves ------------------------------------------------------------------------------------


def _legend(names: Sequence[tuple[str, str, int]], y: float) -> tuple[list[str], float]:
    """Marks and names in rows under the plot, and where they end.  names: (name, kind of line, shape)."""
    parts = []
    x = float(LEFT)
    for name, kind, shape in names:
        width = 40 + LETTER * len(name)
        if x + width > WIDTH and x > LEFT:
            x, y = float(LEFT), y + 18
        parts.append(_line(x, y - 4, x + 22, y - 4, f"line {kind}"))
        parts.append(_marker(x + 11, y - 4, shape, _inside(kind)))
        parts.append(_text(x + 28, y, name))
        x += width + 8
    return parts, y + 12


def _inside(kind: str) -> str:
    colour, *dashed = kind.split()
    return f"{colour} {'open' if dashed else 'fill'}"


def _curve_line(line: Sequence[Point], x: Axis, y: Axis, shape: int, kind: str) -> list[str]:
    places = [(x.at(each.x), y.at(each.y)) for each in line]
    path = " ".join(f"{across:.1f},{down:.1f}" for across, down in places)
    parts = [f'<polyline points="{path}" class="line {kind}"/>'] if len(line) > 1 else []
    for each, (across, down) in zip(line, places, strict=True):
        if each.low is not None and each.high is not None:
            parts.append(_line(across, y.at(each.low), across, y.at(each.high), kind))
        if len(line) <= 40:
            parts.append(_marker(across, down, shape, _inside(kind)))
    return parts


def _shapes(curve: Curve) -> dict[str, tuple[int, bool]]:
    """Of each line a number for colour and marker, and whether it is a part of another: `READ, processor`
    has those of `READ`, and what a paper says of READ, too."""
    found: dict[str, tuple[int, bool]] = {}
    for name in (*curve.series, *curve.paper):
        whole, _, what = name.rpartition(", ")
        number = len({shape for shape, _ in found.values()})
        part = whole in found and " " not in what
        found.setdefault(name, (found[whole][0], True) if part else (number, False))
    return found


def draw_curve(curve: Curve, *, alone: bool) -> str:
    """The plot.  alone: as a file of its own, with its colours."""
    lines = [(name, line, "") for name, line in curve.series.items()]
    lines += [(name, line, " paper") for name, line in curve.paper.items()]
    points = [each for _, line, _ in lines for each in line]
    if not points:
        return _svg(60, [_text(LEFT, 30, f"{curve.title}: no points")], curve.title, alone)
    bottom = TOP + PLOT_HEIGHT
    x = Axis.over(
        [p.x for p in points], LEFT, WIDTH - RIGHT, curve.log_x, curve.x_label, mark=curve.log_x
    )
    ends = [end for p in points for end in (p.y, p.low, p.high) if end is not None]
    y = Axis.over(ends, bottom, TOP, curve.log_y, curve.y_label, zero=not curve.log_y)
    parts = [_text(LEFT, 20, curve.title, "title")]
    for value, label in y.ticks():
        parts.append(_line(LEFT, y.at(value), WIDTH - RIGHT, y.at(value), "grid"))
        parts.append(_text(LEFT - 8, y.at(value) + 4, label, "soft", "end"))
    for value, label in x.ticks():
        parts.append(_line(x.at(value), bottom, x.at(value), bottom + 4, "axis"))
        parts.append(_text(x.at(value), bottom + 18, label, "soft", "middle"))
    parts.append(_line(LEFT, bottom, WIDTH - RIGHT, bottom, "axis"))
    parts.append(_text((LEFT + WIDTH - RIGHT) / 2, bottom + 38, curve.x_label, "", "middle"))
    middle = (TOP + bottom) / 2
    parts.append(
        f'<text transform="translate(16 {middle:.0f}) rotate(-90)" text-anchor="middle">'
        f"{escape(curve.y_label)}</text>"
    )
    names = []
    shapes = _shapes(curve)
    for name, line, paper in lines:
        shape, part = shapes[name]
        kind = f"s{shape % len(LIGHT)}{paper or (' part' if part else '')}"
        said = f"{name} (paper)" if paper and "paper" not in name else name
        names.append((said, kind, shape))
        parts += _curve_line(line, x, y, shape, kind)
    legend, end = _legend(names, bottom + 60)
    return _svg(end, [*parts, *legend], curve.title, alone)


# ---- rows --------------------------------------------------------------------------------------


def _better(row: Row, ratio: float) -> float:
    """How many times better than the baseline."""
    return ratio if row.more_is_better else 1 / ratio


def drawn(rows: Sequence[Row]) -> list[Row]:
    """Those that have something to draw."""
    return [row for row in rows if row.ratio and row.interval and row.interval[0] > 0]


def axis_of(rows: Sequence[Row], start: float, end: float) -> Axis:
    """An axis for these rows, all of them drawn, and for 1."""
    ends = [1.0]
    for row in rows:
        assert row.ratio and row.interval
        ends += [_better(row, each) for each in (row.ratio, *row.interval)]
        ends += [_better(row, row.bound)] if row.bound else []
    return Axis.over(ends, start, end, True, BETTER)


def draw_row(row: Row, x: Axis, y: float) -> list[str]:
    """Dot, interval and aim of a row; right of 1 is better than the baseline."""
    assert row.ratio and row.interval
    colour, shape = MARKS[row.met]
    low, high = (x.at(_better(row, each)) for each in row.interval)
    parts = [_line(low, y, high, y, f"line s{colour}")]
    if row.bound:
        at = x.at(_better(row, row.bound))
        parts.append(_line(at, y - 8, at, y + 8, "aim"))
    return [*parts, _marker(x.at(_better(row, row.ratio)), y, shape, f"s{colour} fill")]


def draw_cell(row: Row, x: Axis, width: int) -> str:
    """The same for a cell of a table."""
    inside = "".join([_line(x.at(1), 0, x.at(1), ROW_HEIGHT, "axis"), *draw_row(row, x, 11)])
    return (
        f'<svg class="plot" width="{width}" height="{ROW_HEIGHT}" aria-hidden="true">{inside}</svg>'
    )


def draw_rows(rows: Sequence[Row], title: str, *, alone: bool) -> str:
    """A plot of the rows, one below the other; "" if there are none to draw."""
    shown = drawn(rows)
    if not shown:
        return ""
    left, right = 20 + 7.4 * max(len(row.id) for row in shown), WIDTH - 70
    top, bottom = 40, 40 + ROW_HEIGHT * len(shown)
    x = axis_of(shown, left, right)
    parts = [_text(12, 20, title, "title")]
    for value, text in x.ticks():
        parts.append(_line(x.at(value), top, x.at(value), bottom, "grid"))
        parts.append(_text(x.at(value), bottom + 16, text, "soft", "middle"))
    parts.append(_line(x.at(1), top, x.at(1), bottom, "axis"))
    parts.append(_text((left + right) / 2, bottom + 34, BETTER, "", "middle"))
    for number, row in enumerate(shown):
        y = top + ROW_HEIGHT * (number + 0.5)
        parts.append(_text(12, y + 4, row.id, "id"))
        parts += draw_row(row, x, y)
        parts.append(_text(WIDTH - 12, y + 4, f"{row.ratio:.3g}", "", "end"))
    across = 12.0
    for met, name in ((True, "aim met"), (False, "missed"), (None, "no aim")):
        colour, shape = MARKS[met]
        parts.append(_marker(across + 6, bottom + 52, shape, f"s{colour} fill"))
        parts.append(_text(across + 18, bottom + 56, name, "soft"))
        across += 34 + LETTER * len(name)
    parts.append(_text(across, bottom + 56, LEGEND, "soft"))
    return _svg(bottom + 68, parts, title, alone)
