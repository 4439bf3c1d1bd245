# SPDX-License-Identifier: GPL-2.0-or-later
"""The file systems of a target, for threads and for coroutines."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import IO, Any, TypeVar

from pyosd.commands.dialogue import Awaiting, Blocking, Dialogue, Stream
from pyosd.fs.aio_files import AsyncFile
from pyosd.fs.dialogues import FileTable
from pyosd.fs.files import check_arguments, file_of
from pyosd.fs.opening import OpenMode, open_object
from pyosd.types import ObjectRef

__all__ = ["AsyncFileSystem", "FileSystem"]

R = TypeVar("R")


class FileSystem(FileTable, Blocking):
    """Files of a target by their paths."""

    def __init__(self, target: Any, base: ObjectRef | None = None) -> None:
        """Args: target: a Target.  base: the partition or directory that paths begin at; None: the root."""
        self.target, self.base = target, base
        self.partitions: dict[str, tuple[ObjectRef, float]] = {}
        self.made: list[str] = []  # paths of the partitions that mkdir() has made

    def carry(self, dialogue: Dialogue[R]) -> R:
        """Carry a dialogue to its end.  Returns: its value."""
        value: R = self.target.carry(dialogue)
        return value

    def carry_stream(self, stream: Stream[R]) -> Iterator[R]:
        """Carry a stream: yield its items."""
        found: Iterator[R] = self.target.carry_stream(stream)
        return found

    def below(self, base: ObjectRef) -> FileSystem:
        """The file system below a partition or directory; nothing is sent."""
        return FileSystem(self.target, base)

    def open(
        self,
        path: str,
        mode: str = "r",
        buffering: int = -1,
        encoding: str | None = None,
        errors: str | None = None,
        newline: str | None = None,
    ) -> IO[Any]:
        """Open a file, as Python's open().

        Args:
            mode: r: read; r+: read and change in place; a: append; w: write a new file; x: the same, but
                the path must be new.  With b the file has bytes, otherwise text.
            buffering: bytes of the buffer, 0: none; -1: 1 MiB.
            encoding: of text; None: UTF-8.
            errors, newline: as for Python's open().

        A new file appears at close(), complete; until then others see the old one.  If a with block ends
        with an exception, nothing changes.

        Raises: NoSuchName, IsADirectory; NameExists, with mode x also at close(); ValueError.
        """
        parsed = OpenMode.of(mode)
        check_arguments(parsed, buffering, encoding, errors)
        opened = self.carry(open_object(self, path, parsed))
        return file_of(self, opened, buffering, encoding, errors, newline)


class AsyncFileSystem(FileTable, Awaiting):
    """Files of a target by their paths, for coroutines."""

    def __init__(self, target: Any, base: ObjectRef | None = None) -> None:
        """Args: target: an AsyncTarget.  base: as of FileSystem."""
        self.target, self.base = target, base
        self.partitions: dict[str, tuple[ObjectRef, float]] = {}
        self.made: list[str] = []  # paths of the partitions that mkdir() has made

    async def carry(self, dialogue: Dialogue[R]) -> R:
        """Carry a dialogue to its end.  Returns: its value."""
        value: R = await self.target.carry(dialogue)
        return value

    def carry_stream(self, stream: Stream[R]) -> AsyncIterator[R]:
        """Carry a stream: yield its items."""
        found: AsyncIterator[R] = self.target.carry_stream(stream)
        return found

    def below(self, base: ObjectRef) -> AsyncFileSystem:
        """The file system below a partition or directory; nothing is sent."""
        return AsyncFileSystem(self.target, base)

    async def open(self, path: str, mode: str = "rb") -> AsyncFile:
        """Open a file of bytes: `async with await fs.open(path, "wb") as file`.

        Modes and what close() does are those of FileSystem.open().

        Raises: as FileSystem.open(); ValueError: a mode for text.
        """
        parsed = OpenMode.of(mode)
        if parsed.text:
            raise ValueError("files of coroutines are binary: add b to the mode")
        return AsyncFile(self, await self.carry(open_object(self, path, parsed)))
