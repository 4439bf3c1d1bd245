# SPDX-License-Identifier: GPL-2.0-or-later
"""EXEC beside what people use for the same on one machine: concurrent.futures.ProcessPoolExecutor and
Dask's local cluster, in the same run.

Two tasks: nothing at all, and a checksum of 1 MiB that lies where the task runs: for us an object, for
them a file of the same bytes.  Their workers are started once, trusted, and keep no record; a job of
ours has an interpreter of its own, limits, and a record that survives the target.  So there is no aim:
the rows say what that costs.
"""

from __future__ import annotations

import time
import zlib
from collections import deque
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ProcessPoolExecutor
from contextlib import contextmanager
from functools import partial
from multiprocessing import get_context
from pathlib import Path
from typing import Any

import pyosd
from bench.jobs import OUTSTANDING, jobs_per_s, paced_pairs
from bench.plan import Plan
from bench.stats import REPORTED, Row, missing, row_of_pairs
from bench.target import BenchTarget, bench_target
from pyosd.types import ObjectRef

WORKERS = 2
DATA_BYTES = 1 << 20
NOTHING = b"pass"
CHECKSUM = b"import osd, zlib\nosd.result(zlib.crc32(osd.zone.data.read(1 << 20)))\n"
RESULT_BYTES = 64
RATE_PAIRS = 4


def nothing() -> None:
    """The task that does nothing."""


def checksum(path: str) -> int:
    """The task over data."""
    return zlib.crc32(Path(path).read_bytes())


Submit = Callable[[Callable[[], object]], Any]


@contextmanager
def _process_pool() -> Iterator[Submit]:
    with ProcessPoolExecutor(WORKERS, mp_context=get_context("spawn")) as pool:
        yield pool.submit


@contextmanager
def _dask() -> Iterator[Submit]:
    """Raises: ImportError: it is not installed (pip install dask[distributed])."""
    from dask.distributed import Client, LocalCluster  # type: ignore[import-not-found,unused-ignore]

    with (
        LocalCluster(
            n_workers=WORKERS, threads_per_worker=1, processes=True, dashboard_address=None
        ) as cluster,
        Client(cluster) as client,
    ):
        yield partial(client.submit, pure=False)


EXECUTORS = {"processpool": _process_pool, "dask": _dask}


def _their_rate(submit: Submit, task: Callable[[], object], seconds: float) -> float:
    under_way: deque[Future[object]] = deque()
    done = 0
    start = time.perf_counter()
    while time.perf_counter() < start + seconds or under_way:
        while time.perf_counter() < start + seconds and len(under_way) < OUTSTANDING:
            under_way.append(submit(task))
        if under_way:
            under_way.popleft().result()
            done += 1
    return done / (time.perf_counter() - start)


def _result(submit: Submit, task: Callable[[], object]) -> object:
    return submit(task).result()


def _compared(
    prefix: str, osd: pyosd.Target, path: Path, obj: ObjectRef, submit: Submit, plan: Plan
) -> Iterator[Row]:
    zone, n, s = osd.partition(obj.partition_id), plan.count // 10, 2.5 * plan.seconds
    cases = (
        ("noop", zone, NOTHING, nothing),
        ("crc", obj, CHECKSUM, partial(checksum, str(path))),
    )
    for name, where, code, task in cases:
        ours = partial(
            osd.exec_code, where, code, synchronous=True, result_allocation_length=RESULT_BYTES
        )
        pairs = paced_pairs(ours, partial(_result, submit, task), n)
        method = f"synchronous EXEC / submit().result(), {n} pairs at 100/s; no aim"
        yield row_of_pairs(f"{prefix}_{name}", pairs, REPORTED, method)
        rates = [
            (jobs_per_s(osd, where, s, code, RESULT_BYTES), _their_rate(submit, task, s))
            for _ in range(RATE_PAIRS)
        ]
        method = f"{OUTSTANDING} under way for {s:g} s, {WORKERS} workers there; no aim"
        yield row_of_pairs(f"{prefix}_{name}_rate", rates, REPORTED, method, unit="/s")


def rows(plan: Plan) -> Iterator[Row]:
    """exec_vs_processpool_*, exec_vs_dask_*, and reuse_vs_... of the same."""
    with (
        bench_target(disk=False) as exact,
        bench_target("--reuse", "trusted", disk=False) as reusing,
    ):
        targets = {"exec": exact, "reuse": reusing}
        for name, opened in EXECUTORS.items():
            try:
                with opened() as submit:
                    for kind, target in targets.items():
                        yield from _beside(f"{kind}_vs_{name}", target, submit, plan)
            except ImportError as error:
                for kind in targets:
                    why = f"{error}: make bench installs it"
                    yield missing(f"{kind}_vs_{name}", REPORTED, why)


def _beside(prefix: str, target: BenchTarget, submit: Submit, plan: Plan) -> Iterator[Row]:
    path = target.folder / "data"
    path.write_bytes(b"\x5a" * DATA_BYTES)
    with pyosd.connect(target.url) as osd:
        obj = osd.create(osd.create_partition())
        osd.write(obj, 0, b"\x5a" * DATA_BYTES)
        yield from _compared(prefix, osd, path, obj, submit, plan)
