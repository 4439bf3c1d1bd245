# SPDX-License-Identifier: GPL-2.0-or-later
"""Large files there and back, each as one dialogue, which continues an earlier one that was cut off.

Into the target: the object has a mark that only the record knows.  Its data are compared with the source.
The transfer continues at the first difference.  From the target: the object must still have the version
that the record names, and the pieces that are stored here the checksums that they had.
"""

from __future__ import annotations

import errno
import os
import secrets
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from io import RawIOBase
from pathlib import Path
from typing import Any, NamedTuple

from pyosd import errors, requests
from pyosd.commands.attributes import get_attributes, set_attributes
from pyosd.commands.data import (
    CHUNK,
    MADE_READ,
    QUEUE_DEPTH,
    data_version,
    known_length,
    read,
)
from pyosd.commands.dialogue import Dialogue, blocking_call, finish, start
from pyosd.commands.objects import remove
from pyosd.fs.local.large import ByteCounter, read_pieces, write_pieces
from pyosd.fs.local.local_file import Incoming, LocalFile
from pyosd.fs.local.transfer_record import TransferFacts, TransferRecord
from pyosd.fs.new_file import is_final
from pyosd.types import AttributeId, AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH

__all__ = ["MovedFile", "Naming", "equal_bytes", "get_large", "put_large"]

MARK = AttributeId(0xF001_0001, 1)
"""16 random bytes of an object that a transfer is filling."""
_NO_MARK = AttributeValue(*MARK, b"")
_ATTEMPTS = 5  # to read a large file that others write to

Naming = Callable[[ObjectRef, list[AttributeValue]], Dialogue[object]]
"""Gives a whole object its name, and sets the attributes with it."""


class MovedFile(NamedTuple):
    """A file that was moved.  kept: bytes that an earlier transfer had moved."""

    object: ObjectRef
    length: int
    kept: int


def equal_bytes(obj: ObjectRef, source: RawIOBase, length: int) -> Dialogue[int]:
    """How many bytes from the beginning an object and a local file have in common, in whole pieces.

    length: bytes to compare at most.  Raises: OSError: the file cannot be read; OSDError.
    """
    under_way = deque[Any]()
    asked = equal = 0
    same = True
    while True:
        while same and asked < length and len(under_way) < QUEUE_DEPTH:
            request = requests.read(obj, asked, min(CHUNK, length - asked))
            under_way.append((yield from start(request)))
            asked += CHUNK
        if not under_way:
            return equal
        reply = yield from finish(under_way.popleft())
        if reply.error:
            raise reply.error
        piece = yield from blocking_call(lambda: source.read(CHUNK))
        same = same and reply.data == piece
        equal += len(reply.data) if same else 0


# ---- into the target -----------------------------------------------------------------------------


def put_large(
    path: Path,
    make: Callable[[], Dialogue[ObjectRef]],
    name: Naming,
    record: TransferRecord | None,
    tell: ByteCounter,
) -> Dialogue[MovedFile]:
    """Store a file in a new object, and name it.

    Args:
        make: makes the object.
        record: what is known of an earlier transfer to the same name; None: it cannot be continued.

    Raises: OSError: also if the file changes meanwhile; OSDError.  The object is removed, or the record
        keeps it.
    """
    source = yield from blocking_call(lambda: path.open("rb", buffering=0))
    with source:
        facts = _facts_of(source)
        made, at = (yield from _earlier(record, facts, source)) if record else (None, 0)
        marked = made is not None
        try:
            if made is None:
                made = yield from make()
                marked = record is not None and (yield from _mark(record, facts, made))
            source.seek(at)
            tell(at)
            length = yield from write_pieces(made, source, tell, at)
            _check_unchanged(path, source, facts, length)
            yield from name(made, [_NO_MARK] if marked else [])
        except GeneratorExit:
            raise
        except BaseException as error:
            yield from _put_failed(record, made, error)
            raise
    if record:
        record.remove()
    return MovedFile(made, length, at)


