# SPDX-License-Identifier: GPL-2.0-or-later
"""Requests on collections and lists; QUERY.

Source: osd2-wire 3.2, 3.8-3.10.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Unpack

from pyosd.osd._query import Criterion, encode_query_list
from pyosd.requests.base import IMMED_TR, Extra, extension_capabilities, on, precondition
from pyosd.types import ObjectRef, ref
from pyosd.wire.cdb import LIST_HEADER_LENGTH, Descriptor, Request, ServiceAction

_LIST_ATTR = 0x40


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
    """CREATE USER TRACKING COLLECTION (8894h); source 0: starts empty, else with its members."""
    return Request(
        ServiceAction.CREATE_USER_TRACKING_COLLECTION,
        partition_id,
        requested_collection_id,
        address=source_collection_id,
        descriptors=(extension_capabilities(),) if source_collection_id else (),
        **extra,
    )


def remove_collection(
    collection: ObjectRef,
    with_members: bool = False,
    if_members: bytes | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """REMOVE COLLECTION (8896h); with_members (FCR): drop memberships first, keep objects.

    if_members: only if the membership has this version.
    """
    return Request(
        ServiceAction.REMOVE_COLLECTION,
        collection.partition_id,
        collection.object_id,
        bits11=1 if with_members else 0,
        descriptors=precondition(if_members=if_members),
        **extra,
    )


def remove_member_objects(
    collection: ObjectRef,
    immediate: bool = False,
    if_members: bytes | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """REMOVE MEMBER OBJECTS (88A1h): every member user object is removed.

    immediate (IMMED_TR): answered at once, the Command Tracking page tells how far it is.
    if_members: only if the membership has this version.
    """
    return Request(
        ServiceAction.REMOVE_MEMBER_OBJECTS,
        collection.partition_id,
        collection.object_id,
        bits11=IMMED_TR if immediate else 0,
        descriptors=precondition(if_members=if_members),
        **extra,
    )


def get_member_attributes(collection: ObjectRef, **extra: Unpack[Extra]) -> Request:
    """GET MEMBER ATTRIBUTES (88A2h): the get list applies to every member."""
    return on(ServiceAction.GET_MEMBER_ATTRIBUTES, collection, **extra)


def set_member_attributes(
    collection: ObjectRef,
    immediate: bool = False,
    if_members: bytes | None = None,
    **extra: Unpack[Extra],
) -> Request:
    """SET MEMBER ATTRIBUTES (88A3h): the set list applies to every member; immediate: IMMED_TR.

    if_members: only if the membership has this version.
    """
    return Request(
        ServiceAction.SET_MEMBER_ATTRIBUTES,
        collection.partition_id,
        collection.object_id,
        bits11=IMMED_TR if immediate else 0,
        descriptors=precondition(if_members=if_members),
        **extra,
    )


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


# ---- QUERY ------------------------------------------------------------------------------------

_QUERY_LIST = 0x0002


def query(
    collection: ObjectRef,
    criteria: Iterable[Criterion],
    allocation_length: int,
    match_all: bool = True,
    *,
    plain: bool = False,
    **extra: Unpack[Extra],
) -> Request:
    """QUERY (88A0h) with the matching ids in Data-In.

    match_all: every criterion, else at least one; no criteria: every member matches.
    plain: the list as Data-Out of its own, as before draft r04 (a target's osc-compat switch).
    """
    content = encode_query_list(criteria, match_all)
    return Request(
        ServiceAction.QUERY,
        collection.partition_id,
        collection.object_id,
        allocation_length,
        word48=len(content) if plain else None,
        descriptors=() if plain else (Descriptor(_QUERY_LIST, content),),
        data=content if plain else b"",
        data_in_length=allocation_length,
        **extra,
    )


def query_into(
    collection: ObjectRef,
    criteria: Iterable[Criterion],
    matches_collection_id: int,
    match_all: bool = True,
    immediate: bool = False,
    **extra: Unpack[Extra],
) -> Request:
    """QUERY (88A0h) that makes the matching ids the members of a tracking collection.

    immediate (IMMED_TR): answered at once, that collection's Command Tracking page tells how far
    it is.
    """
    content = encode_query_list(criteria, match_all)
    return Request(
        ServiceAction.QUERY,
        collection.partition_id,
        collection.object_id,
        address=matches_collection_id,
        bits11=IMMED_TR if immediate else 0,
        descriptors=(Descriptor(_QUERY_LIST, content), extension_capabilities()),
        **extra,
    )
