# SPDX-License-Identifier: GPL-2.0-or-later
"""The target's side of pools: a file tells them, jobs outlive them, each has its own sandboxes."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from pyosd.commands.pool_status import PoolStatus
from pyosd.jobs.job import Job
from pyosd.wire.job_status import JobState, JobStatus
from tests.jobs.conftest import DEADLINE_S, HARNESS, Target, skip_without_sandboxes
from tests.jobs.test_exec import SLEEP, is_running, run
from tests.jobs.test_reuse import ran as ran_and_cleaned
from tests.waiting import until

Start = Callable[[str], Target]


@pytest.fixture
def start(tmp_path: Path) -> Iterator[Start]:
    """A target with the pools of this file; the daemon knows pools one and two."""
    skip_without_sandboxes()
    running: list[Target] = []

    class Pools(Target):
        daemon_options = ("--pool", "one", "--pool", "two")

    def start(lines: str) -> Target:
        file = tmp_path / "pools"
        file.write_text(lines)
        running.append(Pools(tmp_path, f";pools={file}"))
        return running[-1]

    yield start
    for each in running:
        each.stop()


def start_again(target: Target, lines: str) -> None:
    target.kill()
    (target.folder / "pools").write_text(lines)
    target.start()


def found(target: Target) -> dict[str, PoolStatus]:
    return {pool.name: pool for pool in target.commands.pools()}


def ran(target: Target, code: str = "pass", **options: object) -> JobStatus:
    status = run(target, code, **options).wait(DEADLINE_S)
    assert status.state is JobState.COMPLETED
    return status


def test_jobs_outlive_their_pool(start: Start) -> None:
    target = start("name=one;max=1\n")
    first = run(target, "print(1)", pool="one", hold=True)
    start_again(target, "")
    gone = Job(target.commands, first.id)
    assert found(target)["one"].state == "gone"
    gone.release()
    status = gone.status()
    assert (status.state, status.reason, status.pool) == (JobState.QUEUED, 113, "one")
    assert "no pool of this name is configured now" in status.hint
    with pytest.raises(Exception, match="no pool 'one'; it has: default"):
        run(target, "print(2)", pool="one")
    assert ran(target).attempt == 1
    start_again(target, "name=one;max=1\n")
    assert Job(target.commands, first.id).wait(DEADLINE_S).state is JobState.COMPLETED
    assert found(target)["one"].state == "serving"


def test_a_pool_may_sleep(start: Start) -> None:
    """Without min and spares no sandbox is prestarted, and a job still gets one."""
    target = start("name=default;max=2;min=0;spares=0\n")
    until(lambda: found(target)["default"].state == "serving")
    assert found(target)["default"].ready == 0
    assert len({ran(target).sandbox for _ in range(3)}) == 3
    until(lambda: found(target)["default"].ready == 0)


def test_slots_are_a_pools_own(start: Start) -> None:
    target = start("name=one;max=1;spares=0\nname=two;max=2;spares=0\nname=default;max=1\n")
    sleeping = [run(target, SLEEP, pool=name) for name in ("one", "two", "two")]
    until(lambda: all(is_running(job) for job in sleeping))
    waits = [run(target, SLEEP, pool=name) for name in ("one", "two")]
    ran(target)

    def counts() -> dict[str, tuple[int, int]]:
        return {name: (pool.busy, pool.queued) for name, pool in found(target).items()}

    # The sandbox of the job that has ended may not be gone yet.
    until(
        lambda: counts() == {"default": (0, 0), "one": (1, 1), "two": (2, 1)}, lambda: f"{counts()}"
    )
    assert all(job.status().state is JobState.QUEUED for job in waits)
    for job in (*waits, *sleeping):
        job.kill(DEADLINE_S)
    until(lambda: found(target)["two"].busy == 0)


def test_reuse_is_a_pools_own(start: Start) -> None:
    target = start("name=one;max=1;reuse=trusted\nname=default;max=1\n")
    kept = [ran_and_cleaned(target, "pass", pool="one").sandbox for _ in range(3)]
    assert len(set(kept)) == 1
    pristine = [ran(target).sandbox for _ in range(3)]
    assert len({*kept, *pristine}) == 4
    assert ran(target, pool="one").sandbox == kept[0]


def test_the_daemon_must_have_the_same_set(start: Start) -> None:
    target = start("name=one;max=1;set=tools-0123\n")
    job = run(target, "pass", pool="one")
    until(lambda: job.status().reason == 113)
    assert "iosd-sandboxd has another package set for it" in job.status().hint
    job.kill(DEADLINE_S)


def test_a_pool_the_daemon_does_not_know_waits(start: Start) -> None:
    target = start("name=three;max=1\n")
    job = run(target, "pass", pool="three")
    ran(target)
    assert found(target)["three"].state == "starting"
    assert job.status().state is JobState.QUEUED
    job.kill(DEADLINE_S)


@pytest.mark.parametrize(
    ("lines", "words"),
    [
        ("budget=1073741824\nname=one;max=5;memory_max=268435456\n", "may need "),
        ("name=one;maxx=5\n", "line 1: unknown key, or a value out of range: 'maxx'"),
    ],
)
def test_a_target_does_not_start_with_wrong_pools(tmp_path: Path, lines: str, words: str) -> None:
    file = tmp_path / "pools"
    file.write_text(lines)
    done = subprocess.run(
        [HARNESS, f"memory=1;pools={file}"],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode != 0 and words in done.stderr
    if "budget" in lines:
        assert "the budget is 1024 MiB: default" in done.stderr and "one 5 x 256 MiB" in done.stderr
