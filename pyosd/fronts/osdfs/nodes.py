# SPDX-License-Identifier: GPL-2.0-or-later
"""The table of nodes: the objects that the kernel knows, and their names.  No I/O.

A node lives as long as the kernel has references to it.  A directory remembers its parent and its name,
because a command on two directories needs a path from one to the other.
"""

from __future__ import annotations

import asyncio
import errno
import stat as modes
import time
from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from pyosd.fronts.osdfs.file_page import Facts
from pyosd.fronts.osdfs.kernel import ROOT_ID, WithErrno
from pyosd.fronts.osdfs.writer import Writer
from pyosd.types import FIRST_ID, ObjectRef, ref
from pyosd.wire.names import NamedData

__all__ = ["AllNames", "JobFile", "Node", "NodeTable", "Place", "UnstoredFile", "ViewFile"]

_PARTITION_BITS = 40
_SHOWN, _NEW = 1 << 63, 1 << 62
Place: TypeAlias = "tuple[Node, bytes]"
"""A directory and a name in it."""


@dataclass(slots=True)
class JobFile:
    """A file or directory below .jobs, by its path.  content: see PathInfo."""

    path: str
    content: bytes | None = None
    writable = False


@dataclass(slots=True)
class ViewFile:
    """A file or directory below .views.

    base: the object that has the names and attributes; None: the node is .views itself.
    counted: a version of the base's data, and the length of the view's data at that version.  No
    attribute has that length.
    """

    base: ObjectRef | None
    writable: bool = False
    counted: tuple[bytes, int] = (b"", 0)


@dataclass(slots=True)
class UnstoredFile:
    """Data and attributes of a file that the target does not have yet.

    cuts: the file was opened with O_TRUNC.  made: the target has the file, without data.
    described: mode or owner were set.  accessed, modified: times that were set, in ns.
    storing: done when the file has been stored; None: nothing is under way.
    due: time of the loop at which the file is stored in the background; None: that has been tried.
    """

    cuts: bool
    made: bool = False
    described: bool = False
    data: bytearray = field(default_factory=bytearray)
    accessed: int | None = None
    modified: int | None = None
    storing: asyncio.Future[None] | None = None
    due: float | None = None


class AllNames(NamedTuple):
    """All names of a directory.  until: other names are taken as absent until then (monotonic)."""

    found: set[bytes]
    until: float


@dataclass(slots=True, eq=False)
class Node:
    """An object that the kernel knows.  Times are those of time.monotonic().

    Names:
    places: directories and names at which the object was found.  above: the last of them.
    kept: until when the kernel uses a name without asking again.
    hidden: the temporary name of an open object whose last name was removed.
    looked_up: a thread that the kernel makes look up a name again, and that name.
    names: all names of a directory that a program here has just made.
    refuses: this directory has refused a new file.  New files in it are made at once, so that
    open() gets the error.

    References:
    lookups: the kernel's references.  opens: open files.
    fresh: a program here made the object and still has it open, so it has no privileges to drop.

    Attributes:
    facts: as the target gave them.  asked: when; 0: a program here has changed the object since.
    changed: the number of the last change by a program here (NodeTable.changes).
    told: the attributes that the kernel was last given.
    inode: the number of the inode; 0: the kernel was not given it yet.
    shown: set if the node is below .jobs or .views.

    Data:
    writer: sends the data that programs write.
    new: data and attributes that the target does not have yet.  If it does not have the object either,
    the object's id is made up by this mount.
    cached: the version of the data in the kernel's cache; b"": not known.
    partial: the kernel's cache lacks the last page of these data.
    head: when the first data were read, and these data.
    counted: a version of the data, and their length at that version, if no attribute has it.

    The C core reads some of these fields, too (kernel_node.c).
    """

    id: int
    object: ObjectRef
    is_directory: bool
    facts: Facts
    above: Place | None = None
    places: set[tuple[int, bytes]] = field(default_factory=set)
    kept: dict[Place, float] = field(default_factory=dict)
    lookups: int = 0
    opens: int = 0
    hidden: bytes = b""
    cached: bytes = b""
    partial: bool = False
    fresh: bool = False
    writer: Writer | None = None
    shown: JobFile | ViewFile | None = None
    asked: float = 0.0
    changed: int = 0
    told: tuple[int, ...] = ()
    head: tuple[float, NamedData] | None = None
    looked_up: tuple[int, Place] | None = None
    new: UnstoredFile | None = None
    refuses: bool = False
    counted: tuple[bytes, int] = (b"", 0)
    names: AllNames | None = None
    inode: int = 0

    def learn(self, facts: Facts, since: int) -> None:
        """Take facts from the target.  since: NodeTable.changes when the target was asked."""
        self.facts = facts
        self.asked = time.monotonic() if self.changed <= since else 0.0


