# SPDX-License-Identifier: GPL-2.0-or-later
"""EXEC and status polls against TEST UNIT READY, the cheapest round trip there is: the same client sends
them in turn at a fixed pace, unpinned.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator

import pyosd
from bench.stats import Row, at_most, missing, row_of_pairs
from bench.target import BenchTarget
from pyosd.types import AttributeId, ObjectRef, ref

JOB_STATUS = 0x2000_0001
JOBS_COLLECTION = 0x1001
POLLED = [AttributeId(JOB_STATUS, number) for number in (2, 3, 4)]  # generation, state, reason
PACE_S = 0.01


def _paced_pairs(
    ours: Callable[[], object], baseline: Callable[[], object], count: int
) -> list[tuple[float, float]]:
    """Latency of both, one after the other, each at its tick; the first tenth is warm-up."""
    pairs = []
    tick = time.perf_counter()
    for index in range(count + count // 10):
        sample = []
        for call in (ours, baseline):
            tick += PACE_S / 2
            time.sleep(max(0.0, tick - time.perf_counter()))
            start = time.perf_counter()
            call()
            sample.append(time.perf_counter() - start)
        if index >= count // 10:
            pairs.append((sample[0], sample[1]))
    return pairs


def rows(target: BenchTarget, count: int) -> Iterator[Row]:
    """exec_noop_pristine, exec_noop_reuse, poll_one, poll_hundred."""
    method = f"{count} pairs at {1 / PACE_S:.0f}/s, interleaved by one client"
    with pyosd.connect(target.url) as osd:
        zone = osd.partition(osd.create_partition())

        def noop() -> None:
            reply = osd.exec_code(zone, b"pass", synchronous=True)
            assert reply.job is not None and reply.error is None, reply.error
            finished.append(reply.job)

        finished: list[ObjectRef] = []
        pairs = _paced_pairs(noop, osd.test_unit_ready, count)
        yield row_of_pairs(
            "exec_noop_pristine", pairs, at_most(5), "synchronous EXEC / TUR, " + method
        )
        yield missing("exec_noop_reuse", at_most(3), "interpreters are not reused in this release")
        for job in finished[100:]:
            osd.remove(job)
        one = finished[0]
        pairs = _paced_pairs(lambda: osd.get_attributes(one, POLLED), osd.test_unit_ready, count)
        yield row_of_pairs("poll_one", pairs, at_most(1.2), "GET ATTRIBUTES / TUR, " + method)
        jobs = ref(zone.partition_id, JOBS_COLLECTION)
        pairs = _paced_pairs(
            lambda: osd.get_member_attributes(jobs, POLLED),
            lambda: osd.get_attributes(one, POLLED),
            count,
        )
        yield row_of_pairs(
            "poll_hundred", pairs, at_most(3), "GET MEMBER ATTRIBUTES of 100 jobs / poll_one"
        )
