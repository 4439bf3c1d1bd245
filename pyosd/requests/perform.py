# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that carry another command: PERFORM SCSI COMMAND, PERFORM TASK MANAGEMENT FUNCTION."""

from __future__ import annotations

import struct
from typing import Unpack

from pyosd.requests.base import Extra
from pyosd.types import ROOT, Buffer, ObjectRef
from pyosd.wire.cdb import Request, ServiceAction

_EMBEDDED_CDB_MAX = 16
_TASK_MANAGEMENT_REPLY = 8


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
