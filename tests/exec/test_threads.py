# SPDX-License-Identifier: GPL-2.0-or-later
"""The threads of a target: few while it is idle, more only while there is work for them."""

from __future__ import annotations

import contextlib
from collections import Counter
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from pyosd.types import ref
from pyosd.wire.job_status import JobState
from tests.exec.conftest import WAIT_S
from tests.serving import Serving, arguments, sandboxes_missing
from tests.waiting import until

MOST = 8  # threads of an idle unit

pytestmark = pytest.mark.tgtd


def threads(pid: int) -> Counter[str]:
    """Of the units in this tgtd, by name; not tgtd's own."""
    names: Counter[str] = Counter()
    for task in Path(f"/proc/{pid}/task").iterdir():
        with contextlib.suppress(FileNotFoundError, ProcessLookupError):  # it has just ended
            names[(task / "comm").read_text().strip()] += 1
    return Counter({name: count for name, count in names.items() if name.startswith("iosd-")})


def few(pid: int) -> bool:
    return threads(pid).total() <= MOST


def test_idle_unit() -> None:
    """At most eight from the start, and again some time after many commands and jobs."""
    if sandboxes_missing():
        pytest.skip(str(sandboxes_missing()))
    with Serving(*arguments()) as serving, serving.connect() as target:
        tgtd = serving.pids["tgtd"]
        until(lambda: few(tgtd))  # helpers look for what an earlier run left, and end
        for _ in range(20):
            assert few(tgtd), f"an idle unit has {dict(threads(tgtd))}, more than {MOST} threads"
        zone = ref(target.create_partition())
        jobs = [target.exec("import time; time.sleep(1)", zone=zone) for _ in range(4)]
        until(lambda: threads(tgtd)["iosd-proxy"] >= 2)
        for job in jobs:
            assert job.wait(WAIT_S).state == JobState.COMPLETED

        def write(index: int) -> None:
            with serving.connect() as session:
                obj = session.create(zone.partition_id)
                for block in range(50):
                    session.write(obj, block * 4096, bytes([index]) * 4096)
                session.flush(obj)

        with ThreadPoolExecutor(6) as pool:
            list(pool.map(write, range(6)))
        until(lambda: few(tgtd))
        last = target.exec("print(1)", zone=zone).wait(WAIT_S)
        assert last.state == JobState.COMPLETED
        until(lambda: few(tgtd), lambda: f"an idle unit has {dict(threads(tgtd))}")


SLOTS = 2
OUTSTANDING = 16


def test_as_many_proxies_as_slots() -> None:
    """More would take sandboxes beyond the slots while others are cleaned, and end them again."""
    if sandboxes_missing():
        pytest.skip(str(sandboxes_missing()))
    words = ("--slots", str(SLOTS), "--reuse", "trusted")
    with Serving(*arguments(words)) as serving, serving.connect() as target:
        zone = ref(target.create_partition())
        target.exec("pass", zone=zone).wait(WAIT_S)
        used = set()
        with ThreadPoolExecutor(OUTSTANDING) as pool:
            for job in pool.map(lambda _: target.exec("pass", zone=zone), range(20 * OUTSTANDING)):
                used.add(job.wait(WAIT_S).sandbox)
        assert threads(serving.pids["tgtd"])["iosd-proxy"] <= SLOTS
        # One that is cleaned for too long ends, too: on a busy machine some are.
        assert len(used) <= 2 * OUTSTANDING, "sandboxes are used again"
