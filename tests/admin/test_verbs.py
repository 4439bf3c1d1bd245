# SPDX-License-Identifier: GPL-2.0-or-later
"""Each verb of administrators, from the command line through the manager to a target that serves."""

from __future__ import annotations

import json
import os
import re
import signal
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import click
import pytest

import pyosd
from iosd_host.common import places
from iosd_host.manager.client import ManagerClient, ManagerError
from pyosd.cli import main
from pyosd.wire.job_status import JobState
from tests.admin.conftest import DEADLINE_S, Alone, Run
from tests.machine import unavailable
from tests.serving import Serving, arguments, missing, sandboxes_missing, shared
from tests.waiting import until

# Pools keep their size, however long the tests before have taken: without jobs they would shrink, and where
# commands wait they would give way.
FILE = """
[target]
memory_budget = "8GiB"
[manager.workers]
patience = "10s"
[manager.scale]
wait_count = 1000
[pools.default]
max = 3
[pools.other]
max = 2
min = 0
"""
WAITS = "import time\nwhile True: time.sleep(0.01)\n"


@pytest.fixture(scope="module")
def managed() -> Iterator[Serving]:
    """A target with a resource manager, for all tests of this file."""
    why = missing() or sandboxes_missing()
    if why:
        unavailable("tgtd", why)
    with tempfile.TemporaryDirectory(
        prefix="iosd-test-"
    ) as name:  # pytest's are closed to its user
        folder = Path(name)
        folder.chmod(0o755)
        (folder / "iosd.toml").write_text(FILE)
        words = arguments(["--config", str(folder / "iosd.toml")])
        run = {"IOSD_RUN": str(folder / "run")}
        with shared(*words, environment=run, manager=True) as served:
            served.event("managed", DEADLINE_S)
            with served.connect() as session:
                wait_until(lambda: all(p.state == "serving" for p in session.pools()), served)
            yield served


def configuration(served: Serving) -> Path:
    """Its file."""
    words = served.process.args
    assert isinstance(words, list)
    return Path(words[words.index("--config") + 1])


@pytest.fixture
def osd(managed: Serving, osd: Run, monkeypatch: pytest.MonkeyPatch) -> Run:
    """As `osd` of this folder, for the managed target; nothing is set of its pools."""
    monkeypatch.setenv("IOSD_RUN", str(configuration(managed).parent / "run"))
    monkeypatch.setenv("IOSD_TARGET", managed.url)
    wait_until(lambda: pools(osd), managed)
    rows = json.loads(osd("config", "show", "-o", "json").stdout)["settings"]
    live = {row["key"].split(".")[1] for row in rows if row["origin"] == "live"}
    for name in live & {"default", "other"}:
        osd("pool", "reset", name)
    return osd


@pytest.fixture
def target(managed: Serving) -> Iterator[pyosd.Target]:
    with managed.connect() as session:
        yield session


def wait_until(true: Callable[[], object], served: Serving) -> None:
    until(true, lambda: served.text()[-3000:], pause=0.05)  # most start a program


def status(osd: Run) -> dict[str, Any]:
    """The target's part of `osd manager status`."""
    return dict(json.loads(osd("manager", "status", "-o", "json").stdout)["targets"][0])


def pools(osd: Run) -> dict[str, dict[str, Any]]:
    return {each["name"]: each for each in status(osd).get("pools", [])}


def shown(osd: Run, name: str) -> dict[str, Any]:
    """A pool as its users see it."""
    return dict(json.loads(osd("pool", "show", name, "-o", "json").stdout))


def newest(osd: Run) -> dict[str, Any]:
    """The last change that somebody made."""
    rows = json.loads(osd("manager", "changes", "-o", "json").stdout)["changes"]
    return next(row for row in reversed(rows) if "(local)" in row["by"])


# ---- pools ----


