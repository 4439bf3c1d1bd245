# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target serve`: what it refuses, what it survives, and that nothing is left when it ends."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import re
import signal
import socket
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest

import pyosd
from iosd_host.common import paths
from iosd_host.common.held_port import HeldPort
from iosd_host.common.run_folder import RunFolder
from iosd_host.serve import preconditions
from iosd_host.serve.parts import TargetConfig
from iosd_host.serve.preconditions import (
    CannotServe,
    check_portal,
    choose_isolation,
    portal_fault,
    prepare_store,
)
from iosd_host.serve.tgtd import Tgtd, find_tgtd
from pyosd import Chap, LoginRejected
from tests import warm
from tests.host.test_service import gone
from tests.serving import Serving as WholeTarget
from tests.serving import arguments
from tests.waiting import until

OSD = Path(sys.executable).parent / "osd"
DEADLINE_S = 60

needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="tgtd's user is another only for root")


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder that tgtd's own user may pass through; pytest's are closed to it."""
    with tempfile.TemporaryDirectory(prefix="iosd-test-", dir="/var/tmp") as name:
        Path(name).chmod(0o711)
        yield Path(name)


class Serving:
    """A running `osd target serve`, and what it announces."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process
        self.ready = self.event()

    def event(self) -> dict[str, Any]:
        """The next line it announces."""
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        assert line, "it ended"
        return dict(json.loads(line))

    @property
    def url(self) -> str:
        return str(self.ready["url"])


def command(data: Path, *words: str) -> list[str | Path]:
    return [OSD, *("target", "serve", "-o", "json", "--data"), data, *words]


@contextmanager
def serving(data: Path, *words: str, **environment: str) -> Iterator[Serving]:
    """Serve without sandboxes on a port of the kernel's choice; ends with SIGTERM and exit 0."""
    words = ("--no-sandboxes", "--no-manager", "--portal", "127.0.0.1:0", *words)
    with (data.parent / "log").open("a") as log:
        process = warm.Python(
            command(data, *words),
            env=os.environ | environment,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=log,
            text=True,
        )
    served = None
    try:
        served = Serving(process)
        yield served
    finally:
        process.terminate()
        out, _ = process.communicate(timeout=DEADLINE_S)
    assert process.returncode == 0
    assert json.loads(out.splitlines()[-1])["event"] == "stopped"
    assert not Path(f"/proc/{served.ready['pids']['tgtd']}").exists()


def refused(data: Path, *words: str, code: int) -> str:
    """Run it where it must not start; return what it says."""
    done = warm.run(
        command(data, "--no-sandboxes", *words),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=DEADLINE_S,
    )
    assert done.returncode == code, done.stderr
    assert not done.stdout
    return done.stderr


def ready_line(log: Path) -> dict[str, Any] | None:
    """The log when the target is ready; None: not yet."""
    text = log.read_text().rpartition("\n")[0] if log.exists() else ""
    lines = [line for line in text.splitlines() if line.startswith('{"schema": "iosd.target/1"')]
    return json.loads(lines[0]) if lines else None


@pytest.mark.tgtd
def test_interrupted_in_a_pipeline_whose_reader_dies_first(folder: Path) -> None:
    """'osd target serve 2>&1 | tee log' and Ctrl-C: the store is closed and nothing is left."""
    log, store = folder / "log", folder / "store"
    readable, writable = os.pipe()
    words = command(store, "--no-sandboxes", "--portal", "127.0.0.1:0")
    serve = subprocess.Popen(
        words, stdin=subprocess.DEVNULL, stdout=writable, stderr=writable, process_group=0
    )
    tee = subprocess.Popen(
        ["tee", log], stdin=readable, stdout=subprocess.DEVNULL, process_group=serve.pid
    )
    os.close(readable)
    os.close(writable)
    try:
        ready = until(lambda: ready_line(log), log.read_text)
        tee.kill()
        tee.wait(DEADLINE_S)
        os.killpg(serve.pid, signal.SIGINT)
        assert serve.wait(DEADLINE_S) == 0
    finally:
        for process in (tee, serve):
            process.kill()
            process.wait()
    assert not Path(ready["control"]).parent.parent.exists()
    assert not [name for name, pid in ready["pids"].items() if Path(f"/proc/{pid}").exists()]
    check = warm.run(
        [OSD, "target", "check", "-v", "--data", store], capture_output=True, text=True
    )
    assert check.returncode == 0 and "not closed in order" not in check.stdout + check.stderr


