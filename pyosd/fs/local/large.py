# SPDX-License-Identifier: GPL-2.0-or-later
"""The bytes of one large file, by WRITEs or READs of 1 MiB side by side.

If there are enough CPUs, a thread reads or writes the local file meanwhile, and computes checksums.  On the
thread that serves the socket this would take as long as the commands.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable
from concurrent.futures import Executor, Future, ThreadPoolExecutor
from io import RawIOBase
from typing import Any, TypeVar

from pyosd import _core, requests
from pyosd.commands.data import CHUNK, QUEUE_DEPTH
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
_BUFFERS = QUEUE_DEPTH + 4
"""For the commands under way, and for the thread."""


_ROOM = CHUNK + 32 + allocation_for((CURRENT_CHECKSUM,))
"""Bytes of a buffer: the data, and a list of attributes."""
_CPUS = 3
"""With less, a target on the same machine and a thread would take turns: that was measured to be slower."""


class _AtOnce(Executor):
    """Calls each function when it is submitted, in the same thread."""

    def submit(self, fn: Callable[..., R], /, *args: Any, **kwargs: Any) -> Future[R]:
        """Call it."""
        future = Future[R]()
        try:
            future.set_result(fn(*args, **kwargs))
        except Exception as error:
            future.set_exception(error)
        return future


def _local_side() -> Executor:
    """The executor that calls the functions on the local file, one after the other."""
    spare = len(os.sched_getaffinity(0)) >= _CPUS
    return ThreadPoolExecutor(1, "osd-local") if spare else _AtOnce()


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
    """The result of the thread, which is most often ready."""
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
    under_way = deque[tuple[Any, bytearray, int]]()

    def fill(buffer: bytearray) -> tuple[bytearray, int, int]:
        with memoryview(buffer)[:CHUNK] as room:
            count = source.readinto(room) or 0
            return buffer, count, _core.crc32c(room[:count])

    def oldest() -> Dialogue[bytearray]:
        started, buffer, crc = under_way.popleft()
        if error := _compared((yield from _answer(started)), crc):
            raise error
        return buffer

    with _local_side() as local:
        filling = deque(local.submit(fill, bytearray(_ROOM)) for _ in range(_BUFFERS))
        while True:
            buffer, count, crc = yield from _result(filling.popleft())
            if not count:
                break
            piece = memoryview(buffer)[:count]
            request = requests.write(obj, at, piece, room=buffer, attributes=CHECKSUM)
            under_way.append(((yield from start(request)), buffer, crc))
            at += count
            tell(count)
            if len(under_way) == QUEUE_DEPTH:
                filling.append(local.submit(fill, (yield from oldest())))
        while under_way:
            yield from oldest()
    return at


def read_pieces(
    obj: ObjectRef,
    length: int,
    store: Callable[[memoryview, int], None],
    tell: ByteCounter,
    at: int = 0,
) -> Dialogue[int]:
    """Read an object from a byte on up to a length; store() gets the pieces and their checksums in
    order, in a thread.

    Returns: where the bytes end, which is before length if the object does.
    Raises: what store() raises; IntegrityError; OSDError.
    """
    under_way, storing = deque[tuple[Any, bytearray, int]](), deque[Future[bytearray]]()
    free = [bytearray(_ROOM) for _ in range(_BUFFERS)]
    asked = at

    def keep(reply: Reply, wanted: int, buffer: bytearray) -> bytearray:
        # An object that has become shorter is read again, see the caller.
        crc = _core.crc32c(reply.data)
        if len(reply.data) == wanted and (error := _compared(reply, crc)):
            raise error
        store(reply.data, crc)
        return buffer

    with _local_side() as local:
        while asked < length or under_way:
            while asked < length and len(under_way) < QUEUE_DEPTH:
                buffer = free.pop() if free else (yield from _result(storing.popleft()))
                wanted = min(CHUNK, length - asked)
                request = requests.read(obj, asked, wanted, buffer=buffer, attributes=CHECKSUM)
                under_way.append(((yield from start(request)), buffer, wanted))
                asked += wanted
            started, buffer, wanted = under_way.popleft()
            reply = yield from _answer(started)
            storing.append(local.submit(keep, reply, wanted, buffer))
            at += len(reply.data)
            tell(len(reply.data))
            while storing and storing[0].done():
                free.append(storing.popleft().result())
        while storing:
            yield from _result(storing.popleft())
    return at
