# SPDX-License-Identifier: GPL-2.0-or-later
"""Names that a mount adds to those of its objects: .jobs and .views at the top of each partition.

No directory lists them, so programs that walk through a partition see its data once.  .jobs has the files
of the partition's jobs.  .views has a directory for each view of the partition: names and attributes are
those of the partition, data those of the view's objects.
"""

from __future__ import annotations

import errno
import os
import stat as modes
from functools import partial

from pyosd import errors
from pyosd.commands import data as object_data
from pyosd.commands import names
from pyosd.commands.attributes import get_attributes
from pyosd.commands.collections import list_objects
from pyosd.commands.dialogue import Dialogue, collected
from pyosd.fronts.osdfs import file_page, kernel
from pyosd.fronts.osdfs.file_page import Defaults, Facts
from pyosd.fronts.osdfs.kernel import Stat, WithErrno
from pyosd.fronts.osdfs.line import PatientSession
from pyosd.fronts.osdfs.nodes import JobFile, Node, NodeTable, ViewFile
from pyosd.fs.lookup import info, iterdir
from pyosd.fs.partitions import find_partition, named_partitions
from pyosd.fs.paths import JOBS, PathInfo, text_of
from pyosd.functions.views import shown_base
from pyosd.types import ROOT, ObjectRef, ref

__all__ = ["Shown", "check_changes", "check_opens"]

_JOBS, _VIEWS = JOBS.encode(), b".views"
_MS = 10**6
_WRITE = 0o222
_ABSENT = (errors.NoSuchName, errors.NotADirectory, errors.NotFound)


def check_changes(node: Node) -> None:
    """Raises: WithErrno: names and attributes of the node cannot be changed."""
    if node.shown:
        raise WithErrno(errno.EROFS)


def check_opens(node: Node, flags: int) -> None:
    """Raises: WithErrno: the file cannot be opened so."""
    writes = flags & os.O_ACCMODE != os.O_RDONLY or flags & os.O_TRUNC
    if node.shown and writes and not node.shown.writable:
        raise WithErrno(errno.EROFS)


