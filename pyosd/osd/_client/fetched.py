# SPDX-License-Identifier: GPL-2.0-or-later
"""The transport of a script that runs at a client on fetched data: whole objects lie as files in the
folder that IOSD_FETCHED names, called PID-OID in hexadecimal.  Their bytes are read from there; all
else, and every other object, is asked of the target.
"""

from __future__ import annotations

import mmap
import os
from pathlib import Path
from typing import TYPE_CHECKING

from pyosd.types import ref

from .._transport import Call, Context, Snapshot
from .session import SessionTransport, translated

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

    from pyosd.commands import Commands

    from .._transport import Mapping

__all__ = ["FetchedTransport"]

# Calls that change the bytes of an object. Fetched bytes are then out of date.
CHANGES = frozenset({Call.REMOVE, Call.WRITE, Call.APPEND, Call.TRUNCATE, Call.CLEAR, Call.PUNCH})


class UnchangedMap(mmap.mmap):
    """A fetched file's bytes: nobody writes to them."""

    def changed(self) -> bool:
        """Whether the bytes may have changed since they were mapped."""
        return False


class FetchedTransport(SessionTransport):
    """Reads what was fetched from files, and carries the other calls over a session."""

    def __init__(self, commands: Commands, context: Context, folder: Path) -> None:
        super().__init__(commands, context)
        self.folder = folder
        self.files: dict[tuple[int, int], int | None] = {}

    def descriptor(self, partition_id: int, object_id: int) -> int | None:
        """The open file of a fetched object; None: it was not fetched, or it has changed."""
        ids = (partition_id, object_id)
        if not self.called.permits(Call.READ):
            return None  # the session refuses it
        if ids not in self.files:
            with translated():
                self.zone.check_object(ref(*ids))
            try:
                path = self.folder / f"{partition_id:x}-{object_id:x}"
                self.files[ids] = os.open(path, os.O_RDONLY | os.O_CLOEXEC)
            except FileNotFoundError:
                self.files[ids] = None
        return self.files[ids]

    def call(
        self,
        op: int,
        partition_id: int,
        object_id: int,
        a: int = 0,
        b: int = 0,
        body: ReadableBuffer = b"",
    ) -> tuple[int, int, bytes]:
        """Answer LENGTH and READ of a fetched object from its file."""
        if op in (Call.LENGTH, Call.READ):
            fd = self.descriptor(partition_id, object_id)
            if fd is not None and op == Call.LENGTH:
                return os.fstat(fd).st_size, 0, b""
            if fd is not None:
                data = os.pread(fd, b, a)
                return len(data), 0, data
        if op in CHANGES:
            with translated():
                self.check(op, ref(partition_id, object_id), a, memoryview(body))
            fd = self.files.get((partition_id, object_id))
            self.files[partition_id, object_id] = None
            if fd is not None:
                os.close(fd)
        return super().call(op, partition_id, object_id, a, b, body)

    def readinto(
        self, partition_id: int, object_id: int, offset: int, buffer: WriteableBuffer
    ) -> int:
        """Read from the file, where there is one."""
        fd = self.descriptor(partition_id, object_id)
        if fd is None:
            return super().readinto(partition_id, object_id, offset, buffer)
        return os.preadv(fd, [buffer], offset)

    def map(self, partition_id: int, object_id: int) -> Mapping | None:
        """Map the file, where there is one."""
        fd = self.descriptor(partition_id, object_id)
        if fd is None:
            return None
        if not os.fstat(fd).st_size:
            return Snapshot()
        return UnchangedMap(fd, 0, prot=mmap.PROT_READ)
