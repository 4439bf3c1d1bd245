# SPDX-License-Identifier: GPL-2.0-or-later
"""Stock function `worm`, for a hook that checks changes: what was written stays.

It forbids every change of data, and the removal, of an object that has data.  Parameters: append=1
permits APPEND; days=N ends the protection N days after the object was made.
"""

from __future__ import annotations

import osd

DAY = 86_400


def options_of(change: osd.ObjectChange) -> dict[str, str]:
    """Its parameters.  Raises: ValueError: there are others, or days has another value."""
    if unknown := change.options.keys() - {"days", "append"}:
        raise ValueError(f"unknown parameters: {', '.join(sorted(unknown))}")
    if not change.options.get("days", "0").isdecimal():
        raise ValueError(f"the parameter days is a number, not '{change.options['days']}'")
    return change.options


def main(args: bytes) -> str | None:
    """The refusal, or None."""
    change = osd.change(args)
    options = options_of(change)
    days = options.get("days")
    if not change.old_length or not change.events & {"write", "remove"}:
        return None
    if change.command == "APPEND" and options.get("append") == "1":
        return None
    if days is None:
        return "this object was written once and cannot change"
    end = change.created + int(days) * DAY
    left = end - change.now
    return f"this object cannot change for {-int(-left // DAY)} more days" if left > 0 else None
