# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that read a value and change it in one step.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyosd import requests
from pyosd.commands.dialogue import Dialogue, call
from pyosd.errors import ProtocolError
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.cdb import Request

_OPERAND_BYTES = 8


def _before(request: Request) -> Dialogue[int]:
    data = (yield from call(request)).data
    if len(data) < _OPERAND_BYTES:
        raise ProtocolError("the target did not return the value before")
    return int.from_bytes(data[:_OPERAND_BYTES], "big")


def compare_and_swap(obj: ObjectRef, compare: int, swap: int) -> Dialogue[int]:
    """Set the object's own word (attribute 7h/1h) to swap if it is compare (8F84h).

    Returns: what it was; 0 where it was undefined.
    """
    return (yield from _before(requests.compare_and_swap(obj, compare, swap)))


def fetch_and_add(obj: ObjectRef, addend: int) -> Dialogue[int]:
    """Add to the object's own counter (attribute 7h/2h), modulo 2**64 (8F85h).

    Returns: what it was; 0 where it was undefined.
    """
    return (yield from _before(requests.fetch_and_add(obj, addend)))


def swap_attribute(
    obj: ObjectRef,
    attribute: AttributeId,
    compare: bytes,
    swap: bytes,
    others: Iterable[AttributeValue] = (),
) -> Dialogue[bytes]:
    """Set an attribute to swap, and others with it, if it is compare; else nothing changes
    (CONDITIONAL SET ATTRIBUTES, 8F87h).  b"" stands for undefined.

    Returns: the value before: compare, when it was set.
    """
    expected, extra = AttributeValue(attribute.page, attribute.number, compare), tuple(others)
    room: int | None = None
    while True:
        request = requests.conditional_set_attributes(obj, expected, swap, extra, allocation=room)
        found = (yield from call(request)).retrieved
        if found.attributes and found.attributes[0].id == attribute:
            return found.attributes[0].value
        # A value longer than there is room for is not the one expected: nothing was changed.
        if found.complete or (room and found.needed <= room):
            raise ProtocolError("the target did not return the value before")
        room = found.needed + 7 & ~7
