# SPDX-License-Identifier: GPL-2.0-or-later
"""The resource manager and a whole target under it (reliability 37): sizes follow the load, and whatever
happens to either of them, jobs go on, nobody is managed twice, and both sides say what happened."""

from __future__ import annotations

import contextlib
import itertools
import math
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from iosd_host.common import places
from iosd_host.manager.client import ManagerAccess, ManagerClient
from iosd_host.manager.keys import read_key
from iosd_host.policy.follow import TURNS, WINDOW
from pyosd.jobs.job import Job
from pyosd.types import ObjectRef, ref
from pyosd.wire.job_status import JobState
from tests import warm
from tests.conftest import MakeHarness
from tests.harness import SOURCE
from tests.machine import unavailable
from tests.processes import long_lived
from tests.serving import Serving, arguments, missing, sandboxes_missing
from tests.waiting import until

pytestmark = pytest.mark.tgtd

DEADLINE_S = 60.0
CONFIG = """
[manager.workers]
min = 2
max = 6
patience = "10s"  # whatever else this host does
[manager.scale]
interval = "50ms"
wait_count = 2
cooldown = "200ms"
[pools.default]
min = 1
max = 4
warm_spare = 4
"""
BUSY = "import time\nend = time.monotonic() + {}\nwhile time.monotonic() < end: pass"
WAITING = "import osd, time\nwhile osd.userobject({}, {}).exists(): time.sleep(0.01)"


class Managed:
    """A target with its manager, an administrator, and a user."""

    def __init__(self, served: Serving) -> None:
        self.served = served
        self.session = served.connect()
        self.zone = ref(self.session.create_partition())
        self.event = served.event("managed", DEADLINE_S)

    def place(self) -> dict[str, Any]:
        """The manager's announcement."""
        url = self.event["manager"]["url"]
        return dict(
            until(lambda: [p for p in places.running(places.MANAGER) if p["url"] == url])[0]
        )

    @contextlib.contextmanager
    def asking(self) -> Iterator[ManagerClient]:
        place = self.place()
        key = read_key(Path(place["key_file"]))
        with ManagerClient(ManagerAccess(place["url"], place["key"], key)) as client:
            yield client

    def ask(self, method: str, **params: Any) -> dict[str, Any]:
        with self.asking() as client:
            return client.ask(method, **params)

    @property
    def status(self) -> dict[str, Any]:
        return dict(self.ask("status")["targets"][0])

    @property
    def pool(self) -> dict[str, Any]:
        return dict(until(lambda: self.status.get("pools"))[0])

    def log(self, *what: str) -> list[dict[str, Any]]:
        rows = self.ask("changes", most=1000)["changes"]
        return [row for row in rows if row["what"] in what]

    def mark(self) -> int:
        """The id of the newest change."""
        return max((row["id"] for row in self.ask("changes", most=1)["changes"]), default=0)

    def submit(self, count: int, seconds: float) -> list[Job]:
        return [self.session.exec(BUSY.format(seconds), zone=self.zone) for _ in range(count)]

    def submit_waiting(self, count: int) -> tuple[list[Job], ObjectRef]:
        """Jobs that end when somebody removes the object."""
        end = self.session.create(self.zone.partition_id)
        script = WAITING.format(end.partition_id, end.object_id)
        return [self.session.exec(script, zone=self.zone) for _ in range(count)], end

    def finish(self, jobs: list[Job]) -> None:
        """All of them come to their end, whatever was done meanwhile."""
        for job in jobs:
            status = job.wait(DEADLINE_S)
            assert status.state is JobState.COMPLETED, status


@pytest.fixture(scope="module")
def managed() -> Iterator[Managed]:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("tgtd", why)
    with tempfile.TemporaryDirectory(prefix="iosd-test-") as folder:
        config = Path(folder, "iosd.toml")
        config.write_text(CONFIG)
        words = [*arguments(), "--config", str(config)]
        with Serving(*words, manager=True) as served:
            long_lived.add(served.process.pid)
            found = Managed(served)
            yield found
            found.session.close()
        long_lived.discard(served.process.pid)


@pytest.fixture(autouse=True)
def as_configured(managed: Managed) -> Iterator[None]:
    """A test begins and ends with a pool that is as it was configured, and follows the load."""
    yield
    until(lambda: managed.status["role"] == "manager")
    if any(row["key"].startswith("pools.default.") for row in overrides(managed)):
        managed.ask("pool.reset", pool="default")


def overrides(managed: Managed) -> list[dict[str, Any]]:
    rows = managed.ask("config.show")["settings"]
    return [row for row in rows if row["origin"] == "live"]


def turns(sizes: list[int]) -> int:
    """How often a size changed its direction."""
    steps = [b - a for a, b in itertools.pairwise(sizes) if a != b]
    return sum(a * b < 0 for a, b in itertools.pairwise(steps))