def test_set(osd: Run) -> None:
    words = ("pool", "set", "default", "max=5", "limits.mem=200MiB", "scale.cooldown=2s")
    said = "pool default: max 3 -> 5, limits.mem 256MiB -> 200MiB, scale.cooldown 5s -> 2s; "
    assert osd(*words, "--dry-run").stdout == f"{said}nothing was changed\n"
    assert shown(osd, "default")["max"] == 3
    done = osd(*words, "--why", "more users").stdout
    assert done == f"{said}takes effect as jobs arrive; for jobs that come from now on\n"
    now = shown(osd, "default")
    assert (now["max"], now["limits"]["memory"]) == (5, 200 << 20)
    assert osd("pool", "set", "default", "max=5").stdout == "pool default: max is 5 already\n"

    line = newest(osd)
    assert (line["what"], line["pool"], line["was"], line["is"]) == (
        *("pool.set", "default", {"max": "5"}, {"max": "5"}),
    )
    text = osd("config", "show", "--origin").stdout.splitlines()
    [row] = [each for each in text if each.startswith("pools.default.limits.mem ")]
    assert "# live, root (local), " in row and row.endswith(": more users; configured 256MiB")
    osd("pool", "reset", "default", "max")
    assert (
        shown(osd, "default")["max"] == 3 and shown(osd, "default")["limits"]["memory"] == 200 << 20
    )
    found = json.loads(osd("pool", "reset", "default", "-o", "json").stdout)
    assert (found["schema"], found["is"]) == (
        *("iosd.change/1", {"limits.mem": "256MiB", "scale.cooldown": "5s"}),
    )


WRONG = [
    (("set", "nix", "max=2"), 66, "no pool 'nix'\n  there are: default, other"),
    (("set", "default", "maxx=2"), 78, "no such key: 'maxx'; did you mean 'max'?"),
    (("set", "default", "max=0"), 78, "max must be a whole number from 1 to 64"),
    (("set", "default", "max=63"), 78, "slots together, at most 64"),
    (("set", "default", "packages=numpy"), 78, "then 'osd config reload'"),
    (("set", "default", "limits.mem=100"), 78, "limits.mem must be a size with a unit"),
    (("set", "default", "max"), 2, "'max' has no value: write KEY=VALUE"),
    (("set", "nix", "max=2", "--dry-run"), 66, "no pool 'nix'"),
    (("scale", "default", "9"), 78, "active"),
    (("scale", "nix", "1"), 66, "no pool 'nix'"),
    (("scale", "default"), 2, "say N, or --auto"),
    (("scale", "default", "2", "--auto"), 2, "either N"),
    (("scale", "default", "--min", "9"), 78, "min"),
    (("drain", "nix"), 66, "no pool 'nix'"),
    (("recycle", "nix"), 66, "no pool 'nix'"),
    (("reset", "default", "max"), 78, "'max' of pool 'default' is as configured"),
    (("share", "alice"), 2, "say --weight, --queue or --at-once"),
    (("share", "alice", "--weight", "2", "--reset"), 2, "or --reset alone"),
    (("share", "alice", "--weight", "0"), 2, "1<=x<=1000"),
    (("usage", "--target", "elsewhere"), 66, "no target 'elsewhere'\n  there are: iqn."),
]


def test_what_cannot_be(osd: Run) -> None:
    for words, code, told in WRONG:
        done = osd("pool", *words, code=code)
        assert told in done.stderr and not done.stdout, words


def test_scale(osd: Run, managed: Serving) -> None:
    done = osd("pool", "scale", "default", 1, "--why", "quiet").stdout
    assert re.search("active [23] -> 1;", done) and done.endswith(
        "; running jobs continue to their end\n"
    )
    assert shown(osd, "default")["active"] == 1
    wait_until(lambda: pools(osd)["default"]["active"] == 1, managed)
    found = pools(osd)["default"]
    assert (found["auto"], found["why"]) == (False, "quiet")
    assert "  default has 1 for " in osd("manager", "status").stdout
    assert "active 1 -> as the load needs" in osd("pool", "scale", "default", "--auto").stdout
    osd("pool", "scale", "default", "--min", 2, "--max", 4)
    now = shown(osd, "default")
    assert (now["min"], now["max"]) == (2, 4) and pools(osd)["default"]["auto"]


