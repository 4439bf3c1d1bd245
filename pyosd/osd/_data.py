# SPDX-License-Identifier: GPL-2.0-or-later
"""userobject.data: the bytes of a user object as a file.

Reads are buffered, writes are not: what write() returned from is in the object.  Large reads come
through the descriptors the proxy passed, small ones and all writes through calls.

The bytes that one read() returns, up to 1 MiB, were in the object at one moment. They come from the
buffer only if it has all of them, else they are read again in one piece.
"""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

from ._current import current
from ._errors import Invalid
from ._transport import CALL_IO_MAX, Call, Snapshot

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import ReadableBuffer, WriteableBuffer

    from ._transport import Mapping

__all__ = ["Data"]

BUFFER_BYTES = 256 << 10
ROOM_BYTES = 16 << 20  # for a read that does not ask how much there is: unfilled memory is free
POSITION_END = 1 << 63  # what files of Python can have
LENGTH_END = 1 << 64
CLOSED = "I/O operation on closed file"


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
            raise Invalid(f"invalid whence: {whence}")
        position = base[whence]() + offset
        if not 0 <= position < POSITION_END:
            raise Invalid(f"a position is 0 to 2**63 - 1, not {position}")
        self.position = position
        return position

    def tell(self) -> int:
        return self.position

    def readinto(self, buffer: WriteableBuffer) -> int:
        count = self.transport.readinto(*self.ids, self.position, buffer)
        self.position += count
        return count

    def fill(self, view: memoryview) -> int:
        """Read as much as there is room for; how many bytes it were, fewer only at the end.

        Up to 1 MiB is one read.
        """
        filled = self.readinto(view)
        while filled >= CALL_IO_MAX and filled < len(view):
            count = self.readinto(view[filled:])
            if not count:
                break
            filled += count
        return filled

    def block(self, size: int) -> memoryview:
        """The next bytes in memory of their own; fewer than size only at the end."""
        view = self.transport.block(*self.ids, self.position, size)
        if view is None:
            view = memoryview(bytearray(size))
            return view[: self.fill(view)]
        self.position += size
        return view


class Whole(io.RawIOBase):
    """The bytes of one fill(), then an end. A BufferedReader on top reads them without another
    copy.
    """

    def __init__(self, raw: RawData) -> None:
        self.raw = raw
        self.asked = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: WriteableBuffer) -> int:
        if self.asked:
            return 0
        self.asked = True
        raw, view = self.raw, memoryview(buffer)
        if view.nbytes > CALL_IO_MAX:
            return raw.fill(view.cast("B"))
        count = raw.transport.readinto(*raw.ids, raw.position, view)
        raw.position += count
        return count


