# SPDX-License-Identifier: GPL-2.0-or-later
"""The n-th system call that changes the disk, and the n-th allocation, fails or is the last.

The calls of a scripted history are numbered by a preloaded library (interpose.c): of the whole life
of the process, or from its first request.  After each fault: the target still answers, or is dead
only where it was killed; opened again it has everything it acknowledged, and the offline checker
finds nothing.  Then the same again while it recovers.

A run of the gate tries some n, which the seed chooses; --all-faults (make faults) tries every one.
"""

from __future__ import annotations

import contextlib
import errno
import shutil
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import pytest

from iosd_host.store_tools.check.whole_store import check_store
from iosd_host.store_tools.session import looking
from pyosd.errors import OSDError, Unreachable
from tests.fault.history import STEPS, acknowledged, consistent, history, is_told_right, run_steps
from tests.harness import Harness, StartFailed, copy_store, program

NEVER = 1 << 62
DISK_ACTIONS = ["kill", "late", "short", str(errno.EIO), str(errno.ENOSPC)]
SAMPLE = 5
"""Faults of each sort that a run of the gate tries."""


@dataclass(frozen=True)
class Fault:
    """The same as in interpose.c."""

    kind: str
    phase: str
    action: str
    at: int = NEVER

    @property
    def kills(self) -> bool:
        return self.action in ("kill", "late")


@dataclass(frozen=True)
class Bench:
    """Folder of faulty harnesses."""

    library: Path
    folder: Path

    def start(self, store: Path, fault: Fault) -> Harness:
        """A harness with the fault in it.  Raises: StartFailed."""
        variables = {
            "LD_PRELOAD": str(self.library),
            "IOSD_FAULT": f"{fault.kind}:{fault.phase}:{fault.at}:{fault.action}",
            "IOSD_FAULT_COUNT": str(self.count_file),
        }
        self.count_file.unlink(missing_ok=True)
        return Harness(program(), {"dir": store}, self.folder / "faulty.log", variables)

    @property
    def count_file(self) -> Path:
        return self.folder / "count"

    def count(self) -> int:
        """How many calls the last harness has made."""
        return int(struct.unpack("@Q", self.count_file.read_bytes())[0])


@pytest.fixture
def bench(library: Path, tmp_path: Path) -> Bench:
    return Bench(library, tmp_path)


def chosen(request: pytest.FixtureRequest, seed: int, total: int) -> Iterator[int]:
    """Selection of the calls to try."""
    stride = 1 if request.config.getoption("--all-faults") else max(1, total // SAMPLE)
    return iter(range(1 + seed % stride, total + 1, stride))


def total_calls(bench: Bench, kind: str, phase: str) -> int:
    """Calls of an undisturbed run."""
    harness = bench.start(bench.folder / "undisturbed", Fault(kind, phase, "kill"))
    assert run_steps(harness) == STEPS
    harness.kill()
    return bench.count()


def run_faulty(bench: Bench, store: Path, fault: Fault) -> int:
    """Serve the history with a fault in it; returns the steps acknowledged."""
    done = 0
    try:
        harness = bench.start(store, fault)
    except StartFailed:
        return 0
    if fault.kills:
        with contextlib.suppress(Unreachable):
            for _ in history(harness.osd):
                done += 1
    else:
        done = run_steps(harness)
        try:
            consistent(harness.osd)
        except OSDError as error:  # once, if the fault is still to come
            assert done == STEPS and is_told_right(error), error
    harness.kill()
    return done


def check_after(store: Path, done: int, log: Path) -> None:
    """A target opens it, everything acknowledged is there, and so says the checker."""
    again = Harness(program(), {"dir": store}, log)
    try:
        consistent(again.osd)
        acknowledged(again.osd, done)
    finally:
        again.kill()
    with looking(store, None, log.parent) as closed:
        problems = [each for each in check_store(closed, lambda *_: None) if each.kind.is_error]
    assert not problems, problems


@pytest.mark.parametrize("phase", ["start", "serve"])
@pytest.mark.parametrize("action", DISK_ACTIONS)
def test_nth_change_of_the_disk(
    bench: Bench, request: pytest.FixtureRequest, seed: int, action: str, phase: str
) -> None:
    total = total_calls(bench, "disk", phase)
    assert total > 20
    for at in chosen(request, seed, total):
        store = bench.folder / f"store{at}"
        done = run_faulty(bench, store, Fault("disk", phase, action, at))
        check_after(store, done, bench.folder / "again.log")
        shutil.rmtree(store)


@pytest.mark.parametrize("phase", ["start", "serve"])
def test_nth_allocation(
    bench: Bench, request: pytest.FixtureRequest, seed: int, phase: str
) -> None:
    """Berkeley DB itself may die of it while it starts; nothing else dies."""
    total = total_calls(bench, "memory", phase)
    assert total > 100
    for at in chosen(request, seed, total):
        store = bench.folder / f"store{at}"
        done = run_faulty(bench, store, Fault("memory", phase, str(errno.ENOMEM), at))
        check_after(store, done, bench.folder / "again.log")
        shutil.rmtree(store)


@pytest.mark.parametrize("action", ["kill", "late", str(errno.EIO)])
def test_nth_change_of_the_disk_in_recovery(
    bench: Bench, request: pytest.FixtureRequest, seed: int, action: str
) -> None:
    """Of a store whose target was killed in the middle of the history."""
    middle = total_calls(bench, "disk", "serve") // 2 + seed % 7
    crashed = bench.folder / "crashed"
    done = run_faulty(bench, crashed, Fault("disk", "serve", "kill", middle))
    copy = bench.folder / "copy"
    copy_store(crashed, copy)
    bench.start(copy, Fault("disk", "start", action)).kill()
    total = bench.count()
    shutil.rmtree(copy)
    assert total > 5
    for at in chosen(request, seed, total):
        copy_store(crashed, copy)
        with contextlib.suppress(StartFailed):
            bench.start(copy, Fault("disk", "start", action, at)).kill()
        check_after(copy, done, bench.folder / "again.log")
        shutil.rmtree(copy)
