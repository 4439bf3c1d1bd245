# SPDX-License-Identifier: GPL-2.0-or-later
"""`osd target serve` as people start it, with no variable set: the manager sees the configuration, and its
process can reach neither the store nor another target's."""

from __future__ import annotations

import json
import os
import shutil
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests import surroundings, warm
from tests.machine import unavailable
from tests.processes import long_lived
from tests.serving import Serving, arguments, missing
from tests.waiting import until

pytestmark = [
    pytest.mark.tgtd,
    pytest.mark.skipif(os.geteuid() != 0, reason="only root has users to give away"),
]

OSD = Path(sys.executable).parent / "osd"
DEADLINE_S = 60.0
CONFIG = """
[pools.default]
max = 4
[pools.default.scale]
auto = false
[pools.science]
max = 2
[manager.workers]
min = 1
max = 3
"""
# Environment of tests, so that they disturb nobody. Users set nothing.
UNSET = dict.fromkeys(("IOSD_RUN", *surroundings.FOLDERS))
PLAIN = {name: value for name, value in os.environ.items() if name not in UNSET}


class Managed:
    """A target with its manager, started with no variable set."""

    def __init__(self, served: Serving) -> None:
        self.served = served
        self.event = served.event("managed", DEADLINE_S)

    def osd(self, *words: object) -> Any:
        """Output of a verb that asks this manager."""
        command = [OSD, *map(str, words), "--manager", self.event["manager"]["url"]]
        command += ["--target", self.served.url, "-o", "json"]
        done = warm.run(
            command, env=PLAIN, capture_output=True, text=True, timeout=DEADLINE_S, check=False
        )
        assert done.returncode == 0, done.stderr + self.served.text()[-2000:]
        return json.loads(done.stdout)

    def status(self, part: str) -> dict[str, list[str]]:
        """/proc/PID/status of a part."""
        lines = Path(f"/proc/{self.event['pids'][part]}/status").read_text().splitlines()
        return {line.split(":")[0]: line.split(":", 1)[1].split() for line in lines}

    def uid(self, part: str) -> int:
        found = set(self.status(part)["Uid"])
        assert len(found) == 1, found
        return int(found.pop())


@pytest.fixture(scope="module")
def managed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Managed]:
    if why := missing():
        unavailable("tgtd", why)
    config = tmp_path_factory.mktemp("config") / "iosd.toml"
    config.write_text(CONFIG)
    words = [*arguments(), "--config", str(config)]
    with Serving(*words, environment=UNSET, manager=True) as served:
        long_lived.add(served.process.pid)
        yield Managed(served)
    long_lived.discard(served.process.pid)


def try_as(uid: int, path: Path) -> bool:
    """Whether a process of this user can list or read it."""
    words = ["setpriv", f"--reuid={uid}", f"--regid={uid}", "--clear-groups", "--"]
    test = [*words, "ls" if path.is_dir() else "cat", str(path)]
    return (
        subprocess.run(test, capture_output=True, timeout=DEADLINE_S, check=False).returncode == 0
    )


@pytest.mark.sandbox
def test_the_manager_sees_the_configuration(managed: Managed) -> None:
    rows = {row["key"]: row for row in managed.osd("config", "show")["settings"]}
    assert (rows["pools.default.max"]["value"], rows["manager.workers.max"]["value"]) == (4, 3)
    assert rows["pools.default.max"]["origin"].endswith("iosd.toml")
    # Without the manager's first reading of the target, which may take its time, there are no pools.
    pools = until(lambda: managed.osd("manager", "status")["targets"][0].get("pools"))
    assert {pool["name"] for pool in pools} == {"default", "science"}
    managed.osd("pool", "set", "default", "max=3")
    assert managed.osd("pool", "reset", "default")["is"]["max"] == "4"


def test_each_part_has_a_user_of_its_own(managed: Managed) -> None:
    tgtd, manager = managed.uid("tgtd"), managed.uid("iosd-manager")
    assert len({0, tgtd, manager}) == 3
    assert managed.served.data.stat().st_uid == tgtd
    for part in ("tgtd", "iosd-manager"):
        status = managed.status(part)
        assert status["Groups"] == []
        assert {int(status[name][0], 16) for name in ("CapPrm", "CapEff", "CapInh")} == {0}
        assert status["NoNewPrivs"] == ["1"]


def test_the_manager_reaches_its_socket_and_nothing_of_the_store(managed: Managed) -> None:
    data, run = managed.served.data, Path(managed.event["control"]).parent.parent
    tgtd, manager = managed.uid("tgtd"), managed.uid("iosd-manager")
    state = data.with_name(f"{data.name}-manager")
    assert state.stat().st_uid == manager and not try_as(tgtd, state)
    assert try_as(tgtd, data / "superblock")
    for path in (data, data / "superblock", data / "seal", run / "tgt"):
        assert not try_as(manager, path), path
    control = run / "control"
    assert stat.S_IMODE((control / "socket").stat().st_mode) == 0o660
    assert (control / "socket").stat().st_gid == manager
    assert stat.S_IMODE(control.stat().st_mode) == 0o2710


def test_targets_do_not_share_users(managed: Managed) -> None:
    with Serving(*arguments(), environment=UNSET, manager=True) as served:
        other = Managed(served)
        users = [each.uid(part) for each in (managed, other) for part in ("tgtd", "iosd-manager")]
    assert len(set(users)) == 4


def test_an_old_store_keeps_its_user_and_its_managers_state_moves() -> None:
    """A store of the time when tgtd and the manager shared a user, and the store held the state."""
    old = 64733
    folder = Path(tempfile.mkdtemp(prefix="iosd-test-", dir="/var/tmp"))
    folder.chmod(0o711)
    kept = folder / "store"
    with Serving(
        *arguments(), "--uid", str(old), data=kept, environment=UNSET, manager=True
    ) as served:
        Managed(served).osd("pool", "set", "default", "max=1")
    beside = kept.with_name(f"{kept.name}-manager")
    try:
        beside.rename(kept / "manager")
        (kept / "manager" / "planted").symlink_to("/etc/shadow")
        for path in (kept / "manager", *(kept / "manager").rglob("*")):
            os.chown(path, old, old, follow_symlinks=False)
        with Serving(*arguments(), data=kept, environment=UNSET, manager=True) as served:
            again = Managed(served)
            rows = {row["key"]: row for row in again.osd("config", "show")["settings"]}
            assert rows["pools.default.max"]["origin"] == "live"
            assert again.uid("tgtd") == old != again.uid("iosd-manager")
            assert "the manager's state has moved" in served.text()
        assert not (kept / "manager").exists() and not (beside / "planted").exists()
        assert not try_as(old, beside)
    finally:
        shutil.rmtree(folder)


@pytest.mark.parametrize("part", ["tgtd", "iosd-manager"])
def test_neither_can_do_more_than_it_does(managed: Managed, part: str) -> None:
    status = managed.status(part)
    for name in ("CapInh", "CapPrm", "CapEff", "CapBnd", "CapAmb"):
        assert int(status[name][0], 16) == 0, name
    assert status["Seccomp"] == ["2"] and status["NoNewPrivs"] == ["1"]
    # A process that is not dumpable belongs to root, so no process of the same user can attach to
    # it.
    pid = managed.event["pids"][part]
    assert Path(f"/proc/{pid}/mem").stat().st_uid == 0
    assert managed.uid(part) != 0
