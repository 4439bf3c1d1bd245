# SPDX-License-Identifier: GPL-2.0-or-later
"""The four kinds of objects, named by their ids; nothing is asked of the target before a method is.

    p = osd.partition(0x10000); u = osd.userobject(0x10000, 0x10001)

get() takes a reference: it raises NotFound where the object is not, and put() lets go of it.
"""

from __future__ import annotations

import heapq
from enum import IntEnum
from itertools import chain
from typing import TYPE_CHECKING, ClassVar, TypeVar

from ._data import Data
from ._errors import Invalid, NotFound
from ._grep import SPAN, compiled, find, grep
from ._query import Query
from ._transport import CALL_IO_MAX, CALL_RECORDS, Call, current
from ._values import (
    Attribute,
    Settable,
    decode_entries,
    encode_entries,
    encode_names,
    encode_value,
)

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from ._grep import Found, Line, Pattern
    from ._query import Condition

__all__ = ["OSDObject", "collection", "object_of_type", "partition", "root", "userobject"]

PAGE_ALL = 0xFFFFFFFF
INDEX_PAGE = 0x50000001
INDEX_READY = 2
ID_BYTES = 8


class ObjectType(IntEnum):
    """Types of objects (T10 OSD-2)."""

    ABSENT = 0
    ROOT = 0x01
    PARTITION = 0x02
    COLLECTION = 0x40
    USER_OBJECT = 0x80


class ListKind(IntEnum):
    """What LIST lists (target/object/object.h)."""

    PARTITIONS = 0
    USER_OBJECTS = 1
    COLLECTIONS = 2
    MEMBERS = 3


Self = TypeVar("Self", bound="OSDObject")


def batches(entries: list[bytes]) -> Iterator[bytes]:
    """As many entries to a call as it carries."""
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
    """What all kinds have in common: existence, attributes, a reference."""

    object_type: ClassVar[ObjectType]

    def __init__(self, partition_id: int, object_id: int) -> None:
        self.partition_id = partition_id
        self.object_id = object_id

    def _call(self, op: Call, a: int = 0, b: int = 0, body: bytes = b"") -> tuple[int, int, bytes]:
        return current().call(op, self.partition_id, self.object_id, a, b, body)

    def exists(self) -> bool:
        """Whether there is such an object, of this type."""
        return self._call(Call.TYPE)[0] == self.object_type

    def get(self: Self) -> Self:
        """Take a reference; NotFound if there is no such object."""
        if not self.exists():
            raise NotFound(f"{self!r} does not exist")
        return self

    def put(self) -> None:
        """Let go of the reference."""

    def getattr(self, names: Iterable[tuple[int, int]]) -> list[Attribute]:
        """Values of attributes named (page, number), in that order; undefined ones are empty."""
        values: list[Attribute] = []
        for batch in batches(encode_names(names)):
            values += decode_entries(self._call(Call.GETATTR, body=batch)[2])
        return values

    def setattr(self, attributes: Iterable[tuple[int, int, Settable]]) -> None:
        """Set attributes (page, number, value), all or none up to 64 of them.

        str is stored as UTF-8, int as 8 bytes big-endian, bytes as they are; an empty value makes
        the attribute undefined.
        """
        for batch in batches(encode_entries(attributes)):
            self._call(Call.SETATTR, body=batch)

    def attributes(self, page: int = PAGE_ALL) -> Iterator[Attribute]:
        """Defined attributes of a page, or of all."""
        skip, more = 0, 1
        while more:
            more, _, body = self._call(Call.LISTATTR, page, skip)
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


