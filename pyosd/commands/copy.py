# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that copy objects inside the target, map their data, and check the target's structure.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyosd import requests
from pyosd.commands.dialogue import Dialogue, Stream, call, items
from pyosd.errors import NotFound, OSDError, ProtocolError
from pyosd.types import ROOT, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID
from pyosd.wire.cdb import Duplication, lists_of
from pyosd.wire.list_data import Extent, MapResult, MapType, decode_map

_EXTENTS_PER_MAP = 4096
_MAP_HEADER, _EXTENT_BYTES = 8, 16
_FIELD_CONTINUATION = 48
_DAMAGED = (0x44, 0x00)


def copy(
    source: ObjectRef,
    partition_id: PartitionId,
    requested_id: int = 0,
    *,
    with_attributes: bool = True,
    method: int = Duplication.DEFAULT,
    attributes: Iterable[AttributeValue] = (),
    timeout: float | None = None,
) -> Dialogue[ObjectRef]:
    """Copy a user object inside the target (COPY USER OBJECTS, 8893h).

    Args:
        partition_id, requested_id: of the copy; requested_id 0: the target chooses.
        with_attributes: copy the attributes, too.
        method: a Duplication.
        attributes: to set on the copy.

    Raises: NotFound: source or partition; Conflict: the id is taken.
    """
    request = requests.copy_user_object(
        source,
        partition_id,
        requested_id,
        with_attributes=with_attributes,
        method=method,
        attributes=lists_of([CURRENT_OBJECT_ID], attributes),
    )
    try:
        reply = yield from call(request, timeout)
    except OSDError as error:
        if error.field_pointer != _FIELD_CONTINUATION:
            raise
        text = f"{source} cannot be copied, it is no user object ({error})"
        code = (error.sense_key, error.asc, error.ascq)
        raise NotFound(*code, text, sense=error.sense) from None
    return ref(partition_id, reply.attribute(CURRENT_OBJECT_ID).uint)


def iter_map(obj: ObjectRef, start: int = 0, map_type: int = MapType.ALL) -> Stream[Extent]:
    """The extents of an object that have data, and its holes, from start on (READ MAP, 88B1h).

    Args:
        map_type: yield only extents of this type.

    Yields: extents in ascending order, which do not overlap.
    Raises: NotFound; OSDError with field_pointer 40: start is beyond the end.
    """
    while True:
        found = yield from _map_from(obj, start, map_type)
        yield from items(found.extents)
        if not found.more or not found.extents:
            return
        start = found.extents[-1].end


def read_map(
    obj: ObjectRef, start: int = 0, map_type: int = MapType.ALL, most: int = 1 << 20
) -> Dialogue[list[Extent]]:
    """As iter_map(): a list of at most so many extents."""
    extents: list[Extent] = []
    while len(extents) < most:
        found = yield from _map_from(obj, start, map_type)
        extents += found.extents
        if not found.more or not found.extents:
            break
        start = found.extents[-1].end
    return extents[:most]


def _map_from(obj: ObjectRef, start: int, map_type: int) -> Dialogue[MapResult]:
    """One READ MAP."""
    room = _MAP_HEADER + _EXTENT_BYTES * _EXTENTS_PER_MAP
    reply = yield from call(requests.read_map(obj, start, room, map_type))
    try:
        found = decode_map(reply.data)
    except ValueError as error:
        raise ProtocolError(str(error)) from None
    if found.extents and found.extents[-1].end <= start:
        raise ProtocolError("the target's map goes backwards")
    return found


def object_structure_check(
    partition_id: PartitionId = ROOT.partition_id, timeout: float | None = None
) -> Dialogue[int]:
    """Check a partition, or everything (OBJECT STRUCTURE CHECK, 8880h).

    Returns: the number of damaged objects and partitions.  Their Error Recovery pages (relative 6) and
        the target's log say which they are.
    """
    try:
        yield from call(requests.object_structure_check(partition_id), timeout)
    except OSDError as error:
        damaged = error.sense.command_information if error.sense else None
        if (error.asc, error.ascq) != _DAMAGED or not damaged:
            raise
        return damaged
    return 0
