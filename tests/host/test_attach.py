# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target attach` and `detach`, as systemd's units run them: a target in a tgtd that runs already."""

from __future__ import annotations

import contextlib
import os
import shutil
import stat
import subprocess
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

import pyosd
from iosd_host.cli import units as unit_commands
from iosd_host.common import paths
from iosd_host.common.held_port import HeldPort
from iosd_host.serve import attach
from iosd_host.serve.tgtd import HARDENED, STOCK, find_tgtd
from pyosd.security import local_credential
from tests.machine import unavailable
from tests.serving import missing
from tests.waiting import until

START_S = 20.0
NOBODY = 65534

pytestmark = pytest.mark.tgtd


@pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")
def test_the_managers_user_reaches_the_control_socket(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """If packages have made it. Otherwise the manager runs as tgtd's user."""
    config = unit_commands.configured(None)
    control = tmp_path / "iosd-target"
    control.mkdir(mode=0o755)
    monkeypatch.setattr(attach, "uid_of", lambda name: None)
    assert attach.prepare_control(control, 12345, config) is None
    assert stat.S_IMODE(control.stat().st_mode) == 0o755
    monkeypatch.setattr(attach, "uid_of", lambda name: 23456 if name == "iosd-manager" else None)
    assert attach.prepare_control(control, 12345, config) == 23456
    found = control.stat()
    assert (found.st_uid, found.st_gid, stat.S_IMODE(found.st_mode)) == (12345, 23456, 0o2710)


LISTEN = """
import os, socket, sys, time
with socket.socket(socket.AF_UNIX) as sock:
    sock.bind(sys.argv[1])
    sock.listen()
    print("up", flush=True)
    sys.stdin.read()
"""


@pytest.mark.skipif(os.geteuid() != 0, reason="needs root to be somebody else")
@pytest.mark.parametrize(("owner", "run"), [(NOBODY, False), (0, True)])
def test_no_program_of_tgtd_s_user_runs_as_root(
    folder: Path, monkeypatch: pytest.MonkeyPatch, owner: int, run: bool
) -> None:
    """Whoever has taken over tgtd has the socket, and chooses the program of the process behind it."""
    folder.chmod(0o777)
    program = folder / "tgtd"
    shutil.copy(os.path.realpath("/usr/bin/python3"), program)
    os.chown(program, owner, owner)
    command = ["setpriv", f"--reuid={NOBODY}", f"--regid={NOBODY}", "--clear-groups", str(program)]
    process = subprocess.Popen(
        [*command, "-I", "-S", "-c", LISTEN, str(folder / "s.0")],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    )
    assert process.stdout and process.stdout.readline() == b"up\n"
    monkeypatch.setenv("TGT_IPC_SOCKET", str(folder / "s"))
    found = attach.running_tgtd()
    process.communicate()
    assert (found.version != "", found.hardened) == (run, False)


@pytest.fixture
def folder() -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as name:
        yield Path(name)


@pytest.fixture
def kind() -> str:
    """The tgtd that `tgtd` runs."""
    return STOCK


@pytest.fixture
def tgtd(folder: Path, kind: str, monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """A tgtd with the module, as tgt.service has it, but for where its socket is."""
    why = missing()
    if why:
        unavailable("tgtd", why)
    monkeypatch.setenv("TGT_IPC_SOCKET", str(folder / "s"))
    preload = {"LD_PRELOAD": str(paths.find_component(paths.MODULE))}
    try:
        program = find_tgtd(kind).path
    except paths.MissingComponent as error:
        unavailable("hardened tgtd", str(error))
    command = [str(program), "-f", "--iscsi", "portal=127.0.0.1:0"]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            ["prlimit", "--core=0", *command], env=os.environ | preload, stdout=log, stderr=log
        )
    until(lambda: (folder / "s.0").exists() or process.poll() is not None)
    assert process.poll() is None
    yield process.pid
    process.kill()
    process.wait()


@pytest.fixture
def run(folder: Path) -> Iterator[Callable[..., Result]]:
    """A verb with a configuration of those lines."""
    with contextlib.closing(HeldPort("127.0.0.1", 0)) as held:
        yield partial(verb_at, folder, held.port)


def verb_at(folder: Path, port: int, verb: str, host: str = "127.0.0.1") -> Result:
    config = folder / "iosd.toml"
    known = [f'data = "{folder}/store"', f'portal = "{host}:{port}"', "no_sandboxes = true"]
    config.write_text("\n".join(["[target]", *known]))
    words = ["--config", str(config)]
    if verb == "attach":
        words += ["--pools-file", str(folder / "pools"), "--control", str(folder / "control")]
    return CliRunner().invoke(getattr(unit_commands, verb), words)


def test_there_and_gone(tgtd: int, run: Callable[..., Result]) -> None:
    done = run("attach")
    assert done.exit_code == 0, done.output
    url = done.stdout.strip()
    assert local_credential.find(url) is not None  # which stays without a process that holds it
    with pyosd.connect(url, local=False) as target, pytest.raises(pyosd.PermissionDenied):
        target.list_partitions()
    with pyosd.connect(url) as target:
        partition = target.create_partition()
    again = run("attach")
    assert again.exit_code == 0 and "it was there already" in again.stderr
    with pyosd.connect(url) as target:
        assert target.list_partitions() == [partition]
    assert run("detach").exit_code == 0
    assert local_credential.find(url) is None
    with pytest.raises(pyosd.OSDError):
        pyosd.connect(url)
    gone = run("detach")
    assert gone.exit_code == 0 and "no target" in gone.stderr
    run("attach")
    with pyosd.connect(url) as target:
        assert target.list_partitions() == [partition]


@pytest.mark.parametrize(
    "line", ['name = "iqn.2026-11.iosd:other"', "nmae = 1", 'chap_file = "/nonexistent"']
)
def test_detach_removes_what_was_attached(
    tgtd: int,
    run: Callable[..., Result],
    folder: Path,
    monkeypatch: pytest.MonkeyPatch,
    line: str,
) -> None:
    """`systemctl restart iosd-attach` reads the configuration that has changed.

    The target stayed.  With another name it kept the store from the new one.  After a mistake, the next
    start found it there, and the repaired configuration did not take effect.
    """
    monkeypatch.setattr(unit_commands, "POOLS_FILE", folder / "pools")
    url = run("attach").stdout.strip()
    config = folder / "iosd.toml"
    before = config.read_text()
    config.write_text(f"{before}\n{line}\n")
    done = CliRunner().invoke(unit_commands.detach, ["--config", str(config)])
    assert done.exit_code == 0 and not done.output
    assert local_credential.find(url) is None
    with pytest.raises(pyosd.OSDError):
        pyosd.connect(url)
    config.write_text(before.replace("[target]", '[target]\nname = "iqn.2026-11.iosd:third"'))
    words = ["--pools-file", str(folder / "pools"), "--control", str(folder / "control")]
    again = CliRunner().invoke(unit_commands.attach, ["--config", str(config), *words])
    assert again.exit_code == 0 and "iosd:third" in again.stdout, again.output


def test_a_reload_names_what_needs_a_restart(
    tgtd: int, run: Callable[..., Result], folder: Path
) -> None:
    """An administrator took it for granted that other addresses could no longer log in."""
    run("attach")
    config = folder / "iosd.toml"
    words = ["--pools-file", str(folder / "pools"), "--control", str(folder / "control")]
    for line, told in (("", False), ('allow = ["127.0.0.1"]', True)):
        before = config.read_text()
        config.write_text(f"{before}\n{line}\n")
        again = CliRunner().invoke(unit_commands.attach, ["--config", str(config), *words])
        assert again.exit_code == 0, again.output
        said = "changes of target.allow take effect at a restart" in again.stderr
        assert said is told and ("at a restart" in again.stderr) is told, again.stderr
        config.write_text(before)
    assert run("detach").exit_code == 0


def test_nobody_serves(run: Callable[..., Result], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TGT_IPC_SOCKET", "/nonexistent/s")
    done = run("attach")
    assert done.exit_code == 1 and "start tgt.service" in done.output


@pytest.mark.parametrize("kind", [STOCK, HARDENED])
def test_a_network_is_for_the_hardened_daemon(
    tgtd: int, kind: str, run: Callable[..., Result], folder: Path
) -> None:
    """The daemon that tgt.service runs decides, not the installed one."""
    done = run("attach", "0.0.0.0")
    if kind == STOCK:
        assert done.exit_code != 0 and "iosd-tgtd" in done.output
        return
    assert done.exit_code == 0, done.output
    again = run("attach", "0.0.0.0")
    assert again.exit_code == 0 and "it was there already" in again.stderr
    command = [
        str(paths.find_program("tgtadm", "tgt")),
        "-C",
        "0",
        "--op",
        "show",
        "--mode",
        "portal",
    ]
    environment = os.environ | {"TGT_IPC_SOCKET": str(folder / "s")}
    told = subprocess.run(
        command, env=environment, capture_output=True, text=True, check=True
    ).stdout
    assert "Portal: 0.0.0.0:" in told
    assert run("detach").exit_code == 0