def test_pause_and_resume(osd: Run, target: pyosd.Target) -> None:
    pid = target.create_partition()
    done = osd("pool", "pause", "other").stdout
    assert done == "pool other: mode running -> paused; running jobs continue, others wait\n"
    job = target.exec("print(1)", zone=pyosd.ref(pid), pool="other")
    assert osd("pool", "ls").stdout.splitlines()[2].split()[:2] == ["other", "paused"]
    assert "other paused 0/2, 1 queued" in osd("top", "--once").stdout
    assert job.status().state is JobState.QUEUED
    osd("pool", "resume", "other")
    job.result(timeout=DEADLINE_S)
    assert shown(osd, "other")["mode"] == "running"


def test_drain(osd: Run, target: pyosd.Target) -> None:
    pid = target.create_partition()
    job = target.exec(WAITS, zone=pyosd.ref(pid), pool="other")
    until(lambda: job.status().state is JobState.RUNNING)
    over = osd("pool", "drain", "other", "--longest", "200ms", code=124)
    assert (
        "mode running -> draining" in over.stdout
        and "1 running, 0 waiting or held still" in over.stderr
    )
    with pytest.raises(pyosd.TargetBusy):
        target.exec("print(1)", zone=pyosd.ref(pid), pool="other")
    job.kill()
    osd("pool", "drain", "other", "--wait")
    assert osd("pool", "resume", "other").stdout.startswith("pool other: mode draining -> running")
    target.exec("print(1)", zone=pyosd.ref(pid), pool="other").result(timeout=DEADLINE_S)


def test_drain_waits_for_held_jobs(osd: Run, target: pyosd.Target) -> None:
    pid = target.create_partition()
    job = target.exec("print(1)", zone=pyosd.ref(pid), pool="other", hold=True)
    over = osd("pool", "drain", "other", "--longest", "200ms", code=124)
    assert "0 running, 1 waiting or held still" in over.stderr
    job.release()
    osd("pool", "drain", "other", "--wait")
    assert job.status().state is JobState.COMPLETED
    osd("pool", "resume", "other")


def test_recycle(osd: Run, managed: Serving, target: pyosd.Target) -> None:
    """Another process forks the pool's sandboxes."""
    pid = target.create_partition()
    target.exec("print(1)", zone=pyosd.ref(pid), pool="other").result(timeout=DEADLINE_S)
    wait_until(lambda: shown(osd, "other")["ready"], managed)  # and it stays, without jobs
    before = managed.everything()
    done = osd("pool", "recycle", "other").stdout
    assert done == "pool other: done; idle sandboxes are replaced now, others after their job\n"
    wait_until(lambda: len(before - managed.everything()) >= 2, managed)  # a zygote, and sandboxes
    target.exec("print(1)", zone=pyosd.ref(pid), pool="other").result(timeout=DEADLINE_S)


def test_usage_and_share(osd: Run, target: pyosd.Target) -> None:
    pid = target.create_partition()
    target.exec("print(1)", zone=pyosd.ref(pid)).result(timeout=DEADLINE_S)
    rows = json.loads(osd("pool", "usage", "-o", "json").stdout)["principals"]
    mine = max(rows, key=lambda row: row["finished"])
    assert mine["schema"] == "iosd.usage/1" and mine["finished"] >= 1 and mine["run_seconds"] > 0
    done = osd("pool", "share", mine["id"], "--weight", 3, "--at-once", 2, "--why", "pays").stdout
    assert done.startswith(f"principal {mine['id']}: weight 1 -> 3, ") and "at_once 0 -> 2" in done
    rows = json.loads(osd("pool", "usage", "--sort", "cpu", "-o", "json").stdout)["principals"]
    now = next(row for row in rows if row["id"] == mine["id"])
    assert (now["weight"], now["at_once"]) == (3, 2)
    assert osd("pool", "usage", "-o", "id").stdout.splitlines().count(mine["id"]) == 1
    assert "weight 3 -> 1" in osd("pool", "share", mine["id"], "--reset").stdout


