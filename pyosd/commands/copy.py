# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that copy objects inside the target, map their data, and check the target's structure.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from pyosd import requests
from pyosd.commands.caller import Caller, lists_of
from pyosd.errors import NotFound, ProtocolError
from pyosd.types import AttributeValue, ObjectRef, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID
from pyosd.wire.cdb import Duplication
from pyosd.wire.list_data import Extent, MapType, decode_map

__all__ = ["CopyCommands"]

_EXTENTS_PER_MAP = 4096
_MAP_HEADER, _EXTENT_BYTES = 8, 16
_FIELD_CONTINUATION = 48
_DAMAGED = (0x44, 0x00)


class CopyCommands(Caller):
    """Copy, map, check."""

    def copy(
        self,
        source: ObjectRef,
        partition_id: int,
        requested_id: int = 0,
        *,
        with_attributes: bool = True,
        method: int = Duplication.DEFAULT,
        attributes: Iterable[AttributeValue] = (),
        timeout: float | None = None,
    ) -> ObjectRef:
        """Copy a user object inside the target (COPY USER OBJECTS, 8893h).

        Args: partition_id, requested_id: what the copy shall be; id 0: the target picks.
            with_attributes: copy those too.  method: Duplication.  attributes: set of the copy.
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
        reply = self.reply(request, timeout)
        if reply.error and reply.error.field_pointer == _FIELD_CONTINUATION:
            text = f"{source} cannot be copied, it is no user object ({reply.error})"
            code = (reply.error.sense_key, reply.error.asc, reply.error.ascq)
            raise NotFound(*code, text, sense=reply.error.sense)
        if reply.error:
            raise reply.error
        return ref(partition_id, reply.attribute(CURRENT_OBJECT_ID).uint)

    def iter_map(
        self, obj: ObjectRef, start: int = 0, map_type: int = MapType.ALL
    ) -> Iterator[Extent]:
        """Extents of data and holes of an object, from start (READ MAP, 88B1h).

        Args: map_type: only extents of that type.
        Yields: in ascending order, none of them overlapping.
        Raises: NotFound; OSDError with field_pointer 40: start is beyond the end.
        """
        room = _MAP_HEADER + _EXTENT_BYTES * _EXTENTS_PER_MAP
        while True:
            reply = self.call(requests.read_map(obj, start, room, map_type))
            try:
                found = decode_map(reply.data)
            except ValueError as error:
                raise ProtocolError(str(error)) from None
            if found.extents and found.extents[-1].end <= start:
                raise ProtocolError("the target's map goes backwards")
            yield from found.extents
            if not found.more or not found.extents:
                return
            start = found.extents[-1].end

    def read_map(
        self, obj: ObjectRef, start: int = 0, map_type: int = MapType.ALL, most: int = 1 << 20
    ) -> list[Extent]:
        """As iter_map(): at most so many extents, at once."""
        return list(islice(self.iter_map(obj, start, map_type), most))

    def object_structure_check(self, partition_id: int = 0, timeout: float | None = None) -> int:
        """Have the target check a partition, or everything (OBJECT STRUCTURE CHECK, 8880h).

        Returns: how many objects, and partitions themselves, are damaged; which: the damaged ones'
        Error Recovery pages (relative 6) and the target's log.
        """
        reply = self.reply(requests.object_structure_check(partition_id), timeout)
        if reply.error is None:
            return 0
        sense = reply.sense
        if sense and (sense.asc, sense.ascq) == _DAMAGED and sense.command_information:
            return sense.command_information
        raise reply.error
