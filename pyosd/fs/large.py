# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of one large file, by WRITEs or READs of 1 MiB side by side, or of 4 MiB if it is long: what
each command costs is then paid for more bytes.

Where there are CPUs enough, a thread reads or writes the local file meanwhile, and makes checksums: on the
thread that serves the socket this would take as long as the commands.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from io import RawIOBase
from typing import Any, Protocol, TypeVar

from pyosd import _core, requests
from pyosd.commands.data import pieces_for
from pyosd.commands.dialogue import Dialogue, blocking_call, finish, start
from pyosd.errors import IntegrityError
from pyosd.types import Buffer, ObjectRef
from pyosd.wire.attributes import CURRENT_CHECKSUM, allocation_for
from pyosd.wire.cdb import AttributeLists
from pyosd.wire.reply import Reply

__all__ = ["CHECKSUM", "ByteCounter", "difference", "read_pieces", "write_pieces"]

CHECKSUM = AttributeLists(get=(CURRENT_CHECKSUM,))
"""Attributes of a READ or WRITE whose reply difference() takes."""

R = TypeVar("R")
ByteCounter = Callable[[int], None]
_HOT = 512 << 10
"""Bytes that are still in the processor's cache when they are used for the second time."""
_CHECKSUM_ROOM = 32 + allocation_for((CURRENT_CHECKSUM,))
"""Bytes of a buffer behind the data: a list of attributes."""
_CPUS = 3
"""With less, a target on the same machine and a thread would take turns: that was measured to be slower."""


class _AtOnce(Executor):
    """Calls functions when they are submitted."""

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Call it."""
        future = Future[R]()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


class _LocalSide:
    """What calls the functions on the local file, one after the other, and the buffers for them."""

    def __init__(self, length: int, rest: int, *, writes: bool) -> None:
        """length: of the file.  rest: bytes of it that are to be moved.  writes: into the target."""
        spare = len(os.sched_getaffinity(0)) >= _CPUS
        self.executor = ThreadPoolExecutor(1, "osd-local") if spare else _AtOnce()
        self.piece, self.depth = pieces_for(length, writes=writes)
        self.ahead = max(2, self.depth // 2) if spare else 1
        """Pieces that the thread has at a time."""
        count = min(self.depth + self.ahead, rest // self.piece + 2)
        self.free = [bytearray(self.piece + _CHECKSUM_ROOM) for _ in range(count)]


def difference(reply: Reply, data: Buffer) -> IntegrityError | None:
    """Compare the target's checksum of the data of a READ or WRITE with one of the data here.

    Returns: the error if they differ.  A target of an earlier release has none.
    """
    return _compared(reply, _core.crc32c(data))


def _compared(reply: Reply, crc: int) -> IntegrityError | None:
    theirs = reply.attribute(CURRENT_CHECKSUM).value
    if not theirs or theirs == crc.to_bytes(4):
        return None
    return IntegrityError(0, 0, 0, "the target's checksum of the data differs")


def _result(future: Future[R]) -> Dialogue[R]:
    """What the thread has made; most often it is there."""
    return future.result() if future.done() else (yield from blocking_call(future.result))


def _answer(started: Any) -> Dialogue[Reply]:
    reply = yield from finish(started)
    if reply.error:
        raise reply.error
    return reply


def write_pieces(
    obj: ObjectRef, source: RawIOBase, tell: ByteCounter, at: int = 0
) -> Dialogue[int]:
    """Write the rest of a local file to an object, from a byte on.

    Returns: where the object ends then.
    Raises: OSError: the file cannot be read; IntegrityError; OSDError.
    """
    length = os.fstat(source.fileno()).st_size
    side = _LocalSide(length, max(0, length - at), writes=True)
    under_way = deque[tuple[Any, bytearray, int]]()
    filling = deque[Future[tuple[bytearray, int, int]]]()

    def fill(buffer: bytearray) -> tuple[bytearray, int, int]:
        count = crc = 0
        with memoryview(buffer)[: side.piece] as room:
            while got := source.readinto(room[count : count + _HOT]) or 0:
                crc = _core.crc32c(room[count : count + got], crc)
                count += got
        return buffer, count, crc

    def oldest() -> Dialogue[bytearray]:
        started, buffer, crc = under_way.popleft()
        if error := _compared((yield from _answer(started)), crc):
            raise error
        return buffer

    with side.executor as local:
        while True:
            while len(under_way) >= side.depth or not (filling or side.free):
                side.free.append((yield from oldest()))
            while side.free and len(filling) < side.ahead:
                filling.append(local.submit(fill, side.free.pop()))
            buffer, count, crc = yield from _result(filling.popleft())
            if not count:
                break
            piece = memoryview(buffer)[:count]
            request = requests.write(obj, at, piece, room=buffer, attributes=CHECKSUM)
            under_way.append(((yield from start(request)), buffer, crc))
            at += count
            tell(count)
        while under_way:
            yield from oldest()
    return at


class Storing(Protocol):
    """Stores pieces of a file, in order."""

    def write(self, data: memoryview, /) -> None:
        """Store bytes behind the others."""

    def checked(self, checksum: int, /) -> None:
        """The whole piece that was stored has this CRC-32C, and so it had at the target."""


def read_pieces(
    obj: ObjectRef, length: int, local: Storing, tell: ByteCounter, at: int = 0
) -> Dialogue[int]:
    """Read an object from a byte on up to a length, and store it, in a thread.

    Returns: where the bytes end, which is before length if the object does.
    Raises: what local raises; IntegrityError: local has got wrong bytes; OSDError.
    """
    side = _LocalSide(length, length - at, writes=False)
    under_way, storing = deque[tuple[Any, bytearray, int]](), deque[Future[bytearray]]()
    asked = at

    def keep(reply: Reply, wanted: int, buffer: bytearray) -> bytearray:
        crc, count = 0, len(reply.data)
        for begin in range(0, count, _HOT):
            part = reply.data[begin : begin + _HOT]
            crc = _core.crc32c(part, crc)
            local.write(part)
        # An object that has become shorter is read again, see the caller.
        if count == wanted and (error := _compared(reply, crc)):
            raise error
        if count == side.piece:
            local.checked(crc)
        return buffer

    with side.executor as executor:
        while asked < length or under_way:
            while asked < length and len(under_way) < side.depth:
                if not side.free:
                    side.free.append((yield from _result(storing.popleft())))
                buffer = side.free.pop()
                wanted = min(side.piece, length - asked)
                request = requests.read(obj, asked, wanted, buffer=buffer, attributes=CHECKSUM)
                under_way.append(((yield from start(request)), buffer, wanted))
                asked += wanted
            started, buffer, wanted = under_way.popleft()
            reply = yield from _answer(started)
            storing.append(executor.submit(keep, reply, wanted, buffer))
            at += len(reply.data)
            tell(len(reply.data))
            while storing and storing[0].done():
                side.free.append(storing.popleft().result())
        while storing:
            yield from _result(storing.popleft())
    return at