# ---- the rest ----


def test_workers(osd: Run, managed: Serving) -> None:
    assert osd("target", "workers", 3).stdout.startswith("workers: count ")
    wait_until(lambda: status(osd)["workers"]["count"] == 3, managed)
    text = osd("manager", "status").stdout
    assert re.search(r"  workers 3, \d to \d+, set by an administrator; ", text)
    most = status(osd)["workers"]["max"]
    osd("target", "workers", "--auto", "--min", 2, "--max", 6)
    found = status(osd)["workers"]
    assert (found["min"], found["max"], found["auto"]) == (2, 6, True)
    assert f"max 6 -> {most}" in osd("target", "workers", "--reset").stdout
    assert status(osd)["workers"]["max"] == most
    for words in ((), (3, "--auto"), (0,), (65,), (3, "--reset")):
        osd("target", "workers", *words, code=2)
    assert "min is above max" in osd("target", "workers", "--min", 9, code=78).stderr


def test_history(osd: Run) -> None:
    found = json.loads(osd("pool", "history", "default", "--since", "2h", "-o", "json").stdout)
    assert found["schema"] == "iosd.loads/1"
    assert {row["pool"] for row in found["loads"]} <= {"default"}
    assert osd("pool", "history").stdout.startswith("WHEN  ")
    osd("pool", "history", "--since", "soon", code=2)


def test_changes(osd: Run) -> None:
    osd("pool", "set", "other", "queue=77", "--why", "a test of the log")
    words = ("--who", "people", "--pool", "other", "--no-header")  # the policy may act meanwhile
    [row] = osd("manager", "changes", "-n", 1, *words).stdout.splitlines()
    assert row.endswith("other  pool.set  queue 10000 -> 77  a test of the log")
    last = newest(osd)["id"]
    after = json.loads(osd("manager", "changes", "--after", last, "-o", "json").stdout)
    assert all(each["id"] > last for each in after["changes"])
    for who, policy in (("people", {False}), ("policy", {True})):
        rows = json.loads(osd("manager", "changes", "--who", who, "-n", 99, "-o", "json").stdout)
        assert {each["by"] == "policy" for each in rows["changes"]} <= policy
    mine = json.loads(osd("manager", "changes", "--who", "people", "-o", "json").stdout)["changes"]
    name = mine[-1]["by"].partition(" (")[0]
    named = json.loads(osd("manager", "changes", "--who", name, "-o", "json").stdout)["changes"]
    assert named and {each["by"].partition(" (")[0] for each in named} == {name}
    nobody = json.loads(osd("manager", "changes", "--who", "nobody", "-o", "json").stdout)
    assert nobody["changes"] == []


