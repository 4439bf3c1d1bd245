# SPDX-License-Identifier: GPL-2.0-or-later
"""Pools that are changed while they work: no job is lost or disturbed, no slot is too many, and what is
left in the end is what was asked for (reliability 36)."""

from __future__ import annotations

import itertools
import os
import random
import shutil
import signal
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from iosd_host.control.messages import TargetError, Type
from pyosd.errors import OSDError, TargetBusy
from pyosd.jobs.job import Job
from pyosd.wire.job_status import JobState
from tests.control.peer import Peer
from tests.jobs.conftest import DEADLINE_S, Target, skip_without_sandboxes
from tests.jobs.test_exec import SLEEP, is_running, run
from tests.jobs.test_pools import found
from tests.package_sets import make
from tests.processes import long_lived
from tests.waiting import until

SEED = int(os.environ["IOSD_SEED"])
NUMBERS = itertools.count(0x77777)
STEPS = int(os.environ.get("IOSD_STEPS", "15"))
WORD = "import word; print(word.WORD)"
WAIT_FOR = "import osd, time\nwhile not osd.userobject({}, {}).exists(): time.sleep(0.005)\n{}"


class Live(Target):
    """Both parts read one file of pools, and the target has a control socket."""

    def __init__(self, folder: Path, pools: str, options: str = "", **how: Any) -> None:
        self.pools = folder / "pools"
        self.pools.write_text(pools)
        self.daemon_options = ("--pools-file", str(self.pools))
        super().__init__(
            folder, f";pools={self.pools};control={folder / 'control'}{options}", **how
        )
        self.peer = Peer(folder / "control")

    def set(self, name: str, **keys: object) -> dict[str, Any]:
        return self.peer.ask(Type.POOL, name=name, **keys)

    def pool(self, name: str = "default") -> dict[str, Any]:
        pools = self.peer.snapshot()["pools"]
        return next(pool for pool in pools if pool["name"] == name)

    def hup(self) -> None:
        assert self.daemon
        self.daemon.send_signal(signal.SIGHUP)

    def reload(self, pools: str) -> list[str]:
        """The daemon first, as the supervisor does it; what the target says has changed."""
        self.pools.write_text(pools)
        self.hup()
        changed: list[str] = self.peer.ask(Type.RELOAD)["changed"]
        return changed


@pytest.fixture
def folder() -> Iterator[Path]:
    """The zygote's user can pass through it, to package sets."""
    skip_without_sandboxes()
    folder = Path("/var/tmp") / f"iosd-live-{os.getpid()}"
    folder.mkdir(mode=0o755)
    yield folder
    shutil.rmtree(folder)


@pytest.fixture(scope="module")
def target(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Live]:
    """One for tests that change slots; each begins by saying how many it wants."""
    skip_without_sandboxes()
    live = Live(tmp_path_factory.mktemp("live"), "name=default;max=2\nname=other;max=1\n")
    assert live.daemon
    long_lived.update((live.daemon.pid, live.transport.process.pid))
    yield live
    live.peer.close()
    live.stop()
    long_lived.difference_update((live.daemon.pid, live.transport.process.pid))


@pytest.fixture
def start(folder: Path) -> Iterator[Any]:
    running: list[Live] = []

    def start(pools: str) -> Live:
        running.append(Live(folder, pools))
        return running[0]

    yield start
    for each in running:
        each.peer.close()
        each.stop()


def gate(target: Live) -> tuple[str, Any]:
    """A script's head that waits, and what lets all of its kind go."""
    partition = target.partition.partition_id
    number = next(NUMBERS)
    opened = lambda: target.commands.create(partition, number)  # noqa: E731
    return WAIT_FOR.format(partition, number, "{}"), opened


# ---- slots


