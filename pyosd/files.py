# SPDX-License-Identifier: GPL-2.0-or-later
"""Files and folders into a partition and back: many at a time, each whole or not at all.

An object remembers its file's name in its username attribute (page 1h, number 9): the path below the
folder that was given, with "/" between its parts.

Lives here: which files and objects, their names, and moving one or many of them.  Not here: what moves
the bytes of one object (target.py).
"""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path, PurePosixPath
from typing import BinaryIO, TypeVar, cast

from pyosd import errors
from pyosd.commands.data import CHUNK
from pyosd.target import Target
from pyosd.types import AttributeId, AttributeValue, ObjectRef, PartitionId, ref
from pyosd.wire.attributes import Information, Page

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
    """An object of a partition: its name ("" for none) and length in bytes."""

    obj: ObjectRef
    name: str
    length: int


@dataclass(frozen=True)
class Moved:
    """What became of one file.  obj: its object.  error: why it was not moved."""

    path: Path
    name: str
    obj: ObjectRef | None = None
    error: Exception | None = None


def entries(target: Target, partition_id: PartitionId) -> Iterator[Entry]:
    """Every object of a partition with its name, ascending; one command for about a thousand.

    Raises: NotFound: no such partition.
    """
    for each in target.list_attributes(partition_id, (_LENGTH, _NAME)):
        found = {value.id: value for value in each.attributes}
        obj = ref(partition_id, each.object_id)
        yield Entry(obj, found[_NAME].text, found[_LENGTH].uint)


def entry(target: Target, obj: ObjectRef) -> Entry:
    """One object's name and length.  Raises: NotFound."""
    found = {value.id: value for value in target.get_attributes(obj, (_LENGTH, _NAME))}
    return Entry(obj, found[_NAME].text, found[_LENGTH].uint)


def files_below(source: Path) -> Iterator[tuple[Path, str]]:
    """A file, or all files below a folder, with their names: the folder's own name comes first, as with
    cp -r; that of "." or ".." does not.

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
        raise ValueError(f"the name of {os.fsencode(path)!r} is not UTF-8") from None
    return name


def place_of(folder: Path, entry: Entry) -> Path:
    """Path for an object: its name below the folder, or its id if it has none.

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
        bool(parts) and not wrong and all(len(each.encode()) <= _COMPONENT_MOST for each in parts)
    )


def put(
    target: Target,
    partition_id: PartitionId,
    path: Path,
    name: str,
    progress: Progress | None = None,
) -> ObjectRef:
    """Store a file as a new object.  The object has its name once it is whole; on failure it is removed.

    Raises: OSError: of the file; OSDError.
    """
    named = AttributeValue(_NAME.page, _NAME.number, name.encode())
    tell = progress or _nothing
    with path.open("rb") as source:
        first = source.read(CHUNK)
        if len(first) < CHUNK:
            made = target.create_and_write(partition_id, first, attributes=[named])
            tell(len(first))
            return made
        source.seek(0)
        made = target.create(partition_id)
        try:
            target.write_from(made, cast(BinaryIO, _Told(source, tell)))
            target.set_attributes(made, [named])
        except BaseException:
            with suppress(errors.OSDError):
                target.remove(made)
            raise
    return made


class _Told:
    """The reading half of a file that says how far it is."""

    def __init__(self, source: BinaryIO, tell: Progress) -> None:
        self.source, self.tell = source, tell

    def read(self, size: int = -1) -> bytes:
        piece = self.source.read(size)
        self.tell(len(piece))
        return piece


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


def get(target: Target, obj: ObjectRef, path: Path, progress: Progress | None = None) -> None:
    """Store an object as a file, which appears whole or not at all; missing folders are made.

    Raises: OSError: of the file; OSDError.
    """
    tell = progress or _nothing
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor, temporary = tempfile.mkstemp(prefix=".osd-", dir=path.parent)
    try:
        with os.fdopen(descriptor, "wb") as file:
            for piece in target.iter_read(obj, 0, target.length(obj)):
                file.write(piece)
                tell(len(piece))
            os.fchmod(file.fileno(), 0o666 & ~_umask())
        Path(temporary).replace(path)
    except BaseException:
        with suppress(FileNotFoundError):
            Path(temporary).unlink()
        raise


def _umask() -> int:
    """This process's, which cannot be read without being set."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("Umask:"):
            return int(line.split()[1], 8)
    return 0o077


def put_many(
    target: Target,
    partition_id: PartitionId,
    files: Iterable[tuple[Path, str]],
    *,
    replace: Callable[[str], list[ObjectRef]] = lambda name: [],
    parallel: int = PARALLEL,
    progress: Progress | None = None,
) -> Iterator[Moved]:
    """Store files, several at a time; yields each when it is done or has failed.

    Args:
        files: paths and names.
        replace: the objects that a new one of that name replaces; they are removed once it is
            whole.
        progress: gets the number of bytes moved, in any thread.

    Raises: Unreachable: the target is; what was not yielded is not stored, or not known to be.
    """
    stopping = _Stopping(progress)

    def one(path: Path, name: str) -> ObjectRef:
        made = put(target, partition_id, path, name, stopping)
        _remove(target, replace(name), made)
        return made

    return _many(one, files, parallel, stopping)


def _remove(target: Target, replaced: list[ObjectRef], made: ObjectRef) -> None:
    """Remove objects that a new one replaces.  If the first may not be removed, the new one is."""
    for at, old in enumerate(replaced):
        try:
            target.remove(old)
        except errors.NotFound:
            continue
        except errors.OSDError:
            if at == 0:
                with suppress(errors.OSDError):
                    target.remove(made)
            raise


def get_many(
    target: Target,
    wanted: Iterable[tuple[Path, Entry]],
    *,
    parallel: int = PARALLEL,
    progress: Progress | None = None,
) -> Iterator[Moved]:
    """Store objects as files, several at a time; yields each when it is done or has failed.

    Raises: Unreachable: the target is.
    """

    stopping = _Stopping(progress)

    def one(path: Path, entry: Entry) -> ObjectRef:
        get(target, entry.obj, path, stopping)
        return entry.obj

    return _many(one, wanted, parallel, stopping)


def _many(
    move: Callable[[Path, Item], ObjectRef],
    items: Iterable[tuple[Path, Item]],
    parallel: int,
    stopping: _Stopping,
) -> Iterator[Moved]:
    """Do it for all in threads, a bounded number at a time.  At an interrupt, all end after the pieces
    that are being moved."""
    under_way: dict[Future[ObjectRef], tuple[Path, str]] = {}
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


def _outcome(done: Future[ObjectRef], path: Path, name: str) -> Moved:
    """Raises: Unreachable: so will all others be."""
    try:
        return Moved(path, name, done.result())
    except errors.Unreachable:
        raise
    except (OSError, errors.OSDError) as error:
        return Moved(path, name, error=error)