def test_completion_of_pools(osd: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    from click.shell_completion import BashComplete

    def complete(words: str, incomplete: str) -> list[str]:
        bash = BashComplete(main, {}, "osd", "_OSD_COMPLETE")
        return [each.value for each in bash.get_completions(words.split(), incomplete)]

    until(lambda: complete("pool drain", "o") == ["other"])  # a slow answer completes nothing
    assert {"drain", "ls", "share"} <= {*complete("pool", "")}
    monkeypatch.setenv("IOSD_RUN", "/nowhere")
    assert complete("pool drain", "o") == []


def test_two_managers_run(
    osd: Run, managed: Serving, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The URL of a target selects the manager of this target."""
    other = Alone(tmp_path / "other", configuration(managed).parent / "run")
    pid = managed.pids["iosd-manager"]

    def asked(*words: str) -> int:
        found = json.loads(osd("manager", "status", *words, "-o", "json").stdout)
        return int(found["manager"]["pid"])

    assert asked() == asked("--target", managed.url) == pid  # as IOSD_TARGET says, too
    assert osd("config", "show").stderr.startswith("asked the resource manager at ipc://")
    monkeypatch.delenv("IOSD_TARGET")
    words = osd("manager", "status", "--target", "lab", code=2).stderr
    assert "more than one resource manager" in words
    urls = [line.split()[0] for line in words.splitlines()[1:]]
    assert len(urls) == 2 and other.url in urls
    assert {asked("--manager", url) for url in urls} == {pid, other.process.pid}
    other.stop()


def test_a_viewer_looks(osd: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    key = tmp_path / "eve.key_secret"
    osd("manager", "keys", "add", "eve", "--viewer", "--file", key)
    monkeypatch.setenv("IOSD_MANAGER_KEY", str(key))
    for noun, verb in (("manager", "status"), ("config", "show"), ("pool", "history")):
        osd(noun, verb)
    for words in (("pool", "drain", "other"), ("target", "workers", "2")):
        assert "'eve' has read access only" in osd(*words, code=77).stderr
    monkeypatch.delenv("IOSD_MANAGER_KEY")
    osd("manager", "keys", "rm", "eve")


def test_every_verb_says_who_and_why() -> None:
    """A verb that changes something takes --why; all take the manager's flags."""

    def leaves(group: click.Group) -> Iterator[click.Command]:
        context = click.Context(group)
        for name in group.list_commands(context):
            command = group.get_command(context, name)
            assert command is not None
            yield from leaves(command) if isinstance(command, click.Group) else [command]

    brought = [
        each for each in leaves(main) if type(each).__name__ in ("AdminChange", "AdminListing")
    ]
    ours = [each for each in brought if type(each).__module__ == "iosd_host.cli.verb"]
    assert len(ours) >= 17
    for each in ours:
        flags = {flag for param in each.params for flag in param.opts}
        assert {"--manager", "--key", "--target", "-o", "-q"} <= flags, each.name
        assert ("--why" in flags) == (type(each).__name__ == "AdminChange"), each.name


# ---- the configuration ----


def test_a_reload_adds_a_pool_whose_jobs_run(
    osd: Run, managed: Serving, target: pyosd.Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    file, pid = configuration(managed), target.create_partition()
    osd("pool", "set", "other", "queue=77", "--why", "kept over a reload")
    file.write_text(FILE.replace("max = 3", "max = 4") + "[pools.new]\nmax = 1\n")
    done = osd("config", "reload", "--why", "a new pool").stdout.splitlines()
    assert {"pool new: added", "pools.default.max: 3 -> 4"} <= {*done}
    target.exec("print(1)", zone=pyosd.ref(pid), pool="new").result(timeout=DEADLINE_S)
    assert (shown(osd, "default")["max"], shown(osd, "other")["queue"]) == (4, 77)
    line = newest(osd)
    assert (line["what"], line["why"]) == ("config.reload", "a new pool")
    assert line["is"]["pool new"] == "there"

    # Through the manager, as from another host; and one that is wrong.
    url = json.loads(osd("manager", "status", "-o", "json").stdout)["manager"]["url"]
    file.write_text(FILE + "[pools.new]\nmax = 1\nmaxx = 2\n")
    assert "did you mean 'max'" in osd("config", "reload", "--manager", url, code=78).stderr
    assert shown(osd, "default")["max"] == 4
    job = target.exec(WAITS, zone=pyosd.ref(pid), pool="new")
    until(lambda: job.status().state is JobState.RUNNING)

    # A limit that only the target knows: a job runs in a pool that should be removed.
    file.write_text(FILE.replace("max = 3", "max = 30"))
    refused = osd("config", "reload", code=78).stderr
    assert "the budget is 8192 MiB" in refused and refused.endswith("; nothing has changed\n")
    [place] = places.running(places.TARGET)
    assert "name=new;" in Path(place["socket"]).with_name("pools").read_text()
    assert "pools.new.max" in {row["key"] for row in place["settings"]}
    target.exec("print(1)", zone=pyosd.ref(pid), pool="default").result(timeout=DEADLINE_S)
    assert shown(osd, "default")["max"] == 4

    file.write_text(FILE)
    done = osd("config", "reload", "--manager", url).stdout.splitlines()
    assert {"pool new: removed; it ends with its last job", "pools.default.max: 4 -> 3"} <= {*done}
    with pytest.raises(pyosd.OSDError):
        target.exec("print(1)", zone=pyosd.ref(pid), pool="new")
    assert job.status().state is JobState.RUNNING
    job.kill()
    wait_until(lambda: "new" not in osd("pool", "ls", "-o", "id").stdout.split(), managed)


def test_a_reload_by_signal_reaches_the_manager(osd: Run, managed: Serving) -> None:
    file, before = configuration(managed), status(osd)["workers"]["max"]
    changed = FILE.replace("patience", "max = 5\npatience")
    file.write_text(changed.replace("wait_count", "cooldown = '3s'\nwait_count"))
    os.kill(managed.process.pid, signal.SIGHUP)
    wait_until(lambda: status(osd)["workers"]["max"] == 5, managed)
    now = {
        row["key"]: row["value"]
        for row in json.loads(osd("config", "show", "-o", "json").stdout)["settings"]
    }
    assert now["pools.other.scale.cooldown"] == "3s"
    file.write_text(FILE)
    osd("config", "reload")
    # If the manager was stopped for longer than its lease, it hears of this by a signal.
    wait_until(lambda: status(osd)["workers"]["max"] == before, managed)


def test_a_manager_that_lost_its_place_hears_of_a_reload(osd: Run, managed: Serving) -> None:
    """It was stopped for longer than its lease, as on a busy host, and managed by what was before."""
    file, before = configuration(managed), status(osd)["workers"]["max"]
    lost = managed.text().count("has not been heard of")
    os.kill(managed.pids["iosd-manager"], signal.SIGSTOP)
    try:
        wait_until(lambda: managed.text().count("has not been heard of") > lost, managed)
        file.write_text(FILE.replace("patience", "max = 5\npatience"))
        assert f"manager.workers.max: {before} -> 5" in osd("config", "reload").stdout
    finally:
        os.kill(managed.pids["iosd-manager"], signal.SIGCONT)
    wait_until(lambda: status(osd)["workers"]["max"] == 5, managed)
    file.write_text(FILE)
    osd("config", "reload")
    wait_until(lambda: status(osd)["workers"]["max"] == before, managed)


def test_without_a_manager_it_is_reloaded_too(osd: Run, managed: Serving) -> None:
    """The manager is killed: the target takes it from a tool; the next manager finds what holds."""
    file = configuration(managed)
    osd("pool", "set", "other", "queue=55")
    os.kill(managed.pids["iosd-manager"], signal.SIGKILL)
    file.write_text(FILE.replace("max = 3", "max = 2"))
    # A request waits for the next manager, unless none is to be found.
    found: list[ManagerClient] = []

    def finds() -> bool:
        with suppress(ManagerError):
            found.append(ManagerClient.find(timeout_s=DEADLINE_S, target=managed.url))
        return bool(found)

    wait_until(finds, managed)
    with found[0] as manager:
        assert manager.ask("status")["manager"]["pid"] != managed.pids["iosd-manager"]
    managed.event("restarted", DEADLINE_S)
    osd("config", "reload")
    wait_until(lambda: shown(osd, "other")["queue"] == 55, managed)
    assert shown(osd, "default")["max"] == 2
    file.write_text(FILE)
    osd("config", "reload")
