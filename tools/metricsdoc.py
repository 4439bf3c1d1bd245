# SPDX-License-Identifier: GPL-2.0-or-later
"""Print docs/metrics.md, made from the table of metrics.

A test compares the file with this output. ``python -m tools.metricsdoc >docs/metrics.md`` updates
it.
"""

from __future__ import annotations

from iosd_host.http.metrics import METRICS

__all__ = ["page"]

INTRODUCTION = """\
# Metrics

This page lists the metrics that `/metrics` of a resource manager returns in the text format of
Prometheus ([observing](observing.md)). Names contain the unit: seconds or bytes. If a target does
not know a value, the value is absent instead of 0. Counters begin at 0 when the target starts. No
label names a job, an object or a user, because their number has no limit.

| name | kind | labels | |
| --- | --- | --- | --- |
"""


def page() -> str:
    """The whole text."""
    lines = [
        f"| `{metric.name}` | {metric.kind} | {', '.join(metric.labels)} | {metric.help} |\n"
        for metric in METRICS
    ]
    return INTRODUCTION + "".join(lines)


if __name__ == "__main__":
    print(page(), end="")
