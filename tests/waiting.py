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


def until(
    condition: Callable[[], T | None],
    what: str | Callable[[], str] = "it never came to that",
    seconds: float = DEADLINE_S,
    pause: float = 0.005,
) -> T:
    """Ask again until the condition says something.

    Args: what: said if it never does; a function is called then.  seconds: at most.  pause: seconds
        between two questions; 0 where each is a round trip that costs as much.
    Returns: what it says.
    Raises: AssertionError: time is over.
    """
    deadline = time.monotonic() + seconds
    while not (found := condition()):
        assert time.monotonic() < deadline, what() if callable(what) else what
        time.sleep(pause)
    return found
