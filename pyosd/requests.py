# SPDX-License-Identifier: GPL-2.0-or-later
"""One function per OSD-2 command: its own field names in, a Request out.  Pure.

Every function takes `attributes` (lists to get and set, a page, or one attribute to set) and
`options`.
Raises: ValueError, at encode(), for numbers that do not fit their field; nothing is checked that
the
target is there to check.
Source: osd2-wire section 3.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import TypedDict, Unpack

from pyosd.cdb import (
    LIST_HEADER_LENGTH,
    Attributes,
    Descriptor,
    Options,
    Request,
    ServiceAction,
)
from pyosd.exec_params import ExecParams
from pyosd.types import Buffer, MutableBuffer, ObjectRef, ref


class Extra(TypedDict, total=False):
    """What every command takes beside its own fields."""

    attributes: Attributes
    options: Options


_IMMED_TR, _LIST_ATTR = 0x80, 0x40
_SCATTER_GATHER, _QUERY_LIST = 0x0001, 0x0002
FLUSH_EVERYTHING = 2
"""Flush scope: data (or everything inside) and attributes."""


def _nbytes(data: Buffer) -> int:
    return memoryview(data).nbytes


def _on(
    action: ServiceAction, obj: ObjectRef, length: int = 0, address: int = 0, **extra: Unpack[Extra]
) -> Request:
    """The commonest shape: an object, perhaps a length and an address, no data of its own."""
    return Request(
        action,
        obj.partition_id,
        obj.object_id,
        length,
        address,
        **extra,
    )


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
        _nbytes(data),
        start,
        data=data,
        **extra,
    )


def remove(obj: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """REMOVE (888Ah) a user object; attributes are processed before the removal."""
    return _on(ServiceAction.REMOVE, obj, **extra)


def object_structure_check(partition_id: int = 0, **extra: Unpack[Extra]) -> Request:
    """OBJECT STRUCTURE CHECK (8880h); 0: the whole OSD."""
    return Request(ServiceAction.OBJECT_STRUCTURE_CHECK, partition_id, **extra)


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
        _nbytes(data),
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
        _nbytes(data),
        data=data,
        **extra,
    )


def clear(obj: ObjectRef, start: int, length: int, **extra: Unpack[Extra]) -> Request:
    """CLEAR (8889h): the range becomes zeros; past the end it extends the object."""
    return _on(ServiceAction.CLEAR, obj, length, start, **extra)


def punch(obj: ObjectRef, start: int, length: int, **extra: Unpack[Extra]) -> Request:
    """PUNCH (8884h): take the range out and move the tail down."""
    return _on(ServiceAction.PUNCH, obj, length, start, **extra)


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
        _nbytes(data),
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
    return _on(ServiceAction.GET_ATTRIBUTES, obj, **extra)


def set_attributes(obj: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """SET ATTRIBUTES (888Fh): sets, then gets."""
    return _on(ServiceAction.SET_ATTRIBUTES, obj, **extra)


def get_member_attributes(collection: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """GET MEMBER ATTRIBUTES (88A2h): the get list applies to every member."""
    return _on(ServiceAction.GET_MEMBER_ATTRIBUTES, collection, **extra)


def set_member_attributes(collection: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """SET MEMBER ATTRIBUTES (88A3h): the set list applies to every member."""
    return _on(ServiceAction.SET_MEMBER_ATTRIBUTES, collection, **extra)


# ---- collections and lists --------------------------------------------------------------------


def create_collection(
    partition_id: int, requested_collection_id: int = 0, **extra: Unpack[Extra]
) -> Request:
    """CREATE COLLECTION (8895h), of type LINKED; id 0: the target picks."""
    return Request(
        ServiceAction.CREATE_COLLECTION,
        partition_id,
        requested_collection_id,
        **extra,
    )


def create_user_tracking_collection(
    partition_id: int,
    requested_collection_id: int = 0,
    source_collection_id: int = 0,
    **extra: Unpack[Extra],
) -> Request:
    """CREATE USER TRACKING COLLECTION (8894h); source 0: starts empty."""
    return Request(
        ServiceAction.CREATE_USER_TRACKING_COLLECTION,
        partition_id,
        requested_collection_id,
        address=source_collection_id,
        **extra,
    )


def remove_collection(
    collection: ObjectRef, with_members: bool = False, **extra: Unpack[Extra]
) -> Request:
    """REMOVE COLLECTION (8896h); with_members (FCR): drop memberships first, keep objects."""
    return Request(
        ServiceAction.REMOVE_COLLECTION,
        collection.partition_id,
        collection.object_id,
        bits11=1 if with_members else 0,
        **extra,
    )


def remove_member_objects(collection: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """REMOVE MEMBER OBJECTS (88A1h): every member user object is removed."""
    return _on(ServiceAction.REMOVE_MEMBER_OBJECTS, collection, **extra)


def _list(
    action: ServiceAction,
    obj: ObjectRef,
    allocation_length: int,
    initial_object_id: int,
    list_identifier: int,
    with_attributes: bool,
    **extra: Unpack[Extra],
) -> Request:
    return Request(
        action,
        obj.partition_id,
        obj.object_id,
        allocation_length,
        initial_object_id,
        word48=list_identifier,
        bits11=_LIST_ATTR if with_attributes else 0,
        data_in_length=allocation_length,
        **extra,
    )


def list_objects(
    partition_id: int = 0,
    allocation_length: int = LIST_HEADER_LENGTH,
    initial_object_id: int = 0,
    list_identifier: int = 0,
    with_attributes: bool = False,
    **extra: Unpack[Extra],
) -> Request:
    """LIST (8883h): the partitions (id 0), or the user objects of a partition."""
    obj = ref(partition_id)
    return _list(
        ServiceAction.LIST,
        obj,
        allocation_length,
        initial_object_id,
        list_identifier,
        with_attributes,
        **extra,
    )


def list_collection(
    collection: ObjectRef,
    allocation_length: int = LIST_HEADER_LENGTH,
    initial_object_id: int = 0,
    list_identifier: int = 0,
    with_attributes: bool = False,
    **extra: Unpack[Extra],
) -> Request:
    """LIST COLLECTION (8897h): the members, or (object id 0) the collections of the partition."""
    return _list(
        ServiceAction.LIST_COLLECTION,
        collection,
        allocation_length,
        initial_object_id,
        list_identifier,
        with_attributes,
        **extra,
    )


@dataclass(frozen=True)
class Criterion:
    """One criterion of a QUERY: minimum <= value <= maximum bytewise; b"": no bound."""

    page: int
    number: int
    minimum: bytes = b""
    maximum: bytes = b""

    def encode(self) -> bytes:
        """The entry as it stands in the query list."""
        low, high = self.minimum, self.maximum
        length = 12 + len(low) + len(high)
        head = struct.pack(">HHIIH", 0, length, self.page, self.number, len(low))
        return head + low + struct.pack(">H", len(high)) + high


def query(
    collection: ObjectRef,
    criteria: Iterable[Criterion],
    allocation_length: int,
    match_all: bool = True,
    **extra: Unpack[Extra],
) -> Request:
    """QUERY (88A0h) with the matching ids in Data-In."""
    content = struct.pack(">Bxxx", 1 if match_all else 0) + b"".join(
        each.encode() for each in criteria
    )
    content += bytes(-len(content) % 8)  # the descriptor's own pad must be 0
    return Request(
        ServiceAction.QUERY,
        collection.partition_id,
        collection.object_id,
        allocation_length,
        descriptors=(Descriptor(_QUERY_LIST, content),),
        data_in_length=allocation_length,
        **extra,
    )


# ---- keys and pass-through --------------------------------------------------------------------


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


def perform_scsi_command(
    cdb: bytes, data: Buffer = b"", data_in_length: int = 0, **extra: Unpack[Extra]
) -> Request:
    """PERFORM SCSI COMMAND (8F7Ch) with an embedded CDB of at most 16 bytes."""
    length, address = struct.unpack(">QQ", cdb.ljust(16, b"\0"))
    return Request(
        ServiceAction.PERFORM_SCSI_COMMAND,
        length=length,
        address=address,
        data=data,
        data_in_length=data_in_length,
        **extra,
    )


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
        _nbytes(code),
        result_allocation_length,
        bits11=0 if synchronous else _IMMED_TR,
        descriptors=(descriptor,) if descriptor else (),
        data=code,
        data_in_length=result_allocation_length,
        **extra,
    )
