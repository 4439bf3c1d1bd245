# SPDX-License-Identifier: GPL-2.0-or-later
"""What all operations of a mounted file system share: its session, its nodes, and how a file is opened."""

from __future__ import annotations

import errno
import os
import stat as modes
from collections.abc import Callable, Iterable
from typing import NamedTuple

from pyosd import errors
from pyosd.commands import data as object_data
from pyosd.commands import names
from pyosd.commands.attributes import get_attributes, set_attributes
from pyosd.commands.data import QUEUE_DEPTH
from pyosd.fronts.osdfs import file_page, kernel
from pyosd.fronts.osdfs.file_page import Defaults, Facts
from pyosd.fronts.osdfs.kernel import WithErrno
from pyosd.fronts.osdfs.line import PatientSession
from pyosd.fronts.osdfs.nodes import JobFile, Node, NodeTable, ViewFile
from pyosd.fronts.osdfs.shown import Shown, check_opens
from pyosd.fronts.osdfs.writer import Writer
from pyosd.types import ROOT, AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH

__all__ = ["CacheTimes", "Mounted"]

_EMPTY = AttributeValue(*LOGICAL_LENGTH, bytes(8))


class CacheTimes(NamedTuple):
    """Seconds that the kernel uses names and attributes for without asking.

    A name that is old leads to another file, so a WRITE would change the wrong one.  Names of directories
    are in each path: to look them up each time would take more commands than all else.  Each lookup and
    each open() renews attributes: old ones concern files that are open, and the top.
    """

    names: float = 0.0
    attributes: float = 1.0
    directories: float = 1.0

    def of_name(self, *, is_directory: bool) -> float:
        """How long a name is used."""
        return max(self.names, self.directories) if is_directory else self.names


