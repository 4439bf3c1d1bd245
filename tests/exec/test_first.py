# SPDX-License-Identifier: GPL-2.0-or-later
"""Ordinary commands first, whatever jobs do (reliability 33): not times, which depend on the machine, but
what makes them: who gets a processor before whom, and how often a script makes the target's threads run.
`python -m bench --only sandboxes` has the ratio.
"""

from __future__ import annotations

import contextlib
import ctypes
import os
import platform
import struct
from collections import defaultdict
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import TypeVar

import pytest

from pyosd.jobs.job import Job
from pyosd.types import ref
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S, ended
from tests.processes import descendants
from tests.serving import Serving
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

SCHED_GETATTR = {"x86_64": 315, "aarch64": 275}
IOPRIO_GET = {"x86_64": 252, "aarch64": 31}
LAST_OF_BEST_EFFORT = 2 << 13 | 7
ATTR = struct.Struct("IIQiIQQQ")  # size, policy, flags, nice, priority, runtime, deadline, period
GROUPS = Path("/sys/fs/cgroup")
T = TypeVar("T")


def turn_of(thread: int) -> int:
    """How long the kernel lets a thread run at a time, in ns; 0: it does not know (before 6.12)."""
    buffer = ctypes.create_string_buffer(ATTR.size)
    libc = ctypes.CDLL(None, use_errno=True)
    number = SCHED_GETATTR[platform.machine()]
    if libc.syscall(number, thread, buffer, ATTR.size, 0) != 0:
        raise OSError(ctypes.get_errno(), "sched_getattr")
    return int(ATTR.unpack(buffer.raw)[5])


def turns(thread: int, nsec: int) -> bool:
    """Also if it has ended meanwhile, as a thread without work does."""
    try:
        return turn_of(thread) == nsec
    except ProcessLookupError:
        return True


def io_priority_of(thread: int) -> int:
    libc = ctypes.CDLL(None, use_errno=True)
    return int(libc.syscall(IOPRIO_GET[platform.machine()], 1, thread))


def threads_of(pid: int) -> list[int]:
    return [int(task.name) for task in Path(f"/proc/{pid}/task").iterdir()]


def by_name(pid: int) -> dict[str, list[int]]:
    found = defaultdict(list)
    for thread in threads_of(pid):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has ended
            name = Path(f"/proc/{pid}/task/{thread}/comm").read_text().strip()
            found[name if thread != pid else "master"].append(thread)
    return found


def looping(serving: Serving) -> int | None:
    """The sandbox that has computed for longer than it takes to start one.  Zygotes, the daemon's children,
    compute when they start.
    """
    daemon = serving.pids["iosd-sandboxd"]
    for pid in descendants(daemon):
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # others come and go
            fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
            parent, user = int(fields[1]), int(fields[11])
            if user > 20 and parent != daemon:
                return pid
    return None


def test_turns(serving: Serving, submit: Callable[..., Job]) -> None:
    """Scripts and who serves them run in long turns, and scripts read from disks last."""
    job = submit("print('up')\nwhile True: pass")
    until(lambda: job.status().stdout_length)
    usual = turn_of(0)
    script = until(lambda: looping(serving))
    until(lambda: "iosd-turns" in by_name(serving.pids["tgtd"]))
    threads = by_name(serving.pids["tgtd"])
    for name in ("iosd-worker", "iosd-output", "iosd-turns"):
        assert threads[name] and all(turns(each, usual) for each in threads[name]), name
    for long in (script, *threads["iosd-proxy"]):  # a thread asks for it once it runs
        until(partial(turns, long, 5_000_000 if usual else 0))
    assert usual < 5_000_000
    assert io_priority_of(script) == LAST_OF_BEST_EFFORT
    assert io_priority_of(threads["iosd-worker"][0]) != LAST_OF_BEST_EFFORT
    job.kill()


def wakes(thread: int) -> int:
    """How often it has waited for something and got it."""
    status = Path(f"/proc/{thread}/status").read_text()
    return int(status.split("voluntary_ctxt_switches:")[1].split()[0])


def test_turns_on_each_processor() -> None:
    """While a script computes each processor has a thread, which wakes up while commands come."""
    with Serving("--script-turn", "2ms") as serving, serving.connect() as target:
        zone = ref(target.create_partition())
        processors = [{each} for each in sorted(os.sched_getaffinity(0))]

        def turners() -> list[int]:
            return by_name(serving.pids["tgtd"])["iosd-turns"]

        def at_work() -> list[int] | None:
            threads = turners()
            where = [os.sched_getaffinity(each) for each in threads]
            return threads if sorted(where, key=min) == processors else None

        assert not turners()
        job = target.exec("while True: pass", zone=zone)
        threads = until(at_work)
        asleep = [wakes(each) for each in threads]

        def turned(times: int) -> bool:
            job.status()
            return all(
                wakes(each) >= times + one for each, one in zip(threads, asleep, strict=True)
            )

        until(lambda: turned(20))
        job.kill()
        job.wait(WAIT_S)
        until(lambda: not turners())


def test_no_turns() -> None:
    with Serving("--script-turn", "0s") as serving:
        assert "iosd-turns" not in by_name(serving.pids["tgtd"])


def test_weight(serving: Serving) -> None:
    """With control groups, all sandboxes together have idle or the lowest priority, unless they
    starve (test_starvation.py).
    """
    own = f"iosd-sandboxd-{serving.pids['iosd-sandboxd']}"

    def read(name: str) -> list[int]:
        return [int(file.read_text()) for file in GROUPS.glob(f"**/{own}/{name}")]

    def least() -> bool:
        try:
            idle, shares, weight = read("cpu.idle"), read("cpu.shares"), read("cpu.weight")
        except FileNotFoundError:  # groups of another target were removed meanwhile
            return False
        assert len(shares + weight) == 1
        return idle == [1] or (not idle and (shares == [2] or weight == [1]))

    if serving.isolation == "full":
        until(least)


def test_flood_of_lines(serving: Serving, submit: Callable[..., Job]) -> None:
    """A script that writes line by line does not wake the target line by line."""
    lines = 50_000
    (output,) = by_name(serving.pids["tgtd"])["iosd-output"]

    before = wakes(output)
    job = submit(f"for _ in range({lines}): print('x', flush=True)")
    status = ended(job.wait(WAIT_S), JobState.COMPLETED, 0)
    assert status.stdout_length == 2 * lines
    assert 0 < wakes(output) - before < lines / 15
