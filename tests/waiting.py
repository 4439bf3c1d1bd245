# SPDX-License-Identifier: GPL-2.0-or-later
"""Waiting for what must come to be, which is asked for until it is there: no test sleeps for so long as
something usually takes.
"""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TypeVar

T = TypeVar("T")

DEADLINE_S = 60.0
"""Seconds.  Longer than anything takes beside other work, short enough to end a hopeless run."""
GROWTH, LONGEST = 1.1, 4
"""Of the pause between two questions: what takes long is asked for less often, since each question costs
the processor time that others wait for."""


def until(
    condition: Callable[[], T | None],
    what: str | Callable[[], str] = "it never came to that",
    seconds: float = DEADLINE_S,
    pause: float = 0.005,
) -> T:
    """Ask again until the condition says something.

    Args: what: said if it never does; a function is called then.  seconds: at most.  pause: seconds
        between the first two questions; 0 where each is a round trip that costs as much.
    Returns: what it says.
    Raises: AssertionError: time is over.
    """
    deadline, longest = time.monotonic() + seconds, LONGEST * pause
    while not (found := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(pause)
        pause = min(GROWTH * pause, longest)
    return found
