# SPDX-License-Identifier: GPL-2.0-or-later
"""Jobs that several threads hear of, and whose target is lost or talks nonsense.  No target is needed."""

from __future__ import annotations

import threading
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import suppress
from typing import Any, cast

import pytest

from pyosd.errors import SessionLost, TargetBusy
from pyosd.jobs.executor import Executor
from pyosd.jobs.job import Job
from pyosd.types import ref
from pyosd.wire.job_status import JobState, JobStatus

DEADLINE_S = 30
ZONE = ref(0x10000)


class Carrier:
    """Commands that carry dialogues as the test says."""

    def __init__(self, carry: Callable[[Any], Any]) -> None:
        self.carry = carry

    def job(self, number: int = 1) -> Job:
        return Job(cast(Any, self), ref(0x10000, number))


def without_steps(dialogue: Any) -> Any:
    """Carry a dialogue that asks the target nothing."""
    with pytest.raises(StopIteration) as ended:
        next(dialogue)
    return ended.value.value


def end(job: Job, value: object) -> None:
    job.end(JobStatus(job.id, JobState.COMPLETED), value, None)


@pytest.fixture
def held() -> tuple[Job, threading.Event, threading.Event]:
    """A job whose Future has its result only after an event; another says that it is to get it."""
    job, telling, go_on = Carrier(without_steps).job(), threading.Event(), threading.Event()
    set_result = job.set_result

    def slow(result: Any) -> None:
        telling.set()
        assert go_on.wait(DEADLINE_S)
        set_result(result)

    job.set_result = slow  # type: ignore[method-assign]
    return job, telling, go_on


@pytest.mark.parametrize("method", ["result", "exception"])
def test_an_end_that_another_thread_is_telling(
    held: tuple[Job, threading.Event, threading.Event], method: str
) -> None:
    job, telling, go_on = held
    with ThreadPoolExecutor(2) as pool:
        ending = pool.submit(end, job, 5)
        assert telling.wait(DEADLINE_S)
        found = pool.submit(getattr(job, method))
        with suppress(TimeoutError):
            found.result(0.1)
        go_on.set()
        assert found.result(DEADLINE_S) == (5 if method == "result" else None)
        ending.result()


def test_an_end_counts_that_came_before_the_loss(
    held: tuple[Job, threading.Event, threading.Event],
) -> None:
    job, telling, go_on = held
    with ThreadPoolExecutor(1) as pool:
        ending = pool.submit(end, job, 5)
        assert telling.wait(DEADLINE_S)
        job.lose(SessionLost("gone"))
        go_on.set()
        ending.result()
    assert job.result() == 5


def test_a_callback_of_a_lost_job_may_ask_for_it() -> None:
    job, done = Carrier(without_steps).job(), threading.Event()

    def ask(_: Future[Any]) -> None:
        end(job, 5)
        done.set()

    Future.add_done_callback(job, ask)
    threading.Thread(target=job.lose, args=[SessionLost("gone")], daemon=True).start()
    assert done.wait(DEADLINE_S)


def test_all_hear_of_a_lost_target_at_once() -> None:
    """Each attempt takes as long as a session may need to come back."""
    calls, begin = [], threading.Event()

    def carry(dialogue: Any) -> Any:
        assert begin.wait(DEADLINE_S)
        calls.append(dialogue)
        dialogue.close()
        raise SessionLost("gone")

    carrier = Carrier(carry)
    jobs = [carrier.job(number).watch() for number in range(1, 20)]
    begin.set()
    for job in jobs:
        assert isinstance(Future.exception(job, DEADLINE_S), SessionLost)
    assert len(calls) <= 2  # the first round may have had one job


def test_a_watcher_survives_nonsense() -> None:
    def carry(dialogue: Any) -> Any:
        dialogue.close()
        raise ValueError("nonsense")

    carrier = Carrier(carry)
    first, second = carrier.job(1), carrier.job(2)
    assert isinstance(Future.exception(first.watch(), DEADLINE_S), ValueError)

    def better(dialogue: Any) -> float:
        dialogue.close()
        end(second, 5)
        return 0.0

    carrier.carry = better
    assert Future.result(second.watch(), DEADLINE_S) == 5


def test_a_watcher_whose_thread_did_not_start(monkeypatch: pytest.MonkeyPatch) -> None:
    start = threading.Thread.start

    def no_more(thread: threading.Thread) -> None:
        monkeypatch.setattr(threading.Thread, "start", start)
        raise RuntimeError("can't start new thread")

    def carry(dialogue: Any) -> float:
        dialogue.close()
        end(job, 5)
        return 0.0

    job = Carrier(carry).job()
    monkeypatch.setattr(threading.Thread, "start", no_more)
    with pytest.raises(RuntimeError, match="can't start new thread"):
        job.watch()
    assert Future.result(job.watch(), DEADLINE_S) == 5


def one() -> int:
    return 1


def test_no_call_is_submitted_after_shutdown() -> None:
    """Not even one that waits for room in the target's queue."""
    waiting = threading.Event()

    def carry(dialogue: Any) -> Any:
        dialogue.close()
        waiting.set()
        raise TargetBusy(0, 0, 0, "full")

    executor = Executor(cast(Any, Carrier(carry)), ZONE)
    with ThreadPoolExecutor(1) as pool:
        submitting = pool.submit(executor.submit, one)
        assert waiting.wait(DEADLINE_S)
        executor.shutdown()
        with pytest.raises(RuntimeError, match="after shutdown"):
            submitting.result(DEADLINE_S)


def test_an_executor_forgets_jobs_that_have_ended() -> None:
    numbers = iter(range(1, 10_000))

    def carry(dialogue: Any) -> Any:
        dialogue.close()
        job = carrier.job(next(numbers))
        end(job, 1)
        return job

    carrier = Carrier(carry)
    executor = Executor(cast(Any, carrier), ZONE)
    for _ in range(500):
        executor.submit(one)
    assert len(executor._jobs) < 200
    executor.shutdown()
