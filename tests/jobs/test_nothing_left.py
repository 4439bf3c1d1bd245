# SPDX-License-Identifier: GPL-2.0-or-later
"""What a target has open is the same after many jobs as before: descriptors, threads, mappings."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tests.jobs.test_exec import DEADLINE_S, run, until

if TYPE_CHECKING:
    from tests.jobs.conftest import Target

JOBS = 40
SLACK = 12
"""Descriptors and mappings of a spare more or less."""
KINDS = ("pass", "1 / 0", "import os; os._exit(3)", "import osd\nosd.result(b'r' * 100_000)")


def counts(pid: int) -> dict[str, int]:
    """What a process has open."""
    process = Path(f"/proc/{pid}")
    return {
        "descriptors": len(list((process / "fd").iterdir())),
        "threads": len(list((process / "task").iterdir())),
        "mappings": len((process / "maps").read_text().splitlines()),
    }


def test_nothing_stays_open(target: Target) -> None:
    def work() -> None:
        made = [run(target, KINDS[n % len(KINDS)]) for n in range(JOBS)]
        for job in made:
            job.wait(DEADLINE_S)
            job.remove()

    assert target.daemon is not None
    processes = {"target": target.transport.process.pid, "iosd-sandboxd": target.daemon.pid}
    work()
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
