# SPDX-License-Identifier: GPL-2.0-or-later
"""Log lines about the errors of clients, at a bounded rate."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

__all__ = ["Limited"]


class Limited:
    """Logs the first `burst` warnings of every `period` seconds, then the number left out."""

    def __init__(
        self,
        log: logging.Logger,
        burst: int = 5,
        period: float = 10.0,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self.log = log
        self.burst = burst
        self.period = period
        self.clock = clock
        self.since = clock()
        self.count = 0

    def warning(self, message: str, *values: object) -> None:
        """As Logger.warning."""
        now = self.clock()
        if now - self.since > self.period:
            if self.count > self.burst:
                self.log.warning("%d more warnings were left out", self.count - self.burst)
            self.since, self.count = now, 0
        self.count += 1
        if self.count <= self.burst:
            self.log.warning(message, *values)
