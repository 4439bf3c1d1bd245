# SPDX-License-Identifier: GPL-2.0-or-later
"""Hooks: functions that check changes of objects, or follow them (docs/hooks.md).

The attributes that name them, and the methods of Functions for them, as dialogues.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass, field
from enum import IntFlag
from typing import Any

from pyosd import errors
from pyosd.commands.attributes import get_attribute, get_attributes, set_attributes
from pyosd.commands.dialogue import Dialogue
from pyosd.functions.attaching import is_of_kind
from pyosd.functions.stages import check_parameters
from pyosd.types import AttributeId, AttributeValue, ObjectRef, ObjectType, check_ref, ref
from pyosd.wire.attributes import Page

__all__ = [
    "CURRENT",
    "Hook",
    "HookEvent",
    "decode_hook",
    "encode_hook",
    "follow",
    "hook",
    "hooks",
    "is_current",
    "unhook",
]

DUE, CURRENT = 9, 10
"""Attributes of the hooks' page of a user object."""
MOST = 8
"""Hooks of one object, partition or root."""
_HEADER = struct.Struct(">BBBBHHQQI")
_CHECK, _AFTER = 1, 2


class HookEvent(IntFlag):
    """Events that a function checks before they happen.  AFTER: it follows changes of data instead."""

    CREATE = 1
    WRITE = 2
    REMOVE = 4
    SET = 8
    AFTER = 16
    CHANGES = CREATE | WRITE | REMOVE | SET


@dataclass(frozen=True)
class Hook:
    """A function that checks or follows changes.

    events: those that it checks; CREATE is only for a partition or the root.
    method: entry point; "": the first of the function.  parameters: text for the function.
    page: with AFTER, the page of the derived attributes.
    at, number: the object, partition or root that has the hook, and the place there; set by hook().
    """

    function: ObjectRef
    events: HookEvent = HookEvent.CHANGES
    method: str = ""
    parameters: str = ""
    page: int = 0
    at: ObjectRef = field(default=ref(0), compare=False)
    number: int = field(default=0, compare=False)


def page_of(address: ObjectRef) -> Page:
    """The page of a root, a partition or a user object."""
    check_ref("address", address)
    if address.object_id:
        return Page.HOOKS
    return Page.PARTITION_HOOKS if address.partition_id else Page.ROOT_HOOKS


def encode_hook(hook: Hook) -> bytes:
    """The value of its attribute.  Raises: ValueError, TypeError."""
    check_parameters(hook.parameters)
    method, parameters = hook.method.encode(), hook.parameters.encode()
    if len(method) > 64 or len(parameters) > 1024:
        raise ValueError("an entry point has at most 64 bytes, parameters have at most 1024")
    after = HookEvent.AFTER in hook.events
    if after and (hook.events != HookEvent.AFTER or not hook.page):
        raise ValueError("a hook checks changes, or follows them and names a page of attributes")
    if not after and (not hook.events or hook.page):
        raise ValueError("a hook that checks names events and no page")
    kind, events = (_AFTER, 0) if after else (_CHECK, int(hook.events))
    lengths = (len(method), len(parameters), 0)
    ids = (hook.function.partition_id, hook.function.object_id)
    return _HEADER.pack(kind, events, 0, *lengths, *ids, hook.page) + method + parameters


def decode_hook(address: ObjectRef, attribute: AttributeValue) -> Hook:
    """The hook of an attribute.  Raises: ValueError: its value is none of a hook."""
    value = attribute.value
    if len(value) < _HEADER.size:
        raise ValueError("an attribute of a hook is too short")
    kind, events, _, method, parameters, _, partition, obj, page = _HEADER.unpack_from(value)
    texts = value[_HEADER.size :]
    if len(texts) != method + parameters:
        raise ValueError("an attribute of a hook has another length than it says")
    return Hook(
        ref(partition, obj),
        HookEvent.AFTER if kind == _AFTER else HookEvent(events),
        texts[:method].decode(),
        texts[method:].decode(),
        page,
        address,
        attribute.number,
    )


def hooks(table: Any, address: ObjectRef) -> Dialogue[list[Hook]]:
    """The hooks of an object, a partition or the root itself, in the order in which they run.

    Raises: Invalid: it is a collection.
    """
    ids = [AttributeId(page_of(address), number) for number in range(1, MOST + 1)]
    try:
        found = yield from get_attributes(address, ids)
    except errors.Invalid as error:
        if (yield from is_of_kind(address, ObjectType.COLLECTION)):
            error.text = (
                f"{address} is a collection or directory, which has no hooks: name its partition"
            )
        raise
    return [decode_hook(address, each) for each in found if each.value]


def hook(table: Any, address: ObjectRef, hook: Hook) -> Dialogue[Hook]:
    """Let a function check or follow changes of objects.

    A hook that already exists with the same function, entry point and kind gets the new values.

    Args: address: a user object; or a partition or the root, for all objects in it.

    Returns: the hook, with at and number.

    Raises: Invalid: the function is not active, or has no such entry point; Conflict: there are already
        8 hooks; ValueError, TypeError.
    """
    if not isinstance(hook, Hook) or not isinstance(hook.events, HookEvent):
        raise TypeError("a hook is pyosd.functions.Hook(function.id, HookEvent.WRITE)")
    check_ref("function", hook.function)
    there = yield from hooks(table, address)
    after = HookEvent.AFTER in hook.events
    same = (
        each.number
        for each in there
        if (each.function, each.method) == (hook.function, hook.method)
        and (HookEvent.AFTER in each.events) == after
    )
    taken = {each.number for each in there}
    free = (each for each in range(1, MOST + 1) if each not in taken)
    number = next(same, 0) or next(free, 0)
    if not number:
        raise errors.Conflict(0, 0, 0, f"{address} has {MOST} hooks already")
    value = AttributeValue(page_of(address), number, encode_hook(hook))
    try:
        yield from set_attributes(address, [value])
    except errors.Invalid as error:
        needs = "an active function, one of its entry points"
        error.text = f"a hook needs {needs}, and a page of user objects ({error.text})"
        raise
    return decode_hook(address, value)


def unhook(table: Any, address: ObjectRef, number: int | None = None) -> Dialogue[None]:
    """Remove a hook of an object, a partition or the root itself.  number None: all hooks."""
    numbers = range(1, MOST + 1) if number is None else [number]
    values = [AttributeValue(page_of(address), each, b"") for each in numbers]
    yield from set_attributes(address, values)


def follow(table: Any, obj: ObjectRef) -> Dialogue[None]:
    """Run the functions that follow changes of a user object, as if its data had changed."""
    yield from set_attributes(obj, [AttributeValue(Page.HOOKS, DUE, b"\x01")])


def is_current(table: Any, obj: ObjectRef) -> Dialogue[bool]:
    """Whether all derived attributes of a user object are those of its present data."""
    return bool((yield from get_attribute(obj, Page.HOOKS, CURRENT)))
