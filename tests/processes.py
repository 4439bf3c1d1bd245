# SPDX-License-Identifier: GPL-2.0-or-later
"""Processes: children of the test run, descendants of a process, and waiting for their end."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from tests.waiting import DEADLINE_S

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

ROOT = Path(__file__).resolve().parents[1]
STAT_MOST = 4096  # bytes of /proc/PID/stat

long_lived: set[int] = set()
"""Processes of fixtures that outlive one test."""


def companion(
    module: str, kind: socket.SocketKind
) -> tuple[socket.socket, subprocess.Popen[bytes]]:
    """Start a small process that works for this one until dismiss(), or as long as this one lives.

    Args: module: is run; its argument is the descriptor of its end of the connection.
    """
    ours, its = socket.socketpair(socket.AF_UNIX, kind)
    with its:
        process = subprocess.Popen(
            [sys.executable, "-m", module, str(its.fileno())],
            cwd=ROOT,
            pass_fds=[its.fileno()],
            stdin=subprocess.DEVNULL,
        )
    long_lived.add(process.pid)
    return ours, process


def dismiss(link: socket.socket | Connection, process: subprocess.Popen[bytes]) -> None:
    """Close the connection to a companion, which ends it, and wait for its end."""
    link.close()
    with contextlib.suppress(subprocess.TimeoutExpired):
        process.wait(DEADLINE_S)


def parents() -> dict[int, int]:
    """Parent of every process that is no zombie."""
    found = {}
    for name in next(os.walk("/proc"))[1]:
        if not name.isdigit():
            continue
        try:
            with open(f"/proc/{name}/stat", "rb", buffering=0) as file:  # noqa: PTH123 -- often
                after_name = file.read(STAT_MOST).rpartition(b")")[2].split(maxsplit=2)
        except OSError:
            continue
        if after_name[0] != b"Z":
            found[int(name)] = int(after_name[1])
    return found


def name_of(pid: int) -> str:
    """What the kernel calls it; empty: it is gone."""
    try:
        return Path(f"/proc/{pid}/comm").read_text().strip()
    except OSError:
        return ""


def zygotes_of(sandboxd: int) -> set[int]:
    """Children of iosd-sandboxd; another is its janitor, which removes control groups."""
    children = {pid for pid, up in parents().items() if up == sandboxd}
    return {pid for pid in children if name_of(pid) == "iosd-zygote"}


def zygote_of(sandboxd: int) -> int | None:
    """The zygote that has sandboxes, or one that has none."""
    zygotes = zygotes_of(sandboxd)
    return min(zygotes.intersection(parents().values()) or zygotes, default=None)


def sandboxes_of(sandboxd: int) -> set[int]:
    """The children of its zygotes."""
    zygotes = zygotes_of(sandboxd)
    return {pid for pid, up in parents().items() if up in zygotes}


def descendants(root: int) -> set[int]:
    """Processes below root, root excluded."""
    parent = parents()
    below: set[int] = set()
    while True:
        more = {pid for pid, up in parent.items() if up == root or up in below} - below
        if not more:
            return below
        below |= more


def children_of_this() -> set[int]:
    """Children of the test run, zombies too; asked before and after each test, thus no scan."""
    found: set[int] = set()
    for task in os.listdir("/proc/self/task"):  # noqa: PTH208 -- often, as below
        with (
            contextlib.suppress(FileNotFoundError, ProcessLookupError),  # the thread has ended
            open(f"/proc/self/task/{task}/children", "rb", buffering=0) as file,  # noqa: PTH123
        ):
            found.update(map(int, file.read().split()))
    return found


def running(pid: int) -> bool:
    """Whether the process exists and is no zombie."""
    return pid in parents()


class Watch:
    """Processes that need not be our children, by a descriptor of each: a pid may soon be another's."""

    def __init__(self) -> None:
        self._descriptors: dict[int, int] = {}

    def add(self, pids: set[int]) -> None:
        """Watch these, too, and those no longer that have ended."""
        self.wait_gone(0)
        for pid in pids - self._descriptors.keys():
            with contextlib.suppress(ProcessLookupError):
                self._descriptors[pid] = os.pidfd_open(pid)

    def wait_gone(self, seconds: float = 60.0) -> set[int]:
        """Wait for all to end; returns those that did not."""
        deadline = time.monotonic() + seconds
        for pid, descriptor in [*self._descriptors.items()]:
            left = max(0.0, deadline - time.monotonic())
            ended = select.poll()
            ended.register(descriptor, select.POLLIN)
            if ended.poll(left * 1000):
                os.close(self._descriptors.pop(pid))
        return set(self._descriptors)

    def kill(self, number: signal.Signals = signal.SIGKILL) -> None:
        """A signal to all that are left, which are watched no longer."""
        for descriptor in self._descriptors.values():
            with contextlib.suppress(ProcessLookupError):
                signal.pidfd_send_signal(descriptor, number)
            os.close(descriptor)
        self._descriptors.clear()


def memory_of(pid: int) -> Iterator[tuple[str, bytes]]:
    """Everything mapped by a process, by line of its map."""
    with (
        Path(f"/proc/{pid}/maps").open() as maps,
        Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory,
    ):
        for line in maps:
            span, modes = line.split()[:2]
            if "r" not in modes or "[v" in line:
                continue
            start, end = (int(part, 16) for part in span.split("-"))
            memory.seek(start)
            with contextlib.suppress(OSError):  # behind the end of a file
                yield line, memory.read(end - start)
