# SPDX-License-Identifier: GPL-2.0-or-later
"""The security manager on a PostgreSQL server of its own: `make secmgr-postgres`."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from iosd_secmgr import folder as setup
from iosd_secmgr.keys.keystore import Level
from iosd_secmgr.records import database as records
from iosd_secmgr.records.database import DatabaseFault, PostgresDatabase
from pyosd import errors
from pyosd.secmgr.errors import SecmgrError
from tests.secmgr.conftest import READ_X, TARGET, Served, World
from tests.secmgr.model_target import Died
from tests.secmgr.test_keys import all_good

USER = "postgres"
BINARIES = sorted(Path("/usr/lib/postgresql").glob("*/bin"))


class Server:
    """One in a folder, by a Unix socket alone."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        if os.geteuid() == 0:
            shutil.chown(folder, USER)
        self.run("initdb", "-D", str(folder / "data"), "-A", "trust", "-U", USER, "--no-sync")
        self.start()

    def run(self, program: str, *words: str) -> None:
        command = [str(BINARIES[-1] / program), *words]
        if os.geteuid() == 0:
            command = ["runuser", "-u", USER, "--", *command]
        log = (self.folder.parent / f"{self.folder.name}.log").open("ab")
        with log:
            subprocess.run(command, check=True, stdout=log, stderr=log, cwd=self.folder)

    def start(self) -> None:
        options = f"-k {self.folder} -c listen_addresses="
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-o", options, "start")

    def stop(self) -> None:
        self.run("pg_ctl", "-D", str(self.folder / "data"), "-w", "-m", "fast", "stop")

    def database(self, name: str) -> str:
        self.run("createdb", "-h", str(self.folder), "-U", USER, name)
        return f"postgresql://{USER}@/{name}?host={self.folder}"


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    pytest.importorskip("psycopg")
    if not BINARIES:
        pytest.fail("no PostgreSQL server: apt-get install postgresql")
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-postgres-"))
    made = Server(folder)
    yield made
    made.stop()
    shutil.rmtree(folder)


class PostgresWorld(World):
    """The same world, its records elsewhere."""

    url = ""

    def make(self) -> Path:
        names = ["localhost", "127.0.0.1"]
        return setup.make(self.folder, admin="root", names=names, database=self.url)


@pytest.fixture
def world(server: Server, tmp_path: Path, request: pytest.FixtureRequest) -> Iterator[World]:
    PostgresWorld.url = server.database(f"db{abs(hash(request.node.name))}")
    made = PostgresWorld(tmp_path / "secmgr")
    yield made
    made.stop()


def test_from_a_rule_to_a_credential(world: World) -> None:
    served = Served(world)
    try:
        world.add_target()
        world.keys.rotate("root", TARGET, Level.ROOT)
        world.add_user("alice")
        rule = served.admin.call("acl.add", user="alice", **READ_X)
        token = served.admin.call("token.add", user="alice")["token"]
        alice = served.client(token)
        found = alice.call("credentials", **READ_X)
        traced = alice.call("credentials.issued", discriminator=found["discriminator"])
        assert len(traced["credentials"]) == 1
        served.admin.call("acl.rm", id=rule["id"])
        with pytest.raises(errors.PermissionDenied):
            alice.call("credentials", **READ_X)
        served.admin.call("user.rm", name="alice")
        assert served.admin.call("audit.verify")["whole"]
    finally:
        served.stop()


def test_deaths_while_keys_change(world: World) -> None:
    world.add_target()
    world.keys.set_master("root", TARGET)
    for step in range(1, 14, 2):
        world.model.steps, world.model.die_at = 0, step
        with pytest.raises(Died):
            world.keys.set_master("root", TARGET)
        world.model.die_at = None
        world.restart()
        world.keys._look_after_all(fresh=True)
        all_good(world)
    assert not list(world.opened.audit.verify())


def test_one_serves_and_a_lost_connection_is_made_again(server: Server, world: World) -> None:
    first = world.opened.database
    assert isinstance(first, PostgresDatabase)
    first.claim()
    other = setup.open_folder(world.folder)
    with pytest.raises(DatabaseFault, match="another security manager"):  # it may end
        other.database.claim()
    other.database.close()
    server.stop()
    with pytest.raises(SecmgrError):
        for _ in range(2):  # the first finds the connection lost
            try:
                world.ask("user.ls")
            except Exception as error:
                if isinstance(error, SecmgrError):
                    raise
    server.start()
    assert [each["name"] for each in world.ask("user.ls")["users"]] == ["root"]


def lose(database: PostgresDatabase) -> int:
    """Break the connection at our end alone.  Returns: a descriptor that keeps the server's."""
    kept = os.dup(database._db.fileno())
    ours, theirs = socket.socketpair()
    theirs.close()
    os.dup2(ours.fileno(), database._db.fileno())
    ours.close()
    return kept


def used(world: World) -> list[str]:
    """Names of users; the first request may find the connection lost."""
    for _ in range(2):
        with contextlib.suppress(DatabaseFault):
            return [each["name"] for each in world.ask("user.ls")["users"]]
    raise AssertionError("the database cannot be used")


def test_the_claim_outlasts_a_connection_that_the_server_still_has(world: World) -> None:
    """As when a firewall drops it: the server holds the claim until TCP gives up, after hours."""
    database = world.opened.database
    assert isinstance(database, PostgresDatabase)
    database.claim()
    kept = lose(database)
    assert used(world) == ["root"]
    os.close(kept)
    other = setup.open_folder(world.folder)
    with pytest.raises(SecmgrError, match="another security manager"):
        other.database.claim()
    other.database.close()


def test_nothing_is_done_without_the_claim(world: World, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another security manager has taken it: two would write one log."""
    monkeypatch.setattr(records, "CLAIM_MS", 100)
    database = world.opened.database
    assert isinstance(database, PostgresDatabase)
    database.claim()
    database._db.close()
    other = setup.open_folder(world.folder)
    other.database.claim()
    for _ in range(3):
        with pytest.raises(DatabaseFault, match="another security manager"):
            world.ask("user.ls")
    other.database.close()
    assert used(world) == ["root"]
