# SPDX-License-Identifier: GPL-2.0-or-later
"""Rates from a pool's counters: arrivals of jobs, their run time, and its variance.  Pure."""

from __future__ import annotations

import math

from iosd_host.policy.events import PoolLoad

__all__ = ["Rates"]

FAST, SLOW, LONG = 2.0, 30.0, 60.0
"""Seconds that the estimates remember: a rise, a fall, the service time."""
UNEVEN_MOST = 25.0


class _Average:
    """Of a rate, exponentially fading; one that has seen little is trusted for as much as it has seen."""

    def __init__(self, memory: float) -> None:
        self._memory = memory
        self._value = self._weight = 0.0

    @property
    def value(self) -> float:
        return self._value / self._weight if self._weight else 0.0

    def add(self, count: int, seconds: float) -> None:
        weight = -math.expm1(-seconds / self._memory)
        self._value += weight * (count / seconds - self._value)
        self._weight += weight * (1 - self._weight)


class Rates:
    """Estimates of one pool; counters that start anew leave them as they are."""

    def __init__(self) -> None:
        self._last: PoolLoad | None = None
        self._fast, self._slow = _Average(FAST), _Average(SLOW)
        self._worked = self._ended = 0.0
        self._come, self._since = 0, 0.0
        self._square = self._mean = 0.0

    @property
    def arrivals(self) -> float:
        """Jobs a second; quick to rise, slow to fall."""
        return max(self._fast.value, self._slow.value)

    @property
    def now(self) -> float:
        """Jobs a second, of the last few."""
        return self._fast.value

    @property
    def service(self) -> float | None:
        """Seconds a job works; None: none has ended yet."""
        return self._worked / self._ended if self._ended > 1e-6 else None

    @property
    def uneven(self) -> float:
        """Variance of the jobs that come in a second, by their mean: 1 for Poisson's, more for bursts."""
        return min(UNEVEN_MOST, max(1.0, self._square / self._mean)) if self._mean > 1e-6 else 1.0

    def observe(self, pool: PoolLoad, passed: float) -> None:
        """One more reading, so many seconds after the last."""
        last, self._last = self._last, pool
        if last is None or passed <= 0:
            return
        came, ended = pool.arrived - last.arrived, pool.ended - last.ended
        worked = pool.run_seconds - last.run_seconds
        if came < 0 or ended < 0 or worked < 0:
            return  # the target started anew
        self._fast.add(came, passed)
        self._slow.add(came, passed)
        fade = math.exp(-passed / LONG)
        self._worked = self._worked * fade + worked
        self._ended = self._ended * fade + ended
        self._count(came, passed)

    def _count(self, came: int, passed: float) -> None:
        """The spread of the counts of about a second each."""
        self._come += came
        self._since += passed
        if self._since < 0.9:
            return
        expected = self._slow.value * self._since
        fade = math.exp(-self._since / LONG)
        self._square = self._square * fade + (self._come - expected) ** 2
        self._mean = self._mean * fade + expected
        self._come, self._since = 0, 0.0
