# SPDX-License-Identifier: GPL-2.0-or-later
"""Containers of user objects (the root, partitions, collections), and objects from ids."""

from __future__ import annotations

import heapq
from itertools import chain
from typing import TYPE_CHECKING

from ._base import ID_BYTES, ListKind, ObjectType, OSDObject, unsigned
from ._errors import Invalid
from ._query import Query
from ._transport import CALL_RECORDS, Call
from ._userobject import userobject

if TYPE_CHECKING:
    from collections.abc import Iterator

    from ._query import Condition

__all__ = ["OSDObject", "collection", "object_of_type", "partition", "root", "userobject"]

INDEX_PAGE = 0x50000001
INDEX_READY = 2


class Searchable(OSDObject):
    """A container whose user objects can be queried."""

    def query(self, condition: Condition | None = None) -> Iterator[userobject]:
        """User objects whose attributes match, in the order of their ids.

        The result may or may not contain changes that happen meanwhile. Each object is examined at
        one moment.

        Args: condition: comparisons of osd.attr(page, number), each in parentheses, joined by & and
        |.  None: all there are.

        >>> for n, each in enumerate(p.create_many(10)):
        ...     each.setattr([(10, 1, n)])
        >>> [each.getattr([(10, 1)])[0][2].int for each in p.query(osd.attr(10, 1) >= 7)]
        [7, 8, 9]

        Raises: NotFound, PermissionDenied; Invalid: more than 64 comparisons joined by &, or values
        too long for a query; when the first one is taken.
        """
        queries = [Query(())] if condition is None else condition.queries()
        if any(len(each.criteria) > CALL_RECORDS for each in queries):
            raise Invalid(f"a query has at most {CALL_RECORDS} criteria")
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


MEMBERS_VERSION = (0x8000_0001, 1)


class root(OSDObject):  # noqa: N801 -- the names scripts use (the iOSD paper)
    """The target as a whole.

    >>> p in list(osd.root())
    True
    """

    object_type = ObjectType.ROOT

    def __init__(self) -> None:
        super().__init__(0, 0)

    def partitions(self) -> Iterator[partition]:
        """Its partitions, ascending; iterating over the root does the same.

        >>> p in osd.root().partitions()
        True

        Raises: PermissionDenied: the zone is not the root.
        """
        return (partition(pid) for pid in self._ids(ListKind.PARTITIONS))

    __iter__ = partitions

    def query(self, condition: Condition | None = None) -> Iterator[userobject]:
        """As partition.query(), over one partition after the other.

        >>> u.setattr([(0x10000, 77, "needle")])
        >>> u in osd.root().query(osd.attr(0x10000, 77) == "needle")
        True

        Raises: PermissionDenied: the zone is not the root.
        """
        return chain.from_iterable(each.query(condition) for each in self.partitions())

    def __repr__(self) -> str:
        return "osd.root()"


class partition(Searchable):  # noqa: N801
    """A partition: user objects and collections.

    Its object id is 0, and can be omitted.

    >>> len(list(p))
    1
    """

    object_type = ObjectType.PARTITION

    def __init__(self, partition_id: int = 0, object_id: int = 0) -> None:
        if object_id:
            raise Invalid("the object id of a partition is 0")
        super().__init__(partition_id, 0)

    def create(self) -> partition:
        """Make the partition.  With id 0 the target chooses one, which is in partition_id afterwards.

        >>> q = osd.partition().create()
        >>> q.exists()
        True
        >>> q.remove()

        Returns: itself.
        Raises: Exists: the id is taken, or below 10000h; PermissionDenied: the zone is not the root;
        NoSpace.
        """
        self.partition_id = self._call(Call.CREATE_PARTITION)[0]
        return self

    def remove(self, contents: bool = False) -> None:
        """Remove the partition.  contents=True: and everything in it.

        >>> p.remove()
        Traceback (most recent call last):
        osd.NotEmpty: ...
        >>> p.remove(contents=True)

        Raises: NotFound; NotEmpty; Conflict: it has a job that has not ended;
        PermissionDenied: the zone is not the root.
        """
        self._call(Call.REMOVE_PARTITION, int(contents))

    def userobjects(self) -> Iterator[userobject]:
        """Its user objects, ascending; iterating over a partition does the same.

        >>> [each.length() for each in p.userobjects()]
        [14]

        Raises: NotFound, PermissionDenied, when the iteration begins.
        """
        return (userobject(self.partition_id, oid) for oid in self._ids(ListKind.USER_OBJECTS))

    def collections(self) -> Iterator[collection]:
        """Its collections, ascending.

        >>> c = osd.collection(p.partition_id).create()
        >>> c in p.collections()
        True

        Raises: NotFound, PermissionDenied, when the iteration begins.
        """
        return (collection(self.partition_id, oid) for oid in self._ids(ListKind.COLLECTIONS))

    __iter__ = userobjects

    def index(self, page: int, keep: bool = True) -> None:
        """Create an index of an attribute page for queries, or remove it.

        Results do not depend on it; `docs/query.md` explains its cost.

        Args: page: of application attributes of user objects, or 1.

        >>> p.index(10)
        >>> list(p.indexes())
        [10]

        Raises: NotFound, PermissionDenied; Invalid: no page that can be indexed.
        """
        self.setattr([(INDEX_PAGE, page, b"\x01" if keep else b"")])

    def indexes(self) -> dict[int, bool]:
        """Pages with an index, and whether it is ready.  Queries do not use it before.

        >>> p.indexes()
        {}

        Raises: NotFound, PermissionDenied.
        """
        return {
            page: value.int == INDEX_READY for _, page, value in self.attributes(INDEX_PAGE) if page
        }

    def create_many(self, count: int) -> list[userobject]:
        """Make empty user objects with consecutive ids, all or none.

        Args: count: 1 to 4,096.

        >>> many = p.create_many(3)
        >>> [each.object_id - many[0].object_id for each in many]
        [0, 1, 2]

        Raises: NotFound, PermissionDenied, NoSpace; Invalid: the count.
        """
        if unsigned(count, "a count") == 0:
            raise Invalid("a count of 0 objects")
        first = self._call(Call.CREATE, count)[0]
        return [userobject(self.partition_id, first + i) for i in range(count)]

    def __repr__(self) -> str:
        return f"osd.partition({self.partition_id:#x})"


