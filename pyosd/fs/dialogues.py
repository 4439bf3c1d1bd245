# SPDX-License-Identifier: GPL-2.0-or-later
"""The methods of FileSystem and AsyncFileSystem, as dialogues.  The texts are those of the methods.

A path is absolute: its first name is a partition, by id or by name.  In a file system below a partition
or a directory, paths begin there.  Every method raises NoSuchName, NotADirectory or IsADirectory, which
are a FileNotFoundError, a NotADirectoryError and an IsADirectoryError, and what the commands raise.
"""

from __future__ import annotations

from contextlib import suppress
from typing import Any

from pyosd import errors
from pyosd.commands import copy as copying
from pyosd.commands import data as object_data
from pyosd.commands import names
from pyosd.commands.dialogue import (
    Dialogue,
    OwnMethod,
    OwnStreamMethod,
    Stream,
    StreamItem,
    StreamMethod,
    collected,
    items,
)
from pyosd.commands.objects import create_partition
from pyosd.fs.job_files import (
    check_not_jobs,
    is_of_jobs,
    job_file_info,
    job_of_path,
    list_job_files,
)
from pyosd.fs.new_file import NewFile, give_up, needs_steps, new_file, publish
from pyosd.fs.partitions import (
    about,
    absent,
    find_partition,
    make_partition,
    named_partitions,
    rename_partition,
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
from pyosd.types import ROOT, Buffer, ObjectRef, ref
from pyosd.wire.names import DATA_MAX, PATH_MAX, NamedData, NameList

__all__ = ["FIRST_READ", "FileTable", "info", "is_directory", "place"]

FIRST_READ = 64 << 10
"""Bytes of a file that read_bytes() asks for when it looks up the path."""

_NOT_DIRECTORY = (0x5, 0x80, 0x32)
_IS_DIRECTORY = (0x5, 0x80, 0x33)


def is_directory(path: str) -> errors.IsADirectory:
    """The refusal of a path that is a directory's, where a file is wanted."""
    return errors.IsADirectory(*_IS_DIRECTORY, f"'{path}' is a directory")


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

    Directories can be nested deeper than that, by whoever may make them.
    """
    while len(rest) > PATH_MAX and (at := rest.rfind(b"/", 0, PATH_MAX + 1)) > 0:
        found = yield from names.lookup(base, rest[:at])
        if not found.is_directory:
            raise errors.NotADirectory(*_NOT_DIRECTORY, f"'{text_of(rest[:at])}' is no directory")
        base, rest = found.object, rest[at + 1 :]
    return base, rest


def _name_place(fs: Any, path: str) -> Dialogue[tuple[ObjectRef, bytes]]:
    """place() of a path that shall have a name in a directory.  Raises: IsADirectory: it has none."""
    base, rest = yield from place(fs, path)
    if not rest:
        raise is_directory(path)
    return base, rest


def _same_place(fs: Any, path: str, other: str) -> Dialogue[tuple[ObjectRef, bytes, bytes | None]]:
    """Two paths as one command has them; the second is None if it is in another partition."""
    base, first = yield from _name_place(fs, path)
    there, second = yield from _name_place(fs, other)
    return base, first, second if there == base else None


def resolve(fs: Any, path: str) -> Dialogue[ObjectRef]:
    """The ids of what a path names: of a partition, a directory, a user object or a job."""
    if is_of_jobs(fs, path):
        return (yield from job_of_path(fs, path))
    base, rest = yield from place(fs, path)
    with about(fs, path):
        return (yield from names.lookup(base, rest)).object if rest else base


def info(fs: Any, path: str) -> Dialogue[PathInfo]:
    """What a path names, with its length, times and version, in one command.

    If functions make the data, and the target does not know their length, they are read to count it.
    """
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
    length = each.length
    if not length and not each.is_directory:  # 0 also stands for one that is not known
        length = yield from _made_length(each.object, path)
    return PathInfo(
        join(path),
        each.object,
        each.is_directory,
        length,
        each.created_ms,
        each.modified_ms,
        each.version,
    )


def _made_length(obj: ObjectRef, path: str) -> Dialogue[int]:
    """Raises: NoSuchName: it was removed meanwhile."""
    try:
        known = yield from object_data.known_length(obj)
        return (yield from object_data.made_length(obj)) if known is None else known
    except errors.NotFound:
        raise absent(path) from None


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
    """Whether something has this path."""
    try:
        yield from info(fs, path)
    except (errors.NoSuchName, errors.NotADirectory):
        return False
    return True


def is_dir(fs: Any, path: str) -> Dialogue[bool]:
    """Whether it is a directory, a partition, or the root."""
    try:
        return (yield from info(fs, path)).is_directory
    except (errors.NoSuchName, errors.NotADirectory):
        return False


def is_file(fs: Any, path: str) -> Dialogue[bool]:
    """Whether it is the name of a user object."""
    try:
        return not (yield from info(fs, path)).is_directory
    except (errors.NoSuchName, errors.NotADirectory):
        return False


# ---- listings ------------------------------------------------------------------------------------


def iterdir(fs: Any, path: str = "/") -> Stream[PathInfo]:
    """Entries of a directory, in the order of their bytes; of the root, the partitions.

    Objects without names are in no directory.  Those of jobs are below /.jobs, which no directory has
    as an entry.
    """
    if is_of_jobs(fs, path):
        yield from list_job_files(fs, path)
        return
    base, rest = yield from place(fs, path)
    whole = join(path)
    if base == ROOT:
        partitions = yield from named_partitions()
        yield from items(PathInfo(f"/{name}", each, True) for name, each in partitions)
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
    """All entries of a directory, as iterdir(); of a file, itself."""
    try:
        return (yield from collected(iterdir(fs, path)))
    except errors.NotADirectory:
        return [(yield from info(fs, path))]


def walk(fs: Any, path: str = "/", depth: int | None = None) -> Stream[PathInfo]:
    """Everything below a directory, each directory before its entries; of a file, itself.

    Args:
        depth: 1: only the entries of the directory; None: all levels.
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
            continue  # it was removed meanwhile
        pending += [(entry, level + 1) for entry in reversed(entries)]


def glob(fs: Any, pattern: str) -> Stream[PathInfo]:
    """What matches a pattern of paths, in order: * ? [a-z] within a name, ** for any directories.

    A pattern without these characters matches what has it as path, if there is such a thing.
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


# ---- changes -------------------------------------------------------------------------------------


def mkdir(
    fs: Any, path: str, *, parents: bool = False, exist_ok: bool = False
) -> Dialogue[ObjectRef]:
    """Make a directory, or a partition with a name.

    Args:
        path: a partition's if it has one name, such as "/photos", or "/0x20000" by its id.
        parents: make those above it, too.
        exist_ok: a directory that is there already is the answer.

    Raises: NameExists; NoSuchName: the directory above, or the partition, is absent.
    """
    parts = split(path)
    try:
        base, rest = yield from place(fs, path)
    except errors.NoSuchName:
        if len(parts) > 1 and not parents:
            raise
        base = yield from make_partition(fs, parts[0])
        if len(parts) == 1:
            return base
        rest = encoded(parts[1:])
    if not rest:
        try:
            yield from top_info(base, join(path))
        except errors.NoSuchName:
            return ref((yield from create_partition(base.partition_id)))
        if not exist_ok:
            raise errors.NameExists(0x5, 0x80, 0x31, f"'{path}' exists")
        return base
    try:
        with about(fs, path):
            return (yield from names.make_directory(base, rest, exclusive=not exist_ok)).object
    except errors.NoSuchName:
        above = rest.rpartition(b"/")[0]
        if not parents or not above:
            raise
    missing = above.split(b"/")
    for count in range(1, len(missing) + 1):
        yield from names.make_directory(base, b"/".join(missing[:count]), exclusive=False)
    return (yield from names.make_directory(base, rest, exclusive=not exist_ok)).object


def rmdir(fs: Any, path: str) -> Dialogue[None]:
    """Remove an empty directory.  Raises: NotEmpty."""
    base, rest = yield from _name_place(fs, path)
    with about(fs, path):
        yield from names.remove_directory(base, rest)


def unlink(fs: Any, path: str, *, missing_ok: bool = False) -> Dialogue[None]:
    """Remove a name of a user object, and the object with its last name."""
    base, rest = yield from _name_place(fs, path)
    try:
        with about(fs, path):
            yield from names.unlink(base, rest)
    except errors.NoSuchName:
        if not missing_ok:
            raise


def rmtree(fs: Any, path: str) -> Dialogue[int]:
    """Remove a directory with everything below it, or a file.

    Returns: names removed.  Names that others make meanwhile are removed, too, or NotEmpty is raised.
    """
    first = yield from info(fs, path)
    if not first.is_directory:
        yield from unlink(fs, path)
        return 1
    found = yield from collected(walk(fs, path))
    for each in reversed(found):
        with suppress(errors.NoSuchName):
            yield from (rmdir if each.is_directory else unlink)(fs, each.path)
    base, rest = yield from place(fs, path)
    if not rest:
        return len(found)  # a partition stays
    yield from names.remove_directory(base, rest)
    return len(found) + 1


def rename(fs: Any, path: str, new_path: str, *, replace: bool = False) -> Dialogue[None]:
    """Give a file, a directory or a partition another path, in one step.

    Args:
        path: of a partition also if it has no name yet, such as "/0x10000".
        replace: what has the new path loses it; a directory must be empty.

    Raises: NameExists; NotEmpty; ValueError: the paths are in different partitions.
    """
    old, new = split(path), split(new_path)
    if fs.base is None and len(old) == len(new) == 1:
        check_not_jobs(fs, path)
        check_not_jobs(fs, new_path)
        yield from rename_partition(fs, old[0], new[0], replace)
        return
    base, first, second = yield from _same_place(fs, path, new_path)
    if second is None:
        raise ValueError(
            f"'{path}' and '{new_path}' are in different partitions: copy, then remove"
        )
    try:
        yield from names.rename(base, first, second, replace=replace)
    except (errors.NoSuchName, errors.NotADirectory, errors.NameExists) as error:
        with about(fs, new_path if (yield from exists(fs, path)) else path):
            raise error


def link(fs: Any, path: str, new_path: str, *, replace: bool = False) -> Dialogue[None]:
    """Give a file one more name.

    Raises: NameExists; ValueError: the paths are in different partitions.
    """
    base, first, second = yield from _same_place(fs, path, new_path)
    if second is None:
        raise ValueError(f"'{path}' and '{new_path}' are in different partitions")
    yield from names.link(base, second, first, replace=replace)


def copy(fs: Any, path: str, new_path: str, *, replace: bool = True) -> Dialogue[ObjectRef]:
    """Copy a file inside the target, with its attributes; the data do not travel.

    The copy has its name when it is whole.  Files of jobs are read and written.

    Raises: NameExists: replace is False.  ValueError: in a file system below a directory.
    """
    if is_of_jobs(fs, path):
        data = yield from read_bytes(fs, path)
        return (yield from write_bytes(fs, new_path, data, exclusive=not replace))
    source = yield from resolve(fs, path)
    if not source.object_id:
        raise is_directory(path)
    base, rest = yield from _name_place(fs, new_path)
    if base.object_id:
        raise ValueError("copies are made below a partition, not below a directory")
    made = NewFile(base, (yield from copying.copy(source, base.partition_id)))
    with about(fs, new_path):
        yield from publish(made, rest, replace=replace)
    return made.object


# ---- whole files ---------------------------------------------------------------------------------


def read_bytes(
    fs: Any, path: str, start: int = 0, length: int | None = None
) -> Dialogue[bytearray]:
    """Bytes of a file; the first 64 KiB of it in one command.

    Args:
        length: None: to the end.
    """
    most = FIRST_READ if length is None else start + length
    if not is_of_jobs(fs, path) and 0 < most <= FIRST_READ:
        first = yield from _first_bytes(fs, path, most)
        if first is not None and (length is not None or first.length == len(first.data)):
            return bytearray(first.data[start:most])
    found = yield from info(fs, path)
    if found.is_directory:
        raise is_directory(path)
    there = max(found.length - start, 0)
    wanted = there if length is None else min(length, there)
    if found.content is not None:
        return bytearray(found.content[start : start + wanted])
    return (yield from object_data.read_range(found.object, start, wanted))


def _first_bytes(fs: Any, path: str, most: int) -> Dialogue[NamedData | None]:
    """As of lookup_data().  Raises: IsADirectory."""
    base, rest = yield from place(fs, path)
    if not rest:
        raise is_directory(path)
    try:
        with about(fs, path):
            entry, data = yield from names.lookup_data(base, rest, most)
    except errors.Invalid as error:
        if not names.is_about(error, names.MOST_FIELD):  # a target of an earlier release
            raise
        return None
    if entry.is_directory:
        raise is_directory(path)
    return data


def iter_data(info: PathInfo, start: int = 0, length: int | None = None) -> Stream[memoryview]:
    """Read a file that info() or a listing has found, piece by piece.

    Args:
        length: bytes wanted; None: to the end.
    """
    if info.content is None:
        yield from object_data.iter_read(info.object, start, length)
        return
    piece = memoryview(info.content)[start:][:length]
    if piece:
        yield StreamItem(piece)


def write_bytes(
    fs: Any, path: str, data: Buffer, *, exclusive: bool = False
) -> Dialogue[ObjectRef]:
    """Store bytes as a file.  Others see the old file or the whole new one, nothing between.

    Args:
        exclusive: the path must be new.

    Raises: NameExists; NoSuchName: the directory is absent; NoSpace.
    """
    base, rest = yield from _name_place(fs, path)
    if memoryview(data).nbytes <= DATA_MAX:
        try:
            with about(fs, path):
                return (yield from names.put_name(base, rest, data, replace=not exclusive)).object
        except errors.OSDError as error:
            if not needs_steps(error):
                raise
    made = yield from new_file(base)
    try:
        yield from object_data.write_range(made.object, 0, data)
    except errors.Unreachable:
        raise
    except errors.OSDError:
        yield from give_up(made)
        raise
    with about(fs, path):
        yield from publish(made, rest, replace=not exclusive)
    return made.object


class FileTable:
    """The methods of a file system that both faces have."""

    resolve = OwnMethod(resolve)
    info = OwnMethod(info)
    exists = OwnMethod(exists)
    is_dir = OwnMethod(is_dir)
    is_file = OwnMethod(is_file)
    ls = OwnMethod(ls)
    iterdir = OwnStreamMethod(iterdir)
    walk = OwnStreamMethod(walk)
    glob = OwnStreamMethod(glob)
    du = OwnMethod(du)
    mkdir = OwnMethod(mkdir)
    rmdir = OwnMethod(rmdir)
    unlink = OwnMethod(unlink)
    rmtree = OwnMethod(rmtree)
    rename = OwnMethod(rename)
    link = OwnMethod(link)
    copy = OwnMethod(copy)
    read_bytes = OwnMethod(read_bytes)
    iter_data = StreamMethod(iter_data)
    write_bytes = OwnMethod(write_bytes)
