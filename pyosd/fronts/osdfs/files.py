# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations of the kernel on attributes and data of one node.

Not here: names (tree.py), writing data (writer.py).
"""

from __future__ import annotations

import errno
import os
import stat as modes
import time
from dataclasses import replace
from functools import partial

from pyosd import errors, requests
from pyosd.commands import data as object_data
from pyosd.commands.attributes import get_attribute, get_attributes, swap_attribute
from pyosd.commands.dialogue import Dialogue, call
from pyosd.fronts.osdfs import file_page, kernel
from pyosd.fronts.osdfs.kernel import KernelRequest, Op, SetattrFlag, Space, WithErrno
from pyosd.fronts.osdfs.mounted import Mounted, regular, without_privileges
from pyosd.fronts.osdfs.nodes import JobFile, Node, ViewFile
from pyosd.fronts.osdfs.server import KernelHandler
from pyosd.fronts.osdfs.shown import check_changes, check_opens
from pyosd.types import ROOT, AttributeId, Buffer, ObjectRef

__all__ = ["FileOperations"]

_USED = AttributeId(0xB000_0002, 11)
_FREE = AttributeId(0xB000_0002, 12)
_NOT_DATA = (
    SetattrFlag.MODE | SetattrFlag.UID | SetattrFlag.GID | SetattrFlag.ATIME | SetattrFlag.MTIME
)
_VALUE_MOST = 65_534
_SWAPS = 20
_PRIVILEGES = b"security.capability"
_ATTRIBUTES = 1  # scope of FLUSH: the directory itself, not what is in it


class FileOperations:
    """The operations.  handlers: by their numbers."""

    def __init__(self, mounted: Mounted) -> None:
        self._mounted, self._nodes, self._line = mounted, mounted.nodes, mounted.line
        self.handlers: dict[int, KernelHandler] = {
            Op.GETATTR: self.getattr,
            Op.SETATTR: self.setattr,
            Op.READLINK: self.readlink,
            Op.OPEN: self.open,
            Op.READ: self.read,
            Op.WRITE: self.write,
            Op.FLUSH: self.flush,
            Op.FSYNC: self.fsync,
            Op.FSYNCDIR: self.fsync,
            Op.RELEASE: self.release,
            Op.FALLOCATE: self.fallocate,
            Op.STATFS: self.statfs,
            Op.SETXATTR: self.setxattr,
            Op.GETXATTR: self.getxattr,
            Op.LISTXATTR: self.listxattr,
            Op.REMOVEXATTR: self.removexattr,
        }

    # ---- attributes -----------------------------------------------------------------------------

    async def getattr(self, request: KernelRequest) -> bytes:
        """Attributes of a node."""
        node = self._nodes.get(request.node)
        await self._mounted.current(node)
        return self._mounted.attributes(node)

    async def setattr(self, request: KernelRequest) -> bytes:
        """Set length, mode, owner and times."""
        node = self._nodes.get(request.node)
        if node.object == ROOT:
            raise WithErrno(errno.EPERM)
        check_opens(node, os.O_WRONLY)
        given = kernel.SETATTR_IN.unpack_from(request.body)
        valid, _, _, size, _, atime, mtime, _, atime_ns, mtime_ns, _, mode, _, uid, gid, _ = given
        valid = SetattrFlag(valid)
        if valid & _NOT_DATA:
            check_changes(node)
        asker = None if valid & SetattrFlag.FH else request.pid  # ftruncate
        if valid & SetattrFlag.SIZE:
            privileged = not valid & SetattrFlag.KILL_SUIDGID
            await self._mounted.cut(regular(node), size, privileged=privileged, asker=asker)
            asker = None  # the rest is about the same object
        if valid & (SetattrFlag.MODE | SetattrFlag.UID | SetattrFlag.GID):
            await self._set_owner(
                node,
                asker,
                mode if valid & SetattrFlag.MODE else None,
                uid if valid & SetattrFlag.UID else None,
                gid if valid & SetattrFlag.GID else None,
            )
            asker = None
        if valid & (SetattrFlag.ATIME | SetattrFlag.MTIME):
            now = time.time_ns()
            accessed = now if valid & SetattrFlag.ATIME_NOW else atime * 10**9 + atime_ns
            modified = now if valid & SetattrFlag.MTIME_NOW else mtime * 10**9 + mtime_ns
            given = (
                accessed if valid & SetattrFlag.ATIME else None,
                modified if valid & SetattrFlag.MTIME else None,
            )
            if await self._mounted.new.set_times(node, *given):
                return self._mounted.attributes(node)
            # The version of a directory is not known once something here has changed its entries.
            ask = self._mounted.refresh if node.is_directory else self._mounted.current
            values = file_page.time_values(await ask(node), *given)
            await self._mounted.set(node, values, asker=asker)
        return self._mounted.attributes(node)

    async def _set_owner(
        self, node: Node, asker: int | None, mode: int | None, uid: int | None, gid: int | None
    ) -> None:
        stat = replace((await self._mounted.current(node)).stat)
        if mode is not None:
            stat.mode = modes.S_IFMT(stat.mode) | modes.S_IMODE(mode)
        elif not node.is_directory:  # chown(2)
            stat.mode = without_privileges(stat.mode)
        stat.uid = stat.uid if uid is None else uid
        stat.gid = stat.gid if gid is None else gid
        if not await self._mounted.new.describe(node, stat):
            values = [file_page.owner_value(stat)]
            await self._mounted.set(node, values, asker=asker)

    async def readlink(self, request: KernelRequest) -> bytes:
        """The target of a symbolic link."""
        node = self._nodes.get(request.node)
        obj = _attributes_of(node)
        target = await self._line.carry(lambda: get_attribute(obj, *file_page.LINK_TARGET))
        if not target:
            raise WithErrno(errno.EINVAL)
        return target

    # ---- data -----------------------------------------------------------------------------------

    async def open(self, request: KernelRequest) -> bytes:
        """Open a file."""
        flags, open_flags = kernel.OPEN_IN.unpack_from(request.body)
        node = regular(self._nodes.get(request.node))
        privileged = not open_flags & kernel.KILL_SUIDGID_AT_OPEN
        return await self._mounted.open(node, flags, request.pid, privileged=privileged)

    async def release(self, request: KernelRequest) -> bytes:
        """Close a file; close(2) has had its errors from flush()."""
        await self._mounted.close(self._nodes.get(request.node))
        return b""

    async def read(self, request: KernelRequest) -> Buffer:
        """Read what the target has, after all that was written here."""
        _, start, size, *_ = kernel.READ_IN.unpack_from(request.body)
        node = self._nodes.get(request.node)
        if (new := self._mounted.new.read(node, start, size)) is not None:
            return new
        if node.writer and not node.writer.clean:
            await node.writer.drain()
        if isinstance(node.shown, JobFile) and node.shown.content is not None:
            return node.shown.content[start : start + size]
        if (head := self._mounted.head(node, start, size)) is not None:
            return head
        node.partial = False
        node.asked = 0.0  # the time of access changes
        return await self._line.carry(lambda: object_data.read(node.object, start, size))

    async def write(self, request: KernelRequest) -> bytes:
        """Take data; they are sent in the background."""
        _, start, size, write_flags, _, flags, _ = kernel.WRITE_IN.unpack_from(request.body)
        node = self._nodes.get(request.node)
        data = request.body[kernel.WRITE_IN.size :][:size]
        if write_flags & kernel.KILL_SUIDGID_AT_WRITE:
            await self._mounted.drop_privileges(node)
        cached = write_flags & kernel.WRITE_CACHE
        made = node.shown or node.facts.length_unknown  # by functions, which refuse APPEND
        appends = flags & os.O_APPEND and not cached and not made
        if await self._mounted.new.write(node, None if appends else start, data):
            return kernel.WRITE_OUT.pack(size, 0)
        writer = self._mounted.writer(node)
        if appends:
            await writer.append(data)
        else:
            await writer.write(start, data, waits=not cached)
        return kernel.WRITE_OUT.pack(size, 0)

    async def flush(self, request: KernelRequest) -> bytes:
        """close(2): others see what was written.  Raises: what writes have failed with."""
        node = self._nodes.get(request.node)
        await self._mounted.new.store(node)
        if node.writer:
            await node.writer.settle()
        return b""

    async def fsync(self, request: KernelRequest) -> bytes:
        """Make data, attributes and names survive power loss."""
        node = self._nodes.get(request.node)
        await self._mounted.new.store_in(node)
        await self._mounted.new.store(node)
        if node.writer:
            await node.writer.settle()
        if _attributes_of(node) != ROOT:
            await self._line.carry(lambda: _flush(_attributes_of(node), node.is_directory))
        return b""

    async def fallocate(self, request: KernelRequest) -> bytes:
        """Make holes.  The target reserves no space."""
        _, start, length, mode, _ = kernel.FALLOCATE_IN.unpack_from(request.body)
        node = regular(self._nodes.get(request.node))
        await self._mounted.new.store(node)
        made = node.shown or node.facts.length_unknown
        if made or not mode & (kernel.FALLOC_PUNCH_HOLE | kernel.FALLOC_ZERO_RANGE):
            raise WithErrno(errno.EOPNOTSUPP)
        if node.writer:
            await node.writer.drain()
        if mode & kernel.FALLOC_KEEP_SIZE:
            end = (await self._mounted.refresh(node)).stat.size
            length = max(min(length, end - start), 0)
        self._nodes.change(node)
        if length:
            await self._line.carry(lambda: object_data.clear(node.object, start, length))
        node.cached = b""
        return b""

    async def statfs(self, request: KernelRequest) -> bytes:
        """Space of the target, as far as this user may know it."""
        try:
            used, free = await self._line.carry(lambda: get_attributes(ROOT, [_USED, _FREE]))
        except (errors.PermissionDenied, errors.Invalid):
            return kernel.statfs_out(Space(0, 0, 0))
        blocks, rest = (used.uint + free.uint) // kernel.PAGE, free.uint // kernel.PAGE
        return kernel.statfs_out(Space(blocks, rest, 0))

    # ---- extended attributes --------------------------------------------------------------------

    async def _xattrs(self, node: Node) -> tuple[bytes, dict[bytes, bytes]]:
        """The value of the attribute that has them, and each."""
        obj = _attributes_of(node)
        if obj == ROOT or node.new:
            return b"", {}
        value = node.facts.xattrs if self._mounted.knows(node) and not node.shown else None
        if value is None:
            value = await self._line.carry(lambda: get_attribute(obj, *file_page.XATTRS))
        try:
            return value, file_page.decode_xattrs(value)
        except ValueError:
            raise WithErrno(errno.EIO) from None

    async def getxattr(self, request: KernelRequest) -> bytes:
        """The value of one, or its length."""
        room, _ = kernel.GETXATTR_IN.unpack_from(request.body)
        (name,) = kernel.names_in(request.body[kernel.GETXATTR_IN.size :])
        if name.startswith(b"system."):
            raise WithErrno(errno.EOPNOTSUPP)
        node = self._nodes.get(request.node)
        if node.fresh and name == _PRIVILEGES:  # at the first write
            raise WithErrno(errno.ENODATA)
        _, values = await self._xattrs(node)
        if name not in values:
            raise WithErrno(errno.ENODATA)
        return _sized(values[name], room)

    async def listxattr(self, request: KernelRequest) -> bytes:
        """All names, or their length."""
        room, _ = kernel.GETXATTR_IN.unpack_from(request.body)
        _, values = await self._xattrs(self._nodes.get(request.node))
        return _sized(b"".join(name + b"\0" for name in values), room)

    async def setxattr(self, request: KernelRequest) -> bytes:
        """Set one."""
        size, flags = kernel.SETXATTR_IN.unpack_from(request.body)
        name, _, rest = bytes(request.body[kernel.SETXATTR_IN.size :]).partition(b"\0")
        await self._change(self._nodes.get(request.node), name, rest[:size], flags)
        return b""

    async def removexattr(self, request: KernelRequest) -> bytes:
        """Remove one."""
        (name,) = kernel.names_in(request.body)
        await self._change(self._nodes.get(request.node), name, None, kernel.XATTR_REPLACE)
        return b""

    async def _change(self, node: Node, name: bytes, value: bytes | None, flags: int) -> None:
        """Set one, None: remove it; what other clients set at the same time stays."""
        if name.startswith(b"system.") or node.object == ROOT:
            raise WithErrno(errno.EOPNOTSUPP)
        check_changes(node)
        await self._mounted.new.store(node)
        node.fresh = False
        for _ in range(_SWAPS):
            self._nodes.change(node)  # what others have set meanwhile is not to be lost
            old, values = await self._xattrs(node)
            if flags & kernel.XATTR_CREATE and name in values:
                raise WithErrno(errno.EEXIST)
            if flags & kernel.XATTR_REPLACE and name not in values:
                raise WithErrno(errno.ENODATA)
            if value is None:
                del values[name]
            else:
                values[name] = value
            new = file_page.encode_xattrs(values)
            if len(new) > _VALUE_MOST:
                raise WithErrno(errno.ENOSPC)
            before = await self._line.carry(
                partial(swap_attribute, node.object, file_page.XATTRS, old, new)
            )
            if before in (old, new):
                return
        raise WithErrno(errno.EAGAIN)


def _sized(value: bytes, room: int) -> bytes:
    """A value for a caller with `room` bytes; 0: the caller asks for its length."""
    if not room:
        return kernel.GETXATTR_IN.pack(len(value), 0)
    if len(value) > room:
        raise WithErrno(errno.ERANGE)
    return value


def _attributes_of(node: Node) -> ObjectRef:
    """The object that has the attributes of a node; ROOT: none has."""
    if isinstance(node.shown, ViewFile):
        return node.shown.base or ROOT
    return ROOT if node.shown else node.object


def _flush(obj: ObjectRef, is_directory: bool) -> Dialogue[object]:
    if not is_directory:
        return call(requests.flush(obj))
    if obj.object_id:
        return call(requests.flush_collection(obj, _ATTRIBUTES))
    return call(requests.flush_partition(obj.partition_id, _ATTRIBUTES))