class Searchable(OSDObject):
    """What has user objects that can be looked for."""

    def query(self, condition: Condition | None = None) -> Iterator[userobject]:
        """User objects whose attributes match, ascending; without a condition all of them.

        condition: comparisons of osd.attr(page, number), joined by & and |.  The target is asked
        piece by piece: what changes meanwhile may or may not be seen.
        """
        queries = [Query(())] if condition is None else condition.queries()
        streams = [self._query_ids(each.encode()) for each in queries]
        before = -1
        for oid in heapq.merge(*streams):
            if oid != before:
                yield userobject(self.partition_id, oid)
            before = oid

    def _query_ids(self, query_list: bytes) -> Iterator[int]:
        initial = 0
        while True:
            following, _, body = self._call(Call.QUERY, initial, 0, query_list)
            for at in range(0, len(body), ID_BYTES):
                yield int.from_bytes(body[at : at + ID_BYTES], "big")
            if following <= initial:
                return
            initial = following


class root(OSDObject):  # noqa: N801 -- the names scripts use (the iOSD paper)
    """The target as a whole."""

    object_type = ObjectType.ROOT

    def __init__(self) -> None:
        super().__init__(0, 0)

    def partitions(self) -> Iterator[partition]:
        """Its partitions, ascending."""
        return (partition(pid) for pid in self._ids(ListKind.PARTITIONS))

    __iter__ = partitions

    def query(self, condition: Condition | None = None) -> Iterator[userobject]:
        """As partition.query(), of one partition after the other."""
        return chain.from_iterable(each.query(condition) for each in self.partitions())

    def __repr__(self) -> str:
        return "osd.root()"


class partition(Searchable):  # noqa: N801
    """A partition.  Its object id is 0, and may be left out."""

    object_type = ObjectType.PARTITION

    def __init__(self, partition_id: int = 0, object_id: int = 0) -> None:
        if object_id:
            raise Invalid("the object id of a partition is 0")
        super().__init__(partition_id, 0)

    def create(self) -> partition:
        """Make it; with id 0 the target picks one, found in partition_id afterwards."""
        self.partition_id = self._call(Call.CREATE_PARTITION)[0]
        return self

    def remove(self, contents: bool = False) -> None:
        """Remove it; NotEmpty unless empty or contents is true."""
        self._call(Call.REMOVE_PARTITION, int(contents))

    def userobjects(self) -> Iterator[userobject]:
        """Its user objects, ascending."""
        return (userobject(self.partition_id, oid) for oid in self._ids(ListKind.USER_OBJECTS))

    def collections(self) -> Iterator[collection]:
        """Its collections, ascending."""
        return (collection(self.partition_id, oid) for oid in self._ids(ListKind.COLLECTIONS))

    __iter__ = userobjects

    def index(self, page: int, keep: bool = True) -> None:
        """Have the target keep an index of an attribute page, for queries; or drop it."""
        self.setattr([(INDEX_PAGE, page, b"\x01" if keep else b"")])

    def indexes(self) -> dict[int, bool]:
        """Pages with an index: whether it is ready; one that is building is not used yet."""
        return {
            page: value.int == INDEX_READY for _, page, value in self.attributes(INDEX_PAGE) if page
        }

    def create_many(self, count: int) -> list[userobject]:
        """Make count user objects with consecutive ids, all or none."""
        first = self._call(Call.CREATE, count)[0]
        return [userobject(self.partition_id, first + i) for i in range(count)]

    def __repr__(self) -> str:
        return f"osd.partition({self.partition_id:#x})"


class collection(Searchable):  # noqa: N801
    """A named set of user objects of one partition."""

    object_type = ObjectType.COLLECTION

    def __init__(self, partition_id: int, object_id: int = 0) -> None:
        super().__init__(partition_id, object_id)

    def create(self) -> collection:
        """Make it; with id 0 the target picks one, found in object_id afterwards."""
        self.object_id = self._call(Call.CREATE_COLLECTION)[0]
        return self

    def remove(self, with_members: bool = False) -> None:
        """Remove the collection, not its members; NotEmpty unless empty or with_members is true."""
        self._call(Call.REMOVE_COLLECTION, int(with_members))

    def add(self, member: userobject | int) -> None:
        """Make a user object a member."""
        self._call(Call.COLLECTION_ADD, _member_id(member))

    def drop(self, member: userobject | int) -> None:
        """End a membership."""
        self._call(Call.COLLECTION_DROP, _member_id(member))

    def members(self) -> Iterator[userobject]:
        """Its members, ascending."""
        return (userobject(self.partition_id, oid) for oid in self._ids(ListKind.MEMBERS))

    __iter__ = members