class Changes:
    """Random changes to a pool, and what must hold at each."""

    def __init__(self, target: Live) -> None:
        self.target, self.random = target, random.Random(SEED)
        self.jobs: list[Job] = []
        self.refused = 0
        self.most = 2  # slots that may be at work: as many as before, until their jobs have ended

    def submit(self) -> None:
        for _ in range(self.random.randrange(1, 4)):
            script = f"import time\ntime.sleep({self.random.random() / 20})"
            try:
                self.jobs.append(run(self.target, script))
            except TargetBusy:
                self.refused += 1

    def change(self) -> None:
        pick = self.random
        keys: dict[str, object] = {}
        if pick.random() < 0.5:
            keys["max"] = pick.randrange(1, 9)
        if pick.random() < 0.3:
            keys["active"] = pick.randrange(1, 9)
        if pick.random() < 0.3:
            keys |= {"min": pick.randrange(4), "spares": pick.randrange(6)}
        if pick.random() < 0.3:
            keys["mode"] = pick.choice(("running", "running", "paused", "draining"))
        if pick.random() < 0.1:
            keys["idle_timeout"] = pick.choice((1000, 300_000_000))
        if not keys:
            self.target.peer.ask(Type.RECYCLE, name="default")
            return
        before = self.target.pool()
        try:
            self.target.set("default", **keys)
        except TargetError as error:
            assert error.code == "bad-value", error
            after = self.target.pool()
            assert all(
                after[key] == before[key] for key in ("min", "max", "active", "spares", "mode")
            )

    def look(self) -> None:
        pool = self.target.pool()
        assert pool["min"] <= pool["max"] and max(1, pool["min"]) <= pool["active"] <= pool["max"]
        # A slot that was taken away while at work stays until its job has ended.
        assert pool["busy"] <= max(self.most, pool["active"]), (pool, self.most)
        self.most = max(pool["busy"], pool["active"])


def test_changed_at_random(target: Live) -> None:
    changes = Changes(target)
    before = target.pool()["ended"]
    for _ in range(STEPS):
        changes.submit()
        changes.change()
        changes.look()
    target.set(
        "default", max=3, active=3, min=2, spares=1, idle_timeout=300_000_000, mode="running"
    )
    for job in changes.jobs:
        status = job.wait(DEADLINE_S)
        assert (status.state, status.attempt) == (JobState.COMPLETED, 1), f"IOSD_SEED={SEED}"

    def settled() -> bool:
        pool = target.pool()
        idle = (pool["busy"], pool["queued"], pool["ready"], pool["warming"]) == (0, 0, 3, 0)
        return idle and sum(pool["sandboxes"].values()) == 3  # those used last have gone

    until(settled)
    assert target.pool()["ended"] - before == len(changes.jobs), f"IOSD_SEED={SEED}"


def test_fewer_slots_than_jobs_at_work(target: Live) -> None:
    """None is taken from a job; the next starts when as many have ended as must."""
    target.set("default", max=6, active=6, min=1, spares=0)
    head, opened = gate(target)
    first = [run(target, head.format("print(1)")) for _ in range(6)]
    until(lambda: all(is_running(job) for job in first))
    more = [run(target, SLEEP) for _ in range(3)]
    target.set("default", max=2)
    assert target.pool()["busy"] == 6
    with pytest.raises(TargetError, match="64"):
        target.set("other", max=59)  # six are at work still
    opened()
    assert [job.wait(DEADLINE_S).attempt for job in first] == [1] * 6
    until(lambda: sum(is_running(job) for job in more) == 2)
    until(lambda: target.pool()["busy"] == 2)
    target.set("default", max=3)
    until(lambda: all(is_running(job) for job in more))
    target.set("other", max=59)
    target.set("other", max=1)
    for job in more:
        job.kill(DEADLINE_S)


def test_many_more_slots(target: Live) -> None:
    """More than the daemon's first configuration had."""
    target.set("default", max=20, active=20, min=0, spares=0)
    jobs = [run(target, SLEEP) for _ in range(20)]
    until(lambda: all(is_running(job) for job in jobs))
    for job in jobs:
        job.kill(DEADLINE_S)


def test_idle(target: Live) -> None:
    target.set("default", max=4, active=4, min=1, spares=3)
    until(lambda: target.pool()["ready"] == 4)
    target.set("default", idle_timeout=1000)
    until(lambda: target.pool()["ready"] == 1)
    assert run(target, "pass").wait(DEADLINE_S).state is JobState.COMPLETED
    target.set("default", idle_timeout=300_000_000)
    until(lambda: target.pool()["ready"] == 4)
    target.set("default", spares=0, min=2)
    until(lambda: target.pool()["ready"] == 2)


