# SPDX-License-Identifier: GPL-2.0-or-later
"""The file system of a target for fsspec: osd://PARTITION/NAME/...

    fsspec.open("osd://0x10000/logs/a.gz", "rb", target="iscsi://host/iqn.../1")

The target is the storage option `target`, or IOSD_TARGET, or the profile's.  Credentials are those of the
environment, of the profile, or the local one of a target that this user serves.  Paths begin with a
partition, by id or by name, and have no slash in front.  Writing a file makes the directories it needs.
"""

from __future__ import annotations

import asyncio
import os
import weakref
from collections.abc import Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from fsspec.asyn import AsyncFileSystem, sync, sync_wrapper
from fsspec.callbacks import DEFAULT_CALLBACK
from fsspec.core import has_magic
from fsspec.spec import AbstractBufferedFile

from pyosd import aio
from pyosd.commands.data import CHUNK
from pyosd.errors import NoSuchName, NotADirectory
from pyosd.fs.aio_files import AsyncFile
from pyosd.fs.faces import AsyncFileSystem as Files
from pyosd.fs.job_files import check_not_jobs, is_of_jobs
from pyosd.fs.paths import PathInfo, join
from pyosd.profiles import access, target_url
from pyosd.types import ObjectRef

__all__ = ["IosdFileSystem"]

PROTOCOL = "osd"
OPTIONS = {"use_listings_cache", "listings_expiry_time", "max_paths", "batch_size", "protocol"}
"""Storage options of every file system of fsspec, besides those of the constructor."""
PIECES = 512
"""Ranges of one file that one command reads."""


def _log_out(loop: Any, session: aio.AsyncTarget) -> None:
    """At the end of a file system's life.  The loop may have ended before."""
    if loop is not None and loop.is_running():
        with suppress(Exception):
            sync(loop, session.close, timeout=1)


def _range(start: int | None, end: int | None, length: int) -> tuple[int, int]:
    """A range of bytes as of a slice."""
    first, last, _ = slice(start, end).indices(length)
    return first, max(first, last)


def _stripped(path: str) -> str:
    return path.removeprefix("/")


def _described(info: PathInfo) -> dict[str, Any]:
    return {
        "name": _stripped(info.path),
        "size": info.length,
        "type": "directory" if info.is_directory else "file",
        "created": info.created_ms / 1000,
        "mtime": info.modified_ms / 1000,
        "version": info.version.hex(),
        "object": str(info.object),
    }


