# SPDX-License-Identifier: GPL-2.0-or-later
"""Copies, maps, checks, atomics, keys, PERFORM: part of pyosd.commands, whose head says what they raise."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice

from pyosd import requests
from pyosd._caller import Caller, lists_of
from pyosd.attributes import CURRENT_OBJECT_ID
from pyosd.cdb import Duplication, Request
from pyosd.credentials import Credential, KeyLevel
from pyosd.errors import NotFound, ProtocolError
from pyosd.list_data import Extent, MapType, decode_map
from pyosd.tracking import TaskManagementReply
from pyosd.types import ROOT, AttributeId, AttributeValue, Buffer, ObjectRef, TaskManagement, ref

__all__ = ["SpecialCommands"]

_EXTENTS_PER_MAP = 4096
_MAP_HEADER, _EXTENT_BYTES = 8, 16
_OPERAND_BYTES = 8
_DH_LENGTH = 4
_FIELD_CONTINUATION = 48
_DAMAGED = (0x44, 0x00)


class SpecialCommands(Caller):
    """Commands beyond everyday use."""

    # ---- copy, map, check ---------------------------------------------------------------------

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
        """Where an object has data and where holes, from start on (READ MAP, 88B1h).

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

    # ---- atomics ------------------------------------------------------------------------------

    def _before(self, request: Request) -> int:
        data = self.call(request).data
        if len(data) < _OPERAND_BYTES:
            raise ProtocolError("the target did not return the value before")
        return int.from_bytes(data[:_OPERAND_BYTES], "big")

    def compare_and_swap(self, obj: ObjectRef, compare: int, swap: int) -> int:
        """Set the object's own word (attribute 7h/1h) to swap if it is compare (8F84h).

        Returns: what it was; 0 where it was undefined.
        """
        return self._before(requests.compare_and_swap(obj, compare, swap))

    def fetch_and_add(self, obj: ObjectRef, addend: int) -> int:
        """Add to the object's own counter (attribute 7h/2h), modulo 2**64 (8F85h).

        Returns: what it was; 0 where it was undefined.
        """
        return self._before(requests.fetch_and_add(obj, addend))

    def swap_attribute(
        self,
        obj: ObjectRef,
        attribute: AttributeId,
        compare: bytes,
        swap: bytes,
        others: Iterable[AttributeValue] = (),
    ) -> bytes:
        """Set an attribute to swap, and others with it, if it is compare; else nothing changes
        (CONDITIONAL SET ATTRIBUTES, 8F87h).  b"" stands for undefined.

        Returns: the value before: compare, when it was set.
        """
        expected, extra = AttributeValue(attribute.page, attribute.number, compare), tuple(others)
        room: int | None = None
        while True:
            request = requests.conditional_set_attributes(
                obj, expected, swap, extra, allocation=room
            )
            found = self.call(request).retrieved
            if found.attributes and found.attributes[0].id == attribute:
                return found.attributes[0].value
            # A value longer than there is room for is not the one expected: nothing was changed.
            if found.complete or (room and found.needed <= room):
                raise ProtocolError("the target did not return the value before")
            room = found.needed + 7 & ~7

    # ---- keys ---------------------------------------------------------------------------------

    def set_key(
        self,
        level: KeyLevel,
        partition_id: int,
        seed: bytes,
        identifier: bytes,
        version: int = 0,
        *,
        credential: Credential | None = None,
    ) -> None:
        """Have the target derive a new key from a seed (SET KEY, 8898h); those below it end.

        Args: partition_id: whose; 0 for the root key and for those of partition zero.  seed: 20
            bytes.  identifier: 7 bytes of one's own, to be read on the security pages.
            version: of a working key, 0-15.  credential: signed as docs/security-protocol.md says.
        """
        request = requests.set_key(level, partition_id, version, identifier, seed)
        self.call(request, credential=credential)

    def set_master_key_seed(
        self, group: int, identifier: bytes, dh: bytes, *, credential: Credential | None = None
    ) -> bytes:
        """First half of a new master key (SET MASTER KEY, 8899h): exchange Diffie-Hellman values.

        Args: group: number of the group, as root attributes 9000_0005h #8000_0010h... have it.
            dh: g^x mod p, as long as p.
        Returns: the target's g^y mod p.
        """
        request = requests.set_master_key_seed(group, identifier, dh)
        data = bytes(self.call(request, credential=credential).data)
        value = data[_DH_LENGTH : _DH_LENGTH + int.from_bytes(data[:_DH_LENGTH], "big")]
        if len(value) != len(dh):
            raise ProtocolError("the target's Diffie-Hellman value is not as long as ours")
        return value

    def set_master_key_change(
        self,
        group: int,
        identifier: bytes,
        dh: bytes,
        target_dh: bytes,
        *,
        credential: Credential | None = None,
    ) -> None:
        """Second half: take the key that both values make.  On the same session, within 10 s.

        Args: dh, target_dh: of the first half.  credential: signed with the new key.
        """
        request = requests.set_master_key_change(group, identifier, dh, target_dh)
        self.call(request, credential=credential)

    # ---- PERFORM ------------------------------------------------------------------------------

    def perform_scsi_command(
        self, cdb: bytes, data: Buffer = b"", data_in_length: int = 0
    ) -> memoryview:
        """Send a SCSI command of 6 to 16 bytes inside an OSD one (PERFORM SCSI COMMAND, 8F7Ch).

        Returns: its Data-In.  Raises: OSDError: with the embedded command's sense data.
        """
        return self.call(requests.perform_scsi_command(cdb, data, data_in_length)).data

    def perform_task_management(
        self, function: TaskManagement | int, task_tag: int = 0, obj: ObjectRef = ROOT
    ) -> TaskManagementReply:
        """Manage tasks by a command (PERFORM TASK MANAGEMENT FUNCTION, 8F7Dh)."""
        request = requests.perform_task_management(function, task_tag, obj)
        try:
            return TaskManagementReply.decode(self.call(request).data)
        except ValueError as error:
            raise ProtocolError(str(error)) from None
