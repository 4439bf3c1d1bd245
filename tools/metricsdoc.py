# SPDX-License-Identifier: GPL-2.0-or-later
"""Prints docs/metrics.md, made of the table of metrics.

A test compares the file with this; ``python -m tools.metricsdoc >docs/metrics.md`` brings it up to date.
"""

from __future__ import annotations

from iosd_host.http.metrics import METRICS

__all__ = ["page"]

INTRODUCTION = """\
# Metrics

What `/metrics` of a resource manager answers, in Prometheus' text (docs/observing.md). Units are in the
names: seconds, bytes. What a target cannot say is absent, not 0. Counters begin at 0 when the target
starts. No label ever names a job, an object or a user: their number has no bound.

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