def test_follows_the_load(managed: Managed) -> None:
    until(lambda: managed.pool["active"] == 1, "an idle pool has its least")
    since = managed.mark()
    jobs, end = managed.submit_waiting(20)
    until(lambda: managed.pool["active"] == 4, "jobs wait, so it grows")
    pool = managed.pool
    assert (pool["by"], "wait" in pool["why"]) == ("policy", True)
    managed.session.remove(end)
    managed.finish(jobs)
    until(lambda: managed.pool["active"] < 4, "nobody waits, so it shrinks")
    rows = managed.ask("changes", since=since, most=1000)["changes"]
    sizes = [1, *(row["is"]["active"] for row in rows if "active" in (row["is"] or {}))]
    assert turns(sizes) <= 2, sizes
    last = f"control: pool default: active={sizes[-2]} -> active={sizes[-1]}, by iosd-manager"
    until(lambda: last in managed.served.text(), last)
    assert finished(managed) >= 20


def finished(managed: Managed) -> int:
    """Jobs of all principals, in all runs of the target."""
    return sum(row["finished"] for row in managed.ask("pool.usage")["principals"])


def test_manager_killed(managed: Managed) -> None:
    """The target goes on; the next one knows what was set, and does not set it twice."""
    managed.ask("pool.scale", pool="default", active=3, why="before it is killed")
    jobs = managed.submit(6, 0.3)
    before = managed.served.pids["iosd-manager"]
    since = managed.mark()
    managed.served.kill("iosd-manager")
    assert managed.submit(1, 0)[0].wait(DEADLINE_S).state is JobState.COMPLETED
    managed.served.restarted()
    assert managed.served.pids["iosd-manager"] != before
    managed.finish(jobs)
    until(lambda: managed.status["role"] == "manager")
    assert managed.pool["active"] == 3
    assert not managed.pool["auto"]
    rows = managed.ask("changes", since=since)["changes"]
    # The load may have the policy change other sizes meanwhile.
    assert [row["what"] for row in rows if row["what"] != "policy"] == ["link"]
    assert not [row for row in rows if "active" in (row["is"] or {})]
    lost = "control: no resource manager any more"
    until(lambda: lost in managed.served.text(), lost)
    text = managed.served.text()
    assert f" (process {before}, user " in text and f"process {before} (" not in text


def test_target_killed(managed: Managed) -> None:
    """Values are set again; jobs still exist."""
    managed.ask("pool.set", pool="default", values={"max": "3", "queue": "50"})
    managed.ask("pool.scale", pool="default", active=2)
    [who] = {row["name"] for row in managed.ask("pool.usage")["principals"]}
    managed.ask("principal.set", principal=who, weight=7)
    before = finished(managed)
    jobs, end = managed.submit_waiting(4)
    boot = managed.status["boot"]
    since = managed.mark()
    managed.served.kill("tgtd")
    managed.served.restarted()
    until(lambda: managed.status["role"] == "manager" and managed.status["boot"] != boot)
    rows = until(lambda: found if len(found := restored(managed, since)) == 2 else None)
    assert rows[0]["is"] == {"active": "2", "max": "3", "queue": "50", "scale.auto": "false"}
    assert rows[1]["is"]["weight"] == 7
    until(lambda: (managed.pool["active"], managed.pool["max"]) == (2, 3))
    links = [row for row in managed.log("link") if row["id"] > since]
    assert [row["is"]["role"] for row in links] == ["lost", "manager"]
    managed.session.close()
    managed.session = managed.served.connect()
    managed.session.remove(end)
    for job in jobs:
        status = managed.session.job(job.id).wait(DEADLINE_S)
        assert status.state in (JobState.COMPLETED, JobState.SANDBOX_LOST)
    assert finished(managed) >= before + 4  # what was used before counts, too
    [row] = managed.ask("pool.usage")["principals"]
    assert (row["name"], row["weight"]) == (who, 7)


def restored(managed: Managed, since: int) -> list[dict[str, Any]]:
    rows = managed.ask("changes", since=since)["changes"]
    return [row for row in rows if row["what"] == "restored"]


def test_bounds_change_while_it_is_full(managed: Managed) -> None:
    jobs, end = managed.submit_waiting(40)
    until(lambda: managed.pool["active"] == 4)
    for least, most in ((1, 1), (2, 4), (1, 2), (3, 3), (1, 4)):
        managed.ask("pool.set", pool="default", values={"min": least, "max": most}, why="a test")
        until(partial(within, managed, least, most))
    with pytest.raises(Exception, match="64"):
        managed.ask("pool.set", pool="default", values={"max": 65})
    managed.session.remove(end)
    managed.finish(jobs)
    rows = managed.log("pool.set")[-5:]
    assert [row["is"]["max"] for row in rows] == ["1", "4", "2", "3", "4"]
    line = re.compile("control: pool default: .*max=4.* -> .*max=1.* for root")
    until(lambda: line.search(managed.served.text()), line.pattern)
    until(lambda: managed.pool["busy"] == 0)


