# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests beyond everyday use: copy, check, atomics, keys, PERFORM.  Part of requests.py, which
exports them.

Source: osd2-wire 3.13, 3.15-3.19; the atomics' service actions are this target's own, their layout
is that of OSC's.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Unpack

from pyosd._request_base import Extra, on
from pyosd.attributes import allocation_for
from pyosd.cdb import (
    DEFAULT_OPTIONS,
    AttributeLists,
    Descriptor,
    Duplication,
    Options,
    Request,
    ServiceAction,
)
from pyosd.types import ROOT, AttributeId, AttributeValue, Buffer, ObjectRef

_COPY_SOURCE = 0x0101
_EMBEDDED_CDB_MAX = 16
_OPERAND = struct.Struct(">Q")
_TASK_MANAGEMENT_REPLY = 8
_DH_SEED, _DH_CHANGE = 0, 1
_DH_LENGTH = 4


# ---- copy and check -----------------------------------------------------------------------------


def copy_user_object(
    source: ObjectRef,
    partition_id: int,
    requested_object_id: int = 0,
    *,
    with_attributes: bool = True,
    method: int = Duplication.DEFAULT,
    **extra: Unpack[Extra],
) -> Request:
    """COPY USER OBJECTS (8893h) of one object into a partition; id 0: the target picks."""
    content = struct.pack(
        ">QQBB2x",
        source.partition_id,  # 0
        source.object_id,  # 8
        1 if with_attributes else 0,  # 16 CPY_ATTR
        0,  # 17 FREEZE, TIME OF DUPLICATION
    )
    return Request(
        ServiceAction.COPY_USER_OBJECTS,
        partition_id,
        requested_object_id,
        byte14=method,
        descriptors=(Descriptor(_COPY_SOURCE, content),),
        **extra,
    )


def object_structure_check(partition_id: int = 0, **extra: Unpack[Extra]) -> Request:
    """OBJECT STRUCTURE CHECK (8880h) of a partition; 0: of the whole OSD."""
    return Request(ServiceAction.OBJECT_STRUCTURE_CHECK, partition_id, **extra)


# ---- atomics ------------------------------------------------------------------------------------


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


# ---- keys ---------------------------------------------------------------------------------------


def set_key(
    key_to_set: int,
    partition_id: int,
    key_version: int,
    key_identifier: bytes,
    seed: bytes,
    **extra: Unpack[Extra],
) -> Request:
    """SET KEY (8898h): identifier 7 bytes, seed 20 bytes."""
    if len(key_identifier) != 7 or len(seed) != 20:
        raise ValueError("SET KEY takes a 7-byte key identifier and a 20-byte seed")
    length, address, tail = struct.unpack(">QQI", seed)
    return Request(
        ServiceAction.SET_KEY,
        partition_id,
        int.from_bytes(bytes([key_version]) + key_identifier, "big"),
        length,
        address,
        word48=tail,
        bits11=key_to_set,
        **extra,
    )


def set_master_key_seed(
    group: int, key_identifier: bytes, dh_data: bytes, **extra: Unpack[Extra]
) -> Request:
    """SET MASTER KEY (8899h), seed exchange: g^x mod p out, g^y mod p in, each as long as p."""
    room = _DH_LENGTH + len(dh_data)
    return _set_master_key(_DH_SEED, group, key_identifier, dh_data, room, **extra)


def set_master_key_change(
    group: int, key_identifier: bytes, dh_data: bytes, target_dh_data: bytes, **extra: Unpack[Extra]
) -> Request:
    """SET MASTER KEY (8899h), change master key: both values of the exchange once more."""
    values = (dh_data, target_dh_data)
    data = b"".join(len(each).to_bytes(_DH_LENGTH, "big") + each for each in values)
    return _set_master_key(_DH_CHANGE, group, key_identifier, data, 0, **extra)


def _set_master_key(
    step: int, group: int, key_identifier: bytes, data: bytes, room: int, **extra: Unpack[Extra]
) -> Request:
    if len(key_identifier) != 7 or not 0 <= group <= 0xFF:
        raise ValueError("SET MASTER KEY takes a group of one byte and a 7-byte key identifier")
    return Request(
        ServiceAction.SET_MASTER_KEY,
        object_id=int.from_bytes(bytes([group]) + key_identifier, "big"),
        length=len(data) << 32 | room,  # 32 PARAMETER LIST LENGTH, 36 ALLOCATION LENGTH
        bits11=step,
        data=data,
        data_in_length=room,
        **extra,
    )


# ---- PERFORM ------------------------------------------------------------------------------------


def perform_scsi_command(
    cdb: bytes, data: Buffer = b"", data_in_length: int = 0, **extra: Unpack[Extra]
) -> Request:
    """PERFORM SCSI COMMAND (8F7Ch) with an embedded CDB of at most 16 bytes."""
    if not 0 < len(cdb) <= _EMBEDDED_CDB_MAX:
        raise ValueError(f"a CDB of 1-16 bytes is wanted, not of {len(cdb)}")
    length, address = struct.unpack(">QQ", cdb.ljust(_EMBEDDED_CDB_MAX, b"\0"))
    return Request(
        ServiceAction.PERFORM_SCSI_COMMAND,
        length=length,
        address=address,
        data=data,
        data_in_length=data_in_length,
        **extra,
    )


def perform_task_management(
    function: int, task_tag: int = 0, obj: ObjectRef = ROOT, **extra: Unpack[Extra]
) -> Request:
    """PERFORM TASK MANAGEMENT FUNCTION (8F7Dh); functions: types.TaskManagement."""
    if not 0 <= function < 0x100:
        raise ValueError(f"a function is one byte, not {function:#x}")
    return Request(
        ServiceAction.PERFORM_TASK_MANAGEMENT_FUNCTION,
        obj.partition_id,
        obj.object_id,
        _TASK_MANAGEMENT_REPLY << 48 | function,  # 32-33 ALLOCATION LENGTH, 39 FUNCTION
        task_tag,
        data_in_length=_TASK_MANAGEMENT_REPLY,
        **extra,
    )
