# SPDX-License-Identifier: GPL-2.0-or-later
"""Plots as SVG, by matplotlib: curves, and rows as dots with their intervals and aims.

The same figures give the same bytes.  Colours are those of Okabe and Ito, which colour-blind people can
distinguish, and every line has a marker of its own.  matplotlib is imported where it draws: its import
takes half a second.
"""

from __future__ import annotations

import io
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

from bench.stats import Curve, Point, Row

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["better", "draw_curve", "draw_rows", "size"]

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#b35a8c", "#b07800", "#2a8fc7", "#1b1b1b", "#777777")
MARKERS = ("o", "s", "^", "D", "v")
OUTCOMES = {True: ("aim met", 2, "o"), False: ("missed", 1, "^"), None: ("no aim", 7, "D")}
"""Name, colour and marker of a row whose aim is met, or not, or that has none."""
BETTER = "times better than the baseline"
STYLE: dict[Any, Any] = {
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titleweight": "bold",
    "font.size": 9,
    "font.sans-serif": ["system-ui", "DejaVu Sans"],
    "grid.color": "#dfe3e8",
    "legend.frameon": False,
    "svg.fonttype": "none",  # text stays text, which a reader can search
    "svg.hashsalt": "iosd",  # ids that do not change from run to run
}
WIDTH, CURVE_HEIGHT, ROW_HEIGHT = 7.5, 4.0, 0.23  # inches
DENSE = 40  # points, from which on a line has no markers
TICKS = 10
LETTERS = 100  # that fit into one line of the legend


def _svg(figure: Figure) -> str:
    made = io.StringIO()
    figure.savefig(made, format="svg", metadata={"Date": None, "Creator": None})
    return made.getvalue()


# ---- axes --------------------------------------------------------------------------------------


def size(value: float, _: object = None) -> str:
    """1024 as 1 KiB: matplotlib has no formatter for powers of two."""
    for unit, name in ((1 << 30, "GiB"), (1 << 20, "MiB"), (1 << 10, "KiB")):
        if value >= unit:
            return f"{value / unit:.3g} {name}"
    return f"{value:.3g} B"


def _short(value: float, _: object = None) -> str:
    """1000000 as 1M, 0.0025 as 0.0025."""
    from matplotlib.ticker import EngFormatter

    return EngFormatter(sep="")(value) if abs(value) >= 1000 else f"{value:.3g}"


def _of_bytes(label: str) -> bool:
    return label.startswith("bytes") or label.endswith("bytes")


def _locator(low: float, high: float, label: str) -> Any:
    """Ticks of a logarithmic axis: even ones on a short axis, which may lie between two powers."""
    from matplotlib.ticker import LogLocator, MaxNLocator

    if high < 10 * low:
        return MaxNLocator(5)
    if _of_bytes(label):
        return LogLocator(base=2, numticks=TICKS)
    return LogLocator(subs=(1, 2, 5) if high < 1000 * low else (1,))


def _scale(axis: Any, values: Sequence[float], log: bool, label: str, *, mark: bool) -> None:
    """Scale, ticks and label of an x or y axis.  mark: a tick at each value, if they are few."""
    from matplotlib.ticker import EngFormatter, FixedLocator, FuncFormatter

    low, high = min(values), max(values)
    if log and low > 0:
        axis.axes.set(**{f"{axis.axis_name}scale": "log"})
        axis.set_major_locator(_locator(low, high, label))
    marked = sorted(set(values))
    if mark and len(marked) <= TICKS:
        axis.set_major_locator(FixedLocator(marked))
    seconds = label.startswith("seconds") or label.endswith(" s")
    form = size if _of_bytes(label) else EngFormatter(unit="s") if seconds else _short
    axis.set_major_formatter(form if isinstance(form, EngFormatter) else FuncFormatter(form))
    axis.axes.minorticks_off()
    axis.set_label_text(label)


# ---- curves ------------------------------------------------------------------------------------


def _looks(names: Sequence[str]) -> dict[str, tuple[int, bool]]:
    """Of each line the number of its colour and marker, and whether it is a part of another.

    `READ, processor` is a part of `READ`, and has the colour of `READ`; so has the paper's `READ`.
    """
    found: dict[str, tuple[int, bool]] = {}
    for name in names:
        whole, _, what = name.rpartition(", ")
        number = len({number for number, _ in found.values()})
        part = whole in found and " " not in what
        found.setdefault(name, (found[whole][0], True) if part else (number, False))
    return found


def _errors(line: Sequence[Point]) -> tuple[list[float], list[float]]:
    """Lengths of the intervals below and above the points."""
    below = [0.0 if each.low is None else max(0.0, each.y - each.low) for each in line]
    above = [0.0 if each.high is None else max(0.0, each.high - each.y) for each in line]
    return below, above


