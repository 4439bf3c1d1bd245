# SPDX-License-Identifier: GPL-2.0-or-later
"""The request that runs code in a zone: EXEC (8F81h, design D11)."""

from __future__ import annotations

from typing import Unpack

from pyosd.requests.base import IMMED_TR, Extra, nbytes
from pyosd.types import Buffer, ObjectRef
from pyosd.wire.capability import JOB_RIGHTS
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
    descriptor = params.descriptor() if params else None
    return Request(
        ServiceAction.EXEC,
        zone.partition_id,
        zone.object_id,
        nbytes(code),
        result_allocation_length,
        bits11=0 if synchronous else IMMED_TR,
        descriptors=(descriptor,) if descriptor else (),
        data=code,
        data_in_length=result_allocation_length,
        permissions=params.rights if params else JOB_RIGHTS,
        **extra,
    )
