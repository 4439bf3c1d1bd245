# SPDX-License-Identifier: GPL-2.0-or-later
"""Figures as Prometheus reads them: a registry over one reading of a target.

Labels are pool, state, reason, command, status, tier, kind, cause, partition (of 16 at most), direction
and version; never a job, an object or a user.  Not here: HTTP (console/), which metrics there are
(metrics.py).
"""

from __future__ import annotations

import math
from collections.abc import Iterator

from prometheus_client import CollectorRegistry
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily, HistogramMetricFamily
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector
from prometheus_client.utils import floatToGoString

from iosd_host.http.metrics import samples
from iosd_host.http.readings import Histogram, Metric, Reading, Sample

__all__ = ["Family", "content_type", "exposition", "families"]

OPENMETRICS = "application/openmetrics-text"

Family = CounterMetricFamily | GaugeMetricFamily | HistogramMetricFamily


def buckets(value: Histogram) -> list[tuple[str, float]]:
    """As text says them: counts up to each bound."""
    bounds = [floatToGoString(each) for each in (*value.bounds, math.inf)]  # type: ignore[no-untyped-call]
    return list(zip(bounds, value.counts, strict=True))


def family(metric: Metric, found: list[Sample]) -> Family:
    """One metric with all its values."""
    words = (metric.name, metric.help)
    if metric.kind == "histogram":
        timed = HistogramMetricFamily(*words, labels=metric.labels)
        for sample in found:
            assert isinstance(sample.value, Histogram)
            timed.add_metric(sample.labels, buckets(sample.value), sample.value.total)
        return timed
    make = CounterMetricFamily if metric.kind == "counter" else GaugeMetricFamily
    plain = make(*words, labels=metric.labels)
    for sample in found:
        assert isinstance(sample.value, float)
        plain.add_metric(sample.labels, sample.value)
    return plain


def families(reading: Reading | None) -> Iterator[Family]:
    """Every metric of a reading; None: nothing has been read yet, and there is none."""
    if reading is not None:
        for metric, found in samples(reading):
            yield family(metric, found)


class OneReading(Collector):
    """A collector, in the form that the library requires."""

    def __init__(self, reading: Reading | None) -> None:
        self.reading = reading

    def collect(self) -> Iterator[Family]:
        """All families."""
        return families(self.reading)


def preferred(accept: str) -> str:
    """One of two formats.  The library would take any version that a client invents, and repeat it."""
    kinds = [each.partition(";")[0].strip() for each in accept.split(",")]
    return OPENMETRICS if OPENMETRICS in kinds else ""


def content_type(accept: str) -> str:
    """That of exposition()."""
    return choose_encoder(preferred(accept))[1]


def exposition(reading: Reading | None, accept: str = "") -> tuple[bytes, str]:
    """The answer to a scrape and its content type, in the format that `Accept` prefers."""
    encode, kind = choose_encoder(preferred(accept))
    registry = CollectorRegistry(auto_describe=False)
    registry.register(OneReading(reading))
    return encode(registry), kind
