# SPDX-License-Identifier: GPL-2.0-or-later
"""Other programs of the host that compute without end: scripts keep their least share of the processors,
time without one extends a job's wall limit, and the job's status says so.
"""

from __future__ import annotations

import contextlib
import os
import re
import signal
import subprocess
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import pytest

import pyosd
from pyosd import JobState, ref
from pyosd.cli.jobs.job_view import explanation
from pyosd.jobs.dialogues.record import record_of
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing
from tests.waiting import until
from tests.warm import helper

STRANGER = 65534
SLOWER_AT_MOST = 40  # times; 20 with the least share of 5 per cent, 70 without one
TRIES = 5
"""Scripts of other tests may take the processors meanwhile, and have a share as well."""
WORK = "import time\nwhile time.process_time() < 0.2: pass\nprint('done')"
WAIT_S = 120.0
HOLD_S = 3.0  # share.c
GROUPS = Path("/sys/fs/cgroup")


@pytest.fixture(autouse=True)
def able() -> None:
    why = sandboxes_missing()
    if why or os.geteuid() != 0:
        unavailable("sandbox", why or "needs root")


def ticks_of(pid: int) -> int:
    """Processor time in user mode, in ticks of 10 ms."""
    return int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[11])


Loops = Sequence[subprocess.Popen[bytes]]


@contextlib.contextmanager
def on_one_processor() -> Iterator[set[int]]:
    """Targets that start now have this processor alone: other tests keep the others."""
    starter, one = helper()[1].pid, {min(os.sched_getaffinity(0))}
    before = os.sched_getaffinity(starter)
    os.sched_setaffinity(starter, one)
    try:
        yield one
    finally:
        os.sched_setaffinity(starter, before)


@contextlib.contextmanager
def loops_of_a_stranger(count: int, processors: set[int] | None = None) -> Iterator[Loops]:
    """So many busy loops of an ordinary user.  processors: those that they have; None: all."""
    change = ["taskset", "-c", ",".join(map(str, processors or os.sched_getaffinity(0)))]
    change += ["setpriv", f"--reuid={STRANGER}", "--clear-groups"]
    loops = [
        subprocess.Popen([*change, "sh", "-c", "while :; do :; done"], stdin=subprocess.DEVNULL)
        for _ in range(count)
    ]
    try:
        until(lambda: all(ticks_of(loop.pid) >= 10 for loop in loops), seconds=WAIT_S)
        yield loops
    finally:
        for loop in loops:
            loop.kill()
            loop.wait()


def send(loops: Loops, number: signal.Signals) -> None:
    for loop in loops:
        loop.send_signal(number)


def idle(serving: Serving) -> bool:
    """Whether the sandboxes' control group is idle again."""
    own = f"iosd-sandboxd-{serving.pids['iosd-sandboxd']}"
    # walk() passes over groups of other targets that go away meanwhile.
    groups = [Path(folder) / own for folder, below, _ in os.walk(GROUPS) if own in below]
    files = [each / "cpu.idle" for each in groups]
    return [each.read_text() for each in files if each.exists()] == ["1\n"]


def start_and_run(loops: Loops = ()) -> tuple[float, float]:
    """Seconds until a target was ready, and of a job with 0.2 s of work in a group that was idle.

    Args: loops: run beside both, and rest in between and afterwards: other tests need the processors.
    """
    begin = time.monotonic()
    with Serving(share=None) as serving, serving.connect() as target:
        ready = time.monotonic() - begin
        if serving.isolation != "full":
            unavailable("sandbox", "there are no control groups")
        zone = ref(target.create_partition())
        target.exec("pass", zone=zone).wait(WAIT_S)
        send(loops, signal.SIGSTOP)
        until(lambda: idle(serving), seconds=WAIT_S)
        send(loops, signal.SIGCONT)
        begin = time.monotonic()
        job = target.exec(WORK, zone=zone, limits=pyosd.Limits(wall=WAIT_S))
        assert job.wait(WAIT_S).state is JobState.COMPLETED
        took = time.monotonic() - begin
        send(loops, signal.SIGSTOP)
        return ready, took


def test_loops_of_a_stranger_delay_scripts_but_do_not_stop_them() -> None:
    quiet_start, quiet_job = start_and_run()
    with loops_of_a_stranger(2 * (os.cpu_count() or 1)) as loops:
        for _ in range(TRIES):
            start, job = start_and_run(loops)
            if start <= SLOWER_AT_MOST * quiet_start and job <= SLOWER_AT_MOST * quiet_job:
                break
            send(loops, signal.SIGCONT)
    assert start <= SLOWER_AT_MOST * quiet_start
    assert job <= SLOWER_AT_MOST * quiet_job


def test_a_starved_job_is_given_more_time_and_says_so() -> None:
    """In an idle group, beside busy loops: the share of scripts is next to nothing."""
    wall = 0.5
    with (
        on_one_processor() as one,
        Serving("--cpu-share", "0") as serving,
        serving.connect() as target,
    ):
        zone = ref(target.create_partition())
        limits = pyosd.Limits(wall=wall, cpu=50)  # by default as long: it might come first
        fed = target.exec("while True: pass", zone=zone, limits=limits).wait(WAIT_S)
        with loops_of_a_stranger(2, one):
            starved = target.exec("while True: pass", zone=zone, limits=limits).wait(WAIT_S)
    assert (fed.state, fed.reason) == (JobState.TIMEOUT, 301)
    assert (starved.state, starved.reason) == (JobState.TIMEOUT, 301)
    assert starved.starved_time > wall / 2
    # Ten times the limit at most, and then its end: killed, it waits for a processor as well.
    assert 2 * wall < starved.run_time < 60 * wall
    assert starved.cpu_user + starved.cpu_system < wall
    assert f"it starved for {starved.starved_time:.1f} s" in starved.hint
    shown = explanation(starved, [])
    assert any(re.fullmatch(r"starved: waited \S+ ?m?s for a processor", line) for line in shown)
    assert record_of(starved)["starved_s"] == starved.starved_time


def test_sleep_is_no_starvation() -> None:
    with Serving(share=None) as serving, serving.connect() as target:
        zone = ref(target.create_partition())
        limits = pyosd.Limits(wall=0.5)
        for _ in range(TRIES):  # on a busy machine it may starve before it sleeps, and at its end
            job = target.exec("import time; time.sleep(60)", zone=zone, limits=limits).wait(WAIT_S)
            assert job.reason == 301
            if job.starved_time < 0.5 and job.run_time < 2.5:
                break
    assert job.starved_time < 0.5
    assert job.run_time < 2.5
