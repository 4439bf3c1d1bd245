# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests on the root, partitions and user objects: life cycle, data, flush, attributes.

Source: osd2-wire section 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from typing import Unpack

from pyosd.requests.base import Extra, nbytes, on, precondition
from pyosd.types import Buffer, MutableBuffer, ObjectRef
from pyosd.wire.cdb import Descriptor, Request, ServiceAction

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


def remove(obj: ObjectRef, *, if_version: bytes | None = None, **extra: Unpack[Extra]) -> Request:
    """REMOVE (888Ah) a user object; attributes are processed before the removal.

    if_version: only if the data have it.
    """
    return on(ServiceAction.REMOVE, obj, descriptors=precondition(if_version), **extra)


# ---- data -------------------------------------------------------------------------------------


def read(
    obj: ObjectRef,
    start: int,
    length: int,
    *,
    buffer: MutableBuffer | None = None,
    if_version: bytes | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """READ (8885h); buffer: where Data-In goes.  if_version: only if the data have it."""
    return Request(
        ServiceAction.READ,
        obj.partition_id,
        obj.object_id,
        length,
        start,
        descriptors=precondition(if_version),
        data_in_length=length,
        data_in_buffer=buffer,
        **extra,
    )


def write(
    obj: ObjectRef,
    start: int,
    data: Buffer,
    *,
    if_version: bytes | None = None,
    room: MutableBuffer | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """WRITE (8886h); if_version: only if the data have it.  room: a buffer that begins with the data, and
    is not used before the command has ended."""
    return Request(
        ServiceAction.WRITE,
        obj.partition_id,
        obj.object_id,
        nbytes(data),
        start,
        descriptors=precondition(if_version),
        data=data,
        data_out_room=room,
        **extra,
    )


def append(
    obj: ObjectRef, data: Buffer, *, if_version: bytes | None = None, **extra: Unpack[Extra]
) -> Request:
    """APPEND (8887h); the Current Command page's attribute 5 says where it went."""
    return Request(
        ServiceAction.APPEND,
        obj.partition_id,
        obj.object_id,
        nbytes(data),
        descriptors=precondition(if_version),
        data=data,
        **extra,
    )


def clear(
    obj: ObjectRef,
    start: int,
    length: int,
    *,
    if_version: bytes | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """CLEAR (8889h): the range becomes zeros; past the end it extends the object."""
    return Request(
        ServiceAction.CLEAR,
        obj.partition_id,
        obj.object_id,
        length,
        start,
        descriptors=precondition(if_version),
        **extra,
    )


def punch(
    obj: ObjectRef,
    start: int,
    length: int,
    *,
    if_version: bytes | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """PUNCH (8884h): take the range out and move the tail down."""
    return Request(
        ServiceAction.PUNCH,
        obj.partition_id,
        obj.object_id,
        length,
        start,
        descriptors=precondition(if_version),
        **extra,
    )


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


def set_attributes(
    obj: ObjectRef,
    *,
    if_version: bytes | None = None,
    if_members: bytes | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """SET ATTRIBUTES (888Fh): sets, then gets.

    if_version: only if the data of the user object have it.  if_members: only if the membership of the
    collection has it.
    """
    wanted = precondition(if_version, if_members)
    return on(ServiceAction.SET_ATTRIBUTES, obj, descriptors=wanted, **extra)
