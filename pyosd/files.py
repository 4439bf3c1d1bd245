# SPDX-License-Identifier: GPL-2.0-or-later
"""Files and folders into a partition and back: many at a time, each whole or not at all.

An object remembers its file's name in its username attribute (page 1h, number 9): the path below the
folder that was given, with "/" between its parts.

Lives here: which files and objects, their names, and moving one or many of them.  Not here: what moves
the bytes of one object (target.py).
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import closing, nullcontext, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import TypeVar

from pyosd import errors, requests
from pyosd.commands.attributes import set_attributes
from pyosd.commands.data import CHUNK, MADE_READ
from pyosd.commands.dialogue import Dialogue, call
from pyosd.commands.objects import create, remove
from pyosd.fs.local.large import CHECKSUM, difference
from pyosd.fs.local.local_file import Incoming, make_folder
from pyosd.fs.local.resuming import put_large
from pyosd.fs.local.transfer_record import TransferRecords
from pyosd.fs.paths import PathInfo
from pyosd.fs.transfer import get_files
from pyosd.target import Target
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import CURRENT_OBJECT_ID, DATA_VERSION, Information, Page
from pyosd.wire.cdb import lists_of

__all__ = [
    "PARALLEL",
    "Entry",
    "Moved",
    "entries",
    "entry",
    "files_below",
    "fits",
    "get",
    "get_many",
    "place_of",
    "put",
    "put_many",
]

PARALLEL = 8
_AHEAD = 4  # files handed to the threads before the first is done, a thread
_NAME = AttributeId(Page.USER_INFORMATION, Information.NAME)
_LENGTH = AttributeId(Page.USER_INFORMATION, Information.LOGICAL_LENGTH)
_COMPONENT_MOST = 255  # bytes, of Linux's file systems

Progress = Callable[[int], None]
Item = TypeVar("Item", str, "Entry")


@dataclass(frozen=True)
class Entry:
    """An object of a partition, with its name ("": none) and its length in bytes.

    placed: the name is a path in the partition.  version: of the data; b"": it is not known.
    """

    obj: ObjectRef
    name: str
    length: int
    placed: bool = False
    version: bytes = b""


@dataclass(frozen=True)
class Moved:
    """The outcome of one file.

    obj: its object.  error: why it was not moved.  kept: bytes that an earlier transfer had moved.
    """

    path: Path
    name: str
    obj: ObjectRef | None = None
    error: Exception | None = None
    kept: int = 0


def entries(target: Target, partition_id: PartitionId) -> Iterator[Entry]:
    """Every object of a partition with its name, ascending.  One command lists about a thousand.

    The name of an object that has a path is the path, the first one if there are several.
    Raises: NotFound: no such partition.
    """
    paths = dict[ObjectRef, str]()
    for info in target.fs.below(ref(partition_id)).walk():
        if not info.is_directory:
            paths.setdefault(info.object, info.path.removeprefix("/"))
    for each in target.list_attributes(partition_id, (_LENGTH, _NAME, DATA_VERSION)):
        found = {value.id: value for value in each.attributes}
        obj = ref(partition_id, each.object_id)
        name = paths.get(obj)
        length, version = found[_LENGTH].uint, found[DATA_VERSION].value
        yield Entry(obj, name or found[_NAME].text, length, name is not None, version)


def entry(target: Target, obj: ObjectRef) -> Entry:
    """One object's name and length.  Raises: NotFound."""
    wanted = (_LENGTH, _NAME, DATA_VERSION)
    found = {value.id: value for value in target.get_attributes(obj, wanted)}
    version = found[DATA_VERSION].value
    return Entry(obj, found[_NAME].text, found[_LENGTH].uint, version=version)


def files_below(source: Path) -> Iterator[tuple[Path, str]]:
    """A file, or all files below a folder, with their names.

    The names begin with that of the folder, as for cp -r, unless it is "." or "..".

    Links to files are followed; links to folders, sockets and devices are left out.
    Raises: OSError: it cannot be read; ValueError: a name that is not UTF-8.
    """
    if not source.is_dir():
        yield source, _name_of(Path(source.name))
        return
    parent = source if source.name in ("", "..") else source.parent
    for folder, folders, names in os.walk(source, onerror=_raise):
        folders.sort()
        for name in sorted(names):
            path = Path(folder, name)
            if path.is_file():
                yield path, _name_of(path.relative_to(parent))


