# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs' objects that stand apart from a partition's data, which no list of its objects has."""

from __future__ import annotations

from typing import Protocol

from pyosd import errors
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import Page

COUNT = AttributeId(Page.CHARGED, 5)
ID = AttributeId(Page.USER_INFORMATION, 2)


class Asks(Protocol):
    """Commands, or a Target."""

    def get_attributes(
        self, obj: ObjectRef, ids: list[AttributeId], /
    ) -> tuple[AttributeValue, ...]: ...


def count_apart(osd: Asks, pid: int) -> int:
    """How many surrogates and results stand apart; the collection of jobs, which stays, is one more."""
    return max(0, osd.get_attributes(ref(pid), [COUNT])[0].uint - 1)


def is_there(osd: Asks, obj: ObjectRef) -> bool:
    """Whether there is such an object."""
    try:
        osd.get_attributes(obj, [ID])
    except errors.NotFound:
        return False
    return True
