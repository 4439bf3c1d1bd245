# SPDX-License-Identifier: GPL-2.0-or-later
"""The common part of all operations of a mounted file system: session, nodes, opening files."""

from __future__ import annotations

import errno
import logging
import os
import stat as modes
import time
from collections.abc import Callable, Iterable
from dataclasses import replace
from functools import partial
from typing import NamedTuple

from pyosd import errors
from pyosd.commands import data as object_data
from pyosd.commands import names
from pyosd.commands.attributes import get_attributes, set_attributes
from pyosd.commands.data import QUEUE_DEPTH
from pyosd.commands.dialogue import Dialogue
from pyosd.fronts.osdfs import file_page, kernel
from pyosd.fronts.osdfs.file_page import Defaults, Facts
from pyosd.fronts.osdfs.kernel import WithErrno
from pyosd.fronts.osdfs.line import PatientSession
from pyosd.fronts.osdfs.new_files import UnstoredFiles
from pyosd.fronts.osdfs.nodes import AllNames, JobFile, Node, NodeTable, Place, ViewFile
from pyosd.fronts.osdfs.shown import Shown, check_opens
from pyosd.fronts.osdfs.writer import Writer
from pyosd.types import ROOT, AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH
from pyosd.wire.names import NamedData, NameEntry, NameParams, NameVerb

__all__ = ["CacheTimes", "Mounted"]

_EMPTY = AttributeValue(*LOGICAL_LENGTH, bytes(8))
_REPLY_S = 1.0  # the kernel counts from when it has read a reply
_HEAD_MOST = 64 << 10
_HEAD_S = 1.0  # then they may be too old
_log = logging.getLogger("osdfs")
_OTHERS = (errors.NoSuchName, errors.NotADirectory, errors.NameChanged, errors.NotFound)


class CacheTimes(NamedTuple):
    """Seconds that the kernel uses names and attributes for without asking.

    A name that is old leads to another file.  So open(), and changes of attributes, ask whether the object
    still has it.  shown: names below .jobs and .views, for which that cannot be asked.
    """

    names: float = 1.0
    attributes: float = 1.0
    shown: float = 0.0