def _draw_lines(
    axes: Any, lines: Mapping[str, Sequence[Point]], looks: dict[str, tuple[int, bool]], paper: bool
) -> None:
    for name, line in lines.items():
        number, part = looks[name]
        axes.errorbar(
            [each.x for each in line],
            [each.y for each in line],
            yerr=_errors(line) if any(each.low is not None for each in line) else None,
            color=COLOURS[number % len(COLOURS)],
            linestyle="--" if paper else ":" if part else "-",
            marker=MARKERS[number % len(MARKERS)] if len(line) <= DENSE else "",
            markerfacecolor="white" if paper or part else None,
            markersize=5,
            label=f"{name} (paper)" if paper and "paper" not in name else name,
        )


def draw_curve(curve: Curve) -> str:
    """The plot of a curve."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    points = [
        each for lines in (curve.series, curve.paper) for line in lines.values() for each in line
    ]
    with mpl.rc_context(STYLE):
        if not points:
            figure = Figure(figsize=(WIDTH, 0.6))
            figure.text(0.02, 0.4, f"{curve.title}: no points", weight="bold")
            return _svg(figure)
        figure = Figure(figsize=(WIDTH, CURVE_HEIGHT), layout="constrained")
        axes = figure.subplots()
        axes.set_title(curve.title)
        axes.grid(axis="y")
        looks = _looks([*curve.series, *curve.paper])
        _draw_lines(axes, curve.series, looks, paper=False)
        _draw_lines(axes, curve.paper, looks, paper=True)
        ends = [end for p in points for end in (p.y, p.low, p.high) if end is not None]
        _scale(axes.xaxis, [p.x for p in points], curve.log_x, curve.x_label, mark=curve.log_x)
        _scale(axes.yaxis, ends, curve.log_y, curve.y_label, mark=False)
        if not curve.log_y and min(ends) >= 0:
            axes.set_ylim(bottom=0)
        longest = max(len(name) for name in looks)
        figure.legend(loc="outside lower left", ncols=max(1, LETTERS // (longest + 14)))
        return _svg(figure)


# ---- rows --------------------------------------------------------------------------------------


def better(row: Row, ratio: float) -> float:
    """How many times better than the baseline, for times as for speeds."""
    return ratio if row.more_is_better else 1 / ratio


def _draw_row(axes: Any, row: Row, y: int) -> None:
    """Dot, interval, aim and ratio of a row."""
    assert row.ratio and row.interval
    _, colour, marker = OUTCOMES[row.met]
    ends = [better(row, each) for each in row.interval]
    axes.plot(ends, [y, y], color=COLOURS[colour])
    axes.plot(better(row, row.ratio), y, color=COLOURS[colour], marker=marker, markersize=6)
    if row.bound:
        axes.plot(better(row, row.bound), y, color="black", marker="|", markersize=14)
    axes.text(1.02, y, f"{row.ratio:.3g}", transform=axes.get_yaxis_transform(), va="center")


def draw_rows(rows: Sequence[Row], title: str) -> str:
    """A plot of the rows, one below the other; "" if there are none to draw."""
    import matplotlib as mpl
    from matplotlib.figure import Figure

    shown = [row for row in rows if row.ratio and row.interval and row.interval[0] > 0]
    if not shown:
        return ""
    with mpl.rc_context(STYLE):
        figure = Figure(figsize=(WIDTH, 1.3 + ROW_HEIGHT * len(shown)), layout="constrained")
        axes = figure.subplots()
        axes.set_title(title)
        axes.grid(axis="x")
        axes.axvline(1, color=COLOURS[7], linewidth=1)
        for number, row in enumerate(shown):
            _draw_row(axes, row, number)
        axes.set_yticks(range(len(shown)), [row.id for row in shown], family="monospace")
        axes.set_ylim(len(shown) - 0.5, -0.5)
        ends = [
            better(row, end) for row in shown for end in (*(row.interval or ()), row.bound) if end
        ]
        _scale(axes.xaxis, [1.0, *ends], True, BETTER, mark=False)
        _legend_of_rows(figure)
        return _svg(figure)


def _legend_of_rows(figure: Figure) -> None:
    from matplotlib.lines import Line2D

    handles = [
        Line2D([], [], color=COLOURS[colour], marker=marker, label=name)
        for name, colour, marker in OUTCOMES.values()
    ]
    handles.append(
        Line2D([], [], color="black", marker="|", markersize=12, linestyle="", label="aim")
    )
    title = "lines: 95 % intervals; at the right: the ratio"
    figure.legend(handles=handles, loc="outside lower left", ncols=4, title=title, alignment="left")
