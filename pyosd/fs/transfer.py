# SPDX-License-Identifier: GPL-2.0-or-later
"""Move local files into a target and back, many at a time, as streams.

Small files, of at most 1 MiB, are moved several at a time.  A large file is moved alone, by several
commands at a time.  At either end a file appears complete or not at all.  If one file fails, its outcome
has the error, and the others continue.  If the target cannot be reached, the stream ends with the
exception.  If the list of files ends with one, the outcomes of files under way come before it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections import deque
from collections.abc import Iterable, Iterator
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

from pyosd import errors, requests
from pyosd.commands.data import CHUNK, known_length, read
from pyosd.commands.dialogue import (
    Dialogue,
    Sleep,
    Stream,
    StreamItem,
    blocking_call,
    finish,
    start,
)
from pyosd.commands.names import BUSY_MOST, BUSY_S, act, entry_of, put_failed, put_params
from pyosd.commands.objects import create, remove
from pyosd.fs.local.large import CHECKSUM, ByteCounter, difference
from pyosd.fs.local.local_file import Incoming, LocalFile
from pyosd.fs.local.resuming import MovedFile, equal_bytes, get_large, put_large
from pyosd.fs.local.transfer_record import TransferRecords
from pyosd.fs.lookup import entry_at, is_directory, of_one_object
from pyosd.fs.new_file import needs_steps
from pyosd.fs.paths import PathInfo
from pyosd.types import AttributeValue, ObjectRef
from pyosd.wire.attributes import LOGICAL_LENGTH
from pyosd.wire.cdb import NO_ATTRIBUTES, AttributeLists, Request
from pyosd.wire.names import NO_NAME_FLAGS, NameFlag, NameParams, NameVerb
from pyosd.wire.reply import Reply

__all__ = [
    "SMALL_FILES",
    "FileMoved",
    "Incoming",
    "Outgoing",
    "differs",
    "get_files",
    "put_files",
]

SMALL_FILES = 32
"""Small files under way at a time, by default."""
_LENGTH = AttributeLists((LOGICAL_LENGTH,))


@dataclass(frozen=True)
class Outgoing:
    """A local file and the path that it gets, relative to the partition."""

    source: Path
    path: bytes


@dataclass(frozen=True)
class FileMoved:
    """The outcome of one file.

    length: bytes of the file.  object: the target's object.  error: why the file was not moved.
    kept: bytes that an earlier transfer had already moved.
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


_Outcome = TypeVar("_Outcome", bound=FileMoved | None)
_Item = TypeVar("_Item", Outgoing, Incoming)


def _outcome(
    item: Outgoing | Incoming, moving: Dialogue[_Outcome]
) -> Dialogue[_Outcome | FileMoved]:
    """The outcome of one file, if the target can be reached."""
    try:
        return (yield from moving)
    except errors.Unreachable:
        raise
    except (OSError, errors.OSDError) as error:
        return FileMoved(item, error=error)


def _up_to_failure(wanted: Iterable[_Item], failures: list[Exception]) -> Iterator[_Item]:
    """The same items.  An exception of theirs is kept: the outcomes under way come before it."""
    try:
        yield from wanted
    except Exception as error:
        failures.append(error)


def _moved(item: Outgoing | Incoming, moved: MovedFile) -> FileMoved:
    return FileMoved(item, moved.length, moved.object, kept=moved.kept)


def _nothing(count: int) -> None:
    """Nobody watches."""


# ---- in ------------------------------------------------------------------------------------------


@dataclass(slots=True)
class _Storing:
    """A small file that is being stored: by PUT or, where that is refused, by CREATE, WRITE and LINK.

    identity: of the file when it was read.  started: the command whose answer comes next.  made: the
    object, in the second case.  named: LINK was sent.  busy: answers BUSY so far.
    """

    item: Outgoing
    data: bytes
    identity: tuple[int, ...]
    started: Any = None
    made: ObjectRef | None = None
    named: bool = False
    busy: int = 0


