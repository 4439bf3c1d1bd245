# SPDX-License-Identifier: GPL-2.0-or-later
"""The methods of FileSystem and AsyncFileSystem, as dialogues.  The texts are those of the methods.

A path is absolute: its first name is a partition, by id or by name.  In a file system below a partition
or a directory, paths begin there.  Every method raises NoSuchName, NotADirectory or IsADirectory, which
are a FileNotFoundError, a NotADirectoryError and an IsADirectoryError, and what the commands raise.

Not here: where paths lead, and listings (lookup.py).
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
)
from pyosd.commands.objects import create_partition
from pyosd.fs.job_files import (
    check_not_jobs,
    is_of_jobs,
)
from pyosd.fs.lookup import (
    du,
    entry_at,
    exists,
    glob,
    info,
    is_dir,
    is_directory,
    is_file,
    iterdir,
    ls,
    name_place,
    of_one_object,
    place,
    resolve,
    same_place,
    walk,
)
from pyosd.fs.new_file import NewFile, give_up, needs_steps, new_file, publish
from pyosd.fs.partitions import (
    OF_A_PATH,
    about,
    find_partition,
    make_partition,
    rename_partition,
    top_info,
)
from pyosd.fs.paths import (
    PathInfo,
    encoded,
    join,
    split,
)
from pyosd.types import Buffer, ObjectRef, ref
from pyosd.wire.names import DATA_MAX, NamedData

__all__ = ["FIRST_READ", "FileTable"]

FIRST_READ = 64 << 10
"""Bytes of a file that read_bytes() asks for when it looks up the path."""

# ---- changes -------------------------------------------------------------------------------------


def mkdir(
    fs: Any, path: str, *, parents: bool = False, exist_ok: bool = False
) -> Dialogue[ObjectRef]:
    """Make a directory, or a partition with a name.

    Args:
        path: with one name it is a partition's, such as "/photos", or "/0x20000" by its id.
        parents: make the directories above it, too.
        exist_ok: return a directory that exists already.

    Raises: NameExists; NoSuchName: the directory above, or the partition, is absent.
    """
    parts = split(path)
    try:
        base, rest = yield from place(fs, path)
    except errors.NoSuchName:
        if len(parts) > 1 and not parents:
            raise
        base = yield from _partition_of_name(fs, parts[0], exist_ok or len(parts) > 1)
        if len(parts) == 1:
            return base
        rest = encoded(parts[1:])
    if not rest:
        try:
            yield from top_info(base, join(path))
        except errors.NoSuchName:
            with suppress(errors.Exists):  # another client was quicker
                made = ref((yield from create_partition(base.partition_id)))
                fs.made.append(join(path))
                return made
        if not exist_ok:
            raise errors.NameExists(0x5, 0x80, 0x31, f"{path!r} exists")
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


def _partition_of_name(fs: Any, name: str, exist_ok: bool) -> Dialogue[ObjectRef]:
    """Make a partition with a name that was absent.  exist_ok: another client may be quicker."""
    try:
        made = yield from make_partition(fs, name)
    except errors.NameExists:
        if not exist_ok:
            raise
        return (yield from find_partition(fs, name))
    fs.made.append(join(name))
    return made


def rmdir(fs: Any, path: str) -> Dialogue[None]:
    """Remove an empty directory.  Raises: NotEmpty."""
    base, rest = yield from name_place(fs, path)
    with about(fs, path):
        yield from names.remove_directory(base, rest)


def unlink(
    fs: Any, path: str, *, missing_ok: bool = False, expected: ObjectRef | None = None
) -> Dialogue[None]:
    """Remove a name of a user object, and the object with its last name.

    Args: expected: the object that must have the name.

    Raises: NoSuchName, IsADirectory; NameChanged: another object than expected has the name.
    """
    base, rest = yield from name_place(fs, path)
    try:
        with about(fs, path):
            yield from names.unlink(base, rest, expected=expected.object_id if expected else 0)
    except errors.NoSuchName:
        if not missing_ok:
            raise


def rmtree(fs: Any, path: str) -> Dialogue[int]:
    """Remove a directory with everything below it, or a file.

    Returns: how many names.  Names that others make meanwhile are removed, too, or NotEmpty is raised.
    """
    first = yield from entry_at(fs, path)
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


def _of_two_paths(fs: Any, path: str, new_path: str, moving: Dialogue[object]) -> Dialogue[None]:
    """Send a command on two paths.  A refusal names the new path, or the old one if that is absent."""
    try:
        yield from moving
    except OF_A_PATH as error:
        with about(fs, new_path if (yield from exists(fs, path)) else path):
            raise error


def rename(fs: Any, path: str, new_path: str, *, replace: bool = False) -> Dialogue[None]:
    """Give a file, a directory or a partition another path, in one step.

    Args:
        path: "/0x10000" is a partition that has no name yet.
        replace: remove a file, or an empty directory, that has the new path.

    Raises: NameExists; NotEmpty; ValueError: the paths are in different partitions.
    """
    old, new = split(path), split(new_path)
    if fs.base is None and len(old) == len(new) == 1:
        check_not_jobs(fs, path)
        check_not_jobs(fs, new_path)
        yield from rename_partition(fs, old[0], new[0], replace)
        return
    base, first, second = yield from same_place(fs, path, new_path)
    if second is None:
        raise ValueError(
            f"{path!r} and {new_path!r} are in different partitions: copy, then remove"
        )
    renaming = names.rename(base, first, second, replace=replace)
    yield from _of_two_paths(fs, path, new_path, renaming)


def link(fs: Any, path: str, new_path: str, *, replace: bool = False) -> Dialogue[None]:
    """Give a file one more name.

    Raises: NameExists; ValueError: the paths are in different partitions.
    """
    base, first, second = yield from same_place(fs, path, new_path)
    if second is None:
        raise ValueError(f"{path!r} and {new_path!r} are in different partitions")
    linking = names.link(base, second, first, replace=replace)
    yield from _of_two_paths(fs, path, new_path, linking)


def copy(fs: Any, path: str, new_path: str, *, replace: bool = True) -> Dialogue[ObjectRef]:
    """Copy a file inside the target, with its attributes; the data do not travel.

    The copy appears when it is complete.  Files of jobs are read and written by the client.

    Raises: NameExists: replace is False.  ValueError: in a file system below a directory.
    """
    if is_of_jobs(fs, path):
        data = yield from read_bytes(fs, path)
        return (yield from write_bytes(fs, new_path, data, exclusive=not replace))
    source = yield from resolve(fs, path)
    if not source.object_id:
        raise is_directory(path)
    base, rest = yield from name_place(fs, new_path)
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
    """Read bytes of a file.  One command gets the first 64 KiB.

    Args:
        length: None: to the end.
    """
    most = FIRST_READ if length is None else start + length
    if not is_of_jobs(fs, path) and 0 < most <= FIRST_READ:
        first = yield from _first_bytes(fs, path, most)
        if first is not None and (length is not None or first.length == len(first.data)):
            return bytearray(first.data[start:most])
    return (yield from of_one_object(lambda: _bytes_of(fs, path, start, length)))


def _bytes_of(fs: Any, path: str, start: int, length: int | None) -> Dialogue[bytearray]:
    """read_bytes() of a file of any length.  Raises: NotFound: it was replaced meanwhile."""
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
        length: bytes to read; None: to the end.
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
    """Store bytes as a file.  Others see either the old file or the complete new one.

    Args:
        exclusive: the path must be new.

    Raises: NameExists; NoSuchName: the directory is absent; NoSpace.
    """
    base, rest = yield from name_place(fs, path)
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
    except (GeneratorExit, errors.Unreachable):
        raise  # no command can be sent any more
    except BaseException:  # also Ctrl-C, and a coroutine that is cancelled
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