class Mounted:
    """A file system whose top is the root of a target, a partition or a directory.

    notify: sends the
    kernel a notification; set when it is served.
    """

    notify: Callable[[bytes], None]

    def __init__(
        self, line: PatientSession, top: ObjectRef, defaults: Defaults, cached: CacheTimes
    ) -> None:
        self.line, self.defaults, self.cached = line, defaults, cached
        self.nodes = NodeTable(top, file_page.root_facts(defaults))
        self.shown = Shown(line, self.nodes, defaults)
        self.new = UnstoredFiles(self)
        self._refused = set[int]()

    # ---- replies --------------------------------------------------------------------------------

    def entry(self, node: Node) -> bytes:
        """A reply about a name; the kernel has one more reference to the node."""
        node.lookups += 1
        number, cached, stat = self.nodes.inode(node), self.cached, node.facts.stat
        name_s = cached.shown if node.shown else cached.names
        if stat.links > 1:  # open() asks for the last name only that was looked up
            name_s = 0.0
        node.told = stat.shown
        self.keep(node, name_s)
        return kernel.entry_out(node.id, number, stat, name_s, self._left(node))

    def no_names(self, asked: float) -> AllNames | None:
        """The names that a directory can have that was made a moment ago (monotonic)."""
        return AllNames(set(), asked + self.cached.names) if self.keeps_names else None

    def keep(self, node: Node, seconds: float | None = None) -> None:
        """The kernel uses the last name of a node for so long; None: as long as any."""
        kept = self.cached.names if seconds is None else seconds
        if node.above and kept and not node.is_directory:
            node.kept[node.above] = time.monotonic() + kept + _REPLY_S

    @property
    def keeps_names(self) -> bool:
        """Whether the kernel uses names of files without asking."""
        return self.cached.names > 0

    def attributes(self, node: Node) -> bytes:
        """A reply about attributes."""
        number, stat = self.nodes.inode(node), node.facts.stat
        node.told = stat.shown
        return kernel.attr_out(number, stat, self._left(node))

    def _left(self, node: Node) -> float:
        """How long the kernel may use attributes: no longer than since the target gave them."""
        if node.changed and not node.asked:
            return 0.0
        age = time.monotonic() - node.asked if node.asked else 0.0
        return max(self.cached.attributes - age, 0.0)

    # ---- attributes -----------------------------------------------------------------------------

    def knows(self, node: Node) -> bool:
        """Whether the attributes are those of a moment ago, as the kernel uses them, too."""
        return bool(node.asked) and self.is_recent(node.asked)

    def is_recent(self, asked: float) -> bool:
        """Whether the kernel may use what the target has said at a moment (monotonic)."""
        return time.monotonic() - asked < self.cached.attributes

    async def current(self, node: Node) -> Facts:
        """Attributes, from the target unless they are known."""
        if self.knows(node) and not node.shown and (node.writer is None or node.writer.clean):
            return node.facts
        return await self.refresh(node)

    async def refresh(self, node: Node) -> Facts:
        """Attributes as the target has them, after all that was written here."""
        if node.new:
            return node.facts
        if node.writer:
            await node.writer.drain()
        if node.shown:
            node.facts = await self.shown.facts(node)
            return node.facts
        if node.object == ROOT:
            return node.facts
        since, wanted = self.nodes.changes, self._wanted(node)
        values = await self.line.carry(lambda: get_attributes(node.object, wanted))
        return await self._learn(node, values, since)

    async def refresh_by_name(self, node: Node, asker: int, most: int = 0) -> Facts:
        """The same if the object still has the name by which the kernel has found it.

        asker: the thread.  most: first bytes of its data that are read with it.
        Raises: WithErrno: it has not; the kernel then looks the path up again.
        """
        if not (place := await self._only_place(node, asker)):
            return await self.refresh(node)
        if node.writer:
            await node.writer.drain()
        (parent, name), since, wanted = place, self.nodes.changes, self._wanted(node)
        read = time.monotonic()

        def found() -> Dialogue[tuple[NameEntry, NamedData | None, tuple[AttributeValue, ...]]]:
            if most:
                return names.find(parent.object, name, most, wanted)
            return _without_data(parent.object, NameParams(NameVerb.LOOKUP, name), wanted)

        try:
            entry, data, values = await self.line.carry(found)
        except (*_OTHERS, errors.Invalid) as error:
            raise self._lost(node, parent, name, asker) from error
        if entry.object != node.object:
            raise self._lost(node, parent, name, asker)
        facts = await self._learn(node, values, since, entry.names)
        node.head = (read, data) if data and data.version == facts.version else None
        return facts

    async def set(
        self, node: Node, values: Iterable[AttributeValue], *, asker: int | None = None
    ) -> Facts:
        """Set attributes of the object.  asker: if it still has its name, as refresh_by_name() says.

        Returns: all as they are then.
        """
        await self.new.store(node)
        given, wanted = [*values], self._wanted(node)
        if node.shown:
            await self.line.carry(lambda: set_attributes(node.object, given))
            return await self.refresh(node)
        place = await self._only_place(node, asker) if asker is not None else None
        self.nodes.change(node)
        since = self.nodes.changes
        if not place:
            found = await self.line.carry(lambda: set_attributes(node.object, given, wanted))
            return await self._learn(node, found, since)
        parent, name = place
        params = NameParams(NameVerb.LOOKUP, name, expected=int(node.object.object_id))
        try:
            entry, found = await self.line.carry(
                lambda: names.act(parent.object, params, given, wanted)
            )
        except _OTHERS as error:
            raise self._lost(node, parent, name, asker) from error
        return await self._learn(node, found, since, entry.names)

    def _wanted(self, node: Node) -> tuple[AttributeId, ...]:
        return file_page.wanted_of(node.object, is_directory=node.is_directory)

    async def _only_place(self, node: Node, asker: int) -> Place | None:
        """The name by which the kernel has found a file; None: it can only be asked for by its id.

        The kernel may use several names without asking, of which not all are this object's any more.  Then
        it is made to look the path up again: what it finds is the name that it uses.
        Raises: WithErrno: see _lost().
        """
        if node.shown or node.hidden or node.new or node.is_directory:
            return None
        found, node.looked_up = node.looked_up, None
        if found and found[0] == asker:
            return found[1]
        now = time.monotonic()
        for place in [place for place, until in node.kept.items() if until < now]:
            del node.kept[place]
        for parent, name in [place for place in node.kept if place != node.above]:
            try:
                entry = await self.line.carry(partial(names.lookup, parent.object, name))
                is_other = entry.object != node.object
            except _OTHERS:
                is_other = True
            if is_other:
                self._refused.add(asker)
                raise WithErrno(errno.ESTALE)
        return node.above or next(iter(node.kept), None)

    def looked_up(self, asker: int, node: Node | None) -> None:
        """A thread has looked up a name; if it was made to, its next operation on the node uses it."""
        if asker not in self._refused or (node and node.is_directory):
            return
        self._refused.discard(asker)
        if node and node.above:
            node.looked_up = asker, node.above

    def _lost(self, node: Node, parent: Node, name: bytes, asker: int | None) -> WithErrno:
        """The name is another object's.  If the kernel knows no other, as in /proc, it asks by id next."""
        if self.nodes.at(parent, name) is node:
            until = node.kept.get((parent, name), 0.0)
            self.nodes.leave(parent, name)
            node.kept[parent, name] = until  # the kernel has it still
        if node.above == (parent, name):
            node.above = None
        if asker is not None:
            self._refused.add(asker)
        return WithErrno(errno.ESTALE)

    async def _learn(
        self, node: Node, values: Iterable[AttributeValue], since: int, links: int | None = None
    ) -> Facts:
        count = node.facts.stat.links if links is None else links
        facts = file_page.facts_of(
            [*values],
            self.defaults,
            is_directory=node.is_directory,
            links=0 if node.hidden else count,
        )
        node.learn(facts, since)
        await self.measure(node)
        return facts

    async def measure(self, node: Node) -> None:
        """Read the data if nothing else says how long they are, once for each version."""
        facts = node.facts
        if not facts.length_unknown:
            return
        if not facts.version or node.counted[0] != facts.version:
            length = await self.line.carry(lambda: object_data.made_length(node.object))
            node.counted = facts.version, length
        facts.stat.size = node.counted[1]

    async def drop_privileges(
        self, node: Node, *extra: AttributeValue, asker: int | None = None
    ) -> None:
        """Set attributes, and clear the set-user-ID and set-group-ID bits, as a write does.

        The bits are those of the last open(): the kernel asks for this at each write.
        asker: as of set().
        """
        if node.new:
            stat = replace(node.facts.stat, mode=without_privileges(node.facts.stat.mode))
            if await self.new.describe(node, stat) and not extra:
                return
        values = [*extra]
        if node.facts.stat.mode != without_privileges(node.facts.stat.mode):
            stat = (await self.refresh(node)).stat
            stat.mode = without_privileges(stat.mode)
            values.append(file_page.owner_value(stat))
        if values:
            await self.set(node, values, asker=asker)

    def head(self, node: Node, start: int, size: int) -> memoryview | None:
        """The data that open() has read.  They are returned once: later reads must see later data."""
        if node.head is None or start:
            return None
        (read, found), node.head = node.head, None
        whole = len(found.data) == found.length
        if time.monotonic() - read > _HEAD_S or not (whole or size <= len(found.data)):
            return None
        node.partial = False
        return found.data[:size]

    # ---- open files -----------------------------------------------------------------------------

    async def open(
        self,
        node: Node,
        flags: int,
        asker: int,
        *,
        made: bool = False,
        privileged: bool = True,
    ) -> bytes:
        """Open a file: the kernel keeps its cached data only if the object still has their version.

        asker: the thread.  made: the file has just been made, so its attributes are known.  privileged:
        its set-user-ID bits stay if it is cut.  Returns: the reply.
        """
        check_opens(node, flags)
        node.opens += 1
        try:
            if flags & os.O_TRUNC and not made:
                await self.cut(node, 0, privileged=privileged, asker=asker)
                node.cached = node.facts.version  # of no bytes
            elif not made:
                if isinstance(node.shown, ViewFile):
                    node.shown.counted = b"", 0  # functions may have changed
                node.counted = b"", 0
                await self.refresh_by_name(node, asker, _head_length(node, flags))
                if node.facts.stat.shown != node.told:
                    self.notify(kernel.old_attributes(node.id))
            return kernel.opened_out(0, _open_flags(node, flags))
        except BaseException:
            await self.close(node)
            raise

    async def cut(
        self, node: Node, length: int, *, privileged: bool = True, asker: int | None = None
    ) -> None:
        """Set the length of a file.  asker: as of set()."""
        if await self.new.cut(node, length):
            return
        if node.writer:
            await node.writer.drain()
        value = AttributeValue(*LOGICAL_LENGTH, length.to_bytes(8))
        if privileged:
            await self.set(node, [value], asker=asker)
        else:
            await self.drop_privileges(node, value, asker=asker)
        node.cached = b""

    def writer(self, node: Node) -> Writer:
        """The writer of an open file."""
        if node.writer is None:
            # Each WRITE through functions can change all of the object: side by side they would wait.
            depth = 1 if node.shown or node.facts.length_unknown else QUEUE_DEPTH
            node.writer = Writer(self.line, node.object, depth)
        node.cached = b""  # the version that this write makes is not known
        self.nodes.change(node)
        return node.writer

    async def close(self, node: Node) -> None:
        """One open file less.  With the last one a file without a name is removed.

        Pages of a mapping are written after close(2): nobody but the log learns that they are lost.
        """
        if node.new and node.opens == 1:
            await self.new.drop(node)
        if node.writer:
            await node.writer.drain()
        node.opens -= 1
        if node.opens:
            return
        try:
            if node.writer:
                await node.writer.settle()
        except Exception as error:
            _log.error(
                "data of file %s are lost: %s", node.object, str(error) or type(error).__name__
            )
        node.writer = node.head = None
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


