# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager process of a target that `osd target serve` serves.

It starts when the target is ready, restarts when it dies, and ends first.  The target runs on
without it.
"""

from __future__ import annotations

import asyncio
import os
import socket
import sys
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path

from iosd_host.common import logs, paths, places
from iosd_host.common.users import OLD_UID, adopt, group_of, move_folder
from iosd_host.config.schema import Setting
from iosd_host.serve.parts import manager_options
from iosd_host.serve.process import ProcessFailed, SupervisedProcess, terminate

__all__ = ["ManagerService", "ManagerTarget"]

NAME = "iosd-manager"
AGAIN_S = 10.0  # where it cannot start at all


@dataclass(frozen=True)
class ManagerTarget:
    """Settings of the manager's process.

    Attributes:
        control: the target's socket.
        state: where the manager keeps things, unless its settings say so.
        uid: of the manager; None: ours.
        target_uid: of the target.
        moved_from: where earlier releases kept the manager's things, in the store; None: at `state`.
    """

    name: str
    control: Path
    state: Path
    uid: int | None = None
    target_uid: int | None = None
    moved_from: Path | None = None


class ManagerService:
    """One iosd-manager for one target.

    Args:
        folder: where its socket goes; made here.
        settings: as Config.manager.
        up: told when it serves, with True for a restart.

    Attributes:
        url: where administrators of this host reach it.
    """

    def __init__(
        self,
        target: ManagerTarget,
        folder: Path,
        settings: Mapping[str, Setting],
        up: Callable[[bool], None],
    ) -> None:
        self.target = target
        self.uid = target.uid
        self.folder = folder
        self.state = Path(settings["state"].value or target.state)
        self.keys = Path(settings["keys"].value or self.state / "keys")
        own = dict(settings) | {"state": Setting(str(self.state), "default")}
        self.url = f"ipc://{folder / 'manager.sock'}"
        self.place = places.own_path(places.MANAGER)
        # Beside the folder, which is the manager's: there it could put a link in its place, and get what
        # that names.
        self.notify = folder.with_name(f"{folder.name}-notify")
        self.told: socket.socket | None = None
        # It begins as we are, so that it finds its modules wherever they lie, and becomes `uid` then.
        command = ["setpriv", "--pdeathsig", "KILL", "--no-new-privs", "--"]
        command += [sys.executable, "-P", "-m", "iosd_host", "--announce", str(self.place)]
        command += manager_options({target.name: target.control}, own, folder)
        if self.uid is not None:
            command += ["--uid", str(self.uid)]
        keep = ("PATH", "LANG", "LC_ALL", "TZ", "TMPDIR", *logs.ENVIRONMENT)
        environment = {key: os.environ[key] for key in keep if key in os.environ}
        # It asks for what we serve where we say it, whatever user it becomes.
        environment["IOSD_RUN"] = str(places.folder())
        environment |= {"PYTHONPATH": str(paths.SOURCE_TREE), "NOTIFY_SOCKET": str(self.notify)}
        # aiohttp reads the host's certificates for clients when it is imported; the manager is none.
        environment["SSL_CERT_FILE"] = os.devnull
        self.service = SupervisedProcess(
            NAME, command, environment, self._ready, terminate, up, before=self._prepare
        )

    def fields(self) -> dict[str, str]:
        """Its address, and the key of this host's administrators, once it has made that."""
        return {"url": self.url, "key_file": str(self.keys / "local.key_secret")}

    def _prepare(self) -> None:
        """Make what the manager may not make itself."""
        try:
            self._move_state()
            new = [path for path in (self.folder, self.state) if not path.exists()]
            for path in new:
                path.mkdir(mode=0o700, parents=True)
            self._listen()
            if self.uid is not None:
                group = group_of(self.uid)
                for path in (*new, self.notify):
                    os.chown(path, self.uid, group)
                before = {OLD_UID, self.target.target_uid or 0} - {0}
                for path in {self.state, self.keys}:
                    adopt(path, self.uid, group, before)
        except OSError as error:
            raise ProcessFailed(f"{NAME} has no place: {error}") from None
        if self.uid is not None:
            try:
                places.make_for(self.place, self.uid, group_of(self.uid))
            except OSError as error:
                logs.say(
                    "iosd-supervisor", "warning", f"administrators must say --manager: {error}"
                )

    def _move_state(self) -> None:
        """Take what an earlier release kept in the store, where the manager's user reaches nothing."""
        old, uid = self.target.moved_from, self.uid
        if uid is None or old is None or self.state != self.target.state:
            return
        if not old.is_symlink() and old.is_dir() and not self.state.exists():
            move_folder(old, self.state)
            adopt(self.state, uid, group_of(uid), {0})
            logs.say(
                "iosd-supervisor", "info", f"the manager's state has moved: {old} -> {self.state}"
            )

    def _listen(self) -> None:
        """For what it tells of itself (sd_notify)."""
        self._close()
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM | socket.SOCK_NONBLOCK)
        self.told.bind(str(self.notify))

    def _close(self) -> None:
        if self.told is not None:
            self.told.close()
            self.told = None
        self.notify.unlink(missing_ok=True)

    async def _ready(self) -> None:
        assert self.told is not None
        while b"STATUS=managing" not in await asyncio.get_running_loop().sock_recv(self.told, 4096):
            pass

    async def run(self) -> None:
        """Have one run until cancelled."""
        while True:
            try:
                await self.service.start()
                break
            except (ProcessFailed, OSError) as error:
                logs.say("iosd-supervisor", "error", f"no resource manager: {error}")
            await asyncio.sleep(AGAIN_S)
        self.service.up(False)
        await self.service.supervise()

    async def stop(self) -> None:
        """End it, and leave nothing of it but its state."""
        await self.service.stop()
        self._close()
        self.place.unlink(missing_ok=True)