def _facts_of(source: RawIOBase) -> TransferFacts:
    state = os.fstat(source.fileno())
    inode = [state.st_dev, state.st_ino]
    return {"length": state.st_size, "modified_ns": state.st_mtime_ns, "inode": inode}


def _check_unchanged(path: Path, source: RawIOBase, facts: TransferFacts, length: int) -> None:
    """Raises: OSError: a copy of two versions looks whole.  A file that only grows is copied as it was."""
    state = os.fstat(source.fileno())
    if state.st_size <= length and state.st_mtime_ns != facts["modified_ns"]:
        raise OSError(errno.EBUSY, "it changed while it was read", str(path))


def _mark(record: TransferRecord, facts: TransferFacts, made: ObjectRef) -> Dialogue[bool]:
    """Mark a new object as the record's.  Returns: whether that is permitted."""
    mark = secrets.token_bytes(16)
    record.begin({**facts, "object": str(made), "mark": mark.hex()})
    try:
        yield from set_attributes(made, [AttributeValue(*MARK, mark)])
    except errors.PermissionDenied:
        return False
    return True


def _earlier(
    record: TransferRecord, facts: TransferFacts, source: RawIOBase
) -> Dialogue[tuple[ObjectRef | None, int]]:
    """The object that an earlier transfer has left, and how many of its bytes are right.  One for
    another source, or with data that cannot be read, is removed.
    """
    try:
        made = ObjectRef.parse(record.facts["object"])
        mark = bytes.fromhex(record.facts["mark"])
    except (KeyError, TypeError, ValueError, AttributeError):
        return None, 0
    try:
        found, length = yield from get_attributes(made, (MARK, LOGICAL_LENGTH))
        if not mark or found.value != mark:
            return None, 0
        if facts.items() <= record.facts.items():
            with suppress(errors.StorageError):
                return made, (yield from equal_bytes(made, source, length.uint))
        yield from remove(made)
    except (errors.NotFound, errors.PermissionDenied, errors.StorageError):
        pass
    return None, 0


def _put_failed(
    record: TransferRecord | None, made: ObjectRef | None, error: BaseException
) -> Dialogue[None]:
    if isinstance(error, errors.MAY_HAVE_ACTED) or (record and not is_final(error)):
        return
    if made is not None:
        with suppress(errors.OSDError):
            yield from remove(made)
    if record:
        record.remove()


# ---- from the target -----------------------------------------------------------------------------


def get_large(
    item: Incoming, record: TransferRecord | None, tell: ByteCounter
) -> Dialogue[MovedFile]:
    """Store an object as a local file, all of one version.

    record: as of put_large().  Raises: OSError, OSDError: the record keeps what is stored, or nothing is.
    """
    obj = item.info.object
    for _ in range(_ATTEMPTS):
        before = yield from data_version(obj)
        length = yield from known_length(obj)
        facts = {"object": str(obj), "version": before.hex(), "length": length}
        with LocalFile(item, record if length is not None else None, facts) as local:
            at = yield from blocking_call(local.continue_)
            tell(at)
            if length is None:
                end = yield from _read_made(obj, local.write, tell)
            else:
                end = yield from read_pieces(obj, length, local.write, tell, at)
            local.keep = before == (yield from data_version(obj))
        if local.keep:
            return MovedFile(obj, end, at)
        tell(-end)
    raise errors.VersionMismatch(0, 0, 0, f"'{item.info.path}' changes while it is read")


def _read_made(
    obj: ObjectRef, write: Callable[[memoryview], None], tell: ByteCounter
) -> Dialogue[int]:
    """Read what functions make of an object, whose length is not known."""
    got = 0
    while True:
        data = yield from read(obj, got, MADE_READ)
        yield from blocking_call(partial(write, memoryview(data)))
        tell(len(data))
        got += len(data)
        if len(data) < MADE_READ:
            return got
