# SPDX-License-Identifier: GPL-2.0-or-later
"""One function per OSD-2 command: its own field names in, a Request out.  Pure.

Lives here: life cycle, data, flush, attributes, jobs.  From _collection_requests.py: collections,
lists, QUERY; from _special_requests.py: copy, check, atomics, keys, PERFORM.

Every function takes `attributes` (lists to get and set, a page, or one attribute to set) and
`options`.
Raises: ValueError, at encode(), for numbers that do not fit their field; nothing is checked that
the target is there to check.
Source: osd2-wire section 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Unpack

from pyosd._collection_requests import (
    create_collection,
    create_user_tracking_collection,
    get_member_attributes,
    list_collection,
    list_objects,
    query,
    query_into,
    remove_collection,
    remove_member_objects,
    set_member_attributes,
)
from pyosd._request_base import IMMED_TR, Extra, nbytes, on
from pyosd._special_requests import (
    compare_and_swap,
    conditional_set_attributes,
    copy_user_object,
    fetch_and_add,
    generic_compare_and_swap,
    object_structure_check,
    perform_scsi_command,
    perform_task_management,
    set_key,
    set_master_key_change,
    set_master_key_seed,
)
from pyosd.cdb import Descriptor, Request, ServiceAction
from pyosd.credentials import JOB_RIGHTS
from pyosd.exec_params import ExecParams
from pyosd.osd._query import Criterion
from pyosd.types import Buffer, MutableBuffer, ObjectRef

__all__ = [
    "FLUSH_EVERYTHING",
    "Criterion",
    "Extra",
    "append",
    "clear",
    "compare_and_swap",
    "conditional_set_attributes",
    "copy_user_object",
    "create",
    "create_and_write",
    "create_collection",
    "create_partition",
    "create_user_tracking_collection",
    "execute",
    "fetch_and_add",
    "flush",
    "flush_collection",
    "flush_osd",
    "flush_partition",
    "format_osd",
    "generic_compare_and_swap",
    "get_attributes",
    "get_member_attributes",
    "list_collection",
    "list_objects",
    "object_structure_check",
    "perform_scsi_command",
    "perform_task_management",
    "punch",
    "query",
    "query_into",
    "read",
    "read_map",
    "read_pieces",
    "remove",
    "remove_collection",
    "remove_member_objects",
    "remove_partition",
    "set_attributes",
    "set_key",
    "set_master_key_change",
    "set_master_key_seed",
    "set_member_attributes",
    "write",
    "write_pieces",
]

_SCATTER_GATHER = 0x0001
FLUSH_EVERYTHING = 2
"""Flush scope: data (or everything inside) and attributes."""


# ---- life cycle ---------------------------------------------------------------------------------


def format_osd(capacity_bytes: int = 0, **extra: Unpack[Extra]) -> Request:
    """FORMAT OSD (8881h): destroy everything; capacity 0: all there is."""
    return Request(ServiceAction.FORMAT_OSD, length=capacity_bytes, **extra)


def create_partition(requested_partition_id: int = 0, **extra: Unpack[Extra]) -> Request:
    """CREATE PARTITION (888Bh); id 0: the target picks."""
    return Request(
        ServiceAction.CREATE_PARTITION,
        requested_partition_id,
        **extra,
    )


def remove_partition(partition_id: int, contents: bool = False, **extra: Unpack[Extra]) -> Request:
    """REMOVE PARTITION (888Ch); contents: with everything inside."""
    return Request(
        ServiceAction.REMOVE_PARTITION,
        partition_id,
        bits11=1 if contents else 0,
        **extra,
    )


def create(
    partition_id: int, requested_object_id: int = 0, count: int = 1, **extra: Unpack[Extra]
) -> Request:
    """CREATE (8882h): count user objects (bytes 32-33) with consecutive ids; id 0: the target
    picks.
    """
    return Request(
        ServiceAction.CREATE,
        partition_id,
        requested_object_id,
        length=count << 48,
        **extra,
    )


def create_and_write(
    partition_id: int, requested_object_id: int, start: int, data: Buffer, **extra: Unpack[Extra]
) -> Request:
    """CREATE AND WRITE (8892h)."""
    return Request(
        ServiceAction.CREATE_AND_WRITE,
        partition_id,
        requested_object_id,
        nbytes(data),
        start,
        data=data,
        **extra,
    )


def remove(obj: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """REMOVE (888Ah) a user object; attributes are processed before the removal."""
    return on(ServiceAction.REMOVE, obj, **extra)


# ---- data -------------------------------------------------------------------------------------


def read(
    obj: ObjectRef,
    start: int,
    length: int,
    *,
    buffer: MutableBuffer | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """READ (8885h); buffer: where Data-In goes."""
    return Request(
        ServiceAction.READ,
        obj.partition_id,
        obj.object_id,
        length,
        start,
        data_in_length=length,
        data_in_buffer=buffer,
        **extra,
    )


def write(obj: ObjectRef, start: int, data: Buffer, **extra: Unpack[Extra]) -> Request:
    """WRITE (8886h)."""
    return Request(
        ServiceAction.WRITE,
        obj.partition_id,
        obj.object_id,
        nbytes(data),
        start,
        data=data,
        **extra,
    )


def append(obj: ObjectRef, data: Buffer, **extra: Unpack[Extra]) -> Request:
    """APPEND (8887h); the Current Command page's attribute 5 says where it went."""
    return Request(
        ServiceAction.APPEND,
        obj.partition_id,
        obj.object_id,
        nbytes(data),
        data=data,
        **extra,
    )


