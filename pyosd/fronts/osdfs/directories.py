# SPDX-License-Identifier: GPL-2.0-or-later
"""Operations of the kernel that list a directory.

A directory is listed when it is read from the beginning: one command for some hundred entries.  READDIRPLUS
has the attributes of each entry, which come with the same command.  The kernel asks for them as long as
programs use them.
"""

from __future__ import annotations

import stat as modes
import time
from dataclasses import dataclass
from functools import partial

from pyosd.commands import names
from pyosd.fronts.osdfs import file_page, kernel
from pyosd.fronts.osdfs.kernel import KernelRequest, Op, Stat
from pyosd.fronts.osdfs.mounted import Mounted
from pyosd.fronts.osdfs.nodes import Node
from pyosd.fronts.osdfs.server import KernelHandler
from pyosd.types import ROOT
from pyosd.wire.names import ListedName

__all__ = ["DirectoryOperations"]

_PLUS_ENTRY = 152  # bytes of an entry of READDIRPLUS without its name
_UNKNOWN = kernel.entry_out(0, 0, Stat(0), 0, 0)  # the kernel will look the entry up


@dataclass(slots=True)
class _Entry:
    """shown: for the kernel.  listed: with attributes; None: they did not come with the listing."""

    shown: kernel.Dirent
    listed: ListedName | None = None


@dataclass(slots=True)
class _Listing:
    """The entries of an open directory.  asked: when; since: the number of changes here then."""

    entries: list[_Entry]
    asked: float
    since: int


class DirectoryOperations:
    """The operations.  handlers: by their numbers."""

    def __init__(self, mounted: Mounted) -> None:
        self._mounted, self._nodes, self._line = mounted, mounted.nodes, mounted.line
        self._listings = dict[int, _Listing]()
        self._last = 0
        self.handlers: dict[int, KernelHandler] = {
            Op.OPENDIR: self.opendir,
            Op.READDIR: self.readdir,
            Op.READDIRPLUS: self.readdirplus,
            Op.RELEASEDIR: self.releasedir,
        }
        if not mounted.keeps_names:  # the kernel would look up each entry again
            del self.handlers[Op.READDIRPLUS]

    async def opendir(self, request: KernelRequest) -> bytes:
        """Open a directory."""
        self._last += 1
        return kernel.opened_out(self._last)

    async def releasedir(self, request: KernelRequest) -> bytes:
        """Close a directory."""
        handle, *_ = kernel.RELEASE_IN.unpack_from(request.body)
        self._listings.pop(handle, None)
        return b""

    async def readdir(self, request: KernelRequest) -> bytes:
        """Entries from a position on."""
        handle, at, room, *_ = kernel.READ_IN.unpack_from(request.body)
        listing = await self._listing(request.node, handle, at, plus=False)
        pieces = (
            kernel.dirent_out(each.shown, after)
            for after, each in enumerate(listing.entries[at:], at + 1)
        )
        return kernel.filled(pieces, room)[0]

    async def readdirplus(self, request: KernelRequest) -> bytes:
        """Entries from a position on, each with its node."""
        handle, at, room, *_ = kernel.READ_IN.unpack_from(request.body)
        listing = await self._listing(request.node, handle, at, plus=True)
        parent, pieces = self._nodes.get(request.node), list[bytes]()
        for after, each in enumerate(listing.entries[at:], at + 1):
            room -= _PLUS_ENTRY + (len(each.shown.name) + 7 & ~7)
            if room < 0:
                break
            pieces += self._plus(parent, each.listed, listing), kernel.dirent_out(each.shown, after)
        return b"".join(pieces)

    def _plus(self, parent: Node, entry: ListedName | None, listing: _Listing) -> bytes:
        """The attributes of an entry of READDIRPLUS, which come before its name."""
        if entry is None or not entry.names or not self._mounted.is_recent(listing.asked):
            return _UNKNOWN
        node = self._nodes.of_object(entry.object)
        # The answer of the target is old if a program here has changed something since.
        if parent.changed > listing.since or (node and node.changed > listing.since):
            return _UNKNOWN
        if node and node.writer and not node.writer.clean:
            return _UNKNOWN
        if node and node.is_directory and self._nodes.is_within(parent, node):
            return _UNKNOWN  # a lookup refuses it
        facts = file_page.facts_of(
            entry.attributes,
            self._mounted.defaults,
            is_directory=entry.is_directory,
            links=entry.names,
        )
        if facts.length_unknown:
            return _UNKNOWN
        node = self._nodes.found(
            parent,
            entry.name,
            entry.object,
            is_directory=entry.is_directory,
            facts=facts,
            since=listing.since,
        )
        node.asked = min(node.asked, listing.asked)
        return self._mounted.entry(node)

    # ---- the listing ----------------------------------------------------------------------------

    async def _listing(self, number: int, handle: int, at: int, *, plus: bool) -> _Listing:
        """The listing of an open directory, made when it is read from the beginning."""
        listing = self._listings.get(handle)
        if at == 0 or listing is None:
            asked, since = time.monotonic(), self._nodes.changes
            entries = await self._list(self._nodes.get(number), plus=plus)
            listing = self._listings[handle] = _Listing(entries, asked, since)
        return listing

    async def _list(self, node: Node, *, plus: bool) -> list[_Entry]:
        number = self._nodes.number
        above = node.above[0] if node.above else node
        found = [
            _Entry(kernel.Dirent(number(node.object), modes.S_IFDIR, b".")),
            _Entry(kernel.Dirent(number(above.object), modes.S_IFDIR, b"..")),
        ]
        if node.shown:
            return found + [_Entry(each) for each in await self._mounted.shown.entries(node)]
        if node.object == ROOT:
            async for each in self._line.target.fs.iterdir():
                name = each.name.encode("utf-8", "surrogateescape")
                found.append(_Entry(kernel.Dirent(number(each.object), modes.S_IFDIR, name)))
            return found
        await self._mounted.new.store_in(node)
        after, more = b"", True
        wanted = file_page.ENTRIES if plus else ()
        while more:
            page = await self._line.carry(
                partial(names.list_names, node.object, after=after, details=True, wanted=wanted)
            )
            found += [
                _Entry(
                    kernel.Dirent(number(entry.object), self._kind(entry), entry.name),
                    entry if plus else None,
                )
                for entry in page.entries
            ]
            more = page.more
            after = page.entries[-1].name if page.entries else b""
        return found

    def _kind(self, entry: ListedName) -> int:
        """The type of an entry, 0 if only its attributes say it.  Files of other types have no data."""
        if entry.is_directory:
            return modes.S_IFDIR
        if entry.length:
            return modes.S_IFREG
        if entry.names:
            return file_page.kind_of(entry.attributes[0].value)
        node = self._nodes.of_object(entry.object)
        return modes.S_IFMT(node.facts.stat.mode) if node else 0
