# SPDX-License-Identifier: GPL-2.0-or-later
"""How soon a kill ends a job: from the command that asks for it to a terminal state, as a client that
polls without a pause sees it.

A script that takes `osd.Ended` is over at once; one that does not is killed when its grace is over
(20 ms), and its memory goes before it is gone.
"""

from __future__ import annotations

import time
from collections.abc import Iterator

import pyosd
from bench.stats import Row, at_most, row_of_pairs
from bench.target import BenchTarget
from pyosd.types import ObjectRef

GRACE_S = 0.020
BATCHES = 5
SCRIPT = """
dirty = bytearray({mib} << 20)
for at in range(0, len(dirty), 4096):
    dirty[at] = 1
print("up")
{rest}
"""
MINDS = "while True: pass"
MINDS_NOT = """
while True:
    try:
        while True: pass
    except BaseException: pass
"""


def _kill_s(osd: pyosd.Target, zone: ObjectRef, code: str, limits: pyosd.Limits) -> float:
    job = osd.exec(code, zone=zone, limits=limits)
    assert next(job.iter_output(follow=True)) == b"up\n"
    start = time.perf_counter()
    state = job._control(2)
    while not state.terminal:
        state = job.poll()[0]
    took = time.perf_counter() - start
    assert state is pyosd.JobState.CANCELLED, state
    job.remove()
    return took


def rows(target: BenchTarget, count: int) -> Iterator[Row]:
    """kill_p99, kill_p99_512m: the script takes its end; kill_hard_...: it does not.

    count: kills in each of BATCHES, whose 99th percentiles are the samples.
    """
    with pyosd.connect(target.url) as osd:
        zone = osd.partition(osd.create_partition())
        for name, mib, aim, rest in (
            ("kill_p99", 48, 0.010, MINDS),
            ("kill_p99_512m", 512, 0.050, MINDS),
            ("kill_hard_p99", 48, GRACE_S + 0.010, MINDS_NOT),
            ("kill_hard_p99_512m", 512, GRACE_S + 0.050, MINDS_NOT),
        ):
            code = SCRIPT.format(mib=mib, rest=rest)
            limits = pyosd.Limits(mem=f"{mib + 64}MiB")
            kills = count if mib < 512 else max(count // 5, 5)
            samples = []
            for _ in range(BATCHES):
                took = sorted(_kill_s(osd, zone, code, limits) for _ in range(kills))
                samples.append((took[int(0.99 * (kills - 1) + 0.5)], aim))
            method = f"99th percentile of {kills} kills with {mib} MiB dirty; baseline: the aim"
            yield row_of_pairs(name, samples, at_most(1), method)
