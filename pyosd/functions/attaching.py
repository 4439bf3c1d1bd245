# SPDX-License-Identifier: GPL-2.0-or-later
"""Functions that the data of objects pass through: methods of Functions, as dialogues."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from pyosd.commands.attributes import get_attributes, set_attributes
from pyosd.commands.dialogue import Dialogue
from pyosd.errors import Invalid, NotFound, PermissionDenied
from pyosd.functions.stages import FunctionStage, decode, encode, stage_ids
from pyosd.types import ObjectRef, ObjectType, check_ref
from pyosd.wire.attributes import CURRENT_TYPE

__all__ = ["attach", "attached", "detach", "is_of_kind"]


def kind_of(address: ObjectRef) -> Dialogue[ObjectType]:
    """The type of an object.  The target knows whether an id is that of a collection."""
    check_ref("address", address)
    if not address.object_id:
        return ObjectType.PARTITION if address.partition_id else ObjectType.ROOT
    found = yield from get_attributes(address, [CURRENT_TYPE])
    return ObjectType(found[0].value[0])


def is_of_kind(address: ObjectRef, kind: ObjectType) -> Dialogue[bool]:
    """Whether kind_of() says so, for the text of another error: False if it fails."""
    try:
        return (yield from kind_of(address)) is kind
    except (NotFound, PermissionDenied):
        return False


def attach(table: Any, address: ObjectRef, stages: Iterable[FunctionStage]) -> Dialogue[None]:
    """Let the data of objects pass through these functions, and no longer through others.

    A READ passes the stages in this order.  An object has its own stages, or else inherits those of its
    collection, its partition, or the root.  If several of its collections have stages, it inherits
    those of the collection with the lowest id.

    Args:
        address: a user object; or a collection, a partition or the root, for the objects in it.
        stages: at most 16.  FunctionStage(None) alone means none, and inherits none.

    Raises: OSDError: a function is not active, or has no contract; ValueError;
        TypeError: a stage is another object, such as a Function.
    """
    if not isinstance(stages, Iterable):
        stages = [stages]
    kind = yield from kind_of(address)
    try:
        yield from set_attributes(address, encode(kind, list(stages)))
    except Invalid as error:
        needs = "an active function that has a contract, and one of its entry points"
        error.text = f"a stage needs {needs} ({error.text})"
        raise


def detach(table: Any, address: ObjectRef) -> Dialogue[None]:
    """Remove the stages of an object, a collection, a partition or the root."""
    yield from attach(table, address, [])


def attached(table: Any, address: ObjectRef) -> Dialogue[list[FunctionStage]]:
    """The stages of an object, a collection, a partition or the root itself, in the order of a READ."""
    kind = yield from kind_of(address)
    return decode((yield from get_attributes(address, stage_ids(kind))))
