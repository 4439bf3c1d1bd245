# SPDX-License-Identifier: GPL-2.0-or-later
"""userobject.data: the bytes of a user object as a file.

Reads are buffered, writes are not: what write() returned from is in the object.  Large reads come
through the descriptors the proxy passed, small ones and all writes through calls.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from ._errors import Invalid
from ._transport import CALL_IO_MAX, Call, current

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer

    from ._transport import Mapping

__all__ = ["Data", "Snapshot"]

BUFFER_BYTES = 256 << 10


class Snapshot(bytes):
    """What map() gives where objects cannot be mapped: a copy."""

    __slots__ = ()

    def changed(self) -> bool:
        """Whether the bytes may have changed since: a copy's do not."""
        return False


class RawData(io.RawIOBase):
    """Position and plain reads; under the buffer of Data."""

    def __init__(self, partition_id: int, object_id: int) -> None:
        self.ids = (partition_id, object_id)
        self.transport = current()
        self.position = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def length(self) -> int:
        return self.transport.call(Call.LENGTH, *self.ids)[0]

    def seek(self, offset: int, whence: int = io.SEEK_SET) -> int:
        base = {io.SEEK_SET: lambda: 0, io.SEEK_CUR: self.tell, io.SEEK_END: self.length}
        if whence not in base:
            raise ValueError(f"invalid whence: {whence}")
        position = base[whence]() + offset
        if position < 0:
            raise ValueError(f"negative seek position {position}")
        self.position = position
        return position

    def tell(self) -> int:
        return self.position

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self.transport.readinto(*self.ids, self.position, buffer)
        self.position += count
        return count

    def readall(self) -> bytes:
        """Everything from here to the end, in one buffer of the right size."""
        data = bytearray(max(0, self.length() - self.position))
        view = memoryview(data)
        filled = 0
        while filled < len(data):
            count = self.readinto(view[filled:])
            if not count:
                break
            filled += count
        view.release()
        del data[filled:]
        return bytes(data)


class Data(io.BufferedIOBase):
    """A file object over a user object's bytes, at position 0 when made."""

    mode = "rb+"

    def __init__(self, partition_id: int, object_id: int) -> None:
        self._raw = RawData(partition_id, object_id)
        self._reader: io.BufferedReader | None = None
        self.name = f"{partition_id:#x}/{object_id:#x}"

    # -- position

    def tell(self) -> int:
        return self._reader.tell() if self._reader else self._raw.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        return self._reader.seek(offset, whence) if self._reader else self._raw.seek(offset, whence)

    def _buffered(self) -> io.BufferedReader:
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if self._reader is None:
            self._reader = io.BufferedReader(self._raw, BUFFER_BYTES)
        return self._reader

    def _unbuffered(self) -> RawData:
        """For what changes the object: drop what was read ahead, keep the position."""
        if self.closed:
            raise ValueError("I/O operation on closed file")
        if self._reader is not None:
            position = self._reader.tell()
            self._reader.detach()
            self._reader = None
            self._raw.seek(position)
        return self._raw

    # -- reading

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        if size is None or size < 0:
            return self._unbuffered().readall()
        return self._buffered().read(size)

    def read1(self, size: int = -1, /) -> bytes:
        return self._buffered().read1(size)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        return self._buffered().readinto(buffer)

    def readinto1(self, buffer: WriteableBuffer, /) -> int:
        return self._buffered().readinto1(buffer)

    def peek(self, size: int = 0, /) -> bytes:
        return self._buffered().peek(size)

    def readline(self, size: int | None = -1, /) -> bytes:
        return self._buffered().readline(-1 if size is None else size)

    def __iter__(self) -> Iterator[bytes]:
        """Lines, at the speed of the buffer below: it keeps our position."""
        return iter(self._buffered())

    def __next__(self) -> bytes:
        return next(self._buffered())

    def map(self) -> Mapping:
        """All bytes as one read-only buffer: use it with memoryview, re, struct or numpy.

        A live view where the object's files can be mapped, else a copy; its method changed() tells
        whether somebody has written since.
        """
        mapping = self._raw.transport.map(*self._raw.ids)
        if mapping is not None:
            return mapping
        position = self._unbuffered().tell()
        self._raw.seek(0)
        try:
            return Snapshot(self._raw.readall())
        finally:
            self._raw.seek(position)

    # -- writing

    def writable(self) -> bool:
        return True

    def write(self, data: ReadableBuffer | str, /) -> int:
        """Write bytes, or text as UTF-8, here; returns the bytes written, which are all."""
        view = memoryview(data.encode() if isinstance(data, str) else data).cast("B")
        raw = self._unbuffered()
        for at in range(0, len(view), CALL_IO_MAX):
            piece = view[at : at + CALL_IO_MAX]
            raw.transport.call(Call.WRITE, *raw.ids, raw.position, 0, piece)
            raw.position += len(piece)
        return len(view)

    def append(self, data: ReadableBuffer | str) -> int:
        """Write at the end, atomically up to 1 MiB; returns where.  The position stays."""
        view = memoryview(data.encode() if isinstance(data, str) else data).cast("B")
        raw = self._unbuffered()
        first = None
        for at in range(0, max(1, len(view)), CALL_IO_MAX):
            where = raw.transport.call(Call.APPEND, *raw.ids, 0, 0, view[at : at + CALL_IO_MAX])[0]
            first = where if first is None else first
        assert first is not None
        return first

    def truncate(self, size: int | None = None, /) -> int:
        raw = self._unbuffered()
        length = raw.position if size is None else size
        if length < 0:
            raise Invalid(f"negative length {length}")
        raw.transport.call(Call.TRUNCATE, *raw.ids, length)
        return length

    def flush(self) -> None:
        """Nothing is held back; userobject.flush() makes it survive a power cut."""

    def detach(self) -> Any:
        raise io.UnsupportedOperation("detach")

    def __len__(self) -> int:
        return self._raw.length()

    def __repr__(self) -> str:
        return f"<osd.Data {self.name} at {self.tell()}>"
