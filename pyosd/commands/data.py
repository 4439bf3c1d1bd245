# SPDX-License-Identifier: GPL-2.0-or-later
"""Commands on the data of a user object, and transfers of any length by several of them.

The head of unit.py says what every method raises.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import Any, BinaryIO

from pyosd import requests
from pyosd.commands.attributes import get_attribute
from pyosd.commands.dialogue import (
    Dialogue,
    Stream,
    StreamItem,
    blocking_call,
    call,
    finish,
)
from pyosd.commands.dialogue import (
    start as begin,
)
from pyosd.errors import OSDError, PermissionDenied
from pyosd.types import AttributeValue, Buffer, MutableBuffer, ObjectRef
from pyosd.wire.attributes import (
    CURRENT_APPEND_START,
    DATA_VERSION,
    LOGICAL_LENGTH,
    MEMBERS_VERSION,
)
from pyosd.wire.cdb import DEFAULT_OPTIONS, Options, lists_of

CHUNK = 1 << 20
"""Bytes one READ or WRITE of a whole-object transfer moves."""
QUEUE_DEPTH = 8
"""Such commands under way at a time."""
MADE_READ = 16 << 20
"""Bytes of one READ of what functions make: as much as they make of an object at once."""
_FIRST_READ = 64 << 10  # of an object whose end is not known


def read(
    obj: ObjectRef,
    start: int,
    length: int,
    *,
    into: MutableBuffer | None = None,
    if_version: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[memoryview]:
    """Read from a user object in one command (READ, 8885h).

    Args:
        start: address of the first byte.
        length: bytes to read, at most the target's transfer limit.
        into: a buffer of at least length bytes for the data; None: a new one.
        if_version: the version that the data must have (see data_version()).

    Returns: a view of the data; shorter than length only at the end of the object.
    Raises: NotFound; VersionMismatch.  After SessionLost a READ can be repeated safely.
    """
    request = requests.read(obj, start, length, buffer=into, if_version=if_version, options=options)
    return (yield from call(request)).data


def read_with_version(
    obj: ObjectRef, start: int, length: int, *, if_version: bytes | None = None
) -> Dialogue[tuple[memoryview, bytes]]:
    """Read as read(), with the version of the data.  Two READs with equal versions saw the same data.

    write() with this version as if_version writes nothing if the object has changed since.
    """
    lists = lists_of([DATA_VERSION], ())
    request = requests.read(obj, start, length, if_version=if_version, attributes=lists)
    reply = yield from call(request)
    return reply.data, reply.attribute(DATA_VERSION).value


def data_version(obj: ObjectRef) -> Dialogue[bytes]:
    """The version of a user object's data: 12 bytes, which differ after each change.

    No two contents of an object have the same version, not even over crashes and restores.  Data
    that another command has read may have another version: see read_with_version().
    """
    return (yield from get_attribute(obj, *DATA_VERSION))


def members_version(collection: ObjectRef) -> Dialogue[bytes]:
    """The version of a collection's membership, see data_version().

    b"": the collection has none, such as those of all user objects and of all jobs.
    """
    return (yield from get_attribute(collection, *MEMBERS_VERSION))


def write(
    obj: ObjectRef,
    start: int,
    data: Buffer,
    *,
    attributes: Iterable[AttributeValue] = (),
    if_version: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[None]:
    """Write to a user object in one command, extending it as needed (WRITE, 8886h).

    Args:
        data: at most the target's transfer limit.
        attributes: to set by the same command.
        if_version: the version that the data must have (see data_version()).

    Raises: NotFound; NoSpace, VersionMismatch: nothing was written.
    """
    lists = lists_of((), attributes)
    request = requests.write(
        obj, start, data, if_version=if_version, attributes=lists, options=options
    )
    yield from call(request)


def append(
    obj: ObjectRef,
    data: Buffer,
    *,
    if_version: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[int]:
    """Write at the end of a user object (APPEND, 8887h).

    Returns: the address of the first byte.  Two APPENDs never overlap.
    """
    lists = lists_of([CURRENT_APPEND_START], ())
    request = requests.append(obj, data, if_version=if_version, attributes=lists, options=options)
    reply = yield from call(request)
    return reply.attribute(CURRENT_APPEND_START).uint


def clear(
    obj: ObjectRef,
    start: int,
    length: int,
    *,
    if_version: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[None]:
    """Fill a range with zeros; extend the object if necessary (CLEAR, 8889h)."""
    yield from call(requests.clear(obj, start, length, if_version=if_version, options=options))


def punch(
    obj: ObjectRef,
    start: int,
    length: int,
    *,
    if_version: bytes | None = None,
    options: Options = DEFAULT_OPTIONS,
) -> Dialogue[None]:
    """Remove a range; the bytes behind it move to its place (PUNCH, 8884h).

    Raises: OSDError with field_pointer 40: start is beyond the end.
    """
    yield from call(requests.punch(obj, start, length, if_version=if_version, options=options))


def read_pieces(obj: ObjectRef, pieces: Sequence[tuple[int, int]]) -> Dialogue[memoryview]:
    """Read (offset, length) pieces in one command, back to back, each in its full slot."""
    return (yield from call(requests.read_pieces(obj, pieces))).data


def write_pieces(obj: ObjectRef, pieces: Sequence[tuple[int, int]], data: Buffer) -> Dialogue[None]:
    """Write data, taken back to back, to (offset, length) pieces in one command."""
    yield from call(requests.write_pieces(obj, pieces, data))


# ---- transfers of any length ---------------------------------------------------------------------


def length(obj: ObjectRef) -> Dialogue[int]:
    """Logical length of a user object, bytes.

    Raises: NotFound; OSDError: it is not known, because functions make the data (known_length()).
    """
    known = yield from known_length(obj)
    if known is None:
        raise OSDError(0, 0, 0, f"the length of {obj} is not known before its data are read")
    return known


def known_length(obj: ObjectRef) -> Dialogue[int | None]:
    """As length(); None: functions make the data, and their length is known when they have been read."""
    value = yield from get_attribute(obj, LOGICAL_LENGTH.page, LOGICAL_LENGTH.number)
    return int.from_bytes(value) if value else None


def read_whole(obj: ObjectRef) -> Dialogue[bytearray]:
    """All data of an object that functions make, by READs of 16 MiB up to its end."""
    made = bytearray()
    while True:
        data = yield from read(obj, len(made), MADE_READ)
        made += data
        if len(data) < MADE_READ:
            return made


def made_length(obj: ObjectRef) -> Dialogue[int]:
    """The length of data that functions make; they are read to count it."""
    length = 0
    while True:
        got = len((yield from read(obj, length, MADE_READ)))
        length += got
        if got < MADE_READ:
            return length


def iter_read(
    obj: ObjectRef, start: int = 0, length: int | None = None, chunk: int = CHUNK
) -> Stream[memoryview]:
    """Read a range piece by piece; several READs are under way ahead of the caller.

    Args:
        length: bytes to read; None: to the end.
        chunk: bytes of one READ.

    Yields: views of at most chunk bytes, in order; up to the end of the object if that comes first.
    Raises: NotFound; as pyosd.commands.unit says.
    """
    end = None if length is None else start + length
    under_way: deque[tuple[int, Any]] = deque()
    at, got = start, 0
    while True:
        while len(under_way) < QUEUE_DEPTH:
            want = chunk if end is None else min(chunk, end - at)
            if end is None:  # beyond the end a target sends zeros: no more of them than data
                want = min(want, max(got, _FIRST_READ) - (at - start - got))
            if want <= 0:
                break
            started = yield from begin(requests.read(obj, at, want))
            under_way.append((want, started))
            at += want
        if not under_way:
            return
        want, started = under_way.popleft()
        data = yield from _data_of(started)
        if data:
            yield StreamItem(data)
        if len(data) < want:
            return
        if end is None and not got:  # there is more than the first READ
            end = yield from _known_end(obj)
        got += want


def _known_end(obj: ObjectRef) -> Dialogue[int | None]:
    """As known_length(); None also if the credential permits no attributes."""
    try:
        return (yield from known_length(obj))
    except PermissionDenied:
        return None


def read_range(obj: ObjectRef, start: int = 0, length: int | None = None) -> Dialogue[bytearray]:
    """Read a range into one buffer, by several READs of 1 MiB at a time.

    Args:
        length: bytes to read; None: to the end.

    Returns: the data; shorter than length only at the end of the object.
    """
    if length is None:
        known = yield from known_length(obj)
        if known is None:
            return (yield from read_whole(obj))[start:]
        length = max(0, known - start)
    buffer = bytearray(length)
    got = yield from read_into(obj, start, buffer)
    return buffer if got == length else buffer[:got]


def read_into(obj: ObjectRef, start: int, buffer: MutableBuffer) -> Dialogue[int]:
    """Read directly into a buffer.

    Args:
        buffer: writable, C-contiguous, item size 1.

    Returns: how many bytes were read.  If the object ends first, the rest of the buffer is filled
        with zeros.
    """
    under_way: deque[Any] = deque()
    got = 0
    with memoryview(buffer) as view:
        for at in range(0, len(view), CHUNK):
            if len(under_way) == QUEUE_DEPTH:
                got += len((yield from _data_of(under_way.popleft())))
            piece = view[at : at + CHUNK]
            request = requests.read(obj, start + at, len(piece), buffer=piece)
            under_way.append((yield from begin(request)))
        while under_way:
            got += len((yield from _data_of(under_way.popleft())))
    return got


def _data_of(started: Any) -> Dialogue[memoryview]:
    reply = yield from finish(started)
    if reply.error:
        raise reply.error
    return reply.data


def write_range(obj: ObjectRef, start: int, data: Buffer) -> Dialogue[int]:
    """Write any amount of data, by several WRITEs of 1 MiB at a time.

    Returns: bytes written.
    Raises: as pyosd.commands.unit says.  Any part of the data may have been written then.
    """
    view = memoryview(data).cast("B")
    pieces = (view[at : at + CHUNK] for at in range(0, len(view), CHUNK))
    return (yield from _write_pieces(obj, start, lambda: next(pieces, b"")))


def write_from(obj: ObjectRef, source: BinaryIO, start: int = 0) -> Dialogue[int]:
    """Write the rest of a binary file.  Returns: bytes written."""
    return (yield from _write_pieces(obj, start, lambda: source.read(CHUNK), blocks=True))


def _write_pieces(
    obj: ObjectRef, start: int, next_piece: Callable[[], Buffer], *, blocks: bool = False
) -> Dialogue[int]:
    """Write pieces up to the first empty one; blocks: to get one may take long."""
    under_way: deque[Any] = deque()
    at = start
    while piece := (yield from blocking_call(next_piece)) if blocks else next_piece():
        if len(under_way) >= QUEUE_DEPTH:
            yield from _data_of(under_way.popleft())
        under_way.append((yield from begin(requests.write(obj, at, piece))))
        at += memoryview(piece).nbytes
    while under_way:
        yield from _data_of(under_way.popleft())
    return at - start
