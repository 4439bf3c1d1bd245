# SPDX-License-Identifier: GPL-2.0-or-later
"""An open file of a target, as dialogues: where it reads and writes, and what close() does.

A file that is written anew is an object without a name until close() gives it one.  Until then others
see the old file.  Not here: buffers and text (files.py).
"""

from __future__ import annotations

import errno
from dataclasses import dataclass
from typing import Any

from pyosd import errors
from pyosd.commands import data as object_data
from pyosd.commands import names
from pyosd.commands.dialogue import Dialogue, OwnMethod
from pyosd.fs.job_files import check_not_jobs
from pyosd.fs.lookup import info, is_directory, place
from pyosd.fs.new_file import NewFile, give_up, is_final, new_file, publish
from pyosd.fs.partitions import about
from pyosd.types import Buffer, MutableBuffer, ObjectRef

__all__ = ["OpenFileTable", "OpenMode", "OpenedFile", "check_whole", "open_object"]

_MODES = "rwxa"
_GROWN = 4096  # bytes that are read behind the end as it was, or as many as were found there


@dataclass(frozen=True)
class OpenMode:
    """A mode as of open(): one of r, w, x and a, and perhaps + and b or t."""

    kind: str
    updates: bool
    text: bool

    @classmethod
    def of(cls, text: str) -> OpenMode:
        """Read it.  Raises: ValueError: it is none."""
        kinds = [each for each in text if each in _MODES]
        wrong = set(text) - set(_MODES + "+bt") or len(set(text)) != len(text)
        if wrong or len(kinds) != 1 or ("b" in text and "t" in text):
            raise ValueError(f"invalid mode: '{text}'")
        return cls(kinds[0], "+" in text, "b" not in text)

    @property
    def reads(self) -> bool:
        """Whether read() is allowed."""
        return self.kind == "r" or self.updates

    @property
    def writes(self) -> bool:
        """Whether write() is allowed."""
        return self.kind != "r" or self.updates


@dataclass
class OpenedFile:
    """An open file.  new: what close() names, and the path; None: it has its name.  content: as of
    PathInfo.  lacking: where the last write failed that was not repeated; None: there is none.
    """

    path: str
    mode: OpenMode
    object: ObjectRef
    length: int
    new: tuple[NewFile, bytes] | None = None
    content: bytes | None = None
    lacking: int | None = None


def open_object(fs: Any, path: str, mode: OpenMode) -> Dialogue[OpenedFile]:
    """Find the file, or make an object for it."""
    if mode.writes:
        check_not_jobs(fs, path)
    if mode.kind in "wx":
        base, rest = yield from place(fs, path)
        if not rest:
            raise is_directory(path)
        with about(fs, path):
            yield from _check_new(base, rest, mode, path)
        made = yield from new_file(base)
        return OpenedFile(path, mode, made.object, 0, (made, rest))
    if mode.kind == "a":
        base, rest = yield from place(fs, path)
        if not rest:
            raise is_directory(path)
        with about(fs, path):
            yield from names.create_name(base, rest, exclusive=False)
    found = yield from info(fs, path)
    if found.is_directory:
        raise is_directory(path)
    return OpenedFile(path, mode, found.object, found.length, content=found.content)


def _check_new(base: ObjectRef, rest: bytes, mode: OpenMode, path: str) -> Dialogue[None]:
    """Refuse early what close() would refuse."""
    try:
        found = yield from names.lookup(base, rest)
    except errors.NoSuchName:
        above = rest.rpartition(b"/")[0]
        if above:
            yield from names.lookup(base, above)
        return
    if found.is_directory:
        raise is_directory(path)
    if mode.kind == "x":
        raise errors.NameExists(0x5, 0x80, 0x31, f"{path!r} exists")


def read_into(file: Any, start: int, buffer: MutableBuffer) -> Dialogue[int]:
    """Read from a position on.  Returns: bytes; 0 only at the end."""
    opened: OpenedFile = file.opened
    view = memoryview(buffer).cast("B")
    if opened.mode.writes:  # its length is known here
        view = view[: max(opened.length - start, 0)]
    elif opened.content is None:  # it may have grown, and beyond the end a target sends zeros
        view = view[: max(abs(opened.length - start), _GROWN)]
    if not view.nbytes:
        return 0
    if opened.content is not None:
        piece = opened.content[start : start + view.nbytes]
        view[: len(piece)] = piece
        return len(piece)
    return (yield from object_data.read_into(opened.object, start, view))


def write_at(file: Any, start: int, data: Buffer) -> Dialogue[int]:
    """Write at a position, or behind the end in mode a.  Returns: the position behind it."""
    opened: OpenedFile = file.opened
    view = memoryview(data).cast("B")
    if opened.mode.kind == "a":
        start = yield from _append(opened, start, view)
    else:
        if opened.lacking is None:
            opened.lacking = start  # until this write has ended well
        written = yield from object_data.write_range(opened.object, start, view)
        if opened.lacking == start:
            opened.lacking = None
        start += written
    opened.length = max(opened.length, start)
    return start


def _append(opened: OpenedFile, start: int, view: memoryview) -> Dialogue[int]:
    """Write behind the end.  Python's buffers repeat a write that has failed, also when the file is
    closed: bytes that the object may have by now are not appended again."""
    if opened.lacking is not None:
        text = (
            "an earlier write may have stored a part of its bytes: see the file, and open it again"
        )
        raise OSError(errno.EIO, text, opened.path)
    for at in range(0, view.nbytes, object_data.CHUNK):
        piece = view[at : at + object_data.CHUNK]
        try:
            start = yield from object_data.append(opened.object, piece)
        except BaseException as error:
            if at or not is_final(error):
                opened.lacking = start
            raise
        start += piece.nbytes
    return start


def finish(file: Any) -> Dialogue[None]:
    """Give a new file its name.  One that lacks bytes is given up: Python's buffers close a file also
    after their last write has failed, and the file that has the name must stay then."""
    opened: OpenedFile = file.opened
    if opened.lacking is not None:
        yield from discard(file)
    if opened.new:
        (made, rest), opened.new = opened.new, None
        yield from publish(made, rest, replace=opened.mode.kind == "w")


def discard(file: Any) -> Dialogue[None]:
    """Give a new file up; a file that has its name stays as it is."""
    opened: OpenedFile = file.opened
    if opened.new:
        (made, _), opened.new = opened.new, None
        yield from give_up(made)


def check_whole(opened: OpenedFile) -> None:
    """Raises: OSError: a new file was given up because a write had failed."""
    if opened.mode.kind in "wx" and opened.lacking is not None:
        raise OSError(errno.EIO, "a write failed, so nothing has changed", opened.path)


class OpenFileTable:
    """The commands of an open file, for both faces."""

    _read_into = OwnMethod(read_into)
    _write_at = OwnMethod(write_at)
    _finish = OwnMethod(finish)
    _discard = OwnMethod(discard)
