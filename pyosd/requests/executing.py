# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests that run code in a zone: EXEC (8F81h) and those of functions (docs/functions.md)."""

from __future__ import annotations

from typing import Unpack

from pyosd.requests.base import IMMED_TR, Extra, nbytes
from pyosd.types import Buffer, ObjectRef
from pyosd.wire.capability import JOB_RIGHTS, Permission
from pyosd.wire.cdb import Request, ServiceAction
from pyosd.wire.exec_params import ExecParams


def execute(
    zone: ObjectRef,
    code: Buffer,
    params: ExecParams | None = None,
    *,
    synchronous: bool = False,
    result_allocation_length: int = 0,
    **extra: Unpack[Extra],
) -> Request:
    """EXEC (8F81h): run code in a zone. synchronous: the status waits for the job's end, and
    Data-In begins with up to result_allocation_length bytes of its result.
    """
    return _running(
        ServiceAction.EXEC, zone, code, params, synchronous, result_allocation_length, **extra
    )


def execute_function(
    zone: ObjectRef,
    args: Buffer,
    params: ExecParams,
    *,
    synchronous: bool = True,
    result_allocation_length: int = 0,
    **extra: Unpack[Extra],
) -> Request:
    """EXECUTE FUNCTION (8F82h): call params.function in a zone; otherwise as execute()."""
    action = ServiceAction.EXECUTE_FUNCTION
    return _running(action, zone, args, params, synchronous, result_allocation_length, **extra)


def _running(
    action: ServiceAction,
    zone: ObjectRef,
    data: Buffer,
    params: ExecParams | None,
    synchronous: bool,
    room: int,
    **extra: Unpack[Extra],
) -> Request:
    descriptor = params.descriptor() if params else None
    permissions = params.rights if params else JOB_RIGHTS
    if params and params.surrogate:
        permissions |= Permission.CREATE  # an ordinary object is made
    return Request(
        action,
        zone.partition_id,
        zone.object_id,
        nbytes(data),
        room,
        bits11=0 if synchronous else IMMED_TR,
        descriptors=(descriptor,) if descriptor else (),
        data=data,
        data_in_length=room,
        permissions=permissions,
        **extra,
    )


DEACTIVATE, REPLACE = 0x01, 0x02


def activate_function(
    function: ObjectRef,
    *,
    deactivate: bool = False,
    replace: bool = False,
    **extra: Unpack[Extra],
) -> Request:
    """ACTIVATE FUNCTION (8F83h): what the object holds now may be called; deactivate: no more."""
    return Request(
        ServiceAction.ACTIVATE_FUNCTION,
        function.partition_id,
        function.object_id,
        bits11=(DEACTIVATE if deactivate else 0) | (REPLACE if replace else 0),
        **extra,
    )
