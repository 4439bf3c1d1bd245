# SPDX-License-Identifier: GPL-2.0-or-later
"""Pools of an iosd-sandboxd that come, change and go while sandboxes of them run."""

from __future__ import annotations

import os
import shutil
import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest
from proxy import (
    FORGET,
    ROTATE,
    ROTATED,
    SANDBOXD,
    SERVING,
    STARTING,
    Daemon,
    Sandbox,
    alive,
    gone,
)

from tests.package_sets import make
from tests.waiting import until

WORD = "import word; print(word.WORD)"


@pytest.fixture
def folder() -> Iterator[Path]:
    """For sets and pools; the zygote's user can pass through it."""
    folder = Path("/var/tmp") / f"iosd-reload-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture
def daemon(folder: Path, tmp_path: Path) -> Iterator[Daemon]:
    (folder / "pools").write_text(
        "budget=1\nname=one;engine=python;max=2;spares=1\nname=two;max=1\n"
    )
    with (folder / "log").open("wb") as log:
        running = Daemon(tmp_path, "--pools-file", folder / "pools", stderr=log.fileno())
    for name in ("one", "two"):
        running.wait_for_pool(name, SERVING)
    yield running
    running.stop()


def reload(daemon: Daemon, folder: Path, *lines: str) -> None:
    (folder / "pools").write_text("".join(f"{line}\n" for line in lines))
    daemon.process.send_signal(signal.SIGHUP)


def logged(folder: Path, words: str) -> str:
    """The last line of its log that has these words."""
    log = folder / "log"
    return until(lambda: [x for x in log.read_text().splitlines() if words in x], words)[-1]


def zygote_of(sandbox: Sandbox) -> int:
    status = Path(f"/proc/{sandbox.pid}/status").read_text()
    return int(status.split("PPid:")[1].split()[0])


def refused(daemon: Daemon, pool: str) -> str:
    with pytest.raises(PermissionError) as caught:
        daemon.spawn(pool=pool)
    return str(caught.value)


def printed(daemon: Daemon, code: str, pool: str) -> bytes:
    return daemon.run(code, pool=pool).stdout


def test_pools_come_change_and_go(daemon: Daemon, folder: Path) -> None:
    before = make("before", folder, {"word.py": "WORD = 'before'\n"})
    after = make("after", folder, {"word.py": "WORD = 'after'\n"})

    def pool(name: str, found: object) -> str:
        return f"name={name};max=1;packages={found.folder};set={found.id};preload=word"

    reload(daemon, folder, "name=one;max=5", pool("two", before), pool("new", before))
    for name in ("two", "new"):
        assert daemon.wait_for_pool(name, STARTING).set == before.id
        assert daemon.wait_for_pool(name, SERVING).set == before.id
        assert printed(daemon, WORD, name) == b"before\n"
    running = {name: daemon.spawn(pool=name) for name in ("one", "two", "new")}
    for sandbox in running.values():
        sandbox.wait_ready()
    zygotes = {name: zygote_of(sandbox) for name, sandbox in running.items()}
    running["two"].start(WORD)

    reload(daemon, folder, "name=one;max=3", pool("two", after))
    assert daemon.wait_for_pool("two", STARTING).set == after.id
    assert daemon.wait_for_pool("two", SERVING).set == after.id
    assert printed(daemon, WORD, "two") == b"after\n"
    assert running["two"].finish().stdout == b"before\n"
    # The target still wants sandboxes of the one that was removed, until it says otherwise.
    assert printed(daemon, WORD, "new") == b"before\n"
    daemon.send(FORGET, 0, b"new")
    assert refused(daemon, "new") == "no such pool"
    assert alive(zygotes["new"])  # it has a sandbox
    running["new"].start(WORD)
    assert running["new"].finish().stdout == b"before\n"
    logged(folder, "pool new is gone")
    assert refused(daemon, "new") == "no such pool"
    assert gone([zygotes["two"]])
    assert zygote_of(running["one"]) == zygotes["one"]  # nothing was said of it
    running["one"].start("print(1)")
    assert running["one"].finish().stdout == b"1\n"
    for sandbox in running.values():
        sandbox.close()