class Mounted:
    """A file system whose top is the root of a target, a partition or a directory.

    notify: sends the
    kernel a notification; set when it is served.
    """

    notify: Callable[[bytes], None]

    def __init__(
        self, line: PatientSession, top: ObjectRef, defaults: Defaults, cached: CacheTimes
    ) -> None:
        self.line, self.defaults, self._cached = line, defaults, cached
        self.nodes = NodeTable(top, file_page.root_facts(defaults))
        self.shown = Shown(line, self.nodes, defaults)

    # ---- replies --------------------------------------------------------------------------------

    def entry(self, node: Node) -> bytes:
        """A reply about a name; the kernel has one more reference to the node."""
        node.lookups += 1
        number, cached = self.nodes.inode(node), self._cached
        name_s = cached.of_name(is_directory=node.is_directory and not node.shown)
        return kernel.entry_out(node.id, number, node.facts.stat, name_s, cached.attributes)

    @property
    def keeps_names(self) -> bool:
        """Whether the kernel uses names of files without asking."""
        return self._cached.names > 0

    def attributes(self, node: Node) -> bytes:
        """A reply about attributes."""
        number = self.nodes.inode(node)
        return kernel.attr_out(number, node.facts.stat, self._cached.attributes)

    # ---- attributes -----------------------------------------------------------------------------

    async def refresh(self, node: Node) -> Facts:
        """Attributes as the target has them, after all that was written here."""
        if node.writer:
            await node.writer.drain()
        if node.shown:
            node.facts = await self.shown.facts(node)
            return node.facts
        if node.object == ROOT:
            return node.facts
        wanted = file_page.wanted_of(node.object, is_directory=node.is_directory)
        values = await self.line.carry(lambda: get_attributes(node.object, wanted))
        return await self._learn(node, values)

    async def set(self, node: Node, values: Iterable[AttributeValue]) -> Facts:
        """Set attributes of the object.  Returns: all as they are then."""
        given = [*values]
        if node.shown:
            await self.line.carry(lambda: set_attributes(node.object, given))
            return await self.refresh(node)
        wanted = file_page.wanted_of(node.object, is_directory=node.is_directory)
        found = await self.line.carry(lambda: set_attributes(node.object, given, wanted))
        return await self._learn(node, found)

    async def _learn(self, node: Node, values: Iterable[AttributeValue]) -> Facts:
        links = 0 if node.hidden else node.facts.stat.links
        node.facts = file_page.facts_of(
            [*values], self.defaults, is_directory=node.is_directory, links=links
        )
        await self.measure(node)
        return node.facts

    async def measure(self, node: Node) -> None:
        """Read the data if nothing else says how long they are, once for each version."""
        facts = node.facts
        if not facts.length_unknown:
            return
        if not facts.version or node.counted[0] != facts.version:
            length = await self.line.carry(lambda: object_data.made_length(node.object))
            node.counted = facts.version, length
        facts.stat.size = node.counted[1]

    async def drop_privileges(self, node: Node, *extra: AttributeValue) -> None:
        """Set attributes, and take away the set-user-ID and set-group-ID bits, as a write does.

        The bits are those of the last open(): the kernel asks for this at each write.
        """
        values = [*extra]
        if node.facts.stat.mode != without_privileges(node.facts.stat.mode):
            stat = (await self.refresh(node)).stat
            stat.mode = without_privileges(stat.mode)
            values.append(file_page.owner_value(stat))
        if values:
            await self.set(node, values)

    # ---- open files -----------------------------------------------------------------------------

    async def open(
        self, node: Node, flags: int, *, made: bool = False, privileged: bool = True
    ) -> bytes:
        """Open a file: the kernel keeps its cached data only if the object still has their version.

        made: the file has just been made, so its attributes are known.  privileged: its set-user-ID bits
        stay if it is cut.  Returns: the reply.
        """
        check_opens(node, flags)
        node.opens += 1
        try:
            if flags & os.O_TRUNC and not made:
                await self.cut(node, 0, privileged=privileged)
                node.cached = node.facts.version  # of no bytes
            elif not made:
                if isinstance(node.shown, ViewFile):
                    node.shown.counted = b"", 0  # functions may have changed
                node.counted = b"", 0
                await self.refresh(node)
                self.notify(kernel.old_attributes(node.id))
            return kernel.opened_out(0, _open_flags(node, flags))
        except BaseException:
            await self.close(node)
            raise

    async def cut(self, node: Node, length: int, *, privileged: bool = True) -> None:
        """Set the length of a file."""
        if node.writer:
            await node.writer.drain()
        value = AttributeValue(*LOGICAL_LENGTH, length.to_bytes(8))
        if privileged:
            await self.set(node, [value])
        else:
            await self.drop_privileges(node, value)
        node.cached = b""

    def writer(self, node: Node) -> Writer:
        """What takes the data of an open file."""
        if node.writer is None:
            # Each WRITE through functions can change all of the object: side by side they would wait.
            depth = 1 if node.shown or node.facts.length_unknown else QUEUE_DEPTH
            node.writer = Writer(self.line, node.object, depth)
        node.cached = b""  # the version that this write makes is not known
        return node.writer

    async def close(self, node: Node) -> None:
        """One open file less.  With the last one a file without a name is removed."""
        if node.writer:
            await node.writer.drain()
        node.opens -= 1
        if node.opens:
            return
        node.writer = None
        node.fresh = False
        if node.hidden:
            hidden, node.hidden = node.hidden, b""
            top = ObjectRef(node.object.partition_id)
            if self.nodes.root.object.object_id:
                top = self.nodes.root.object
            try:
                await self.line.carry(lambda: names.unlink(top, hidden))
            except errors.NotFound:
                pass  # removed by somebody else


def _open_flags(node: Node, flags: int) -> int:
    """What the reply to OPEN says; the kernel caches data of the present version from now on."""
    appends = flags & os.O_APPEND and flags & os.O_ACCMODE != os.O_RDONLY
    direct = appends or isinstance(node.shown, JobFile)  # which grow while they are read
    keeps = bool(node.cached) and not node.shown and node.cached == node.facts.version
    node.cached = node.facts.version
    return (kernel.FOPEN_DIRECT_IO if direct else 0) | (kernel.FOPEN_KEEP_CACHE if keeps else 0)


def without_privileges(mode: int) -> int:
    """A mode as it is after a write by a user without privileges."""
    if mode & modes.S_IXGRP:
        mode &= ~modes.S_ISGID
    return mode & ~modes.S_ISUID


def regular(node: Node) -> Node:
    """The node, if its data can be opened.  Raises: WithErrno."""
    if node.is_directory:
        raise WithErrno(errno.EISDIR)
    return node
