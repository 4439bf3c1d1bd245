# SPDX-License-Identifier: GPL-2.0-or-later
"""Finds the values of metrics in a SNAPSHOT (docs/control.md).

Pure.  A value that a target does not report is absent, never 0.  A reported value that is no number
is absent too: a target is not trusted.  Not here: the list of metrics (metrics.py).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

__all__ = [
    "Histogram",
    "Metric",
    "Read",
    "Reading",
    "Sample",
    "alive",
    "at",
    "build",
    "capacity",
    "connected",
    "decided",
    "devices",
    "each",
    "flag",
    "histogram",
    "largest",
    "listed",
    "named",
    "number",
    "one",
    "parts",
    "pooled",
    "rows",
    "summed",
    "table",
    "timed",
    "timed_each",
]

PARTITIONS_MOST = 16  # as many as a target lists: the largest


@dataclass(frozen=True)
class Histogram:
    """Counts of values up to each bound; the last is the count of all values.

    Attributes:
        bounds: in seconds.
        total: sum of all values, in seconds.
    """

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    total: float


@dataclass(frozen=True)
class Sample:
    """A value, with a text for each label of its metric."""

    labels: tuple[str, ...]
    value: float | Histogram


@dataclass(frozen=True)
class Reading:
    """Source of the figures of one moment.

    Attributes:
        snapshot: the target's answer.
        decisions: of the policy since the manager started, by pool and direction.
        up: whether the manager is connected to the target and its snapshot is recent; None: not known.
    """

    snapshot: Mapping[str, Any]
    decisions: Mapping[tuple[str, str], int] = field(default_factory=dict)
    up: bool | None = None


Read = Callable[[Reading], Iterator[Sample]]


@dataclass(frozen=True)
class Metric:
    """A row.

    Attributes:
        kind: gauge, counter or histogram.
        help: for people; one sentence without a stop.
    """

    name: str
    kind: str
    labels: tuple[str, ...]
    help: str
    read: Read


# ---- of what a target says -----------------------------------------------------------------------


def number(value: object) -> float | None:
    """A finite number that is not negative; None: it is none."""
    if isinstance(value, bool) or not isinstance(value, int | float):
        return None
    found = float(value) if abs(value) < 2**63 else math.inf
    return found if math.isfinite(found) and found >= 0 else None


def table(value: object) -> Mapping[str, Any]:
    """An object; anything else is an empty one."""
    return value if isinstance(value, dict) else {}


def rows(value: object) -> Iterator[Mapping[str, Any]]:
    """The objects of an array."""
    return (row for row in value if isinstance(row, dict)) if isinstance(value, list) else iter(())


def at(snapshot: Mapping[str, Any], path: str) -> Any:
    """The value at a path of words with dots; None: nothing."""
    found: object = snapshot
    for word in path.split("."):
        found = table(found).get(word)
    return found


def histogram(value: object, bounds: object) -> Histogram | None:
    """Of {"counts": [a step each, and those beyond], "sum": seconds}; None: it is none."""
    if not isinstance(bounds, list) or not isinstance(table(value).get("counts"), list):
        return None
    limits = [number(bound) for bound in bounds]
    counts = [number(count) for count in table(value)["counts"]]
    total = number(table(value).get("sum"))
    if total is None or None in limits or None in counts or len(counts) != len(limits) + 1:
        return None
    upper = tuple(limit for limit in limits if limit is not None)
    if list(upper) != sorted(set(upper)):
        return None
    return Histogram(upper, tuple(itertools.accumulate(c for c in counts if c is not None)), total)


def named(row: Mapping[str, Any], keys: Sequence[str]) -> tuple[str, ...] | None:
    """Texts for labels; None: one is missing."""
    found = [row.get(key) for key in keys]
    if any(isinstance(word, bool) or not isinstance(word, str | int) for word in found):
        return None
    return tuple(str(word)[:64] for word in found)


# ---- where it stands -----------------------------------------------------------------------------


def one(path: str, factor: float = 1) -> Read:
    """A number."""

    def read(reading: Reading) -> Iterator[Sample]:
        value = number(at(reading.snapshot, path))
        if value is not None:
            yield Sample((), value * factor)

    return read


def parts(path: str, labels: Mapping[str, str]) -> Read:
    """Numbers of an object, each under its label."""

    def read(reading: Reading) -> Iterator[Sample]:
        found = table(at(reading.snapshot, path))
        for key, label in labels.items():
            value = number(found.get(key))
            if value is not None:
                yield Sample((label,), value)

    return read


def flag(path: str) -> Read:
    """Whether it is so."""

    def read(reading: Reading) -> Iterator[Sample]:
        value = at(reading.snapshot, path)
        if isinstance(value, bool):
            yield Sample((), float(value))

    return read


def each(path: str) -> Read:
    """A number a name: {"deadlock": 3}."""

    def read(reading: Reading) -> Iterator[Sample]:
        for name, found in table(at(reading.snapshot, path)).items():
            value = number(found)
            if value is not None:
                yield Sample((str(name)[:64],), value)

    return read


def listed(path: str, keys: Sequence[str], value_key: str = "count") -> Read:
    """An array of rows with words and a number: [{"command": "READ", "status": "good", "count": 5}]."""

    def read(reading: Reading) -> Iterator[Sample]:
        for row in rows(at(reading.snapshot, path)):
            words, value = named(row, keys), number(row.get(value_key))
            if words is not None and value is not None:
                yield Sample(words, value)

    return read


def pooled(within: Read) -> Read:
    """The same of each pool, its name in front."""

    def read(reading: Reading) -> Iterator[Sample]:
        bounds = reading.snapshot.get("bounds")
        for pool in rows(reading.snapshot.get("pools")):
            name = named(pool, ("name",))
            if name is not None:
                for sample in within(Reading({**pool, "bounds": bounds})):
                    yield Sample(name + sample.labels, sample.value)

    return read


def summed(within: Read) -> Read:
    """The same of all pools together."""

    def read(reading: Reading) -> Iterator[Sample]:
        sums: dict[tuple[str, ...], float] = {}
        for pool in rows(reading.snapshot.get("pools")):
            for sample in within(Reading(pool)):
                if isinstance(sample.value, float):
                    sums[sample.labels] = sums.get(sample.labels, 0.0) + sample.value
        for labels, value in sums.items():
            yield Sample(labels, value)

    return read


def timed(path: str) -> Read:
    """A histogram."""

    def read(reading: Reading) -> Iterator[Sample]:
        found = histogram(at(reading.snapshot, path), reading.snapshot.get("bounds"))
        if found is not None:
            yield Sample((), found)

    return read


def timed_each(path: str) -> Read:
    """A histogram a name."""

    def read(reading: Reading) -> Iterator[Sample]:
        for name, value in table(at(reading.snapshot, path)).items():
            found = histogram(value, reading.snapshot.get("bounds"))
            if found is not None:
                yield Sample((str(name)[:64],), found)

    return read


def build(reading: Reading) -> Iterator[Sample]:
    """The release that the target runs."""
    version = named(table(at(reading.snapshot, "target")), ("version",))
    if version is not None:
        yield Sample(version, 1.0)


def alive(reading: Reading) -> Iterator[Sample]:
    """Jobs of a pool that have not ended."""
    for state, key in (("QUEUED", "queued"), ("RUNNING", "busy")):
        for sample in one(key)(reading):
            yield Sample((state,), sample.value)


def decided(reading: Reading) -> Iterator[Sample]:
    """Decisions of the policy."""
    for words, count in reading.decisions.items():
        yield Sample(words, float(count))


def connected(reading: Reading) -> Iterator[Sample]:
    """Whether the figures are of a target that answers."""
    if reading.up is not None:
        yield Sample((), float(reading.up))


def devices(reading: Reading) -> Iterator[Sample]:
    """Space on each device."""
    for row in rows(reading.snapshot.get("heads")):
        tier = named(row, ("tier",))
        total, free, data = (number(row.get(key)) for key in ("total", "free", "data"))
        if tier is None:
            continue
        if total is not None and free is not None:
            yield Sample((*tier, "total"), total)
            yield Sample((*tier, "free"), free)
            yield Sample((*tier, "used"), max(0.0, total - free))
        if data is not None:
            yield Sample((*tier, "data"), data)


def capacity(reading: Reading) -> Iterator[Sample]:
    """Capacity and use of the store."""
    store = table(reading.snapshot.get("store"))
    for kind, key in (
        ("total", "capacity_bytes"),
        ("used", "charged_bytes"),
        ("free", "free_bytes"),
        ("data", "used_bytes"),
    ):
        value = number(store.get(key))
        if value is not None:
            yield Sample((kind,), value)


def largest(kinds: Sequence[tuple[str, str]]) -> Read:
    """The partitions with most data, each of these keys by kind; "": without a label for the kind."""

    def read(reading: Reading) -> Iterator[Sample]:
        found = itertools.islice(rows(at(reading.snapshot, "store.largest")), PARTITIONS_MOST)
        for row in found:
            name = named(row, ("partition",))
            for kind, key in kinds if name is not None else ():
                value = number(row.get(key))
                if name is not None and value is not None:
                    yield Sample((*name, kind) if kind else name, value)

    return read
