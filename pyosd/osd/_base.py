# SPDX-License-Identifier: GPL-2.0-or-later
"""Base class of all kinds of objects.  Nothing is asked of the target before a method is."""

from __future__ import annotations

from enum import IntEnum
from operator import index
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ._current import current
from ._errors import Invalid, NotFound
from ._transport import CALL_IO_MAX, CALL_RECORDS, Call
from ._values import (
    Attribute,
    Settable,
    decode_entries,
    encode_entries,
    encode_names,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

__all__ = ["ID_BYTES", "ListKind", "OSDObject", "ObjectType", "unsigned"]

PAGE_ALL = 0xFFFFFFFF
ID_BYTES = 8


class ObjectType(IntEnum):
    """Types of objects (T10 OSD-2)."""

    ABSENT = 0
    ROOT = 0x01
    PARTITION = 0x02
    COLLECTION = 0x40
    USER_OBJECT = 0x80


class ListKind(IntEnum):
    """Kinds of lists of LIST (target/object/object.h)."""

    PARTITIONS = 0
    USER_OBJECTS = 1
    COLLECTIONS = 2
    MEMBERS = 3


Self = TypeVar("Self", bound="OSDObject")


def unsigned(value: int, what: str) -> int:
    """The number, if a call can carry it.  Raises: Invalid; TypeError: it is none."""
    number = index(value)
    if not 0 <= number < 1 << 64:
        raise Invalid(f"{what} is 0 to 2**64 - 1, not {number}")
    return number


def batches(entries: list[bytes]) -> Iterator[bytes]:
    """As many entries to a call as it carries."""
    whole = b"".join(entries)
    if len(entries) <= CALL_RECORDS and len(whole) <= CALL_IO_MAX:
        if whole:
            yield whole
        return
    batch: list[bytes] = []
    size = 0
    for entry in entries:
        if len(batch) == CALL_RECORDS or size + len(entry) > CALL_IO_MAX:
            yield b"".join(batch)
            batch, size = [], 0
        batch.append(entry)
        size += len(entry)
    if batch:
        yield b"".join(batch)


class OSDObject:
    """Common part of all kinds of objects: ids, existence, attributes.

    partition_id and object_id are numbers of 64 bits; 0: the kind of object has no such id.
    Objects of the same kind and ids are equal.  They can be members of sets and keys of dictionaries.

    >>> u == osd.userobject(u.partition_id, u.object_id)
    True

    Raises: Invalid: an id that is no number of 64 bits.
    """

    object_type: ClassVar[ObjectType]

    def __init__(self, partition_id: int, object_id: int) -> None:
        self.partition_id = unsigned(partition_id, "a partition's id")
        self.object_id = unsigned(object_id, "an object's id")

    def _call(self, op: Call, a: int = 0, b: int = 0, body: bytes = b"") -> tuple[int, int, bytes]:
        return current().call(op, self.partition_id, self.object_id, a, b, body)

    def exists(self) -> bool:
        """Whether the object exists and is of this kind.

        >>> u.exists()
        True
        >>> osd.collection(u.partition_id, u.object_id).exists()
        False
        """
        return self._call(Call.TYPE)[0] == self.object_type

    def get(self: Self) -> Self:
        """Check that the object exists, and return it; put() is its counterpart.

        This locks nothing. Others can still remove the object, and later calls then raise NotFound.

        >>> osd.userobject(p.partition_id, 0x7fff0000).get()
        Traceback (most recent call last):
        osd.NotFound: osd.userobject(..., 0x7fff0000) does not exist

        Raises: NotFound: there is no such object, or it is of another kind.
        """
        if not self.exists():
            raise NotFound(f"{self!r} does not exist")
        return self

    def put(self) -> None:
        """End the use of an object from get().  This has no effect.

        >>> u.get().put()
        """

    def getattr(self, names: Iterable[tuple[int, int]]) -> list[Attribute]:
        """Read attributes, as (page, number, Value), in the order of names.

        Args: names: (page, number) of each, numbers of 32 bits.  One call to the target reads 64.
        Returns: an empty Value for an attribute that is not defined.

        >>> u.setattr([(10, 3, "red"), (11, 3, 0xdeadbeef)])
        >>> u.getattr([(10, 3), (10, 4), (11, 3)])
        [(10, 3, b'red'), (10, 4, b''), (11, 3, b'\\x00\\x00\\x00\\x00\\xde\\xad\\xbe\\xef')]
        >>> [value.int for _, _, value in u.getattr([(11, 3)])]
        [3735928559]

        Raises: NotFound, PermissionDenied; Invalid: a page or number of more than 32 bits.
        """
        entries = encode_names(names)
        if 0 < len(entries) <= CALL_RECORDS:
            return self._values(entries)
        values: list[Attribute] = []
        for at in range(0, len(entries), CALL_RECORDS):
            values += self._values(entries[at : at + CALL_RECORDS])
        return values

    def _values(self, names: list[bytes]) -> list[Attribute]:
        """Values of at most 64 attributes, in as many calls as their lengths ask for."""
        try:
            return decode_entries(self._call(Call.GETATTR, body=b"".join(names))[2])
        except Invalid:
            if len(names) == 1:
                raise
        half = len(names) // 2  # they may just have been more than an answer holds
        return self._values(names[:half]) + self._values(names[half:])

    def setattr(self, attributes: Iterable[tuple[int, int, Settable]]) -> None:
        """Set attributes, given as (page, number, value).

        Up to 64 attributes of at most 1 MiB are set in one step, all or none.  More need several steps.

        Args: attributes: a value of str is stored as UTF-8, int as 8 bytes big-endian, bytes-like as
        it is, at most 65,534 bytes.  An empty one makes the attribute undefined.  The pages for
            applications begin at 10000h for user objects, 3001_0000h for partitions and
            6001_0000h for collections; `docs/attributes.md` lists all pages.

        >>> u.setattr([(0x10000, 1, "title"), (0x10000, 2, 7), (0x10000, 3, b"")])
        >>> [number for _, number, _ in u.attributes(0x10000)]
        [1, 2]

        Raises: NotFound, NoSpace; PermissionDenied, also for pages that no script can set; Invalid:
        the page is read-only or of another kind of object, the value is too long or no number of
        64 bits.
        """
        for batch in batches(encode_entries(attributes)):
            self._call(Call.SETATTR, body=batch)

    def attributes(self, page: int = PAGE_ALL) -> Iterator[Attribute]:
        """Defined attributes, as (page, number, Value), ascending.

        Args: page: only attributes of this page.  By default all, also those that the target computes.

        >>> u.setattr([(12, 2, "b"), (12, 1, "a")])
        >>> list(u.attributes(12))
        [(12, 1, b'a'), (12, 2, b'b')]

        Raises: NotFound, PermissionDenied, when the iteration begins.
        """
        skip, more = 0, 1
        while more:
            more, _, body = self._call(Call.LISTATTR, unsigned(page, "a page"), skip)
            before = skip
            for entry in decode_entries(body):
                skip += 1
                yield entry
            if skip == before:
                return

    def _ids(self, kind: ListKind) -> Iterator[int]:
        initial = 0
        while True:
            initial, _, body = self._call(Call.LIST, kind, initial)
            for at in range(0, len(body), ID_BYTES):
                yield int.from_bytes(body[at : at + ID_BYTES], "big")
            if not initial:
                return

    def __eq__(self, other: object) -> bool:
        if type(other) is not type(self):
            return NotImplemented
        return (self.partition_id, self.object_id) == (other.partition_id, other.object_id)

    def __hash__(self) -> int:
        return hash((self.object_type, self.partition_id, self.object_id))

    def __repr__(self) -> str:
        return f"osd.{type(self).__name__}({self.partition_id:#x}, {self.object_id:#x})"
