# SPDX-License-Identifier: GPL-2.0-or-later
"""Files that the target does not have yet: a small file is stored by one command, PUT, when it is closed.

Programs here see such a file at once.  Other clients see it when it has been stored: at close(), at
fsync(), when it outgrows a PUT, before any operation that needs the object, and after a second.
Until then the inode has a number of this mount.
O_EXCL must know at once whether somebody else has the name: such a file is made at once, and gets its data
and attributes when it is stored.  O_APPEND shares the file with others, and nothing waits.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import stat as modes
import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from typing import Protocol

from pyosd import errors, requests
from pyosd.commands import data as object_data
from pyosd.commands import names
from pyosd.commands.attributes import set_attributes
from pyosd.commands.dialogue import Dialogue, call
from pyosd.fronts.osdfs import file_page, kernel
from pyosd.fronts.osdfs.file_page import Defaults, Facts
from pyosd.fronts.osdfs.kernel import Stat, WithErrno
from pyosd.fronts.osdfs.line import PatientSession
from pyosd.fronts.osdfs.nodes import Node, NodeTable, UnstoredFile
from pyosd.types import ROOT, AttributeValue, Buffer, ref
from pyosd.wire.attributes import LOGICAL_LENGTH
from pyosd.wire.cdb import lists_of
from pyosd.wire.names import DATA_MAX, NameEntry, NameParams, NameVerb

__all__ = ["UnstoredFiles"]

_IDLE_S = 1.0  # as of Writer
_MADE_AT_ONCE = os.O_EXCL | os.O_APPEND
_EMPTY = AttributeValue(*LOGICAL_LENGTH, bytes(8))
_WANTED = file_page.wanted_of(ref(1, 1), is_directory=False)
_log = logging.getLogger("osdfs")


class _Mounted(Protocol):
    """The part of a mount that new files need (mounted.py)."""

    line: PatientSession
    nodes: NodeTable
    defaults: Defaults
    notify: Callable[[bytes], None]

    async def current(self, node: Node) -> Facts:
        """Attributes of a node."""
        ...

    async def set(self, node: Node, values: Iterable[AttributeValue]) -> Facts:
        """Set attributes."""
        ...

    async def measure(self, node: Node) -> None:
        """Read data whose length is not known."""
        ...


class UnstoredFiles:
    """The new files of a mount."""

    def __init__(self, mounted: _Mounted) -> None:
        self._mounted, self._nodes, self._line = mounted, mounted.nodes, mounted.line
        self._waiting = dict[int, Node]()  # in the order in which they are due
        self._timer: asyncio.TimerHandle | None = None  # one for all, as of AsyncConnection

    # ---- use ------------------------------------------------------------------------------------

    def make(self, parent: Node, name: bytes, stat: Stat, flags: int) -> Node | None:
        """A new file; None: it must be made at the target at once."""
        if flags & _MADE_AT_ONCE or parent.refuses or parent.shown or parent.object == ROOT:
            return None
        stat.modified = stat.accessed = stat.changed = time.time_ns()
        node = self._nodes.add_new(parent, name, Facts(stat, xattrs=b""))
        self._begin(node, UnstoredFile(bool(flags & os.O_TRUNC)))
        self._nodes.change_entries(parent)
        return node

    def fill(self, node: Node) -> None:
        """A file that was made at once gets its first data and its attributes in one command, too."""
        if not node.new and not node.shown:
            self._begin(node, UnstoredFile(cuts=False, made=True))

    def _begin(self, node: Node, new: UnstoredFile) -> None:
        loop = asyncio.get_running_loop()
        node.new, new.due = new, loop.time() + _IDLE_S
        self._waiting[node.id] = node
        if self._timer is None:
            self._timer = loop.call_at(new.due, self._store_due)

    async def write(self, node: Node, start: int | None, data: Buffer) -> bool:
        """Take data.  start: None: behind the end.  Returns: False: the target has the file now."""
        new, count = node.new, len(data)
        if new is None:
            return False
        start = len(new.data) if start is None else start
        if new.storing or max(start + count, len(new.data)) > DATA_MAX:
            await self.store(node)
            return False
        if start > len(new.data):
            new.data += bytes(start - len(new.data))
        new.data[start : start + count] = data
        stat = node.facts.stat
        stat.size = len(new.data)
        stat.modified = stat.changed = time.time_ns()
        new.modified = None
        return True

    def read(self, node: Node, start: int, size: int) -> bytes | None:
        """Data of a new file; None: it is none."""
        return bytes(memoryview(node.new.data)[start : start + size]) if node.new else None

    async def cut(self, node: Node, length: int) -> bool:
        """Set the length.  Returns: as write()."""
        if node.new and not node.new.storing and length < len(node.new.data):
            del node.new.data[length:]
        elif node.new and length > len(node.new.data):
            return await self.write(node, length, b"")
        return node.new is not None and await self.write(node, 0, b"")

    async def describe(self, node: Node, stat: Stat) -> bool:
        """Set mode and owner.  Returns: as write()."""
        if node.new and node.new.storing:
            await self.store(node)
        if node.new is None:
            return False
        stat.changed = time.time_ns()
        node.facts.stat, node.new.described = stat, True
        return True

    async def set_times(self, node: Node, accessed: int | None, modified: int | None) -> bool:
        """Set times in ns.  Returns: as write()."""
        new, stat = node.new, replace(node.facts.stat)
        stat.accessed = stat.accessed if accessed is None else accessed
        stat.modified = stat.modified if modified is None else modified
        if new is None or not await self.describe(node, stat):
            return False
        new.accessed = new.accessed if accessed is None else accessed
        new.modified = new.modified if modified is None else modified
        return True

    async def store_in(self, directory: Node) -> None:
        """Store the new files of a directory.  Raises: as store()."""
        for node in [*self._waiting.values()]:
            if node.above and node.above[0] is directory:
                await self.store(node)

    async def store(self, node: Node | None) -> None:
        """Have the target make the file, if it is new.  Raises: why it refuses; it is as before then."""
        while node and (new := node.new):
            if new.storing:
                await asyncio.wait([new.storing])
                continue
            new.storing = asyncio.get_running_loop().create_future()
            try:
                await self._store(node, new)
            except BaseException:
                new.data = bytearray(new.data)  # a command may still hold the other
                raise
            finally:
                new.storing.set_result(None)
                new.storing = None

    async def drop(self, node: Node) -> None:
        """Store the file at its last close(); what cannot be stored then is lost."""
        try:
            await self.store(node)
        except Exception as error:
            _log.error("data of a new file are lost: %s", str(error) or type(error).__name__)
            if node.above and node.new and not node.new.made:
                self._nodes.leave(*node.above)
            self._stored(node)

    def _stored(self, node: Node) -> None:
        self._waiting.pop(node.id, None)
        node.new = None

    def _store_due(self) -> None:
        """Store those whose second is over, each at most once."""
        loop = asyncio.get_running_loop()
        self._timer, now = None, loop.time()
        for node in self._waiting.values():
            assert node.new
            if node.new.due is None:
                continue
            if node.new.due > now:
                self._timer = loop.call_at(node.new.due, self._store_due)
                break
            node.new.due = None
            task = loop.create_task(self.store(node))
            task.add_done_callback(_ignore)  # close() will find out

    # ---- store ----------------------------------------------------------------------------------

    async def _store(self, node: Node, new: UnstoredFile) -> None:
        since = self._nodes.changes
        if new.made and not (new.data or new.described):
            self._stored(node)
        else:
            facts, whole = await (self._fill(node, new) if new.made else self._put(node, new))
            node.learn(facts, since)
            await self._mounted.measure(node)
            node.cached = facts.version if whole else b""
            node.partial = bool(facts.stat.size % kernel.PAGE)
            self._stored(node)
            self._mounted.notify(kernel.old_attributes(node.id))
        if new.accessed is not None or new.modified is not None:
            facts = await self._mounted.current(node)
            await self._mounted.set(node, file_page.time_values(facts, new.accessed, new.modified))

    async def _put(self, node: Node, new: UnstoredFile) -> tuple[Facts, bool]:
        """Make the object.  Returns: its facts, and whether it has our data and no others."""
        assert node.above
        parent, name = node.above
        params = names.put_params(name, new.data, replace=False)
        values, whole = [file_page.owner_value(node.facts.stat)], True
        try:
            entry, found = await self._line.carry(
                lambda: names.act(parent.object, params, values, _WANTED)
            )
        except errors.NameExists:  # another client's, or ours if the session was lost
            whole, (entry, found) = False, await self._join(parent, name, node, new)
        except errors.OSDError as error:
            # The next one is refused when it is made.
            parent.refuses = isinstance(error, errors.PermissionDenied | errors.Invalid)
            raise
        self._nodes.bind(node, entry.object)
        return self._facts(found, entry.names), whole

    async def _fill(self, node: Node, new: UnstoredFile) -> tuple[Facts, bool]:
        """As _put() for an object that has been made already."""
        obj, values = node.object, [file_page.owner_value(node.facts.stat)] if new.described else []

        def filled() -> Dialogue[tuple[AttributeValue, ...]]:
            if not new.data:
                return (yield from set_attributes(obj, values, _WANTED))
            lists = lists_of(_WANTED, values)
            return (yield from call(requests.write(obj, 0, new.data, attributes=lists))).attributes

        found = await self._line.carry(filled)
        facts = self._facts(found, node.facts.stat.links)
        return facts, facts.stat.size == len(new.data)

    def _facts(self, values: Sequence[AttributeValue], links: int) -> Facts:
        return file_page.facts_of(values, self._mounted.defaults, is_directory=False, links=links)

    async def _join(
        self, parent: Node, name: bytes, node: Node, new: UnstoredFile
    ) -> tuple[NameEntry, tuple[AttributeValue, ...]]:
        """Another client has made a file with this name: it gets the data, as if open() had found it."""
        params = NameParams(NameVerb.LOOKUP, name)

        def look() -> Dialogue[tuple[NameEntry, tuple[AttributeValue, ...]]]:
            return names.act(parent.object, params, (), _WANTED)

        try:
            entry, found = await self._line.carry(look)
        except errors.Invalid:  # a directory
            raise WithErrno(errno.EISDIR) from None
        facts = self._facts(found, entry.names)
        if not modes.S_ISREG(facts.stat.mode):
            raise WithErrno(errno.EEXIST)
        if not _may_write(facts.stat, node.facts.stat):
            raise WithErrno(errno.EACCES)
        obj = entry.object
        if new.cuts:
            await self._line.carry(lambda: set_attributes(obj, [_EMPTY]))
        if new.data:
            await self._line.carry(lambda: object_data.write(obj, 0, new.data))
        return await self._line.carry(look)


def _may_write(stat: Stat, user: Stat) -> bool:
    """Whether the user who has made one file may write another.  Further groups are not known here."""
    if user.uid == 0:
        return True
    if user.uid == stat.uid:
        return bool(stat.mode & modes.S_IWUSR)
    return bool(stat.mode & (modes.S_IWGRP if user.gid == stat.gid else modes.S_IWOTH))


def _ignore(task: asyncio.Future[None]) -> None:
    if not task.cancelled():
        task.exception()
