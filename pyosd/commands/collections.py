# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on collections, lists and QUERY.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import TYPE_CHECKING

from pyosd import requests
from pyosd.commands.attributes import get_attributes, more_room, set_attributes
from pyosd.commands.dialogue import Dialogue, Stream, call, call_again, items
from pyosd.errors import ProtocolError
from pyosd.osd._query import Condition, Criterion, Query
from pyosd.types import (
    OBJECTS_COLLECTION,
    AttributeId,
    AttributeValue,
    ListResult,
    ObjectAttributes,
    ObjectId,
    ObjectRef,
    PartitionId,
    ref,
)
from pyosd.wire.attributes import ALL, CURRENT_OBJECT_ID, Page
from pyosd.wire.cdb import LIST_HEADER_LENGTH, AttributeLists, Encoded, lists_of
from pyosd.wire.list_data import QUERY_HEADER_MAX, decode_list, decode_query_result

if TYPE_CHECKING:
    from pyosd.wire.tracking import CommandTracking

_ATTRIBUTES_PER_LIST = 256 << 10  # bytes of one answer
_IDS_PER_LIST = 8192
_MEMBERSHIPS = 0xFFFF_FF00  # numbers of them: 1 and up
_ID_BYTES = 8
_QUERY_IDS_MAX = 7 << 20  # 56 MiB of ids: what one transfer carries


@lru_cache(maxsize=64)  # who watches jobs asks for the same again and again
def _get_members(collection: ObjectRef, ids: tuple[AttributeId, ...], room: int) -> Encoded:
    lists = AttributeLists(ids, (), room)
    return Encoded.of(requests.get_member_attributes(collection, attributes=lists))


# ---- collections and lists ----------------------------------------------------------------


def create_collection(
    partition_id: PartitionId, requested_id: int = 0, *, attributes: Iterable[AttributeValue] = ()
) -> Dialogue[ObjectRef]:
    """Make a collection of type LINKED (CREATE COLLECTION, 8895h); ids as for create()."""
    lists = lists_of([CURRENT_OBJECT_ID], attributes)
    request = requests.create_collection(partition_id, requested_id, attributes=lists)
    return ref(partition_id, (yield from call(request)).attribute(CURRENT_OBJECT_ID).uint)


def remove_collection(
    collection: ObjectRef, with_members: bool = False, *, if_members: bytes | None = None
) -> Dialogue[None]:
    """Remove a collection (REMOVE COLLECTION, 8896h).

    Args:
        with_members: end all memberships first; the objects stay.
        if_members: the version that the membership must have at the beginning (see members_version()).

    Raises: NotFound; Conflict: it has members.  VersionMismatch: nothing was removed.
    """
    yield from call(requests.remove_collection(collection, with_members, if_members))


def create_tracking_collection(
    partition_id: PartitionId,
    requested_id: int = 0,
    source: int = 0,
    *,
    attributes: Iterable[AttributeValue] = (),
) -> Dialogue[ObjectRef]:
    """Make a tracking collection (CREATE USER TRACKING COLLECTION, 8894h).

    Args:
        source: id of a collection, whose members the new one gets; 0: none.

    Raises: NotFound: no such partition or source; Conflict: the id is taken or reserved.
    """
    lists = lists_of([CURRENT_OBJECT_ID], attributes)
    request = requests.create_user_tracking_collection(
        partition_id, requested_id, source, attributes=lists
    )
    return ref(partition_id, (yield from call(request)).attribute(CURRENT_OBJECT_ID).uint)


def remove_member_objects(
    collection: ObjectRef, *, immediate: bool = False, if_members: bytes | None = None
) -> Dialogue[None]:
    """Remove every user object that is a member (REMOVE MEMBER OBJECTS, 88A1h).

    immediate: return at once; tracking() reports the progress.
    if_members: the version that the membership must have at the beginning (see members_version()).

    Raises: VersionMismatch: nothing was removed.
    """
    yield from call(requests.remove_member_objects(collection, immediate, if_members))


def tracking(collection: ObjectRef) -> Dialogue[CommandTracking]:
    """The progress of the background command on a collection, and how the last one ended."""
    page = AttributeId(Page.COLLECTION_TRACKING, ALL)
    lists = AttributeLists((page,), (), 4096)
    found = (yield from call(requests.get_attributes(collection, attributes=lists))).attributes
    from pyosd.wire.tracking import CommandTracking

    return CommandTracking.of(found)


