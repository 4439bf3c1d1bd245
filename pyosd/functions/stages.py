# SPDX-License-Identifier: GPL-2.0-or-later
"""Stages: functions that the data of objects pass through, as attributes name them.  Pure.

Not here: the commands that read and set the attributes (attaching.py).
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from pyosd.types import (
    ROOT,
    AttributeId,
    AttributeValue,
    Buffer,
    ObjectRef,
    ObjectType,
    check_ref,
    ref,
)
from pyosd.wire.attributes import Page

__all__ = ["MOST", "FunctionStage", "decode", "encode", "stage_args", "stage_ids"]

MOST = 16
"""Stages of one object, collection, partition or root."""
_HEADER = struct.Struct(">BBBBHHQQ")
_FRAME = struct.Struct(">HHIQQ")
_NONE, _FUNCTION = 0, 1


@dataclass(frozen=True)
class FunctionStage:
    """A function that data pass through.

    function: its object; None: no function, and none inherited.
    method: the entry point that a READ calls; "": the first of the function.
    parameters: text for the function.
    inherited: whether the user objects in the collection, the partition or the root inherit it.
    """

    function: ObjectRef | None
    method: str = ""
    parameters: str = ""
    inherited: bool = True


_PAGES = {
    ObjectType.ROOT: Page.ROOT_STACK,
    ObjectType.PARTITION: Page.PARTITION_STACK,
    ObjectType.COLLECTION: Page.COLLECTION_STACK,
    ObjectType.USER_OBJECT: Page.STACK,
}


def stage_ids(kind: ObjectType) -> list[AttributeId]:
    """The attributes that the stages of such an object can have."""
    return [AttributeId(_PAGES[kind], number) for number in range(1, MOST + 1)]


def encode(kind: ObjectType, stages: Sequence[FunctionStage]) -> list[AttributeValue]:
    """The attributes to set for stages in the order of a READ.  The others become undefined.

    Raises: ValueError: there are too many, or a text is too long.  TypeError: one is no stage.
    """
    if len(stages) > MOST:
        raise ValueError(f"an object has at most {MOST} stages, not {len(stages)}")
    for each in stages:
        if not isinstance(each, FunctionStage):
            named = type(each).__name__
            raise TypeError(f"a stage is pyosd.functions.FunctionStage(function.id), not {named}")
    values = [encode_one(each) for each in reversed(stages)]  # numbers are the order of a WRITE
    values += [b""] * (MOST - len(values))
    return [
        AttributeValue(*place, value) for place, value in zip(stage_ids(kind), values, strict=True)
    ]


def check_parameters(parameters: object) -> None:
    """Raises: TypeError: they are no text, such as a dict."""
    if not isinstance(parameters, str):
        raise TypeError(f"parameters are text, as 'level=1&word=a', not {parameters!r}")


def encode_one(stage: FunctionStage) -> bytes:
    """The value of one stage.  Raises: ValueError, TypeError."""
    if stage.function is not None:
        check_ref("function", stage.function)
    check_parameters(stage.parameters)
    method, parameters = stage.method.encode(), stage.parameters.encode()
    if len(method) > 64 or len(parameters) > 1024:
        raise ValueError("an entry point has at most 64 bytes, parameters have at most 1024")
    kind, named = (_NONE, ROOT) if stage.function is None else (_FUNCTION, stage.function)
    lengths = (len(method), len(parameters), 0)
    ids = (named.partition_id, named.object_id)
    header = _HEADER.pack(kind, stage.inherited, 0, *lengths, *ids)
    return header + method + parameters


def decode(values: Iterable[AttributeValue]) -> list[FunctionStage]:
    """The stages in the order of a READ.  Raises: ValueError: a value is none of a stage."""
    found = sorted((each.number, each.value) for each in values if each.value)
    return [decode_one(value) for _, value in reversed(found)]


def decode_one(value: bytes) -> FunctionStage:
    """One stage.  Raises: ValueError."""
    if len(value) < _HEADER.size:
        raise ValueError("an attribute of the stack is too short")
    kind, inherited, _, method, parameters, _, partition, obj = _HEADER.unpack_from(value)
    texts = value[_HEADER.size :]
    if len(texts) != method + parameters:
        raise ValueError("an attribute of the stack has another length than it says")
    function = ref(partition, obj) if kind == _FUNCTION else None
    return FunctionStage(
        function, texts[:method].decode(), texts[method:].decode(), bool(inherited)
    )


def stage_args(data: Buffer, parameters: str) -> bytes:
    """The arguments that a function gets from a READ of an object with these stored bytes.

    Raises: ValueError: the parameters are too long.
    """
    text, view = parameters.encode(), memoryview(data)
    if len(text) > 1024:
        raise ValueError("parameters have at most 1024 bytes")
    return b"".join((_FRAME.pack(1, len(text), 0, 0, view.nbytes), text, view))