@pytest.mark.tgtd
@pytest.mark.parametrize("level", [None, "info"])
def test_a_terminal_is_not_flooded(folder: Path, level: str | None) -> None:
    """A person sees the URL and what goes wrong; the whole log is there for who asks for it."""
    leader, follower = os.openpty()
    words = ["--no-sandboxes", "--no-manager", "--portal", "127.0.0.1:0"]
    words += ["--log-level", level] if level else []
    environment = {key: value for key, value in os.environ.items() if key != "IOSD_LOG_LEVEL"}
    process = subprocess.Popen(
        command(folder / "store", *words),
        env=environment,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=follower,
        text=True,
    )
    os.close(follower)
    assert process.stdout is not None
    assert json.loads(process.stdout.readline())["event"] == "ready"
    process.terminate()
    process.communicate(timeout=DEADLINE_S)
    said = b""
    with contextlib.suppress(OSError):  # the end of a terminal
        while piece := os.read(leader, 4096):
            said += piece
    os.close(leader)
    assert process.returncode == 0
    assert (b" info: " in said) == (level == "info"), said


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_portal_of_a_stock_tgtd_must_be_loopback(tmp_path: Path, host: str) -> None:
    with pytest.raises(CannotServe, match="--unsafe-portal"):
        check_portal(TargetConfig(tmp_path, (host, 3260)))
    check_portal(TargetConfig(tmp_path, (host, 3260), unsafe_portal=True))


@pytest.mark.parametrize("host", ["0.0.0.0", "192.0.2.1", "::"])
def test_portal_of_a_hardened_tgtd(tmp_path: Path, host: str) -> None:
    config = TargetConfig(tmp_path, (host, 3260))
    check_portal(config, hardened=True)
    assert config.initiators == ("ALL",)


def test_a_portal_elsewhere_is_not_called_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    assert "192.0.2.1 is not an address of this host" in portal_fault("192.0.2.1", "192.0.2.1:3260")
    assert "portal 127.0.0.1:3260 is taken" in portal_fault("127.0.0.1", "127.0.0.1:3260")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    monkeypatch.setattr(preconditions, "unprivileged_port", lambda: 1024)
    assert "only root can listen on port 80" in portal_fault("127.0.0.1", "127.0.0.1:80")
    assert "portal 127.0.0.1:3260 is taken" in portal_fault("127.0.0.1", "127.0.0.1:3260")


