# SPDX-License-Identifier: GPL-2.0-or-later
"""Dialogues of FileSystem that change nothing: where paths lead, and listings.

Not here: changes, whole files, the table of methods (dialogues.py).
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from typing import Any, TypeVar

from pyosd import errors
from pyosd.commands import data as object_data
from pyosd.commands import names
from pyosd.commands.dialogue import (
    Dialogue,
    Stream,
    collected,
    items,
)
from pyosd.fs.job_files import (
    check_not_jobs,
    is_of_jobs,
    job_file_info,
    job_of_path,
    list_job_files,
)
from pyosd.fs.partitions import (
    about,
    absent,
    find_partition,
    named_partitions,
    top_info,
)
from pyosd.fs.paths import (
    PathInfo,
    encoded,
    fixed_part,
    join,
    split,
    text_of,
)
from pyosd.osd._paths.patterns import matcher, may_lead
from pyosd.types import ROOT, ObjectRef
from pyosd.wire.job_status import JOBS_PARTITION
from pyosd.wire.names import PATH_MAX, NameList

__all__ = [
    "du",
    "entry_at",
    "exists",
    "glob",
    "info",
    "is_dir",
    "is_directory",
    "is_file",
    "iterdir",
    "ls",
    "name_place",
    "of_one_object",
    "place",
    "resolve",
    "same_place",
    "walk",
]

R = TypeVar("R")
_ATTEMPTS = 20
"""To use the object of a path, which others may replace each time."""
_NOT_DIRECTORY = (0x5, 0x80, 0x32)
_IS_DIRECTORY = (0x5, 0x80, 0x33)


def is_directory(path: str) -> errors.IsADirectory:
    """The refusal of a path that is a directory's, where a file is wanted."""
    return errors.IsADirectory(*_IS_DIRECTORY, f"{path!r} is a directory")


# ---- where paths lead ----------------------------------------------------------------------------


def place(fs: Any, path: str) -> Dialogue[tuple[ObjectRef, bytes]]:
    """The partition or directory that commands on a path address, and the path relative to it.

    Raises: OSError: the path leads to jobs.
    """
    check_not_jobs(fs, path)
    parts = split(path)
    if fs.base is not None:
        return (yield from _with_room(fs.base, encoded(parts)))
    if not parts:
        return ROOT, b""
    base = yield from find_partition(fs, parts[0])
    return (yield from _with_room(base, encoded(parts[1:])))


def _with_room(base: ObjectRef, rest: bytes) -> Dialogue[tuple[ObjectRef, bytes]]:
    """The same place from a directory further down, if a command has no room for the path.

    A user who may make directories can nest them deeper than that.
    """
    while len(rest) > PATH_MAX and (at := rest.rfind(b"/", 0, PATH_MAX + 1)) > 0:
        found = yield from names.lookup(base, rest[:at])
        if not found.is_directory:
            raise errors.NotADirectory(*_NOT_DIRECTORY, f"{text_of(rest[:at])!r} is no directory")
        base, rest = found.object, rest[at + 1 :]
    return base, rest


def name_place(fs: Any, path: str) -> Dialogue[tuple[ObjectRef, bytes]]:
    """place() of a path that shall have a name in a directory.  Raises: IsADirectory: it has none."""
    base, rest = yield from place(fs, path)
    if not rest:
        raise is_directory(path)
    return base, rest


def same_place(fs: Any, path: str, other: str) -> Dialogue[tuple[ObjectRef, bytes, bytes | None]]:
    """Both paths for one command; the second is None if it is in another partition."""
    base, first = yield from name_place(fs, path)
    there, second = yield from name_place(fs, other)
    return base, first, second if there == base else None


def resolve(fs: Any, path: str) -> Dialogue[ObjectRef]:
    """The ids at a path: of a partition, a directory, a user object or a job."""
    if is_of_jobs(fs, path):
        return (yield from job_of_path(fs, path))
    base, rest = yield from place(fs, path)
    with about(fs, path):
        return (yield from names.lookup(base, rest)).object if rest else base


def of_one_object(act: Callable[[], Dialogue[R]]) -> Dialogue[R]:
    """Find the object at a path and use it; do so again if it was replaced in between.

    Raises: NoSuchName: the path is absent; NotFound: it has another object each time.
    """
    for _ in range(_ATTEMPTS - 1):
        try:
            return (yield from act())
        except errors.NoSuchName:
            raise
        except errors.NotFound:
            continue
    return (yield from act())


def info(fs: Any, path: str) -> Dialogue[PathInfo]:
    """The length, times and version of the file or directory at a path, in one command.

    If functions make the data, and the target does not know their length, they are read to count it.
    """
    try:
        return (yield from of_one_object(lambda: _info(fs, path)))
    except errors.NoSuchName:
        raise
    except errors.NotFound:
        raise absent(path) from None


def _info(fs: Any, path: str) -> Dialogue[PathInfo]:
    """info().  Raises: NotFound: the object was removed, or replaced, meanwhile."""
    found = yield from entry_at(fs, path)
    if found.length or found.is_directory or is_of_jobs(fs, path):
        return found
    length = yield from _made_length(found.object)  # 0 also stands for one that is not known
    return replace(found, length=length)


