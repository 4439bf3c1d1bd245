# SPDX-License-Identifier: GPL-2.0-or-later
"""The target's side of reuse: who gets a used sandbox, which ones are never used again, and that nobody
does unless it is asked for.  State that the second job finds: tests/sandbox/test_reuse.py.
"""

from __future__ import annotations

import os
import signal
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from pyosd import jobs
from pyosd.wire.exec_params import Limits
from pyosd.wire.job_status import JobState, JobStatus
from tests.jobs.conftest import DEADLINE_S, Target, skip_without_sandboxes
from tests.jobs.test_exec import is_running, run
from tests.processes import sandboxes_of
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pyosd.jobs.job import Job


@pytest.fixture
def reusing(tmp_path: Path) -> Iterator[Target]:
    skip_without_sandboxes()
    # One slot: the next job starts after the last one's sandbox was given back, not just its answer.
    running = Target(tmp_path, ";slots=1;reuse=trusted")
    yield running
    running.stop()


def is_at_rest(pid: int) -> bool:
    """Sleeps: neither runs nor waits for a processor or a disk, and nobody has stopped it."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except OSError:
        return True
    return stat.rpartition(")")[2].split()[0] in "SZ"


def ended(target: Target, job: Job) -> JobStatus:
    """And its sandbox is clean: one that takes long, as on a busy machine, is replaced."""
    status = job.wait(DEADLINE_S)
    assert status.sandbox
    # The sandbox is told to clean up a moment after the end, and sleeps until then.
    until(lambda: not any(pool.busy for pool in target.commands.pools()))
    assert target.daemon is not None
    daemon = target.daemon.pid
    until(lambda: all(map(is_at_rest, sandboxes_of(daemon))))
    return status


def ran(target: Target, code: str, **options: object) -> JobStatus:
    return ended(target, run(target, code, **options))


@pytest.mark.parametrize("options", ["", ";reuse=never", ";reuse=verified"])
def test_no_reuse_unless_asked_for_and_nobody_here_is_verified(
    tmp_path: Path, options: str
) -> None:
    skip_without_sandboxes()
    target = Target(tmp_path, options)
    seen = {ran(target, "pass").sandbox for _ in range(6)}
    target.stop()
    assert len(seen) == 6


def test_jobs_of_one_principal_share_a_sandbox(reusing: Target) -> None:
    statuses = []
    for i in range(20):
        code = f"import sys\nprint({i}, hasattr(sys, 'left'))\nsys.left = 1"
        job = run(reusing, code, name=f"{i}")
        status = ended(reusing, job)
        assert status.state == JobState.COMPLETED
        assert job.output() == f"{i} False\n".encode()
        statuses.append(status)
    assert len({status.sandbox for status in statuses}) == 1
    # Each counts its own processor time, not that of those before it.
    assert all(s.cpu_user + s.cpu_system < 0.5 for s in statuses)


def test_output_of_the_clean_up_belongs_to_nobody(reusing: Target) -> None:
    late = (
        "import osd, sys\n"
        "class Late:\n"
        "    def __del__(self):\n"
        "        sys.stdout.write('late ' * 1000)\n"
        "        sys.stdout.flush()\n"
        "        osd.progress(0.5, 'late')\n"
        "late = Late()\nlate.me = late\nprint('first')"
    )
    first = run(reusing, late)
    one = ended(reusing, first)
    second = run(reusing, "print('second')")
    two = ended(reusing, second)
    assert one.sandbox == two.sandbox
    assert (first.output(), second.output()) == (b"first\n", b"second\n")
    assert two.progress is None


def test_failures_of_the_script_do_not_end_its_sandbox(reusing: Target) -> None:
    one = ran(reusing, "1 / 0")
    two = ran(reusing, "import sys; sys.exit(3)")
    three = ran(reusing, "pass")
    assert (one.state, two.state, three.state) == (
        JobState.FAILED,
        JobState.FAILED,
        JobState.COMPLETED,
    )
    assert one.sandbox == two.sandbox == three.sandbox
    assert (two.exit_code, three.exit_code) == (3, 0)


@pytest.mark.parametrize(
    ("code", "limits"),
    [
        ("x = bytearray(1 << 40)", Limits()),
        ("while True: pass", Limits(cpu=0.2)),
        ("while True: print('x' * 99)", Limits(output=5000)),
        ("import os; os._exit(0)", Limits()),
        ("x = bytearray(64 << 20); x[::4096] = b'x' * len(x[::4096])", Limits()),
        ("import time, os; [os.times() for _ in range(100)]; time.sleep(60)", Limits(wall=0.2)),
    ],
    ids=["memory", "cpu", "output", "exit", "grown", "wall"],
)
def test_a_sandbox_that_met_a_limit_is_not_used_again(
    reusing: Target, code: str, limits: Limits
) -> None:
    one = ran(reusing, code, limits=limits)
    two = ran(reusing, "pass", limits=limits)
    assert one.sandbox != two.sandbox
    assert two.state == JobState.COMPLETED


def test_a_killed_job_ends_its_sandbox_even_when_it_cleans_up(reusing: Target) -> None:
    polite = "import osd, time\ntry:\n    time.sleep(600)\nexcept osd.Ended:\n    print('bye')\n"
    job = run(reusing, polite)
    until(lambda: is_running(job))
    assert job.kill(DEADLINE_S) == JobState.CANCELLED
    killed = job.wait(DEADLINE_S)
    assert killed.state == JobState.CANCELLED
    assert ran(reusing, "pass").sandbox != killed.sandbox


def test_other_limits_get_another_sandbox(reusing: Target) -> None:
    limits = Limits(mem=64 << 20)
    usual = ran(reusing, "pass")
    small = ran(reusing, "pass", limits=limits)
    assert usual.sandbox != small.sandbox
    assert ran(reusing, "pass", limits=limits).sandbox == small.sandbox
    assert ran(reusing, "pass").sandbox != small.sandbox


def test_what_cannot_be_undone_costs_the_next_job_only_a_new_sandbox(reusing: Target) -> None:
    one = ran(reusing, "import sys; sys.addaudithook(lambda *a: None)")
    two = ran(reusing, "print('fine')")
    assert two.state == JobState.COMPLETED and two.attempt == 1
    assert one.sandbox != two.sandbox


def test_a_clean_up_that_never_ends_does_not_hold_up_the_next_job(reusing: Target) -> None:
    stuck = "class Late:\n    def __del__(self):\n        while True: pass\nlate = Late()"
    one = ran(reusing, stuck)
    two = ran(reusing, "pass")
    assert (one.state, two.state) == (JobState.COMPLETED, JobState.COMPLETED)
    assert one.sandbox != two.sandbox and two.attempt == 1


def test_a_kept_sandbox_that_dies_is_not_missed(reusing: Target) -> None:
    ran(reusing, "pass")
    assert reusing.daemon is not None
    for pid in sandboxes_of(reusing.daemon.pid):
        os.kill(pid, signal.SIGKILL)
    status = ran(reusing, "pass")
    assert status.state == JobState.COMPLETED


def test_many_at_once_all_end_well(reusing: Target) -> None:
    started = [
        jobs.submit(reusing.commands, f"print({i})", zone=reusing.partition) for i in range(200)
    ]
    for i, job in enumerate(started):
        assert job.wait(DEADLINE_S).state == JobState.COMPLETED
        assert job.output() == f"{i}\n".encode()
    assert len({job.status().sandbox for job in started}) < len(started)
