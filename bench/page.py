# SPDX-License-Identifier: GPL-2.0-or-later
"""The report as a page of HTML that needs nothing else: no scripts, plots in it, light and dark."""

from __future__ import annotations

import base64
from collections.abc import Iterator, Sequence
from html import escape

from bench.chapters import chapters
from bench.plots import draw_curve, draw_rows
from bench.saved import Report
from bench.stats import Row
from bench.table import WORDS, machine_line, quantity, ratio_text, sign, tally

STYLE = """
:root{color-scheme:light dark;--paper:#ffffff;--ink:#1b1b1b;--soft:#5c6470;--grid:#dfe3e8;
--link:#0072b2;--met:#007a58;--missed:#c05000}
@media(prefers-color-scheme:dark){:root{--paper:#14171c;--ink:#eceff4;--soft:#a3adba;
--grid:#343b46;--link:#56b4e9;--met:#2fd0a0;--missed:#ff8a3c}}
body{margin:0 auto;padding:1.5rem 1rem 4rem;max-width:74rem;background:var(--paper);color:var(--ink);
font:15px/1.5 system-ui,sans-serif}
h1{font-size:1.6rem}h2{margin-top:2.5rem;border-bottom:1px solid var(--grid)}h3{margin-bottom:.3rem}
a{color:var(--link)}small,.soft{color:var(--soft)}
code,td:first-child b{font:13px ui-monospace,monospace}
.tiles{display:flex;flex-wrap:wrap;gap:.8rem;padding:0;list-style:none}
.tiles li{border:1px solid var(--grid);border-radius:8px;padding:.4rem 1rem;min-width:6rem}
.tiles b{display:block;font-size:1.6rem}
.wide{overflow-x:auto}table{border-collapse:collapse;width:100%;font-variant-numeric:tabular-nums}
th,td{padding:.25rem .6rem;text-align:right;border-bottom:1px solid var(--grid);white-space:nowrap}
th:first-child,td:first-child{text-align:left;white-space:normal;min-width:16rem;width:40%}
td.reason{text-align:left;white-space:normal}
td small{display:block}td:last-child,th:last-child{text-align:left}
.met{color:var(--met)}.missed{color:var(--missed);font-weight:600}
.plots{display:grid;grid-template-columns:repeat(auto-fit,minmax(min(100%,32rem),1fr));gap:1rem}
.plots img{width:100%;height:auto;background:#ffffff;border-radius:8px}
"""
METHOD = """
<p>Ours and the baseline are measured in turn, A B A B …, in one run, after a warm-up; each pair gives a
ratio. The figure is the median ratio with the 95 % bootstrap interval of it; an aim is met when the
interval reaches it. Times by themselves say little on a machine with few processors that client, target
and sandboxes share; ratios of one run do. Rows of a 99th percentile, and of a rate, have the aim as their
baseline. In a plot of rows, right of 1 is better than the baseline; the axis is logarithmic, and the
bar is the aim. <code>docs/benchmarks.md</code> says of each row what is measured against
what.</p>
"""


def _row(row: Row, method: str, paper: bool) -> str:
    name = f"<b>{escape(row.id)}</b>" + (" simulated" if row.simulated else "")
    name += f"<small>{escape(method)}</small>" if method else ""
    if row.ratio is None:
        span = 5 + paper
        return (
            f'<tr><td>{name}<td class="reason" colspan="{span}">not measured: {escape(row.reason)}'
        )
    word = WORDS[row.met]
    theirs = f"<td>{quantity(row.paper, row.unit)}" if paper else ""
    return (
        f"<tr><td>{name}<td>{quantity(row.ours, row.unit)}<td>{quantity(row.baseline, row.unit)}{theirs}"
        f'<td>{ratio_text(row)}<td>{sign(row.aim)}<td class="{word}">{word}'
    )


def _table(rows: Sequence[Row]) -> Iterator[str]:
    paper = any(row.paper is not None for row in rows)
    yield '<div class="wide"><table><thead><tr><th>row<th>ours<th>baseline'
    yield ("<th>paper" if paper else "") + "<th>ratio<th>aim<th></thead><tbody>"
    said = ""
    for row in rows:
        yield _row(row, row.method if row.method != said and row.ratio else "", paper)
        said = row.method
    yield "</tbody></table></div>"


def _image(title: str, content: str) -> str:
    """A plot within the page; each is a document of its own, so that their ids do not meet."""
    if not content:
        return ""
    packed = base64.b64encode(content.encode()).decode()
    return f'<img alt="{escape(title)}" src="data:image/svg+xml;base64,{packed}">'


def _group(report: Report, name: str) -> Iterator[str]:
    took = report.groups[name]
    yield f'<h3 id="{name}">{escape(took.title)}</h3>'
    yield f"<p><small>group {name}, {took.seconds:.0f} s, commit {took.commit}, {took.date}"
    yield f", {took.size} run</small></p>" if took.size != "usual" else "</small></p>"
    if took.error:
        yield f'<p class="missed">It ended early: {escape(took.error)}</p>'
    rows = [row for row in report.rows if row.group == name]
    if rows:
        yield from _table(rows)
    yield '<div class="plots">'
    yield _image(took.title, draw_rows(rows, took.title))
    yield from (
        _image(curve.title, draw_curve(curve)) for curve in report.curves if curve.group == name
    )
    yield "</div>"


def _summary(report: Report) -> Iterator[str]:
    yield '<ul class="tiles">'
    for word, rows in tally(report.rows).items():
        yield f'<li class="{word}"><b>{len(rows)}</b>{word}'
    yield "</ul>"
    for word, rows in tally(report.rows).items():
        if rows and word in ("missed", "not measured"):
            links = ", ".join(f'<a href="#{row.group}">{escape(row.id)}</a>' for row in rows)
            yield f"<p>{word.capitalize()}: {links}</p>"
    yield f"<p><small>{escape(machine_line(report))}</small></p>"


def page(report: Report) -> str:
    """The whole page."""
    parts = [
        '<!doctype html><html lang="en"><meta charset="utf-8"><title>iosd: what it measures</title>',
        '<meta name="viewport" content="width=device-width,initial-scale=1">',
        f"<style>{STYLE}</style><h1>iosd: what this release measures</h1>",
        *_summary(report),
    ]
    links = [f'<a href="#q{n}">{question}</a>' for n, (question, _) in enumerate(chapters(report))]
    parts.append(f"<p>{' · '.join(links)}</p>")
    for number, (question, names) in enumerate(chapters(report)):
        parts.append(f'<h2 id="q{number}">{question}</h2>')
        for name in names:
            parts += _group(report, name)
    return "\n".join([*parts, "<h2>Method</h2>", METHOD, "</html>\n"])
