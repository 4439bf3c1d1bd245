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
    """What a file system shows, and how.

    path: of its top.  cached: by the kernel.  patience: seconds that operations wait for a target that
    is away.  others: other users may use the file system.
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

    SIGINT and SIGTERM unmount it, at the latest when its last file is closed; a second one ends at once.
    What was written is at the target then.

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
            await _serve(mounted, fd, place, ready)
        finally:
            device.detach(place, lazy=True)
            os.close(fd)
    finally:
        await line.close()


async def _serve(mounted: Mounted, fd: int, place: Path, ready: Callable[[], None]) -> None:
    loop = asyncio.get_running_loop()
    nodes = mounted.nodes

    def forget(request: KernelRequest) -> None:
        if request.op == Op.FORGET:
            nodes.forget(request.node, *FORGET_IN.unpack_from(request.body))
            return
        count, _ = BATCH_FORGET_IN.unpack_from(request.body)
        for each in range(count):
            at = BATCH_FORGET_IN.size + each * FORGET_ONE.size
            nodes.forget(*FORGET_ONE.unpack_from(request.body, at))

    operations = (NameOperations, DirectoryOperations, FileOperations)
    handlers = {op: each for made in operations for op, each in made(mounted).handlers.items()}
    server = KernelServer(fd, handlers, forget, nodes.by_id, mounted.cached.attributes)
    mounted.notify = server.notify
    stopping = list[asyncio.Task[None]]()

    async def unmount() -> None:
        for node in nodes.opened():
            with contextlib.suppress(Exception):  # its last close() logs it
                await mounted.new.store(node)
            if node.writer:
                await node.writer.drain()
        # In a thread: the kernel asks for more while it unmounts.
        if not await asyncio.to_thread(device.detach, place):
            _log.warning("'%s' is in use: the last open file ends this program", place)
            await asyncio.to_thread(device.detach, place, lazy=True)

    async def watch() -> None:
        """Sandboxes and containers have copies of mounts, for which the kernel keeps the file system."""
        number = device.device_number(place)
        while nodes.opened() or device.is_attached(number):
            await asyncio.sleep(_WATCH_S)
        server.stop()

    def stop() -> None:
        if stopping:
            server.stop()
        stopping.append(loop.create_task(unmount()))

    for each in _SIGNALS:
        loop.add_signal_handler(each, stop)
    try:
        watching = loop.create_task(watch())
        ready()
        await server.serve()
        watching.cancel()
        await close_all(mounted)
    finally:
        for each in _SIGNALS:
            loop.remove_signal_handler(each)


async def close_all(mounted: Mounted) -> None:
    """Close what programs have not closed.  One that fails does not keep the others from it."""
    for node in mounted.nodes.opened():
        node.opens = 1
        try:
            await mounted.close(node)
        except Exception as error:
            _log.error("cannot close a file: %s", error or type(error).__name__)
