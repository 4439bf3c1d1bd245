# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that read a value and change it in one step.

The service actions are this target's own; their layout is that of OSC's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Unpack

from pyosd.requests.base import Extra, on
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import allocation_for
from pyosd.wire.cdb import DEFAULT_OPTIONS, AttributeLists, Options, Request, ServiceAction

_OPERAND = struct.Struct(">Q")


def _operands(
    action: ServiceAction, obj: ObjectRef, operands: tuple[int, ...], **extra: Unpack[Extra]
) -> Request:
    try:
        data = b"".join(_OPERAND.pack(each) for each in operands)
    except struct.error:
        raise ValueError(f"operands of 64 bits unsigned are wanted, not {operands}") from None
    return Request(
        action,
        obj.partition_id,
        obj.object_id,
        length=len(data),
        data=data,
        data_in_length=_OPERAND.size,
        **extra,
    )


def compare_and_swap(obj: ObjectRef, compare: int, swap: int, **extra: Unpack[Extra]) -> Request:
    """COMPARE AND SWAP (8F84h) of attribute 7h/1h, 64 bits; Data-In: the value before."""
    return _operands(ServiceAction.COMPARE_AND_SWAP, obj, (compare, swap), **extra)


def fetch_and_add(obj: ObjectRef, addend: int, **extra: Unpack[Extra]) -> Request:
    """FETCH AND ADD (8F85h) on attribute 7h/2h, 64 bits; Data-In: the value before."""
    return _operands(ServiceAction.FETCH_AND_ADD, obj, (addend,), **extra)


def _compare(
    action: ServiceAction,
    obj: ObjectRef,
    compare: AttributeValue,
    swap: bytes,
    others: Iterable[AttributeValue],
    get: Iterable[AttributeId],
    allocation: int | None,
    options: Options,
) -> Request:
    swapped = AttributeValue(compare.page, compare.number, swap)
    wanted = tuple(get)
    if allocation is None:  # the value before comes first, and its length is not known
        allocation = allocation_for((compare.id, *wanted)) + (len(compare.value) + 7 & ~7)
    lists = AttributeLists(wanted, (compare, swapped, *others), allocation)
    return on(action, obj, attributes=lists, options=options)


def generic_compare_and_swap(
    obj: ObjectRef,
    compare: AttributeValue,
    swap: bytes,
    others: Iterable[AttributeValue] = (),
    get: Iterable[AttributeId] = (),
    allocation: int | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Request:
    """GENERIC COMPARE AND SWAP (8F86h): set an attribute to swap if it is what compare says.

    compare: an empty value: if it is undefined.  swap: b"" undefines.  others: set in any case.
    The value before comes first in the retrieved list, then what get asks for.
    allocation: bytes for that list; None: an estimate.
    """
    action = ServiceAction.GENERIC_COMPARE_AND_SWAP
    return _compare(action, obj, compare, swap, others, get, allocation, options)


def conditional_set_attributes(
    obj: ObjectRef,
    compare: AttributeValue,
    swap: bytes,
    others: Iterable[AttributeValue] = (),
    get: Iterable[AttributeId] = (),
    allocation: int | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Request:
    """CONDITIONAL SET ATTRIBUTES (8F87h): as generic_compare_and_swap(), but others are set only
    if the attribute was what compare says.
    """
    action = ServiceAction.CONDITIONAL_SET_ATTRIBUTES
    return _compare(action, obj, compare, swap, others, get, allocation, options)
