# SPDX-License-Identifier: GPL-2.0-or-later
"""Times at which jobs begin, as people write them.  Pure, but for the clock."""

from __future__ import annotations

import re
import time
from datetime import datetime, timedelta

from pyosd.wire.exec_params import parse_duration

Begin = datetime | float | str
"""A datetime (local time if it has no zone), seconds since 1970, or text: "now+2h", "16:30", ISO 8601."""

_OF_DAY = re.compile(r"([0-9]{1,2}):([0-9]{2})(?::([0-9]{2}))?")


def parse_begin(begin: Begin, now: float | None = None) -> int:
    """Milliseconds since 1970.

    Args: now: seconds since 1970; None: the clock's.
    Raises: ValueError: no such time.
    """
    now = time.time() if now is None else now
    if isinstance(begin, str):
        seconds = _read(begin.strip(), now)
    elif isinstance(begin, datetime):
        seconds = begin.timestamp()
    else:
        seconds = float(begin)
    if not 0 < seconds < 1 << 38:
        raise ValueError(f"{begin!r} is not a time at which a job can begin")
    return round(seconds * 1000)


def _read(text: str, now: float) -> float:
    if text == "now":
        return now
    if text.startswith("now+"):
        return now + parse_duration(text.removeprefix("now+"))
    try:
        if of_day := _OF_DAY.fullmatch(text):
            return _next(*(int(each or 0) for each in of_day.groups()), now=now)
        return datetime.fromisoformat(text).timestamp()
    except (ValueError, OverflowError):
        raise ValueError(
            f"'{text}' is not a time to begin: now+2h, 16:30 or 2026-11-24T08:00"
        ) from None


def _next(hour: int, minute: int, second: int, *, now: float) -> float:
    """The next time that local clocks show this."""
    here = datetime.fromtimestamp(now)
    then = here.replace(hour=hour, minute=minute, second=second, microsecond=0)
    if then <= here:
        then += timedelta(days=1)
    return then.timestamp()
