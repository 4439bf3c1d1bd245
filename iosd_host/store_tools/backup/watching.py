# SPDX-License-Identifier: GPL-2.0-or-later
"""Watch the files below some folders for changes: inotify(7).

The kernel queues an event before the call that changed the file returns.  So every change that a target
has acknowledged is known, however many files there are.  If the queue overflows, or a folder cannot
be watched, `changed` returns that it does not know.
"""

from __future__ import annotations

import ctypes
import errno
import os
import struct
from collections.abc import Mapping
from pathlib import Path

__all__ = ["Watcher"]

MODIFY, ATTRIB, MOVED_FROM, MOVED_TO, CREATE, DELETE = 0x2, 0x4, 0x40, 0x80, 0x100, 0x200
OVERFLOW, IGNORED, IS_FOLDER = 0x4000, 0x8000, 0x4000_0000
FLAGS = 0x0100_0000 | 0x0200_0000  # IN_ONLYDIR, IN_DONT_FOLLOW
EVENTS = MODIFY | ATTRIB | MOVED_FROM | MOVED_TO | CREATE | DELETE
HEADER = struct.Struct("=iIII")
READ_BYTES = 1 << 20


class Watcher:
    """A context manager.

    Args: roots: folders by the label that their files' names begin with; `skip` are not watched.
    """

    def __init__(self, roots: Mapping[str, Path], skip: frozenset[str] = frozenset({"db"})) -> None:
        self.libc = ctypes.CDLL(None, use_errno=True)
        self.folders: dict[int, tuple[str, Path]] = {}
        self.names: set[str] = set()
        self.blind = False
        self.skip = skip
        self.descriptor = self.libc.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        if self.descriptor < 0:
            self.blind = True
            return
        for label, root in roots.items():
            self.watch(label + "/", root, top=True)
        self.names.clear()  # what there is now is not a change

    def __enter__(self) -> Watcher:
        return self

    def __exit__(self, *_: object) -> None:
        if self.descriptor >= 0:
            os.close(self.descriptor)

    def watch(self, prefix: str, folder: Path, top: bool = False) -> None:
        """A folder and those in it; files that are there count as changed."""
        if self.blind:
            return
        number = self.libc.inotify_add_watch(
            self.descriptor, os.fsencode(folder), ctypes.c_uint32(EVENTS | FLAGS)
        )
        if number < 0:
            self.blind = ctypes.get_errno() not in (errno.ENOENT, errno.ENOTDIR)
            return
        self.folders[number] = prefix, folder
        try:
            entries = list(os.scandir(folder))
        except FileNotFoundError:
            return
        for entry in entries:
            if top and entry.name in self.skip:
                continue
            if entry.is_dir(follow_symlinks=False):
                self.watch(f"{prefix}{entry.name}/", Path(entry.path))
            else:
                self.names.add(prefix + entry.name)

    def collect(self) -> None:
        """Read what has been queued: often, or it overflows."""
        while self.descriptor >= 0:
            try:
                data = os.read(self.descriptor, READ_BYTES)
            except BlockingIOError:
                return
            at = 0
            while at < len(data):
                number, mask, _, length = HEADER.unpack_from(data, at)
                at += HEADER.size
                name = os.fsdecode(data[at : at + length].rstrip(b"\0"))
                at += length
                self.note(number, mask, name)

    def note(self, number: int, mask: int, name: str) -> None:
        """One event."""
        if mask & OVERFLOW:
            self.blind = True
        elif mask & IGNORED:
            self.folders.pop(number, None)
        elif name and number in self.folders:
            prefix, folder = self.folders[number]
            if not mask & IS_FOLDER:
                self.names.add(prefix + name)
            elif mask & (CREATE | MOVED_TO):
                self.watch(f"{prefix}{name}/", folder / name)

    def changed(self) -> set[str] | None:
        """Names of files that changed since this was asked last; None: it is not known which."""
        self.collect()
        if self.blind:
            return None
        found, self.names = self.names, set()
        return found
