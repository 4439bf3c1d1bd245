# SPDX-License-Identifier: GPL-2.0-or-later
"""Two users of one pool (reliability 34, 35), distinguished by their addresses.  The wait of a user
is counted in jobs of the other user, by their order, and not in seconds."""

from __future__ import annotations

from collections.abc import Iterator
from datetime import datetime
from typing import Any

import pytest

import pyosd
from iosd_host.common import places
from iosd_host.control.messages import Type
from pyosd import JobState
from pyosd.jobs.job import Job
from pyosd.jobs.submission import list_jobs
from pyosd.types import ObjectRef, ref
from tests.control.peer import Peer
from tests.machine import unavailable
from tests.relay import from_address
from tests.serving import Serving, sandboxes_missing
from tests.waiting import until

WAIT_S = 60.0
MANY = 1000
SLOTS = 2
A, B = "addr:127.0.0.2", "addr:127.0.0.3"
SLEEP = "import time\nwhile True: time.sleep(0.01)"


@pytest.fixture(scope="module")
def served() -> Iterator[Serving]:
    if why := sandboxes_missing():
        unavailable("sandbox", why)
    allow = ("--allow", "127.0.0.1", "--allow", "127.0.0.2", "--allow", "127.0.0.3")
    with Serving("--isolation", "best", "--slots", str(SLOTS), *allow, "--pool", "one:max=1") as it:
        yield it


@pytest.fixture
def control(served: Serving) -> Iterator[Peer]:
    found = {place["pid"]: place for place in places.running(places.TARGET)}
    with Peer(found[served.process.pid]["control"]) as peer:
        yield peer
        for name in (A, B):
            peer.ask(Type.PRINCIPAL, name=name, weight=1, queue=0, at_once=0)
        for pool in ("default", "one"):
            peer.ask(Type.POOL, name=pool, mode="running")


@pytest.fixture
def users(served: Serving) -> Iterator[tuple[pyosd.Target, pyosd.Target]]:
    with (
        from_address(served.url, A.removeprefix("addr:")) as first,
        from_address(served.url, B.removeprefix("addr:")) as second,
        pyosd.connect(first) as a,
        pyosd.connect(second) as b,
    ):
        yield a, b


class Diary:
    """An object to which jobs append whose they are, in the order in which they run."""

    def __init__(self, target: pyosd.Target) -> None:
        self.target = target
        self.object = target.create(target.create_partition())
        self.zone = ref(self.object.partition_id)

    def submit(self, user: pyosd.Target, name: str, count: int = 1, **options: Any) -> list[Job]:
        script = (
            f"import osd\nosd.userobject({self.object.partition_id:#x}, "
            f"{self.object.object_id:#x}).data.append('{name}')"
        )
        return [user.exec(script, zone=self.zone, **options) for _ in range(count)]

    def started(self, user: pyosd.Target) -> dict[ObjectRef, datetime]:
        """When each job did that has."""
        found = list_jobs(user, self.zone.partition_id)
        return {status.id: status.started for status in found if status.started}

    def read(self) -> str:
        return bytes(self.target.read(self.object, 0, 1 << 16)).decode()


def usage(control: Peer) -> dict[str, dict[str, Any]]:
    found = control.ask(Type.USAGE)
    assert not found["more"]
    return {row["name"]: row for row in found["principals"]}