class Data(io.BufferedIOBase):
    """A file object over a user object's bytes: the value of userobject.data.

    It is a binary file, open for reading and writing, and works with csv (through io.TextIOWrapper),
    json, gzip, zipfile, numpy and pandas.  Reads are buffered, 256 KiB ahead.  Writes are not, and
    drop the buffer.  The object is the same whether the file is closed or not.

    The bytes of one read(), readinto() or block, up to 1 MiB, were in the object at one moment,
    also while others write.  Lines are read from blocks of 256 KiB, each of one moment.

    If the data pass through functions, reads return the results of these functions, and writes pass
    the inverse functions.  append(), and truncate() to another length than 0, raise Invalid then.

    Every method raises NotFound if the object does not exist, PermissionDenied outside the zone,
    OSDError if a function fails that the data pass through, and ValueError if the file is closed.

    >>> import csv, io
    >>> with io.TextIOWrapper(u.data, encoding="utf-8", newline="") as text:
    ...     csv.writer(text).writerows([["n", "square"], [2, 4]])
    >>> list(csv.DictReader(io.TextIOWrapper(u.data, encoding="utf-8")))
    [{'n': '2', 'square': '4'}]
    """

    mode = "rb+"

    def __init__(self, partition_id: int, object_id: int) -> None:
        self._raw = RawData(partition_id, object_id)
        self._reader: io.BufferedReader | None = None
        self._whole: tuple[Whole, io.BufferedReader] | None = None
        self._left = 0  # bytes surely in the buffer, for read() to be quick
        self._iterated = False  # somebody else takes from the buffer
        self.name = f"{partition_id:#x}/{object_id:#x}"

    # -- position

    def tell(self) -> int:
        """Offset of the next read or write in bytes.

        >>> f = u.data
        >>> f.readline(), f.tell()
        (b'one\\n', 4)
        """
        return self._reader.tell() if self._reader else self._raw.tell()

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        """Set the position, and return it.

        Args: offset: bytes.  whence: 0 from the begin, 1 from the position, 2 from the end.  The
            position can be beyond the end: a write there fills the gap with zeros.

        >>> f = u.data
        >>> f.seek(-6, 2), f.read()
        (8, b'three\\n')

        Raises: Invalid: a position below 0 or above 2**63 - 1, or another whence.
        """
        if self.closed:
            raise ValueError(CLOSED)
        self._left = 0
        if self._reader is None or whence not in (io.SEEK_SET, io.SEEK_CUR):
            return self._unbuffered().seek(offset, whence)
        position = offset + (self._reader.tell() if whence == io.SEEK_CUR else 0)
        if not 0 <= position < POSITION_END:
            raise Invalid(f"a position is 0 to 2**63 - 1, not {position}")
        return self._reader.seek(position)

    def _buffered(self) -> io.BufferedReader:
        if self.closed:
            raise ValueError(CLOSED)
        self._left = 0
        if self._reader is None:
            self._reader = io.BufferedReader(self._raw, BUFFER_BYTES)
        return self._reader

    def _unbuffered(self) -> RawData:
        """For what does without, or changes the object: drop what was read ahead, not the place."""
        if self.closed:
            raise ValueError(CLOSED)
        self._left = 0
        if self._reader is not None:
            position = self._reader.tell()
            self._reader.detach()
            self._reader = None
            self._raw.position = position
        return self._raw

    def _large(self, size: int) -> bytes:
        """At most size bytes past the buffer; memory for no more than is there, or ROOM_BYTES."""
        raw = self._unbuffered()
        if size > ROOM_BYTES:
            size = min(size, max(raw.length() - raw.position, CALL_IO_MAX))
        if self._whole is None:
            source = Whole(raw)
            self._whole = source, io.BufferedReader(source, 1)
        source, reader = self._whole
        source.asked = False
        return reader.read(size)

    def _ahead(self, size: int) -> bool:
        """Whether so many bytes are in the buffer.  If not it is empty: half of them would be of
        another moment than the rest.
        """
        ahead = self._raw.position - self._buffered().tell()
        if 0 < ahead < size:
            self._unbuffered()
        return ahead >= size

    # -- reading

    def readable(self) -> bool:
        """True."""
        return True

    def seekable(self) -> bool:
        """True."""
        return True

    def read(self, size: int | None = -1, /) -> bytes:
        """Read size bytes, fewer only at the end; by default all.

        >>> f = u.data
        >>> f.read(3), f.read(), f.read()
        (b'one', b'\\ntwo\\nthree\\n', b'')
        """
        if size is None or size < 0:
            return self._large(max(0, (raw := self._unbuffered()).length() - raw.position))
        if size <= self._left and self._reader is not None:
            self._left -= size
            return self._reader.read(size)
        if size >= BUFFER_BYTES:
            return self._large(size)
        if self._ahead(size):
            found = self._buffered().read(size)
        else:
            data = bytearray(size)
            del data[self._buffered().readinto1(data) :]
            found = bytes(data)
        if not self._iterated:
            self._left = self._raw.position - self._buffered().tell()
        return found

    def read1(self, size: int = -1, /) -> bytes:
        """Read at most size bytes, by at most one call to the target.

        >>> u.data.read1()
        b'one\\ntwo\\nthree\\n'
        """
        return self._buffered().read1(size)

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        """Read into a buffer until it is full, or the object ends; return the number of bytes.

        Args: buffer: writable and contiguous: a bytearray, memoryview, array or numpy array.

        >>> buffer = bytearray(5)
        >>> u.data.readinto(buffer), buffer
        (5, bytearray(b'one\\nt'))
        """
        with memoryview(buffer) as view, view.cast("B") as octets:
            if len(octets) >= BUFFER_BYTES:
                return self._unbuffered().fill(octets)
            self._ahead(len(octets))
            return self._buffered().readinto1(octets)

    def readinto1(self, buffer: WriteableBuffer, /) -> int:
        """Read into a buffer, by at most one call to the target; return the number of bytes.

        >>> u.data.readinto1(bytearray(3))
        3
        """
        return self._buffered().readinto1(buffer)

    def peek(self, size: int = 0, /) -> bytes:
        """Bytes from the position on, at least one unless it is the end.  The position stays.

        >>> u.data.peek()[:3]
        b'one'
        """
        return self._buffered().peek(size)

    def readline(self, size: int | None = -1, /) -> bytes:
        """Read a line with its end; b"" at the end of the object.

        >>> u.data.readline()
        b'one\\n'
        """
        return self._buffered().readline(-1 if size is None else size)

    def readlines(self, hint: int | None = -1, /) -> list[bytes]:
        """Read lines to the end, or until they have hint bytes.

        >>> u.data.readlines()
        [b'one\\n', b'two\\n', b'three\\n']
        """
        return self._buffered().readlines(-1 if hint is None else hint)

    def __iter__(self) -> Iterator[bytes]:
        """Lines, at the speed of the buffer below: it keeps our position."""
        self._iterated = True
        return iter(self._buffered())

    def __next__(self) -> bytes:
        return next(self._buffered())

    def blocks(self, size: int = CALL_IO_MAX) -> Iterator[memoryview]:
        """Read the rest in blocks, each a memoryview of its own memory.

        Each block moves the position, so f.seek() between them skips data.

        Args: size: bytes of each block but the last.  Up to 1 MiB, the default, a block is of one moment.

        >>> sum(len(block) for block in u.data.blocks())
        14
        >>> [bytes(block) for block in u.data.blocks(6)]
        [b'one\\ntw', b'o\\nthre', b'e\\n']

        Raises: Invalid: a size below 1.
        """
        if size < 1:
            raise Invalid(f"blocks of {size} bytes")
        return self._blocks(size)

    def _blocks(self, size: int) -> Iterator[memoryview]:
        count = size
        while count == size:
            view = self._unbuffered().block(size)
            count = len(view)
            if count:
                yield view

    def map(self) -> Mapping:
        """All bytes as one read-only buffer, for memoryview(), re, struct or numpy.frombuffer().

        It has a length, an index and slices, which copy; memoryview() does not.
        In a sandbox it is a live view if the object's files can be mapped: nothing is copied, and writes
        of others are visible.  Elsewhere it is a copy.  Its method changed() says whether somebody has
        written since it was made.  Then a result may mix old and new bytes, so map again.

        >>> view = u.data.map()
        >>> len(view), view[4:7], view.changed()
        (14, b'two', False)
        >>> memoryview(view)[0]
        111

        Raises: NotFound, also from changed(), once the object has been removed.
        """
        mapping = self._raw.transport.map(*self._raw.ids)
        if mapping is not None:
            return mapping
        position = self._unbuffered().tell()
        self._raw.seek(0)
        try:
            return Snapshot(self._large(self._raw.length()))
        finally:
            self._raw.seek(position)

    # -- writing

    def writable(self) -> bool:
        """True."""
        return True

    def write(self, data: ReadableBuffer | str, /) -> int:
        """Write bytes, or text as UTF-8, at the position; return their number.

        Up to 1 MiB this is atomic: a reader sees all bytes or none.  After the return the bytes survive
        the end of any process; after userobject.flush() they survive a power cut.

        >>> f = u.data
        >>> f.write("ONE"), f.tell(), u.data.readline()
        (3, 3, b'ONE\\n')

        Raises: NoSpace; Invalid: an object cannot be that long; TypeError.
        """
        raw = self._unbuffered()
        with octets_of(data) as view:
            done = 0
            while len(view) - done > CALL_IO_MAX:
                count = raw.transport.write_long(Call.WRITE, *raw.ids, raw.position, view[done:])[1]
                raw.position += count
                done += count
            if done < len(view):
                raw.transport.call(Call.WRITE, *raw.ids, raw.position, 0, view[done:])
                raw.position += len(view) - done
            return len(view)

    def append(self, data: ReadableBuffer | str) -> int:
        """Write at the present end of the object; return the offset.  The position stays.

        Up to 1 MiB this is atomic: data of several writers follow one another, each complete.

        >>> u.data.append("four\\n")
        14

        Raises: NoSpace, TypeError.
        """
        raw = self._unbuffered()
        places = []
        with octets_of(data) as view:
            done = 0
            while len(view) - done > CALL_IO_MAX:
                where, count = raw.transport.write_long(Call.APPEND, *raw.ids, 0, view[done:])
                places.append(where)
                done += count
            if done < len(view) or not places:
                places.append(raw.transport.call(Call.APPEND, *raw.ids, 0, 0, view[done:])[0])
        return places[0]

    def truncate(self, size: int | None = None, /) -> int:
        """Cut the object to this length, or extend it with zeros; return size.  The position stays.

        Args: size: bytes; None: the position.

        >>> u.data.truncate(4), u.data.read()
        (4, b'one\\n')

        Raises: NoSpace; Invalid: below 0, or no number of 64 bits.
        """
        raw = self._unbuffered()
        length = raw.position if size is None else size
        if not 0 <= length < LENGTH_END:
            raise Invalid(f"a length is 0 to 2**64 - 1, not {length}")
        raw.transport.call(Call.TRUNCATE, *raw.ids, length)
        return length

    def close(self) -> None:
        """Close the file.  This has no effect on the object.

        >>> f = u.data
        >>> f.close()
        >>> f.closed
        True
        """
        self._left = 0
        super().close()

    def flush(self) -> None:
        """Do nothing: writes are not buffered.  userobject.flush() makes them survive a power cut.

        >>> u.data.flush()
        """
        if self.closed:
            raise ValueError(CLOSED)

    def detach(self) -> Any:
        """There is no raw file to detach.

        >>> u.data.detach()
        Traceback (most recent call last):
        io.UnsupportedOperation: detach

        Raises: UnsupportedOperation: always.
        """
        raise io.UnsupportedOperation("detach")

    def __len__(self) -> int:
        return self._raw.length()

    def __bool__(self) -> bool:
        return True  # an empty object's file is a file all the same

    def __repr__(self) -> str:
        return f"<osd.Data {self.name} at {self.tell()}>"


def octets_of(data: ReadableBuffer | str) -> memoryview:
    """The bytes to write, as a view of bytes."""
    return memoryview(data.encode() if isinstance(data, str) else data).cast("B")
