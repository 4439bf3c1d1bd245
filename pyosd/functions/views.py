# SPDX-License-Identifier: GPL-2.0-or-later
"""Views: partitions whose objects show the data of another partition's objects, or of a collection's.

The methods of Functions for them, as dialogues.  docs/views.md, "Views".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyosd import errors
from pyosd.commands.attributes import get_attribute, get_attributes, set_attributes
from pyosd.commands.collections import (
    get_member_attributes,
    list_members,
    list_objects,
    list_partitions,
)
from pyosd.commands.dialogue import Dialogue
from pyosd.commands.objects import (
    create_and_write,
    create_partition,
    remove,
    remove_partition,
)
from pyosd.functions.attaching import attach, is_of_kind
from pyosd.functions.stages import FunctionStage, decode, stage_ids
from pyosd.types import (
    JOBS_COLLECTION,
    AttributeId,
    AttributeValue,
    ObjectRef,
    ObjectType,
    PartitionId,
    ref,
)
from pyosd.wire.attributes import Page
from pyosd.wire.job_status import Number
from pyosd.wire.sense import CONTRACT

__all__ = ["View", "shown_base", "view", "view_create", "view_refresh", "view_remove", "views"]

SOURCE = 17
_IDS = struct.Struct(">QQ")
_WRITABLE = b"\1"
_TRIES = 16
"""To add an object that leaves and joins meanwhile."""
_FLAGS_END = 9
"""The id of the collection comes behind the flags."""


def _flags(writable: bool) -> bytes:
    return _WRITABLE if writable else b""


def _value(source: ObjectRef, writable: bool) -> bytes:
    """The attributes that make a partition a view."""
    base = source.partition_id.to_bytes(8)
    if not source.object_id:
        return base + _flags(writable)
    return base + bytes([writable]) + source.object_id.to_bytes(8)


@dataclass(frozen=True)
class View:
    """A view of a partition or of a collection.

    Attributes:
        stages: in the order of a READ.
        writable: WRITEs change the base.
        collection: id of the collection of the base whose members it shows; 0: it shows all objects.
    """

    id: PartitionId
    base: PartitionId
    stages: tuple[FunctionStage, ...]
    writable: bool = False
    collection: int = 0

    @property
    def source(self) -> ObjectRef:
        """The partition or collection that it shows."""
        return ref(self.base, self.collection)


def view_create(
    table: Any,
    base: PartitionId | ObjectRef,
    stages: Iterable[FunctionStage],
    requested_id: int = 0,
    *,
    name: str = "",
    writable: bool = False,
) -> Dialogue[View]:
    """Make a partition whose objects show the data of another partition, or of a collection.

    Each object of the base, and each that is made later, has an object with the same id in the view.
    If the base is a collection, these are its present members.  A READ in the view returns the data of
    the base object, passed through the stages.  A view takes no space.  Readers need READ for the view,
    and no permission for the base.

    Args:
        base: a partition, or a collection or directory in one.
        stages: at most 16; none: the data are not changed.
        requested_id: of the view; 0: the target chooses.
        name: name of the view on the root; "": none.
        writable: a WRITE passes the inverse functions and changes the base object.  CREATE and REMOVE
            act on the base.  Nothing can be created in a view of a collection.

    Raises: OSDError: a function is not active, or has no contract.  Invalid: the base already has 16
        views, or the collection is absent.  PermissionDenied: READ for the base and its objects is
        missing; if writable, also WRITE, CREATE and REMOVE.  After an error no view is left.
    """
    made = yield from create_partition(requested_id, name=name)
    try:
        yield from attach(table, ref(made), [*stages])
        value = _value(base if isinstance(base, ObjectRef) else ref(base), writable)
        marker = AttributeValue(Page.PARTITION_STACK, SOURCE, value)
        try:
            yield from set_attributes(ref(made), [marker])
        except errors.Invalid as error:
            if isinstance(base, ObjectRef) and (
                yield from is_of_kind(base, ObjectType.USER_OBJECT)
            ):
                error.text = (
                    f"a view shows a partition, a collection or a directory, not object {base}"
                )
            raise
        yield from view_refresh(table, made)
        return (yield from view(table, made))
    except (errors.OSDError, TypeError, ValueError):
        yield from remove_partition(made, contents=True)
        raise


def view(table: Any, partition: PartitionId) -> Dialogue[View]:
    """The view that a partition is.  Raises: NotFound: it is no view."""
    first = AttributeId(Page.PARTITION_STACK, SOURCE)
    ids = [first, *stage_ids(ObjectType.PARTITION)]
    found = yield from get_attributes(ref(partition), ids)
    shown = _base_of(found[0].value)
    if shown is None:
        raise errors.NotFound(0, 0, 0, f"partition {partition:#x} is no view")
    source, writable = shown
    stages = decode(found[1:])
    return View(partition, source.partition_id, tuple(stages), writable, source.object_id)


def shown_base(partition: PartitionId) -> Dialogue[tuple[ObjectRef, bool] | None]:
    """The base of a view, and whether the view is writable; None: the partition is no view."""
    return _base_of((yield from get_attribute(ref(partition), Page.PARTITION_STACK, SOURCE)))


def _base_of(value: bytes) -> tuple[ObjectRef, bool] | None:
    """The base and whether the view is writable, of the attribute that makes a view."""
    if not value:
        return None
    source = ref(PartitionId(int.from_bytes(value[:8])), int.from_bytes(value[_FLAGS_END:]))
    return source, value[8:_FLAGS_END] == _WRITABLE


def _shown_objects(shows: View) -> Dialogue[list[ObjectRef]]:
    """The objects of the base that the view shows."""
    if not shows.collection:
        return (yield from list_objects(shows.base))
    try:
        return (yield from list_members(shows.source))
    except errors.NotFound:  # the collection was removed
        return []


def views(table: Any) -> Dialogue[list[View]]:
    """All views of the target of which the user may read attributes."""
    found = []
    for each in (yield from list_partitions()):
        try:
            found.append((yield from view(table, each)))
        except errors.NotFound:
            continue
        except errors.PermissionDenied as error:
            if not error.verified:
                raise
    return found


def view_refresh(table: Any, partition: PartitionId) -> Dialogue[tuple[int, int]]:
    """Complete a view whose creation was interrupted, or whose base was removed.

    This is needed in no other case: the target keeps the objects of a view like those of the base.

    Returns: how many objects were added, and how many removed.
    """
    shows = yield from view(table, partition)
    wanted = {each.object_id: each for each in (yield from _shown_objects(shows))}
    shown = {each.object_id: each for each in (yield from list_objects(partition))}
    added = removed = 0
    for number in sorted(shown.keys() - wanted.keys()):
        removed += yield from drop(shown[number])
    for number in sorted(wanted.keys() - shown.keys()):
        added += yield from add(shows, wanted[number])
    return added, removed


def drop(obj: ObjectRef) -> Dialogue[bool]:
    """Remove one object of a view, whose source was gone; False: another command has."""
    try:
        yield from remove(obj)
    except errors.NotFound:
        return False
    except errors.OSDError as error:
        if (error.asc, error.ascq) != CONTRACT:
            raise
        return False  # the base has got it again
    return True


def add(shows: View, source: ObjectRef) -> Dialogue[bool]:
    """Make one object of a view.

    Returns: False: the target has made it, the base has lost it meanwhile, or it is an object of a job,
        which views do not show.

    CREATE has no room for the capability of the source.
    """
    value = _IDS.pack(source.partition_id, source.object_id) + _flags(shows.writable)
    marker = AttributeValue(Page.STACK, SOURCE, value)
    for _ in range(_TRIES):
        try:
            yield from create_and_write(
                shows.id, b"", requested_id=source.object_id, attributes=[marker]
            )
        except errors.Exists:
            return False
        except errors.Invalid:
            if source not in (yield from _shown_objects(shows)):
                return False
            if (yield from _is_of_job(source)):
                return False
        else:
            return True
    text = f"what the view {shows.id:#x} shows was removed and made again: make a new view"
    raise errors.Invalid(0, 0, 0, text)


def _is_of_job(obj: ObjectRef) -> Dialogue[bool]:
    """Whether it is the surrogate of a job among the data of its partition, or has a job's result."""
    if (yield from get_attribute(obj, Page.JOB_STATUS, Number.STATE)):
        return True
    wanted = [AttributeId(Page.JOB_STATUS, Number.RESULT_OBJECT)]
    jobs = ref(obj.partition_id, JOBS_COLLECTION)
    try:
        members = yield from get_member_attributes(jobs, wanted)
    except errors.NotFound:  # the partition never had a job
        return False
    results = (each.attributes[0].value for each in members if each.attributes)
    return any(int.from_bytes(each) == obj.object_id for each in results)


def view_remove(table: Any, partition: PartitionId) -> Dialogue[None]:
    """Remove a view with its objects; the base stays.  Raises: NotFound: the partition is no view."""
    yield from view(table, partition)
    yield from remove_partition(partition, contents=True)