def put_files(
    base: ObjectRef,
    wanted: Iterable[Outgoing],
    *,
    replace: bool = True,
    parallel: int = SMALL_FILES,
    checked: bool = False,
    records: TransferRecords | None = None,
    progress: ByteCounter | None = None,
) -> Stream[FileMoved]:
    """Store local files.

    Args:
        base: the partition.
        replace: replace a file that has the path; if False, the outcome is then NameExists.
        parallel: small files to store at a time.
        checked: compare checksums also of small files whose data and name need two commands.
        records: of large files whose transfer was cut off, to continue them; None: start again.
        progress: is called with the number of bytes moved since its last call.

    Yields: the outcome of each file, in any order.
    """
    return _Putting(base, replace, checked, records, progress or _nothing).all(wanted, parallel)


class _Putting:
    """put_files() with its options, and the small files under way."""

    def __init__(
        self,
        base: ObjectRef,
        replace: bool,
        checked: bool,
        records: TransferRecords | None,
        tell: ByteCounter,
    ) -> None:
        self._base, self._checked = base, checked
        self._replace, self._records, self._tell = replace, records, tell
        self._under_way = deque[_Storing]()

    def all(self, wanted: Iterable[Outgoing], parallel: int) -> Stream[FileMoved]:
        """As put_files()."""
        failures = list[Exception]()
        remaining = _up_to_failure(wanted, failures)
        try:
            while True:
                while len(self._under_way) < parallel and (item := next(remaining, None)):
                    if outcome := (yield from _outcome(item, self._begin(item))):
                        yield StreamItem(outcome)
                if not self._under_way:
                    break
                item = self._under_way[0].item
                if outcome := (yield from _outcome(item, self._advance())):
                    yield StreamItem(outcome)
        except (GeneratorExit, errors.Unreachable):
            raise  # no command can be sent any more
        except BaseException:
            yield from self._abandon()
            raise
        if failures:
            raise failures[0]

    def _begin(self, item: Outgoing) -> Dialogue[FileMoved | None]:
        """Store a large file, or send the first command for a small one.  Returns: None: it was small."""
        small = yield from blocking_call(lambda: _small(item.source))
        if small is None:
            return (yield from self._put_large(item))
        yield from self._send(_Storing(item, *small))
        return None

    def _advance(self) -> Dialogue[FileMoved | None]:
        """Take the answer to the oldest command.  Returns: None: the file's next one is under way."""
        each = self._under_way[0]
        try:
            reply = yield from finish(each.started)
        except errors.Unreachable:
            raise
        except errors.OSDError as error:  # such as an answer without proof
            del self._under_way[0]
            yield from _remove(each.made, error if each.named else None)
            raise
        del self._under_way[0]
        if isinstance(reply.error, errors.TargetBusy) and each.busy < BUSY_MOST:
            each.busy += 1
            yield Sleep(BUSY_S * each.busy)
        elif each.made is None and reply.error and needs_steps(reply.error):
            each.made = yield from create(self._base.partition_id)
            each.named = not each.data
        elif wrong := self._wrong(each, reply):
            yield from _remove(each.made, wrong)
            return FileMoved(each.item, error=wrong)
        elif each.made is None or each.named:
            stored = each.made or entry_of(reply).object
            if (yield from blocking_call(lambda: _has_changed(each))):
                yield from _remove(stored, None)  # its time would say that it is of the new version
                return (yield from self._put_large(each.item))
            self._tell(len(each.data))
            return FileMoved(each.item, len(each.data), stored)
        else:
            each.named = True
        yield from self._send(each)
        return None

    def _send(self, each: _Storing) -> Dialogue[None]:
        """Send the next command for a small file: PUT, WRITE or LINK."""
        if each.made is None:
            params = put_params(each.item.path, each.data, replace=self._replace)
            request = requests.names(self._base, params)
        elif each.named:
            request = requests.names(self._base, self._link(each.item, each.made))
        else:
            lists = CHECKSUM if self._checked else NO_ATTRIBUTES
            request = requests.write(each.made, 0, each.data, attributes=lists)
        each.started = yield from start(request)
        self._under_way.append(each)

    def _link(self, item: Outgoing, made: ObjectRef) -> NameParams:
        flags = NameFlag.REPLACE if self._replace else NO_NAME_FLAGS
        return NameParams(NameVerb.LINK, item.path, flags=flags, object_id=int(made.object_id))

    def _wrong(self, each: _Storing, reply: Reply) -> errors.OSDError | None:
        """Why the step that this reply ends has failed, if it has."""
        if reply.error:
            return put_failed(reply.error) if each.made is None else reply.error
        writes = each.made is not None and not each.named
        return difference(reply, each.data) if self._checked and writes else None

    def _abandon(self) -> Dialogue[None]:
        """Remove the objects that get no name any more."""
        for each in self._under_way:
            error: errors.OSDError | None
            try:
                error = (yield from finish(each.started)).error
            except errors.OSDError as raised:
                error = raised
            if error or not each.named:
                yield from _remove(each.made, error)

    def _put_large(self, item: Outgoing) -> Dialogue[FileMoved]:
        """Store a large file."""

        def name(made: ObjectRef, values: list[AttributeValue]) -> Dialogue[object]:
            return act(self._base, self._link(item, made), values)

        path = os.fsdecode(item.path)
        record = self._records.open("to", str(self._base), path) if self._records else None
        with closing(record) if record else nullcontext():
            moved = yield from put_large(
                item.source, lambda: create(self._base.partition_id), name, record, self._tell
            )
        return _moved(item, moved)