def within(managed: Managed, least: int, most: int) -> bool:
    return least <= int(managed.pool["active"]) <= most


@contextlib.contextmanager
def another(
    managed: Managed, folder: Path
) -> Iterator[tuple[subprocess.Popen[bytes], ManagerClient]]:
    """A manager with a state of its own for the same target."""
    name = managed.ask("status")["targets"][0]["name"]
    control = Path(managed.event["control"]).parents[1] / "control" / "socket"
    process = launch(folder, "--target", f"{name}={control}")
    try:
        with client_of(folder) as client:
            yield process, client
    finally:
        process.terminate()
        assert process.wait(DEADLINE_S) == 0


def launch(folder: Path, *words: str) -> subprocess.Popen[bytes]:
    command = [sys.executable, "-m", "iosd_host", "--state", str(folder / "state")]
    command += ["--listen", f"ipc://{folder}/socket", "--announce", str(folder / "place"), *words]
    with (folder / "log").open("ab") as log:
        return warm.Python([*command, "--http", "none"], cwd=SOURCE, stderr=log)


def client_of(folder: Path) -> ManagerClient:
    until(lambda: (folder / "place").exists() and (folder / "place").stat().st_size)
    keys = folder / "state/keys"
    server = read_key(keys / "server.key").public
    return ManagerClient(
        ManagerAccess(f"ipc://{folder}/socket", server, read_key(keys / "local.key_secret"))
    )


def test_started_twice_and_stopped(managed: Managed, tmp_path: Path) -> None:
    """Of two only one changes anything; the other takes over from one that hangs, which finds out."""

    def role(client: ManagerClient) -> str:
        return str(client.ask("status")["targets"][0]["role"])

    with another(managed, tmp_path) as (_, second):
        until(lambda: role(second) == "standby")
        assert managed.status["role"] == "manager"
        with pytest.raises(Exception, match="another manager manages"):
            second.ask("pool.scale", pool="default", active=2)
        hung = managed.served.pids["iosd-manager"]
        jobs = managed.submit(10, 0.2)
        os.kill(hung, signal.SIGSTOP)
        try:
            until(lambda: role(second) == "manager")
            second.ask("pool.scale", pool="default", active=2, why="it hangs")
        finally:
            os.kill(hung, signal.SIGCONT)
        until(lambda: managed.status["role"] == "standby")
        until(lambda: managed.pool["active"] == 2, "it sees what the other one does")
        managed.finish(jobs)
        until(lambda: "has not been heard of" in managed.served.text())
    until(lambda: managed.status["role"] == "manager")  # the other one has ended
    roles = [row["is"]["role"] for row in managed.log("link")]
    assert roles[-3:] in (["manager", "standby", "manager"], ["lost", "standby", "manager"])


def test_waves(managed: Managed) -> None:
    """Square waves, a saw-tooth, one burst (reliability 36): every job ends in the sandbox in which it
    began, and the pool swings six times at most."""
    until(lambda: managed.pool["active"] == 1, "at its least, it has to grow")
    since, began = managed.mark(), time.monotonic()
    for count in (12, 0, 12, 0, 12, 1, 3, 6, 10, 40):
        jobs = managed.submit(count, 0.05)
        managed.finish(jobs)
        assert all(job.status().attempt == 1 for job in jobs)
        if not count:
            time.sleep(0.5)  # that is the load: nobody wants anything
    rows = managed.ask("changes", since=since, most=1000)["changes"]
    sizes = [row["is"]["active"] for row in rows if "active" in (row["is"] or {})]
    assert sizes and {*sizes} <= {1, 2, 3, 4}
    windows = math.ceil((time.monotonic() - began) / WINDOW)  # one, where nothing pauses the test
    assert turns(sizes) <= windows * TURNS, sizes


def test_two_targets(tmp_path: Path, make_harness: MakeHarness) -> None:
    harnesses = [make_harness(memory=1, control=tmp_path / name) for name in ("one", "two")]
    words = [word for name in ("one", "two") for word in ("--target", str(tmp_path / name))]
    process = launch(tmp_path, *words)
    try:
        with client_of(tmp_path) as client:

            def roles() -> list[str]:
                return [each["role"] for each in client.ask("status")["targets"]]

            until(lambda: roles() == ["manager", "manager"])
            client.ask("workers.set", target="two", count=3)
            until(lambda: workers(client.ask("status")["targets"][1]) == 3)
            os.kill(harnesses[0].pid, signal.SIGSTOP)  # one that hangs holds nobody up
            try:
                client.ask("workers.set", target="two", count=2)
            finally:
                os.kill(harnesses[0].pid, signal.SIGCONT)
            until(lambda: roles() == ["manager", "manager"])
    finally:
        process.terminate()
        assert process.wait(DEADLINE_S) == 0


def workers(target: dict[str, Any]) -> int | None:
    found = target.get("workers")
    return found and int(found["count"])