class userobject(OSDObject):  # noqa: N801
    """Bytes and attributes."""

    object_type = ObjectType.USER_OBJECT

    def __init__(self, partition_id: int, object_id: int = 0) -> None:
        super().__init__(partition_id, object_id)

    @property
    def data(self) -> Data:
        """A new file object over the bytes, at position 0."""
        return Data(self.partition_id, self.object_id)

    def create(self) -> userobject:
        """Make it; with id 0 the target picks one, found in object_id afterwards."""
        self.object_id = self._call(Call.CREATE, 1)[0]
        return self

    def remove(self) -> None:
        """Remove it with its bytes and attributes."""
        self._call(Call.REMOVE)

    def compare_and_swap(self, page: int, number: int, expected: Settable, new: Settable) -> bool:
        """Set an attribute to new if it is expected, in one step; whether that was so.

        Values as for setattr(); an empty one stands for an undefined attribute.
        """
        compare, swap = encode_value(expected), encode_value(new)
        name = page << 32 | number
        return bool(self._call(Call.SWAPATTR, name, len(compare), compare + swap)[0])

    def fetch_and_add(self, page: int, number: int, addend: int = 1) -> int:
        """Add to an attribute that is a number (undefined: 0) in one step, modulo 2**64.

        Returns what it was.  Raises: Invalid: it is not 8 bytes long.
        """
        return self._call(Call.ADDATTR, page << 32 | number, addend % (1 << 64))[0]

    def grep(
        self, pattern: Pattern, *, literal: bool = False, ignore_case: bool = False
    ) -> Iterator[Line]:
        """Lines that match a regular expression, as (offset, line without its end).

        See find() for patterns; here ^ and $ are a line's.  Lines above 4 MiB come in pieces.
        """
        return grep(self._block, compiled(pattern, literal, ignore_case))

    def find(
        self,
        pattern: Pattern,
        *,
        literal: bool = False,
        ignore_case: bool = False,
        span: int = SPAN,
    ) -> Iterator[Found]:
        """Matches of a regular expression anywhere in the bytes, as (offset, match).

        pattern: str (meant as UTF-8), bytes, or a compiled one; literal: taken as it stands.
        span: bytes a match may have; a longer one may be cut or missed.  Memory does not grow with
        the object.
        """
        return find(self._block, compiled(pattern, literal, ignore_case), span)

    def _block(self, offset: int, buffer: memoryview) -> int:
        """Read to a buffer as far as there is anything; how many bytes it were."""
        filled = 0
        while filled < len(buffer):
            count = current().readinto(
                self.partition_id, self.object_id, offset + filled, buffer[filled:]
            )
            if not count:
                break
            filled += count
        return filled

    def length(self) -> int:
        """Bytes it holds."""
        return self._call(Call.LENGTH)[0]

    def clear(self, offset: int, length: int) -> None:
        """Make a range zeros."""
        self._call(Call.CLEAR, offset, length)

    def punch(self, offset: int, length: int) -> None:
        """Take a range out; what follows moves down."""
        self._call(Call.PUNCH, offset, length)

    def flush(self) -> None:
        """Return when everything written so far survives a power cut."""
        self._call(Call.FLUSH)


def _member_id(member: userobject | int) -> int:
    return member.object_id if isinstance(member, userobject) else member


def object_of_type(object_type: int, partition_id: int, object_id: int) -> OSDObject:
    """Return the object named, as the class of its type."""
    match object_type:
        case ObjectType.ROOT:
            return root()
        case ObjectType.PARTITION:
            return partition(partition_id)
        case ObjectType.COLLECTION:
            return collection(partition_id, object_id)
        case ObjectType.USER_OBJECT:
            return userobject(partition_id, object_id)
    raise Invalid(f"no object has type {object_type:#x}")
