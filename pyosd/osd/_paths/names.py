# SPDX-License-Identifier: GPL-2.0-or-later
"""Objects by their paths: open(), glob() and lookup().

A path is relative to the zone, which is a partition or a directory: "logs/a.gz".  One that begins with a
slash begins with a partition's id: "/0x10000/logs/a.gz".
"""

from __future__ import annotations

import io
import struct
from typing import IO, TYPE_CHECKING, Any, NamedTuple

from .._base import ObjectType
from .._current import current
from .._errors import Invalid, NotFound
from .._objects import OSDObject, object_of_type, userobject
from .._transport import Call
from .patterns import has_pattern, matcher, may_lead

if TYPE_CHECKING:
    from collections.abc import Iterator

__all__ = ["PathName", "glob", "lookup", "open"]

LOOKUP, LIST = 1, 2
PARAMS = struct.Struct(">BBxxHHIHxxQQ")  # as pyosd/wire/names.py has them
ENTRY = struct.Struct(">QB5xH40x")


class PathName(str):
    """A path that glob() has found; open() takes it without another search.

    object: the user object at the path; for a directory, the collection.
    """

    object: OSDObject


class PathStart(NamedTuple):
    """A partition or directory, and the names of a path below it."""

    partition_id: int
    object_id: int
    names: list[str]


def parsed(path: str) -> PathStart:
    """Where a path begins.  Raises: Invalid: it has no partition, and the zone is none."""
    names = [each for each in path.split("/") if each not in ("", ".")]
    if ".." in names:
        raise Invalid(f"'{path}': there is no way up")
    if path.startswith("/"):
        try:
            return PathStart(int(names[0], 0), 0, names[1:])
        except (ValueError, IndexError):
            raise Invalid(f"'{path}' does not begin with the id of a partition") from None
    context = current().context
    if context.zone_type not in (ObjectType.PARTITION, ObjectType.COLLECTION):
        raise Invalid(f"'{path}' is relative, and the zone is no partition and no directory")
    return PathStart(*context.zone, names)


def ask(start: PathStart, verb: int, after: bytes = b"") -> tuple[int, int, bytes]:
    """One call about names."""
    path = "/".join(start.names).encode("utf-8", "surrogateescape")
    head = PARAMS.pack(verb, 0, len(path), len(after), 0, 0, 0, 0)
    body = head + path + after
    return current().call(Call.NAMES, start.partition_id, start.object_id, body=body)


def lookup(path: str) -> OSDObject:
    """The object at a path: a userobject, or a collection for a directory.

    >>> osd.lookup(f"/{p.partition_id}") == p
    True

    Raises: NotFound; PermissionDenied; Invalid: a relative path in a zone without names.
    """
    return path.object if isinstance(path, PathName) else named_by(parsed(path))


def named_by(start: PathStart) -> OSDObject:
    """The object at a path."""
    found, kind, _ = ask(start, LOOKUP)
    return object_of_type(kind, start.partition_id, found)


def open(  # noqa: A001 -- scripts write osd.open()
    path: str,
    mode: str = "r",
    encoding: str | None = None,
    errors: str | None = None,
    newline: str | None = None,
) -> IO[Any]:
    """Open an existing file by its path, like Python's open().

    Args:
        mode: r or r+, with b for bytes.  Only clients make and replace files.
        encoding, errors, newline: for text; encoding None: UTF-8.

    Raises: NotFound; PermissionDenied; Invalid: it is a directory, or another mode.
    """
    kinds = mode.replace("b", "", 1).replace("t", "", 1)
    if kinds not in ("r", "r+") or ("b" in mode and "t" in mode):
        raise Invalid(f"mode '{mode}': files are opened with r, rb, r+ or r+b here")
    found = lookup(path)
    if not isinstance(found, userobject):
        raise Invalid(f"'{path}' is a directory")
    data = found.data
    if "b" in mode:
        return data  # type: ignore[return-value]
    if kinds == "r":
        return io.TextIOWrapper(io.BufferedReader(data), encoding or "utf-8", errors, newline)
    return io.TextIOWrapper(data, encoding or "utf-8", errors, newline)


def entries(start: PathStart) -> Iterator[tuple[str, OSDObject]]:
    """Names of a directory and what has them, in order."""
    after, more = b"", 1
    while more:
        count, more, body = ask(start, LIST, after)
        at = 0
        for _ in range(count):
            object_id, kind, length = ENTRY.unpack_from(body, at)
            at += ENTRY.size
            after = body[at : at + length]
            at += (length + 7) // 8 * 8
            name = after.decode("utf-8", "surrogateescape")
            yield name, object_of_type(kind, start.partition_id, object_id)


def glob(pattern: str) -> Iterator[PathName]:
    """Paths that match a pattern, in order: * ? [a-z] within a name, ** for any directories.

    Objects without a name, such as those of jobs, are not among them.

    >>> list(osd.glob(f"/{p.partition_id}/**/*.gz"))
    []

    Raises: PermissionDenied; Invalid; both when the iteration begins.
    """
    whole = parsed(pattern)
    count = next((at for at, name in enumerate(whole.names) if has_pattern(name)), None)
    above = f"/{whole.partition_id:#x}/" if pattern.startswith("/") else ""
    if count is None:
        try:
            yield named(above + "/".join(whole.names), lookup(pattern))
        except NotFound:
            return
        return
    rest = whole.names[count:]
    wanted = matcher(rest)
    pending = [list[str]()]
    while pending:
        inside = pending.pop()
        deeper = list[list[str]]()
        names = whole.names[:count] + inside
        for name, found in listed(whole._replace(names=names)):
            if wanted.fullmatch("/".join([*inside, name])):
                yield named(above + "/".join([*names, name]), found)
            if not isinstance(found, userobject) and may_lead(rest, len(inside), name):
                deeper.append([*inside, name])
        pending += reversed(deeper)


def listed(start: PathStart) -> list[tuple[str, OSDObject]]:
    """All entries of a directory; none if it is absent, or a file."""
    try:
        return [] if isinstance(named_by(start), userobject) else list(entries(start))
    except NotFound:
        return []


def named(path: str, found: OSDObject) -> PathName:
    """A path with its object."""
    name = PathName(path)
    name.object = found
    return name
