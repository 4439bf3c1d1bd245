# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands that make and remove partitions and user objects, make them durable, and SPC commands.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections.abc import Iterable

from pyosd import requests
from pyosd.commands.dialogue import Dialogue, call, execute
from pyosd.errors import OSDError, ProtocolError
from pyosd.types import ROOT, AttributeValue, Buffer, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, CURRENT_PARTITION_ID, PageForm
from pyosd.wire.cdb import DEFAULT_OPTIONS, AttributeLists, AttributePage, Options, lists_of
from pyosd.wire.sense import decode, error_for
from pyosd.wire.transport import Command

_INQUIRY = 0x12


def _short(cdb: bytes, data_in_length: int = 0) -> Dialogue[memoryview]:
    response = yield from execute(Command(cdb, b"", data_in_length, repeatable=True))
    error = error_for(response.status, decode(response.sense))
    if error:
        raise error
    return response.data_in


def test_unit_ready() -> Dialogue[None]:
    """Ask whether the logical unit is ready (TEST UNIT READY, 00h)."""
    yield from _short(bytes(6))


def inquiry(page: int | None = None, allocation_length: int = 255) -> Dialogue[bytes]:
    """Read the standard data, or a page of vital product data (INQUIRY, 12h)."""
    evpd, code = (0, 0) if page is None else (1, page)
    cdb = bytes([_INQUIRY, evpd, code]) + allocation_length.to_bytes(2, "big") + b"\0"
    return bytes((yield from _short(cdb, allocation_length)))


# ---- life cycle ---------------------------------------------------------------------------


def format_osd(capacity_bytes: int = 0, *, name: str = "") -> Dialogue[None]:
    """Remove all partitions and objects (FORMAT OSD, 8881h).

    Args:
        capacity_bytes: formatted capacity; 0: all space that there is.
        name: the OSD NAME, at most 64 bytes.
    """
    name_attribute = [AttributeValue(0x9000_0001, 0x9, name.encode())] if name else []
    yield from call(requests.format_osd(capacity_bytes, attributes=lists_of((), name_attribute)))


def create_partition(
    requested_id: int = 0,
    *,
    name: str = "",
    attributes: Iterable[AttributeValue] = (),
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[PartitionId]:
    """Make a partition (CREATE PARTITION, 888Bh).

    Args:
        requested_id: at least 1_0000h; 0: the target chooses.
        name: the name of the partition on the root; "": none. A second command gives it (CHANGE
            NAMES, 8F89h). If that fails, the partition is removed.
        attributes: to set on the new partition.

    Returns: its id.  Raises: Conflict: the id is taken or reserved; NameExists.
    """
    lists = lists_of([CURRENT_PARTITION_ID], attributes)
    reply = yield from call(
        requests.create_partition(requested_id, attributes=lists, options=options)
    )
    made = PartitionId(reply.attribute(CURRENT_PARTITION_ID).uint)
    if name:
        try:
            from pyosd.commands.names import link

            yield from link(ROOT, name, ref(made))
        except OSDError:
            yield from remove_partition(made)
            raise
    return made


def remove_partition(partition_id: PartitionId, contents: bool = False) -> Dialogue[None]:
    """Remove a partition (REMOVE PARTITION, 888Ch).

    Args:
        contents: remove everything in it, too; if False, it must be empty.

    Raises: NotFound; Conflict: it is not empty, or has unfinished jobs, which the error names.
    """
    yield from call(requests.remove_partition(partition_id, contents))


def create(
    partition_id: PartitionId,
    requested_id: int = 0,
    *,
    attributes: Iterable[AttributeValue] = (),
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[ObjectRef]:
    """Make an empty user object (CREATE, 8882h).

    Args:
        requested_id: at least 1_0000h; 0: the target chooses.
        attributes: to set on the new object.

    Raises: NotFound: no such partition; Conflict: the id is taken or reserved.
    """
    lists = lists_of([CURRENT_OBJECT_ID], attributes)
    request = requests.create(partition_id, requested_id, attributes=lists, options=options)
    return ref(partition_id, (yield from call(request)).attribute(CURRENT_OBJECT_ID).uint)


def create_many(
    partition_id: PartitionId,
    count: int,
    *,
    attributes: Iterable[AttributeValue] = (),
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[list[ObjectRef]]:
    """Make count user objects with consecutive ids in one command, all or none (CREATE, 8882h).

    Args:
        count: 1 to 4,096 (root attribute B000_0001h #3).
        attributes: to set on each object.

    Returns: count references, ascending.
    """
    values = tuple(attributes)
    if len(values) > 1:
        room = 8 + count * (16 + 24)
        lists = AttributeLists((CURRENT_OBJECT_ID,), values, room)
        request = requests.create(partition_id, 0, count, attributes=lists, options=options)
        members = (yield from call(request)).retrieved.members
        return [ref(partition_id, each.object_id) for each in members]
    page = AttributePage(CURRENT_OBJECT_ID.page, 76, values[0] if values else None)
    request = requests.create(partition_id, 0, count, attributes=page, options=options)
    highest = _page_object_id((yield from call(request)).page)
    return [ref(partition_id, highest - count + 1 + index) for index in range(count)]


def create_and_write(
    partition_id: PartitionId,
    data: Buffer,
    start: int = 0,
    requested_id: int = 0,
    *,
    attributes: Iterable[AttributeValue] = (),
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[ObjectRef]:
    """Make a user object and write to it, in one transaction (CREATE AND WRITE, 8892h)."""
    lists = lists_of([CURRENT_OBJECT_ID], attributes)
    request = requests.create_and_write(
        partition_id, requested_id, start, data, attributes=lists, options=options
    )
    return ref(partition_id, (yield from call(request)).attribute(CURRENT_OBJECT_ID).uint)


def remove(obj: ObjectRef, *, if_version: bytes | None = None) -> Dialogue[None]:
    """Remove a user object and its memberships (REMOVE, 888Ah).

    Args: if_version: the version that the data must have (see data_version()).

    Raises: NotFound; Conflict: it is the surrogate of an unfinished job.  FunctionInUse: calls of this
        active function are under way.  VersionMismatch: nothing was removed.
    """
    yield from call(requests.remove(obj, if_version=if_version))


def _page_object_id(form: PageForm | None) -> int:
    """OBJECT_ID of a Current Command page in page form: byte 52 of the page."""
    if form is None or len(form.body) < 52:
        raise ProtocolError("the target returned no Current Command page")
    return int.from_bytes(form.body[44:52], "big")


def flush(obj: ObjectRef) -> Dialogue[None]:
    """Store data and attributes of a user object, so that they survive a power loss (FLUSH, 8888h)."""
    yield from call(requests.flush(obj))


def flush_collection(collection: ObjectRef) -> Dialogue[None]:
    """Store a collection and its members (FLUSH COLLECTION, 889Ah); see flush()."""
    yield from call(requests.flush_collection(collection))


def flush_partition(partition_id: PartitionId) -> Dialogue[None]:
    """Store a partition and everything in it (FLUSH PARTITION, 889Bh); see flush()."""
    yield from call(requests.flush_partition(partition_id))


def flush_osd() -> Dialogue[None]:
    """Store everything (FLUSH OSD, 889Ch); see flush()."""
    yield from call(requests.flush_osd())
