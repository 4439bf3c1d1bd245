# SPDX-License-Identifier: GPL-2.0-or-later
"""Rate limits: a bucket of requests for each caller, which refills with time."""

from __future__ import annotations

import threading
import time
from collections import OrderedDict
from collections.abc import Callable

KNOWN_MOST = 10_000


class Buckets:
    """A bucket for each name.  Any thread.

    Args: rate: requests a second, in the long run.  burst: at once.
    """

    def __init__(
        self, rate: float, burst: float, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._rate = rate
        self._burst = burst
        self._clock = clock
        self._lock = threading.Lock()
        self._levels: OrderedDict[str, tuple[float, float]] = OrderedDict()  # under _lock

    def take(self, name: str, count: float = 1.0) -> bool:
        """Take from a bucket; False: there is not so much in it, and nothing was taken."""
        with self._lock:
            level = self._level(name)
            enough = level >= min(count, self._burst)
            self._put(name, level - count if enough else level)
            return enough

    def empty(self, name: str) -> bool:
        """Whether nothing could be taken now."""
        with self._lock:
            return self._level(name) < 1.0

    def _level(self, name: str) -> float:
        level, at = self._levels.get(name, (self._burst, self._clock()))
        return min(self._burst, level + (self._clock() - at) * self._rate)

    def _put(self, name: str, level: float) -> None:
        self._levels[name] = (level, self._clock())
        self._levels.move_to_end(name)
        if len(self._levels) > KNOWN_MOST:
            self._levels.popitem(last=False)  # who asked least lately, so its bucket is full
