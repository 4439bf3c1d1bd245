# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests on names: READ NAMES (8F88h) and CHANGE NAMES (8F89h), docs/names.md."""

from __future__ import annotations

from typing import Unpack

from pyosd.requests.base import Extra
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Request, ServiceAction
from pyosd.wire.names import ENTRY_BYTES, NameParams


def names(
    directory: ObjectRef, params: NameParams, room: int = ENTRY_BYTES, **extra: Unpack[Extra]
) -> Request:
    """READ NAMES or CHANGE NAMES, as the verb needs; directory: a partition, or a directory in it."""
    data = params.encode()
    reads = params.verb.only_reads
    return Request(
        ServiceAction.READ_NAMES if reads else ServiceAction.CHANGE_NAMES,
        directory.partition_id,
        directory.object_id,
        len(data),
        room,
        data=data,
        data_in_length=room,
        **extra,
    )
