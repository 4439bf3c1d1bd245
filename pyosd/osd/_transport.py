# SPDX-License-Identifier: GPL-2.0-or-later
"""The calls of this package, and the Protocol of a transport: a sandbox's proxy or a client's session.

Numbers of calls are those of target/wire/proxy_frame.h; a test compares them.
"""

from __future__ import annotations

from collections.abc import Sized
from dataclasses import dataclass, replace
from enum import IntEnum
from typing import TYPE_CHECKING, Protocol, SupportsIndex, overload

from ._results import OVER

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = [
    "CALL_IO_MAX",
    "CALL_RECORDS",
    "Call",
    "Context",
    "Mapping",
    "Snapshot",
    "Transport",
    "unwrapped",
]

CALL_IO_MAX = 1 << 20  # bytes of object data in one call
CALL_RECORDS = 64  # attributes in one call


class Call(IntEnum):
    """The requests of a transport."""

    FINISH = 1
    PROGRESS = 2
    RESULT = 3
    NEXT = 4
    TYPE = 16
    CREATE_PARTITION = 17
    REMOVE_PARTITION = 18
    CREATE = 19
    REMOVE = 20
    CREATE_COLLECTION = 21
    REMOVE_COLLECTION = 22
    COLLECTION_ADD = 23
    COLLECTION_DROP = 24
    LIST = 25
    GETATTR = 26
    SETATTR = 27
    LISTATTR = 28
    QUERY = 29
    SWAPATTR = 30
    ADDATTR = 31
    READ = 32
    WRITE = 33
    APPEND = 34
    TRUNCATE = 35
    CLEAR = 36
    PUNCH = 37
    LENGTH = 38
    FLUSH = 39
    SHARE = 40
    UNSHARE = 41
    ENTER = 42
    CODE = 43
    LEAVE = 44
    NAMES = 45


@dataclass(frozen=True)
class Context:
    """The environment of a job: its arguments, and the ids and type of its zone and surrogate.

    args: the arguments of the submitter. zone_type: 1 root, 2 partition, 40h collection, 80h user
    object. zone, job, array: (partition id, object id). array and array_index are set in jobs of an
    array. over: objects of this member, if the array is one over objects.

    >>> osd.Context(["--quick"], zone_type=2, zone=(0x10000, 0)).args
    ['--quick']
    """

    args: object = None
    zone_type: int = 1
    zone: tuple[int, int] = (0, 0)
    job: tuple[int, int] = (0, 0)
    array: tuple[int, int] = (0, 0)
    array_index: int | None = None
    over: tuple[tuple[int, int], ...] = ()


def unwrapped(context: Context) -> Context:
    """The context with the objects of `over` beside the arguments, if they came around them."""
    args = context.args
    if not isinstance(args, dict) or args.keys() != {OVER, "args"}:
        return context
    batch, objects = args[OVER]["batch"], args[OVER]["objects"]
    index = context.array_index
    mine = objects if index is None else objects[index * batch : (index + 1) * batch]
    ids = tuple((partition, inside) for partition, inside in mine)
    return replace(context, args=args["args"], over=ids)


class Mapping(Sized, Protocol):
    """All bytes of an object: buffer protocol, len(), an index (int) or slice (bytes), changed()."""

    @overload
    def __getitem__(self, key: SupportsIndex, /) -> int: ...
    @overload
    def __getitem__(self, key: slice, /) -> bytes: ...

    def changed(self) -> bool:
        """Whether somebody may have written to the object since this was made."""


class Snapshot(bytes):
    """The result of map() if objects cannot be mapped: a copy."""

    __slots__ = ()

    def changed(self) -> bool:
        """Whether the bytes may have changed since: a copy's do not."""
        return False


class Transport(Protocol):
    """A carrier of calls for use(), such as a sandbox's proxy or a client's session.

    It raises the exceptions of this package, and those of the platform.
    """

    @property
    def context(self) -> Context:
        """The environment of the job."""

    def call(
        self,
        op: int,
        partition_id: int,
        object_id: int,
        a: int = 0,
        b: int = 0,
        body: ReadableBuffer = b"",
    ) -> tuple[int, int, bytes]:
        """Make one call; the answer's a, b and body."""

    def write_long(
        self,
        op: int,
        partition_id: int,
        object_id: int,
        offset: int,
        data: ReadableBuffer,
        b: int = 0,
    ) -> tuple[int, int]:
        """WRITE, APPEND or RESULT of more bytes than one call can carry.

        Returns: a of the first answer, and how many bytes were written, at least one.
        """

    def readinto(
        self, partition_id: int, object_id: int, offset: int, buffer: WriteableBuffer
    ) -> int:
        """Read as one atomic READ, at least one byte before the end.  Returns: how many."""

    def block(self, partition_id: int, object_id: int, offset: int, size: int) -> memoryview | None:
        """Bytes in memory that the caller can keep; None: use readinto()."""

    def map(self, partition_id: int, object_id: int) -> Mapping | None:
        """Map an object's bytes; None: that is not possible."""
