# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads over time, for simulations of the resource manager (simulate.py).  Pure.

A trace gives the number of arrivals per second at a time.
"""

from __future__ import annotations

import bisect
import math
import random
from collections.abc import Callable, Sequence
from dataclasses import dataclass

__all__ = [
    "NfsSample",
    "Trace",
    "burst",
    "diurnal",
    "nfs",
    "saw_tooth",
    "square",
    "steady",
    "table",
]

MASTER = 0.0001
"""Seconds a command takes the master thread (assumed)."""

Trace = Callable[[float], float]


def steady(rate: float) -> Trace:
    """Always the same; arrivals are Poisson's."""
    return lambda at: rate


def square(low: float, high: float, period: float, share: float = 0.5) -> Trace:
    """`high` for the first `share` of each period, then `low`."""
    return lambda at: high if at % period < share * period else low


def saw_tooth(low: float, high: float, period: float) -> Trace:
    """Rises evenly through each period, then falls at once."""
    return lambda at: low + (high - low) * (at % period) / period


def burst(base: float, jobs: float, at: float, length: float = 0.1) -> Trace:
    """`jobs` within `length` seconds, once, beside what always comes."""
    return lambda now: base + (jobs / length if at <= now < at + length else 0.0)


def diurnal(mean: float, swing: float, period: float) -> Trace:
    """A day: a sine wave of mean x (1 +- swing)."""
    return lambda at: mean * (1 + swing * math.sin(2 * math.pi * at / period))


def table(rows: Sequence[tuple[float, float]]) -> Trace:
    """Measured values: (time, arrivals per second from then on), by time."""
    times = [at for at, _ in rows]
    return lambda now: rows[i][1] if (i := bisect.bisect_right(times, now) - 1) >= 0 else 0.0


@dataclass(frozen=True)
class NfsSample:
    """1000 commands of the paper's stream.

    Attributes:
        rate: commands a second.
        worker: seconds of a worker each command takes.
        used: share of the processor that the target uses.
    """

    rate: float
    worker: float
    used: float


def nfs(samples: int, seed: int = 1) -> list[NfsSample]:
    """The command stream of the iOSD paper's section VI.E, as far as the paper tells of it.

    Known: two initiators keep the target busy without pause, with commands made from NFS calls; use of
    the one processor is sampled every 1000 commands; it begins at 90 % and settles at 80 %; at first the
    worker has the larger part, since many operations of the beginning are heavy, later the master has.
    Assumed: the share of heavy operations fades exponentially over the first fifth; worker and master
    have 60 and 40 % of the use at first, 45 and 55 % at the end; samples scatter by 2 %; a command takes
    the master 100 microseconds.
    """
    rng = random.Random(seed)
    rows = []
    for index in range(samples):
        heavy = math.exp(-5 * index / samples)
        used = min(1.0, 0.80 + 0.10 * heavy + rng.gauss(0, 0.02))
        worker = 0.45 + 0.15 * heavy + rng.gauss(0, 0.02)
        rate = used * (1 - worker) / MASTER
        rows.append(NfsSample(rate, used * worker / rate, used))
    return rows
