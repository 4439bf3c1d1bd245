# SPDX-License-Identifier: GPL-2.0-or-later
"""The OSD-2 commands to one logical unit, as methods over any Transport.

Lives here: one typed method for each command on the root, partitions and user objects.  The other files
of this folder bring collections and QUERY, copy, atomics, keys and PERFORM.
From caller.py: call(), for what a method does not say (attributes retrieved with a WRITE, say), and
execute(), for CDBs of one's own.
Not here: bytes (wire/), requests (requests/), whole objects (target.py), jobs (jobs/).

Every method that sends a command raises, beside what it says itself:
    OSDError or a child: the target refused or failed it; unless said otherwise nothing was changed.
    SessionLost, Unreachable: no answer came; whether it acted is unknown.
    ValueError: an argument does not fit its field; nothing was sent.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from functools import lru_cache

from pyosd import requests
from pyosd.commands.atomics import AtomicCommands
from pyosd.commands.caller import lists_of
from pyosd.commands.collections import CollectionCommands
from pyosd.commands.copy import CopyCommands
from pyosd.commands.keys import KeyCommands
from pyosd.commands.perform import PerformCommands
from pyosd.errors import ProtocolError
from pyosd.types import (
    AttributeId,
    AttributeValue,
    Buffer,
    MutableBuffer,
    ObjectRef,
    PartitionId,
    ref,
)
from pyosd.wire.attributes import (
    CURRENT_APPEND_START,
    CURRENT_OBJECT_ID,
    CURRENT_PARTITION_ID,
    Page,
    PageForm,
    allocation_for,
)
from pyosd.wire.cdb import DEFAULT_OPTIONS, AttributeLists, AttributePage, Encoded, Options
from pyosd.wire.exec_params import ExecParams
from pyosd.wire.job_status import JOB_POLL_IDS, POLL_ROOM, JobPoll, decode_poll, poll_of
from pyosd.wire.reply import ExecReply, decode_exec, decode_reply
from pyosd.wire.sense import decode, error_for
from pyosd.wire.transport import Command

__all__ = ["Commands"]

_PAGE_HEADER = 8
_RETRIEVED_MAX = 8 << 20  # of a list retrieved by a command that changes something
_TEST_UNIT_READY, _INQUIRY, _REPORT_LUNS = 0x00, 0x12, 0xA0


class Commands(CollectionCommands, CopyCommands, AtomicCommands, KeyCommands, PerformCommands):
    """OSD-2 commands to one logical unit."""

    # ---- SPC commands -------------------------------------------------------------------------

    def _short(self, cdb: bytes, data_in_length: int = 0) -> memoryview:
        response = self._transport.execute(Command(cdb, b"", data_in_length, repeatable=True))
        error = error_for(response.status, decode(response.sense))
        if error:
            raise error
        return response.data_in

    def test_unit_ready(self) -> None:
        """TEST UNIT READY (00h)."""
        self._short(bytes(6))

    def inquiry(self, page: int | None = None, allocation_length: int = 255) -> bytes:
        """INQUIRY (12h): standard data, or the vital product data page given."""
        evpd, code = (0, 0) if page is None else (1, page)
        cdb = bytes([_INQUIRY, evpd, code]) + allocation_length.to_bytes(2, "big") + b"\0"
        return bytes(self._short(cdb, allocation_length))

    # ---- life cycle ---------------------------------------------------------------------------

    def format_osd(self, capacity_bytes: int = 0, *, name: str = "") -> None:
        """Destroy everything and start anew (FORMAT OSD, 8881h).

        Args: capacity_bytes: formatted capacity; 0: all there is.  name: OSD NAME, <= 64 bytes.
        """
        name_attribute = [AttributeValue(0x9000_0001, 0x9, name.encode())] if name else []
        self.call(requests.format_osd(capacity_bytes, attributes=lists_of((), name_attribute)))

    def create_partition(
        self,
        requested_id: int = 0,
        *,
        attributes: Iterable[AttributeValue] = (),
        options: Options = DEFAULT_OPTIONS,
    ) -> PartitionId:
        """Make a partition (CREATE PARTITION, 888Bh).

        Args: requested_id: >= 1_0000h, or 0: the target picks.  attributes: set of the new
        partition.
        Returns: its id.  Raises: Conflict: the id is taken or reserved.
        """
        lists = lists_of([CURRENT_PARTITION_ID], attributes)
        reply = self.call(
            requests.create_partition(requested_id, attributes=lists, options=options)
        )
        return PartitionId(reply.attribute(CURRENT_PARTITION_ID).uint)

    def remove_partition(self, partition_id: int, contents: bool = False) -> None:
        """Remove a partition (REMOVE PARTITION, 888Ch).

        Args: contents: remove everything inside too; else it must be empty.
        Raises: NotFound; Conflict: not empty, or unfinished jobs stand on it (named in the error).
        """
        self.call(requests.remove_partition(partition_id, contents))

    def create(
        self,
        partition_id: int,
        requested_id: int = 0,
        *,
        attributes: Iterable[AttributeValue] = (),
        options: Options = DEFAULT_OPTIONS,
    ) -> ObjectRef:
        """Make an empty user object (CREATE, 8882h).

        Args: requested_id: >= 1_0000h, or 0: the target picks.  attributes: set of the new object.
        Raises: NotFound: no such partition; Conflict: the id is taken or reserved.
        """
        lists = lists_of([CURRENT_OBJECT_ID], attributes)
        request = requests.create(partition_id, requested_id, attributes=lists, options=options)
        return ref(partition_id, self.call(request).attribute(CURRENT_OBJECT_ID).uint)

    def create_many(
        self,
        partition_id: int,
        count: int,
        *,
        attributes: Iterable[AttributeValue] = (),
        options: Options = DEFAULT_OPTIONS,
    ) -> list[ObjectRef]:
        """Make count user objects with consecutive ids in one command, all or none (CREATE, 8882h).

        Args: count: 1 to 4,096 (root attribute B000_0001h #3).  attributes: set each of them gets.
        Returns: count references, ascending.
        """
        values = tuple(attributes)
        if len(values) > 1:
            room = 8 + count * (16 + 24)
            lists = AttributeLists((CURRENT_OBJECT_ID,), values, room)
            request = requests.create(partition_id, 0, count, attributes=lists, options=options)
            members = self.call(request).retrieved.members
            return [ref(partition_id, each.object_id) for each in members]
        page = AttributePage(CURRENT_OBJECT_ID.page, 76, values[0] if values else None)
        request = requests.create(partition_id, 0, count, attributes=page, options=options)
        highest = _page_object_id(self.call(request).page)
        return [ref(partition_id, highest - count + 1 + index) for index in range(count)]

    def create_and_write(
        self,
        partition_id: int,
        data: Buffer,
        start: int = 0,
        requested_id: int = 0,
        *,
        attributes: Iterable[AttributeValue] = (),
        options: Options = DEFAULT_OPTIONS,
    ) -> ObjectRef:
        """Make a user object and write to it, both or neither (CREATE AND WRITE, 8892h)."""
        lists = lists_of([CURRENT_OBJECT_ID], attributes)
        request = requests.create_and_write(
            partition_id, requested_id, start, data, attributes=lists, options=options
        )
        return ref(partition_id, self.call(request).attribute(CURRENT_OBJECT_ID).uint)

    def remove(self, obj: ObjectRef) -> None:
        """Remove a user object and its memberships (REMOVE, 888Ah).

        Raises: NotFound; Conflict: it is the surrogate of an unfinished job.
        """
        self.call(requests.remove(obj))

    # ---- data ---------------------------------------------------------------------------------

    def read(
        self,
        obj: ObjectRef,
        start: int,
        length: int,
        *,
        into: MutableBuffer | None = None,
        options: Options = DEFAULT_OPTIONS,
    ) -> memoryview:
        """Read from a user object in one command (READ, 8885h).

        Args: start: starting byte address, >= 0.  length: bytes wanted, 0 to the target's transfer
        limit.
            into: buffer of at least length bytes to receive them, else one is allocated.
        Returns: view of 0..length bytes; shorter only where the object ends.
        Raises: NotFound; after SessionLost a READ is safe to repeat.
        """
        return self.call(requests.read(obj, start, length, buffer=into, options=options)).data

    def write(
        self,
        obj: ObjectRef,
        start: int,
        data: Buffer,
        *,
        attributes: Iterable[AttributeValue] = (),
        options: Options = DEFAULT_OPTIONS,
    ) -> None:
        """Write to a user object in one command, extending it as needed (WRITE, 8886h).

        Args: data: 0 bytes to the target's transfer limit.  attributes: set to set with it.
        Raises: NotFound; QuotaExceeded: nothing was written.
        """
        lists = lists_of((), attributes)
        self.call(requests.write(obj, start, data, attributes=lists, options=options))

    def append(self, obj: ObjectRef, data: Buffer, *, options: Options = DEFAULT_OPTIONS) -> int:
        """Write behind the end of a user object (APPEND, 8887h).

        Returns: the address the first byte went to; two APPENDs never overlap.
        """
        lists = lists_of([CURRENT_APPEND_START], ())
        reply = self.call(requests.append(obj, data, attributes=lists, options=options))
        return reply.attribute(CURRENT_APPEND_START).uint

    def clear(
        self, obj: ObjectRef, start: int, length: int, *, options: Options = DEFAULT_OPTIONS
    ) -> None:
        """Turn a range into zeros, extending the object as needed (CLEAR, 8889h)."""
        self.call(requests.clear(obj, start, length, options=options))

    def punch(
        self, obj: ObjectRef, start: int, length: int, *, options: Options = DEFAULT_OPTIONS
    ) -> None:
        """Take a range out and move the tail down (PUNCH, 8884h).

        Raises: OSDError with field_pointer 40: start is beyond the end.
        """
        self.call(requests.punch(obj, start, length, options=options))

    def read_pieces(self, obj: ObjectRef, pieces: Sequence[tuple[int, int]]) -> memoryview:
        """Read (offset, length) pieces in one command, back to back, each in its full slot."""
        return self.call(requests.read_pieces(obj, pieces)).data

    def write_pieces(self, obj: ObjectRef, pieces: Sequence[tuple[int, int]], data: Buffer) -> None:
        """Write data, taken back to back, to (offset, length) pieces in one command."""
        self.call(requests.write_pieces(obj, pieces, data))

    # ---- flush --------------------------------------------------------------------------------

    def flush(self, obj: ObjectRef) -> None:
        """Make data and attributes of a user object survive power loss (FLUSH, 8888h)."""
        self.call(requests.flush(obj))

    def flush_collection(self, collection: ObjectRef) -> None:
        """Flush a collection and its members (FLUSH COLLECTION, 889Ah)."""
        self.call(requests.flush_collection(collection))

    def flush_partition(self, partition_id: int) -> None:
        """Flush a partition and everything inside (FLUSH PARTITION, 889Bh)."""
        self.call(requests.flush_partition(partition_id))

    def flush_osd(self) -> None:
        """Flush everything (FLUSH OSD, 889Ch)."""
        self.call(requests.flush_osd())

    # ---- attributes ---------------------------------------------------------------------------

    def get_attributes(
        self, obj: ObjectRef, wanted: Iterable[AttributeId]
    ) -> tuple[AttributeValue, ...]:
        """Read attributes of any object (GET ATTRIBUTES, 888Eh).

        Args: wanted: ids; number ALL: the whole page; page and number ALL: every page.
        Returns: in the order asked for; an undefined attribute has an empty value.
        Raises: NotFound; OSDError 26/00: a page does not fit the object (see OSDError.attributes).
        """
        ids, room = tuple(wanted), None  # type: tuple[AttributeId, ...], int | None
        while True:
            lists = AttributeLists(ids, (), room)
            retrieved = self.call(requests.get_attributes(obj, attributes=lists)).retrieved
            if retrieved.complete:
                return retrieved.attributes
            if room and retrieved.needed <= room:
                raise ProtocolError("the target left out attributes that there was room for")
            room = (retrieved.needed + 4096 + 7) & ~7  # values may grow before the next command

    def get_attribute(self, obj: ObjectRef, page: int, number: int) -> bytes:
        """The value of one attribute, b"" when undefined."""
        found = self.get_attributes(obj, [AttributeId(page, number)])
        return found[0].value if found else b""

    def set_attributes(
        self,
        obj: ObjectRef,
        values: Iterable[AttributeValue],
        get: Iterable[AttributeId] = (),
        *,
        options: Options = DEFAULT_OPTIONS,
    ) -> tuple[AttributeValue, ...]:
        """Set attributes of any object, all or none, then read some (SET ATTRIBUTES, 888Fh).

        Args: values: an empty value undefines.  get: what to read in the same command, after
        setting.  A second command reads values that do not fit there: a whole page (number ALL) or
        many MiB.
        """
        ids = tuple(get)
        room = min(allocation_for(ids, longest=True), _RETRIEVED_MAX)
        lists = lists_of(ids, values, room)
        request = requests.set_attributes(obj, attributes=lists, options=options)
        retrieved = self.call(request).retrieved
        return retrieved.attributes if retrieved.complete else self.get_attributes(obj, ids)

    def get_page(self, obj: ObjectRef, page: int, allocation_length: int = 4096) -> PageForm:
        """Read a page in its fixed form (GET ATTRIBUTES, page format).

        Returns: PageForm; length 0: the page has no fixed form.
        """
        attributes = AttributePage(page, allocation_length)
        form = self.call(requests.get_attributes(obj, attributes=attributes)).page
        if form is None:
            raise ProtocolError(f"the target returned no attribute page {page:#x}")
        if len(form.body) < form.length and allocation_length < form.length + _PAGE_HEADER:
            return self.get_page(obj, page, form.length + _PAGE_HEADER + 7 & ~7)
        return form

    # ---- jobs ---------------------------------------------------------------------------------

    def poll_job(self, job: ObjectRef) -> JobPoll | None:
        """How a job goes, by the cheapest command there is; None: not a job's surrogate."""
        if self.signer.source:
            return poll_of(self.get_attributes(job, JOB_POLL_IDS))
        request, command, layout = _poll_command(job)
        response = self._transport.execute(command)
        if response.status or response.sense:
            error = decode_reply(request, layout, response).error
            if error:
                raise error
        return decode_poll(response.data_in)

    def exec_code(
        self,
        zone: ObjectRef,
        code: Buffer,
        params: ExecParams | None = None,
        *,
        synchronous: bool = False,
        result_allocation_length: int = 0,
        get: Sequence[AttributeId] = (),
        timeout: float | None = None,
    ) -> ExecReply:
        """Run code in a zone (EXEC, 8F81h; design D11).  pyosd.jobs makes Jobs of it.

        Args: code: 1 byte to 16 MiB of source.  synchronous: answer at the job's end.
            get: further attributes to read of the surrogate.
        Returns: ExecReply; a job that failed is in ExecReply.error.
        Raises: TargetBusy and other OSDErrors when no job was made; SessionLost.
        """
        wanted = (CURRENT_PARTITION_ID, CURRENT_OBJECT_ID, *get)
        lists = AttributeLists(wanted, (), allocation_for(wanted, longest=True))
        request = requests.execute(
            zone,
            code,
            params,
            synchronous=synchronous,
            result_allocation_length=result_allocation_length,
            attributes=lists,
        )
        return decode_exec(self.reply(request, timeout))


@lru_cache(maxsize=1024)  # a job is asked for again and again
def _poll_command(job: ObjectRef) -> Encoded:
    page = AttributePage(Page.JOB_STATUS, POLL_ROOM)
    return Encoded.of(requests.get_attributes(job, attributes=page))


def _page_object_id(form: PageForm | None) -> int:
    """OBJECT_ID of a Current Command page in page form: byte 52 of the page."""
    if form is None or len(form.body) < 52:
        raise ProtocolError("the target returned no Current Command page")
    return int.from_bytes(form.body[44:52], "big")
