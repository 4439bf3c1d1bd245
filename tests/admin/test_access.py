# SPDX-License-Identifier: GPL-2.0-or-later
"""The choice of the manager, permission to use it, and exit codes of failures."""

from __future__ import annotations

import json
import os
import socket
from collections.abc import Iterator
from pathlib import Path
from unittest.mock import Mock

import pytest
import zmq

from iosd_host.manager.client import ManagerClient, ManagerError, make_pair, user_name
from iosd_host.manager.keys import write_key
from tests.admin.conftest import Alone, Run
from tests.pieces import OSD, pieces
from tests.processes import long_lived
from tests.waiting import until


@pytest.fixture(scope="module")
def alone(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Alone]:
    """A manager for all tests of this file."""
    folder = tmp_path_factory.mktemp("alone")
    found = Alone(folder, folder / "run")
    long_lived.add(found.process.pid)
    yield found
    found.stop()
    long_lived.discard(found.process.pid)


@pytest.fixture
def osd(alone: Alone, osd: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As `osd` of this folder, where that one runs."""
    monkeypatch.setenv("IOSD_RUN", str(alone.run))
    return osd


def test_a_user_without_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    """As in a container.  The target and the manager log who has made a change."""
    for name in ("SUDO_USER", "LOGNAME", "USER", "LNAME", "USERNAME"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr("pwd.getpwuid", Mock(side_effect=KeyError("uid not found")))
    assert user_name() == f"uid {os.getuid()}"


def test_the_one_that_runs_here(osd: Run, alone: Alone) -> None:
    found = json.loads(osd("manager", "status", "-o", "json").stdout)
    assert found["schema"] == "iosd.status/1" and found["manager"]["pid"] == alone.process.pid
    assert (found["manager"]["you"], found["manager"]["role"]) == ("local", "admin")
    text = osd("manager", "status").stdout
    assert f"{alone.url}; you are local (admin)\nlab: not connected" in text
    assert len(pieces(OSD, "manager", "status")) == 1
    wrong = osd("manager", "status", "--target", "iscsi://127.0.0.1:3260/other/1", code=66).stderr
    assert wrong == "osd: no target 'other'\n  there are: lab\n"


def test_none_runs_here(osd: Run, run_folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("IOSD_RUN", str(run_folder))
    gone = osd("manager", "status", code=69).stderr
    assert gone.startswith("osd: no resource manager runs here\n  'osd target serve' starts one")


def test_nobody_listens(osd: Run, alone: Alone) -> None:
    for url in ("ipc:///nowhere/at/all", "tcp://127.0.0.1:1", "tcp://127.0.0.1:port"):
        assert (
            f"no resource manager at {url}"
            in osd("pool", "usage", "--manager", url, code=69).stderr
        )
    assert "Errno" not in osd("pool", "usage", "--manager", "ipc:///nowhere", code=69).stderr
    assert "is no manager" in osd("pool", "usage", "--manager", "here", code=2).stderr


def test_a_user_without_permission(
    osd: Run, alone: Alone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The socket is its user's; the hint says how others get in."""
    monkeypatch.setattr("socket.socket.connect", Mock(side_effect=PermissionError))
    done = osd("pool", "usage", "--manager", f"ipc://{tmp_path}/socket", code=77)
    assert "may not connect there" in done.stderr and "osd manager keys add" in done.stderr


def test_who_listens_does_not_answer(osd: Run, alone: Alone) -> None:
    with ManagerClient.find() as manager:
        manager.ask("status")
        usual, manager.timeout_s = manager.timeout_s, 0.2
        os.kill(alone.process.pid, 19)
        with pytest.raises(ManagerError, match=r"not answered within 0\.2 s") as error:
            manager.ask("status")
        os.kill(alone.process.pid, 18)
        assert error.value.exit_code == 69
        manager.timeout_s = usual
        assert manager.ask("status")["manager"]["pid"] == alone.process.pid  # not the late answer


def test_another_service_listens(osd: Run, alone: Alone) -> None:
    key = alone.state / "keys" / "local.key_secret"
    with socket.create_server(("127.0.0.1", 0)) as other:
        url = f"tcp://127.0.0.1:{other.getsockname()[1]}"
        words = osd("manager", "status", "--manager", url, "--key", key, code=78).stderr
        assert "does not say the public key of the manager" in words


def test_a_key_that_is_not_known(osd: Run, alone: Alone, tmp_path: Path) -> None:
    path = tmp_path / "mine.key_secret"
    write_key(path, make_pair())
    words = osd("manager", "status", "--key", path, code=77).stderr
    assert "does not know this key\n  ask its administrator for one: osd manager keys add" in words
    with ManagerClient.find(key_file=path) as manager:
        until(lambda: not manager.socket.poll(0, zmq.POLLOUT), "the handshake does not end")
        for _ in range(2):
            with pytest.raises(ManagerError, match="does not know this key"):
                manager.ask("status")
    path.chmod(0o644)
    assert "others can read this secret" in osd("manager", "status", "--key", path, code=78).stderr
    path.write_text("public-key = 'short'\n")
    assert "no key of 40 characters" in osd("manager", "status", "--key", path, code=78).stderr
    write_key(path.with_name("public"), make_pair().__class__(make_pair().public))
    assert "no secret key" in osd("manager", "status", "--key", tmp_path / "public", code=78).stderr


def test_a_manager_with_another_key(osd: Run, alone: Alone, tmp_path: Path) -> None:
    path = tmp_path / "bob.key_secret"
    osd("manager", "keys", "add", "bob", "--file", path)
    stale = tmp_path / "stale.key_secret"
    server = (alone.state / "keys" / "server.key").read_text().split('"')[1]
    stale.touch(0o600)
    stale.write_text(path.read_text().replace(server, make_pair().public))
    folder = Path(alone.url.removeprefix("ipc://")).parent
    words = (
        "--manager",
        f"ipc://{folder}/../{folder.name}/socket",
        "--key",
    )  # not as it says itself
    assert osd("manager", "status", *words, path)
    assert (
        "is not the manager whose public key" in osd("pool", "usage", *words, stale, code=77).stderr
    )
    osd("manager", "keys", "rm", "bob")


def test_keys(osd: Run, alone: Alone, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    done = osd("manager", "keys", "add", "eve", "--viewer", "--why", "she asked")
    assert done.stdout == "eve.key_secret\n" and "eve is a viewer now" in done.stderr
    assert f"the file names {alone.url}, which only root" in done.stderr
    path = tmp_path / "eve.key_secret"
    assert path.stat().st_mode & 0o777 == 0o600
    assert osd("manager", "keys", "add", "eve", code=1).stderr.startswith(
        "osd: eve.key_secret is there"
    )
    again = osd("manager", "keys", "add", "eve", "--file", "other", code=78).stderr
    assert "there is a key of 'eve'" in again and not Path("other").exists()
    rows = json.loads(osd("manager", "keys", "ls", "-o", "json").stdout)["keys"]
    assert [(each["name"], each["role"]) for each in rows] == [
        ("eve", "viewer"),
        ("local", "admin"),
    ]
    assert osd("manager", "keys", "ls").stdout == "NAME   ROLE\neve    viewer\nlocal  admin\n"

    # She looks, and changes nothing.
    monkeypatch.setenv("IOSD_MANAGER_KEY", str(path))
    assert "you are eve (viewer)" in osd("manager", "status").stdout
    for words in (("keys", "add", "bob"), ("keys", "rm", "local")):
        assert "'eve' has read access only" in osd("manager", *words, code=77).stderr
    monkeypatch.delenv("IOSD_MANAGER_KEY")
    assert not Path("bob.key_secret").exists()
    # From another host her key says where the manager is.
    monkeypatch.setenv("IOSD_RUN", "/nowhere")
    assert "there is no" in osd("manager", "status", "--manager", alone.url, code=77).stderr
    home = tmp_path / "config" / "iosd"
    home.mkdir(parents=True)
    path.rename(home / "manager.key_secret")
    assert "you are eve (viewer)" in osd("manager", "status").stdout
    with ManagerClient.find() as manager:
        monkeypatch.setenv("IOSD_RUN", str(alone.run))
        assert osd("manager", "keys", "rm", "eve").stdout == "key eve: viewer -> none\n"
        # the second, if its connection was made anew meanwhile
        told = "not authorized any more|does not know this key"
        with pytest.raises(ManagerError, match=told) as error:
            manager.ask("status")
        assert error.value.exit_code == 77
    assert "no key of 'eve'" in osd("manager", "keys", "rm", "eve", code=66).stderr
    assert "the last that may change" in osd("manager", "keys", "rm", "local", code=78).stderr
    made = osd("manager", "keys", "add", "bob", "--public", make_pair().public, "-o", "json")
    assert json.loads(made.stdout) == {
        "schema": "iosd.key/1",
        "name": "bob",
        "role": "admin",
        "file": None,
    }
    rows = json.loads(osd("manager", "changes", "-o", "json").stdout)["changes"]
    assert [(each["what"], each["was"], each["is"], each["why"]) for each in rows[-3:]] == [
        ("keys.add", {"eve": "none"}, {"eve": "viewer"}, "she asked"),
        ("keys.rm", {"eve": "viewer"}, {"eve": "none"}, ""),
        ("keys.add", {"bob": "none"}, {"bob": "admin"}, ""),
    ]
    assert all(each["by"].endswith("(local)") for each in rows)
    assert "eve none -> viewer  she asked" in osd("manager", "changes").stdout
