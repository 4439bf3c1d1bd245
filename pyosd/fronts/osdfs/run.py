# SPDX-License-Identifier: GPL-2.0-or-later
"""Mount a file system and serve it until it is unmounted."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import signal
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

from pyosd import aio
from pyosd.fronts.osdfs import device, kernel
from pyosd.fronts.osdfs.directories import DirectoryOperations
from pyosd.fronts.osdfs.file_page import Defaults
from pyosd.fronts.osdfs.files import FileOperations
from pyosd.fronts.osdfs.kernel import (
    BATCH_FORGET_IN,
    FORGET_IN,
    FORGET_ONE,
    KernelRequest,
    Op,
)
from pyosd.fronts.osdfs.line import PatientSession
from pyosd.fronts.osdfs.mounted import CacheTimes, Mounted
from pyosd.fronts.osdfs.server import KernelServer
from pyosd.fronts.osdfs.tree import NameOperations
from pyosd.iscsi.login import Chap
from pyosd.iscsi.memory import keep_memory
from pyosd.security.credentials import CredentialSource

__all__ = ["CacheTimes", "MountOptions", "mount"]

_SIGNALS = (signal.SIGINT, signal.SIGTERM)
_WATCH_S = 0.5
_log = logging.getLogger("osdfs")


@dataclass(frozen=True)
class MountOptions:
    """Options of a mount.

    path: the directory of the target that becomes the top.  cached: how long the kernel uses names and
    attributes.  patience: seconds that operations wait while the target cannot be reached.
    others: other users can use the file system.
    """

    url: str
    path: str = "/"
    chap: Chap | None = field(default=None, repr=False)
    credentials: CredentialSource | None = field(default=None, repr=False)
    cached: CacheTimes = field(default_factory=CacheTimes)
    patience: float = 30.0
    others: bool = False


async def mount(options: MountOptions, place: Path, ready: Callable[[], None]) -> None:
    """Mount on a directory, call ready(), and return when the file system is unmounted.

    SIGINT, SIGTERM and the end of the terminal (SIGHUP) store what was written, and unmount when the last
    file is closed.  A second SIGINT or SIGTERM ends the program at once.

    Raises: OSError: it cannot be mounted; NoSuchName; NotADirectory: path is a file's; OSDError.
    """
    keep_memory()
    target = await aio.connect(
        options.url,
        chap=options.chap,
        credentials=options.credentials,
        timeout=options.patience,
        reconnect_timeout=0.0,
    )
    line = PatientSession(target, options.patience)
    try:
        top = await target.fs.info(options.path)
        if not top.is_directory:
            raise NotADirectoryError(f"'{options.path}' is not a directory")
        defaults = Defaults(os.getuid(), os.getgid())
        mounted = Mounted(line, top.object, defaults, options.cached)
        place = place.resolve()
        fd = device.attach(place, f"{options.url}{options.path}", others=options.others)
        try:
            device.set_read_ahead(device.device_number(place), kernel.READ_AHEAD)
            await _Service(mounted, fd, place).run(ready)
        finally:
            device.detach(place, lazy=True)
            os.close(fd)
    finally:
        await line.close()


class _Service:
    """Serves a mounted file system until it is unmounted."""

    def __init__(self, mounted: Mounted, fd: int, place: Path) -> None:
        self._mounted, self._nodes, self._place = mounted, mounted.nodes, place
        self._loop = asyncio.get_running_loop()
        self._stopping = list[asyncio.Task[None]]()
        operations = (NameOperations, DirectoryOperations, FileOperations)
        handlers = {op: each for made in operations for op, each in made(mounted).handlers.items()}
        kept = mounted.cached.attributes
        self._server = KernelServer(fd, handlers, self._forget, self._nodes.by_id, kept)
        mounted.notify = self._server.notify

    async def run(self, ready: Callable[[], None]) -> None:
        """Call ready(), serve, and at the end close what programs have left open."""
        for each in _SIGNALS:
            self._loop.add_signal_handler(each, self._stop)
        if signal.getsignal(signal.SIGHUP) is not signal.SIG_IGN:  # as under nohup
            self._loop.add_signal_handler(signal.SIGHUP, self._hang_up)
        try:
            watching = self._loop.create_task(self._watch())
            ready()
            await self._server.serve()
            watching.cancel()
            await close_all(self._mounted)
        finally:
            for each in (*_SIGNALS, signal.SIGHUP):
                self._loop.remove_signal_handler(each)

    def _forget(self, request: KernelRequest) -> None:
        if request.op == Op.FORGET:
            self._nodes.forget(request.node, *FORGET_IN.unpack_from(request.body))
            return
        count, _ = BATCH_FORGET_IN.unpack_from(request.body)
        for each in range(count):
            at = BATCH_FORGET_IN.size + each * FORGET_ONE.size
            self._nodes.forget(*FORGET_ONE.unpack_from(request.body, at))

    def _stop(self) -> None:
        """Handle a signal: unmount at the first one, end at the second."""
        if self._stopping:
            self._server.stop()
        self._stopping.append(self._loop.create_task(self._unmount()))

    def _hang_up(self) -> None:
        """Unmount.  The kernel and the shell each send a SIGHUP: the second one must lose no data."""
        if not self._stopping:
            self._stop()

    async def _unmount(self) -> None:
        for node in self._nodes.opened():
            with contextlib.suppress(Exception):  # its last close() logs it
                await self._mounted.new.store(node)
            if node.writer:
                await node.writer.drain()
        # In a thread: the kernel sends requests while it unmounts.
        if not await asyncio.to_thread(device.detach, self._place):
            _log.warning("'%s' is in use: the last open file ends this program", self._place)
            await asyncio.to_thread(device.detach, self._place, lazy=True)

    async def _watch(self) -> None:
        """Stop when nothing uses the file system.  Sandboxes and containers have copies of mounts, for
        which the kernel keeps it after an unmount.
        """
        number = device.device_number(self._place)
        while self._nodes.opened() or device.is_attached(number):
            await asyncio.sleep(_WATCH_S)
        self._server.stop()


async def close_all(mounted: Mounted) -> None:
    """Close the files that programs have not closed.  If one fails, the others are closed, too."""
    for node in mounted.nodes.opened():
        node.opens = 1
        try:
            await mounted.close(node)
        except Exception as error:
            _log.error("cannot close a file: %s", str(error) or type(error).__name__)
