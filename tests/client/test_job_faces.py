# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs and arrays over the wire, each test for threads and for coroutines."""

from __future__ import annotations

import pytest

from pyosd import After, JobCancelled, JobExpired, JobState, ScriptError, errors, ref
from pyosd.commands.dialogue import Dialogue, start
from pyosd.jobs.dialogues import rounds
from pyosd.types import ObjectRef
from pyosd.wire.cdb import Request
from tests.client.faces import Face
from tests.waiting import until

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

ENDLESS = "while True: pass"
TELLS = """
import osd, sys
print("one"); print("two", end="")
print("beside", file=sys.stderr)
osd.progress(0.5, "half")
osd.result({"args": osd.args})
"""


def test_a_job_that_completes(face: Face, zone: ObjectRef) -> None:
    job = face.exec(TELLS, zone=zone, args=[1], name="tells")
    assert job.result(60) == {"args": [1]} and job.exception() is None
    assert job.settled and job.done() and not job.running() and not job.cancelled()
    assert job.progress() == 0.5 and job.usage()["run_seconds"] > 0 and job.traceback() == ""
    assert job.output() == b"one\ntwo" and job.stderr() == b"beside\n"
    assert job.logs() == job.logs(follow=True) == ["one", "two"]
    assert job.logs(stream="stderr") == ["beside"]
    with pytest.raises(ValueError, match="stream is stdout or stderr, not 'both'"):
        job.logs(stream="both")
    assert b"".join(job.iter_output(start=4)) == b"two"
    assert b"".join(job.iter_stderr(start=3)) == b"ide\n"
    assert job.status().state is JobState.COMPLETED and job.status().name == "tells"
    assert job.kill() is JobState.COMPLETED and not job.cancel()
    failing = face.exec("1/0", zone=zone)
    failing.wait(60)
    assert face.retry(failing, code="pass").wait(60).state is JobState.COMPLETED
    job.remove()
    known = face.job(job.id)
    for ask in (known.status, known.done, known.result, known.output, known.hold, known.kill):
        with pytest.raises((JobExpired, errors.NotFound)):
            ask()


def test_a_job_that_fails(face: Face, zone: ObjectRef) -> None:
    job = face.exec("1/0", zone=zone)
    with pytest.raises(ScriptError, match="ZeroDivisionError") as caught:
        job.result(60)
    assert caught.value.job and caught.value.job.id == job.id
    assert "ZeroDivisionError" in job.traceback()
    assert isinstance(job.exception(), ScriptError)
    waiting = face.exec("import osd; osd.result(b'x' * 100_000)", zone=zone, wait="30s")
    assert waiting.result(60) == b"x" * 100_000
    with pytest.raises(errors.OSDError, match="has no pool 'none'"):
        face.exec("pass", zone=zone, pool="none")
    with pytest.raises(errors.OSDError, match="is no job"):
        face.exec("pass", zone=zone, after=[After(ref(zone.partition_id, 0x7FFF_0000))])


def test_control(face: Face, zone: ObjectRef) -> None:
    held = face.exec("pass", zone=zone, hold=True)
    assert held.status().state is JobState.HELD and not held.done()
    with pytest.raises(TimeoutError, match="not ended in time"):
        held.wait(0.05)
    with pytest.raises(TimeoutError):
        held.result(0.05)
    with pytest.raises(errors.Conflict):
        held.remove()
    assert held.release() is not JobState.HELD and held.wait(60).state is JobState.COMPLETED
    assert held.hold() is held.release() is JobState.COMPLETED  # nothing is left to control
    cancelled = face.exec("pass", zone=zone, hold=True)
    assert cancelled.cancel() and cancelled.cancelled() and cancelled.cancel()
    with pytest.raises(JobCancelled):
        cancelled.result()
    endless = face.exec(ENDLESS, zone=zone)
    assert endless.kill() is JobState.CANCELLED


def test_an_array(face: Face, zone: ObjectRef) -> None:
    code = "import osd\nif osd.array_index == 5: 1/0\nosd.result(osd.array_index)"
    array = face.exec_array(code, zone=zone, array=[3, 4, 5, 9], at_once=2)
    assert {job.settled_outcome()[0] for job in array.as_completed(60)} == {3, 4, 9, None}
    *found, failed, last = array.results(60, return_exceptions=True)
    assert (found, last) == ([3, 4], 9) and isinstance(failed, ScriptError)
    for ask in (array.results, array.result):
        with pytest.raises(ScriptError):
            ask(60)
    assert array.states() == [JobState.COMPLETED, JobState.COMPLETED, *array.states()[2:]]
    assert [each.state for each in array.statuses()] == array.states()
    assert array.progress() == 1.0 and not array.cancel()
    known = face.array(array.id)
    assert list(known.indices) == [3, 4, 5, 9] and len(known.members()) == 4
    assert known.member(9).result(60) == 9
    again = face.retry(known, failed=True)
    assert list(again.indices) == [5] and again.wait(60).state is JobState.FAILED
    held = face.exec(code, zone=zone, array=range(3), hold=True)
    held.stop()
    assert held.cancel() and held.status().state is JobState.CANCELLED
    with pytest.raises(ValueError, match="array=range"):
        face.exec_array(code, zone=zone)
    single = face.exec("pass", zone=zone)
    with pytest.raises(ValueError, match="is not an array"):
        _ = face.array(single.id).indices


def test_members_whose_ends_are_known_are_not_asked_for(
    face: Face, zone: ObjectRef, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Who waits again after a time-out polls the states of the array, and nothing else."""
    code = "import osd\nif osd.array_index == 2: import time; time.sleep(1e6)"
    array = face.exec_array(code, zone=zone, array=range(3))
    try:
        until(lambda: [each.terminal for each in array.states()] == [True, True, False])
        with pytest.raises(TimeoutError):
            array.as_completed(0.0)
        sent = list[Request]()

        def counted(request: Request) -> Dialogue[object]:
            sent.append(request)
            return (yield from start(request))

        monkeypatch.setattr(rounds, "start", counted)
        with pytest.raises(TimeoutError):
            array.as_completed(0.0)
        assert not sent
    finally:
        array.kill()


def test_what_a_target_knows(face: Face, zone: ObjectRef) -> None:
    job = face.exec("pass", zone=zone, name="known")
    job.wait(60)
    assert [each.id for each in face.jobs(zone.partition_id) if each.name == "known"] == [job.id]
    assert "default" in [pool.name for pool in face.pools()]
    assert job.status().principal in face.principals(zone)
