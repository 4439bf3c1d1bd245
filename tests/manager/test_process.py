# SPDX-License-Identifier: GPL-2.0-or-later
"""`iosd-manager` as a process: its user, its state folder of its own, its signals and its end."""

from __future__ import annotations

import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner

from iosd_host.cli.iosd_manager import main
from iosd_host.manager.client import ManagerAccess
from iosd_host.manager.client import ManagerClient as Client
from iosd_host.manager.keys import ADMIN, CurvePair, read_key, write_key
from iosd_host.manager.server import make_pair
from iosd_host.serve.supervise import plain_environment
from tests import warm
from tests.harness import SOURCE
from tests.waiting import until

DEADLINE_S = 60.0
UID = 64733


class Process:
    """Args: folder: of its socket, state, log.  words: more of its command line."""

    def __init__(self, folder: Path, *words: str, source: Path = SOURCE) -> None:
        self.folder = folder
        self.state = folder / "state"
        self.told = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        notify = f"iosd-test-{os.getpid()}-{id(self)}"
        self.told.bind(f"\0{notify}")
        self.told.settimeout(DEADLINE_S)
        command = [sys.executable, "-P", "-m", "iosd_host", "--state", str(self.state)]
        command += ["--listen", f"ipc://{folder}/socket", "--http", "none"]
        command += ["--announce", str(folder / "place"), *words]
        environment = {"PYTHONPATH": str(source), "NOTIFY_SOCKET": f"@{notify}"}
        self.log = folder / "log"
        with self.log.open("ab") as log:
            start = warm.Python if source == SOURCE else subprocess.Popen
            self.process = start(
                command, env=plain_environment() | environment, cwd="/", stderr=log
            )

    def ready(self) -> str:
        """Its next announcement."""
        try:
            return self.told.recv(1000).decode()
        except TimeoutError:
            raise AssertionError(self.log.read_text()) from None

    def client(self) -> Client:
        keys = self.state / "keys"
        server = read_key(keys / "server.key").public
        return Client(
            ManagerAccess(
                f"ipc://{self.folder}/socket", server, read_key(keys / "local.key_secret")
            )
        )

    def stop(self) -> int:
        self.process.terminate()
        code = self.process.wait(DEADLINE_S)
        self.told.close()
        return code


Start = Callable[..., Process]


@pytest.fixture
def start() -> Iterator[Start]:
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-", dir="/var/tmp"))
    started: list[Process] = []

    def start(*words: str, mode: int = 0o711, **more: Path) -> Process:
        folder.chmod(mode)
        started.append(Process(folder, *words, **more))
        return started[-1]

    yield start
    for each in started:
        each.process.kill()
        each.process.wait()
        each.told.close()
    shutil.rmtree(folder)


def test_one_waits_for_the_other(start: Start) -> None:
    one = start()
    assert "STATUS=managing" in one.ready()
    two = start()
    assert "STATUS=standing by" in two.ready()
    with one.client() as client:
        assert client.ask("status")["manager"]["pid"] == one.process.pid
    os.kill(one.process.pid, signal.SIGKILL)
    assert "STATUS=managing" in two.ready()
    with two.client() as client:
        assert client.ask("status")["manager"]["pid"] == two.process.pid
    assert f"process {one.process.pid} manages with this state already" in two.log.read_text()
    assert two.stop() == 0
    assert not (two.folder / "socket").exists()


def test_hangup_reads_keys_and_configuration_again(start: Start, tmp_path: Path) -> None:
    config = tmp_path / "iosd.toml"
    config.write_text("[manager.workers]\nmax = 5\n")
    running = start("--config", str(config), "--target", "lab=/nowhere/socket")
    running.ready()
    with running.client() as client:

        def most() -> object:
            rows = client.ask("config.show")["settings"]
            return {row["key"]: row["value"] for row in rows}["manager.workers.max"]

        def again(words: str) -> None:
            running.log.write_text("")
            running.process.send_signal(signal.SIGHUP)
            until(lambda: words in running.log.read_text())

        assert most() == "5"
        config.write_text("[manager.workers]\nmax = 6\n")
        write_key(running.state / "keys/authorized/new.key", CurvePair(make_pair().public), ADMIN)
        again("have been read again")
        assert most() == "6"
        assert [row["name"] for row in client.ask("keys.ls")["keys"]] == ["local", "new"]
        config.write_text("[manager.workers]\nmix = 6\n")
        again("stays as it is")
        assert most() == "6"
    assert running.stop() == 0


@pytest.mark.skipif(os.geteuid() != 0, reason="becomes another user")
def test_becomes_another_user_who_cannot_see_the_source(start: Start) -> None:
    """As `osd target serve` in a checkout of root's starts it."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir="/var/tmp") as name:
        folder = Path(name)  # mode 0700
        shutil.copytree(
            SOURCE / "iosd_host", folder / "iosd_host", ignore=shutil.ignore_patterns("__pycache__")
        )
        running = start("--uid", str(UID), mode=0o777, source=folder)
        try:
            assert "managing" in running.ready()
            with running.client() as client:
                client.ask("status")
            status = Path(f"/proc/{running.process.pid}/status").read_text()
            assert f"Uid:\t{UID}\t{UID}\t{UID}" in status
            assert running.state.stat().st_uid == UID
            assert running.stop() == 0
        finally:
            running.folder.chmod(0o711)


def test_http(start: Start) -> None:
    running = start("--http", "127.0.0.1:0")
    running.ready()
    url = json.loads((running.folder / "place").read_bytes())["http"]
    with urllib.request.urlopen(f"{url}health/live") as answer:
        assert json.load(answer)["pid"] == running.process.pid
    assert (running.state / "keys/console.tokens").stat().st_mode & 0o777 == 0o600
    assert running.stop() == 0
    assert "error" not in running.log.read_text()


def test_cannot_listen(start: Start) -> None:
    process = start("--listen", "ipc:///no/such/folder/s")
    assert process.process.wait(DEADLINE_S) == 1
    assert "cannot listen" in process.log.read_text()


@pytest.mark.parametrize(
    ("words", "say"),
    [
        (("--target", "a=/x", "--target", "a=/y"), "two targets of one name"),
        (("--target", "=/x"), "is not [NAME=]SOCKET"),
    ],
)
def test_targets_that_cannot_be(words: tuple[str, ...], say: str) -> None:
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 2
    assert say in done.output