class Shown:
    """Finds, lists and describes nodes that show something."""

    def __init__(self, line: PatientSession, nodes: NodeTable, defaults: Defaults) -> None:
        self._line, self._nodes, self._defaults = line, nodes, defaults
        self._fs = line.target.fs

    # ---- find -----------------------------------------------------------------------------------

    async def at_top(self, parent: Node, name: bytes) -> Node | None:
        """The job or view that a name shows, although no directory has it; None: nothing."""
        if parent.shown or parent.object.object_id or name not in (_JOBS, _VIEWS):
            return None
        shown: JobFile | ViewFile
        if name == _JOBS:
            inside = "" if parent.object == ROOT else f"/{parent.object}"
            shown = JobFile(f"/{JOBS}{inside}")
        elif parent.object == ROOT:
            return None
        else:
            shown = ViewFile(None)
        return self._nodes.show(parent, name, parent.object, shown, self._plain_directory())

    async def find(self, parent: Node, name: bytes) -> Node:
        """A name in a directory that is shown.  Raises: WithErrno: there is none."""
        try:
            if isinstance(parent.shown, JobFile):
                return await self._find_job(parent, parent.shown, name)
            assert parent.shown
            if parent.shown.base is None:
                return await self._find_view(parent, name)
            return await self._find_in_view(parent, parent.shown, parent.shown.base, name)
        except _ABSENT:
            self._nodes.leave(parent, name)
            raise WithErrno(errno.ENOENT) from None

    async def _find_job(self, parent: Node, shown: JobFile, name: bytes) -> Node:
        path = f"{shown.path}/{text_of(name)}"
        found = await self._line.carry(lambda: info(self._fs, path))
        file = JobFile(path, found.content)
        return self._nodes.show(parent, name, found.object, file, self._job_facts(found))

    async def _find_view(self, parent: Node, name: bytes) -> Node:
        def found() -> Dialogue[tuple[ObjectRef, tuple[ObjectRef, bool] | None]]:
            partition = yield from find_partition(self._fs, text_of(name))
            return partition, (yield from shown_base(partition.partition_id))

        partition, base = await self._line.carry(found)
        if base is None or base[0].partition_id != parent.object.partition_id:
            raise WithErrno(errno.ENOENT)
        shown = ViewFile(ref(base[0].partition_id), base[1])
        facts = await self._view_facts(partition, shown, is_directory=True)
        return self._nodes.show(parent, name, partition, shown, facts)

    async def _find_in_view(
        self, parent: Node, shown: ViewFile, directory: ObjectRef, name: bytes
    ) -> Node:
        entry = await self._line.carry(lambda: names.lookup(directory, name))
        obj = ref(parent.object.partition_id, entry.object.object_id)
        known = self._nodes.at(parent, name)
        file = ViewFile(entry.object, shown.writable)
        if known and known.object == obj and isinstance(known.shown, ViewFile):
            file.counted = known.shown.counted
        facts = await self._view_facts(obj, file, is_directory=entry.is_directory)
        return self._nodes.show(parent, name, obj, file, facts)

    # ---- list -----------------------------------------------------------------------------------

    async def entries(self, node: Node) -> list[kernel.Dirent]:
        """The entries of a directory that is shown."""
        if isinstance(node.shown, JobFile):
            path = node.shown.path
            found = await self._line.carry(lambda: collected(iterdir(self._fs, path)))
            return [
                _entry(at, each.is_directory, each.name.encode("utf-8", "surrogateescape"))
                for at, each in enumerate(found)
            ]
        assert node.shown
        base = node.shown.base
        if base is None:
            views = await self._line.carry(lambda: _views_of(node.object))
            return [_entry(at, True, each.encode()) for at, each in enumerate(views)]
        return await self._list_view(node.object, base)

    async def _list_view(self, view: ObjectRef, base: ObjectRef) -> list[kernel.Dirent]:
        """The names of the base whose objects the view has."""
        shown = {
            each.object_id
            for each in await self._line.carry(lambda: list_objects(view.partition_id))
        }
        entries = list[kernel.Dirent]()
        after, more = b"", True
        while more:
            page = await self._line.carry(partial(names.list_names, base, after=after))
            entries += [
                _entry(int(each.object.object_id), each.is_directory, each.name)
                for each in page.entries
                if each.is_directory or each.object.object_id in shown
            ]
            more = page.more
            after = page.entries[-1].name if page.entries else b""
        return entries

    # ---- attributes -----------------------------------------------------------------------------

    async def facts(self, node: Node) -> Facts:
        """Attributes as they are now."""
        if isinstance(node.shown, JobFile):
            shown = node.shown
            found = await self._line.carry(lambda: info(self._fs, shown.path))
            shown.content = found.content
            return self._job_facts(found)
        assert node.shown
        return await self._view_facts(node.object, node.shown, is_directory=node.is_directory)

    def _plain_directory(self) -> Facts:
        mode = modes.S_IFDIR | self._defaults.directory_mode & ~_WRITE
        return Facts(Stat(mode, uid=self._defaults.uid, gid=self._defaults.gid))

    def _job_facts(self, found: PathInfo) -> Facts:
        facts = self._plain_directory()
        stat = facts.stat
        if not found.is_directory:
            stat.mode = modes.S_IFREG | self._defaults.file_mode & ~_WRITE
        stat.size = found.length
        stat.modified = stat.accessed = stat.changed = found.modified_ms * _MS
        facts.version = found.version
        return facts

    async def _view_facts(self, obj: ObjectRef, shown: ViewFile, *, is_directory: bool) -> Facts:
        """Those of the object of the base, with the length of the view's data."""
        base = shown.base
        if base is None:
            return self._plain_directory()
        wanted = file_page.wanted_of(base, is_directory=is_directory)
        values = await self._line.carry(lambda: get_attributes(base, wanted))
        facts = file_page.facts_of(values, self._defaults, is_directory=is_directory, links=1)
        stat = facts.stat
        stat.mode &= ~(modes.S_ISUID | modes.S_ISGID)
        if not shown.writable or is_directory:
            stat.mode &= ~_WRITE
        if modes.S_ISREG(stat.mode):
            length = await self._line.carry(lambda: object_data.known_length(obj))
            stat.size = await self._counted(obj, shown, facts) if length is None else length
        return facts

    async def _counted(self, obj: ObjectRef, shown: ViewFile, facts: Facts) -> int:
        """The length of data that must be read to know it.  They are read once for each version."""
        if not facts.version or shown.counted[0] != facts.version:
            length = await self._line.carry(lambda: object_data.made_length(obj))
            shown.counted = facts.version, length
        return shown.counted[1]


def _entry(number: int, is_directory: bool, name: bytes) -> kernel.Dirent:
    return kernel.Dirent(number + 2, modes.S_IFDIR if is_directory else 0, name)


def _views_of(partition: ObjectRef) -> Dialogue[list[str]]:
    found = []
    for name, each in (yield from named_partitions()):
        base = yield from shown_base(each.partition_id)
        if base and base[0].partition_id == partition.partition_id:
            found.append(name)
    return found