def clear(obj: ObjectRef, start: int, length: int, **extra: Unpack[Extra]) -> Request:
    """CLEAR (8889h): the range becomes zeros; past the end it extends the object."""
    return on(ServiceAction.CLEAR, obj, length, start, **extra)


def punch(obj: ObjectRef, start: int, length: int, **extra: Unpack[Extra]) -> Request:
    """PUNCH (8884h): take the range out and move the tail down."""
    return on(ServiceAction.PUNCH, obj, length, start, **extra)


def _scatter_gather(pieces: Iterable[tuple[int, int]]) -> Descriptor:
    return Descriptor(_SCATTER_GATHER, b"".join(struct.pack(">QQ", *piece) for piece in pieces))


def read_pieces(
    obj: ObjectRef, pieces: Iterable[tuple[int, int]], **extra: Unpack[Extra]
) -> Request:
    """READ of (offset, length) pieces through a scatter/gather descriptor; answers back to back."""
    pieces = tuple(pieces)
    total = sum(length for _, length in pieces)
    return Request(
        ServiceAction.READ,
        obj.partition_id,
        obj.object_id,
        total,
        descriptors=(_scatter_gather(pieces),),
        data_in_length=total,
        **extra,
    )


def write_pieces(
    obj: ObjectRef, pieces: Iterable[tuple[int, int]], data: Buffer, **extra: Unpack[Extra]
) -> Request:
    """WRITE of data, taken back to back, to (offset, length) pieces."""
    return Request(
        ServiceAction.WRITE,
        obj.partition_id,
        obj.object_id,
        nbytes(data),
        descriptors=(_scatter_gather(pieces),),
        data=data,
        **extra,
    )


def read_map(
    obj: ObjectRef, start: int, allocation_length: int, map_type: int = 0, **extra: Unpack[Extra]
) -> Request:
    """READ MAP (88B1h); map_type 0: all descriptors."""
    return Request(
        ServiceAction.READ_MAP,
        obj.partition_id,
        obj.object_id,
        allocation_length,
        start,
        word48=map_type << 16,
        data_in_length=allocation_length,
        **extra,
    )


# ---- flush ------------------------------------------------------------------------------------


def flush(
    obj: ObjectRef,
    start: int = 0,
    length: int = 0,
    scope: int = FLUSH_EVERYTHING,
    **extra: Unpack[Extra],
) -> Request:
    """FLUSH (8888h) a user object; length 0: to the end."""
    return Request(
        ServiceAction.FLUSH,
        obj.partition_id,
        obj.object_id,
        length,
        start,
        bits11=scope,
        **extra,
    )


def flush_collection(
    collection: ObjectRef, scope: int = FLUSH_EVERYTHING, **extra: Unpack[Extra]
) -> Request:
    """FLUSH COLLECTION (889Ah)."""
    return Request(
        ServiceAction.FLUSH_COLLECTION,
        collection.partition_id,
        collection.object_id,
        bits11=scope,
        **extra,
    )


def flush_partition(
    partition_id: int, scope: int = FLUSH_EVERYTHING, **extra: Unpack[Extra]
) -> Request:
    """FLUSH PARTITION (889Bh)."""
    return Request(
        ServiceAction.FLUSH_PARTITION,
        partition_id,
        bits11=scope,
        **extra,
    )


def flush_osd(scope: int = FLUSH_EVERYTHING, **extra: Unpack[Extra]) -> Request:
    """FLUSH OSD (889Ch)."""
    return Request(ServiceAction.FLUSH_OSD, bits11=scope, **extra)


# ---- attributes -------------------------------------------------------------------------------


def get_attributes(obj: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """GET ATTRIBUTES (888Eh): gets, then sets."""
    return on(ServiceAction.GET_ATTRIBUTES, obj, **extra)


def set_attributes(obj: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """SET ATTRIBUTES (888Fh): sets, then gets."""
    return on(ServiceAction.SET_ATTRIBUTES, obj, **extra)


# ---- jobs -------------------------------------------------------------------------------------


def execute(
    zone: ObjectRef,
    code: Buffer,
    params: ExecParams | None = None,
    *,
    synchronous: bool = False,
    result_allocation_length: int = 0,
    **extra: Unpack[Extra],
) -> Request:
    """EXEC (8F81h, design D11): run code in a zone.

    synchronous: the status waits for the job's end and up to result_allocation_length bytes of its
    result come first in Data-In.
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
