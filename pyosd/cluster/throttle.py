# SPDX-License-Identifier: GPL-2.0-or-later
"""Throttle: a limit of bytes per second."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable

from pyosd.forks import after_fork

__all__ = ["Throttle"]


class Throttle:
    """Lets at most so many bytes pass per second, over all threads.  rate: 0: no limit."""

    def __init__(
        self,
        rate: float = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        if rate < 0:
            raise ValueError("a rate is not negative")
        self._rate, self._clock, self._sleep = rate, clock, sleep
        self._lock = threading.Lock()
        self._free = clock()
        after_fork(self, Throttle._renew)

    def _renew(self) -> None:
        """Have a lock that no thread of the parent holds (pyosd.forks)."""
        self._lock = threading.Lock()

    def take(self, count: int) -> None:
        """Wait until the bytes before these have had their time."""
        if not self._rate:
            return
        with self._lock:
            now = self._clock()
            begin = max(self._free, now)
            self._free = begin + count / self._rate
        if begin > now:
            self._sleep(begin - now)