def entry_at(fs: Any, path: str) -> Dialogue[PathInfo]:
    """info() as a listing has it: with the length 0 if functions make the data, which are not called."""
    if is_of_jobs(fs, path):
        return (yield from job_file_info(fs, path))
    base, rest = yield from place(fs, path)
    if not rest:
        return (yield from top_info(base, join(path)))
    directory, _, name = rest.rpartition(b"/")
    found = yield from _list_page(fs, base, directory, path, prefix=name, most=1)
    if not found.entries or found.entries[0].name != name:
        raise absent(path)
    each = found.entries[0]
    return PathInfo(
        join(path),
        each.object,
        each.is_directory,
        each.length,
        each.created_ms,
        each.modified_ms,
        each.version,
    )


def _made_length(obj: ObjectRef) -> Dialogue[int]:
    known = yield from object_data.known_length(obj)
    return (yield from object_data.made_length(obj)) if known is None else known


def _list_page(
    fs: Any, base: ObjectRef, directory: bytes, path: str, **options: Any
) -> Dialogue[NameList]:
    """Entries of a directory, with details.  Raises: NoSuchName: also if the partition is absent."""
    try:
        with about(fs, path):
            return (yield from names.list_names(base, directory, details=True, **options))
    except errors.NoSuchName:
        raise
    except errors.NotFound:
        raise absent(path) from None


def exists(fs: Any, path: str) -> Dialogue[bool]:
    """Whether the path exists."""
    try:
        yield from entry_at(fs, path)
    except (errors.NoSuchName, errors.NotADirectory):
        return False
    return True


def is_dir(fs: Any, path: str) -> Dialogue[bool]:
    """Whether the path is a directory, a partition, or the root."""
    try:
        return (yield from entry_at(fs, path)).is_directory
    except (errors.NoSuchName, errors.NotADirectory):
        return False


def is_file(fs: Any, path: str) -> Dialogue[bool]:
    """Whether the path is a user object."""
    try:
        return not (yield from entry_at(fs, path)).is_directory
    except (errors.NoSuchName, errors.NotADirectory):
        return False


# ---- listings ------------------------------------------------------------------------------------


def iterdir(fs: Any, path: str = "/") -> Stream[PathInfo]:
    """Entries of a directory, in the order of their bytes; of the root, the partitions for data.

    Objects without names are in no directory.  Jobs are below /.jobs, which no listing has.
    """
    if is_of_jobs(fs, path):
        yield from list_job_files(fs, path)
        return
    base, rest = yield from place(fs, path)
    whole = join(path)
    if base == ROOT:
        partitions = yield from named_partitions()
        yield from items(
            PathInfo(f"/{name}", each, True)
            for name, each in partitions
            if each.partition_id != JOBS_PARTITION
        )
        return
    above = whole if whole != "/" else ""
    after, more = b"", True
    while more:
        page = yield from _list_page(fs, base, rest, path, after=after)
        yield from items(
            PathInfo(
                f"{above}/{text_of(each.name)}",
                each.object,
                each.is_directory,
                each.length,
                each.created_ms,
                each.modified_ms,
                each.version,
            )
            for each in page.entries
        )
        more = page.more
        after = page.entries[-1].name if page.entries else b""


def ls(fs: Any, path: str = "/") -> Dialogue[list[PathInfo]]:
    """All entries of a directory, see iterdir(); if the path is a file, that file."""
    try:
        return (yield from collected(iterdir(fs, path)))
    except errors.NotADirectory:
        return [(yield from info(fs, path))]


def walk(
    fs: Any,
    path: str = "/",
    depth: int | None = None,
    *,
    vanished: Callable[[str], None] | None = None,
) -> Stream[PathInfo]:
    """Everything below a directory, each directory before its entries; if the path is a file, that file.

    Args:
        depth: 1: only the entries of the directory; None: all levels.
        vanished: is called with the path of each directory below that is removed or renamed meanwhile.

    Raises: NoSuchName: there is no such path, or it is removed meanwhile.
    """
    first = yield from info(fs, path)
    if not first.is_directory:
        yield from items([first])
        return
    pending = [(first, 0)]
    while pending:
        each, level = pending.pop()
        if level:
            yield from items([each])
        if not each.is_directory or (depth is not None and level >= depth):
            continue
        try:
            entries = yield from ls(fs, each.path)
        except errors.NoSuchName:
            if not level:
                raise
            if vanished:
                vanished(each.path)
            continue
        pending += [(entry, level + 1) for entry in reversed(entries)]


def glob(fs: Any, pattern: str) -> Stream[PathInfo]:
    """Paths that match a pattern, in order: * ? [a-z] within a name, ** for any directories.

    A pattern without these characters matches the path that equals it, if that exists.
    """
    top, rest = fixed_part(pattern)
    if not rest:
        with suppress(errors.NoSuchName, errors.NotADirectory):
            yield from items([(yield from info(fs, top))])
        return
    wanted = matcher(rest)
    start = len(top) + (top != "/")
    pending = [(top, 0)]
    while pending:
        path, level = pending.pop()
        deeper = list[tuple[str, int]]()
        try:
            entries = yield from collected(iterdir(fs, path))
        except (errors.NoSuchName, errors.NotADirectory):
            continue
        for each in entries:
            if wanted.fullmatch(each.path[start:]):
                yield from items([each])
            if each.is_directory and may_lead(rest, level, each.name):
                deeper.append((each.path, level + 1))
        pending += reversed(deeper)


def du(fs: Any, path: str = "/") -> Dialogue[tuple[int, int]]:
    """The number of files below a path and the sum of their lengths.

    Returns: (files, bytes); an object with two names counts twice.
    """
    found = yield from collected(walk(fs, path))
    lengths = [each.length for each in found if not each.is_directory]
    return len(lengths), sum(lengths)
