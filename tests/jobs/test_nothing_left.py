# SPDX-License-Identifier: GPL-2.0-or-later
"""A target has the same open resources after many jobs as before: descriptors, threads, mappings.
An idle target is woken by the next job.
"""

from __future__ import annotations

from collections import deque
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.jobs.conftest import Target, skip_without_sandboxes
from tests.jobs.test_exec import DEADLINE_S, run
from tests.processes import sandboxes_of
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator

JOBS = 24
SLOTS = 2  # of the harness
LOOKS = 25  # at what has been computed
SLACK = 12
"""Descriptors and mappings of a spare more or less."""
KINDS = ("pass", "1 / 0", "import os; os._exit(3)", "import osd\nosd.result(b'r' * 100_000)")


def counts(pid: int) -> dict[str, int]:
    """Open resources of a process."""
    process = Path(f"/proc/{pid}")
    return {
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": len(list((process / "task").iterdir())),
        "mappings": len((process / "maps").read_text().splitlines()),
    }


@pytest.fixture
def full(tmp_path: Path) -> Iterator[Target]:
    """A target that has all sandboxes it may have: none is made because a job comes."""
    skip_without_sandboxes()
    pools = tmp_path / "pools"
    pools.write_text(f"name=default;max={SLOTS};min={SLOTS};spares=0\n")
    running = Target(tmp_path, f";pools={pools}")
    yield running
    running.stop()


def test_nothing_stays_open(full: Target) -> None:
    def work() -> None:
        made = [run(full, KINDS[n % len(KINDS)]) for n in range(JOBS)]
        for job in made:
            job.wait(DEADLINE_S)
            job.remove()

    assert full.daemon is not None
    daemon = full.daemon.pid
    processes = {"target": full.transport.process.pid, "iosd-sandboxd": daemon}
    work()
    until(lambda: len(sandboxes_of(daemon)) == SLOTS)  # with fewer, fewer descriptors are open
    before = {name: counts(pid) for name, pid in processes.items()}
    work()

    def more() -> dict[tuple[str, str], int]:
        return {
            (name, figure): now - before[name][figure]
            for name, pid in processes.items()
            for figure, now in counts(pid).items()
            if now > before[name][figure] + SLACK
        }

    try:
        until(lambda: not more())  # sandboxes that are over are reaped in their own time
    except AssertionError:
        assert not more(), more()


def computed(pid: int) -> int:
    """Nanoseconds that the main thread of a process has run."""
    try:
        return int(Path(f"/proc/{pid}/schedstat").read_text().split()[0])
    except OSError:
        return 0


def test_idle_target_is_woken_by_a_job(full: Target) -> None:
    """All its sandboxes are ready, so nothing else wakes it."""
    assert full.daemon is not None
    daemon = full.daemon.pid

    def work_done() -> dict[int, int]:
        return {pid: computed(pid) for pid in [daemon, *sandboxes_of(daemon)]}

    seen: deque[dict[int, int]] = deque(maxlen=LOOKS)

    def at_rest() -> bool:
        seen.append(work_done())
        still = len(seen) == LOOKS and all(each == seen[0] for each in seen)
        return still and len(seen[0]) > SLOTS

    for hold in (False, True, False):
        held = run(full, "pass", hold=True)
        seen.clear()
        until(at_rest)
        if hold:
            held.release()
            assert held.wait(DEADLINE_S).done
        else:
            assert run(full, "pass").wait(DEADLINE_S).done
            held.cancel()
