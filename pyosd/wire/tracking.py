# SPDX-License-Identifier: GPL-2.0-or-later
"""Command tracking and answers to task management: bytes to values.

Source: osd2-wire 5.16 (Command Tracking page), 3.18.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from pyosd.types import AttributeValue, Sense
from pyosd.wire.sense import decode

__all__ = ["CommandTracking", "TaskManagementReply"]

_PERCENT, _ACTIVE, _ENDED, _SENSE = range(1, 5)
_MEMBERS, _DONE, _NEWER, _MISSING = range(0x10, 0x14)
_ENDED_WELL = 0
_REPLY_BYTES = 8


@dataclass(frozen=True)
class CommandTracking:
    """The Command Tracking page of a collection.

    active: service action of the present command; 0: none.  percent: its progress, or None.
    ended: status of the last command; 0: it succeeded.  sense: its error.
    members: of the collection.
    done, newer_skipped, missing_skipped: objects that the command processed or skipped, or None.
    """

    active: int
    percent: int | None
    ended: int
    sense: Sense | None
    members: int
    done: int | None
    newer_skipped: int | None
    missing_skipped: int | None

    @property
    def ended_well(self) -> bool:
        """Whether nothing is at work, and what was last ended well."""
        return not self.active and self.ended == _ENDED_WELL

    @classmethod
    def of(cls, attributes: Iterable[AttributeValue]) -> CommandTracking:
        """Take the page's attributes apart; absent ones are 0 or None.  Never raises."""
        found = {each.number: each for each in attributes if each.value}

        def number(which: int) -> int | None:
            return found[which].uint if which in found else None

        sense = found.get(_SENSE)
        return cls(
            active=number(_ACTIVE) or 0,
            percent=number(_PERCENT),
            ended=number(_ENDED) or 0,
            sense=decode(sense.value) if sense else None,
            members=number(_MEMBERS) or 0,
            done=number(_DONE),
            newer_skipped=number(_NEWER),
            missing_skipped=number(_MISSING),
        )


@dataclass(frozen=True)
class TaskManagementReply:
    """The answer of PERFORM TASK MANAGEMENT FUNCTION.

    response: 0 complete, 5 succeeded, 8 rejected, 9 incorrect LUN.
    depth: number of unit attentions or deferred errors: 0 unknown, 1 one, 2 more.  The first of them
    is sense_key, asc, ascq.
    """

    response: int
    depth: int = 0
    sense_key: int = 0
    asc: int = 0
    ascq: int = 0

    @classmethod
    def decode(cls, data: bytes | memoryview) -> TaskManagementReply:
        """Raises: ValueError: it is cut."""
        if len(data) < _REPLY_BYTES:
            raise ValueError(f"a task management answer of {len(data)} bytes is cut")
        return cls(data[4], data[5] >> 4 & 3, data[5] & 0x0F, data[6], data[7])
