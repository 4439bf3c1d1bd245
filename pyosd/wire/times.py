# SPDX-License-Identifier: GPL-2.0-or-later
"""Points in time, which a target names in ms since 1970."""

from __future__ import annotations

from datetime import UTC, datetime, timedelta

__all__ = ["time_of"]

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MSEC_MOST = (1 << 47) - 1  # the year 6429: a date in any time zone


def time_of(milliseconds: int) -> datetime:
    """The date, exact to the millisecond.  A time that no date can have is one in the year 6429."""
    return _EPOCH + timedelta(milliseconds=min(milliseconds, _MSEC_MOST))