def _raise(error: OSError) -> None:
    raise error


def _name_of(path: Path) -> str:
    name = path.as_posix()
    try:
        name.encode()
    except UnicodeEncodeError:
        raise ValueError(
            f"the name of {os.fsencode(path)!r} is not UTF-8; 'osd cp' stores files of any name"
        ) from None
    return name


def place_of(folder: Path, entry: Entry) -> Path:
    """The path for an object: its name below the folder, or its id if it has no name.

    Raises: ValueError: the name would lead out of the folder, or no file can have it.
    """
    if not entry.name:
        return folder / f"{entry.obj.object_id:#x}"
    if not fits(entry.name):
        raise ValueError(f"no file can have the name {entry.name!r}; read the object by its id")
    return folder.joinpath(*PurePosixPath(entry.name).parts)


def fits(name: str) -> bool:
    """Whether a file below a folder can have this name."""
    parts = PurePosixPath(name).parts
    wrong = any(part in ("/", "//", "..") or "\0" in part for part in parts)
    return (
        bool(parts)
        and not wrong
        and all(len(os.fsencode(each)) <= _COMPONENT_MOST for each in parts)
    )


def put(
    target: Target,
    partition_id: PartitionId,
    path: Path,
    name: str,
    progress: Progress | None = None,
    *,
    checked: bool = False,
    records: TransferRecords | None = None,
) -> Moved:
    """Store a file as a new object, which gets its name when it is complete, or is removed.

    Args: as for put_many().

    Raises: OSError: the file cannot be read; OSDError.
    """
    named = AttributeValue(_NAME.page, _NAME.number, name.encode())
    tell = progress or _nothing
    with path.open("rb") as source:
        data = source.read(CHUNK)
        if len(data) == CHUNK:
            source.seek(0)  # it is read again: not from a pipe
    if len(data) < CHUNK:
        made = target.carry(_create(partition_id, data, named, checked))
        tell(len(data))
        return Moved(path, name, made)
    record = records.open("put", f"{partition_id:#x}", name) if records else None
    with closing(record) if record else nullcontext():
        moved = target.carry(
            put_large(
                path,
                lambda: create(partition_id),
                lambda made, values: set_attributes(made, [named, *values]),
                record,
                tell,
            )
        )
    return Moved(path, name, moved.object, kept=moved.kept)


def _create(
    partition_id: PartitionId, data: bytes, named: AttributeValue, checked: bool
) -> Dialogue[ObjectRef]:
    """A small object with its name."""
    wanted = [CURRENT_OBJECT_ID, *(CHECKSUM.get if checked else ())]
    lists = lists_of(wanted, [named])
    reply = yield from call(requests.create_and_write(partition_id, 0, 0, data, attributes=lists))
    made = ref(partition_id, reply.attribute(CURRENT_OBJECT_ID).uint)
    if checked and (error := difference(reply, data)):
        yield from remove(made)
        raise error
    return made


def _nothing(count: int) -> None:
    """Nobody watches."""


class _Stopped(Exception):
    """The others are not wanted any more."""


class _Stopping:
    """Progress of many files, which can end them all."""

    def __init__(self, progress: Progress | None) -> None:
        self.progress, self.stopped = progress or _nothing, False

    def __call__(self, count: int) -> None:
        if self.stopped:
            raise _Stopped
        self.progress(count)


def pieces(target: Target, obj: ObjectRef, start: int, length: int | None) -> Iterator[memoryview]:
    """The data of an object.  Args: length: None: to the end, which is not known (known_length())."""
    if length is not None:
        yield from target.iter_read(obj, start, length)
        return
    while data := target.read(obj, start, MADE_READ):
        yield data
        start += len(data)
        if len(data) < MADE_READ:
            return


