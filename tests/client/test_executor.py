# SPDX-License-Identifier: GPL-2.0-or-later
"""CPython's own tests of executors (package libpython3.11-testsuite), on pyosd.Executor.

They sleep much and compute little, so they run side by side; IOSD_LONG=1 adds those of six seconds.
"""

from __future__ import annotations

import os
import unittest
import warnings
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

import pyosd
import pyosd.testing
from pyosd.types import ref
from tests.machine import unavailable
from tests.processes import children_of_this, long_lived
from tests.serving import missing, sandboxes_missing
from tests.waiting import until

with warnings.catch_warnings():
    warnings.simplefilter("ignore")
    cpython: Any = pytest.importorskip("test.test_concurrent_futures")

pytestmark = [pytest.mark.tgtd, pytest.mark.sandbox]

WORKERS = 5  # what CPython's tests have; slots of the target are three times as many
TRIES = 3
LONG = {"test_timeout", "test_map_timeout"}
# Test -> why it says nothing of an executor whose functions run in a target.
NOT_APPLICABLE = {
    "test_interpreter_shutdown": "makes the executor by name in another interpreter",
    "test_submit_after_interpreter_shutdown": "makes the executor by name in another interpreter",
    "test_hang_gh83386": "makes the executor by name in another interpreter",
    "test_submit_keyword": "JSON has no tuples; test_keywords below is the rest of it",
    "test_map_exception": "JSON has no tuples, exceptions are ScriptError; test_map_raises below",
    "test_no_stale_references": "sends a bound method",
    "test_free_reference": "returns an object that is not JSON",
    "test_cancel_futures": "expects that few of 50 short functions have ended; test_cancels_at_the_end",
    "test_max_workers_negative": "the number of workers is the target's",
}
SUITES = ("ExecutorShutdownTest", "WaitTests", "AsCompletedTests", "ExecutorTest")


@pytest.fixture(scope="module")
def session() -> Iterator[pyosd.Target]:
    why = missing() or sandboxes_missing()
    if why:
        unavailable("sandbox", why)
    before = children_of_this()
    with pyosd.testing.serve("--slots", str(3 * WORKERS)) as served:
        started = children_of_this() - before
        long_lived.update(started)
        with served.connect() as target:
            yield target
    long_lived.difference_update(started)


@pytest.fixture
def executor(session: pyosd.Target) -> Iterator[pyosd.Executor]:
    with pyosd.Executor(session, zone=ref(session.create_partition())) as made:
        yield made


def cases(session: pyosd.Target) -> Iterator[unittest.TestCase]:
    """The tests, each with an executor of its own."""

    class Mixin:
        worker_count = WORKERS
        executor_type = pyosd.Executor

        def setUp(self) -> None:
            self.executor = pyosd.Executor(session, zone=ref(session.create_partition()))

        def tearDown(self) -> None:
            self.executor.shutdown()

    for suite in SUITES:
        kind = type(suite, (Mixin, getattr(cpython, suite), unittest.TestCase), {})
        for name in unittest.defaultTestLoader.getTestCaseNames(kind):
            if name not in NOT_APPLICABLE and (name not in LONG or os.environ.get("IOSD_LONG")):
                yield kind(name)


def test_those_of_cpython(session: pyosd.Target) -> None:
    """They sleep, and expect other functions to have ended by then: one that fails beside the others is
    run again by itself, up to three times beside the tests of other workers."""

    def run(case: unittest.TestCase) -> list[str]:
        result = unittest.TestResult()
        case.run(result)
        assert result.testsRun == 1
        return [f"{case}: {text}" for _, text in result.errors + result.failures]

    def passes_once(case: unittest.TestCase) -> list[str]:
        texts = list[str]()
        for _ in range(TRIES):
            if not (texts := run(case)):
                break
        return texts

    found = [*cases(session)]
    assert len(found) > 15
    with ThreadPoolExecutor(len(found)) as threads:
        said = list(threads.map(run, found))
    failed = [case for case, texts in zip(found, said, strict=True) if texts]
    failures = [text for case in failed for text in passes_once(case)]
    assert not failures, "\n".join(failures)


def multiplied(x: int, y: int) -> int:
    return x * y


def captured(*args: int, **kwargs: int) -> list[object]:
    return [args, kwargs]


def test_keywords(executor: pyosd.Executor) -> None:
    assert executor.submit(multiplied, 2, y=8).result(30) == 16
    assert executor.submit(captured, 1, self=2, fn=3).result(30) == [[1], {"self": 2, "fn": 3}]
    with pytest.raises(TypeError):
        executor.submit(fn=captured, arg=1)  # type: ignore[call-arg]


def held() -> int:
    import time

    import osd  # type: ignore[import-not-found]

    while not any(osd.zone.userobjects()):
        time.sleep(0.02)
    return 7


def test_cancels_at_the_end(session: pyosd.Target) -> None:
    """Functions that have not begun are cancelled at the shutdown; the others end."""
    partition = session.create_partition()
    with pyosd.Executor(session, zone=ref(partition)) as executor:
        futures = [executor.submit(held) for _ in range(4 * WORKERS)]
        until(futures[0].running)
        executor.shutdown(wait=False, cancel_futures=True)
        session.create(partition)
    assert all(each.done() for each in futures)
    assert WORKERS <= sum(each.cancelled() for each in futures) < len(futures)
    assert {each.result() for each in futures if not each.cancelled()} == {7}


def test_map_raises(executor: pyosd.Executor) -> None:
    results = executor.map(divmod, [1, 1, 1, 1], [2, 3, 0, 5])
    assert [next(results), next(results)] == [[0, 1], [0, 1]]
    with pytest.raises(pyosd.ScriptError) as raised:
        next(results)
    assert raised.value.type_name == "ZeroDivisionError"


def test_what_is_missing_has_gone_for_a_reason() -> None:
    there = {name for suite in SUITES for name in dir(getattr(cpython, suite))}
    assert there >= set(NOT_APPLICABLE) | LONG
