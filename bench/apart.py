# SPDX-License-Identifier: GPL-2.0-or-later
"""Rows about a few in a hundred: measured before the machine's other programs.

A virtual machine's agent, or a thread of the kernel, that runs for milliseconds now and then decides a 99th
percentile, the more so the less is idle beside it.  In a control group of the greatest weight they wait;
what is in it, the bench, its target and the target's sandboxes, stand to each other as without.
"""

from __future__ import annotations

import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

CPU = Path("/sys/fs/cgroup/cpu")  # cgroup v1
MOST = 262144  # cpu.shares


def _own_group() -> Path:
    for line in Path("/proc/self/cgroup").read_text().splitlines():
        _, controllers, path = line.split(":", 2)
        if "cpu" in controllers.split(","):
            return CPU / path.lstrip("/")
    return CPU


@contextmanager
def apart() -> Iterator[bool]:
    """Have this process, and what it starts, go before all others.

    Yields: whether that is so; it needs root and the cpu controller of cgroup v1.
    """
    group = CPU / f"iosd-bench-{os.getpid()}"
    try:
        before = _own_group()
        group.mkdir()
    except OSError:
        yield False
        return
    try:
        (group / "cpu.shares").write_text(str(MOST))
        (group / "cgroup.procs").write_text(str(os.getpid()))
        try:
            yield True
        finally:
            (before / "cgroup.procs").write_text(str(os.getpid()))
    finally:
        group.rmdir()