# ---- the file, and zygotes


def test_recycled(start: Any) -> None:
    """Kept and idle sandboxes are replaced, a job at work is not disturbed."""
    target = start("name=default;max=1;min=1;spares=2;reuse=trusted\n")
    head, opened = gate(target)
    run(target, "pass").wait(DEADLINE_S)
    working = run(target, head.format("print(1)"))
    until(lambda: is_running(working) and target.pool()["ready"] >= 2)
    made = target.pool()["sandbox_starts"]  # their numbers go from 1 on
    target.peer.ask(Type.RECYCLE, name="default")
    with pytest.raises(TargetError, match="absent"):
        target.peer.ask(Type.RECYCLE, name="absent")
    opened()
    status = working.wait(DEADLINE_S)
    assert (status.state, status.attempt) == (JobState.COMPLETED, 1)
    assert status.sandbox is not None and status.sandbox <= made
    until(lambda: (run(target, "pass").wait(DEADLINE_S).sandbox or 0) > made)
    until(lambda: target.pool()["ready"] >= 2)


def test_file_read_again(start: Any, folder: Path) -> None:
    old, new = (make(word, folder, {"word.py": f"WORD = '{word}'\n"}) for word in ("old", "new"))

    def words(found: Any) -> str:
        return f"name=words;max=2;spares=1;set={found.id};packages={found.folder};preload=word\n"

    target = start("name=default;max=2\nname=leaves;max=1\n" + words(old))
    head, opened = gate(target)
    until(lambda: all(pool.state == "serving" for pool in found(target).values()))
    working = [run(target, head.format(WORD), pool="words")]
    working += [run(target, head.format("print(1)"), pool="leaves") for _ in range(3)]
    until(lambda: is_running(working[0]) and is_running(working[1]))
    changed = target.reload("name=default;max=3\nname=comes;max=1\n" + words(new))
    assert "leaves: removed" in changed and "comes: new" in changed
    assert any(line.startswith("default: max 2 -> 3") for line in changed)
    assert run(target, WORD, pool="words").wait(DEADLINE_S).state is JobState.COMPLETED
    later = run(target, WORD, pool="words")
    assert later.wait(DEADLINE_S) and later.output() == b"new\n"
    assert run(target, "pass", pool="comes").wait(DEADLINE_S).state is JobState.COMPLETED
    assert found(target)["leaves"].state == "leaving"
    with pytest.raises(OSDError, match="no pool 'leaves'"):
        run(target, "pass", pool="leaves")
    opened()
    assert [job.wait(DEADLINE_S).attempt for job in working] == [1] * 4
    assert [job.output() for job in working] == [b"old\n"] + [b"1\n"] * 3
    until(lambda: "leaves" not in found(target))
    # A wrong request changes nothing. Changing the target first and then the daemon works as well.
    target.pools.write_text("name=default;max=65\n")
    with pytest.raises(TargetError, match="'max'"):
        target.peer.ask(Type.RELOAD)
    target.pools.write_text("name=default;max=3\nname=leaves;max=1\n" + words(old))
    assert "leaves: new" in target.peer.ask(Type.RELOAD)["changed"]
    target.hup()
    again = run(target, WORD, pool="words")
    assert again.wait(DEADLINE_S) and again.output() == b"old\n"
    assert run(target, "pass", pool="leaves").wait(DEADLINE_S).state is JobState.COMPLETED


def test_paused_and_draining(target: Live) -> None:
    target.set("default", mode="paused")
    waits = run(target, "print(1)")
    assert waits.status().reason == 115
    with pytest.raises(TargetBusy):
        run(target, "pass", wait=True)
    target.set("default", mode="draining")
    with pytest.raises(TargetBusy, match="'default' is draining"):
        run(target, "pass")
    assert waits.wait(DEADLINE_S).state is JobState.COMPLETED
    assert found(target)["default"].queued == 0
    target.set("default", mode="running")
    target.peer.ask(Type.SHED, on=1)
    with pytest.raises(TargetBusy):
        run(target, "pass")
    target.peer.ask(Type.SHED, on=0)
    assert run(target, "pass").wait(DEADLINE_S).state is JobState.COMPLETED