def _remove(made: ObjectRef | None, error: BaseException | None) -> Dialogue[None]:
    """Remove an object that got no name because of error; keep it if it may have got its name."""
    if made is not None and not isinstance(error, errors.MAY_HAVE_ACTED):
        with suppress(errors.OSDError):
            yield from remove(made)


def _identity(state: os.stat_result) -> tuple[int, ...]:
    """It changes if a file is written, or another one takes its place."""
    return state.st_dev, state.st_ino, state.st_mtime_ns, state.st_ctime_ns


def _has_changed(each: _Storing) -> bool:
    """Whether the source has changed since it was read.

    A longer one counts as copied before the change: the lengths show that.
    """
    try:
        state = each.item.source.stat()
    except OSError:
        return False  # there is nothing that could be copied
    same = state.st_size > len(each.data) or _identity(state) == each.identity
    return stat.S_ISREG(state.st_mode) and not same


def _small(source: Path) -> tuple[bytes, tuple[int, ...]] | None:
    """The bytes of a small file, and its identity before they were read; None: the file is large.

    Raises: OSError, also if it is no file.
    """
    descriptor = os.open(source, os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK)
    try:
        state = os.fstat(descriptor)
        if not stat.S_ISREG(state.st_mode):
            raise OSError(errno.EINVAL, "it is no file", str(source))
        if state.st_size > CHUNK:
            return None
        data, size = b"", state.st_size + 1
        # A short read is no end: only the next one reports a bad sector.  The length may be too short:
        # the file grows, or says that it is empty, as files of /proc do.
        while len(data) <= CHUNK and (more := os.read(descriptor, size)):
            data, size = data + more, CHUNK
        return (data, _identity(state)) if len(data) <= CHUNK else None
    finally:
        os.close(descriptor)


# ---- out -----------------------------------------------------------------------------------------


def get_files(
    wanted: Iterable[Incoming],
    *,
    fs: Any = None,
    parallel: int = SMALL_FILES,
    checked: bool = False,
    records: TransferRecords | None = None,
    progress: ByteCounter | None = None,
) -> Stream[FileMoved]:
    """Store files of a target as local files, with their modified times; folders must exist.

    Args:
        fs: where the paths are looked up again if other objects get them meanwhile; None: the outcome is
            then NotFound.
        parallel: small files to read at a time.
        checked: compare checksums with the target's also for small files.
        records: of large files whose transfer was cut off, to continue them; None: start again.
        progress: is called with the number of bytes moved since its last call.

    Yields: the outcome of each file, in any order.
    """
    tell = progress or _nothing
    under_way = deque[tuple[Incoming, Any]]()
    failures = list[Exception]()
    remaining = _up_to_failure(wanted, failures)

    def outcome(item: Incoming, getting: Dialogue[FileMoved]) -> Dialogue[StreamItem[FileMoved]]:
        found = _found_again(fs, item, getting, tell, records)
        return StreamItem((yield from _outcome(item, found)))

    while True:
        while len(under_way) < parallel and (item := next(remaining, None)):
            if item.info.content is not None or item.info.length > CHUNK:
                yield (yield from outcome(item, _get_now(item, tell, records)))
            else:
                under_way.append((item, (yield from start(_small_request(item.info, checked)))))
        if not under_way:
            break
        item, started = under_way.popleft()
        yield (yield from outcome(item, _get_small(item, started, checked, tell)))
    if failures:
        raise failures[0]