class NodeTable:
    """All nodes.  by_id: by their ids.  changes: counts the changes by programs here."""

    def __init__(self, root: ObjectRef, facts: Facts) -> None:
        self.root = Node(ROOT_ID, root, True, facts, lookups=1)
        self._last = ROOT_ID
        self.by_id = {ROOT_ID: self.root}
        self._by_object = {root: self.root}
        self._by_place = dict[tuple[int, bytes], Node]()
        self.changes = 0

    def change(self, node: Node) -> None:
        """Record that a program here changes the object.  Facts known or under way are then old."""
        self.changes += 1
        node.changed = self.changes
        node.asked, node.told, node.head = 0.0, (), None

    def change_entries(self, directory: Node) -> None:
        """Record that a program here changed a directory's entries, and estimate its new times."""
        self.changes += 1
        directory.changed = self.changes
        stat = directory.facts.stat
        stat.modified = stat.changed = max(time.time_ns() // 10**6 * 10**6, stat.changed)

    def get(self, number: int) -> Node:
        """The node of an id.  Raises: WithErrno: the kernel has forgotten it."""
        try:
            return self.by_id[number]
        except KeyError:
            raise WithErrno(errno.ESTALE) from None

    def of_object(self, obj: ObjectRef) -> Node | None:
        """The node of an object, if it has one."""
        return self._by_object.get(obj)

    def at(self, parent: Node, name: bytes) -> Node | None:
        """The node that was last found under a name."""
        return self._by_place.get((parent.id, name))

    def opened(self) -> list[Node]:
        """Nodes with open files."""
        return [each for each in self.by_id.values() if each.opens]

    def found(
        self,
        parent: Node,
        name: bytes,
        obj: ObjectRef,
        *,
        is_directory: bool,
        facts: Facts,
        since: int,
    ) -> Node:
        """The node of an object that was found in a directory under a name; made if there is none.

        since: see Node.learn().
        """
        node = self._by_object.get(obj)
        if node is None or node.is_directory != is_directory:  # an id can be used again
            self._last += 1
            node = Node(self._last, obj, is_directory, facts)
            self.by_id[node.id] = self._by_object[obj] = node
        if node.new is None:
            node.learn(facts, since)
        self.place(node, parent, name)
        return node

    def add_new(self, parent: Node, name: bytes, facts: Facts) -> Node:
        """Make the node of a file that the target does not have yet."""
        self._last += 1
        obj = ref(parent.object.partition_id, _NEW | self._last)
        node = self.by_id[self._last] = self._by_object[obj] = Node(self._last, obj, False, facts)
        self.place(node, parent, name)
        return node

    def bind(self, node: Node, obj: ObjectRef) -> None:
        """Give a new file's node the object that the target has made for it."""
        self._by_object.pop(node.object, None)
        node.object, node.inode = obj, self.number(obj)
        self._by_object.setdefault(obj, node)

    def show(
        self, parent: Node, name: bytes, obj: ObjectRef, shown: JobFile | ViewFile, facts: Facts
    ) -> Node:
        """The node of a job or view that a directory shows under a name; made if there is none."""
        is_directory = modes.S_ISDIR(facts.stat.mode)
        node = self.at(parent, name)
        if node is None or (node.object, node.is_directory) != (obj, is_directory):
            self._last += 1
            node = self.by_id[self._last] = Node(self._last, obj, is_directory, facts)
        node.shown, node.facts = shown, facts
        self.place(node, parent, name)
        return node

    @staticmethod
    def is_within(directory: Node, other: Node) -> bool:
        """Whether a directory is `other` or below it, as far as this table knows."""
        while directory is not other and directory.above:
            directory = directory.above[0]
        return directory is other

    def place(self, node: Node, parent: Node, name: bytes) -> None:
        """Give a node a name.  A directory loses its other one.

        Raises: WithErrno: the directory would be below itself, so the way to its parent is old, or the
            target wrong.  The kernel says the same of what it knows.
        """
        if node.is_directory and self.is_within(parent, node):
            raise WithErrno(errno.ELOOP)
        key = (parent.id, name)
        if self._by_place.get(key) is not node:
            self.leave(parent, name)
            if node.is_directory:
                for each in node.places:
                    del self._by_place[each]
                node.places.clear()
            self._by_place[key] = node
            node.places.add(key)
        node.above = parent, name
        if parent.names:
            parent.names.found.add(name)

    def lacks(self, parent: Node, name: bytes) -> bool:
        """Whether a directory surely does not have a name, without asking the target."""
        if parent.names is None or name in parent.names.found:
            return False
        if time.monotonic() < parent.names.until:
            return True
        parent.names = None
        return False

    def remove(self, parent: Node, name: bytes) -> None:
        """Record that a program here removed a name."""
        self.leave(parent, name)
        if parent.names:
            parent.names.found.discard(name)

    def leave(self, parent: Node, name: bytes) -> None:
        """Forget a name: it stands for nothing any more."""
        node = self._by_place.pop((parent.id, name), None)
        if node:
            node.places.discard((parent.id, name))
            node.kept.pop((parent, name), None)
            if node.above == (parent, name) and not node.is_directory:
                others = ((self.by_id.get(number), each) for number, each in node.places)
                node.above = next(((at, each) for at, each in others if at), None)

    def forget(self, number: int, count: int) -> None:
        """The kernel drops references."""
        node = self.by_id.get(number)
        if node is None or node is self.root:
            return
        node.lookups -= count
        if node.lookups <= 0:
            del self.by_id[number]
            if self._by_object.get(node.object) is node:
                del self._by_object[node.object]
            for each in node.places:
                del self._by_place[each]

    def anchor(self, node: Node) -> tuple[ObjectRef, list[bytes]]:
        """The partition, or the top of the file system, above a directory, and the path from there."""
        path = list[bytes]()
        while node.above and node.object.object_id:
            node, name = node.above
            path.insert(0, name)
        return node.object, path

    def inode(self, node: Node) -> int:
        """The number of a node's inode."""
        if node.shown:
            return _SHOWN | node.id
        node.inode = node.inode or self.number(node.object)
        return node.inode

    def number(self, obj: ObjectRef) -> int:
        """The number of an object's inode: its id.  If the file system has several partitions, the
        upper bits have the partition's id.
        """
        if self.root.object.partition_id:
            return obj.object_id or obj.partition_id
        if not obj.partition_id:
            return ROOT_ID
        upper = (obj.partition_id - FIRST_ID + 1) << _PARTITION_BITS
        return (upper + (obj.object_id or 1)) & (1 << 64) - 1
