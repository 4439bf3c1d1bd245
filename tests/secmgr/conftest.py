# SPDX-License-Identifier: GPL-2.0-or-later
"""Security managers of the tests: in this process, over the model of a target's keys, by TLS where
it matters.
"""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iosd_secmgr import folder as folders
from iosd_secmgr.folder import Opened
from iosd_secmgr.http import web
from iosd_secmgr.keys import pki
from iosd_secmgr.keys.device import Device
from iosd_secmgr.keys.keystore import Level
from iosd_secmgr.keys.manager import KeyManager, new_target
from iosd_secmgr.methods.admin import admin_methods
from iosd_secmgr.methods.service import Service
from iosd_secmgr.methods.table import Requester
from iosd_secmgr.records import store
from iosd_secmgr.records.database import SqliteDatabase
from iosd_secmgr.records.store import TargetRecord
from pyosd.secmgr.client import Client
from pyosd.security.master_key import MasterKey
from pyosd.types import ObjectType, ref
from tests.secmgr.model_target import ModelTarget
from tests.waiting import DEADLINE_S

TARGET = "iqn.2026-11.iosd:model"
PARTITION = 0x10000
OBJECT = ref(PARTITION, 0x10000)
USER = ObjectType.USER_OBJECT
READ_X = {"target": TARGET, "object": str(OBJECT), "permissions": ["READ"]}


class Clock:
    """The real one, put forward."""

    def __init__(self) -> None:
        self.ahead = 0.0

    def __call__(self) -> float:
        return time.time() + self.ahead


class World:
    """A folder, a model of a target, and a security manager over both that can be restarted."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.clock = Clock()
        self.model = ModelTarget([PARTITION, 0x10001])
        self.token_file = self.make()
        self.start()

    def make(self) -> Path:
        return folders.make(self.folder, admin="root", names=["localhost", "127.0.0.1"])

    def connect(self, record: TargetRecord, login: str) -> Device:
        return self.model.session()

    def start(self) -> None:
        self.opened: Opened = folders.open_folder(self.folder)
        opened = self.opened
        if isinstance(opened.database, SqliteDatabase):  # nobody pulls the plug
            opened.database._db.execute("PRAGMA synchronous=OFF")
        self.keys = KeyManager(
            opened.database, opened.sealer, opened.audit, self.connect, self.clock
        )
        authority = pki.Authority.load(self.folder, opened.sealer)
        self.service = Service(opened.database, opened.audit, self.keys, authority, self.clock)
        self.service.methods |= admin_methods(self.service)

    def stop(self) -> None:
        self.keys.close()
        self.opened.database.close()

    def restart(self) -> None:
        self.stop()
        self.start()

    @property
    def root(self) -> Requester:
        return Requester("root", frozenset((store.ADMIN,)))

    def ask(self, method: str, /, **params: Any) -> dict[str, Any]:
        """As an administrator."""
        return self.service.call(self.root, method, params)

    def add_target(self) -> None:
        """Only put it into the store: its keys are those it had."""
        master = MasterKey.parse(self.model.master_file())
        self.keys.add("root", new_target(TARGET, "iscsi://127.0.0.1/model/1"), master)

    def add_user(self, name: str) -> Requester:
        self.ask("user.add", name=name)
        return self.service.caller(name)


@pytest.fixture
def world(tmp_path: Path) -> Iterator[World]:
    made = World(tmp_path / "secmgr")
    yield made
    made.stop()


class Served:
    """The HTTPS end of a world, in a thread."""

    def __init__(self, world: World) -> None:
        self.world = world
        self.ca = world.folder / pki.CA
        self.url = ""
        self.clients: list[Client] = []
        ready = threading.Event()
        self.loop = asyncio.new_event_loop()
        self.ended = asyncio.Event()
        context = web.server_context(
            world.folder / pki.SERVER,
            world.folder / pki.SERVER_KEY,
            self.ca,
            world.opened.sealer.password(pki.SERVER_KEY),
        )

        def announce(url: str) -> None:
            self.url = url
            ready.set()

        async def main() -> None:
            await web.run(world.service, "127.0.0.1:0", context, announce, self.ended)

        self.thread = threading.Thread(target=lambda: self.loop.run_until_complete(main()))
        self.thread.start()
        assert ready.wait(DEADLINE_S)

    def stop(self) -> None:
        if not self.thread.is_alive():
            return
        for client in self.clients:
            client.close()
        self.loop.call_soon_threadsafe(self.ended.set)
        self.thread.join()
        self.loop.close()

    def client(self, token: str = "", **options: Any) -> Client:
        """One that is closed with us."""
        made = Client(self.url, token=token, ca=self.ca, **options)
        self.clients.append(made)
        return made

    @property
    def admin(self) -> Client:
        return self.client(token_file=self.world.token_file)


@pytest.fixture
def served(world: World) -> Iterator[Served]:
    made = Served(world)
    yield made
    made.stop()


@pytest.fixture
def alice(served: Served) -> Client:
    """May read one object; the target's keys are set."""
    world = served.world
    world.add_target()
    world.keys.rotate("root", TARGET, Level.ROOT)
    world.add_user("alice")
    world.ask("acl.add", user="alice", **READ_X)
    return served.client(world.ask("token.add", user="alice")["token"])