def _small_request(info: PathInfo, checked: bool) -> Request:
    """Read a small file as it was listed; a length of 0 also stands for one that is not known."""
    if not info.length:
        return requests.get_attributes(info.object, attributes=_LENGTH)
    lists = CHECKSUM if checked else NO_ATTRIBUTES
    version = info.version if any(info.version) else None
    return requests.read(info.object, 0, info.length, if_version=version, attributes=lists)


def _found_again(
    fs: Any,
    item: Incoming,
    getting: Dialogue[FileMoved],
    tell: ByteCounter,
    records: TransferRecords | None,
) -> Dialogue[FileMoved]:
    """Store a file, also if its path has got another object since it was listed."""
    try:
        return (yield from getting)
    except errors.NotFound:
        if fs is None:
            raise

    def anew() -> Dialogue[FileMoved]:
        info = yield from entry_at(fs, item.info.path)
        if info.is_directory:
            raise is_directory(info.path)
        return (yield from _get_now(Incoming(info, item.destination), tell, records))

    return (yield from of_one_object(anew))


def _get_now(
    item: Incoming, tell: ByteCounter, records: TransferRecords | None
) -> Dialogue[FileMoved]:
    """Store a large file, or one whose content came with its path."""
    if item.info.content is not None:
        return (yield from _store(item, memoryview(item.info.content), tell))
    destination = str(item.destination.absolute())
    record = records.open("from", str(item.info.object), destination) if records else None
    with closing(record) if record else nullcontext():
        return _moved(item, (yield from get_large(item, record, tell)))


def _get_small(
    item: Incoming, started: Any, checked: bool, tell: ByteCounter
) -> Dialogue[FileMoved]:
    reply = yield from finish(started)
    if not item.info.length:
        return (yield from _get_unknown(item, reply, tell))
    if isinstance(reply.error, errors.VersionMismatch):  # it has changed since it was listed
        return (yield from _get_now(item, tell, None))
    data = reply.data
    whole = checked and len(data) == item.info.length  # else it has become shorter
    if error := reply.error or (whole and difference(reply, data)):
        raise error
    return (yield from _store(item, data, tell))


def _get_unknown(item: Incoming, reply: Reply, tell: ByteCounter) -> Dialogue[FileMoved]:
    """Store a file that is empty, or whose length is not known.  reply: with the length.

    An empty file is not read: beyond the end a target sends zeros.
    """
    if reply.error and not isinstance(reply.error, errors.PermissionDenied):
        raise reply.error
    if not reply.error and reply.attribute(LOGICAL_LENGTH).value == bytes(8):
        return (yield from _store(item, memoryview(b""), tell))
    data = yield from read(item.info.object, 0, CHUNK)
    if len(data) == CHUNK:
        return (yield from _get_now(item, tell, None))
    return (yield from _store(item, data, tell))


def _store(item: Incoming, data: memoryview, tell: ByteCounter) -> Dialogue[FileMoved]:
    yield from blocking_call(lambda: _write_whole(item, data))
    tell(len(data))
    return FileMoved(item, len(data), item.info.object)


def _write_whole(item: Incoming, data: memoryview) -> None:
    with LocalFile(item) as local:
        local.write(data)


def differs(moved: FileMoved) -> Dialogue[bool]:
    """Whether a local file and its object have different bytes.

    Raises: OSError: the file cannot be read; OSDError: the object cannot be read.
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
