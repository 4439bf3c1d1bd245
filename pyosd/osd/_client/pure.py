# SPDX-License-Identifier: GPL-2.0-or-later
"""The transport of a pure script at a client: it changes no objects, and reads in order are read ahead.

Data that is read ahead is older than the call that returns it, by the time of a few READs.
"""

from __future__ import annotations

from collections import OrderedDict
from typing import TYPE_CHECKING

from pyosd.types import ref

from .._transport import CALL_IO_MAX, Call
from .functions import CHANGES
from .session import SessionTransport, translated
from .zone import refuse

if TYPE_CHECKING:
    from collections.abc import Iterator

    from _typeshed import WriteableBuffer

    from pyosd.commands import Commands
    from pyosd.types import ObjectRef

    from .._transport import Context

__all__ = ["PureTransport"]

STREAMS_MOST = 4  # objects that are read ahead at a time
GROWN_BYTES = 4096  # read past the known end: beyond the end a target sends zeros


class Stream:
    """An object that is read in order.

    at: where the next read continues.  pieces: None until it is read ahead.
    """

    def __init__(self, at: int) -> None:
        self.at = at
        self.pieces: Iterator[memoryview] | None = None
        self.rest = memoryview(b"")

    def readinto(self, view: memoryview) -> int:
        """Fill the view from here on.  Returns: its bytes, less only at the object's end."""
        assert self.pieces is not None
        got = 0
        while got < len(view):
            self.rest = self.rest or next(self.pieces, self.rest)
            if not self.rest:
                break
            piece = self.rest[: len(view) - got]
            view[got : got + len(piece)] = piece
            self.rest = self.rest[len(piece) :]
            got += len(piece)
        self.at += got
        return got

    def take(self, size: int) -> memoryview | None:
        """The next piece if it has so many bytes, without a copy; None: it has not."""
        assert self.pieces is not None
        self.rest = self.rest or next(self.pieces, self.rest)
        if len(self.rest) != size:
            return None
        piece, self.rest = self.rest, memoryview(b"")
        self.at += size
        return piece


class PureTransport(SessionTransport):
    """Carries calls over a session, as the target does for a job that may change nothing."""

    def __init__(self, commands: Commands, context: Context | None = None) -> None:
        super().__init__(commands, context)
        self.streams: OrderedDict[ObjectRef, Stream] = OrderedDict()

    def check(self, op: int, obj: ObjectRef, a: int, body: memoryview) -> None:
        """Refuse changes, too."""
        if op in CHANGES:
            refuse(obj, "the script is to change no objects")
        super().check(op, obj, a, body)

    def readinto(
        self, partition_id: int, object_id: int, offset: int, buffer: WriteableBuffer
    ) -> int:
        """Read ahead if the object is read in order: from its start in large reads, or from the second
        read on that begins where the one before has ended.
        """
        obj, view = ref(partition_id, object_id), memoryview(buffer).cast("B")
        stream = self.streams.get(obj)
        if stream is None or stream.at != offset:
            stream = self.streams[obj] = Stream(offset)
            self.streams.move_to_end(obj)
            if len(self.streams) > STREAMS_MOST:
                self.streams.popitem(last=False)
            if offset or len(view) < CALL_IO_MAX:
                got = super().readinto(partition_id, object_id, offset, buffer)
                stream.at += got
                return got
        with translated():
            self.check(Call.READ, obj, offset, memoryview(b""))
            with self.of_user_object(Call.READ, obj):
                if stream.pieces is None:
                    stream.pieces = self.from_here(obj, offset)
                got = stream.readinto(view)
        if got == len(view):
            return got
        # The object may have grown since its length was asked for.
        del self.streams[obj]
        more = view[got : got + GROWN_BYTES]
        return got + super().readinto(partition_id, object_id, offset + got, more)

    def block(self, partition_id: int, object_id: int, offset: int, size: int) -> memoryview | None:
        """A piece that was read ahead."""
        obj = ref(partition_id, object_id)
        stream = self.streams.get(obj)
        if stream is None or stream.at != offset or stream.pieces is None:
            return None
        with translated():
            self.check(Call.READ, obj, offset, memoryview(b""))
            with self.of_user_object(Call.READ, obj):
                return stream.take(size)

    def from_here(self, obj: ObjectRef, offset: int) -> Iterator[memoryview]:
        """The object's pieces.  With a known length they are all asked for at full depth."""
        known = self.commands.known_length(obj)
        length = None if known is None else max(0, known - offset)
        return self.commands.iter_read(obj, offset, length)