class IosdFileSystem(AsyncFileSystem):  # type: ignore[misc]
    """Files of one target.  Listings are not cached."""

    protocol = (PROTOCOL, "iosd")
    root_marker = ""

    def __init__(
        self,
        target: str | None = None,
        *,
        credentials: Any = None,
        asynchronous: bool = False,
        loop: Any = None,
        default_target: str | None = None,
        **options: Any,
    ) -> None:
        """Args:
        target: URL as of pyosd.connect(); None: IOSD_TARGET, or that of the profile.
        default_target: IOSD_TARGET as it was when the URL was opened (_get_kwargs_from_urls).
        credentials: as of pyosd.connect(); None: those of the environment or of the profile.

        Raises: TypeError: an option is unknown.
        """
        unknown = sorted(options.keys() - OPTIONS)
        if unknown:  # a misspelt target would mean that of the environment
            raise TypeError(f"osd:// has no storage option {unknown[0]!r}: target, credentials")
        options.setdefault("use_listings_cache", False)
        super().__init__(asynchronous=asynchronous, loop=loop, **options)
        self.url = target_url(target or default_target)
        self._credentials = credentials
        self._session: aio.AsyncTarget | None = None
        self._connecting = asyncio.Lock()

    @classmethod
    def _strip_protocol(cls, path: Any) -> Any:
        if isinstance(path, list):
            return [cls._strip_protocol(each) for each in path]
        text = os.fspath(path)
        for name in cls.protocol:
            text = text.removeprefix(f"{name}://").removeprefix(f"{name}:")
        return text.strip("/")

    @staticmethod
    def _get_kwargs_from_urls(path: str) -> dict[str, Any]:
        """The target that the environment names, so that instances for others are not taken for it.

        It is no `target`: fsspec refuses a storage option with another value.
        """
        url = os.environ.get("IOSD_TARGET")
        return {"default_target": url} if url else {}

    @property
    def fsid(self) -> str:
        """The target."""
        return f"{PROTOCOL}_{self.url}"

    async def set_session(self) -> aio.AsyncTarget:
        """The session with the target, in the running loop."""
        async with self._connecting:
            if self._session is None:
                chap, source = access(self.url)
                self._session = await aio.connect(
                    self.url, chap=chap, credentials=self._credentials or source
                )
                if not self.asynchronous:
                    weakref.finalize(self, _log_out, self.loop, self._session)
            return self._session

    async def aclose(self) -> None:
        """Log out; for `asynchronous=True`, where nobody else does."""
        if self._session is not None:
            session, self._session = self._session, None
            await session.close()

    async def _files(self) -> Files:
        return (await self.set_session()).fs

    # ---- listings -------------------------------------------------------------------------------

    async def _info(self, path: str, **kwargs: Any) -> dict[str, Any]:
        return _described(await (await self._files()).info(join(path)))

    async def _ls(self, path: str, detail: bool = True, **kwargs: Any) -> list[Any]:
        found = [_described(each) for each in await (await self._files()).ls(join(path))]
        return found if detail else [each["name"] for each in found]

    async def _find(
        self, path: str, maxdepth: int | None = None, withdirs: bool = False, **kwargs: Any
    ) -> Any:
        if maxdepth is not None and maxdepth < 1:
            raise ValueError("maxdepth must be at least 1")
        found = dict[str, dict[str, Any]]()
        fs = await self._files()
        with suppress(NoSuchName, NotADirectory):
            if withdirs and join(path) != "/" and (top := await fs.info(join(path))).is_directory:
                found[_stripped(top.path)] = _described(top)
            async for each in fs.walk(join(path), maxdepth):
                if withdirs or not each.is_directory:
                    found[_stripped(each.path)] = _described(each)
        names = sorted(found)
        if kwargs.get("detail"):
            return {name: found[name] for name in names}
        return names

    def ukey(self, path: str) -> str:
        """The version of the data."""
        return str(self.info(path)["version"])

    def created(self, path: str) -> datetime:
        """When the object was made."""
        return datetime.fromtimestamp(self.info(path)["created"], tz=UTC)

    def modified(self, path: str) -> datetime:
        """When its data were changed last."""
        return datetime.fromtimestamp(self.info(path)["mtime"], tz=UTC)

    # ---- data -----------------------------------------------------------------------------------

    async def _cat_file(
        self, path: str, start: int | None = None, end: int | None = None, **kwargs: Any
    ) -> bytes:
        first = start or 0
        if first >= 0 and (end is None or first <= end):  # most often one command
            length = None if end is None else end - first
            return bytes(await (await self._files()).read_bytes(join(path), first, length))
        info = await self._file(path)
        return await self._data(info, *_range(start, end, info.length))

    async def _data(self, info: PathInfo, first: int, last: int) -> bytes:
        if info.content is not None:
            return info.content[first:last]
        target = await self.set_session()
        return bytes(await target.read_range(info.object, first, last - first))

    async def _file(self, path: str) -> PathInfo:
        info = await (await self._files()).info(join(path))
        if info.is_directory:
            raise IsADirectoryError(path)
        return info

    async def _cat_ranges(
        self,
        paths: list[str],
        starts: Any,
        ends: Any,
        max_gap: int | None = None,
        batch_size: int | None = None,
        on_error: str = "return",
        **kwargs: Any,
    ) -> list[Any]:
        """Ranges of the same file are read in one command for some hundred of them."""
        if not isinstance(paths, list):
            raise TypeError("paths is a list")
        count = len(paths)
        starts = starts if isinstance(starts, Sequence) else [starts] * count
        ends = ends if isinstance(ends, Sequence) else [ends] * count
        if len(starts) != count or len(ends) != count:
            raise ValueError("paths, starts and ends have different lengths")
        found = list[Any]([None] * count)
        places = dict[str, list[int]]()
        for at, path in enumerate(paths):
            places.setdefault(path, []).append(at)
        for path, indices in places.items():
            try:
                await self._ranges_of(path, indices, starts, ends, found)
            except Exception as error:
                if on_error == "raise":
                    raise
                for at in indices:
                    found[at] = error
        return found

    async def _ranges_of(
        self, path: str, indices: list[int], starts: Any, ends: Any, found: list[Any]
    ) -> None:
        info = await self._file(path)
        target = await self.set_session()
        pieces = list[tuple[int, int, int]]()
        for at in indices:
            first, last = _range(starts[at], ends[at], info.length)
            if last - first > CHUNK or info.content is not None:
                found[at] = await self._data(info, first, last)
            elif last > first:
                pieces.append((at, first, last - first))
            else:
                found[at] = b""
        for begin in range(0, len(pieces), PIECES):
            some = pieces[begin : begin + PIECES]
            data = await target.read_pieces(info.object, [each[1:] for each in some])
            offset = 0
            for at, _, length in some:
                found[at] = bytes(data[offset : offset + length])
                offset += length

    async def _pipe_file(
        self, path: str, value: bytes, mode: str = "overwrite", **kwargs: Any
    ) -> None:
        fs, whole = await self._files(), join(path)
        exclusive = mode == "create"
        try:
            await fs.write_bytes(whole, value, exclusive=exclusive)
        except NoSuchName:
            await self._make_above(whole)
            await fs.write_bytes(whole, value, exclusive=exclusive)

    async def _make_above(self, path: str) -> None:
        if above := path.rpartition("/")[0]:
            await (await self._files()).mkdir(above, parents=True, exist_ok=True)

    async def _put_file(
        self,
        lpath: str,
        rpath: str,
        callback: Any = DEFAULT_CALLBACK,
        mode: str = "overwrite",
        **kwargs: Any,
    ) -> None:
        if Path(lpath).is_dir():
            await self._makedirs(rpath, exist_ok=True)
            return
        fs, whole = await self._files(), join(rpath)
        loop = asyncio.get_running_loop()
        with Path(lpath).open("rb") as source:
            size = os.fstat(source.fileno()).st_size
            callback.set_size(size)
            if size < CHUNK:
                data = await loop.run_in_executor(None, source.read)
                await self._pipe_file(rpath, data, mode)
                callback.relative_update(len(data))
                return
            await self._make_above(whole)
            async with await fs.open(whole, "xb" if mode == "create" else "wb") as file:
                while piece := await loop.run_in_executor(None, source.read, 8 * CHUNK):
                    await file.write(piece)
                    callback.relative_update(len(piece))

    async def _get_file(
        self, rpath: str, lpath: str, callback: Any = DEFAULT_CALLBACK, **kwargs: Any
    ) -> None:
        fs = await self._files()
        info = await fs.info(join(rpath))
        local = Path(lpath)
        if info.is_directory:
            local.mkdir(parents=True, exist_ok=True)
            return
        local.parent.mkdir(parents=True, exist_ok=True)
        callback.set_size(info.length)
        loop = asyncio.get_running_loop()
        with local.open("wb") as file:
            async for piece in fs.iter_data(info, 0, info.length):
                await loop.run_in_executor(None, file.write, piece)
                callback.relative_update(len(piece))

    # ---- changes --------------------------------------------------------------------------------

    async def _cp_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        fs, source, new = await self._files(), join(path1), join(path2)
        if await fs.is_dir(source):
            await fs.mkdir(new, parents=True, exist_ok=True)
            return
        try:
            await fs.copy(source, new)
        except NoSuchName:
            if not await fs.exists(source):
                raise
            await self._make_above(new)
            await fs.copy(source, new)

    async def _mv_file(self, path1: str, path2: str, **kwargs: Any) -> None:
        fs, source, new = await self._files(), join(path1), join(path2)
        check_not_jobs(fs, source)
        await self._make_above(new)
        if len({await fs.resolve(f"/{each.split('/')[1]}") for each in (source, new)}) == 1:
            await fs.rename(source, new, replace=True)
            return
        was = await fs.resolve(source)
        await fs.copy(source, new)
        await fs.unlink(source, expected=was)

    async def _rm_file(self, path: str, **kwargs: Any) -> None:
        await (await self._files()).unlink(join(path))

    async def _rm(
        self,
        path: Any,
        recursive: bool = False,
        batch_size: int | None = None,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        fs = await self._files()
        for each in await self._expand_path(path, recursive=False):
            if not await fs.is_dir(join(each)):
                await fs.unlink(join(each))
            elif recursive:
                await fs.rmtree(join(each))
            else:
                await fs.rmdir(join(each))

    async def _rmdir(self, path: str) -> None:
        await (await self._files()).rmdir(join(path))

    rmdir = sync_wrapper(_rmdir)

    def mv(
        self,
        path1: Any,
        path2: Any,
        recursive: bool = False,
        maxdepth: int | None = None,
        **kwargs: Any,
    ) -> None:
        """Move a path in one step; with patterns or maxdepth, copy and remove."""
        if maxdepth is not None or not isinstance(path1, str) or has_magic(path1):
            super().mv(path1, path2, recursive=recursive, maxdepth=maxdepth, **kwargs)
            return
        new = str(path2)
        if new.endswith("/") or self.isdir(new):
            new = f"{new.rstrip('/')}/{path1.rstrip('/').rpartition('/')[2]}"
        sync(self.loop, self._mv_file, self._strip_protocol(path1), self._strip_protocol(new))

    async def _mkdir(self, path: str, create_parents: bool = True, **kwargs: Any) -> None:
        await (await self._files()).mkdir(join(path), parents=create_parents)

    async def _makedirs(self, path: str, exist_ok: bool = False) -> None:
        if join(path) != "/":
            await (await self._files()).mkdir(join(path), parents=True, exist_ok=exist_ok)

    # ---- files ----------------------------------------------------------------------------------

    def _open(
        self,
        path: str,
        mode: str = "rb",
        block_size: int | None = None,
        autocommit: bool = True,
        cache_options: Any = None,
        **kwargs: Any,
    ) -> IosdFile:
        how = {"autocommit": autocommit, "cache_options": cache_options, **kwargs}
        return IosdFile(self, path, mode, block_size or 4 * CHUNK, **how)

    async def open_async(self, path: str, mode: str = "rb", **kwargs: Any) -> AsyncFile:
        """An open file for coroutines."""
        return await (await self._files()).open(join(path), mode)


class IosdFile(AbstractBufferedFile):  # type: ignore[misc]
    """An open file.  One that is written has its name when it is closed, whole."""

    def __init__(
        self, fs: IosdFileSystem, path: str, mode: str, block_size: int, **how: Any
    ) -> None:
        self._file: AsyncFile | None = None
        if mode == "xb" and fs.exists(path):
            self.closed = True
            raise FileExistsError(path)
        super().__init__(fs, path, mode, block_size, **how)
        if mode == "rb" and not self.size and self.details["type"] == "directory":
            self.closed = True
            raise IsADirectoryError(path)

    def _fetch_range(self, start: int, end: int) -> bytes:
        return bytes(sync(self.fs.loop, self._bytes_of, start, end))

    async def _bytes_of(self, start: int, end: int) -> bytes:
        """Of the object that was opened: the path can be another one's by now.  Raises: NotFound."""
        if is_of_jobs(await self.fs._files(), join(self.path)):
            return bytes(await self.fs._cat_file(self.path, start, end))
        target, obj = await self.fs.set_session(), ObjectRef.parse(self.details["object"])
        return bytes(await target.read_range(obj, start, end - start))

    def _initiate_upload(self) -> None:
        self._file = sync(self.fs.loop, self._begin)

    async def _begin(self) -> AsyncFile:
        files, whole = await self.fs._files(), join(self.path)
        try:
            opened: AsyncFile = await files.open(whole, self.mode)
        except NoSuchName:
            await self.fs._make_above(whole)
            opened = await files.open(whole, self.mode)
        return opened

    def _upload_chunk(self, final: bool = False) -> bool:
        assert self._file is not None
        data = self.buffer.getvalue()
        if data:
            try:
                sync(self.fs.loop, self._file.write, data)
            except BaseException:
                if final:  # nobody writes it again
                    self.discard()
                raise
        if final and self.autocommit:
            self.commit()
        return True

    def __exit__(self, kind: Any, error: Any, traceback: Any) -> None:
        """Close it; after an exception, give a file that is written up."""
        if kind is not None and self.mode != "rb" and self.autocommit and not self.closed:
            self.discard()
            self.closed = True
        else:
            self.close()

    def commit(self) -> None:
        """Give the file its name."""
        if self._file is not None:
            sync(self.fs.loop, self._file.close)

    def discard(self) -> None:
        """Give the file up."""
        if self._file is not None:
            sync(self.fs.loop, self._file.discard)