def _head_length(node: Node, flags: int) -> int:
    """Bytes that are read with open(): all of a small file that the kernel does not have."""
    stat = node.facts.stat
    readable = flags & os.O_ACCMODE != os.O_WRONLY and modes.S_ISREG(stat.mode)
    known = node.cached == node.facts.version != b"" and not node.partial
    if not readable or known or not 0 < stat.size <= _HEAD_MOST:
        return 0
    return (stat.size + kernel.PAGE - 1) & -kernel.PAGE


def _without_data(
    directory: ObjectRef, params: NameParams, wanted: Iterable[AttributeId]
) -> Dialogue[tuple[NameEntry, None, tuple[AttributeValue, ...]]]:
    entry, values = yield from names.act(directory, params, (), wanted)
    return entry, None, values


def _open_flags(node: Node, flags: int) -> int:
    """The flags of the reply to OPEN.  From now on the kernel caches data of the present version."""
    appends = flags & os.O_APPEND and flags & os.O_ACCMODE != os.O_RDONLY
    direct = appends or isinstance(node.shown, JobFile)  # which grow while they are read
    made = node.shown or node.facts.length_unknown  # by functions, which may have changed
    keeps = bool(node.cached) and not made and node.cached == node.facts.version
    node.cached = node.facts.version
    reads = flags & os.O_ACCMODE == os.O_RDONLY  # close() has nothing to report
    return (
        (kernel.FOPEN_DIRECT_IO if direct else 0)
        | (kernel.FOPEN_KEEP_CACHE if keeps else 0)
        | (kernel.FOPEN_NOFLUSH if reads else 0)
    )


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
