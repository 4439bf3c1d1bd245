# SPDX-License-Identifier: GPL-2.0-or-later
"""Local files into a target and back, many under way at a time, as streams.

Small files, of at most 1 MiB, are moved side by side; a large file is moved alone, by commands side by
side.  A file appears whole or not at all, at either end.  A failure of one file is its outcome, and the
others go on; if the target cannot be reached, the stream ends with the exception.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from pyosd import errors, requests
from pyosd.commands.data import CHUNK, known_length
from pyosd.commands.dialogue import (
    Dialogue,
    Sleep,
    Stream,
    StreamItem,
    blocking_call,
    finish,
    start,
)
from pyosd.commands.names import act, put_failed, put_params
from pyosd.commands.objects import create, remove
from pyosd.fs.local.large import CHECKSUM, ByteCounter, difference
from pyosd.fs.local.local_file import Incoming, LocalFile
from pyosd.fs.local.resuming import MovedFile, equal_bytes, get_large, put_large
from pyosd.fs.local.transfer_record import TransferRecords
from pyosd.fs.new_file import MAY_HAVE_ACTED, needs_steps
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.cdb import NO_ATTRIBUTES, Attributes
from pyosd.wire.names import NO_NAME_FLAGS, NameFlag, NameParams, NameVerb, decode_entry
from pyosd.wire.reply import Reply

__all__ = [
    "DEPTH",
    "FileMoved",
    "Incoming",
    "Outgoing",
    "differs",
    "get_files",
    "local_tree",
    "put_files",
]

DEPTH = 32
"""Small files under way at a time, unless the caller says otherwise."""

_BUSY_MOST, _BUSY_S = 20, 0.001  # a name's transaction may lose to others again and again


@dataclass(frozen=True)
class Outgoing:
    """A local file and the path that it gets, relative to the partition."""

    source: Path
    path: bytes


@dataclass(frozen=True)
class FileMoved:
    """The outcome of one file.  length: of the file.  object: of the target.  error: why it was not
    moved.  kept: bytes that an earlier transfer had moved.
    """

    item: Outgoing | Incoming
    length: int = 0
    object: ObjectRef | None = None
    error: Exception | None = None
    kept: int = 0

    @property
    def local(self) -> Path:
        """The local file."""
        item = self.item
        return item.source if isinstance(item, Outgoing) else item.destination


def _nothing(count: int) -> None:
    """Nobody watches."""


# ---- in ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Storing:
    """A small file on its way: by one PUT or, where that is refused, by CREATE, WRITE and LINK.

    made: the object, in the second case.  named: LINK was sent.
    """

    item: Outgoing
    data: bytes
    started: Any = None
    made: ObjectRef | None = None
    named: bool = False
    busy: int = 0  # times that the target was


def put_files(
    base: ObjectRef,
    wanted: Iterable[Outgoing],
    *,
    replace: bool = True,
    depth: int = DEPTH,
    checked: bool = False,
    records: TransferRecords | None = None,
    progress: ByteCounter | None = None,
) -> Stream[FileMoved]:
    """Store local files.

    Args:
        base: the partition.
        replace: a file that has the path is replaced; else the outcome is NameExists.
        depth: small files under way at a time.
        checked: compare checksums also for small files whose data and name are sent by two commands.
        records: continue large files that were cut off; None: begin anew.
        progress: gets the number of bytes moved.

    Yields: the outcome of each file, not in order.
    """
    tell = progress or _nothing
    lists = CHECKSUM if checked else NO_ATTRIBUTES
    remaining = iter(wanted)
    under_way = deque[_Storing]()
    item: Outgoing | None = None
    try:
        while True:
            while len(under_way) < depth and (item := next(remaining, None)) is not None:
                try:
                    each = yield from _store(base, item, replace, lists, tell, records)
                except errors.Unreachable:
                    raise
                except (OSError, errors.OSDError) as error:
                    yield StreamItem(FileMoved(item, error=error))
                    continue
                if isinstance(each, _Storing):
                    under_way.append(each)
                else:
                    yield StreamItem(each)
            if not under_way:
                break
            each = under_way[0]
            reply = yield from finish(each.started)
            del under_way[0]
            if isinstance(reply.error, errors.TargetBusy) and each.busy < _BUSY_MOST:
                each.busy += 1  # nothing was done
                yield Sleep(_BUSY_S * each.busy)
                yield from _start(base, each, replace, lists)
                under_way.append(each)
            elif each.made is None and reply.error and needs_steps(reply.error):
                each.made = yield from create(base.partition_id)
                each.named = not each.data
                yield from _start(base, each, replace, lists)
                under_way.append(each)
            elif wrong := _wrong(each, reply, checked):
                yield from _remove(each.made, wrong)
                yield StreamItem(FileMoved(each.item, error=wrong))
            elif each.made is None or each.named:
                tell(len(each.data))
                stored = each.made or decode_entry(reply.data).object
                yield StreamItem(FileMoved(each.item, len(each.data), stored))
            else:
                each.named = True
                yield from _start(base, each, replace, lists)
                under_way.append(each)
    except (GeneratorExit, errors.Unreachable):
        raise  # no command can be sent any more
    except BaseException:
        for each in under_way:
            reply = yield from finish(each.started)
            if reply.error or not each.named:
                yield from _remove(each.made, reply.error)
        raise


def _wrong(each: _Storing, reply: Reply, checked: bool) -> errors.OSDError | None:
    """Why the step that this reply ends has failed, if it has."""
    if reply.error:
        return put_failed(reply.error) if each.made is None else reply.error
    writes = each.made is not None and not each.named
    return difference(reply, each.data) if checked and writes else None


def _remove(made: ObjectRef | None, error: BaseException | None) -> Dialogue[None]:
    """Remove an object that could not be named; error: why.  It stays if it may have its name."""
    if made is not None and not isinstance(error, MAY_HAVE_ACTED):
        with suppress(errors.OSDError):
            yield from remove(made)


def _store(
    base: ObjectRef,
    item: Outgoing,
    replace: bool,
    lists: Attributes,
    tell: ByteCounter,
    records: TransferRecords | None,
) -> Dialogue[_Storing | FileMoved]:
    """Begin to store a small file, or store a large one."""
    data = yield from blocking_call(lambda: _small(item.source))
    if data is None:
        return (yield from _put_large(base, item, replace, tell, records))
    each = _Storing(item, data)
    yield from _start(base, each, replace, lists)
    return each


def _small(source: Path) -> bytes | None:
    """The bytes of a file; None: it is a large one.  Raises: OSError; also of what is no file."""
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(source))
        if state.st_size > CHUNK:
            return None
        data = os.read(descriptor, state.st_size + 1)
        return data if len(data) <= CHUNK else None
    finally:
        os.close(descriptor)


def _start(base: ObjectRef, each: _Storing, replace: bool, lists: Attributes) -> Dialogue[None]:
    """Send the next command for a file: PUT; or WRITE, with these attributes, or LINK."""
    if each.made is None:
        params = put_params(each.item.path, each.data, replace=replace)
        each.started = yield from start(requests.names(base, params))
    elif each.named:
        flags = NameFlag.REPLACE if replace else NO_NAME_FLAGS
        inside = each.made.object_id
        params = NameParams(NameVerb.LINK, each.item.path, flags=flags, object_id=inside)
        each.started = yield from start(requests.names(base, params))
    else:
        each.started = yield from start(requests.write(each.made, 0, each.data, attributes=lists))


def _put_large(
    base: ObjectRef,
    item: Outgoing,
    replace: bool,
    tell: ByteCounter,
    records: TransferRecords | None,
) -> Dialogue[FileMoved]:
    """Store a large file."""
    flags = NameFlag.REPLACE if replace else NO_NAME_FLAGS

    def name(made: ObjectRef, values: list[AttributeValue]) -> Dialogue[object]:
        params = NameParams(NameVerb.LINK, item.path, flags=flags, object_id=int(made.object_id))
        return act(base, params, values)

    record = records.open("to", str(base), os.fsdecode(item.path)) if records else None
    with closing(record) if record else nullcontext():
        moved = yield from put_large(
            item.source, lambda: create(base.partition_id), name, record, tell
        )
    return FileMoved(item, moved.length, moved.object, kept=moved.kept)


# ---- out -----------------------------------------------------------------------------------------


def get_files(
    wanted: Iterable[Incoming],
    *,
    depth: int = DEPTH,
    checked: bool = False,
    records: TransferRecords | None = None,
    progress: ByteCounter | None = None,
) -> Stream[FileMoved]:
    """Store files of a target as local files, with their modified times; folders must exist.

    Args:
        depth: small files under way at a time.
        checked: compare checksums with the target's also for small files.
        records: continue large files that were cut off; None: begin anew.
        progress: gets the number of bytes moved.

    Yields: the outcome of each file, not in order.
    """
    tell = progress or _nothing
    lists = CHECKSUM if checked else NO_ATTRIBUTES
    under_way = deque[tuple[Incoming, Any]]()
    remaining = iter(wanted)
    done = False
    while True:
        while not done and len(under_way) < depth:
            item = next(remaining, None)
            if item is None:
                done = True
            elif (content := item.info.content) is not None:
                yield StreamItem((yield from _outcome(item, _store_content(item, content, tell))))
            elif item.info.length > CHUNK:
                yield StreamItem((yield from _outcome(item, _get_large(item, tell, records))))
            else:
                length = item.info.length or CHUNK  # 0 also stands for one that is not known
                request = requests.read(item.info.object, 0, length, attributes=lists)
                under_way.append((item, (yield from start(request))))
        if not under_way:
            return
        item, started = under_way.popleft()
        yield StreamItem((yield from _outcome(item, _get_small(item, started, checked, tell))))


def _outcome(item: Incoming, moving: Dialogue[MovedFile]) -> Dialogue[FileMoved]:
    try:
        moved = yield from moving
        return FileMoved(item, moved.length, moved.object, kept=moved.kept)
    except errors.Unreachable:
        raise
    except (OSError, errors.OSDError) as error:
        return FileMoved(item, error=error)


def _get_large(
    item: Incoming, tell: ByteCounter, records: TransferRecords | None
) -> Dialogue[MovedFile]:
    destination = str(item.destination.absolute())
    record = records.open("from", str(item.info.object), destination) if records else None
    with closing(record) if record else nullcontext():
        return (yield from get_large(item, record, tell))


def _get_small(
    item: Incoming, started: Any, checked: bool, tell: ByteCounter
) -> Dialogue[MovedFile]:
    reply = yield from finish(started)
    data = reply.data
    whole = checked and len(data) == item.info.length  # else it has become shorter
    if error := reply.error or (whole and data and difference(reply, data)):
        raise error
    if not item.info.length and len(data) == CHUNK:
        return (yield from _get_large(item, tell, None))
    yield from blocking_call(lambda: _write_whole(item, data))
    tell(len(data))
    return MovedFile(item.info.object, len(data), 0)


def _store_content(item: Incoming, content: bytes, tell: ByteCounter) -> Dialogue[MovedFile]:
    yield from blocking_call(lambda: _write_whole(item, memoryview(content)))
    tell(len(content))
    return MovedFile(item.info.object, len(content), 0)


def _write_whole(item: Incoming, data: memoryview) -> None:
    with LocalFile(item) as local:
        local.write(data)


def differs(moved: FileMoved) -> Dialogue[bool]:
    """Whether a local file and its object have different bytes.

    Raises: OSError: the file cannot be read; OSDError: the object cannot.
    """
    assert moved.object is not None
    if isinstance(moved.item, Incoming) and moved.item.info.content is not None:
        return moved.item.info.content != (yield from blocking_call(moved.local.read_bytes))
    source = yield from blocking_call(lambda: moved.local.open("rb", buffering=0))
    with source:
        known = yield from known_length(moved.object)
        if known not in (None, os.fstat(source.fileno()).st_size):
            return True
        return moved.length != (yield from equal_bytes(moved.object, source, moved.length))


def local_tree(
    source: Path, left_out: Callable[[Path], None] | None = None
) -> Iterator[tuple[Path, str, bool]]:
    """What is below a folder: path, name relative to it, and whether it is a folder; folders first.

    Links to files are followed; links to folders, sockets and devices are left out.

    Args:
        left_out: is called with the path of each of these.

    Raises: OSError: it cannot be read.
    """
    skip = left_out or (lambda path: None)

    def fail(error: OSError) -> None:
        raise error

    for folder, folders, names in os.walk(source, onerror=fail):
        folders.sort()
        here = Path(folder)
        for name in folders:
            if (here / name).is_symlink():
                skip(here / name)
            else:
                yield here / name, str((here / name).relative_to(source)), True
        for name in sorted(names):
            path = here / name
            if path.is_file():
                yield path, str(path.relative_to(source)), False
            else:
                skip(path)