def test_a_folder_of_other_files_is_no_store(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").touch()
    with pytest.raises(CannotServe, match="has other files and no store"):
        prepare_store(tmp_path, os.geteuid())


def test_a_user_that_the_namespace_lacks_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def unmapped(*_: object) -> None:
        raise OSError(errno.EINVAL, "Invalid argument")

    monkeypatch.setattr(os, "chown", unmapped)
    with pytest.raises(CannotServe, match=r"lacks user 77777 .* --uid"):
        prepare_store(tmp_path / "new", 77777)


@pytest.mark.parametrize("host", ["127.0.0.1", "127.1.2.3", "::1"])
def test_loopback_portal(tmp_path: Path, host: str) -> None:
    config = TargetConfig(tmp_path, (host, 3260))
    check_portal(config)
    assert config.initiators == (host,)


def test_portal_must_be_an_address(tmp_path: Path) -> None:
    with pytest.raises(CannotServe, match="not an IP address"):
        check_portal(TargetConfig(tmp_path, ("localhost", 3260)), hardened=True)


@pytest.mark.tgtd
def test_which_tgtd(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stock, ours = find_tgtd("stock"), tmp_path / "tgtd"
    assert stock.kind == "stock" and re.fullmatch(r"\d+\.\d+\.\d+", stock.version)
    monkeypatch.setattr(paths, "TGTD", paths.Component("absent", "absent", tmp_path, "tgtd"))
    assert find_tgtd() == stock
    with pytest.raises(paths.MissingComponent, match=r"package iosd-target\).*'make tgtd'"):
        find_tgtd("hardened")
    with pytest.raises(paths.MissingComponent, match=str(ours)):
        find_tgtd(str(ours))
    ours.write_text("#!/bin/sh\necho 1.0.85+iosd1\n")
    ours.chmod(0o755)
    monkeypatch.setattr(paths, "TGTD", paths.Component("tgtd", "absent", tmp_path, "tgtd"))
    assert (
        find_tgtd() == find_tgtd("hardened") == find_tgtd(str(ours)) == Tgtd(ours, "1.0.85+iosd1")
    )
    assert find_tgtd().kind == "hardened" and find_tgtd("stock") == stock


def host_gives(level: str, *missing: str, taken: str = "") -> Callable[..., dict[str, Any]]:
    def answer(uid_base: int | None = None) -> dict[str, Any]:
        uids = {"first": uid_base or 1000, "last": 2000, "taken": taken}
        return {"level": level, "missing": list(missing), "uids": uids}

    return answer


def test_isolation_the_host_cannot_give(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(
        preconditions, "isolation_of_host", host_gives("no-cgroup", "cgroup_memory: x")
    )
    with pytest.raises(CannotServe, match=r"cgroup_memory: x.*--isolation no-cgroup"):
        choose_isolation("full")
    assert choose_isolation("best") == "no-cgroup"
    assert choose_isolation("minimal") == "minimal"
    monkeypatch.setattr(preconditions, "isolation_of_host", host_gives("full"))
    assert choose_isolation("full") == "full"


@pytest.mark.skipif(os.geteuid() != 0, reason="an ordinary user runs scripts as itself")
def test_ids_of_sandboxes_that_somebody_has(monkeypatch: pytest.MonkeyPatch) -> None:
    taken = host_gives("full", taken="/etc/subuid gives 1500 to 65536 to 'alice'")
    monkeypatch.setattr(preconditions, "isolation_of_host", taken)
    with pytest.raises(CannotServe, match=r"900 to 2000, are not free: /etc/subuid.*--uid-base"):
        choose_isolation("best", 900)


@pytest.mark.tgtd
def test_unsafe_portal_is_refused_with_a_code(folder: Path) -> None:
    words = ("--tgtd", "stock", "--portal", "0.0.0.0:0")
    assert "--unsafe-portal" in refused(folder / "data", *words, code=78)


@pytest.mark.tgtd
def test_hardened_tgtd_may_have_any_portal(folder: Path) -> None:
    try:
        find_tgtd("hardened")
    except paths.MissingComponent as error:
        pytest.skip(str(error))
    words = ("--tgtd", "hardened", "--portal", "0.0.0.0:0")
    with serving(folder / "data", *words) as served:
        assert served.ready["tgtd"]["kind"] == "hardened"
        with pyosd.connect(served.url) as target:
            target.test_unit_ready()


@pytest.mark.tgtd
def test_portal_in_use(folder: Path) -> None:
    with socket.create_server(("127.0.0.1", 0)) as other:
        portal = f"127.0.0.1:{other.getsockname()[1]}"
        assert "is taken" in refused(folder / "data", "--portal", portal, code=1)


@pytest.mark.tgtd
def test_folders_of_killed_supervisors_are_removed(tmp_path: Path) -> None:
    code = "import sys; from iosd_host.common.run_folder import RunFolder; "
    code += "made = RunFolder(sys.argv[1]); print(made.path, flush=True); sys.stdin.read()"
    command = [sys.executable, "-c", code, str(tmp_path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as one:
        assert one.stdout is not None
        left = Path(one.stdout.readline().strip())
        (left / "tgt").mkdir()
        other = tmp_path / "iosd-store"
        other.mkdir()
        (other / "lock").touch()  # as a store and backups have
        second = RunFolder(str(tmp_path))
        assert set(tmp_path.iterdir()) == {left, other, second.path}, "their processes live"
        one.kill()
    third = RunFolder(str(tmp_path))
    assert set(tmp_path.iterdir()) == {other, second.path, third.path}
    for each in (second, third):
        each.remove()
    assert list(tmp_path.iterdir()) == [other]


def test_store_in_use(folder: Path) -> None:
    with serving(folder / "data"):
        words = refused(folder / "data", "--portal", "127.0.0.1:0", code=1)
    error = json.loads(words.splitlines()[-1])["error"]
    assert error["message"] == f"tgtd does not open the store {folder / 'data'}"
    assert "in use by another process; stop it first" in error["hint"]
    assert "tgtadm" not in words


@pytest.mark.tgtd
@needs_root
def test_store_of_somebody_else(folder: Path) -> None:
    (folder / "data").mkdir()
    (folder / "data" / "superblock").touch()
    assert "--uid 0" in refused(folder / "data", "--portal", "127.0.0.1:0", code=78)


@pytest.mark.tgtd
def test_no_new_store_in_place_of_one_that_is_missing(folder: Path) -> None:
    """As when its disk is not mounted: clients would find an empty store, and write to it."""
    data, key = folder / "data", folder / "data.master-key"
    with serving(data):
        pass
    data.rename(folder / "not mounted")
    for mount_point in (False, True):
        if mount_point:
            data.mkdir()
        words = refused(data, "--portal", "127.0.0.1:0", code=78)
        assert f"{data} has no store, but {key} belongs to one that was there" in words
        assert "mount its disk" in words
        assert data.exists() == mount_point and not any(data.glob("*"))
    key.rename(folder / "of the earlier one")
    with serving(data):
        assert key.exists()


@pytest.mark.tgtd
@pytest.mark.parametrize(
    ("damage", "remedy"),
    [
        (lambda store: os.truncate(store / "superblock", 0), "'osd target repair' makes it again"),
        (lambda store: (store / "superblock").unlink(), "'osd target check'"),
        (lambda store: next(store.glob("db/log.*")).unlink(), "'osd target check' tells"),
    ],
    ids=["superblock damaged", "superblock missing", "log missing"],
)
def test_a_damaged_store_has_a_remedy(
    folder: Path, damage: Callable[[Path], None], remedy: str
) -> None:
    with serving(folder / "data"):
        pass
    damage(folder / "data")
    assert remedy in refused(folder / "data", "--portal", "127.0.0.1:0", code=1)


@pytest.mark.tgtd
@needs_root
def test_store_of_which_a_part_is_somebody_elses(folder: Path) -> None:
    """As a copy from a backup is."""
    with serving(folder / "data"):
        pass
    owner = (folder / "data").stat().st_uid
    table = folder / "data" / "db" / "jobs.db"
    os.chown(table, 0, 0)
    words = refused(folder / "data", "--portal", "127.0.0.1:0", code=78)
    assert f"{table} belongs to uid 0" in words
    assert "If it is of another target, name another folder" in words
    assert f"chown -R {owner} {folder / 'data'}" in words


@pytest.mark.tgtd
@needs_root
def test_store_out_of_reach(folder: Path) -> None:
    folder.chmod(0o700)
    assert "cannot reach" in refused(folder / "data", "--portal", "127.0.0.1:0", code=78)


@pytest.mark.tgtd
def test_path_that_tgtd_would_cut(folder: Path) -> None:
    assert "comma" in refused(folder / "a,b", "--portal", "127.0.0.1:0", code=78)


@pytest.mark.tgtd
def test_unknown_option_of_the_module(folder: Path) -> None:
    words = refused(folder / "data", "--portal", "127.0.0.1:0", "--module-option", "x=1", code=1)
    assert "x" in words


@pytest.mark.tgtd
@pytest.mark.parametrize("option", ["memory=1", "unsafe_nosync=1"])
def test_options_for_tests_are_not_in_the_product(folder: Path, option: str) -> None:
    words = refused(folder / "data", "--portal", "127.0.0.1:0", "--module-option", option, code=1)
    assert f"option '{option.partition('=')[0]}' is unknown" in words


@pytest.mark.tgtd
@needs_root
def test_tgtd_runs_unprivileged(folder: Path) -> None:
    with serving(folder / "data") as served:
        status = Path(f"/proc/{served.ready['pids']['tgtd']}/status").read_text()
        owner = (folder / "data").stat().st_uid
        assert owner > 0x70000000  # outside what distributions hand out
        assert f"Uid:\t{owner}\t{owner}\t{owner}\t{owner}" in status
        assert "NoNewPrivs:\t1" in status


@pytest.mark.tgtd
def test_killed_tgtd_comes_back_at_its_place(folder: Path) -> None:
    with serving(folder / "data") as served, pyosd.connect(served.url) as target:
        pid = target.create_partition()
        for _ in range(2):
            os.kill(served.ready["pids"]["tgtd"], signal.SIGKILL)
            served.ready, before = served.event(), served.ready
            assert served.ready["event"] == "restarted"
            assert served.ready["url"] == before["url"]
            assert served.ready["pids"] != before["pids"]
            assert target.list_partitions() == [pid]


@pytest.mark.parametrize("host", ["127.0.0.1", "0.0.0.0"])
def test_nobody_gets_the_port_of_a_target_that_starts_again(host: str) -> None:
    """While tgtd was away another server could be given its port, and it could not listen there again."""
    with contextlib.closing(HeldPort(host, 0)) as held:
        assert held.port
        with socket.socket() as other, pytest.raises(OSError, match="in use"):
            other.bind((host, held.port))
        for _ in range(2):
            with socket.create_server((host, held.port)) as server:  # as tgtd does
                assert server.getsockname()[1] == held.port
    with socket.create_server((host, 0)) as server:  # of somebody else
        port = server.getsockname()[1]
        with contextlib.closing(HeldPort(host, port)) as held:
            assert held.port == port


@pytest.mark.tgtd
@pytest.mark.sandbox
def test_the_parts_of_a_killed_supervisor_end() -> None:
    served = WholeTarget(*arguments())
    try:
        pids = served.pids
        assert {"tgtd", "iosd-sandboxd"} <= {*pids}
        served.process.kill()
        served.process.wait()
        until(lambda: all(map(gone, pids.values())), "a part is left")
    finally:
        served.stop(False)


@pytest.mark.tgtd
def test_store_outlives_its_servers(folder: Path) -> None:
    with serving(folder / "data") as served, pyosd.connect(served.url) as target:
        pid = target.create_partition()
    with serving(folder / "data") as served, pyosd.connect(served.url) as target:
        assert target.list_partitions() == [pid]


@pytest.mark.tgtd
def test_chap(folder: Path) -> None:
    secret = {"IOSD_CHAP_SECRET": "a secret of some length"}
    with serving(folder / "data", "--chap-user", "me", **secret) as served:
        with pytest.raises(LoginRejected):
            pyosd.connect(served.url, chap=Chap("me", "another secret of length"))
        with pytest.raises(LoginRejected):
            pyosd.connect(served.url)
        with pyosd.connect(served.url, chap=Chap("me", secret["IOSD_CHAP_SECRET"])) as target:
            target.test_unit_ready()


@pytest.mark.tgtd
def test_short_chap_secret(folder: Path) -> None:
    words = refused(folder / "data", "--chap-user", "me", code=2)
    assert "12 to 256" in words


@pytest.mark.tgtd
def test_ready_descriptor(folder: Path) -> None:
    reader, writer = os.pipe()
    words = ("--no-sandboxes", "--no-manager", "--portal", "127.0.0.1:0", "--ready-fd", str(writer))
    process = subprocess.Popen(
        [OSD, "target", "serve", "--data", folder / "data", *words],
        pass_fds=(writer,),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    os.close(writer)
    with os.fdopen(reader) as lines:
        assert json.loads(lines.readline())["event"] == "ready"
        process.terminate()
        assert json.loads(lines.readline())["event"] == "stopped"
    assert process.wait(DEADLINE_S) == 0


def test_security_follows_the_portal(tmp_path: Path) -> None:
    """Capabilities are required everywhere, beyond loopback with proof of each command and answer, unless
    somebody says nosec by name; that also keeps the user who serves from getting a credential."""

    def options(host: str, security: str | None = None) -> list[str]:
        config = TargetConfig(tmp_path, (host, 3260), security=security)
        return [each for each in config.security_options if not each.startswith("master-key=")]

    assert options("127.0.0.1") == options("::1") == ["security=capkey"]
    assert options("127.0.0.1", "nosec") == ["security=nosec"]
    assert options("127.0.0.1", "alldata") == ["security=alldata"]
    assert options("192.0.2.1") == ["security=cmdrsp", "secure=1"]
    assert options("192.0.2.1", "capkey") == ["security=capkey", "secure=1"]
    assert options("192.0.2.1", "nosec") == ["security=nosec"]
    assert TargetConfig(tmp_path, ("127.0.0.1", 3260)).local_credential
    assert not TargetConfig(tmp_path, ("127.0.0.1", 3260), security="nosec").local_credential
    key = TargetConfig(tmp_path, ("127.0.0.1", 3260)).security_options[0]
    assert key == f"master-key={tmp_path}/master.key"  # from there the supervisor moves it
