# SPDX-License-Identifier: GPL-2.0-or-later
"""The parts of curves: commands kept under way over many sessions, and the target's processor time.

Samples are taken in rounds, so a drift during a run is the same under every point.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path

import pyosd
from bench.plan import Plan
from bench.stats import Curve, point
from bench.target import BenchTarget
from pyosd.wire.transport import Command, CommandTransport, Pending

PART = 4  # of the time of a sample elsewhere: there are many
_CPUCLOCK_SCHED = 2  # clock_getcpuclockid(3), which Python has not

Sample = Callable[[], Mapping[str, float]]
"""Measures once, and gives a figure for each series it is about."""

Samples = dict[str, dict[float, list[float]]]
"""By series and x."""


def processor_seconds(pid: int) -> float:
    """Of all threads that a process has or had."""
    return time.clock_gettime(~pid << 3 | _CPUCLOCK_SCHED)


def resident_bytes(pid: int) -> int:
    """Memory of a process alone, the page cache's pages not counted."""
    for line in Path(f"/proc/{pid}/status").read_text().splitlines():
        if line.startswith("RssAnon:"):
            return int(line.split()[1]) << 10
    raise ValueError(f"no resident memory of {pid}")


def keep_under_way(
    transports: Sequence[CommandTransport], commands: Sequence[Command], depth: int, seconds: float
) -> int:
    """Commands in turn, so many outstanding on each session, for about so long; how many were answered."""
    under_way: deque[tuple[CommandTransport, Pending]] = deque()
    sent = done = 0
    for _ in range(depth):
        for transport in transports:
            under_way.append((transport, transport.submit(commands[sent % len(commands)])))
            sent += 1
    deadline = time.perf_counter() + seconds
    while under_way:
        transport, pending = under_way.popleft()
        response = pending.result()
        assert response.status == 0, response.sense.hex()
        done += 1
        if time.perf_counter() < deadline:
            under_way.append((transport, transport.submit(commands[sent % len(commands)])))
            sent += 1
    return done


def cost(
    name: str,
    target: BenchTarget,
    sessions: pyosd.Target | Sequence[pyosd.Target],
    commands: Sequence[Command],
    depth: int,
    plan: Plan,
) -> Sample:
    """A sample of `name`: seconds a command took, and of "name, processor": the target's part of them.

    Args: depth: commands outstanding on each session.
    """
    all_sessions = [sessions] if isinstance(sessions, pyosd.Target) else sessions
    transports = [each.transport for each in all_sessions]

    def sample() -> Mapping[str, float]:
        before, start = processor_seconds(target.tgtd_pid), time.perf_counter()
        done = keep_under_way(transports, commands, depth, plan.seconds / PART)
        elapsed = time.perf_counter() - start
        used = processor_seconds(target.tgtd_pid) - before
        return {name: elapsed / done, f"{name}, processor": used / done}

    return sample


def some(xs: Sequence[int], plan: Plan) -> Sequence[int]:
    """All of them, or the few that a quick run takes."""
    return xs[::3] if plan.quick else xs


def in_rounds(steps: Mapping[float, Iterable[Sample]], rounds: int) -> Samples:
    """Every sample of every x, one after the other, and that so many times after a round of warm-up."""
    found: Samples = {}
    for number in range(rounds + 1):
        for x, samples in steps.items():
            for sample in samples:
                for series, value in sample().items():
                    if number:
                        found.setdefault(series, {}).setdefault(x, []).append(value)
    return found


def curve(
    row_id: str, title: str, x_label: str, found: Samples, y_label: str = "seconds per command"
) -> Curve:
    """Of samples, on logarithmic scales."""
    series = {
        name: [point(x, values) for x, values in by_x.items()] for name, by_x in found.items()
    }
    return Curve(row_id, title, x_label, y_label, series, log_x=True, log_y=True)