def list_page(
    obj: ObjectRef,
    initial_id: int = 0,
    count: int = _IDS_PER_LIST,
    *,
    collections: bool = False,
) -> Dialogue[ListResult]:
    """One LIST or LIST COLLECTION command, at most count ids from initial_id on.

    Args:
        obj: the root lists its partitions; a partition its user objects, or its collections; a
            collection its members.
        collections: list the collections of a partition.

    Returns: ListResult; continue from its continuation_id until that is 0.
    """
    room = LIST_HEADER_LENGTH + 8 * count
    if collections or obj.object_id:
        request = requests.list_collection(obj, room, initial_id)
    else:
        request = requests.list_objects(obj.partition_id, room, initial_id)
    try:
        return decode_list((yield from call(request)).data)
    except ValueError as error:
        raise ProtocolError(str(error)) from None


def _list_all(obj: ObjectRef, collections: bool = False) -> Dialogue[list[int]]:
    initial, found = 0, list[int]()
    while True:
        page = yield from list_page(obj, initial, collections=collections)
        found += page.ids
        if page.continuation_id <= initial:
            return found
        initial = page.continuation_id


def list_partitions() -> Dialogue[list[PartitionId]]:
    """Every partition, ascending (LIST, 8883h, of the root)."""
    return [PartitionId(each) for each in (yield from _list_all(ref()))]


def list_objects(partition_id: PartitionId) -> Dialogue[list[ObjectRef]]:
    """Every user object of a partition, ascending (LIST, 8883h).  Raises: NotFound."""
    return [ref(partition_id, each) for each in (yield from _list_all(ref(partition_id)))]


def list_attributes(
    partition_id: PartitionId, wanted: Iterable[AttributeId]
) -> Stream[ObjectAttributes]:
    """The same attributes of every user object of a partition, ascending (LIST with LIST_ATTR).

    Objects that are made or removed meanwhile can be missing.  One command lists some thousand objects.
    Raises: NotFound.
    """
    lists = AttributeLists(tuple(wanted))
    initial = 0
    while True:
        request = requests.list_objects(
            partition_id, _ATTRIBUTES_PER_LIST, initial, with_attributes=True, attributes=lists
        )
        try:
            page = decode_list((yield from call(request)).data)
        except ValueError as error:
            raise ProtocolError(str(error)) from None
        yield from items(page.members)
        if page.continuation_id <= initial:
            return
        initial = page.continuation_id


def list_collections(partition_id: PartitionId) -> Dialogue[list[ObjectRef]]:
    """Every collection of a partition, ascending (LIST COLLECTION).  Raises: NotFound."""
    return [ref(partition_id, each) for each in (yield from _list_all(ref(partition_id), True))]


def list_members(collection: ObjectRef) -> Dialogue[list[ObjectRef]]:
    """Every member of a collection, ascending (LIST COLLECTION, 8897h).  Raises: NotFound."""
    return [ref(collection.partition_id, each) for each in (yield from _list_all(collection))]


