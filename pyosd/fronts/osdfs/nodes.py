# SPDX-License-Identifier: GPL-2.0-or-later
"""What the kernel knows of the file system: nodes, which stand for objects, and their names.  No I/O.

A node lives as long as the kernel has references to it.  A directory remembers the directory above it and
its name, so that commands on two directories can have paths.
"""

from __future__ import annotations

import errno
import stat as modes
from dataclasses import dataclass, field

from pyosd.fronts.osdfs.file_page import Facts
from pyosd.fronts.osdfs.kernel import ROOT_ID, WithErrno
from pyosd.fronts.osdfs.writer import Writer
from pyosd.types import FIRST_ID, ObjectRef

__all__ = ["JobFile", "Node", "NodeTable", "ViewFile"]

_PARTITION_BITS = 40
_SHOWN = 1 << 63


@dataclass(slots=True)
class JobFile:
    """A file or directory of jobs, by its path.  content: as of PathInfo."""

    path: str
    content: bytes | None = None
    writable = False


@dataclass(slots=True)
class ViewFile:
    """A file or directory of a view.

    base: the object that has the names and attributes; None: of .views itself.  counted: a version of
    the base's data, and the length of the view's, which no attribute has.
    """

    base: ObjectRef | None
    writable: bool = False
    counted: tuple[bytes, int] = (b"", 0)


@dataclass(slots=True, eq=False)
class Node:
    """An object that the kernel knows.

    places: directories and names that it was found at; above: the last one.  opens: open files.
    hidden: the name it has while it is open and the kernel has removed its last one.
    cached: the version of the data in the kernel's cache, b"" if that is not known.
    fresh: it was made here and is open since, so the kernel need not fear that it is privileged.
    shown: set if the node is below .jobs or .views.
    counted: a version of the data, and their length, which no attribute has.
    """

    id: int
    object: ObjectRef
    is_directory: bool
    facts: Facts
    above: tuple[Node, bytes] | None = None
    places: set[tuple[int, bytes]] = field(default_factory=set)
    lookups: int = 0
    opens: int = 0
    hidden: bytes = b""
    cached: bytes = b""
    fresh: bool = False
    writer: Writer | None = None
    shown: JobFile | ViewFile | None = None
    counted: tuple[bytes, int] = (b"", 0)


class NodeTable:
    """All nodes."""

    def __init__(self, root: ObjectRef, facts: Facts) -> None:
        self.root = Node(ROOT_ID, root, True, facts, lookups=1)
        self._last = ROOT_ID
        self._by_id = {ROOT_ID: self.root}
        self._by_object = {root: self.root}
        self._by_place = dict[tuple[int, bytes], Node]()

    def get(self, number: int) -> Node:
        """The node of an id.  Raises: WithErrno: the kernel has forgotten it."""
        try:
            return self._by_id[number]
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
        return [each for each in self._by_id.values() if each.opens]

    def found(
        self, parent: Node, name: bytes, obj: ObjectRef, *, is_directory: bool, facts: Facts
    ) -> Node:
        """The node of an object that a directory has under a name; a new one if need be."""
        node = self._by_object.get(obj)
        if node is None or node.is_directory != is_directory:  # an id can be used again
            self._last += 1
            node = Node(self._last, obj, is_directory, facts)
            self._by_id[node.id] = self._by_object[obj] = node
        else:
            node.facts = facts
        self.place(node, parent, name)
        return node

    def show(
        self, parent: Node, name: bytes, obj: ObjectRef, shown: JobFile | ViewFile, facts: Facts
    ) -> Node:
        """The node of what a directory shows under a name; a new one if need be."""
        is_directory = modes.S_ISDIR(facts.stat.mode)
        node = self.at(parent, name)
        if node is None or (node.object, node.is_directory) != (obj, is_directory):
            self._last += 1
            node = self._by_id[self._last] = Node(self._last, obj, is_directory, facts)
        node.shown, node.facts = shown, facts
        self.place(node, parent, name)
        return node

    def place(self, node: Node, parent: Node, name: bytes) -> None:
        """The node has this name now; a directory no other one."""
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

    def leave(self, parent: Node, name: bytes) -> None:
        """Nothing has this name any more."""
        node = self._by_place.pop((parent.id, name), None)
        if node:
            node.places.discard((parent.id, name))

    def forget(self, number: int, count: int) -> None:
        """The kernel drops references."""
        node = self._by_id.get(number)
        if node is None or node is self.root:
            return
        node.lookups -= count
        if node.lookups <= 0:
            del self._by_id[number]
            if self._by_object.get(node.object) is node:
                del self._by_object[node.object]
            for each in node.places:
                del self._by_place[each]

    def anchor(self, node: Node) -> tuple[ObjectRef, list[bytes]]:
        """The partition, or the top of the file system, that a directory is below, and its path there."""
        path = list[bytes]()
        while node.above and node.object.object_id:
            node, name = node.above
            path.insert(0, name)
        return node.object, path

    def inode(self, node: Node) -> int:
        """The number of a node's inode."""
        return _SHOWN | node.id if node.shown else self.number(node.object)

    def number(self, obj: ObjectRef) -> int:
        """The number of an object's inode: its id, with the partition's in the upper bits if the file
        system has several."""
        if self.root.object.partition_id:
            return obj.object_id or obj.partition_id
        if not obj.partition_id:
            return ROOT_ID
        upper = (obj.partition_id - FIRST_ID + 1) << _PARTITION_BITS
        return (upper + (obj.object_id or 1)) & (1 << 64) - 1
