# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests to copy objects inside the target and to check its structure.

Source: osd2-wire 3.13.
"""

from __future__ import annotations

import struct
from typing import Unpack

from pyosd.requests.base import Extra
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Descriptor, Duplication, Request, ServiceAction

_COPY_SOURCE = 0x0101


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
