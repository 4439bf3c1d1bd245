# SPDX-License-Identifier: GPL-2.0-or-later
"""Ids and value classes shared by the whole package.

Lives here: what an object is called, what an attribute is, what a listing gives.  Those of which one
answer holds thousands are named tuples, which cost a third of a frozen dataclass to make.
Not here: I/O, bytes of the wire (wire/), exceptions (errors.py).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from enum import IntEnum
from os import PathLike
from typing import ClassVar, NamedTuple, NewType, Protocol, TypeAlias, runtime_checkable

PartitionId = NewType("PartitionId", int)
"""A partition id: 0 for the root, else at least 1_0000h; unsigned 64 bits."""
ObjectId = NewType("ObjectId", int)
"""Id of a user object or collection inside a partition: 0 for the partition itself; unsigned 64
bits.
"""
AttributePageNumber = NewType("AttributePageNumber", int)
"""Number of an attribute page, unsigned 32 bits."""
AttributeNumber = NewType("AttributeNumber", int)
"""Number of an attribute inside its page, unsigned 32 bits."""

Buffer: TypeAlias = bytes | bytearray | memoryview
"""Bytes to send.  A memoryview must be C-contiguous; item size does not matter."""
MutableBuffer: TypeAlias = bytearray | memoryview
"""Buffer for received bytes.  A memoryview must be writable, C-contiguous, of item size 1."""

FIRST_ID = 0x10000
"""The lowest id a partition, collection or user object can have."""
U64_MAX = 0xFFFF_FFFF_FFFF_FFFF
_SHOWN_MOST = 80  # characters of a wrong value


OBJECTS_COLLECTION = 0x1000
JOBS_COLLECTION = 0x1001
"""Object id of the collection of all surrogates in each partition."""
"""The collection that every user object of a partition is a member of."""


class TaskManagement(IntEnum):
    """Functions of PERFORM TASK MANAGEMENT FUNCTION."""

    ABORT_TASK = 0x01
    ABORT_TASK_SET = 0x02
    CLEAR_TASK_SET = 0x04
    LOGICAL_UNIT_RESET = 0x08
    I_T_NEXUS_RESET = 0x10
    CLEAR_ACA = 0x40
    QUERY_TASK = 0x80
    QUERY_TASK_SET = 0x81
    QUERY_UNIT_ATTENTION = 0x82


class ObjectType(IntEnum):
    """OSD object types, as in capabilities and in the Current Command page."""

    ROOT = 0x01
    PARTITION = 0x02
    COLLECTION = 0x40
    USER_OBJECT = 0x80


@dataclass(frozen=True, order=True)
class ObjectRef:
    """The ids of an object: (0, 0) is the root, (pid, 0) a partition, (pid, oid) an object in it."""

    partition_id: PartitionId
    object_id: ObjectId = ObjectId(0)

    def __post_init__(self) -> None:
        try:
            fit = 0 <= self.partition_id <= U64_MAX and 0 <= self.object_id <= U64_MAX
        except TypeError:
            wrong = self.object_id if isinstance(self.partition_id, int) else self.partition_id
            raise TypeError(
                f"an id is a number, as 0x10000, not {wrong!r}; ObjectRef.parse() reads text"
            ) from None
        if not fit:
            raise ValueError(f"ids must fit 64 bits: {self.partition_id}, {self.object_id}")

    @classmethod
    def parse(cls, text: str) -> ObjectRef:
        """Read an address: ``root``, ``PID`` or ``PID/OID``, each decimal or 0x.

        Raises: ValueError: the text is none of these; nothing else.
        """
        if text == "root":
            return ROOT
        try:
            partition, slash, inside = text.partition("/")
        except (AttributeError, TypeError):
            check_str("the text of an id", text)
            raise
        try:
            return ref(int(partition, 0), int(inside, 0) if slash else 0)
        except ValueError:
            raise ValueError(
                f"'{text}' is not root, PID or PID/OID (64 bits, decimal or 0x)"
            ) from None

    def __str__(self) -> str:
        if not self.partition_id and not self.object_id:
            return "root"
        if not self.object_id:
            return f"{self.partition_id:#x}"
        return f"{self.partition_id:#x}/{self.object_id:#x}"


@runtime_checkable
class ObjectHandle(Protocol):
    """An object of the package osd, such as osd.userobject(...), which this package does not import."""

    partition_id: int
    object_id: int
    object_type: ClassVar[int]


def ref(partition_id: int = 0, object_id: int = 0) -> ObjectRef:
    """Shorthand: an ObjectRef of plain integers.  Raises: ValueError: more than 64 bits."""
    return ObjectRef(PartitionId(partition_id), ObjectId(object_id))


def _is_path(value: object) -> bool:
    return isinstance(value, str) and value.startswith(("/", "osd:"))


def shown(value: object) -> str:
    """A wrong value in the text of an exception, which a long one does not fill."""
    text = repr(value)
    return text if len(text) <= _SHOWN_MOST else text[:_SHOWN_MOST] + "..."


def check_ref(name: str, value: object) -> None:
    """An argument that names an object.  Raises: TypeError: it is none, such as a path."""
    if not isinstance(value, ObjectRef):
        hint, given = "", shown(value)
        if _is_path(value):
            hint = f": target.fs.resolve({given}) finds it"
        elif isinstance(value, str) and value[:1].isdigit():
            hint = f": pyosd.ObjectRef.parse({given}) reads the text of an id"
        elif isinstance(value, str) and name == "function":
            hint = f": target.functions.show({given}).id finds it"
        elif isinstance(getattr(value, "id", None), ObjectRef):
            given, hint = shown(type(value)), ": give its id"
        raise TypeError(f"{name} is an ObjectRef, as pyosd.ref(0x10000), not {given}{hint}")


def check_number(name: str, value: object) -> None:
    """An argument that is a whole number.  Raises: TypeError: it is none, such as a path."""
    if not hasattr(value, "__index__"):
        example, hint = "", ""
        if name.endswith(("id", "partition")):
            example = ", as 0x10000"
            if _is_path(value):
                hint = f": target.fs.resolve({shown(value)}).partition_id finds it"
        if isinstance(value, ObjectRef):
            hint = ": give its partition_id or object_id"
        elif isinstance(value, str) and value[:1].isdigit():
            hint = f": int({shown(value)}, 0) reads text"
        raise TypeError(f"{name} is a number{example}, not {shown(value)}{hint}")


def check_dict(name: str, value: object) -> None:
    """An argument that has names and values.  Raises: TypeError: it is none, such as a list."""
    if not isinstance(value, Mapping):
        raise TypeError(f"{name} is a dict, not {shown(value)}")


def check_file(name: str, value: object) -> None:
    """An argument that is read.  Raises: TypeError: it is none, such as a path."""
    if not hasattr(value, "read"):
        raise TypeError(f"{name} is a file, as open(path, 'rb') returns, not {shown(value)}")


def check_buffer(name: str, value: object) -> None:
    """An argument that bytes are put into.  Raises: TypeError: it is none, such as bytes."""
    try:
        writable = not memoryview(value).readonly  # type: ignore[arg-type]
    except TypeError:
        writable = False
    if not writable:
        raise TypeError(f"{name} is a bytearray or another buffer to fill, not {shown(value)}")


def check_refs(name: str, value: object) -> None:
    """A list of arguments that name objects.  Raises: TypeError: it is none, or holds others."""
    _check_list(name, value, ObjectRef, "ObjectRef, as pyosd.ref(0x10000, 0x10000)")


def check_attribute_ids(name: str, value: object) -> None:
    """A list of attributes without values.  Raises: TypeError: it is none, or holds others."""
    _check_list(name, value, AttributeId, "pyosd.AttributeId(page, number)")


def check_attribute_values(name: str, value: object) -> None:
    """A list of attributes with values.  Raises: TypeError: it is none, or holds others."""
    _check_list(name, value, AttributeValue, "pyosd.AttributeValue(page, number, value)")


def _check_list(name: str, value: object, kind: type, words: str) -> None:
    if isinstance(value, Iterator):  # its items are gone
        return
    if not isinstance(value, Iterable) or any(not isinstance(each, kind) for each in value):
        raise TypeError(f"{name} is a list of {words}, not {shown(value)}")


def no_target(value: object) -> TypeError:
    """The exception for an argument that should be a target."""
    return TypeError(f"the target is what pyosd.connect() returns, not {shown(value)}")


def check_str(name: str, value: object) -> None:
    """An argument that is text.  Raises: TypeError: it is none, such as the ids of an object."""
    if not isinstance(value, str):
        hint = ""
        if isinstance(value, ObjectRef):
            hint = ": the methods of the target itself take an ObjectRef"
        elif isinstance(value, bytes):
            hint = ": os.fsdecode() makes it a str"
        elif isinstance(value, PathLike):
            hint = ": str() makes it one"
        raise TypeError(f"{name} is a str, not {shown(value)}{hint}")


def check_bytes(name: str, value: object) -> None:
    """An argument that is data.  Raises: TypeError: it is none, such as text."""
    hint = ": its method encode() makes them" if isinstance(value, str) else ""
    try:
        memoryview(value).release()  # type: ignore[arg-type]
    except TypeError:
        raise TypeError(f"{name} are bytes, not {shown(value)}{hint}") from None


ROOT = ref()


class AttributeId(NamedTuple):
    """Address of an attribute: page and number, unsigned 32 bits each."""

    page: int
    number: int

    def __str__(self) -> str:
        return f"{self.page:#x}/{self.number:#x}"


class AttributeValue(NamedTuple):
    """An attribute with its value; an empty value means "undefined" (and undefines it when set)."""

    page: int
    number: int
    value: bytes

    @property
    def id(self) -> AttributeId:
        """Page and number, without the value."""
        return AttributeId(self.page, self.number)

    @property
    def uint(self) -> int:
        """The value as an unsigned big-endian number; 0 when undefined."""
        return int.from_bytes(self.value, "big")

    @property
    def text(self) -> str:
        """The value as UTF-8 text without NUL padding; undecodable bytes are replaced."""
        return self.value.rstrip(b"\0").decode("utf-8", "replace")


class ObjectAttributes(NamedTuple):
    """The attributes of one object, in an answer about several objects."""

    object_id: ObjectId
    object_type: int
    attributes: tuple[AttributeValue, ...]


class ListResult(NamedTuple):
    """Answer of LIST and LIST COLLECTION.

    ids: ascending.  continuation_id: first id that did not fit; 0: the list is complete.
    total_count: number of ids from the initial id on, with those that did not fit.
    members: the attributes of each id, if they were requested.
    """

    ids: tuple[ObjectId, ...]
    continuation_id: ObjectId
    list_identifier: int
    total_count: int
    changed: bool
    members: tuple[ObjectAttributes, ...] = ()


@dataclass(frozen=True)
class Sense:
    """Descriptor-format sense data, decoded.  None or empty: no such descriptor."""

    sense_key: int
    asc: int
    ascq: int
    field_pointer: int | None = None
    field_in_data_out: bool = False
    information: int | None = None
    command_information: int | None = None
    named_object: ObjectRef | None = None
    not_initiated: int = 0
    completed: int = 0
    attributes: tuple[AttributeId, ...] = ()
    response_integrity_check_value: bytes = b""
    deferred: bool = False
    text: str = ""
