# SPDX-License-Identifier: GPL-2.0-or-later
"""Arrays of jobs and tgtd: killed while it accepts one, and while one runs; two clients at once."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor

import pytest

import pyosd
from pyosd import errors
from pyosd.jobs.job_array import JobArray
from pyosd.types import ref
from pyosd.wire.job_status import JobState
from tests.apart import count_apart
from tests.machine import unavailable
from tests.serving import Serving, sandboxes_missing

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

WAIT_S = 60.0
MANY = 10_000


@pytest.fixture(scope="module")
def roomy() -> Iterator[Serving]:
    """A target whose queue one principal may fill; it may be killed."""
    why = sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    with Serving(
        *("--isolation", "best", "--slots", "2", "--queue-per-principal", str(MANY))
    ) as served:
        yield served


def submit(target: pyosd.Target, pid: int, count: int, **how: object) -> JobArray:
    return target.exec_array("pass", zone=ref(pid), array=range(count), **how)  # type: ignore[arg-type]


@pytest.mark.parametrize("delay", [0.03])
def test_killed_while_it_accepts(roomy: Serving, delay: float) -> None:
    """The whole array or none of it; asked again with the same key, one array."""
    with roomy.connect() as target:
        pid = target.create_partition()
        killer = threading.Timer(delay, roomy.kill, ["tgtd"])
        killer.start()
        answered = None
        try:
            answered = submit(target, pid, MANY, key="k", hold=True)
        except errors.OSDError as error:
            assert isinstance(error, errors.Unreachable), error
        killer.join()
        roomy.restarted()
    with roomy.connect() as target:
        found = target.jobs(pid)
        assert (count_apart(target, pid), len(found)) in ((0, 0), (MANY + 1, 1))
        again = submit(target, pid, MANY, key="k", hold=True)
        assert not found or again.id == found[0].id
        assert not answered or again.id == answered.id
        assert count_apart(target, pid) == MANY + 1
        assert again.states() == [JobState.HELD] * MANY
        again.kill(WAIT_S)
        again.remove()
        assert count_apart(target, pid) == 0


def test_killed_while_it_runs(roomy: Serving) -> None:
    """All members end, and never more than one runs."""
    with roomy.connect() as target:
        pid = target.create_partition()
        code = "import osd, time\ntime.sleep(0.02)\nosd.result(osd.array_index)"
        array = target.exec_array(code, zone=ref(pid), array=range(30), at_once=1)
        for job in array.as_completed(WAIT_S):
            if job is array[4]:
                break
        roomy.kill("tgtd")
        roomy.restarted()
    with roomy.connect() as target:
        array = target.array(array.id)
        while not array.done():
            waits = (JobState.QUEUED, JobState.HELD)
            assert sum(not each.terminal and each not in waits for each in array.states()) <= 1
        assert array.result(WAIT_S) == list(range(30))


def test_two_clients_at_once(roomy: Serving) -> None:
    """One key is one array; without keys everybody has an array of their own."""
    with roomy.connect() as target:
        pid = target.create_partition()

    def client(number: int) -> tuple[pyosd.ObjectRef, list[int]]:
        with roomy.connect() as target:
            shared = submit(target, pid, 500, key="shared", hold=True)
            code = f"import osd; osd.result(osd.array_index + {number})"
            own = target.exec_array(code, zone=ref(pid), array=range(10), at_once=2)
            return shared.id, own.result(WAIT_S)

    with ThreadPoolExecutor(2) as clients:
        found = list(clients.map(client, (0, 100)))
    assert found[0][0] == found[1][0]
    assert [results for _, results in found] == [[*range(10)], [*range(100, 110)]]
    with roomy.connect() as target:
        target.array(found[0][0]).kill(WAIT_S)
        assert sorted(
            len(each.counts) and sum(each.counts.values()) for each in target.jobs(pid)
        ) == [*(10, 10, 500)]
