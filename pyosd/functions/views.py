# SPDX-License-Identifier: GPL-2.0-or-later
"""Views: partitions whose objects show the data of another partition's objects, through functions.

The methods of Functions for them, as dialogues.  docs/views.md, "Views".
"""

from __future__ import annotations

import struct
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from pyosd import errors
from pyosd.commands.attributes import get_attribute, set_attributes
from pyosd.commands.collections import list_objects, list_partitions
from pyosd.commands.dialogue import Dialogue
from pyosd.commands.objects import (
    create_and_write,
    create_partition,
    remove,
    remove_partition,
)
from pyosd.functions.attaching import attach, attached
from pyosd.functions.stages import FunctionStage
from pyosd.types import AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Page
from pyosd.wire.sense import CONTRACT

__all__ = ["View", "shown_base", "view", "view_create", "view_refresh", "view_remove", "views"]

SOURCE = 17
_IDS = struct.Struct(">QQ")
_WRITABLE = b"\1"


def _flags(writable: bool) -> bytes:
    return _WRITABLE if writable else b""


@dataclass(frozen=True)
class View:
    """A view of a partition.  stages: in the order of a READ.  writable: WRITEs change the base."""

    id: PartitionId
    base: PartitionId
    stages: tuple[FunctionStage, ...]
    writable: bool = False


def view_create(
    table: Any,
    base: PartitionId,
    stages: Iterable[FunctionStage],
    requested_id: int = 0,
    *,
    name: str = "",
    writable: bool = False,
) -> Dialogue[View]:
    """Make a partition whose objects show the data of the objects of another one.

    Each object of the base has an object with the same id in the view, also those that are made
    later.  It shows what a READ of the base object returns now and later, passed through the stages.
    It takes no space.  A reader needs READ for it, and no permission for the base.

    Args:
        base: the partition.
        stages: at most 16; none: the data as they are.
        requested_id: of the view, 0: the target picks.
        name: of the view, as a partition's; "": none.
        writable: a WRITE of an object passes the inverse functions, and changes the base object.
            Objects that are made in the view, or removed from it, are those of the base.

    Raises: OSDError: a function is not active, or has no contract; Invalid: the base has 16 views;
        PermissionDenied: no READ for the base and its objects, or no WRITE, CREATE and REMOVE if
        writable.  What was made is removed then.
    """
    made = yield from create_partition(requested_id, name=name)
    try:
        yield from attach(table, ref(made), [*stages])
        value = base.to_bytes(8) + _flags(writable)
        marker = AttributeValue(Page.PARTITION_STACK, SOURCE, value)
        yield from set_attributes(ref(made), [marker])
        yield from view_refresh(table, made)
        return (yield from view(table, made))
    except errors.OSDError:
        yield from remove_partition(made, contents=True)
        raise


def view(table: Any, partition: PartitionId) -> Dialogue[View]:
    """A view.  Raises: NotFound: the partition is none."""
    shown = yield from shown_base(partition)
    if shown is None:
        raise errors.NotFound(0, 0, 0, f"partition {partition:#x} is no view")
    stages = yield from attached(table, ref(partition))
    return View(partition, shown[0], tuple(stages), shown[1])


def shown_base(partition: PartitionId) -> Dialogue[tuple[PartitionId, bool] | None]:
    """The base of a view, and whether the view is writable; None: the partition is none."""
    value = yield from get_attribute(ref(partition), Page.PARTITION_STACK, SOURCE)
    return (PartitionId(int.from_bytes(value[:8])), value[8:] == _WRITABLE) if value else None


def views(table: Any) -> Dialogue[list[View]]:
    """All views of the target."""
    found = []
    for each in (yield from list_partitions()):
        try:
            found.append((yield from view(table, each)))
        except errors.NotFound:
            continue
    return found


def view_refresh(table: Any, partition: PartitionId) -> Dialogue[tuple[int, int]]:
    """Complete a view whose creation was interrupted, or whose base was removed.

    Otherwise the target adds and removes its objects with those of the base.

    Returns: how many objects were added, and removed.
    """
    shows = yield from view(table, partition)
    wanted = {each.object_id: each for each in (yield from list_objects(shows.base))}
    shown = {each.object_id: each for each in (yield from list_objects(partition))}
    added = removed = 0
    for number in sorted(shown.keys() - wanted.keys()):
        removed += yield from drop(shown[number])
    for number in sorted(wanted.keys() - shown.keys()):
        added += yield from add(partition, wanted[number], shows.writable)
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


def add(partition: PartitionId, source: ObjectRef, writable: bool) -> Dialogue[bool]:
    """Make one object of a view; False: the target has, or the base has lost it meanwhile.

    CREATE has no room for the capability of the source.
    """
    value = _IDS.pack(source.partition_id, source.object_id) + _flags(writable)
    shows = AttributeValue(Page.STACK, SOURCE, value)
    try:
        yield from create_and_write(
            partition, b"", requested_id=source.object_id, attributes=[shows]
        )
    except errors.Exists:
        return False
    except errors.Invalid:
        if source in (yield from list_objects(source.partition_id)):
            raise
        return False
    return True


def view_remove(table: Any, partition: PartitionId) -> Dialogue[None]:
    """Remove a view with its objects; the base stays.  Raises: NotFound: the partition is no view."""
    yield from view(table, partition)
    yield from remove_partition(partition, contents=True)
