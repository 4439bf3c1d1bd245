# SPDX-License-Identifier: GPL-2.0-or-later
"""In which order jobs run where there is one sandbox: by priority, then by acceptance, those that wait
for others when these have ended, held and cancelled ones never, over a `kill -9` of the target.

Jobs are submitted at random while the first keeps the sandbox; each writes down that it runs, and ends
when all that the end before it let go stands in the queue.
"""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from pyosd import jobs
from pyosd.commands import Commands
from pyosd.jobs.job import Job
from pyosd.jobs.job_array import submit as submit_array
from pyosd.types import ObjectRef, ref
from pyosd.wire.exec_params import After
from pyosd.wire.job_status import JobState
from tests.jobs.conftest import DEADLINE_S, Target, skip_without_sandboxes
from tests.waiting import until

JOBS = 16
ENDS = {"pass": JobState.COMPLETED, "1 / 0": JobState.FAILED}
FIRST = """
import osd, time
while not osd.userobject({gate.partition_id}, {gate.object_id}).length():
    time.sleep(0.005)
"""
LINE = 8
"""Bytes of the diary's lines.  A job ends when the gate has more bytes than the diary has lines."""
WRITES = """
import osd, time
diary = osd.userobject({diary.partition_id}, {diary.object_id})
gate = osd.userobject({gate.partition_id}, {gate.object_id})
diary.data.append("{name:7}\\n")
while gate.length() <= diary.length() // {line}:
    time.sleep(0.005)
{ends}
"""


@pytest.fixture
def target(tmp_path: Path) -> Iterator[Target]:
    skip_without_sandboxes()
    running = Target(tmp_path, options=";slots=1")
    yield running
    running.stop()


@dataclass
class Entry:
    """What was submitted.  left: times it has still to run.  first: for each it is to run after, and
    whether any end will do."""

    name: str
    id: ObjectRef
    priority: int
    left: int
    ends: JobState
    first: list[tuple[Entry, bool]]
    held: bool = False
    state: JobState | None = None

    def settle(self) -> None:
        """Take in how those that it waits for have ended."""
        missed = any(each.state and not (any_end or met(each)) for each, any_end in self.first)
        if self.state is None and missed:
            self.state = JobState.FAILED

    def ready(self) -> bool:
        """May it run?"""
        waits = any(not each.state for each, _ in self.first)
        return self.state is None and not self.held and not waits

    @property
    def turn(self) -> tuple[int, ObjectRef]:
        return -self.priority, self.id


def met(entry: Entry) -> bool:
    return entry.state is JobState.COMPLETED


def submit(
    osd: Commands, rng: random.Random, gate: ObjectRef, diary: ObjectRef, before: list[Entry]
) -> Entry:
    name = f"job-{len(before)}"
    ends = rng.choice(["pass", "pass", "1 / 0"])
    code = WRITES.format(line=LINE, gate=gate, diary=diary, name=name, ends=ends)
    first = [(each, rng.random() < 0.5) for each in rng.sample(before, min(len(before), 2))]
    first = first[: rng.choice((0, 0, 1, 2))]
    members = rng.choice((1, 1, 1, 3))
    how: dict[str, Any] = {
        "priority": rng.randint(-1, 1),
        "hold": rng.random() < 0.3,
        "after": [After(each.id, not any_end) for each, any_end in first],
        "zone": ref(diary.partition_id),
    }
    job: Job
    if members > 1:
        job = submit_array(osd, code, array=range(members), at_once=rng.choice((0, 1, 2)), **how)
    else:
        job = jobs.submit(osd, code, **how)
    return Entry(name, job.id, how["priority"], members, ENDS[ends], first, how["hold"])


def control(osd: Commands, rng: random.Random, entry: Entry) -> None:
    """Hold it, let it go, or cancel it, now and then."""
    job = Job(osd, entry.id)
    verb = rng.choice(("hold", "release", "cancel", "", "", ""))
    if entry.state or not verb:
        return
    getattr(job, verb)()
    if verb == "cancel":
        entry.state = JobState.CANCELLED
    else:
        entry.held = verb == "hold"


def settle(entries: list[Entry]) -> None:
    for entry in entries:  # those named are older
        entry.settle()


def told(osd: Commands, entry: Entry) -> bool:
    """Has the target acted on the end of each job that this one was to run after?"""
    status = Job(osd, entry.id).status()
    return status.state is entry.state if entry.state else status.awaited is None


def wait_until_told(osd: Commands, entries: list[Entry]) -> list[Entry]:
    """Returns: those that stand in the queue from now on."""
    ready = [each for each in entries if each.ready()]
    for entry in (*ready, *(each for each in entries if each.state)):
        until(partial(told, osd, entry), f"{entry.name} was not told of an end")
    return ready


def run_all(osd: Commands, gate: ObjectRef, diary: ObjectRef, entries: list[Entry]) -> None:
    """Each that runs is the first of those that stood in the queue before the last end, or one which
    that end has let go: the sandbox may be free before such a one is in the queue."""
    ran: list[str] = []

    def wait_for_next() -> str:
        wanted = (len(ran) + 1) * LINE
        return until(lambda: bytes(osd.read(diary, 0, wanted))[len(ran) * LINE : wanted]).decode()

    queued = wait_until_told(osd, entries)
    osd.write(gate, 0, b"+")
    while any(each.ready() for each in entries):
        ran.append(wait_for_next().strip())
        entry = next(each for each in entries if each.name == ran[-1])
        assert entry.ready(), f"{entry.name} ran: {ran}"
        first = all(entry.turn <= each.turn for each in queued if each.ready())
        assert first, f"{entry.name} was not next: {ran}"
        queued = wait_until_told(osd, entries)
        entry.left -= 1
        if entry.left == 0:
            entry.state = entry.ends
        settle(entries)
        osd.write(gate, len(ran), b"+")
    assert all(entry.state or stuck(entry) for entry in entries)


def stuck(entry: Entry) -> bool:
    """Does it wait for what nobody releases?"""
    return entry.state is None and (entry.held or any(stuck(each) for each, _ in entry.first))


@pytest.mark.parametrize("killed", [False, True])
def test_one_after_the_other(target: Target, seed: int, killed: bool) -> None:
    rng = random.Random(seed)
    osd, partition = target.commands, target.partition.partition_id
    gate, diary = osd.create(partition), osd.create(partition)
    jobs.submit(osd, FIRST.format(gate=gate), zone=target.partition, priority=100)
    entries: list[Entry] = []
    for _ in range(JOBS):
        entries.append(submit(osd, rng, gate, diary, entries))
        settle(entries)
        control(osd, rng, rng.choice(entries))
        settle(entries)
    if killed:
        target.kill()
        target.start()
        osd = target.commands
    run_all(osd, gate, diary, entries)
    for entry in entries:
        if entry.state:
            assert Job(osd, entry.id).wait(DEADLINE_S).state is entry.state, entry
        else:
            state = Job(osd, entry.id).status().state
            assert state is (JobState.HELD if entry.held else JobState.QUEUED), entry
