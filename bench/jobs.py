# SPDX-License-Identifier: GPL-2.0-or-later
"""EXEC and status polls against TEST UNIT READY, the cheapest round trip there is: the same client sends
them in turn at a fixed pace, unpinned.  And jobs in a row, as many as go through.
"""

from __future__ import annotations

import collections
import time
from collections.abc import Callable, Iterator

import pyosd
from bench.plan import Plan
from bench.stats import Row, at_least, at_most, row_of_pairs
from bench.target import BenchTarget, bench_target
from pyosd import requests
from pyosd.types import AttributeId, ObjectRef, ref
from pyosd.wire.attributes import Page
from pyosd.wire.cdb import Request, encode
from pyosd.wire.transport import Pending

JOBS_COLLECTION = 0x1001
POLLED = [AttributeId(Page.JOB_STATUS, number) for number in (2, 3, 4)]  # generation, state, reason
PACE_S = 0.01
OUTSTANDING = 16  # jobs on their way at a time, where they are counted
REPEATS = 5


def paced_pairs(
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


def _noop_row(
    osd: pyosd.Target, zone: ObjectRef, row_id: str, aim: float, count: int
) -> tuple[Row, list[ObjectRef]]:
    finished: list[ObjectRef] = []

    def noop() -> None:
        reply = osd.exec_code(zone, b"pass", synchronous=True)
        assert reply.job is not None and reply.error is None, reply.error
        finished.append(reply.job)

    pairs = paced_pairs(noop, osd.test_unit_ready, count)
    method = f"synchronous EXEC / TUR, {_method(count)}"
    return row_of_pairs(row_id, pairs, at_most(aim), method), finished


def _method(count: int) -> str:
    return f"{count} pairs at {1 / PACE_S:.0f}/s, interleaved by one client"


def jobs_per_s(
    osd: pyosd.Target, zone: ObjectRef, seconds: float, code: bytes = b"pass", room: int = 0
) -> float:
    """Synchronous jobs, with a constant number outstanding. All are durable when they are counted.

    Args: room: bytes for the result.
    """
    request = requests.execute(zone, code, synchronous=True, result_allocation_length=room)
    return commands_per_s(osd, request, seconds)


def commands_per_s(osd: pyosd.Target, request: Request, seconds: float) -> float:
    """The same command again and again, with a constant number outstanding."""
    command = encode(request)[0]
    under_way: collections.deque[Pending] = collections.deque()
    done = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds or under_way:
        while time.perf_counter() < start + seconds and len(under_way) < OUTSTANDING:
            under_way.append(osd.transport.submit(command))
        if under_way:
            response = under_way.popleft().result()
            assert response.status == 0, response.sense.hex()
            done += 1
    return done / (time.perf_counter() - start)


def _rate_row(osd: pyosd.Target, zone: ObjectRef, row_id: str, aim: float, seconds: float) -> Row:
    jobs_per_s(osd, zone, seconds / 4)
    pairs = [(jobs_per_s(osd, zone, seconds), aim) for _ in range(REPEATS)]
    method = f"{OUTSTANDING} synchronous no-ops outstanding for {seconds:g} s; baseline: the aim"
    return row_of_pairs(row_id, pairs, at_least(1), method, unit="jobs/s")


def rows(plan: Plan) -> Iterator[Row]:
    """tur, exec_noop_*, poll_one, poll_hundred, jobs_per_s_*."""
    with bench_target() as target:
        yield from _rows_of_pristine(target, plan.count, plan.rate_seconds)
    with bench_target("--reuse", "trusted") as target:
        yield from _rows_of_reuse(target, plan.count, plan.rate_seconds)


def _rows_of_reuse(target: BenchTarget, count: int, seconds: float) -> Iterator[Row]:
    with pyosd.connect(target.url) as osd:
        zone = osd.partition(osd.create_partition())
        yield _noop_row(osd, zone, "exec_noop_reuse", 3, count)[0]
        yield _rate_row(osd, zone, "jobs_per_s_reuse", 5000, seconds)


def _rows_of_pristine(target: BenchTarget, count: int, seconds: float) -> Iterator[Row]:
    method = _method(count)
    with pyosd.connect(target.url) as osd:
        with pyosd.connect(target.disk_url) as disk:
            pairs = paced_pairs(osd.test_unit_ready, disk.test_unit_ready, count)
        yield row_of_pairs("tur", pairs, at_most(1.1), "TUR of the OSD / of the disk, " + method)
        zone = osd.partition(osd.create_partition())
        row, finished = _noop_row(osd, zone, "exec_noop_pristine", 5, count)
        yield row
        for job in finished[100:]:
            osd.remove(job)
        one = finished[0]

        def poll() -> None:
            assert osd.poll_job(one)

        pairs = paced_pairs(poll, osd.test_unit_ready, count)
        yield row_of_pairs("poll_one", pairs, at_most(1.2), "GET ATTRIBUTES / TUR, " + method)
        jobs = ref(zone.partition_id, JOBS_COLLECTION)
        pairs = paced_pairs(lambda: osd.get_member_attributes(jobs, POLLED), poll, count)
        yield row_of_pairs(
            "poll_hundred", pairs, at_most(3), "GET MEMBER ATTRIBUTES of 100 jobs / poll_one"
        )
        yield _rate_row(
            osd, osd.partition(osd.create_partition()), "jobs_per_s_pristine", 900, seconds
        )