WRONG = {
    "name=one;packages=here": "the folder of a package set is an absolute path",
    "max=1": "a pool needs a name",
    "name=one;engine=perl": "unknown engine; the engines are: python",
    "name=one;max": "a word without a value",
    "name=one\nname=one": "two pools of one name",
    "\n".join(f"name=p{i}" for i in range(16)): "too many pools",
}


def test_a_wrong_file_changes_nothing(daemon: Daemon, folder: Path) -> None:
    for line, why in WRONG.items():
        reload(daemon, folder, "name=three", line)
        assert why in logged(folder, f"pools of '{folder / 'pools'}': {why}")
    assert refused(daemon, "three") == "no such pool"
    assert printed(daemon, "print(1)", "one") == b"1\n"
    command = [SANDBOXD, "--socket", folder / "s", "--python-dir", "/", "--pools-file"]
    done = subprocess.run([*command, folder / "pools"], capture_output=True, text=True, check=False)
    assert done.returncode == 1 and "too many pools" in done.stderr


def test_rotation(daemon: Daemon) -> None:
    """Sandboxes come from another zygote; what runs in the old one is left alone."""
    first = daemon.spawn(pool="one")
    first.wait_ready()
    old = zygote_of(first)
    daemon.send(ROTATE, 0, b"one")
    assert daemon.wait_for(ROTATED, 0)[0] == b"one"
    second = daemon.spawn(pool="one")
    second.wait_ready()
    assert zygote_of(second) != old and alive(old)
    first.start("print(1)")
    assert first.finish().stdout == b"1\n"
    assert gone([old])
    for sandbox in (first, second):
        sandbox.close()


def test_rotation_of_a_pool_that_changes_meanwhile(daemon: Daemon, folder: Path) -> None:
    """The zygote of the changed pool is the one that was asked for."""
    found = make("other", folder, {"word.py": "WORD = 'other'\n"})
    line = f"name=one;max=5;packages={found.folder};set={found.id};preload=word"
    os.kill(daemon.process.pid, signal.SIGSTOP)  # it finds both at once, and the request is first
    try:
        daemon.send(ROTATE, 0, b"one")
        reload(daemon, folder, line)
    finally:
        os.kill(daemon.process.pid, signal.SIGCONT)
    assert daemon.wait_for(ROTATED, 0)[0] == b"one"
    assert printed(daemon, WORD, "one") == b"other\n"


def test_removed_while_nobody_asks(daemon: Daemon, folder: Path) -> None:
    """What the target has not used goes at once; so does all the rest with the target."""
    daemon.spawn(pool="one").close()
    reload(daemon, folder, "name=three")
    logged(folder, "pool two is gone")
    daemon.wait_for_pool("three", SERVING)
    assert daemon.socket
    daemon.socket.close()
    logged(folder, "pool one is gone")
    daemon.connect(4)
    assert refused(daemon, "one") == refused(daemon, "two") == "no such pool"
    assert printed(daemon, "print(3)", "three") == b"3\n"


def test_a_hangup_while_it_starts_is_kept(folder: Path, tmp_path: Path) -> None:
    """It reads the pools, and they are changed, before it can read them again."""
    pools, newer = folder / "pools", folder / "newer"
    os.mkfifo(pools)
    with (folder / "log").open("wb") as log:
        running = Daemon(tmp_path, "--pools-file", pools, stderr=log.fileno(), wait=False)
    with pools.open("w") as writer:  # it has opened it, too
        running.process.send_signal(signal.SIGHUP)
        newer.write_text("name=two;max=1\n")
        newer.rename(pools)
        writer.write("name=one;max=1\n")
    running.wait_until_ready(4)
    running.wait_for_pool("two", SERVING)
    running.stop()
