# SPDX-License-Identifier: GPL-2.0-or-later
"""A store for Zarr (version 3 of the library).  Chunks and metadata are files below a directory.

Example::

    store = IosdStore("/0x10000/grid.zarr", target="iscsi://host/iqn.../1")
    zarr.create_array(store, shape=(1000, 1000), dtype="f8")

The target is the argument, IOSD_TARGET, or that of the profile; credentials as for fsspec (fsspec.py).
Setting a key replaces its file at once.  set_if_not_exists() is atomic: of several writers one stores its
value.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterable
from contextlib import suppress
from typing import Any
from weakref import WeakKeyDictionary

from zarr.abc.store import (
    ByteRequest,
    OffsetByteRequest,
    RangeByteRequest,
    Store,
    SuffixByteRequest,
)
from zarr.core.buffer import Buffer, BufferPrototype

from pyosd import aio
from pyosd.commands.data import read_range
from pyosd.commands.dialogue import Dialogue
from pyosd.errors import NameExists, NoSuchName, NotADirectory, NotEmpty
from pyosd.fs.faces import AsyncFileSystem as Files
from pyosd.fs.lookup import info, is_directory, of_one_object
from pyosd.fs.paths import PathInfo, join, split
from pyosd.profiles import access, target_url

__all__ = ["IosdStore"]

_ABSENT = (NoSuchName, NotADirectory, IsADirectoryError)


class IosdStore(Store):
    """Keys of Zarr as files below a directory of a target.  It may be used in several event loops."""

    supports_writes = True
    supports_deletes = True
    supports_listing = True

    def __init__(self, path: str, *, target: str | None = None, read_only: bool = False) -> None:
        """Args:
        path: the directory, from the root on; it is made when a key is set.
        target: URL as of pyosd.connect(); None: IOSD_TARGET, or that of the profile.
        """
        super().__init__(read_only=read_only)
        self.path = join(path)
        self.url = target_url(target)
        if not split(path):
            raise ValueError("the path of a store begins with a partition")
        self._sessions = WeakKeyDictionary[asyncio.AbstractEventLoop, aio.AsyncTarget]()

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, IosdStore):
            return False
        return (self.url, self.path, self.read_only) == (other.url, other.path, other.read_only)

    __hash__ = Store.__hash__

    def __repr__(self) -> str:
        return f"IosdStore({self.path!r}, target={self.url!r})"

    def __getstate__(self) -> dict[str, Any]:
        return {**self.__dict__, "_sessions": None}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self._sessions = WeakKeyDictionary()

    def with_read_only(self, read_only: bool = False) -> IosdStore:
        """The same keys, with or without the permission to change them."""
        return IosdStore(self.path, target=self.url, read_only=read_only)

    async def log_out(self) -> None:
        """End the session of the running loop; the next call begins another one."""
        session = self._sessions.pop(asyncio.get_running_loop(), None)
        if session is not None:
            await session.close()

    async def _files(self) -> Files:
        if not self._is_open:
            await self._open()
        loop = asyncio.get_running_loop()
        session = self._sessions.get(loop)
        if session is None:
            chap, source = access(self.url)
            session = await aio.connect(self.url, chap=chap, credentials=source)
            kept = self._sessions.setdefault(loop, session)
            if kept is not session:  # another task was quicker
                await session.close()
                session = kept
        return session.fs

    def _place(self, key: str) -> str:
        return join(self.path, key)

    # ---- values ---------------------------------------------------------------------------------

    async def get(
        self, key: str, prototype: BufferPrototype, byte_range: ByteRequest | None = None
    ) -> Buffer | None:
        """The value of a key, or bytes of it; None: there is no such key."""
        fs, path = await self._files(), self._place(key)
        try:
            if isinstance(byte_range, SuffixByteRequest):
                count = byte_range.suffix
                data = await fs.carry(of_one_object(lambda: _last_bytes(fs, path, count)))
            else:
                data = await fs.read_bytes(path, *_range(byte_range))
        except _ABSENT:
            return None
        return prototype.buffer.from_bytes(bytes(data))

    async def get_partial_values(
        self,
        prototype: BufferPrototype,
        key_ranges: Iterable[tuple[str, ByteRequest | None]],
    ) -> list[Buffer | None]:
        """get() of each, side by side."""
        wanted = [self.get(key, prototype, byte_range) for key, byte_range in key_ranges]
        return list(await asyncio.gather(*wanted))

    async def exists(self, key: str) -> bool:
        """Whether the key has a value."""
        return await (await self._files()).is_file(self._place(key))

    async def getsize(self, key: str) -> int:
        """Bytes of a value.  Raises: FileNotFoundError."""
        return (await (await self._files()).info(self._place(key))).length

    async def set(self, key: str, value: Buffer) -> None:
        """Store a value; others see the old one or the new one."""
        await self._write(key, value, exclusive=False)

    async def set_if_not_exists(self, key: str, value: Buffer) -> None:
        """Store a value unless the key has one, in one step."""
        with suppress(NameExists):
            await self._write(key, value, exclusive=True)

    async def _write(self, key: str, value: Buffer, *, exclusive: bool) -> None:
        self._check_writable()
        if not isinstance(value, Buffer):
            raise TypeError(f"a value is a Buffer, not {type(value).__name__}")
        fs, path, data = await self._files(), self._place(key), value.to_bytes()
        try:
            await fs.write_bytes(path, data, exclusive=exclusive)
        except NoSuchName:
            await fs.mkdir(path.rpartition("/")[0], parents=True, exist_ok=True)
            await fs.write_bytes(path, data, exclusive=exclusive)

    async def delete(self, key: str) -> None:
        """Remove a key, if it is there."""
        self._check_writable()
        fs, path = await self._files(), self._place(key)
        with suppress(*_ABSENT):
            await fs.unlink(path)

    async def delete_dir(self, prefix: str) -> None:
        """Remove all keys below a prefix."""
        self._check_writable()
        fs = await self._files()
        with suppress(*_ABSENT, NotEmpty):
            await fs.rmtree(self._place(prefix))

    async def clear(self) -> None:
        """Remove all keys."""
        await self.delete_dir("")

    # ---- listings -------------------------------------------------------------------------------

    async def is_empty(self, prefix: str) -> bool:
        """Whether no key is below a prefix."""
        async for _ in self._below(prefix):
            return False
        return True

    async def list(self) -> AsyncIterator[str]:
        """All keys."""
        async for each in self._below(""):
            yield self._key(each)

    async def list_prefix(self, prefix: str) -> AsyncIterator[str]:
        """Keys that begin with a text."""
        above = prefix if not prefix or prefix.endswith("/") else prefix.rpartition("/")[0]
        async for each in self._below(above):
            key = self._key(each)
            if key.startswith(prefix):
                yield key

    async def list_dir(self, prefix: str) -> AsyncIterator[str]:
        """Names in a directory."""
        fs = await self._files()
        try:
            entries = await fs.ls(self._place(prefix))
        except _ABSENT:
            return
        for each in entries:
            if each.path != self._place(prefix):
                yield each.name

    async def _below(self, prefix: str) -> AsyncIterator[PathInfo]:
        """Files below a directory; none if it is absent, or a file."""
        fs, path = await self._files(), self._place(prefix)
        try:
            async for each in fs.walk(path):
                if not each.is_directory and each.path != path:
                    yield each
        except _ABSENT:
            return

    def _key(self, info: PathInfo) -> str:
        return info.path[len(self.path) + 1 :]


def _range(wanted: ByteRequest | None) -> tuple[int, int | None]:
    """First byte and length of a range; None: to the end."""
    if wanted is None:
        return 0, None
    if isinstance(wanted, RangeByteRequest):
        return wanted.start, max(wanted.end - wanted.start, 0)
    if isinstance(wanted, OffsetByteRequest):
        return wanted.offset, None
    raise ValueError(f"Unexpected byte_range, got {wanted}.")


def _last_bytes(fs: Files, path: str, count: int) -> Dialogue[bytearray]:
    """At most so many bytes at the end of a file.  Raises: NotFound: it was replaced meanwhile."""
    found = yield from info(fs, path)
    if found.is_directory:
        raise is_directory(path)
    start = max(found.length - count, 0)
    return (yield from read_range(found.object, start, found.length - start))
