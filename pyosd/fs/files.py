# SPDX-License-Identifier: GPL-2.0-or-later
"""Open files for threads: a raw file over an object, with the buffers and text layer of Python's io.

If a with block ends with an exception, a new file is given up, and what had its path stays.
"""

from __future__ import annotations

import io
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import IO, TYPE_CHECKING, Any, TypeVar, cast

from pyosd.commands.dialogue import Blocking, Dialogue
from pyosd.fs.opening import OpenedFile, OpenFileTable, OpenMode, check_whole

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer, WriteableBuffer

__all__ = ["ObjectIO", "file_of"]

BUFFER = 1 << 20
"""Bytes that are read or written at a time, unless the caller says otherwise."""
COPIED = 8 << 20
"""Most bytes of one read or write of Python's buffers."""

R = TypeVar("R")


class _Calls(OpenFileTable, Blocking):
    """The dialogues of an open file, carried for threads."""

    def __init__(self, fs: Any, opened: OpenedFile) -> None:
        self.fs, self.opened = fs, opened

    def carry(self, dialogue: Dialogue[R]) -> R:
        value: R = self.fs.carry(dialogue)
        return value


class ObjectIO(io.RawIOBase):
    """An open file without buffers.  One thread uses it at a time.

    buffered: a buffer writes to it, and raises the error of a write itself.

    Python's buffers lend their memory without an owner, and free it when an exception ends the call.
    Commands that are under way then still use it.  So these are given memory of ours.
    """

    def __init__(self, fs: Any, opened: OpenedFile, *, buffered: bool) -> None:
        super().__init__()
        self._calls = _Calls(fs, opened)
        self._opened = opened
        self._at = opened.length if opened.mode.kind == "a" else 0
        self._buffered = buffered
        self._room = bytearray()  # for the next read of a buffer

    @property
    def name(self) -> str:
        """The path."""
        return self._opened.path

    @property
    def mode(self) -> str:
        """As it was opened, binary."""
        mode = self._opened.mode
        return f"{mode.kind}b{'+' * mode.updates}"

    def readable(self) -> bool:
        return self._opened.mode.reads

    def writable(self) -> bool:
        return self._opened.mode.writes

    def seekable(self) -> bool:
        return True

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = os.SEEK_SET, /) -> int:
        self._check_open()
        base = {os.SEEK_SET: 0, os.SEEK_CUR: self._at, os.SEEK_END: self._opened.length}[whence]
        if base + offset < 0:
            raise ValueError(f"negative seek position {base + offset}")
        self._at = base + offset
        return self._at

    def readinto(self, buffer: WriteableBuffer, /) -> int:
        self._check_open()
        if not self.readable():
            raise io.UnsupportedOperation("not readable")
        view = memoryview(buffer).cast("B")
        lent = view.obj is None
        count = self._read_copied(view) if lent else self._calls._read_into(self._at, view)
        self._at += count
        return count

    def _read_copied(self, view: memoryview) -> int:
        size = min(view.nbytes, COPIED)
        room, self._room = self._room, bytearray()
        if len(room) < size:
            room = bytearray(size)
        own = memoryview(room)[:size]
        count = self._calls._read_into(self._at, own)
        view[:count] = own[:count]
        self._room = room
        return count

    def readall(self) -> bytes:
        self._check_open()
        pieces = list[bytes]()
        while piece := self.read(max(self._opened.length - self._at, BUFFER)):
            pieces.append(piece)
        return b"".join(pieces)

    def write(self, data: ReadableBuffer, /) -> int:
        self._check_open()
        if not self.writable():
            raise io.UnsupportedOperation("not writable")
        view = memoryview(data).cast("B")
        if view.obj is None:
            view = memoryview(bytes(view[:COPIED]))
        self._at = self._calls._write_at(self._at, view)
        return view.nbytes

    def truncate(self, size: int | None = None, /) -> int:
        raise io.UnsupportedOperation("truncate: open it with mode w to write it anew")

    def close(self) -> None:
        if not self.closed:
            super().close()
            self._calls._finish()
            if not self._buffered:
                check_whole(self._opened)

    def discard(self) -> None:
        """Close it without effect, if it is a new file."""
        if not self.closed:
            super().close()
            self._calls._discard()

    def _check_open(self) -> None:
        if self.closed:
            raise ValueError("I/O operation on closed file")


class _Writer(io.BufferedWriter):
    """A buffered writer that gives a new file up after an exception."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        _leave(self, kind)


class _Random(io.BufferedRandom):
    """The same for files that are read and written."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        _leave(self, kind)


class _Text(io.TextIOWrapper):
    """The same for text."""

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        _leave(self, kind)


def _leave(file: Any, kind: type[BaseException] | None) -> None:
    if kind is not None:
        raw: Any = file
        while not isinstance(raw, ObjectIO):
            raw = raw.buffer if isinstance(raw, io.TextIOWrapper) else raw.raw
        raw.discard()
        with _closed_below():
            file.close()
    file.close()


@contextmanager
def _closed_below() -> Iterator[None]:
    """Bytes left in a buffer have nowhere to go."""
    try:
        yield
    except ValueError:
        return


def file_of(
    fs: Any,
    opened: OpenedFile,
    buffering: int,
    encoding: str | None,
    errors: str | None,
    newline: str | None,
) -> IO[Any]:
    """The file object for a mode, as open() makes it."""
    mode = opened.mode
    raw = ObjectIO(fs, opened, buffered=buffering != 0)
    if buffering == 0:
        return cast(IO[bytes], raw)
    size = buffering if buffering > 1 else BUFFER
    buffer: Any
    if mode.updates:
        buffer = _Random(raw, size)
    elif mode.writes:
        buffer = _Writer(raw, size)
    else:
        buffer = io.BufferedReader(raw, size)
    if not mode.text:
        return cast(IO[bytes], buffer)
    text: Any = _Text(buffer, encoding or "utf-8", errors, newline, line_buffering=buffering == 1)
    text.mode = raw.mode.replace("b", "")
    return cast(IO[str], text)


def check_arguments(
    mode: OpenMode, buffering: int, encoding: str | None, errors: str | None
) -> None:
    """Raises: ValueError: as open()."""
    if mode.text and buffering == 0:
        raise ValueError("can't have unbuffered text I/O")
    if not mode.text and (encoding or errors):
        raise ValueError("binary mode doesn't take an encoding or errors argument")
