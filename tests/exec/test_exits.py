# SPDX-License-Identifier: GPL-2.0-or-later
"""Further properties of ends of scripts: output, messages, leftovers.  The ends: hostile.py."""

from __future__ import annotations

from pathlib import Path

import pytest

import pyosd
from pyosd.types import ObjectRef
from pyosd.wire.job_status import JobFlag, JobState
from tests.exec.conftest import WAIT_S, Run, ended
from tests.exec.test_hostile import Host
from tests.processes import descendants
from tests.serving import Serving

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

OK, LIMIT = JobState.COMPLETED, JobState.LIMIT_EXCEEDED


def test_output_is_byte_for_byte(run: Run, target: pyosd.Target) -> None:
    status = run("import sys; sys.stdout.buffer.write(bytes(range(256)) * 1000)")
    assert target.read_range(status.id) == bytes(range(256)) * 1000
    assert status.stdout_length == 256_000


def test_words_of_the_exit_are_on_stderr(run: Run, target: pyosd.Target) -> None:
    status = run("raise SystemExit('bad input')")
    assert b"bad input" in target.job(status.id).stderr()


def test_prints_without_end(run: Run, target: pyosd.Target) -> None:
    status = run("while True: print('x' * 1000)", limits=pyosd.Limits(wall=20.0, output="1MiB"))
    ended(status, LIMIT, 304)
    assert status.flags & JobFlag.STDOUT_CUT
    assert status.stdout_length == target.length(status.id) == 1 << 20


def test_prints_errors_without_end(run: Run, target: pyosd.Target) -> None:
    """stderr keeps its first 20 and last 40 KiB, and ends nothing."""
    status = run(
        """
        import sys
        for n in range(20_000):
            sys.stderr.write(f"line {n:6}\\n")
        """
    )
    ended(status, OK, 0)
    assert status.flags & JobFlag.STDERR_CUT
    assert status.stderr_length == 20_000 * 12
    kept = target.job(status.id).stderr()
    assert kept.startswith(b"line      0\n")
    assert kept.endswith(b"line  19999\n")
    assert len(kept) <= 61 << 10


def test_the_next_job_knows_nothing_of_the_last(run: Run, target: pyosd.Target) -> None:
    """Every job gets a pristine interpreter."""
    run(
        """
        import builtins, sys, os
        builtins.planted = "secret of A"
        sys.modules["planted"] = sys
        os.environ["PLANTED"] = "secret of A"
        len = None
        """
    )
    status = run(
        """
        import builtins, sys, os
        print(hasattr(builtins, "planted"), "planted" in sys.modules, "PLANTED" in os.environ)
        """
    )
    assert target.read_range(status.id) == b"False False False\n"


def test_random_numbers_differ_between_jobs(run: Run, target: pyosd.Target) -> None:
    """Sandboxes are forked from one zygote, but its random state is not theirs."""
    script = "import random, os; print(random.random(), os.urandom(8).hex(), hash('x'))"
    seen = {bytes(target.read_range(run(script).id)) for _ in range(4)}
    assert len(seen) == 4


def test_a_kill_leaves_no_process(serving: Serving, target: pyosd.Target, zone: ObjectRef) -> None:
    """Sandboxes of killed jobs go away; spares take their place, no more of them than before."""
    target.exec("pass", zone=zone).wait(WAIT_S)
    host = Host(serving)
    for _ in range(5):
        job = target.exec("print('up', flush=True)\nwhile True: pass", zone=zone)
        next(job.iter_output(follow=True))
        job.kill(WAIT_S)
    target.exec("pass", zone=zone).wait(WAIT_S)
    host.is_as_before()


def test_kernel_would_end_a_sandbox_first(
    serving: Serving, target: pyosd.Target, zone: ObjectRef
) -> None:
    """Short of memory the kernel chooses by oom_score_adj: any sandbox before any daemon."""
    job = target.exec("print('up', flush=True)\nwhile True: pass", zone=zone)
    next(job.iter_output(follow=True))
    daemons = {pid: oom_score_adj(pid) for pid in serving.pids.values()}
    sandboxes = descendants(serving.pids["iosd-sandboxd"])
    computing = [pid for pid in sandboxes if oom_score_adj(pid) > max(daemons.values())]
    assert len(computing) >= 1, daemons
    job.kill(WAIT_S)


def oom_score_adj(pid: int) -> int:
    try:
        return int(Path(f"/proc/{pid}/oom_score_adj").read_text())
    except OSError:
        return -1000