def get_member_attributes(
    collection: ObjectRef,
    wanted: Iterable[AttributeId],
    allocation_length: int = 256 << 10,
) -> Dialogue[tuple[ObjectAttributes, ...]]:
    """Read the same attributes of every member (GET MEMBER ATTRIBUTES, 88A2h).

    Args:
        allocation_length: expected bytes of the answer; if it has more, the command is repeated.
    """
    ids, room = tuple(wanted), allocation_length
    retrieved = (yield from call_again(_get_members(collection, ids, room))).retrieved
    while not retrieved.complete:
        room = more_room(retrieved, room, retrieved.needed // 8)
        retrieved = (yield from call_again(_get_members(collection, ids, room))).retrieved
    return retrieved.members


def set_member_attributes(
    collection: ObjectRef,
    values: Iterable[AttributeValue],
    *,
    immediate: bool = False,
    if_members: bytes | None = None,
) -> Dialogue[None]:
    """Set the same attributes on every member (SET MEMBER ATTRIBUTES, 88A3h); each member
    atomically.

    immediate: return at once; tracking() reports the progress.
    if_members: the version that the membership must have at the beginning (see members_version()).

    Raises: VersionMismatch: nothing was set.
    """
    lists = lists_of((), values)
    request = requests.set_member_attributes(collection, immediate, if_members, attributes=lists)
    yield from call(request)


# ---- membership: a user object's Collections page says what it is in (5.14) -------------------


def memberships(member: ObjectRef) -> Dialogue[dict[int, int]]:
    """The collections that an object is in, by attribute number."""
    found = yield from get_attributes(member, [AttributeId(Page.USER_COLLECTIONS, ALL)])
    return {
        each.number: each.uint for each in found if each.number and len(each.value) == _ID_BYTES
    }


def add_member(collection: ObjectRef, member: ObjectRef) -> Dialogue[None]:
    """Make a user object a member of a collection, if it is none.

    The number of the attribute follows from the collection's id.  So two clients that add an object to
    two collections at once use different numbers, and neither ends the other's membership.
    """
    held = yield from memberships(member)
    if collection.object_id in held.values():
        return
    tries = (1 + (collection.object_id + n) % _MEMBERSHIPS for n in range(len(held) + 1))
    number = next(n for n in tries if n not in held)
    value = collection.object_id.to_bytes(_ID_BYTES, "big")
    yield from set_attributes(member, [AttributeValue(Page.USER_COLLECTIONS, number, value)])


def remove_member(collection: ObjectRef, member: ObjectRef) -> Dialogue[bool]:
    """End an object's membership.  Returns: False: it was no member."""
    held = yield from memberships(member)
    numbers = [n for n, each in held.items() if each == collection.object_id]
    values = [AttributeValue(Page.USER_COLLECTIONS, n, b"") for n in numbers]
    if values:
        yield from set_attributes(member, values)
    return bool(values)


# ---- QUERY --------------------------------------------------------------------------------


def query(
    where: ObjectRef,
    condition: Condition | Iterable[Criterion] | None = None,
    match_all: bool = True,
    timeout: float | None = None,
) -> Dialogue[list[ObjectRef]]:
    """User objects whose attributes match (QUERY, 88A0h), ascending.

    Args:
        where: a collection, or a partition: all its user objects.
        condition: comparisons of pyosd.attr(page, number), joined by & and |, or the criteria of
            one QUERY; None: all user objects.
        match_all: whether an object must meet all criteria, or any one of them.
        timeout: seconds that one QUERY can take; without an index the target reads every member.

    Raises: NotFound; ValueError: a target cannot answer such a condition.
    """
    if not isinstance(where, ObjectRef):
        raise TypeError(f"where is an ObjectRef, as pyosd.ref(0x10000), not {where!r}")
    found: set[int] = set()
    for each in queries_of(condition, match_all):
        found.update((yield from query_ids(where, each, timeout)))
    return [ref(where.partition_id, each) for each in sorted(found)]


def query_ids(
    where: ObjectRef, query: Query, timeout: float | None = None
) -> Dialogue[tuple[ObjectId, ...]]:
    """The ids that one QUERY finds.

    A QUERY whose answer did not fit is sent again with the room it needs.
    """
    collection = where if where.object_id else ref(where.partition_id, OBJECTS_COLLECTION)
    count = _IDS_PER_LIST
    while True:
        room = QUERY_HEADER_MAX + 8 * count
        request = requests.query(collection, query.criteria, room, query.match_all)
        reply = yield from call(request, timeout)
        try:
            result = decode_query_result(reply.data)
        except ValueError as error:
            raise ProtocolError(str(error)) from None
        if len(result.ids) >= result.total_count:
            return result.ids
        if result.total_count > _QUERY_IDS_MAX:
            raise ProtocolError(f"{result.total_count} matches: query into a collection")
        if result.total_count <= count:
            raise ProtocolError("the target left out ids that there was room for")
        count = result.total_count + result.total_count // 8


def query_into(
    where: ObjectRef,
    criteria: Iterable[Criterion],
    matches: ObjectRef,
    match_all: bool = True,
    *,
    immediate: bool = False,
) -> Dialogue[None]:
    """Fill a tracking collection with the user objects that match (QUERY).

    Args:
        where: as for query().
        matches: the tracking collection; its former memberships end.
        immediate: return at once; tracking(matches) reports the progress.
    """
    collection = where if where.object_id else ref(where.partition_id, OBJECTS_COLLECTION)
    request = requests.query_into(collection, criteria, matches.object_id, match_all, immediate)
    yield from call(request)


def queries_of(
    condition: Condition | Iterable[Criterion] | None, match_all: bool = True
) -> list[Query]:
    """The queries for a condition or for criteria."""
    if isinstance(condition, Condition):
        return condition.queries()
    if isinstance(condition, str | bytes) or not isinstance(condition, Iterable | None):
        raise TypeError(f"a condition compares pyosd.attr(page, number), and is not {condition!r}")
    return [Query(tuple(condition or ()), match_all)]
