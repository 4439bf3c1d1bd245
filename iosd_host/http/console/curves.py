# SPDX-License-Identifier: GPL-2.0-or-later
"""Loads of the past as the console's page draws them, read once for all who ask.

Anybody may ask, and the manager's store has one thread, which the changes of administrators need, too.
"""

from __future__ import annotations

import asyncio
import json
import math
import time
from typing import TYPE_CHECKING

from iosd_host.http.console.state import thinned
from iosd_host.manager.state_store import ANSWER_MOST, LEVELS

if TYPE_CHECKING:
    from iosd_host.manager.manager import Manager

__all__ = ["Curves"]

POINTS = 360  # of a curve
SPANS = (600, 3600, 21600, 259200, LEVELS[-1][1])  # seconds; the page's buttons
KEPT_MOST_S = 30.0  # for which an answer is the same; at most half a point


class Curves:
    """Answers, each by target and span.  One event loop."""

    def __init__(self, manager: Manager) -> None:
        self.manager = manager
        self.known: dict[tuple[str, int], tuple[float, bytes]] = {}  # with the time of making
        self.making = asyncio.Lock()

    async def text(self, name: str, seconds: int) -> bytes:
        """The JSON of a target's loads of so many seconds, rounded up to one of SPANS."""
        span = next((each for each in SPANS if each >= seconds), SPANS[-1])
        step = max(LEVELS[0][0], span // POINTS)
        async with self.making:
            made, text = self.known.get((name, span), (-math.inf, b""))
            if time.monotonic() - made > min(step / 2, KEPT_MOST_S):
                text = await self._make(name, span, step)
                self.known[name, span] = time.monotonic(), text
        return text

    async def _make(self, name: str, span: int, step: int) -> bytes:
        loads = await self.manager.history(name, time.time() - span, step, ANSWER_MOST)
        loads = await asyncio.to_thread(thinned, loads, step)
        return json.dumps({"step": step, "span": span, "loads": loads}).encode()