def get(
    target: Target,
    entry: Entry,
    path: Path,
    progress: Progress | None = None,
    *,
    top: Path | None = None,
    checked: bool = False,
    records: TransferRecords | None = None,
) -> Moved:
    """Store an object as a file, which appears complete or not at all; make missing folders.

    Args: as for get_many().

    Raises: OSError: the file cannot be written; OSDError.
    """
    make_folder(top or path.parent, path.parent)
    info = PathInfo(str(entry.obj), entry.obj, False, entry.length, version=entry.version)
    stream = get_files([Incoming(info, path)], checked=checked, records=records, progress=progress)
    (moved,) = target.carry_stream(stream)
    if moved.error:
        raise moved.error
    return Moved(path, entry.name, entry.obj, kept=moved.kept)


def put_many(
    target: Target,
    partition_id: PartitionId,
    files: Iterable[tuple[Path, str]],
    *,
    replace: Callable[[str], list[ObjectRef]] = lambda name: [],
    parallel: int = PARALLEL,
    checked: bool = False,
    records: TransferRecords | None = None,
    progress: Progress | None = None,
) -> Iterator[Moved]:
    """Store files, several at a time.  Yields each file when it is done or has failed.

    Args:
        files: paths and names.
        replace: returns the objects that a new one of this name replaces; they are removed when it is
            complete.
        checked: compare checksums with the target's also for files of less than 1 MiB.
        records: of large files whose transfer was cut off, to continue them; None: start again.
        progress: is called with the number of bytes moved since its last call, in any thread.

    Raises: Unreachable: the target cannot be reached.  Files that were not yielded may not be stored.
    """
    stopping = _Stopping(progress)

    def one(path: Path, name: str) -> Moved:
        moved = put(target, partition_id, path, name, stopping, checked=checked, records=records)
        _remove(target, replace(name), moved.obj)
        return moved

    return _many(one, files, parallel, stopping)


def _remove(target: Target, replaced: list[ObjectRef], made: ObjectRef | None) -> None:
    """Remove objects that a new one replaces.  If the first is certainly kept, the new one is removed."""
    for at, old in enumerate(replaced):
        try:
            target.remove(old)
        except errors.NotFound:
            continue
        except (*errors.MAY_HAVE_ACTED, errors.StorageError):
            raise  # the new one may be the only one
        except errors.OSDError:
            if at == 0 and made is not None:
                with suppress(errors.OSDError):
                    target.remove(made)
            raise


def get_many(
    target: Target,
    wanted: Iterable[tuple[Path, Entry]],
    *,
    top: Path | None = None,
    parallel: int = PARALLEL,
    checked: bool = False,
    records: TransferRecords | None = None,
    progress: Progress | None = None,
) -> Iterator[Moved]:
    """Store objects as files, several at a time.  Yields each file when it is done or has failed.

    Args: top: a folder above all paths; a link below it must not lead out of it.  The others as for
        put_many().

    Raises: Unreachable: the target cannot be reached.
    """

    stopping = _Stopping(progress)

    def one(path: Path, entry: Entry) -> Moved:
        return get(target, entry, path, stopping, top=top, checked=checked, records=records)

    return _many(one, wanted, parallel, stopping)


def _many(
    move: Callable[[Path, Item], Moved],
    items: Iterable[tuple[Path, Item]],
    parallel: int,
    stopping: _Stopping,
) -> Iterator[Moved]:
    """Do it for all in threads, a bounded number at a time.  At an interrupt, all end after the pieces
    that are being moved."""
    under_way: dict[Future[Moved], tuple[Path, str]] = {}
    remaining = iter(items)
    with ThreadPoolExecutor(parallel, "osd-files") as pool:
        try:
            while True:
                for path, item in islice(remaining, _AHEAD * parallel - len(under_way)):
                    name = item if isinstance(item, str) else item.name
                    under_way[pool.submit(move, path, item)] = path, name
                if not under_way:
                    return
                for done in wait(under_way, return_when=FIRST_COMPLETED).done:
                    yield _outcome(done, *under_way.pop(done))
        finally:
            stopping.stopped = True
            pool.shutdown(wait=True, cancel_futures=True)


def _outcome(done: Future[Moved], path: Path, name: str) -> Moved:
    """Raises: Unreachable: so will all others be."""
    try:
        return done.result()
    except errors.Unreachable:
        raise
    except (OSError, errors.OSDError) as error:
        return Moved(path, name, error=error)
