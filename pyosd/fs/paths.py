# SPDX-License-Identifier: GPL-2.0-or-later
"""Paths as text.  No I/O.

An absolute path begins with a partition: /0x10000/2024/a.jpg by its id, /photos/2024/a.jpg by its name.
Names are bytes; in a str, bytes that are no UTF-8 are surrogates, as in Python's own file names.
"""

from __future__ import annotations

from dataclasses import dataclass, field

from pyosd.errors import Invalid
from pyosd.osd._paths.patterns import has_pattern
from pyosd.types import FIRST_ID, U64_MAX, ObjectRef, check_str
from pyosd.wire.names import NAME_MAX

__all__ = [
    "JOBS",
    "PathInfo",
    "check_name",
    "encoded",
    "fixed_part",
    "join",
    "named_id",
    "split",
    "text_of",
]

SCHEME = "osd:"
JOBS = ".jobs"
"""First name of the paths of jobs."""


@dataclass(frozen=True)
class PathInfo:
    """A file, a directory or a partition, as it was when the target was asked.

    path: from the root of the file system.  length: in bytes; 0 for a directory.  created_ms,
    modified_ms: ms since 1970.  version: of the data, or of a directory's entries; 12 bytes.
    content: the data of a file of a job, which is no object; object is the job then.
    """

    path: str
    object: ObjectRef
    is_directory: bool
    length: int = 0
    created_ms: int = 0
    modified_ms: int = 0
    version: bytes = bytes(12)
    content: bytes | None = field(default=None, repr=False)

    @property
    def name(self) -> str:
        """The last name of the path; "" of the root."""
        return self.path.rpartition("/")[2]


def split(path: str) -> list[str]:
    """The names of a path, from the root on; "." and ".." are resolved, empty names left out.

    The text may begin with osd: or osd://, as addresses of files in other programs do.

    Raises: TypeError: it is no text.
    """
    names = list[str]()
    try:
        parts = path.removeprefix(SCHEME).split("/")
    except (AttributeError, TypeError):
        check_str("path", path)
        raise
    for name in parts:
        if name == "..":
            del names[-1:]
        elif name not in ("", "."):
            names.append(name)
    return names


def join(*parts: str) -> str:
    """The absolute path of these names or relative paths."""
    return "/" + "/".join(name for part in parts for name in split(part))


def encoded(names: list[str]) -> bytes:
    """The bytes of a relative path.  Raises: Invalid: one of them is no name."""
    for name in names:
        check_name(name)
    return "/".join(names).encode("utf-8", "surrogateescape")


def check_name(name: str) -> None:
    """A name of a path has at most 255 bytes, and none is 0.  Raises: Invalid."""
    length = len(name.encode("utf-8", "surrogateescape"))
    if length > NAME_MAX:
        text = f"'{name[:20]}...': a name has at most {NAME_MAX} bytes, and this one {length}"
        raise Invalid(0x5, 0x26, 0, text)
    if "\0" in name:
        raise Invalid(0x5, 0x26, 0, f"{name!r}: a name has no zero byte")


def text_of(name: bytes) -> str:
    """A name as str."""
    return name.decode("utf-8", "surrogateescape")


def named_id(name: str) -> int | None:
    """The partition that a first name stands for by its id; None: it is a partition's name."""
    try:
        number = int(name, 0)
    except ValueError:
        return None
    return number if FIRST_ID <= number <= U64_MAX else None


def fixed_part(pattern: str) -> tuple[str, list[str]]:
    """The directory that a pattern begins with, and the names of the rest."""
    names = split(pattern)
    count = next((at for at, name in enumerate(names) if has_pattern(name)), len(names))
    return join(*names[:count]), names[count:]