class collection(Searchable):  # noqa: N801
    """A named set of user objects of one partition.

    >>> c = osd.collection(p.partition_id).create()
    >>> c.add(u)
    >>> [each.length() for each in c]
    [14]
    """

    object_type = ObjectType.COLLECTION

    def __init__(self, partition_id: int, object_id: int = 0) -> None:
        super().__init__(partition_id, object_id)

    def create(self) -> collection:
        """Make the object, empty.  With id 0 the target chooses one, which is in object_id afterwards.

        >>> list(osd.collection(p.partition_id).create())
        []

        Returns: itself.
        Raises: Exists: the id is taken, or below 10000h; NotFound: there is no such partition;
        PermissionDenied: also where the zone is no whole partition; NoSpace.
        """
        self.object_id = self._call(Call.CREATE_COLLECTION)[0]
        return self

    def remove(self, with_members: bool = False) -> None:
        """Remove the collection; its members stay where they are.

        Args: with_members: also if it has members.

        >>> c = osd.collection(p.partition_id).create()
        >>> c.add(u)
        >>> c.remove()
        Traceback (most recent call last):
        osd.NotEmpty: ...
        >>> c.remove(with_members=True)
        >>> u.exists()
        True

        Raises: NotFound, NotEmpty, PermissionDenied.
        """
        self._call(Call.REMOVE_COLLECTION, int(with_members))

    def add(self, member: userobject | int) -> None:
        """Make a user object of the same partition a member.  A member stays one.

        Args: member: the object, or its id.

        >>> c = osd.collection(p.partition_id).create()
        >>> c.add(u)
        >>> c.add(u.object_id)
        >>> len(list(c))
        1

        Raises: NotFound: the collection or the object; PermissionDenied: also where the zone is no
        whole partition; Invalid: an object of another partition.
        """
        self._call(Call.COLLECTION_ADD, self._member_id(member))

    def drop(self, member: userobject | int) -> None:
        """End a membership.

        Args: member: the object, or its id.

        >>> c = osd.collection(p.partition_id).create()
        >>> c.add(u)
        >>> c.drop(u)
        >>> list(c)
        []

        Raises: NotFound: the collection, or it has no such member; PermissionDenied and Invalid: as
        add().
        """
        self._call(Call.COLLECTION_DROP, self._member_id(member))

    def members_version(self) -> bytes:
        """The version of its membership, which changes with each member that joins or leaves.

        >>> c = osd.collection(p.partition_id).create()
        >>> before = c.members_version()
        >>> c.add(u)
        >>> c.members_version() == before
        False

        Raises: NotFound, PermissionDenied.
        """
        return bytes(self.getattr([MEMBERS_VERSION])[0][2])

    def members(self) -> Iterator[userobject]:
        """Its members, ascending; iterating over a collection does the same.

        >>> c = osd.collection(p.partition_id).create()
        >>> c.add(u)
        >>> u in c.members()
        True

        Raises: NotFound, PermissionDenied, when the iteration begins.
        """
        return (userobject(self.partition_id, oid) for oid in self._ids(ListKind.MEMBERS))

    def userobjects(self) -> Iterator[userobject]:
        """The same as members(), so that a script for a partition also works with a directory.

        >>> c = osd.collection(p.partition_id).create()
        >>> c.add(u)
        >>> u in c.userobjects()
        True

        Raises: NotFound, PermissionDenied, when the iteration begins.
        """
        return self.members()

    __iter__ = members

    def _member_id(self, member: userobject | int) -> int:
        if not isinstance(member, userobject):
            return unsigned(member, "a member's id")
        if member.partition_id != self.partition_id:
            raise Invalid(f"{member!r} is of another partition than {self!r}")
        return member.object_id


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
