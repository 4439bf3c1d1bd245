# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations of the kernel on names: look up, make, remove and move.

Commands address a directory by its id, so names that other clients move do no harm.  Where a command needs
two directories, it has their paths from the partition, or from the top of the file system.
Not here: listings (directories.py), attributes and data (files.py).
"""

from __future__ import annotations

import errno
import os
import secrets
import stat as modes
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import partial

from pyosd import errors
from pyosd.commands import names
from pyosd.commands.attributes import get_attributes
from pyosd.commands.dialogue import Dialogue
from pyosd.fronts.osdfs import file_page, kernel
from pyosd.fronts.osdfs.errnos import is_of_directory
from pyosd.fronts.osdfs.kernel import KernelRequest, Op, Stat, WithErrno
from pyosd.fronts.osdfs.mounted import Mounted, regular
from pyosd.fronts.osdfs.nodes import Node
from pyosd.fronts.osdfs.server import KernelHandler
from pyosd.fronts.osdfs.shown import check_changes
from pyosd.fs.paths import JOBS, named_id, text_of
from pyosd.types import FIRST_ID, ROOT, AttributeValue, ObjectRef, ref
from pyosd.wire.names import NameEntry, NameParams, NameVerb

__all__ = ["NameOperations"]

_HIDDEN = b".osd-open-"
_ABSENT = (errors.NoSuchName, errors.NotADirectory)


class NameOperations:
    """The operations.  handlers: by their numbers."""

    def __init__(self, mounted: Mounted) -> None:
        self._mounted, self._nodes, self._line = mounted, mounted.nodes, mounted.line
        self.handlers: dict[int, KernelHandler] = {
            Op.LOOKUP: self.lookup,
            Op.MKNOD: self.mknod,
            Op.CREATE: self.create,
            Op.MKDIR: self.mkdir,
            Op.SYMLINK: self.symlink,
            Op.LINK: self.link,
            Op.UNLINK: self.unlink,
            Op.RMDIR: self.rmdir,
            Op.RENAME: self.rename,
            Op.RENAME2: self.rename2,
        }

    # ---- look up --------------------------------------------------------------------------------

    async def lookup(self, request: KernelRequest) -> bytes:
        """Find a name in a directory."""
        parent, (name,) = self._nodes.get(request.node), kernel.names_in(request.body)
        _check(name)
        node = None
        try:
            node = await self._find(parent, name)
        finally:
            self._mounted.looked_up(request.pid, node)
        return self._mounted.entry(node)

    async def _find(self, parent: Node, name: bytes) -> Node:
        """Raises: NoSuchName."""
        if parent.shown:
            return await self._mounted.shown.find(parent, name)
        known = self._nodes.at(parent, name)
        if known and known.new:
            return known
        try:
            if parent.object == ROOT:
                return await self._find_partition(parent, name)
            if self._nodes.lacks(parent, name):
                raise errors.NoSuchName(0, 0, 0, text_of(name))
            # The wanted attributes depend on the type.  A wrong guess costs a second command.
            first = known is not None and known.is_directory
            try:
                return await self._find_as(parent, name, is_directory=first)
            except errors.Invalid as error:
                if isinstance(error, errors.NotADirectory):
                    raise
                return await self._find_as(parent, name, is_directory=not first)
        except _ABSENT:
            if shown := await self._mounted.shown.at_top(parent, name):
                return shown
            self._nodes.leave(parent, name)
            raise

    async def _find_as(self, parent: Node, name: bytes, *, is_directory: bool) -> Node:
        return await self._act(
            parent, name, NameParams(NameVerb.LOOKUP, name), is_directory=is_directory
        )

    async def _find_partition(self, parent: Node, name: bytes) -> Node:
        def found() -> Dialogue[tuple[ObjectRef, tuple[AttributeValue, ...]]]:
            number = named_id(text_of(name))
            if number is None and text_of(name) == JOBS:
                raise errors.NoSuchName(0, 0, 0, JOBS)  # a partition with that name has only an id
            if number is None:
                obj = (yield from names.lookup(ROOT, name)).object
            elif number < FIRST_ID:
                raise WithErrno(errno.ENOENT)
            else:
                obj = ref(number)
            return obj, (
                yield from get_attributes(obj, file_page.wanted_of(obj, is_directory=True))
            )

        since = self._nodes.changes
        try:
            obj, values = await self._line.carry(found)
        except (errors.NotFound, errors.Invalid):
            raise errors.NoSuchName(0, 0, 0, text_of(name)) from None
        facts = file_page.facts_of(values, self._mounted.defaults, is_directory=True, links=1)
        return self._nodes.found(parent, name, obj, is_directory=True, facts=facts, since=since)

    async def _act(
        self,
        parent: Node,
        name: bytes,
        params: NameParams,
        values: Sequence[AttributeValue] = (),
        *,
        is_directory: bool,
        base: ObjectRef | None = None,
        again: bool = True,
    ) -> Node:
        """A command whose path is a name in a directory.  Returns: the node of what it names then.

        base: what the path of the command begins at; None: the directory.
        """
        wanted, since = (
            file_page.wanted_of(ref(1, 1), is_directory=is_directory),
            self._nodes.changes,
        )

        def acted() -> Dialogue[tuple[NameEntry, tuple[AttributeValue, ...]]]:
            return names.act(base or parent.object, params, values, wanted)

        try:
            entry, found = await self._line.carry(acted, again=again)
        except errors.OSDError:
            if not again:
                parent.names = None  # it may have the name
            raise
        facts = file_page.facts_of(
            found, self._mounted.defaults, is_directory=is_directory, links=entry.names
        )
        node = self._nodes.found(
            parent, name, entry.object, is_directory=is_directory, facts=facts, since=since
        )
        if node.writer and not node.writer.clean:  # the target does not know its length yet
            await self._mounted.refresh(node)
        await self._mounted.measure(node)
        return node

    # ---- make -----------------------------------------------------------------------------------

    async def _make(
        self,
        request: KernelRequest,
        name: bytes,
        stat: Stat,
        values: Sequence[AttributeValue] = (),
    ) -> Node:
        parent, is_directory = self._parent(request), modes.S_ISDIR(stat.mode)
        await self._mounted.new.store(self._nodes.at(parent, name))
        self._give_owner(request, parent, name, stat)
        asked = time.monotonic()
        verb = NameVerb.MKDIR if is_directory else NameVerb.CREATE
        act = partial(
            self._act,
            parent,
            name,
            NameParams(verb, name),
            is_directory=is_directory,
            again=False,
        )
        try:
            node = await act([file_page.owner_value(stat), *values])
        except errors.Invalid as error:
            if not is_of_directory(error):
                raise
            node = await act()
        self._nodes.change_entries(parent)
        if is_directory:
            node.names = self._mounted.no_names(asked)
        return node

    def _give_owner(self, request: KernelRequest, parent: Node, name: bytes, stat: Stat) -> None:
        """The owner of something new in a directory.  Raises: WithErrno: the name is too long."""
        _check(name)
        stat.uid, stat.gid = request.uid, request.gid
        above = parent.facts.stat
        if above.mode & modes.S_ISGID:
            stat.gid = above.gid
            stat.mode |= modes.S_ISGID if modes.S_ISDIR(stat.mode) else 0

    def _parent(self, request: KernelRequest) -> Node:
        """The directory that an operation changes.  Raises: WithErrno: it is the root, or only shown."""
        parent = self._nodes.get(request.node)
        check_changes(parent)
        if parent.object == ROOT:
            raise WithErrno(errno.EPERM)
        return parent

    async def mknod(self, request: KernelRequest) -> bytes:
        """Make a file, a FIFO, a socket or a device."""
        mode, device, _, _ = kernel.MKNOD_IN.unpack_from(request.body)
        (name,) = kernel.names_in(request.body[kernel.MKNOD_IN.size :])
        return self._mounted.entry(await self._make(request, name, Stat(mode, device=device)))

    async def create(self, request: KernelRequest) -> bytes:
        """Make a file and open it."""
        flags, mode, _, _ = kernel.CREATE_IN.unpack_from(request.body)
        (name,) = kernel.names_in(request.body[kernel.CREATE_IN.size :])
        made, parent = True, self._parent(request)
        stat = Stat(modes.S_IFREG | modes.S_IMODE(mode))
        self._give_owner(request, parent, name, stat)
        known = self._nodes.at(parent, name)
        node = None
        if known is None or not known.new:
            node = self._mounted.new.make(parent, name, stat, flags)
        try:
            node = node or await self._make(request, name, stat)
        except errors.NameExists:
            if flags & os.O_EXCL:
                raise
            made = False
            node = regular(await self._find(parent, name))
        opened = await self._mounted.open(node, flags, request.pid, made=made)
        node.fresh = node.fresh or made
        if made and not flags & os.O_APPEND:
            self._mounted.new.fill(node)
        return self._mounted.entry(node) + opened

    async def mkdir(self, request: KernelRequest) -> bytes:
        """Make a directory."""
        mode, _ = kernel.MKDIR_IN.unpack_from(request.body)
        (name,) = kernel.names_in(request.body[kernel.MKDIR_IN.size :])
        node = await self._make(request, name, Stat(modes.S_IFDIR | modes.S_IMODE(mode)))
        return self._mounted.entry(node)

    async def symlink(self, request: KernelRequest) -> bytes:
        """Make a symbolic link."""
        name, target = kernel.names_in(request.body, 2)
        stat = Stat(modes.S_IFLNK | 0o777, size=len(target))
        value = AttributeValue(*file_page.LINK_TARGET, target)
        return self._mounted.entry(await self._make(request, name, stat, [value]))

    async def link(self, request: KernelRequest) -> bytes:
        """Give a file one more name."""
        (number,) = kernel.LINK_IN.unpack_from(request.body)
        (name,) = kernel.names_in(request.body[kernel.LINK_IN.size :])
        parent, node = self._parent(request), self._nodes.get(number)
        _check(name)
        if node.shown:
            raise WithErrno(errno.EXDEV)
        await self._mounted.new.store(self._nodes.at(parent, name))
        await self._mounted.new.store(node)
        base, params = await self._link_params(parent, name, node)
        made = await self._act(parent, name, params, is_directory=False, base=base, again=False)
        self._nodes.change_entries(parent)
        if made is not node:  # its name was given to another object meanwhile
            await self._line.carry(lambda: names.unlink(parent.object, name), again=False)
            raise WithErrno(errno.ESTALE)
        return self._mounted.entry(node)

    async def _link_params(
        self, parent: Node, name: bytes, node: Node
    ) -> tuple[ObjectRef, NameParams]:
        """The address and parameters of LINK.  It names the object by its id if that is permitted."""
        base, above = await self._verified(parent)
        if base.partition_id != node.object.partition_id:
            raise WithErrno(errno.EXDEV)
        path = b"/".join([*above, name])
        if not base.object_id:
            return base, NameParams(NameVerb.LINK, path, object_id=int(node.object.object_id))
        if node.above is None or node.hidden:
            raise WithErrno(errno.ENOENT)
        _, source = await self._verified(node.above[0])
        return base, NameParams(NameVerb.LINK, path, b"/".join([*source, node.above[1]]))

    async def _verified(self, directory: Node) -> tuple[ObjectRef, list[bytes]]:
        """The anchor of a directory.  Raises: WithErrno: another client has moved it."""
        base, path = self._nodes.anchor(directory)
        if path:
            try:
                entry = await self._line.carry(lambda: names.lookup(base, b"/".join(path)))
            except _ABSENT:
                raise WithErrno(errno.ESTALE) from None
            if entry.object != directory.object:
                raise WithErrno(errno.ESTALE)
        return base, path

    # ---- remove and move ------------------------------------------------------------------------

    async def unlink(self, request: KernelRequest) -> bytes:
        """Take a name from a file."""
        parent, (name,) = self._parent(request), kernel.names_in(request.body)
        await self._store(parent, name)
        node = await self._keep(parent, name)
        await self._taken(parent, name, node, lambda: names.unlink(parent.object, name))
        return b""

    async def rmdir(self, request: KernelRequest) -> bytes:
        """Remove a directory."""
        parent, (name,) = self._parent(request), kernel.names_in(request.body)
        await self._store(parent, name)
        await self._taken(parent, name, None, lambda: names.remove_directory(parent.object, name))
        return b""

    async def _store(self, parent: Node, name: bytes) -> None:
        """Have the target make what is new here under a name, or in the directory with that name."""
        if node := self._nodes.at(parent, name):
            await self._mounted.new.store(node)
            await self._mounted.new.store_in(node)

    async def _taken(
        self, parent: Node, name: bytes, node: Node | None, dialogue: Callable[[], Dialogue[object]]
    ) -> None:
        await self._line.carry(dialogue, again=False)
        self._nodes.remove(parent, name)
        self._nodes.change_entries(parent)
        await self._lost_name(node)

    async def _lost_name(self, node: Node | None) -> None:
        """A name of a file is gone.  If it has others, its time of change is now."""
        if node is None or node.is_directory:
            return
        node.facts.stat.links = max(node.facts.stat.links - 1, 0)
        if node.facts.stat.links:
            with suppress(errors.OSDError):  # the name is gone, whatever this says
                await self._mounted.set(node, [file_page.NOTHING])

    async def _keep(self, parent: Node, name: bytes) -> Node | None:
        """Give the file of a last name another one, if it is open: it lives until it is closed."""
        node = self._nodes.at(parent, name)
        if node is None or not node.opens or node.hidden or node.facts.stat.links > 1:
            return node
        top, hidden = self._nodes.anchor(parent)[0], _HIDDEN + secrets.token_hex(8).encode()
        if known := self._nodes.of_object(top):
            known.names = None
        if top.object_id:
            _, path = await self._verified(parent)
            params = NameParams(NameVerb.LINK, hidden, b"/".join([*path, name]))
        else:
            params = NameParams(NameVerb.LINK, hidden, object_id=int(node.object.object_id))
        try:
            entry, _ = await self._line.carry(lambda: names.act(top, params), again=False)
        except (*_ABSENT, errors.Invalid):
            return node  # another client was first
        if entry.object != node.object:
            await self._line.carry(lambda: names.unlink(top, hidden), again=False)
            return node
        node.hidden = hidden
        return node

    async def rename(self, request: KernelRequest) -> bytes:
        """Move a name; what has the new name loses it."""
        (new_directory,) = kernel.LINK_IN.unpack_from(request.body)
        old, new = kernel.names_in(request.body[kernel.LINK_IN.size :], 2)
        return await self._rename(request, new_directory, old, new, 0)

    async def rename2(self, request: KernelRequest) -> bytes:
        """The same with flags."""
        new_directory, flags, _ = kernel.RENAME2_IN.unpack_from(request.body)
        old, new = kernel.names_in(request.body[kernel.RENAME2_IN.size :], 2)
        return await self._rename(request, new_directory, old, new, flags)

    async def _rename(
        self, request: KernelRequest, new_directory: int, old: bytes, new: bytes, flags: int
    ) -> bytes:
        parent, to = self._parent(request), self._nodes.get(new_directory)
        if flags not in (0, kernel.RENAME_NOREPLACE, kernel.RENAME_EXCHANGE):
            raise WithErrno(errno.EINVAL)
        check_changes(to)
        _check(new)
        base, above, below = parent.object, list[bytes](), list[bytes]()
        if parent is not to:
            base, above = await self._verified(parent)
            other, below = await self._verified(to)
            if other != base:
                raise WithErrno(errno.EXDEV)
        exchange = flags == kernel.RENAME_EXCHANGE
        for directory, name in ((parent, old), (to, new)):
            await self._store(directory, name)
        moved, victim = self._nodes.at(parent, old), self._nodes.at(to, new)
        if not flags and victim is not moved:
            await self._keep(to, new)
        source, path = b"/".join([*above, old]), b"/".join([*below, new])
        try:
            await self._line.carry(
                lambda: names.rename(base, source, path, replace=not flags, exchange=exchange),
                again=False,
            )
        except errors.OSDError:
            to.names = None  # it may have the name
            raise
        if moved is victim and moved is not None and not exchange:
            return b""  # two names of one file: both stay
        for each in (moved, victim):
            if each:
                self._nodes.change(each)
        for directory in (parent, to):
            self._nodes.change_entries(directory)
        self._moved(parent, old, victim if exchange else None)
        self._moved(to, new, moved)
        if exchange:
            parent.names = to.names = None
        elif to.names:
            to.names.found.add(new)
        if not exchange:
            await self._lost_name(victim)
        return b""

    def _moved(self, parent: Node, name: bytes, node: Node | None) -> None:
        """A node has a name now; None: nothing that is known here."""
        self._nodes.remove(parent, name)
        if node:
            self._nodes.place(node, parent, name)
            self._mounted.keep(node)


def _check(name: bytes) -> None:
    """Raises: WithErrno: the target has no such names."""
    if len(name) > kernel.NAME_MAX:
        raise WithErrno(errno.ENAMETOOLONG)