def test_one_job_beside_a_thousand(control: Peer, users: tuple[pyosd.Target, pyosd.Target]) -> None:
    """B's only job starts as soon as each slot has ended the job it was at: whether all of A's came
    before it, or some of them have run already."""
    a, b = users
    diary = Diary(a)
    control.ask(Type.POOL, name="default", mode="paused")
    diary.submit(a, "a", MANY)
    for round_ in range(2):
        ran = len(diary.read())
        begun = diary.started(a)
        (mine,) = diary.submit(b, "b")
        assert usage(control)[A]["queued"] == MANY - ran + round_
        assert mine.status().reason == 115
        control.ask(Type.POOL, name="default", mode="running")
        assert mine.wait(WAIT_S).state is JobState.COMPLETED
        # By their starts: two that run at once may end in any order.
        since = {job: at for job, at in diary.started(a).items() if job not in begun}
        assert sum(at < since[mine.id] for at in since.values()) <= SLOTS
        control.ask(Type.POOL, name="default", mode="paused")
        until(lambda: usage(control)[A]["running"] == 0, "A's jobs that had started end")
    rows = usage(control)
    assert rows[A]["accepted"] == MANY and rows[B]["finished"] == rows[B]["accepted"] == 2
    assert rows[A]["finished"] == MANY - rows[A]["queued"] > 0
    assert rows[B]["calls"] >= 2 and rows[B]["cpu_seconds"] > 0 and rows[B]["run_seconds"] > 0
    with pytest.raises(pyosd.TargetBusy):  # A's share of the queue; all may have run by now
        diary.submit(a, "a", MANY + 1)
    control.ask(Type.PRINCIPAL, name=A, queue=MANY + 10, why="a test")
    diary.submit(a, "a", 5)
    assert usage(control)[A]["queue"] == MANY + 10 and usage(control)[A]["refused"] >= 1


def test_weights(control: Peer, users: tuple[pyosd.Target, pyosd.Target]) -> None:
    a, b = users
    diary = Diary(a)
    control.ask(Type.POOL, name="one", mode="paused")
    answer = control.ask(Type.PRINCIPAL, name=B, weight=3)
    assert (answer["was"], answer["is"]) == ({"weight": "1"}, {"weight": "3"})
    jobs = diary.submit(a, "a", 10, pool="one") + diary.submit(b, "b", 30, pool="one")
    control.ask(Type.POOL, name="one", mode="running")
    for job in jobs:
        assert job.wait(WAIT_S).state is JobState.COMPLETED
    order = diary.read()
    for count in range(4, len(order), 4):
        assert abs(order[:count].count("a") - count / 4) <= 1, order


def test_at_once(control: Peer, users: tuple[pyosd.Target, pyosd.Target]) -> None:
    """If A's job must not run, B, who came later, gets the slot."""
    a, b = users
    zone = ref(a.create_partition())
    control.ask(Type.PRINCIPAL, name=A, at_once=1)
    # The pool has jobs of A that wait: see above.  These go before them.
    waiting = [a.exec(SLEEP, zone=zone, priority=100) for _ in range(2)]
    control.ask(Type.POOL, name="default", mode="running")
    until(lambda: waiting[0].status().state is JobState.RUNNING, "A has a slot")
    later = b.exec("pass", zone=zone)
    assert later.wait(WAIT_S).state is JobState.COMPLETED
    assert usage(control)[A]["running"] == 1
    assert waiting[1].status().state is JobState.QUEUED
    control.ask(Type.PRINCIPAL, name=A, at_once=0)
    until(lambda: waiting[1].status().state is JobState.RUNNING, "A has two")
    for job in waiting:
        job.kill(WAIT_S)


def test_users(control: Peer, users: tuple[pyosd.Target, pyosd.Target]) -> None:
    """Only B may use the pool; who may not is told so, and others' pools are as before."""
    a, b = users
    zone = ref(a.create_partition())
    answer = control.ask(Type.POOL, name="one", users=f"{B},chap:nobody")
    assert answer["is"] == {"users": f"{B},chap:nobody"}
    assert b.exec("pass", zone=zone, pool="one").wait(WAIT_S).state is JobState.COMPLETED
    with pytest.raises(pyosd.PermissionDenied, match="80/16") as caught:
        a.exec("pass", zone=zone, pool="one")
    assert "its administrator decides who" in str(caught.value)
    control.ask(Type.POOL, name="one", users="")
    assert a.exec("pass", zone=zone, pool="one").wait(WAIT_S).state is JobState.COMPLETED


def test_shares_are_checked(control: Peer) -> None:
    for keys in ({"weight": 0}, {"weight": 1001}, {"queue": 10001}, {"at_once": 65}, {}):
        assert control.code(Type.PRINCIPAL, name=A, **keys) == "bad-value"
    assert control.code(Type.PRINCIPAL, name="x" * 600, weight=2) == "bad-value"
    assert usage(control)[A]["weight"] == 1
