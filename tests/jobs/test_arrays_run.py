# SPDX-License-Identifier: GPL-2.0-or-later
"""Arrays of jobs whose members run in sandboxes.  Tests without sandboxes: test_arrays.py."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import pytest

from pyosd import errors, jobs
from pyosd.jobs.job_array import JobArray
from pyosd.types import AttributeValue, ref
from pyosd.wire.job_status import JobState
from tests.apart import count_apart
from tests.jobs.conftest import Target, skip_without_sandboxes
from tests.jobs.test_arrays import (
    CANCELLED,
    DEADLINE_S,
    KILLED,
    MEMBERS,
    C,
    H,
    Q,
    X,
    listed,
    submit,
)
from tests.waiting import until

if TYPE_CHECKING:
    from collections.abc import Iterator


@pytest.fixture(scope="module")
def serving(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Target]:
    """For tests that kill nothing."""
    skip_without_sandboxes()
    running = Target(tmp_path_factory.mktemp("arrays"))
    yield running
    running.stop()


def run(target: Target, code: str, array: range, **how: object) -> JobArray:
    return submit(target.commands, target.partition, array, code, **how)


def test_a_script_removes_a_long_array(serving: Target) -> None:
    array = run(serving, "pass", range(600), hold=True)
    array.cancel()
    array.wait(DEADLINE_S)
    code = "import osd\nosd.userobject(*osd.args).remove()"
    ids = [array.id.partition_id, array.id.object_id]
    job = jobs.submit(serving.commands, code, zone=serving.partition, args=ids)
    job.result(DEADLINE_S)
    assert listed(serving.commands, serving.partition) == [job.id]
    job.remove()


def test_results_with_exceptions_in_place(serving: Target) -> None:
    code = "import osd\nosd.result(1 // (osd.array_index - 1))"
    array = run(serving, code, range(3))
    found = list(array.results(DEADLINE_S, return_exceptions=True))
    assert (found[0], found[2]) == (-1, 1)
    assert isinstance(found[1], errors.ScriptError)
    assert "ZeroDivisionError" in found[1].remote_traceback
    with pytest.raises(errors.ScriptError):
        list(array.results(DEADLINE_S))


INDEX = "import osd\nprint(osd.array_index)\nosd.result([osd.array_index, osd.array.object_id, osd.args])\n"


def test_each_member_has_its_index(serving: Target) -> None:
    array = run(serving, INDEX, range(3, 11), args=["x"])
    assert array.result(DEADLINE_S) == [[n, array.id.object_id, ["x"]] for n in range(3, 11)]
    status = array.status()
    assert (status.state, status.counts) == (C, {C: 8})
    assert [job.output() for job in array] == [b"%d\n" % n for n in range(3, 11)]
    assert status.calls == sum(job.status().calls for job in array) > 0
    assert status.cpu_user == pytest.approx(sum(job.status().cpu_user for job in array))
    assert status.peak_memory == max(job.status().peak_memory for job in array)
    assert status.started == min(job.status().started for job in array)  # type: ignore[type-var]
    assert status.ended >= max(job.status().ended for job in array)  # type: ignore[operator, type-var]
    assert array[0].status().expiry is None
    alone = jobs.submit(
        serving.commands,
        "import osd; osd.result([osd.array, osd.array_index])",
        zone=serving.partition,
    )
    assert alone.result(DEADLINE_S) == [None, None]


COUNTED = """
import osd, time
counter = osd.userobject({pid}, {oid})
now = counter.fetch_and_add(0x10000, 1, 1) + 1
time.sleep(0.005)
counter.fetch_and_add(0x10000, 1, -1)
osd.result(now)
"""


@pytest.mark.parametrize("at_once", [1, 2])
def test_no_more_at_once_than_asked_for(serving: Target, at_once: int) -> None:
    pid = serving.partition.partition_id
    counter = serving.commands.create(pid)
    serving.commands.set_attributes(counter, [AttributeValue(0x10000, 1, bytes(8))])
    code = COUNTED.format(pid=pid, oid=counter.object_id)
    array = run(serving, code, range(24), at_once=at_once)
    beside = jobs.submit(serving.commands, "print('beside')", zone=serving.partition)
    assert beside.wait(DEADLINE_S).state is C
    found = array.result(DEADLINE_S)
    assert max(found) <= at_once
    if at_once == 1:
        starts = [job.status().started for job in array]
        assert starts == sorted(starts, key=lambda each: each.timestamp() if each else 0)


def test_some_fail(serving: Target) -> None:
    code = "import osd, sys\nif osd.array_index % 3 == 1: sys.exit(3)\nosd.result(osd.array_index)"
    array = run(serving, code, range(9), at_once=2)
    ends = {job.id: job.exception() for job in array.as_completed(DEADLINE_S)}
    assert len(ends) == 9
    assert sum(each is None for each in ends.values()) == 6
    status = array.wait(DEADLINE_S)
    assert (status.state, status.reason) == (JobState.FAILED, MEMBERS)
    assert status.message == "3 FAILED of 9"
    assert "osd ps --members" in status.hint
    with pytest.raises(errors.ScriptError):
        array.result()
    results = array.results()
    assert next(results) == 0
    with pytest.raises(errors.ScriptError):
        next(results)


def test_a_crash_while_members_run(target: Target) -> None:
    """Each runs to its end, at most as many at once as asked for, and none twice that had ended."""
    pid = target.partition.partition_id
    gate = target.commands.create(pid)
    code = (
        "import osd, time\n"
        f"while osd.array_index > 2 and osd.userobject({pid}, {gate.object_id}).exists():\n"
        "    time.sleep(0.005)\n"
        f"osd.userobject({pid}, osd.args[osd.array_index]).data.write('done')\n"
    )
    objects = [target.commands.create(pid).object_id for _ in range(12)]
    array = run(target, code, range(12), args=objects, at_once=1, idempotent=True)
    until(lambda: array.states()[2].terminal)
    target.kill()
    target.start()
    array = JobArray(target.commands, array.id)

    def running() -> int:
        found = sum(not state.terminal and state not in (Q, H) for state in array.states())
        assert found <= 1
        return found

    until(running)
    target.commands.remove(gate)
    while not array.done():
        running()
    assert array.status().state is C
    assert all(bytes(target.commands.read(ref(pid, oid), 0, 9)) == b"done" for oid in objects)
    assert sum(job.status().attempt > 1 for job in array) <= 1


def test_killed_while_members_run(serving: Target) -> None:
    array = run(serving, "import time\nprint('up', flush=True)\ntime.sleep(60)", range(50))
    next(array[0].iter_output(follow=True))
    assert array.status().state is JobState.RUNNING
    assert array.cancel() is False
    states = array.states()
    assert states[2:] == [X] * 48 and JobState.RUNNING in states[:2]
    assert array.kill(DEADLINE_S) is X
    assert array.states() == [X] * 50
    assert array[0].status().reason == KILLED
    assert array[10].status().reason == CANCELLED


def test_synchronous(serving: Target) -> None:
    array = run(serving, INDEX, range(4), wait=30)
    assert array.settled
    assert [each[0] for each in array.results()] == [0, 1, 2, 3]


def test_run_again_with_its_index(serving: Target) -> None:
    array = run(serving, "import osd\nassert osd.array_index != 2", range(4))
    assert array.wait(DEADLINE_S).state is JobState.FAILED
    failed = array.member(2)
    again = run(serving, INDEX, range(2, 3), predecessor=failed.id)
    assert again.result(DEADLINE_S)[0][0] == 2
    assert again.status().predecessor == failed.id


def test_expired_together(target: Target) -> None:
    array = run(target, "pass", range(5), expire=0.5)
    with suppress(errors.JobExpired):  # while we are late ourselves
        array.wait(DEADLINE_S)
        assert array[4].status().state is C
    target.kill()
    target.start()  # which looks for what has expired

    def gone() -> bool:
        return count_apart(target.commands, target.partition.partition_id) == 0

    until(gone)
    with pytest.raises(errors.JobExpired):
        JobArray(target.commands, array.id).status()
